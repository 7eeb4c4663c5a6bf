"""Spark: the same matching as DataFrame → DataFrame functions, on batches and streams.

    from pathcast.spark import dead_letters, deliver, match_documents, session

    spark = session()
    matched = match_documents(spark.read.parquet("documents"), "index", by="subscriber")
    deliver(matched).write.parquet("deliveries")
    dead_letters(matched).write.parquet("unreadable")

These names load on first use, so that `java_installation.py` works without Spark.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pathcast.extras import extra

if TYPE_CHECKING:
    from .files.file_source import stream_files
    from .joins.extract_rows import extract_rows
    from .joins.join_message_delivery import deliver_joins
    from .joins.join_version_folder import JoinsVersion, open_joins, publish_joins
    from .joins.new_subscriber_contents import initial_contents
    from .joins.standing_join_stream import join_subscriptions
    from .matching.deliveries_and_dead_letters import dead_letters, deliver, with_source, write_once
    from .matching.match_documents import match_documents
    from .matching.mediate_documents import Mediating, mediate
    from .matching.parse_documents import parse_documents
    from .matching.roxsum_messages import expand, summarize
    from .matching.split_documents import split_documents
    from .matching.stream_metrics import ProgressListener, StructuredFormatter, observed, progress_facts, progress_line
    from .matching.worker_index import PublishedIndex, pin_version
    from .overlay.published_overlays import publish_overlay
    from .overlay.route_documents import disseminate, route_documents, visits_as_rows
    from .pipeline.delta_tables import write_delta_once
    from .publishing.compile_subscriptions import compile_subscriptions
    from .publishing.index_versions import latest, pack_index, publish
    from .publishing.subscription_report import SubscriptionReport
    from .sessions.spark_session import session

__all__ = [
    "JoinsVersion",
    "Mediating",
    "ProgressListener",
    "PublishedIndex",
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
    "split_documents",
    "stream_files",
    "summarize",
    "visits_as_rows",
    "with_source",
    "write_delta_once",
    "write_once",
]

_FILES = {
    "Mediating": "matching.mediate_documents",
    "JoinsVersion": "joins.join_version_folder",
    "ProgressListener": "matching.stream_metrics",
    "PublishedIndex": "matching.worker_index",
    "StructuredFormatter": "matching.stream_metrics",
    "SubscriptionReport": "publishing.subscription_report",
    "compile_subscriptions": "publishing.compile_subscriptions",
    "dead_letters": "matching.deliveries_and_dead_letters",
    "deliver": "matching.deliveries_and_dead_letters",
    "deliver_joins": "joins.join_message_delivery",
    "disseminate": "overlay.route_documents",
    "expand": "matching.roxsum_messages",
    "extract_rows": "joins.extract_rows",
    "initial_contents": "joins.new_subscriber_contents",
    "join_subscriptions": "joins.standing_join_stream",
    "latest": "publishing.index_versions",
    "match_documents": "matching.match_documents",
    "mediate": "matching.mediate_documents",
    "observed": "matching.stream_metrics",
    "open_joins": "joins.join_version_folder",
    "pack_index": "publishing.index_versions",
    "parse_documents": "matching.parse_documents",
    "pin_version": "matching.worker_index",
    "progress_facts": "matching.stream_metrics",
    "progress_line": "matching.stream_metrics",
    "publish": "publishing.index_versions",
    "publish_joins": "joins.join_version_folder",
    "publish_overlay": "overlay.published_overlays",
    "route_documents": "overlay.route_documents",
    "session": "sessions.spark_session",
    "split_documents": "matching.split_documents",
    "stream_files": "files.file_source",
    "summarize": "matching.roxsum_messages",
    "visits_as_rows": "overlay.route_documents",
    "with_source": "matching.deliveries_and_dead_letters",
    "write_delta_once": "pipeline.delta_tables",
    "write_once": "matching.deliveries_and_dead_letters",
}


def __getattr__(name: str) -> Any:
    file = _FILES.get(name)
    if file is None:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    with extra("spark"):
        value = getattr(import_module(f".{file}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
