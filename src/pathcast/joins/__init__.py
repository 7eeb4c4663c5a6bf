"""Select-join subscriptions over tables that change: each client is told only what it lacks."""

from .client import Client
from .extraction import Extraction
from .query import Selection, select
from .regrouping import Regrouping
from .schema import Schema
from .schemes import SCHEMES
from .server import JoinServer
from .subscription import Subscription

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
