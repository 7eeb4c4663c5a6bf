"""Spark: the same matching as DataFrame → DataFrame functions, on batches and streams.

    from pathcast.spark import dead_letters, deliver, match_documents, session

    spark = session()
    matched = match_documents(spark.read.parquet("documents"), "index", by="subscriber")
    deliver(matched).write.parquet("deliveries")
    dead_letters(matched).write.parquet("unreadable")

These names load on first use, so that looking for Java (`java.py`) works where Spark is not installed.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from pathcast.errors import PipelineError

if TYPE_CHECKING:
    from .delivery import dead_letters, deliver
    from .matching import match_documents
    from .sessions import session

__all__ = ["dead_letters", "deliver", "match_documents", "session"]

_FILES = {
    "dead_letters": "delivery",
    "deliver": "delivery",
    "match_documents": "matching",
    "session": "sessions",
}


def __getattr__(name: str) -> Any:
    file = _FILES.get(name)
    if file is None:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    if find_spec("pyspark") is None:
        raise PipelineError('Spark is not installed; to mend: pip install "pathcast[spark]"')
    value = getattr(import_module(f".{file}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
