"""Steps compiled to functions from nodes to nodes, both in document order and without repetition.

Without positions in its predicates, a step is taken from all nodes at once, and each node that it reaches is tried
once. With positions, predicates see the nodes of one starting node after the other, numbered along the axis.

Cost: one per node visited, counted in `work`. Names of descendants are looked up, not searched for.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence

from pathcast.patterns.xpath import Expression, NodeTest, Number, Step, is_positional, kind_of

from .document_nodes import ATTRIBUTE, COMMENT, ELEMENT, INSTRUCTION, NAMESPACE, TEXT, DocumentNodes
from .node_axes import AXES, KEEPS_ORDER, REACHES_ONCE, REVERSE, WALKS

Take = Callable[[DocumentNodes, Sequence[int]], list[int]]
Truth = Callable[[DocumentNodes, int, int, int], bool]
Value = Callable[[DocumentNodes, int, int, int], float]
Reach = Callable[[DocumentNodes, int], Sequence[int]]
Keep = Callable[[DocumentNodes, list[int]], list[int]]

_KINDS = {"text": TEXT, "comment": COMMENT, "processing-instruction": INSTRUCTION}


class Predicates:
    """Compiled predicates: `keep` returns those of some nodes, numbered in their order, for which all hold."""

    def __init__(
        self,
        predicates: Sequence[Expression],
        truth: Callable[[Expression], Truth],
        number: Callable[[Expression], Value],
        *,
        of_step: bool,
    ) -> None:
        """Of a step, a leading number is left to the walk along the axis, which stops there: `place`."""
        self.positional = any(map(is_positional, predicates))
        first = predicates[0] if predicates else None
        self.place = _place(first.value) if of_step and isinstance(first, Number) else 0
        rest = predicates[1:] if self.place else predicates
        # Each predicate is compiled once, since predicates in predicates would otherwise double the work per level.
        self._truths = [] if self.positional else [truth(predicate) for predicate in rest]
        self._keep = [_predicate(predicate, truth, number) for predicate in rest] if self.positional else []

    def holds(self, nodes: DocumentNodes, node: int) -> bool:
        """Whether all hold at a node; only for predicates without positions."""
        for truth in self._truths:
            nodes.spend(1)
            if not truth(nodes, node, 1, 1):
                return False
        return True

    def keep(self, nodes: DocumentNodes, found: list[int]) -> list[int]:
        for keep in self._keep:
            if not found:
                break
            nodes.spend(len(found))
            found = keep(nodes, found)
        if self._truths:
            found = [node for node in found if self.holds(nodes, node)]
        return found


def _place(number: float) -> int:
    """The position that a number selects; 0 if it selects none."""
    return int(number) if number.is_integer() and 1 <= number < 1 << 31 else 0


def _predicate(
    predicate: Expression, truth: Callable[[Expression], Truth], number: Callable[[Expression], Value]
) -> Keep:
    if isinstance(predicate, Number):
        place = _place(predicate.value)
        return lambda nodes, found: found[place - 1 : place] if place else []
    if kind_of(predicate) == "number":
        wanted = number(predicate)

        def numbered(nodes: DocumentNodes, found: list[int]) -> list[int]:
            size, kept = len(found), []
            for place, node in enumerate(found, 1):
                if wanted(nodes, node, place, size) == place:
                    kept.append(node)
            return kept

        return numbered
    holds = truth(predicate)

    def true(nodes: DocumentNodes, found: list[int]) -> list[int]:
        size, kept = len(found), []
        for place, node in enumerate(found, 1):
            if holds(nodes, node, place, size):
                kept.append(node)
        return kept

    return true


def compile_existence(step: Step, predicates: Predicates) -> Callable[[DocumentNodes, Sequence[int]], bool]:
    """Whether a step without positions reaches a node, without looking any further than the first."""
    named, passes, walk = _named(step), _test(step), WALKS[step.axis]
    every = step.test.kind == "node"
    holds = predicates.holds

    def exists(nodes: DocumentNodes, contexts: Sequence[int]) -> bool:
        for node in contexts:
            nodes.spend(1)
            for each in walk(nodes, node) if named is None else named(nodes, node):
                if named is None:
                    nodes.spend(1)
                    if not every and not passes(nodes, each):
                        continue
                if holds(nodes, each):
                    return True
        return False

    return exists


def _nth(step: Step, place: int) -> Reach:
    """The node at a place along the axis, as a list of at most one."""
    passes, walk = _test(step), WALKS[step.axis]
    every = step.test.kind == "node"

    def nth(nodes: DocumentNodes, node: int) -> Sequence[int]:
        left = place
        for each in walk(nodes, node):
            nodes.spend(1)
            if every or passes(nodes, each):
                left -= 1
                if not left:
                    return (each,)
        return ()

    return nth


def compile_step(step: Step, predicates: Predicates) -> Take:
    """The step as a function."""
    reach = _named(step) or _tested(step)
    if predicates.place:
        reach = _nth(step, predicates.place)
    reverse = step.axis in REVERSE
    once, ordered = step.axis in REACHES_ONCE, step.axis in KEEPS_ORDER
    keep = predicates.keep
    positional = predicates.positional

    def take(nodes: DocumentNodes, contexts: Sequence[int]) -> list[int]:
        if positional:
            found: list[int] = []
            for node in contexts:
                nodes.spend(1)
                found += keep(nodes, list(reach(nodes, node)))
        else:
            found = []
            for node in contexts:
                nodes.spend(1)
                found += reach(nodes, node)
        if len(contexts) > 1:
            if not once:
                found = sorted(set(found))
            elif not ordered:
                found.sort()
        elif reverse:
            found.reverse()
        return found if positional else keep(nodes, found)

    return take


def _named(step: Step) -> Reach | None:
    """The nodes with one name, along the axes where that can be found faster than by trying every node."""
    name = step.test.name
    if step.test.kind != "name":
        return None
    match step.axis:
        case "child":

            def child(nodes: DocumentNodes, node: int) -> Sequence[int]:
                children, tested = nodes.children[node], nodes.tested
                nodes.work -= len(children)
                return [each for each in children if tested[each] == name]

            return child
        case "attribute":

            def attribute(nodes: DocumentNodes, node: int) -> Sequence[int]:
                tested = nodes.tested
                return [each for each in nodes.attributes(node) if tested[each] == name]

            return attribute
        case "descendant":

            def descendant(nodes: DocumentNodes, node: int) -> Sequence[int]:
                named = nodes.named(name)
                found = named[bisect_left(named, node + 1) : bisect_left(named, nodes.end[node])]
                nodes.work -= len(found)
                return found

            return descendant
        case "following":

            def following(nodes: DocumentNodes, node: int) -> Sequence[int]:
                if nodes.kind[node] in (ATTRIBUTE, NAMESPACE):
                    node = nodes.parent[node]
                named = nodes.named(name)
                found = named[bisect_left(named, nodes.end[node]) :]
                nodes.work -= len(found)
                return found

            return following
        case _:
            return None


def _tested(step: Step) -> Reach:
    """All nodes along the axis that pass the test."""
    axis = AXES[step.axis]
    passes = _test(step)

    def reach(nodes: DocumentNodes, node: int) -> Sequence[int]:
        reached = axis(nodes, node)
        nodes.work -= len(reached)
        return [each for each in reached if passes(nodes, each)]

    if step.test == NodeTest("node"):

        def every(nodes: DocumentNodes, node: int) -> Sequence[int]:
            reached = axis(nodes, node)
            nodes.work -= len(reached)
            return reached

        return every
    return reach


def _test(step: Step) -> Callable[[DocumentNodes, int], bool]:
    """A node test; names and `*` select nodes of the axis's principal kind."""
    test = step.test
    principal = {"attribute": ATTRIBUTE, "namespace": NAMESPACE}.get(step.axis, ELEMENT)
    if test.kind == "any":
        return lambda nodes, node: nodes.kind[node] == principal
    if test.kind == "name":
        name = test.name
        if principal == NAMESPACE:
            return lambda nodes, node: nodes.labels.get(node) == name
        return lambda nodes, node: nodes.tested[node] == name and nodes.kind[node] == principal
    kind = _KINDS.get(test.kind, -1)
    if test.kind == "processing-instruction" and test.name:
        return lambda nodes, node: nodes.kind[node] == kind and nodes.labels[node] == test.name
    return lambda nodes, node: nodes.kind[node] == kind
