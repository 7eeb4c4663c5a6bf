"""Routing: an overlay of routers that reuse each other's work. See README.md beside this file."""

from .overlay import Overlay, streaming_engines
from .policy import Policy
from .report import Delivery, Report, RouterReport

__all__ = ["Delivery", "Overlay", "Policy", "Report", "RouterReport", "streaming_engines"]
