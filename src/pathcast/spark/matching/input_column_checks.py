"""Checks of columns: what every stage checks in its frame before anything runs, and the shared column of errors.

Invariant: a stage that passes these checks has its columns, of the right types, and overwrites none.
"""

import pyarrow as pa
from pyspark.sql import types as t

from pathcast.errors import PipelineError

from ..arrow_to_spark_types import spark_schema
from .arrow_document_columns import ERROR_TYPE

ERROR = spark_schema(pa.schema(ERROR_TYPE))


def check_entities(entities: object) -> None:
    """Reject an invalid `entities` on the driver, before a worker does."""
    if entities not in ("refuse", "expand"):
        raise PipelineError(f"entities must be 'refuse' or 'expand', got {entities!r}")


def columns_in(schema: t.StructType) -> str:
    """The columns of a frame with their types, for errors."""
    return ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in schema.fields)


def check_structure(schema: t.StructType, structure: str, document_path: str | None) -> None:
    """Reject a frame without a column of structures."""
    names = schema.fieldNames()
    if structure not in names or not isinstance(schema[structure].dataType, t.BinaryType):
        raise PipelineError(
            f"the input has no binary column '{structure}' of structures; the columns are {columns_in(schema)}"
        )
    if document_path is not None:
        raise PipelineError(
            "structure= does not work with document_path=: structures refer to documents in the same row; use document="
        )
    if "error" in names and schema["error"].dataType != ERROR:
        raise PipelineError(
            f"the column 'error' is of type {schema['error'].dataType.simpleString()}, so Pathcast did not "
            "make the column; rename the column"
        )


def check_columns(schema: t.StructType, document: str, document_path: str | None, added: list[str]) -> None:
    """Reject a frame without the column of documents, or with a column that the stage would add."""
    names = schema.fieldNames()
    column, what = (document, "documents") if document_path is None else (document_path, "paths of documents")
    if column not in names:
        raise PipelineError(f"the input has no column '{column}' with {what}; the columns are {', '.join(names)}")
    kind = schema[column].dataType
    if document_path is None and not isinstance(kind, t.BinaryType | t.StringType):
        raise PipelineError(
            f"the column '{column}' is of type {kind.simpleString()}; documents must be binary or string: cast "
            "the column"
        )
    if document_path is not None and not isinstance(kind, t.StringType):
        raise PipelineError(
            f"the column '{column}' is of type {kind.simpleString()}; paths of documents must be strings: cast "
            "the column"
        )
    if len(set(names)) < len(names):
        twice = next(name for at, name in enumerate(names) if name in names[:at])
        raise PipelineError(f"two columns are named '{twice}'; rename one of them")
    for name in names:
        if name.lower() in added:  # Spark's column names ignore case
            raise PipelineError(
                f"the column '{name}' already exists, but the result needs this name; rename the column first"
            )
