"""A plan of operators as arrays, for the kernels that rewrite element arrays.

Schema nodes are numbered in preorder. A name has a small number within the mapping (0: a name that the local schema
does not have), so that the child of a node with a name is one look-up in a table of nodes × names.

Invariant: nothing here depends on a document; tables are made once per mapping and never changed.
"""

from dataclasses import dataclass

import numpy as np

from pathcast.documents import Names
from pathcast.kernels import Int32s

from ..mappings.operators_by_schema_node import Down, Into, NodePlan, Place, Plan, Up
from . import rewriting_table_layout_kernels as rows
from .rewriting_table_layout_kernels import NONE, RewritingPlan
from .schema_node_lookup_kernels import SchemaNodes


@dataclass(frozen=True, slots=True)
class Tables:
    """A plan as arrays; `rewriting_table_layout_kernels.py` names the rows of `nodes`."""

    small: Int32s  # by a name's id: its number in this mapping
    root: int  # that of the root's name
    child: Int32s  # by node and small number: the child's node, or NONE
    nodes: Int32s
    attributes: Int32s  # three rows: a name, its name afterwards, whether it becomes an element
    paths: Int32s  # two rows, for the new elements of inserts: a name, the one above it in its node's part, or NONE
    most: int  # a bound for the things that one element makes
    renames: bool  # whether elements are only renamed

    @property
    def plan(self) -> RewritingPlan:
        """The operators of nodes and attributes, as arrays for kernels."""
        return RewritingPlan(self.nodes, self.attributes, self.paths)

    def schema(self, known: int) -> SchemaNodes:
        """The local schema as arguments of kernels, for a table of this many names."""
        return SchemaNodes(self.small[:known], self.root, self.child)


def tables_of(plan: Plan, names: Names) -> Tables:
    """The tables of a plan; names that it needs are added to `names`."""
    return _Making(plan, names).made()


class _Making:
    def __init__(self, plan: Plan, names: Names) -> None:
        self.plan, self.names = plan, names
        self.number = {path: at for at, path in enumerate(plan.nodes)}
        self.nodes = np.full((rows.NODE_ROWS, len(self.number) + 1), NONE, dtype=np.int32)
        self.attributes: list[tuple[int, int, int]] = []
        self.paths: list[tuple[int, int]] = []
        for each in plan.nodes.values():
            self._enter(each)
        self.nodes[rows.N_ATTRIBUTES, -1], self.nodes[rows.N_PATHS, -1] = len(self.attributes), len(self.paths)

    def made(self) -> Tables:
        tree = self.plan.tree
        known = {name: at for at, name in enumerate(dict.fromkeys(node.name for node in tree.paths.values()), 1)}
        child = np.full((len(self.number), len(known) + 1), NONE, dtype=np.int32)
        for path, node in tree.paths.items():
            for below in node.children:
                child[self.number[path], known[below.name]] = self.number[f"{path}/{below.name}"]
        ids = [self.names.add(name) for name in known]
        for node in tree.paths.values():  # so that names of documents need not be looked up one by one
            for attribute in node.attributes:
                self.names.add(attribute)
        small = np.zeros(len(self.names), dtype=np.int32)
        small[ids] = list(known.values())
        self._mark_whole()
        spans = np.diff(self.nodes[[rows.N_ATTRIBUTES, rows.N_PATHS]], axis=1).max(axis=1).sum()
        most = 8 + int(spans) + int(self.nodes[rows.N_SLOTS].max())
        renames = not self.attributes and bool(self.nodes[rows.N_WHOLE, 0])
        attributes, paths = _columns(self.attributes, 3), _columns(self.paths, 2)
        return Tables(small, known[tree.root.name], child, self.nodes, attributes, paths, most, renames)

    def _mark_whole(self) -> None:
        """Mark each node in which nothing moves, and to which nothing is added."""
        whole = self.nodes[rows.N_WHOLE]
        for path, at in reversed(self.number.items()):  # what is below a node comes behind it
            each = self.plan.nodes[path]
            below = (self.number[f"{path}/{child.name}"] for child in self.plan.tree[path].children)
            whole[at] = (
                each.is_plain
                and not each.elements
                and self.nodes[rows.N_SLOT, at] == NONE
                and all(whole[k] for k in below)
            )
        self.nodes[rows.N_STAYS] = whole & (self.nodes[rows.N_PLACE] == rows.STAY)

    def _enter(self, each: NodePlan) -> None:
        at, nodes, names = self.number[each.path], self.nodes, self.names
        nodes[rows.N_NAME, at] = names.add(each.name)
        nodes[rows.N_ATTRIBUTES, at] = len(self.attributes)
        for attribute, name in each.attributes.items():
            self.attributes.append((names.add(attribute), names.add(name), 0))
        for attribute, name in each.elements:
            self.attributes.append((names.add(attribute), names.add(name), 1))
        if each.exchange is not None:
            nodes[rows.N_TAKER, at] = self.number[f"{each.path}/{each.exchange}"]
        self._enter_children(each, at)

    def _enter_children(self, each: NodePlan, at: int) -> None:
        nodes, children = self.nodes, self.plan.children[each.path]
        nodes[rows.N_PATHS, at] = len(self.paths)
        made: dict[tuple[str, ...], int] = {}
        targets = dict.fromkeys(place.into for place in each.places.values() if isinstance(place, Down))
        slots = {name: slot for slot, name in enumerate(targets)}
        nodes[rows.N_SLOTS, at] = len(slots)
        for name, path in children.items():
            child = self.number[path]
            nodes[rows.N_PARENT, child] = at
            nodes[rows.N_PLACE, child], nodes[rows.N_WHERE, child] = self._place(each.place(name), made, slots)
            nodes[rows.N_SLOT, child] = slots.get(name, NONE)
        places = (each.elsewhere, *each.places.values())
        nodes[rows.N_UPS, at] = any(isinstance(place, Up) for place in places)
        nodes[rows.N_OTHERS, at], nodes[rows.N_OTHERS_WHERE, at] = self._place(each.elsewhere, made, slots)

    def _place(self, place: Place | None, made: dict[tuple[str, ...], int], slots: dict[str, int]) -> tuple[int, int]:
        match place:
            case Into(path):
                return rows.INTO, self._new_element(path, made)
            case Up():
                return rows.UP, NONE
            case Down(into):
                return rows.DOWN, slots[into]
        return rows.STAY, NONE

    def _new_element(self, path: tuple[str, ...], made: dict[tuple[str, ...], int]) -> int:
        """The place of the last element of an inserted path within its node's part of `paths`."""
        found = made.get(path)
        if found is None:
            above = self._new_element(path[:-1], made) if len(path) > 1 else NONE
            found = made[path] = len(made)
            self.paths.append((self.names.add(path[-1]), above))
        return found


def _columns(values: list[tuple[int, ...]] | list[tuple[int, int]] | list[tuple[int, int, int]], rows: int) -> Int32s:
    """Tuples as columns."""
    return np.ascontiguousarray(np.array(values, dtype=np.int32).reshape(len(values), rows).T)
