"""Counted forms: positions and counts in the words of tree patterns, as tests of computed attributes.

    //p[position() > 2][@x]/q       //p[@position(p) > 2][@x]/q
    //p[last() - 1]                 //p[@from-end(p) = 2]
    //p[count(q) < 3]               //p[not(q[@position(q) = 3])]
    //p/following-sibling::p        //p[@position(p) > 1]
    (//p)[2], count(//p) >= 2       //p[@document-position(p) = 2]

Where only existence counts, a final `[1]` or `[last()]` is dropped: of some nodes, one is the first.

Invariant: the result has the same boolean value as the expression in every context. A part without a counted form stays
as it is; since it is not in the fragment of tree patterns, the whole expression has no counted form then.
Not done: positions after other predicates (`p[@x][2]`), on other axes, and of nodes that are not elements; siblings of
another name.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import ceil, floor

from ..computed_attributes import FROM_END, OF_ALL, OF_DOCUMENT, POSITION, TOTAL, ComputedAttribute
from .equivalent_forms import FALSE, TRUE, as_condition
from .expression_tree import (
    ANYWHERE,
    Axis,
    Call,
    Chain,
    Expression,
    Filter,
    NodeTest,
    Number,
    Path,
    Step,
    is_positional,
)
from .position_tests import is_first_place, position_test

_MIRRORED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_LARGEST = 1e9
_OPPOSITE: dict[str, Axis] = {"preceding-sibling": "following-sibling", "following-sibling": "preceding-sibling"}
# The place of an element that is one more than its number of siblings on the axis.
_PLACES = {"preceding-sibling": POSITION, "following-sibling": FROM_END}


class Counting:
    """Rewrites expressions; `attributes` says for which computed attributes names stand in the results."""

    def __init__(self, prefix: str) -> None:
        """`prefix` begins no name in the expressions."""
        self._prefix = prefix
        self._names: dict[ComputedAttribute, str] = {}

    @property
    def attributes(self) -> dict[str, str]:
        """The names of computed attributes by the names that stand for them."""
        return {name: attribute.name for attribute, name in self._names.items()}

    def test(self, measure: str, element: str, symbol: str, number: float) -> Expression:
        """A comparison of a computed attribute."""
        attribute = ComputedAttribute(measure, element)
        name = self._names.setdefault(attribute, f"{self._prefix}{len(self._names)}")
        path = Path(False, (Step("attribute", NodeTest("name", name)),))
        text = str(int(number)) if number.is_integer() else repr(number)
        return Chain(path, ((symbol, Number(number, text)),))

    def condition(self, expression: Expression, context: str = "") -> Expression:
        """The expression where only its boolean value counts; `context` is the node test that its element passes."""
        match expression:
            case Path() | Filter():
                return self.existence(expression, context)
            case Call(function="not", arguments=(argument,)):
                return Call("not", (self.condition(argument, context),))
            case Call(function="contains" | "starts-with" as function, arguments=(path, text)):
                return Call(function, (self.nodes(path), text))
            case Chain(first=first, rest=((symbol, _), *_) as rest) if symbol in ("and", "or"):
                others = tuple([(word, self.condition(operand, context)) for word, operand in rest])
                return Chain(self.condition(first, context), others)
            case Chain(first=first, rest=((symbol, second),)) if symbol in _MIRRORED:
                return self.comparison(first, symbol, second, context)
            case _:
                return expression

    def comparison(self, first: Expression, symbol: str, second: Expression, context: str) -> Expression:
        if isinstance(first, Number):
            first, second, symbol = second, first, _MIRRORED[symbol]
        if isinstance(first, Call) and first.function == "count" and isinstance(second, Number):
            counted = self.count(first.arguments[0], symbol, second.value, context)
            if counted is not None:
                return counted
        return Chain(self.nodes(first), ((symbol, self.nodes(second)),))

    # Paths.

    def nodes(self, expression: Expression) -> Expression:
        """A path that selects the same nodes."""
        path = _from_the_document(expression)
        if not isinstance(path, Path) or path.start is not None:
            return expression
        steps = self.steps(path.absolute, path.steps)
        return expression if steps is None else Path(path.absolute, tuple(steps))

    def existence(self, expression: Expression, context: str) -> Expression:
        """A condition that holds if the expression selects a node."""
        path = _from_the_document(expression)
        if not isinstance(path, Path) or path.start is not None or not path.steps:
            return expression
        *before, last = path.steps
        while last.predicates and is_first_place(last.predicates[-1]):
            last = replace(last, predicates=last.predicates[:-1])
        if last.axis in _PLACES and not (before or path.absolute):
            return self.siblings(last, context, ">", 0.0) or expression
        if last.axis in _PLACES and before and before[-1].predicates:
            beside = self.siblings(last, _test_of(before[-1]), ">", 0.0)
            steps = self.steps(path.absolute, before)
            if beside is None or steps is None:
                return expression
            last = replace(steps[-1], predicates=(*steps[-1].predicates, beside))
            return Path(path.absolute, (*steps[:-1], last))
        return self.nodes(Path(path.absolute, (*before, last)))

    def steps(self, absolute: bool, given: Sequence[Step]) -> list[Step] | None:
        """Steps that select the same nodes; None if they have no counted form."""
        found: list[Step] = []
        for index, step in enumerate(given):
            axis, scope, test, first = step.axis, "", _test_of(step), list[Expression]()
            positional = any(map(is_positional, step.predicates))
            if axis == "descendant" and absolute and not index and test:
                axis, scope = "child", OF_DOCUMENT
                found.append(ANYWHERE)
            elif axis in _PLACES and found and not positional:
                *found, before = found
                mirrored = Step(_OPPOSITE[axis], before.test, before.predicates)
                beside = self.siblings(mirrored, test, ">", 0.0) if before.axis == "child" else None
                if beside is None:
                    return None
                axis, first = "child", [beside]
            elif positional and (axis != "child" or not test):
                return None
            predicates = self.predicates(step.predicates, scope, test)
            if predicates is None:
                return None
            found.append(Step(axis, step.test, (*first, *predicates)))
        return found

    def predicates(self, given: Sequence[Expression], scope: str, context: str) -> tuple[Expression, ...] | None:
        """The predicates of a step; only the first may depend on positions."""
        if any(map(is_positional, given[1:])):
            return None

        def place(measure: str, symbol: str, number: float) -> Expression:
            return self.test(scope + measure, context, symbol, number)

        found: list[Expression] = []
        for predicate in given:
            if is_positional(predicate):
                counted = position_test(predicate, place, lambda each: self.condition(as_condition(each), context))
                if counted is None:
                    return None
                found.append(counted)
            else:
                found.append(self.condition(as_condition(predicate), context))
        return tuple(found)

    # Counts.

    def siblings(self, step: Step, context: str, symbol: str, number: float) -> Expression | None:
        """`count(step) symbol number` for a step to siblings of the context's own name, or to all siblings."""
        test = _test_of(step)
        if step.predicates or not context or not test or test not in (context, "*"):
            return None
        measure = _PLACES[step.axis] + ("" if test == context else OF_ALL)
        return self.test(measure, context, symbol, number + 1)

    def count(self, counted: Expression, symbol: str, number: float, context: str) -> Expression | None:
        """`count(counted) symbol number`: whether some node has this place, or this total."""
        path = _from_the_document(counted)
        if not isinstance(path, Path) or path.start is not None or not path.steps or abs(number) > _LARGEST:
            return None
        *before, last = path.steps
        test = _test_of(last)
        if not test or last.predicates:
            return None
        if last.axis in _PLACES and not before and not path.absolute:
            return self.siblings(last, context, symbol, number)
        scope, above = "", tuple(before)
        if path.absolute and (last.axis, before) in (("descendant", []), ("child", [ANYWHERE])):
            scope, above = OF_DOCUMENT, (ANYWHERE,)
        elif last.axis != "child" or not (_is_root(before) if path.absolute else context and not before):
            return None  # they may be children of several elements

        def some(measure: str, place: float) -> Expression:
            there = Step("child", last.test, (self.test(scope + measure, test, "=", place),))
            return Path(path.absolute, (*above, there))

        return _by_size(symbol, number, some)


def _by_size(symbol: str, number: float, some: Callable[[str, float], Expression]) -> Expression:
    """Whether the size of a set compares; `some(measure, n)` holds if some node of the set has this place."""

    def at_least(least: float) -> Expression:
        return TRUE if least <= 0 else some(POSITION, least)

    def exactly() -> Expression:
        if number == 0:
            return _negated(at_least(1.0))
        return some(TOTAL, number) if number > 0 and number.is_integer() else FALSE

    above = floor(number) + 1.0
    match symbol:
        case "=":
            return exactly()
        case "!=":
            return _negated(exactly())
        case ">":
            return at_least(above)
        case ">=":
            return at_least(float(ceil(number)))
        case "<":
            return _negated(at_least(float(ceil(number))))
        case _:
            return _negated(at_least(above))


def _negated(condition: Expression) -> Expression:
    return Call("not", (condition,))


def _is_root(steps: list[Step]) -> bool:
    """Whether steps from the document select one element at most."""
    return len(steps) == 1 and steps[0].axis == "child" and not steps[0].predicates


def _from_the_document(expression: Expression) -> Expression:
    """`(//p)[2]/q` as `/descendant::p[2]/q`; other expressions as they are."""
    match expression:
        case Filter():
            return _from_the_document(Path(False, (), expression))
        case Path(start=Filter(nodes=Path(absolute=True, steps=first, start=None), predicates=predicates)) as path:
            match first:
                case (step, Step(axis="child", test=test, predicates=())) if step == ANYWHERE:
                    return Path(True, (Step("descendant", test, predicates), *path.steps))
                case (Step(axis="descendant", test=test, predicates=()),):
                    return Path(True, (Step("descendant", test, predicates), *path.steps))
                case _:
                    return expression
        case _:
            return expression


def _test_of(step: Step) -> str:
    """The node test of a step to elements: a name or `*`; empty for any other."""
    if step.axis in ("attribute", "namespace"):
        return ""
    return {"name": step.test.name, "any": "*"}.get(step.test.kind, "")
