"""Routing: an overlay of routers that reuse each other's work. See README.md beside this file."""

from .advertising.aggregation import Aggregation, aggregate
from .overlay import Overlay, streaming_engines
from .policy import Policy
from .routing_report import Delivery, Report, RouterReport

__all__ = [
    "Aggregation",
    "Delivery",
    "Overlay",
    "Policy",
    "Report",
    "RouterReport",
    "aggregate",
    "streaming_engines",
]
