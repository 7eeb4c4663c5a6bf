"""Spark types from Arrow types: columns that workers produce are declared once, as Arrow types."""

import pyarrow as pa
from pyspark.sql import types as t
from pyspark.sql.pandas.types import from_arrow_type


def spark_type(kind: pa.DataType) -> t.DataType:
    """The Spark type of an Arrow type."""
    return from_arrow_type(kind, prefer_timestamp_ntz=False)


def spark_fields(columns: pa.Schema) -> list[t.StructField]:
    """The Spark fields of Arrow columns."""
    return [t.StructField(column.name, spark_type(column.type), column.nullable) for column in columns]


def spark_schema(columns: pa.Schema) -> t.StructType:
    """The Spark schema of Arrow columns."""
    return t.StructType(spark_fields(columns))
