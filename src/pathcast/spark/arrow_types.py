"""Spark types from Arrow types: columns that workers make are declared once, as Arrow has them."""

import pyarrow as pa
from pyspark.sql import types as t
from pyspark.sql.pandas.types import from_arrow_type


def spark_type(kind: pa.DataType) -> t.DataType:
    """The type that Spark has for one of Arrow's."""
    return from_arrow_type(kind, prefer_timestamp_ntz=False)


def spark_fields(columns: pa.Schema) -> list[t.StructField]:
    """The fields that Spark has for columns of Arrow."""
    return [t.StructField(column.name, spark_type(column.type), column.nullable) for column in columns]


def spark_schema(columns: pa.Schema) -> t.StructType:
    """The schema that Spark has for columns of Arrow."""
    return t.StructType(spark_fields(columns))
