"""Findings about an opaque pattern: what its expression, evaluated in full, selects step by step.

A path has a finding per step, up to the first that selects nothing; a union, `and` and `or` have one per operand; any
other expression has a single finding, whether it holds.

Cost: one evaluation per step.
"""

import numpy as np

from pathcast.documents import DocumentBatch, Limits
from pathcast.patterns.xpath import (
    ANYWHERE,
    Chain,
    Expression,
    Filter,
    Path,
    expression_text,
    kind_of,
    parse_expression,
)

from ..evaluation import CompiledExpression, FoundNodes, NodesOfBatch, OutOfWorkError
from .document_node_sets import Kind, NodeSet
from .explanation import SHOWN
from .findings_awaiting_locations import Draft, Spot

_KINDS: tuple[Kind, ...] = ("element", "attribute", "text")
_JOINED = frozenset({"and", "or", "|"})


class Evaluated:
    """Evaluates the parts of an expression on a document that is alone in its batch."""

    def __init__(self, batch: DocumentBatch, limits: Limits, *, ignore_namespaces: bool) -> None:
        self.limits = limits
        self._nodes = NodesOfBatch(batch, ignore_namespaces=ignore_namespaces)

    def drafts(self, expression: Expression) -> tuple[Draft, ...]:
        """Findings about a whole expression; all of them hold exactly if it does."""
        if isinstance(expression, Path) and expression.start is None:
            return self._path(expression)
        return (self._condition(expression),)

    def _condition(self, expression: Expression) -> Draft:
        text = expression_text(expression)
        holds = self._holds(expression)
        if isinstance(expression, Filter) and not expression.predicates:
            expression = expression.nodes
        if isinstance(expression, Chain) and expression.rest[0][0] in _JOINED:
            operands = [expression.first, *[operand for _, operand in expression.rest]]
            parts = [self._condition(operand) for operand in operands]
            decisive = [part for part in parts if part.holds is holds]
            every = expression.rest[0][0] == "and" and holds
            return Draft("condition", text, holds, parts=tuple(decisive if not every else parts))
        if isinstance(expression, Path) and expression.start is None:
            steps = self._path(expression)
            return Draft("condition", text, holds, steps[-1].spots if holds else (), steps[-1].count, parts=steps)
        return Draft("condition", text, holds, reason="" if holds else f"`{text}` is false")

    def _path(self, path: Path) -> tuple[Draft, ...]:
        drafts: list[Draft] = []
        slash = "/" if path.absolute else ""
        for count, step in enumerate(path.steps, 1):
            if step == ANYWHERE and count < len(path.steps):
                slash = "//"
                continue
            text = slash + expression_text(Path(False, (step,)))
            slash = "/"
            found = self.found(Path(path.absolute, path.steps[:count]))
            if not len(found):
                drafts.append(Draft("step", text, False, reason=f"`{text}` selects no node"))
                break
            spots = [spot for spot in map(_spot, [found] * SHOWN, range(SHOWN)) if spot is not None]
            drafts.append(Draft("step", text, True, tuple(spots), len(found)))
        return tuple(drafts) or (Draft("step", "/", True),)

    def _holds(self, expression: Expression) -> bool:
        compiled = CompiledExpression(expression)
        try:
            return compiled.holds(self._nodes.of(0, compiled), self.limits.evaluation)
        except OutOfWorkError:
            raise self.limits.exceeded("evaluation", "explaining the subscription takes too many steps") from None

    def found(self, path: Expression) -> FoundNodes:
        """The nodes that an expression selects."""
        compiled = CompiledExpression(path)
        try:
            nodes = self._nodes.of(0, compiled)
            return FoundNodes(nodes, compiled.selected(nodes, self.limits.evaluation))
        except OutOfWorkError:
            raise self.limits.exceeded("evaluation", "explaining the subscription takes too many steps") from None


def selected_by(text: str, batch: DocumentBatch, limits: Limits, *, ignore_namespaces: bool) -> list[NodeSet]:
    """The elements, attributes and texts that the expression of an opaque pattern selects."""
    expression = parse_expression(text, ignore_namespaces=ignore_namespaces)
    if kind_of(expression) != "nodes":
        return []
    found = Evaluated(batch, limits, ignore_namespaces=ignore_namespaces).found(expression)
    places = [place for place in map(found.node, range(len(found))) if place is not None]
    sets = {kind: sorted({place.at for place in places if place.kind == kind}) for kind in _KINDS}
    return [NodeSet(kind, np.array(at, dtype=np.int32)) for kind, at in sets.items() if at]


def _spot(found: FoundNodes, place: int) -> Spot | None:
    """One of the nodes found, by its index in the element arrays; None for the document, comments and the like."""
    node = found.node(place)
    if node is None:
        return None
    value = None if node.kind == "element" else found.value(place)
    return Spot(node.kind, node.at, node.element, value)
