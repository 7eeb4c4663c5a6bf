"""Extraction on Spark: documents become changes of a table, one row per change, for `join_subscriptions` or other use.

    documents ──▶ (…, table, change, row as JSON, sequence, error)

A description (`pathcast.joins.Extraction`) has the paths of rows and columns in documents; package joins extracts them.
A row travels as JSON, so that changes of different tables are rows of one frame; `from_json` gives typed columns. For
changes from other sources, use `to_json(struct(…))`.

Invariant: every row of every document gives one change, in document order, or an error in its place; a document that
cannot be read gives one row, with an error. If documents have a key, a repeated extraction gives a change the same
number.
Cost: reading, or with structures unpacking, and some microseconds per value.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as t

from pathcast.documents import Entities, Limits
from pathcast.errors import LimitError, PathcastError, PipelineError
from pathcast.joins import Extraction
from pathcast.joins.query import Extractor, write_row
from pathcast.kernels import Int64s

from ..matching.arrow_document_columns import Part, error_column, parts_of_rows
from ..matching.document_batch_reader import PartReader
from ..matching.input_column_checks import ERROR, check_columns, check_entities, check_structure
from ..matching.match_documents import with_structures
from ..matching.mediate_documents import Mediating, Stage
from ..matching.row_groups_by_key import take_rows
from ..sessions.objects_sent_to_workers import ShippedObject

TABLE, CHANGE, ROW, SEQUENCE = "table", "change", "row", "sequence"
# The most rows of a document, so that its key and a row's number fit into one number.
_MOST_ROWS = 1 << 20
Batches = Iterator[pa.RecordBatch]
# The document's row number, the row's number in it, the table, the change and the row as JSON.
_Change = tuple[int, int, str | None, str | None, str | None]


def extract_rows(
    documents: DataFrame,
    table: Extraction | Sequence[Extraction],
    *,
    document: str = "xml",
    structure: str | None = None,
    mediation: Mediating | None = None,
    key: str | None = None,
    limits: Limits | None = None,
    entities: Entities = "refuse",
) -> DataFrame:
    """The rows of one or several tables in documents, as changes of these tables; documents are read once.

    Keeps all columns but the document and adds `table`, `change` ("insert" or "delete"), `row` (JSON), `sequence`,
    `error` and, under its own name, the document if there is an error. `key` is a column of whole numbers that
    identifies documents; later documents have larger numbers. With `key`, every change has a number, `sequence`, which
    orders changes and identifies repeated ones (in a document with rows of several tables, those of the first table
    come first); without it, `sequence` is null. `structure`: rows are extracted from the structure in this column, as
    `mediate` makes it. `limits` and `entities` are as for `match_documents`.
    """
    check_entities(entities)
    names = documents.columns
    if structure is not None:
        check_structure(documents.schema, structure, None)
    if key is not None and key not in names:
        raise PipelineError(f"the documents have no column '{key}', which key= names; use one of {', '.join(names)}")
    if key is not None and not isinstance(documents.schema[key].dataType, t.ShortType | t.IntegerType | t.LongType):
        found = documents.schema[key].dataType.simpleString()
        raise PipelineError(
            f"the column '{key}' is of type {found}; keys must be whole numbers: cast the column to bigint"
        )
    had = structure is not None and "error" in names
    check_columns(documents.schema, document, None, [TABLE, CHANGE, ROW, SEQUENCE, *([] if had else ["error"])])
    gone = (document, structure, "error" if had else None)
    fields = [field for field in documents.schema.fields if field.name not in gone]
    fields += [t.StructField(name, t.StringType()) for name in (TABLE, CHANGE, ROW)]
    fields.append(t.StructField(SEQUENCE, t.LongType()))
    fields += [t.StructField("error", ERROR), t.StructField(document, documents.schema[document].dataType)]
    if not isinstance(table, Extraction) and not table:
        raise PipelineError("table is empty; give an Extraction, or a list of at least one")
    shipped = ShippedObject.of(table)
    if mediation is None:
        function = extracting(shipped, document, structure, key, limits, entities)
    else:
        stage = extracting_stage(shipped, document, key, limits, entities)
        function = mediation.function(documents, document, limits, entities, stage)
    return documents.mapInArrow(function, t.StructType(fields))


def extracting(
    table: ShippedObject,
    document: str,
    structure: str | None = None,
    key: str | None = None,
    limits: Limits | None = None,
    entities: Entities = "refuse",
) -> Callable[[Batches], Batches]:
    """The function that a worker runs on the rows of a partition."""

    def extract_batches(batches: Batches) -> Batches:
        cutting = table.open(RowCutter, limits, entities)
        for batch in batches:
            for part in parts_of_rows(batch, document):
                rows = batch.slice(part.begin, part.end - part.begin)
                if structure is None:
                    yield cutting.changes(rows, part, document, key)[0]
                else:
                    given, rows = with_structures(part, rows, structure)
                    yield cutting.changes(rows, given, document, key)[0]

    return extract_batches


def extracting_stage(
    table: ShippedObject, document: str, key: str | None, limits: Limits | None, entities: Entities
) -> Callable[[], Stage]:
    """`extracting` as a stage after another one in the same worker."""

    def open_stage() -> Stage:
        cutting = table.open(RowCutter, limits, entities)
        return lambda part, rows: cutting.changes(rows, part, document, key)

    return open_stage


class RowCutter:
    """An extraction in a worker, with the reader of its documents."""

    def __init__(self, tables: Extraction | Sequence[Extraction], limits: Limits | None, entities: Entities) -> None:
        self._extractors = [Extractor(one) for one in ([tables] if isinstance(tables, Extraction) else tables)]
        self._reader = PartReader(Limits.given(limits), entities)

    def changes(
        self, rows: pa.RecordBatch, part: Part, document: str, key: str | None
    ) -> tuple[pa.RecordBatch, Int64s]:
        """The changes of a part's documents, and the row that each comes from."""
        batch = self._reader.read(part)
        made: list[_Change] = []
        errors: list[PathcastError | None] = []
        before: Counter[int] = Counter()  # rows of a document in earlier tables
        for extractor in self._extractors:
            found, table = extractor.extract(batch), extractor.extraction.table
            numbers = [before[place] + number for place, number in zip(found.documents, found.numbers, strict=True)]
            made += [
                (place, number, table, change, write_row(row))
                for place, number, change, row in zip(found.documents, numbers, found.changes, found.rows, strict=True)
            ]
            errors += [found.errors.get(at) or _too_many(number) for at, number in enumerate(numbers)]
            before.update(found.documents)
        first = self._extractors[0].extraction.table if len(self._extractors) == 1 else None
        made += [(place, 0, first, None, None) for place in batch.errors]
        errors += batch.errors.values()
        order = sorted(range(len(made)), key=lambda at: made[at][:2])
        frame = self._frame(rows, [made[at] for at in order], [errors[at] for at in order], document, key)
        return frame, np.array([made[at][0] for at in order], dtype=np.int64)

    def _frame(
        self,
        rows: pa.RecordBatch,
        made: list[_Change],
        errors: list[PathcastError | None],
        document: str,
        key: str | None,
    ) -> pa.RecordBatch:
        failed = {at: error for at, error in enumerate(errors) if error is not None}
        taken = take_rows(rows, [place for place, *_ in made])
        good = [at not in failed for at in range(len(made))]
        keys = [None] * len(made) if key is None else taken.column(key).to_pylist()
        columns = {name: taken.column(name) for name in taken.schema.names if name != document}
        columns[TABLE] = pa.array([table for _, _, table, _, _ in made], pa.string())
        for name, at in ((CHANGE, 3), (ROW, 4)):
            columns[name] = pa.array(
                [each[at] if ok else None for each, ok in zip(made, good, strict=True)], pa.string()
            )
        sequences = [
            name * _MOST_ROWS + each[1] if ok and name is not None else None
            for name, each, ok in zip(keys, made, good, strict=True)
        ]
        columns[SEQUENCE] = pa.array(sequences, pa.int64())
        columns["error"] = error_column(len(made), failed)
        places = pa.array([None if ok else at for at, ok in enumerate(good)], pa.int64())
        columns[document] = taken.column(document).take(places)
        return pa.RecordBatch.from_pydict(columns)


def _too_many(number: int) -> PathcastError | None:
    if number < _MOST_ROWS:
        return None
    return LimitError(f"the document has more than {_MOST_ROWS:,} rows, the limit per document; split the document")
