"""Shapes of topologies as names and ends of links; random shapes are determined by their seed.

`internet` grows a graph like the internet's router graph: a new node joins one to three others, with a preference for
nodes with many links and for near nodes on a plane (the generator INET, which papers/002 §6 uses, produces such degrees
and positions). About a third of the nodes have one link, and degrees follow a power law.

Cost: `internet` and `random` take a step per link; 20,000 nodes take a fraction of a second.
"""

import math
from typing import Any

import numpy as np

from pathcast.errors import TopologyError
from pathcast.kernels import Floats, Int32s

Names = list[str]
Ends = Int32s
LARGEST = 10_000_000


def _names(count: int) -> Names:
    return [f"r{number}" for number in range(1, count + 1)]


def _count(what: str, value: Any, least: int = 1) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise TopologyError(f"{what} must be a whole number of at least {least}, got {value!r}")
    if value > LARGEST:
        raise TopologyError(f"{what} must be at most {LARGEST:,}, got {value:,}")
    return int(value)


def tree(levels: int, fanout: int) -> tuple[Names, Ends]:
    """A complete tree; the parent of node i is (i - 1) // fanout."""
    levels, fanout = _count("levels", levels), _count("fanout", fanout)
    count = levels if fanout == 1 else sum(fanout**level for level in range(min(levels, 64)))
    count = _count(f"the number of nodes of {levels} levels with fanout {fanout}", count)
    below = np.arange(1, count, dtype=np.int32)
    return _names(count), np.stack([(below - 1) // fanout, below], axis=1)


def chain(nodes: int) -> tuple[Names, Ends]:
    """Each node is linked to the next."""
    below = np.arange(1, _count("nodes", nodes), dtype=np.int32)
    return _names(nodes), np.stack([below - 1, below], axis=1)


def star(nodes: int) -> tuple[Names, Ends]:
    """All other nodes are linked to the first."""
    below = np.arange(1, _count("nodes", nodes), dtype=np.int32)
    return _names(nodes), np.stack([np.zeros_like(below), below], axis=1)


def random(nodes: int, degree: float, seed: int) -> tuple[Names, Ends]:
    """A random tree, which connects all nodes, and links between random pairs until the average degree is reached."""
    nodes = _count("nodes", nodes)
    most = nodes * (nodes - 1) // 2
    wanted = round(nodes * degree / 2) if math.isfinite(degree) else -1
    if not 0 <= wanted <= most:
        raise TopologyError(f"degree must be from 0 to {nodes - 1:,} for {nodes:,} nodes, got {degree!r}")
    draw = np.random.default_rng(seed)
    order = draw.permutation(nodes)
    found = {_pair(order[at], order[draw.integers(at)]): None for at in range(1, nodes)}
    if wanted > most // 2:
        rest = [pair for pair in ((a, b) for a in range(nodes) for b in range(a + 1, nodes)) if pair not in found]
        chosen = draw.permutation(len(rest))[: max(0, wanted - len(found))]
        found |= dict.fromkeys(rest[at] for at in chosen)
    while len(found) < wanted:
        a, b = draw.integers(nodes, size=2)
        if a != b:
            found[_pair(a, b)] = None
    return _names(nodes), np.array(sorted(found), np.int32).reshape(-1, 2)


def internet(nodes: int, seed: int, tries: int = 4) -> tuple[Names, Ends, Floats]:
    """Names, ends and positions: each new node samples `tries` nodes per link, by degree, and links to the nearest."""
    nodes = _count("nodes", nodes)
    draw = np.random.default_rng(seed)
    places = draw.random((nodes, 2))
    wanted = draw.choice([1, 2, 3], size=nodes, p=[0.35, 0.45, 0.2])
    stubs = np.zeros(6 * nodes + 2, np.int32)  # each node once per link end, so that a draw is by degree
    filled = 1
    found: list[tuple[int, int]] = []
    x, y = places[:, 0].tolist(), places[:, 1].tolist()
    chances = draw.random((nodes, 3 * tries))
    for new in range(1, nodes):
        joined: set[int] = set()
        for link in range(wanted[new]):
            at = (chances[new, link * tries : (link + 1) * tries] * filled).astype(np.int64)
            seen = set(stubs[at].tolist()) - joined
            if seen:
                near = min(seen, key=lambda old: ((x[old] - x[new]) ** 2 + (y[old] - y[new]) ** 2, old))
                joined.add(near)
        for old in sorted(joined):
            found.append((old, new))
            stubs[filled : filled + 2] = old, new
            filled += 2
    return _names(nodes), np.array(found, np.int32).reshape(-1, 2), places


def distances(places: Floats, ends: Ends) -> Floats:
    """The length of each link, relative to the diagonal of the plane."""
    apart = places[ends[:, 0]] - places[ends[:, 1]]
    return np.hypot(apart[:, 0], apart[:, 1]) / math.sqrt(2.0)


def _pair(a: int, b: int) -> tuple[int, int]:
    return (int(a), int(b)) if a < b else (int(b), int(a))
