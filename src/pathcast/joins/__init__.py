"""Select-join subscriptions over tables that change: each client receives only the rows that it lacks."""

from .query.join_graph_schema import Schema
from .query.join_subscription import Subscription
from .query.row_extraction import Extraction
from .query.select_join_query import Selection, select
from .schemes.scheme_registry import SCHEMES
from .server.decomposition_migration import Regrouping
from .server.join_client import Client
from .server.join_server import JoinServer

__all__ = [
    "SCHEMES",
    "Client",
    "Extraction",
    "JoinServer",
    "Regrouping",
    "Schema",
    "Selection",
    "Subscription",
    "select",
]
