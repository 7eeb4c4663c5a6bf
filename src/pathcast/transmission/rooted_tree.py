"""A rooted tree: parents and depths of the nodes. Node numbers are those of the topology.

Invariant: `order` lists the nodes level by level (breadth-first); the children of a node are in order of their numbers.
Cost: linear in the nodes.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pathcast.errors import TopologyError
from pathcast.kernels import Int32s

if TYPE_CHECKING:
    from .topology import Topology


@dataclass(frozen=True)
class RootedTree:
    """`parent` and `lane` (the lane from the parent to the node) are -1 at the root; `depth` is 0 there."""

    root: int
    order: Int32s
    parent: Int32s
    lane: Int32s
    depth: Int32s
    children: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, topology: "Topology", root: int) -> "RootedTree":
        """Walk the tree from the root; `TopologyError` if a link closes a cycle."""
        count = len(topology.nodes)
        parent, lane = np.full(count, -1, np.int32), np.full(count, -1, np.int32)
        depth = np.full(count, -1, np.int32)
        depth[root] = 0
        order, children = [root], [()] * count
        for number in order:
            others, lanes = topology.lanes_of(number)
            below = []
            for other, down in zip(others.tolist(), lanes.tolist(), strict=True):
                if other == parent[number]:
                    continue
                if depth[other] >= 0:
                    raise TopologyError(_cycle(topology, parent, number, other))
                depth[other], parent[other], lane[other] = depth[number] + 1, number, down
                below.append(other)
            children[number] = tuple(below)
            order.extend(below)
        return cls(root, np.array(order, np.int32), parent, lane, depth, tuple(children))

    def path(self, node: int) -> list[int]:
        """The nodes from the root to a node."""
        found = [node]
        while found[-1] != self.root:
            found.append(int(self.parent[found[-1]]))
        return found[::-1]


def _cycle(topology: "Topology", parent: Int32s, one: int, other: int) -> str:
    """The error message for the cycle that a link between two nodes closes."""
    left, right = [one], [other]
    while parent[left[-1]] >= 0:
        left.append(int(parent[left[-1]]))
    while right[-1] not in left:
        right.append(int(parent[right[-1]]))
    ring = right[::-1] + left[: left.index(right[-1])] + [right[-1]]
    names = [topology.nodes[number] for number in ring]
    shown = " – ".join(names if len(names) <= 8 else [*names[:4], "…", *names[-3:]])
    return f"the topology has a cycle ({shown}); use .spanning_tree() to remove cycles"
