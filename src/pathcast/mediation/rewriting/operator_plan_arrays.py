"""A plan of operators as arrays, for the kernels that rewrite element arrays.

Schema nodes are numbered in preorder. A name has a small number within the mapping (0: a name that the local schema
does not have), so that the child of a node with a name is one look-up in a table of nodes × names.

Invariant: nothing here depends on a document; tables are made once per mapping and never changed.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pathcast.documents import Names
from pathcast.kernels import Int32s

from ..mappings.operators_by_schema_node import Down, Into, NodePlan, Place, Plan, Up
from ..schemas.schema_tree import parent_of
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
    moves: bool  # whether anything moves across several levels

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
        self.attributes: list[tuple[int, int, int, int, int]] = []
        self.paths: list[tuple[int, int]] = []
        self.new_elements: dict[str, dict[tuple[str, ...], int]] = {}  # by node: the new elements of its inserts
        self.slots: dict[str, dict[str, int]] = {}  # by node: the children that others are downgraded into
        for each in plan.nodes.values():
            self._reserve(each)
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
        moves = bool(self.plan.incoming)
        if moves:  # an element and its attributes may make the new elements of any ancestor
            most += len(self.paths) + 3 * len(self.attributes)
        renames = not self.attributes and bool(self.nodes[rows.N_WHOLE, 0])
        attributes, paths = _columns(self.attributes, rows.ATTRIBUTE_ROWS), _columns(self.paths, 2)
        return Tables(small, known[tree.root.name], child, self.nodes, attributes, paths, most, renames, moves)

    def _mark_whole(self) -> None:
        """Mark each node in which nothing moves, and to which nothing is added."""
        whole = self.nodes[rows.N_WHOLE]
        for path, at in reversed(self.number.items()):  # what is below a node comes behind it
            each = self.plan.nodes[path]
            below = (self.number[f"{path}/{child.name}"] for child in self.plan.tree[path].children)
            whole[at] = (
                each.is_plain
                and not each.elements
                and not each.moved
                and self.nodes[rows.N_SLOT, at] == NONE
                and all(whole[k] for k in below)
            )
        self.nodes[rows.N_STAYS] = whole & (self.nodes[rows.N_PLACE] == rows.STAY)

    def _enter(self, each: NodePlan) -> None:
        at, nodes, names = self.number[each.path], self.nodes, self.names
        nodes[rows.N_NAME, at] = names.add(each.name)
        nodes[rows.N_ATTRIBUTES, at] = len(self.attributes)
        for attribute, name in each.attributes.items():
            self.attributes.append((names.add(attribute), names.add(name), rows.RENAMED, 0, NONE))
        for attribute, name in each.elements:
            self.attributes.append((names.add(attribute), names.add(name), rows.FIRST_CHILD, 0, NONE))
        for attribute, name, place in each.moved:
            kind, where = self._place(place, each.path)
            moved = rows.MOVED_INTO if kind == rows.INTO else rows.MOVED_DOWN
            self.attributes.append((names.add(attribute), names.add(name), moved, place.up, where))
        if each.exchange is not None:
            nodes[rows.N_TAKER, at] = self.number[f"{each.path}/{each.exchange}"]
        self._enter_children(each, at)

    def _reserve(self, each: NodePlan) -> None:
        """Number the new elements and the slots of a node, for its children and for what comes from further down."""
        at, own = self.number[each.path], (*each.places.values(), each.elsewhere)
        places = (*(place for place in own if not getattr(place, "up", 0)), *self.plan.incoming.get(each.path, ()))
        self.nodes[rows.N_PATHS, at] = len(self.paths)
        made = self.new_elements[each.path] = {}
        for place in places:
            if isinstance(place, Into) and place.path:
                self._new_element(place.path, made)
        targets = dict.fromkeys(place.into for place in places if isinstance(place, Down))
        self.slots[each.path] = {name: slot for slot, name in enumerate(targets)}
        self.nodes[rows.N_SLOTS, at] = len(targets)

    def _enter_children(self, each: NodePlan, at: int) -> None:
        nodes, children = self.nodes, self.plan.children[each.path]
        for name, path in children.items():
            child, place = self.number[path], each.place(name)
            nodes[rows.N_PARENT, child] = at
            nodes[rows.N_PLACE, child], nodes[rows.N_WHERE, child] = self._place(place, each.path)
            nodes[rows.N_UP, child] = place.up if isinstance(place, Into | Down) else 0
            nodes[rows.N_SLOT, child] = self.slots[each.path].get(name, NONE)
        places = (each.elsewhere, *each.places.values())
        nodes[rows.N_UPS, at] = any(isinstance(place, Up) for place in places)
        nodes[rows.N_OTHERS, at], nodes[rows.N_OTHERS_WHERE, at] = self._place(each.elsewhere, each.path)

    def _place(self, place: Place | None, path: str) -> tuple[int, int]:
        if isinstance(place, Into | Down):
            for _ in range(place.up):
                path = parent_of(path)
        match place:
            case Into(steps):
                return rows.INTO, self.new_elements[path][steps] if steps else NONE
            case Up():
                return rows.UP, NONE
            case Down(into):
                return rows.DOWN, self.slots[path][into]
        return rows.STAY, NONE

    def _new_element(self, path: tuple[str, ...], made: dict[tuple[str, ...], int]) -> int:
        """The place of the last element of an inserted path within its node's part of `paths`."""
        found = made.get(path)
        if found is None:
            above = self._new_element(path[:-1], made) if len(path) > 1 else NONE
            found = made[path] = len(made)
            self.paths.append((self.names.add(path[-1]), above))
        return found


def _columns(values: Sequence[tuple[int, ...]], rows: int) -> Int32s:
    """Tuples as columns."""
    return np.ascontiguousarray(np.array(values, dtype=np.int32).reshape(len(values), rows).T)
