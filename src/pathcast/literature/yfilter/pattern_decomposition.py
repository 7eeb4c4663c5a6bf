"""Queries: tree patterns decomposed into paths for the shared automaton, and the work left when those match.

YFilter (Diao et al., "Path sharing and predicate evaluation", TODS 2003): a query with predicates is its path, which
the automaton matches, and selections that are postponed until then; a query with nested paths is one path for each of
its leaves, and a join of their matches on the elements that they share.

    /a[@x = 1]//b          one path, selections on its first step
    /a[@x = 1][c/d]//b     paths /a/c/d and /a//b, joined on a, with the selection there

Paths are entered as they are written, `//*` included (the table's normal form would bind other elements). Left to the
verifier of the default engine: `or`, `not`, absolute paths in predicates, tests on the first node of a path, patterns
that begin with an attribute or text, and steps with more than 62 nested paths. Such a pattern waits behind the longest
path that it demands (`required_path_gate.py` of the automaton).
"""

import numpy as np

from pathcast.kernels import AnyArray, Int32s
from pathcast.matching.automaton.values import gate
from pathcast.patterns import Node, Pattern
from pathcast.patterns.parsing import PathEncoder, Steps

from ..streaming.pattern_binding_buffers import MOST_PARTS
from ..streaming.value_tests import Selections, branches, is_conjunctive, is_selection
from .document_matching_kernels import GATE, JOIN, SELECT
from .nested_path_join_kernels import N_COLUMNS
from .postponed_selection_kernels import T_COLUMNS


class Queries:
    """The growing set of patterns that are not plain paths: their paths and tasks, and the tables of these tasks.

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
        self._join_entry: list[int] = []
        self._join_late: list[bool] = []

    def add(self, entry: int, pattern: Pattern) -> None:
        """Add a pattern."""
        chain = _chain(pattern.root) if pattern.root is not None and is_conjunctive(pattern) else []
        if chain:
            self._add_query(entry, chain)
        elif chain is None and self.joins and pattern.root is not None and _most_parts(pattern.root) <= MOST_PARTS:
            self._join_late.append(False)
            self._add_node(pattern.root, (), -1, 0)
            self._join_entry.append(entry)
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

    def _add_node(self, node: Node, above: Steps, parent: int, part: int) -> None:
        """Add a node of a join, which is this part of its parent, and the nodes below it."""
        steps = (*above, self.encoder.step(node))
        below = branches(node)
        number = len(self._nodes)
        if not below:
            self._enter(steps, JOIN, number)
        row = self._row(node)
        self._join_late[-1] |= bool(row[-1])
        self._nodes.append((*row, parent, part, len(below), len(self._join_entry)))
        for place, child in enumerate(below):
            self._add_node(child, steps, number, place)

    def _row(self, node: Node) -> tuple[int, ...]:
        begin = len(self._selects)
        self._selects.extend(self.selections.number(part) for part in node.conditions if is_selection(part))
        late = any(map(self.selections.is_late, self._selects[begin:]))
        step = self.encoder.step(node)
        return step & 1, step >> 1, begin, len(self._selects), int(late)

    def arrays(self) -> dict[str, AnyArray]:
        """The tables for the kernel."""

        def int32s(values: list[int]) -> Int32s:
            return np.array(values, dtype=np.int32)

        return self.selections.arrays() | {
            "selects": int32s(self._selects),
            "steps": np.array(self._steps, dtype=np.int32).reshape(-1, T_COLUMNS),
            "query_begin": int32s(self._query_begin),
            "query_entry": int32s(self._query_entry),
            "nodes": np.array(self._nodes, dtype=np.int32).reshape(-1, N_COLUMNS),
            "join_entry": int32s(self._join_entry),
            "join_late": np.array(self._join_late, dtype=np.bool_),
            "delegated": int32s(self.delegated),
        }


def _most_parts(root: Node) -> int:
    """The greatest number of nested paths of a step."""
    nodes, most = [root], 0
    for node in nodes:  # grows during the loop
        below = branches(node)
        nodes += below
        most = max(most, len(below))
    return most


def _chain(root: Node) -> list[Node] | None:
    """The nodes of a pattern that is one path with selections; None if it branches."""
    chain = [root]
    while below := branches(chain[-1]):
        if len(below) > 1:
            return None
        chain.append(below[0])
    return chain
