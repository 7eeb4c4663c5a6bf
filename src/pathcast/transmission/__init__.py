"""Transmission: topologies, links, and what it costs to send bytes over them. See README.md beside this file."""

from .networkx_graphs import to_graph
from .queue_simulation import Handled, Send, Simulation, Work
from .rooted_tree import Rooted
from .shortest_paths import ShortestPaths
from .topology import Link, Topology
from .topology_picture import draw
from .traffic_ledger import Carried, Ledger
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
