"""Topologies from networkx graphs and back. The graph may be any undirected networkx graph, or a directed graph with
every edge both ways; of parallel edges the last counts.

A node's name is `str` of its networkx node; the names must be distinct. Edges may have attributes `bandwidth` and
`latency`, in any form that bandwidth_units.py reads; nodes may have a position `pos`.
"""

from typing import Any

import numpy as np

from pathcast.errors import TopologyError
from pathcast.extras import extra

from . import bandwidth_units as units
from .topology import Topology


def from_graph(graph: Any, bandwidth: Any, latency: Any, root: Any) -> Topology:
    """A topology with nodes and edges in the graph's order; `root` is one of its nodes, by default the first."""
    try:
        nodes, edges = list(graph.nodes), list(graph.edges(data=True))
    except AttributeError as error:
        raise TopologyError(f"graph must be a networkx graph such as nx.Graph(), got {type(graph).__name__}") from error
    numbers = {node: number for number, node in enumerate(nodes)}
    links: dict[tuple[int, int], tuple[float, float]] = {}
    for a, b, data in edges:
        one, other = numbers[a], numbers[b]
        pair = (one, other) if not graph.is_directed() or (other, one) not in links else (other, one)
        try:
            speed = (
                units.bandwidth(data.get("bandwidth", bandwidth)),
                units.latency(data.get("latency", latency)),
            )
        except TopologyError as error:
            raise TopologyError(f"invalid edge {a} – {b}: {error.reason}") from error
        links[pair] = speed
    if root is not None and root not in numbers:
        some = ", ".join(map(repr, nodes[:5])) + ", …" * (len(nodes) > 5) or "none"
        raise TopologyError(f"root {root!r} is not a node of the graph; choose one of {some}")
    speeds = np.array(list(links.values()), np.float64).reshape(-1, 2)
    places = _places(graph, nodes)
    return Topology(
        map(str, nodes),
        np.array(list(links), np.int32).reshape(-1, 2),
        bandwidth=speeds[:, 0],
        latency=speeds[:, 1],
        root=None if root is None else numbers[root],
        places=places,
    )


def to_graph(topology: Topology) -> Any:
    """The topology as a networkx graph; edges have `bandwidth` in bytes per second and `latency` in seconds."""
    with extra("routing"):
        import networkx as nx

    graph = nx.Graph(root=topology.root)
    graph.add_nodes_from(topology.nodes)
    if topology.places is not None:
        for name, place in zip(topology.nodes, topology.places.tolist(), strict=True):
            graph.nodes[name]["pos"] = tuple(place)
    for number, (a, b) in enumerate(topology.ends.tolist()):
        graph.add_edge(
            topology.nodes[a],
            topology.nodes[b],
            bandwidth=float(topology.bandwidth[number]),
            latency=float(topology.latency[number]),
        )
    return graph


def _places(graph: Any, nodes: list[Any]) -> Any:
    """The positions of the nodes, if all have two coordinates."""
    found = [graph.nodes[node].get("pos") for node in nodes]
    if not found or any(place is None or len(place) != 2 for place in found):
        return None
    return np.array(found, np.float64)
