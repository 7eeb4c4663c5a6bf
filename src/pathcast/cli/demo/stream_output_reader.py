"""Columns of a stream's output, read with Arrow: independent of Spark and of the pipeline."""

from pathlib import Path
from typing import Any


def columns_of(place: Path, *names: str) -> list[list[Any]]:
    """Some columns of the Parquet files below a folder; empty columns if nothing was written."""
    import pyarrow.dataset as ds

    found = ds.dataset(place, format="parquet", partitioning="hive") if place.exists() else None
    if found is None or not found.files:
        return [[] for _ in names]
    table = found.to_table(columns=list(names))
    return [table[name].to_pylist() for name in names]
