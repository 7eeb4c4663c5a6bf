"""Columns of a stream's output, read with Arrow: independent of Spark and of the pipeline."""

from pathlib import Path
from typing import Any


def columns_of(place: Path, *names: str) -> list[list[Any]]:
    """Some columns of the Parquet files below a folder; empty columns if nothing was written."""
    import pyarrow.dataset as ds

    if not place.exists():
        return [[] for _ in names]
    table = ds.dataset(place, format="parquet", partitioning="hive").to_table(columns=list(names))
    return [table[name].to_pylist() for name in names]
