"""Node sets: the nodes of a document at which each condition of a pattern holds, computed for all nodes at once.

A pattern node is satisfied by a set of document nodes, those with its name at which all its conditions hold; it holds
in the contexts from which its axis reaches one of them. Sets are computed once, from the ends of the pattern upwards,
and cached: as indices, or as bits where that is smaller.

Invariant: agrees with `reference.embedding` (property test). Loops follow paths; recursion is no deeper than predicates
nest, and never descends the document.
Cost: O(|pattern| · |document|) time; caches at most one bit per pattern node and document node.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pathcast.kernels import Int32s, Int64s, UInt8s
from pathcast.patterns import AllOf, AnyOf, Compare, Condition, First, Node, Not, Root, StringTest

from .document_node_sets import NOTHING, Contexts, DocumentNodes, Kind, Mask, NodeSet, kind_of
from .node_value_tests import Values


class Step(NamedTuple):
    """A step of a path: a pattern node, and those of its conditions that do not continue the path."""

    node: Node
    predicates: tuple[Condition, ...]


def path_of(node: Node) -> list[Step]:
    """The path that begins with a node, as printed: the tallest branch continues it, the others are predicates."""
    steps = []
    current: Node | None = node
    while current is not None:
        follow = _continuation(current)
        steps.append(Step(current, tuple(part for part in current.conditions if part is not follow)))
        current = follow
    return steps


def _continuation(node: Node) -> Node | None:
    plain = [part for part in node.conditions if isinstance(part, Node) and (part.is_element or not part.conditions)]
    return max(plain, key=_height) if len(plain) > 1 else plain[0] if plain else None


def _height(node: Node) -> int:
    return 1 + max((_height(part) for part in node.conditions if isinstance(part, Node)), default=0)


@dataclass(frozen=True, slots=True)
class _Kept:
    """A set of nodes in compact form."""

    kind: Kind
    at: Int32s | None
    bits: UInt8s | None

    @classmethod
    def of(cls, nodes: NodeSet, count: int) -> "_Kept":
        if 32 * len(nodes) <= count:
            return cls(nodes.kind, nodes.at, None)
        mask = np.zeros(count, dtype=np.bool_)
        mask[nodes.at] = True
        return cls(nodes.kind, None, np.packbits(mask))

    def nodes(self, count: int) -> NodeSet:
        if self.at is not None:
            return NodeSet(self.kind, self.at)
        assert self.bits is not None
        return NodeSet(self.kind, np.flatnonzero(np.unpackbits(self.bits, count=count)).astype(np.int32))


class Truth:
    """Conditions on one document; parts of a pattern are distinguished by identity, so they must stay alive."""

    def __init__(self, nodes: DocumentNodes) -> None:
        self.nodes = nodes
        self.values = Values(nodes)
        self._satisfied: dict[int, _Kept] = {}
        self._firsts: dict[int, Int64s] = {}

    def satisfied(self, node: Node) -> NodeSet:
        """All nodes of the document that pass a pattern node's test and all its conditions."""
        count = self.nodes.count(kind_of(node.test))
        kept = self._satisfied.get(id(node))
        if kept is not None:
            return kept.nodes(count)
        found = NodeSet("element", np.empty(0, dtype=np.int32))
        for step in reversed(path_of(node)):
            if id(step.node) not in self._satisfied:
                found = self._satisfying(step.node)
                of_kind = self.nodes.count(found.kind)
                self._satisfied[id(step.node)] = _Kept.of(found, of_kind)
        return found

    def _satisfying(self, node: Node) -> NodeSet:
        found = self.nodes.named(node.test)
        # Values last: they are the most expensive to test.
        for condition in sorted(node.conditions, key=lambda part: not isinstance(part, Node | Root)):
            if not len(found):
                break
            found = found.where(self.holds(condition, found))
        return found

    def holds(self, condition: Condition, contexts: NodeSet) -> Mask:
        """At which contexts a condition holds."""
        match condition:
            case Node():
                return self.nodes.has(condition.axis, contexts, self.satisfied(condition))
            case Root():
                there = self.nodes.reached(condition.node.axis, None, self.satisfied(condition.node)).any()
                return np.full(len(contexts), there, dtype=np.bool_)
            case Compare() | StringTest():
                return self.values.passes(condition, contexts)
            case First():
                return self._first_passes(condition, contexts)
            case Not():
                return ~self.holds(condition.condition, contexts)
            case AllOf() | AnyOf():
                every = isinstance(condition, AllOf)
                mask = np.full(len(contexts), every, dtype=np.bool_)
                for part in condition.conditions:
                    mask = mask & self.holds(part, contexts) if every else mask | self.holds(part, contexts)
                return mask

    # The first node of a path.

    def _first_passes(self, condition: First, contexts: NodeSet) -> Mask:
        firsts = self.firsts(condition, contexts)
        there = firsts != NOTHING
        found, places = np.unique(firsts[there], return_inverse=True)
        nodes = NodeSet(kind_of(condition.steps[-1].test), found.astype(np.int32))
        mask = np.zeros(len(contexts), dtype=np.bool_)
        mask[there] = self.values.passes(condition.test, nodes)[places]
        return mask

    def firsts(self, condition: First, contexts: NodeSet) -> Int64s:
        """For each context the first node, in document order, that the path reaches; `NOTHING` if there is none."""
        if condition.absolute:
            return np.full(len(contexts), self._first_of_all(condition), dtype=np.int64)
        if contexts.kind != "element":
            return np.full(len(contexts), NOTHING, dtype=np.int64)
        kept = self._firsts.get(id(condition))
        if kept is None:
            kept = self._firsts[id(condition)] = self._reaching(condition.steps)
        return kept[contexts.at]

    def _reaching(self, steps: tuple[Node, ...]) -> Int64s:
        """For each element the first node that the steps reach from it."""
        nodes, values = self._first_step(steps)
        return self.nodes.lowest(steps[0].axis, nodes, values)

    def _first_step(self, steps: tuple[Node, ...]) -> tuple[NodeSet, Int64s]:
        """The nodes that satisfy the first step and lead to the end, each with the first end node that it leads to."""
        nodes = self.satisfied(steps[-1])
        values = nodes.at.astype(np.int64)
        for step, below in zip(reversed(steps[:-1]), reversed(steps), strict=False):
            leads_to = self.nodes.lowest(below.axis, nodes, values)
            nodes = self.satisfied(step)
            values = leads_to[nodes.at]
            nodes, values = nodes.where(values != NOTHING), values[values != NOTHING]
        return nodes, values

    def _first_of_all(self, condition: First) -> int:
        nodes, values = self._first_step(condition.steps)
        reached = values[self.nodes.reached(condition.steps[0].axis, None, nodes)]
        return int(reached.min()) if len(reached) else int(NOTHING)


def reached(truth: Truth, node: Node, contexts: Contexts, *, satisfied: bool) -> NodeSet:
    """The nodes that a step reaches from the contexts; with `satisfied` only those that satisfy all its conditions."""
    among = truth.satisfied(node) if satisfied else truth.nodes.named(node.test)
    return among.where(truth.nodes.reached(node.axis, contexts, among))
