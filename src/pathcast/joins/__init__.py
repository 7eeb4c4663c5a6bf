"""Select-join subscriptions over tables that change: each client is told only what it lacks."""

from .query.query import Selection, select
from .query.row_extraction import Extraction
from .query.schema import Schema
from .query.subscription import Subscription
from .schemes.schemes import SCHEMES
from .server.join_client import Client
from .server.join_server import JoinServer
from .server.regrouping import Regrouping

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
