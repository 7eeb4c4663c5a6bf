"""Reasons: a proof of what holds; and for a miss, how far it gets and what is missing there.

A proof follows the pattern: a node of the document for each step, an alternative that holds for `or`, the reason why
its operand does not hold for `not()`. A refutation is about a set of contexts at none of which the condition holds. It
follows a path with all of them at once, step by step and predicate by predicate, as long as some node is left. It
therefore ends at the furthest point that any of them reaches, with the first demand that no node satisfies. Of the
nodes left there, those with the nearest values are shown.

Invariant: `prove` is called only for conditions that hold at its context, `refute` only for those that hold at none of
its contexts.
Cost: each part of the pattern is visited once, each visit is linear in the document.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import isnan

import numpy as np

from pathcast.patterns import AllOf, AnyOf, Compare, Condition, First, Node, Not, Root, StringTest

from .condition_node_sets import Step, Truth, path_of, reached
from .document_node_sets import NOTHING, Contexts, NodeSet, kind_of
from .explanation import SHOWN
from .findings_awaiting_locations import Draft, Spot, spot
from .missing_node_hints import Absence
from .nearest_failing_values import Near, Nearness
from .step_and_condition_text import Spelling, quoted, wanted

# A longer number is quoted and cut like other values.
_BARE = 40


class Reasons:
    """Proofs and refutations of conditions on one document."""

    def __init__(self, truth: Truth, spelling: Spelling) -> None:
        self.truth = truth
        self.spelling = spelling
        self.absence = Absence(truth.nodes, spelling)
        self.nearness = Nearness(truth.values)

    # What holds.

    def prove(self, condition: Condition, context: NodeSet) -> Draft:
        """Why a condition holds at one node."""
        text = self.spelling.condition(condition)
        match condition:
            case Node():
                return self._path_draft(text, self.prove_path(path_of(condition), context))
            case Root():
                return self._path_draft(text, self.prove_path(path_of(condition.node), None))
            case Compare() | StringTest():
                return self._prove_value(text, condition, context)
            case First():
                return self._prove_value(text, condition.test, self._firsts(condition, context))
            case AllOf():
                parts = tuple(self.prove(part, context) for part in condition.conditions)
                return Draft("condition", text, True, parts=parts)
            case AnyOf():
                holding = next(part for part in condition.conditions if self.truth.holds(part, context)[0])
                return Draft("condition", text, True, parts=(self.prove(holding, context),))
            case Not():
                return Draft("condition", text, True, parts=(self.refute(condition.condition, context),))

    def _prove_value(self, text: str, test: Compare | StringTest, nodes: NodeSet) -> Draft:
        first = nodes.only(0)
        return Draft(
            "condition", text, True, self._value_spots(first, [Near(0, self.truth.values.span(test, first))]), 1
        )

    def prove_path(self, steps: Sequence[Step], context: Contexts) -> tuple[Draft, ...]:
        """A node for each step; `count` includes all nodes that could take its place, and the first few are shown."""
        drafts = []
        every = context
        for number, step in enumerate(steps):
            every = reached(self.truth, step.node, every, satisfied=True)
            witness = every.where(self.truth.nodes.reached(step.node.axis, context, every)).only(0)
            others = [place for place in range(min(len(every), SHOWN)) if every.at[place] != witness.at[0]]
            values = step.node.is_attribute or step.node.is_text
            spots = self._spots(witness, [0], values=values) + self._spots(every, others, values=values)
            parts = tuple(self.prove(predicate, witness) for predicate in step.predicates)
            drafts.append(
                Draft("step", self._step_text(step, number, context), True, spots[:SHOWN], len(every), parts=parts)
            )
            context = witness
        return tuple(drafts)

    # What does not hold.

    def refute(self, condition: Condition, contexts: NodeSet) -> Draft:
        """The missing part of a condition that holds at none of these nodes."""
        text = self.spelling.condition(condition)
        match condition:
            case Node():
                return self._path_draft(text, self.refute_path(path_of(condition), contexts))
            case Root():
                return self._path_draft(text, self.refute_path(path_of(condition.node), None))
            case Compare() | StringTest():
                return self._refute_value(text, condition, contexts, "")
            case First():
                return self._refute_first(text, condition, contexts)
            case AllOf():
                return Draft("condition", text, False, parts=self._refute_all(condition.conditions, contexts))
            case AnyOf() if not condition.conditions:
                spots = self._spots(contexts, [0])
                return Draft("condition", text, False, spots, len(contexts), "cannot hold in any document")
            case AnyOf():
                parts = tuple(self.refute(part, contexts) for part in condition.conditions)
                return Draft("condition", text, False, parts=parts)
            case Not():
                proof = self.prove(condition.condition, contexts.only(0))
                spots, count = _evidence(proof)
                value = f" (found {quoted(spots[0].value)})" if spots and spots[0].value is not None else ""
                reason = f"`{proof.text}` holds but must not{value}"
                return Draft("condition", text, False, spots, count, reason, parts=(proof,))

    def refute_path(self, steps: Sequence[Step], contexts: Contexts) -> tuple[Draft, ...]:
        """The steps that some nodes satisfy, in order, and then the step that no node satisfies."""
        drafts: list[Draft] = []
        context = contexts
        for number, step in enumerate(steps):
            text = self._step_text(step, number, contexts)
            named = reached(self.truth, step.node, context, satisfied=False)
            if not len(named):
                drafts.append(self.absence.draft(text, step.node, context))
                break
            left, parts = self._narrowed(step.predicates, named)
            values = step.node.is_attribute or step.node.is_text
            shown = range(min(len(left), SHOWN))
            if parts:
                spots = self._spots(left, shown)
                drafts.append(Draft("step", text, False, spots, len(left), parts=parts))
                break
            proofs = tuple(self.prove(predicate, left.only(0)) for predicate in step.predicates)
            drafts.append(Draft("step", text, True, self._spots(left, shown, values=values), len(left), parts=proofs))
            context = left
        return tuple(drafts)

    def _narrowed(self, conditions: Sequence[Condition], nodes: NodeSet) -> tuple[NodeSet, tuple[Draft, ...]]:
        """The nodes at which all conditions hold; or those left when the next one holds at none, with findings."""
        drafts: list[Draft] = []
        for condition in conditions:
            holding = nodes.where(self.truth.holds(condition, nodes))
            if not len(holding):
                return nodes, (*drafts, self.refute(condition, nodes))
            spots = self._spots(holding, range(min(len(holding), SHOWN)))
            drafts.append(Draft("condition", self.spelling.condition(condition), True, spots, len(holding)))
            nodes = holding
        return nodes, ()

    def _refute_all(self, conditions: Sequence[Condition], nodes: NodeSet) -> tuple[Draft, ...]:
        return self._narrowed(conditions, nodes)[1]

    def _refute_value(self, text: str, test: Compare | StringTest, nodes: NodeSet, which: str) -> Draft:
        nearest = self.nearness.nearest(test, nodes, SHOWN)
        spots = self._value_spots(nodes, nearest)
        value = spots[0].value or ""
        numeric = isinstance(test, Compare) and test.number is not None
        is_number = numeric and not isnan(self.truth.values.numbers(nodes.only(nearest[0].place))[0])
        bare = is_number and value == value.strip() and len(value) < _BARE
        shown = value if bare else quoted(value)
        if numeric and not is_number:
            shown += ", not a number"
        reason = f"{which}`{self._subject(nodes, nearest[0].place)}` is {shown}, {wanted(test)}"
        if but := self.nearness.difference(test, nodes, nearest[0]):
            reason += f" ({but})"
        return Draft("condition", text, False, spots, len(nodes), reason)

    def _refute_first(self, text: str, condition: First, contexts: NodeSet) -> Draft:
        firsts = self._firsts(condition, contexts)
        if len(firsts):
            return self._refute_value(text, condition.test, firsts, "the first ")
        start = None if condition.absolute else contexts
        steps = [Step(step, step.conditions) for step in condition.steps]
        return self._path_draft(text, self.refute_path(steps, start))

    # Pieces.

    def _firsts(self, condition: First, contexts: NodeSet) -> NodeSet:
        """The nodes that are the first of the path for some context."""
        found = self.truth.firsts(condition, contexts)
        places = np.unique(found[found != NOTHING]).astype(np.int32)
        return NodeSet(kind_of(condition.steps[-1].test), places)

    def _path_draft(self, text: str, steps: tuple[Draft, ...]) -> Draft:
        """A path inside a predicate as one finding; a path of one step needs no parts."""
        last = steps[-1]
        if len(steps) > 1:
            spots = last.spots if last.holds else ()
            return Draft("condition", text, last.holds, spots, last.count if last.holds else 0, parts=steps)
        only = last.parts[0] if len(last.parts) == 1 else None
        if only is not None and only.reason:
            return replace(only, text=text)
        if only is not None and only.holds and not only.parts and only.spots[0][:2] == last.spots[0][:2]:
            return replace(last, kind="condition", text=text, spots=(only.spots[0], *last.spots[1:]), parts=())
        return replace(last, kind="condition", text=text)

    def _step_text(self, step: Step, number: int, contexts: Contexts) -> str:
        return self.spelling.step(step.node, relative=number == 0 and contexts is not None)

    def _subject(self, nodes: NodeSet, place: int) -> str:
        batch, at = self.truth.nodes.batch, nodes.at[place]
        if nodes.kind == "text":
            return "text()"
        if nodes.kind == "attribute":
            return "@" + self.spelling.name(batch.name_of(int(batch.attribute_name[at])))
        return self.spelling.name(batch.name_of(int(batch.name[at])))

    def _spots(self, nodes: NodeSet, places: Sequence[int], *, values: bool = False) -> tuple[Spot, ...]:
        value = self.truth.values.value
        return tuple(spot(self.truth.nodes, nodes, at, value(nodes, at) if values else None) for at in places)

    def _value_spots(self, nodes: NodeSet, nearest: Sequence[Near]) -> tuple[Spot, ...]:
        value = self.truth.values.value
        return tuple(spot(self.truth.nodes, nodes, near.place, value(nodes, *near)) for near in nearest)


def _evidence(proof: Draft) -> tuple[tuple[Spot, ...], int]:
    """The nodes that a proof ends with, and their number."""
    while not proof.spots and proof.parts:
        proof = proof.parts[-1]
    return proof.spots, proof.count
