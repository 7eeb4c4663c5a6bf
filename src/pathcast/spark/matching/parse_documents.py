"""Parse documents once: add their structure as a column, for stages that match without parsing.

    documents ── parse_documents ──▶ (…, structure, error) ──┬ match_documents(structure=…) with one index
                                                              └ … with another, or with each shard of one

Invariant: matching by structure gives the same result as parsing. A document that cannot be read has an error.
Cost: reading, and some 3 bytes per element and 4 per value to the next stage, besides names.
"""

from collections.abc import Callable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as t

from pathcast.documents import Entities, Limits, pack

from .arrow_document_columns import binary_column, error_column, parts_of_rows
from .document_batch_reader import PartReader
from .input_column_checks import ERROR, check_columns, check_entities

STRUCTURE = "structure"
Batches = Iterator[pa.RecordBatch]


def parsing(document: str, limits: Limits | None = None, entities: Entities = "refuse") -> Callable[[Batches], Batches]:
    """The function that a worker runs on the rows of a partition."""

    def parse_batches(batches: Batches) -> Batches:
        reader = PartReader(Limits.given(limits), entities)
        for batch in batches:
            for part in parts_of_rows(batch, document):
                read = reader.read(part)
                rows = batch.slice(part.begin, part.end - part.begin)
                rows = rows.append_column(STRUCTURE, binary_column(*pack(read), read.errors))
                yield rows.append_column("error", error_column(len(rows), read.errors))

    return parse_batches


def parse_documents(
    documents: DataFrame, *, document: str = "xml", limits: Limits | None = None, entities: Entities = "refuse"
) -> DataFrame:
    """A column of XML documents, parsed: keeps all columns and adds `structure` (binary) and `error`."""
    check_entities(entities)
    check_columns(documents.schema, document, None, [STRUCTURE, "error"])
    added = [t.StructField(STRUCTURE, t.BinaryType()), t.StructField("error", ERROR)]
    return documents.mapInArrow(parsing(document, limits, entities), t.StructType([*documents.schema.fields, *added]))
