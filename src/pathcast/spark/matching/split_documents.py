"""Split files into their entries: a row per entry, from a column of files or of their paths.

    (…, path) ── split_documents ──▶ (…, path, xml, entry, offset, entry_error) ── match_documents, mediate, …

Workers open the files and read them piece by piece; rows leave a worker some megabytes at a time. So a file of any size
takes the memory of a piece, of its largest entry and of one Arrow batch. One task reads a file, in order.

Invariant: the rows of a file are those of `pathcast.split_documents`, with the columns of the file's row.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as t

from pathcast.documents import Entities, Entry, EntryPath, Limits, entries_of, parse_entry_path
from pathcast.errors import PathcastError, PipelineError

from .arrow_document_columns import ENTRY_ERROR, ERROR_TYPE, error_column, file_named
from .input_column_checks import ERROR, check_columns, check_entities

ENTRY, OFFSET = "entry", "offset"
# Rows and bytes of documents in an Arrow batch, unless one document has more.
_ROWS, _BYTES = 1 << 12, 4 << 20
Batches = Iterator[pa.RecordBatch]


def split_documents(
    files: DataFrame,
    path: str,
    *,
    file: str = "xml",
    file_path: str | None = None,
    document: str = "xml",
    namespaces: Any = None,
    limits: Limits | None = None,
    entities: Entities = "refuse",
) -> DataFrame:
    """A row per entry of the files in the column `file`, or in the files that the column `file_path` names.

    `path` selects the entries, such as `/feed/entry` (docs/guides/entries.md). Each row has the columns of its file,
    without `file`, and the entry in the column `document` (binary), its number in the file from 1 in `entry`, and the
    byte at which it begins in `offset`. Where a file ends with an error, and for an entry that is too large,
    `entry_error` has the reason (reason, line, column); `match_documents` takes it over.

    Works on streams too.
    """
    check_entities(entities)
    steps = parse_entry_path(path, namespaces)
    added = [document, ENTRY, OFFSET, ENTRY_ERROR]
    source = file if file_path is None else file_path
    gone = [file] if file_path is None else []
    check_columns(files.schema, file, file_path, [name for name in added if name not in gone])
    kept = [field for field in files.schema.fields if field.name not in gone]
    kinds = [t.BinaryType(), t.LongType(), t.LongType(), ERROR]
    schema = t.StructType([*kept, *(t.StructField(name, kind) for name, kind in zip(added, kinds, strict=True))])
    function = splitting(source, document, steps, Limits.given(limits), entities, named=file_path is not None)
    return files.mapInArrow(function, schema)


def splitting(
    source: str, document: str, path: EntryPath, limits: Limits, entities: Entities, *, named: bool
) -> Callable[[Batches], Batches]:
    """The function that a worker runs on the rows of a partition."""

    def split_batches(batches: Batches) -> Batches:
        for batch in batches:
            kept = batch if named else batch.drop_columns([source])
            for row in range(len(batch)):
                file = batch.column(source)[row].as_py()
                for entries in _groups(_entries(file, path, limits, entities, named=named)):
                    yield _rows(kept.slice(row, 1), document, entries)

    return split_batches


def _entries(file: Any, path: EntryPath, limits: Limits, entities: Entities, *, named: bool) -> Iterator[Entry]:
    try:
        if file is None:
            raise PipelineError("no file: the column of files is null; fill the column, or drop the row")
        opened = file_named(file) if named else file
    except PathcastError as error:
        return iter([Entry(b"", 1, 0, error)])
    return entries_of(opened, path, limits=limits, entities=entities)


def _groups(entries: Iterator[Entry]) -> Iterator[list[Entry]]:
    group: list[Entry] = []
    size = 0
    for entry in entries:
        if group and (len(group) == _ROWS or size + len(entry.document) > _BYTES):
            yield group
            group, size = [], 0
        group.append(entry)
        size += len(entry.document)
    if group:
        yield group


def _rows(file: pa.RecordBatch, document: str, entries: list[Entry]) -> pa.RecordBatch:
    rows = file.take(pa.array([0] * len(entries), pa.int32()))
    errors = {row: entry.error for row, entry in enumerate(entries) if entry.error is not None}
    documents = [entry.document if entry.error is None or entry.document else None for entry in entries]
    rows = rows.append_column(document, pa.array(documents, pa.binary()))
    rows = rows.append_column(ENTRY, pa.array([entry.number for entry in entries], pa.int64()))
    rows = rows.append_column(OFFSET, pa.array([entry.offset for entry in entries], pa.int64()))
    found = error_column(len(entries), errors)
    return rows.append_column(pa.field(ENTRY_ERROR, ERROR_TYPE), found)
