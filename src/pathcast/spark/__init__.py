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
    from .delivery import dead_letters, deliver, with_source, write_once
    from .extracted import extract_rows
    from .file_source import stream_files
    from .join_contents import initial_contents
    from .join_deliveries import deliver_joins
    from .join_versions import JoinsVersion, open_joins, publish_joins
    from .joined import join_subscriptions
    from .matching import match_documents
    from .mediated import Mediating, mediate
    from .metrics import ProgressListener, StructuredFormatter, observed, progress_facts, progress_line
    from .opening import pin_version
    from .overlays import publish_overlay
    from .routed import disseminate, route_documents, visits_as_rows
    from .sessions import session
    from .structured import parse_documents
    from .subscriptions import compile_subscriptions
    from .summaries import expand, summarize
    from .telling import SubscriptionReport
    from .versions import latest, pack_index, publish

__all__ = [
    "JoinsVersion",
    "Mediating",
    "ProgressListener",
    "StructuredFormatter",
    "SubscriptionReport",
    "compile_subscriptions",
    "dead_letters",
    "deliver",
    "deliver_joins",
    "disseminate",
    "expand",
    "extract_rows",
    "initial_contents",
    "join_subscriptions",
    "latest",
    "match_documents",
    "mediate",
    "observed",
    "open_joins",
    "pack_index",
    "parse_documents",
    "pin_version",
    "progress_facts",
    "progress_line",
    "publish",
    "publish_joins",
    "publish_overlay",
    "route_documents",
    "session",
    "stream_files",
    "summarize",
    "visits_as_rows",
    "with_source",
    "write_once",
]

_FILES = {
    "Mediating": "mediated",
    "JoinsVersion": "join_versions",
    "ProgressListener": "metrics",
    "StructuredFormatter": "metrics",
    "SubscriptionReport": "telling",
    "compile_subscriptions": "subscriptions",
    "dead_letters": "delivery",
    "deliver": "delivery",
    "deliver_joins": "join_deliveries",
    "disseminate": "routed",
    "expand": "summaries",
    "extract_rows": "extracted",
    "initial_contents": "join_contents",
    "join_subscriptions": "joined",
    "latest": "versions",
    "match_documents": "matching",
    "mediate": "mediated",
    "observed": "metrics",
    "open_joins": "join_versions",
    "pack_index": "versions",
    "parse_documents": "structured",
    "pin_version": "opening",
    "progress_facts": "metrics",
    "progress_line": "metrics",
    "publish": "versions",
    "publish_joins": "join_versions",
    "publish_overlay": "overlays",
    "route_documents": "routed",
    "session": "sessions",
    "stream_files": "file_source",
    "summarize": "summaries",
    "visits_as_rows": "routed",
    "with_source": "delivery",
    "write_once": "delivery",
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
