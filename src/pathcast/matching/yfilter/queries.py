"""Queries: tree patterns decomposed into paths for the shared automaton, and what is left to do when those match.

YFilter (Diao et al., "Path sharing and predicate evaluation", TODS 2003): a query with predicates is its path, which
the automaton matches, and selections that are postponed until then; a query with nested paths is one path for each of
its leaves, and a join of their matches on the elements that they share.

    /a[@x = 1]//b          one path, selections on its first step
    /a[@x = 1][c/d]//b     paths /a/c/d and /a//b, joined on a, with the selection there

Paths are entered as they are written, `//*` included (the table's normal form would bind other elements). Left to the
verifier of the default engine: `or`, `not`, absolute paths in predicates, tests on the first node of a path, and
patterns that begin with an attribute or text. Such a pattern waits behind the longest path that it demands
(`gates.py` of the automaton).
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from ...patterns.linear import PathEncoder, Steps
from ...patterns.model import Node, Pattern
from ..automaton.gates import gate
from ..selections import Selections, branches, is_conjunctive, is_selection
from .run_kernels import GATE, JOIN, SELECT

# (axis, symbol, selections begin, end, late); nodes of joins in addition (parent, path).
_STEP_COLUMNS, _NODE_COLUMNS = 5, 7


class Queries:
    """Patterns that are no plain paths, growing: their paths and tasks, and the tables that the tasks refer to.

    Without `joins`, patterns with nested paths are delegated, too.
    """

    def __init__(self, encoder: PathEncoder, *, joins: bool = True) -> None:
        self.encoder = encoder
        self.joins = joins
        self.selections = Selections(encoder.names)
        self.paths: list[Steps] = []  # each with its task
        self.tasks: list[tuple[int, int]] = []
        self.delegated: list[int] = []
        self._selects: list[int] = []
        self._steps: list[tuple[int, ...]] = []
        self._query_begin: list[int] = [0]
        self._query_entry: list[int] = []
        self._nodes: list[tuple[int, ...]] = []
        self._join_begin: list[int] = [0]
        self._join_entry: list[int] = []
        self._join_paths: list[int] = []
        self._join_late: list[bool] = []
        self._path_join: list[int] = []

    def add(self, entry: int, pattern: Pattern) -> None:
        """Take up a pattern."""
        chain = _chain(pattern.root) if pattern.root is not None and is_conjunctive(pattern) else []
        if chain:
            self._add_query(entry, chain)
        elif chain is None and self.joins:
            assert pattern.root is not None
            self._add_join(entry, pattern.root)
        else:
            self._enter(gate(pattern, self.encoder), GATE, len(self.delegated))
            self.delegated.append(entry)

    def _enter(self, steps: Steps, kind: int, number: int) -> None:
        self.paths.append(steps)
        self.tasks.append((kind, number))

    def _add_query(self, entry: int, chain: list[Node]) -> None:
        self._enter(tuple(map(self.encoder.step, chain)), SELECT, len(self._query_entry))
        self._steps.extend(map(self._row, chain))
        self._query_begin.append(len(self._steps))
        self._query_entry.append(entry)

    def _add_join(self, entry: int, root: Node) -> None:
        before = len(self._path_join)
        self._join_late.append(False)
        first = len(self._nodes)
        self._add_node(root, (), -1, first)
        self._join_begin.append(len(self._nodes))
        self._join_entry.append(entry)
        self._join_paths.append(len(self._path_join) - before)

    def _add_node(self, node: Node, above: Steps, parent: int, first: int) -> None:
        """Enter a node and those below, parents first; numbers of nodes count from the pattern's `first`."""
        steps = (*above, self.encoder.step(node))
        below = branches(node)
        path = -1
        if not below:
            path = len(self._path_join)
            self._path_join.append(len(self._join_entry))
            self._enter(steps, JOIN, path)
        row = self._row(node)
        self._join_late[-1] |= bool(row[-1])
        number = len(self._nodes) - first
        self._nodes.append((*row, parent, path))
        for child in below:
            self._add_node(child, steps, number, first)

    def _row(self, node: Node) -> tuple[int, ...]:
        begin = len(self._selects)
        self._selects.extend(self.selections.number(part) for part in node.conditions if is_selection(part))
        late = any(map(self.selections.is_late, self._selects[begin:]))
        step = self.encoder.step(node)
        return step & 1, step >> 1, begin, len(self._selects), int(late)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The tables for the kernel."""

        def int32s(values: list[int]) -> npt.NDArray[np.int32]:
            return np.array(values, dtype=np.int32)

        return self.selections.arrays() | {
            "selects": int32s(self._selects),
            "steps": np.array(self._steps, dtype=np.int32).reshape(-1, _STEP_COLUMNS),
            "query_begin": int32s(self._query_begin),
            "query_entry": int32s(self._query_entry),
            "nodes": np.array(self._nodes, dtype=np.int32).reshape(-1, _NODE_COLUMNS),
            "join_begin": int32s(self._join_begin),
            "join_entry": int32s(self._join_entry),
            "join_paths": int32s(self._join_paths),
            "join_late": np.array(self._join_late, dtype=np.bool_),
            "path_join": int32s(self._path_join),
            "delegated": int32s(self.delegated),
        }


def _chain(root: Node) -> list[Node] | None:
    """The nodes of a pattern that is one path with selections; None when it branches."""
    chain = [root]
    while below := branches(chain[-1]):
        if len(below) > 1:
            return None
        chain.append(below[0])
    return chain
