"""Transmission: topologies, links, and what it costs to send bytes over them. See README.md beside this file."""

from .drawing import draw
from .graphs import to_graph
from .ledger import Carried, Ledger
from .paths import ShortestPaths
from .rooted import Rooted
from .simulation import Handled, Send, Simulation, Work
from .topology import Link, Topology
from .underlay import Underlay
from .units import bandwidth, latency, shown_bandwidth, shown_bytes, shown_seconds

__all__ = [
    "Carried",
    "Handled",
    "Ledger",
    "Link",
    "Rooted",
    "Send",
    "ShortestPaths",
    "Simulation",
    "Topology",
    "Underlay",
    "Work",
    "bandwidth",
    "draw",
    "latency",
    "shown_bandwidth",
    "shown_bytes",
    "shown_seconds",
    "to_graph",
]
