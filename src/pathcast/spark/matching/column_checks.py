"""Checks of columns: what every stage asks of its frame before anything runs, and the column of errors that all share.

Invariant: a stage that does not raise here finds its columns, of the right types, and overwrites none.
"""

import pyarrow as pa
from pyspark.sql import types as t

from pathcast.errors import PipelineError

from ..arrow_types import spark_schema
from .document_columns import ERROR_TYPE

ERROR = spark_schema(pa.schema(ERROR_TYPE))


def check_entities(entities: object) -> None:
    """Reject anything that is not a way with entities, before a worker does."""
    if entities not in ("refuse", "expand"):
        raise PipelineError(f"entities={entities!r}: must be 'refuse' or 'expand'")


def check_structure(schema: t.StructType, structure: str, document_path: str | None) -> None:
    """Refuse a frame that has no such structures."""
    names = schema.fieldNames()
    if structure not in names or not isinstance(schema[structure].dataType, t.BinaryType):
        raise PipelineError(f"there is no binary column '{structure}'; the columns are {', '.join(names)}")
    if document_path is not None:
        raise PipelineError("structure goes with document: structures refer to documents in the same row")
    if "error" in names and schema["error"].dataType != ERROR:
        raise PipelineError("the column 'error' is not one that a stage of Pathcast made; rename it first")


def check_columns(schema: t.StructType, document: str, document_path: str | None, added: list[str]) -> None:
    """Refuse a frame that has no such documents, or a column of a name that is to be added."""
    names = schema.fieldNames()
    column, what = (document, "documents") if document_path is None else (document_path, "paths of documents")
    if column not in names:
        raise PipelineError(f"there is no column '{column}' with {what}; the columns are {', '.join(names)}")
    kind = schema[column].dataType
    if document_path is None and not isinstance(kind, t.BinaryType | t.StringType):
        raise PipelineError(f"the column '{column}' is of type {kind.simpleString()}; documents are binary or string")
    if document_path is not None and not isinstance(kind, t.StringType):
        raise PipelineError(f"the column '{column}' is of type {kind.simpleString()}; paths are strings")
    if len(set(names)) < len(names):
        raise PipelineError(f"two columns have the same name; the columns are {', '.join(names)}")
    for name in names:
        if name.lower() in added:  # Spark's column names don't tell capitals apart
            raise PipelineError(f"the column '{name}' is taken, and would be added; rename it first")
