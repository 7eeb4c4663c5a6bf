"""Pathcast: deliver each document to the subscribers whose standing XPath queries it matches.

    import pathcast

    subscriptions = pathcast.Subscriptions()
    subscriptions.add("/news/head/title", subscriber="ada")
    matcher = subscriptions.compile()
    matcher.match(b"<news><head><title>Rain</title></head></news>").subscribers      # ['ada']

Everything here loads on first use, so `import pathcast` is fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pathcast.errors import (
    ChangeError,
    DocumentError,
    LimitError,
    MappingError,
    MessageError,
    PathcastError,
    PatternError,
    PipelineError,
    QueryError,
    SchemaError,
    SnapshotError,
    TopologyError,
)

if TYPE_CHECKING:
    from pathcast.client import connect
    from pathcast.documents import Document, Limits, split_documents
    from pathcast.matching import Matcher, Matches, Subscription, Subscriptions, open_index

    from . import client, joins, mediation, messages, network, routing, roxsum, transmission

__version__ = "0.1.0"

__all__ = [
    "ChangeError",
    "Document",
    "DocumentError",
    "LimitError",
    "Limits",
    "MappingError",
    "Matcher",
    "Matches",
    "MessageError",
    "PathcastError",
    "PatternError",
    "PipelineError",
    "QueryError",
    "SchemaError",
    "SnapshotError",
    "Subscription",
    "Subscriptions",
    "TopologyError",
    "client",
    "connect",
    "joins",
    "mediation",
    "messages",
    "network",
    "open_index",
    "routing",
    "roxsum",
    "split_documents",
    "transmission",
]

_ROOMS = {
    "connect": "client",
    "Document": "documents",
    "Limits": "documents",
    "split_documents": "documents",
    "Matcher": "matching",
    "Matches": "matching",
    "Subscription": "matching",
    "Subscriptions": "matching",
    "open_index": "matching",
}


# Packages that are used under their own name, as in `pathcast.roxsum.RoXSum`. Several names per line.
_OPEN_ROOMS = frozenset(
    {
        "broker", "client", "documents", "joins", "literature", "log", "matching", "mediation", "messages",
        "network", "patterns", "routing", "roxsum", "spark", "store", "transmission", "workloads",
    }
)  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _OPEN_ROOMS:
        return import_module(f".{name}", __name__)
    room = _ROOMS.get(name)
    if room is None:
        raise AttributeError(f"module 'pathcast' has no attribute '{name}'")
    value = getattr(import_module(f".{room}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
