"""Weaker expressions: what a document must have for an expression to hold, in the words of tree patterns.

    //p[position() >= 2][@x]/q = 'a'                    //p[@x]/q = 'a'
    //a/following-sibling::b[count(c) > d]              //a and //b[c and d]
    normalize-space(//title) = 'Rain'                   //title

Positions are dropped, an axis that leaves the subtree begins a new path anywhere in the document, and functions demand
the nodes without which they would return an empty string, NaN or 0. Nothing is demanded because of a `not()`, unless
what it negates is in the fragment itself.

Invariant: whenever the expression holds, the weaker one holds: it may only be too weak. None: nothing is demanded.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace

from ..xpath_value_comparison import compare_numbers
from .equivalent_forms import SELF, TRUE, as_condition
from .expression_tree import (
    ANYWHERE,
    Call,
    Chain,
    Expression,
    Filter,
    Negative,
    Number,
    Path,
    Step,
    String,
    is_positional,
    kind_of,
    parts,
)

Demand = Expression | None

_MIRRORED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_CASES = frozenset({"lower-case", "upper-case"})
_OF_FIRST_ARGUMENT = _CASES | {
    "normalize-space", "translate", "substring", "substring-before", "substring-after", "string",
}  # fmt: skip
_TEXT_TESTS = frozenset({"contains", "starts-with", "ends-with"})
_CONVERSIONS = frozenset({"number", "floor", "ceiling", "round", "date"})


class Weakening:
    """Weakens expressions; `fits` says whether a condition is in the fragment."""

    def __init__(self, fits: Callable[[Expression], bool]) -> None:
        self.fits = fits

    def condition(self, expression: Expression) -> Demand:
        """What must hold if the boolean value of the expression is true."""
        match expression:
            case Path() | Filter():
                return self.existence(expression)
            case Chain(rest=((symbol, _), *_)):
                return self.chain(expression, symbol)
            case Call(function="not" | "true" | "false"):
                simple = as_condition(expression)
                return simple if self.fits(simple) else None
            case Call(function="boolean", arguments=(argument,)):
                return self.condition(argument)
            case Call(function=function, arguments=(text, String(value=sought))) if function in _TEXT_TESTS and sought:
                return expression if self.fits(expression) else self.text(text)
            case _ if kind_of(expression) == "string":
                return self.text(expression)
            case _ if kind_of(expression) == "number":
                return self.number(expression)
            case _:
                return None

    def chain(self, chain: Chain, symbol: str) -> Demand:
        operands = [chain.first, *[operand for _, operand in chain.rest]]
        if symbol == "and":
            return _all(map(self.condition, operands))
        if symbol in ("or", "|"):
            return _any(map(self.condition, operands))
        if symbol in _MIRRORED:
            return self.comparison(chain, chain.first, symbol, chain.rest[0][1]) if len(chain.rest) == 1 else None
        return self.number(chain)

    # Comparisons.

    def comparison(self, whole: Chain, left: Expression, symbol: str, right: Expression) -> Demand:
        if "boolean" in (kind_of(left), kind_of(right)):
            return None
        if self.fits(whole):
            return whole
        return _all((self.side(left, symbol, right), self.side(right, _MIRRORED[symbol], left)))

    def side(self, side: Expression, symbol: str, other: Expression) -> Demand:
        """What one side must have for `side symbol other`."""
        if kind_of(side) == "nodes":
            literal = isinstance(other, Number | String)
            return self.existence(side, (Chain(TRUE, ((symbol, other),)),) if literal else ())
        if isinstance(other, Number):
            counted = self.counted(side, symbol, other.value)
            if counted is not None:
                return counted
        if symbol != "!=" and "number" in (kind_of(side), kind_of(other)):
            return self.number(side)
        if symbol in ("<", "<=", ">", ">="):
            return self.number(side)
        return self.text(side) if symbol == "=" and isinstance(other, String) and other.value else None

    def counted(self, side: Expression, symbol: str, number: float) -> Demand:
        """What is counted must exist if the comparison fails for 0."""
        if not isinstance(side, Call) or compare_numbers(symbol, 0.0, number):  # type: ignore[arg-type]
            return None
        if side.function in ("count", "sum"):
            return self.existence(side.arguments[0])
        if side.function == "string-length" and side.arguments:
            return self.text(side.arguments[0])
        return None

    def text(self, expression: Expression) -> Demand:
        """What must hold if the string value of an expression is not empty."""
        if kind_of(expression) == "nodes":
            return self.existence(expression)
        if isinstance(expression, Call) and expression.function in _OF_FIRST_ARGUMENT and expression.arguments:
            return self.text(expression.arguments[0])
        return None

    def number(self, expression: Expression) -> Demand:
        """What must hold if the number value of an expression is neither NaN nor, at a condition, 0."""
        match expression:
            case Chain(first=first, rest=((symbol, _), *_) as rest) if symbol in ("+", "-", "*", "div", "mod"):
                return _all(map(self.number, [first, *[operand for _, operand in rest]]))
            case Negative(operand=operand):
                return self.number(operand)
            case Call(function=function, arguments=(argument,)) if function in _CONVERSIONS:
                return self.number(argument)
            case _ if kind_of(expression) in ("nodes", "string"):
                return self.text(expression)
            case _:
                return None

    # Paths.

    def existence(self, expression: Expression, more: tuple[Expression, ...] = ()) -> Demand:
        """What must hold if the expression has a node, for which the conditions `more` hold as well."""
        match expression:
            case Filter(nodes=nodes, predicates=predicates):
                return self.existence(nodes, (*predicates, *more))
            case Chain(first=first, rest=rest):
                members = [first, *[operand for _, operand in rest]]
                return _any([self.existence(member, more) for member in members])
            case Path(start=start) if start is not None:
                return self.continued(start, expression.steps, more)
            case Path(absolute=absolute, steps=steps):
                return self.steps(absolute, steps, more)
            case _:
                return None

    def continued(self, start: Expression, steps: tuple[Step, ...], more: tuple[Expression, ...]) -> Demand:
        """The same for a path that begins with the nodes of an expression."""
        match start:
            case Path():
                return self.existence(replace(start, steps=(*start.steps, *steps)), more)
            case Filter(nodes=nodes, predicates=()):
                return self.continued(nodes, steps, more)
            case Filter(nodes=Path(steps=(*before, last)) as path, predicates=predicates):
                filtered = replace(last, predicates=(*last.predicates, *predicates))
                return self.existence(replace(path, steps=(*before, filtered, *steps)), more)
            case _:
                return _all((self.existence(start), self.steps(True, (ANYWHERE, *steps), more)))

    def steps(self, absolute: bool, steps: tuple[Step, ...], more: tuple[Expression, ...]) -> Demand:
        if steps and more:
            steps = (*steps[:-1], replace(steps[-1], predicates=(*steps[-1].predicates, *more)))
        segments = _Segments(absolute)
        for step in steps:
            segments.add(step, self.predicates(step))
        return _all(segments.paths())

    def predicates(self, step: Step) -> tuple[Expression, ...]:
        """The weaker predicates of a step; those of attributes and texts can only test their value."""
        found = [self.condition(each) for each in step.predicates if not is_positional(each)]
        kept = [each for each in found if each is not None and each != TRUE]
        if step.axis != "attribute" and step.test.kind != "text":
            return tuple(kept)
        return tuple([each for each in kept if all(map(_is_value, parts(each)))])


class _Segments:
    """The pieces of a path that the fragment can express, each with child steps and `//` only."""

    def __init__(self, absolute: bool) -> None:
        self.absolute = absolute
        self.steps: list[Step] = []
        self.done: list[Path] = []
        self.ended = False  # at an attribute or a text, or at a node of unknown kind

    def paths(self) -> list[Path]:
        self.close()
        return self.done

    def close(self) -> None:
        while self.steps and self.steps[-1] in (ANYWHERE, SELF):
            self.steps.pop()
        if self.steps:
            self.done.append(Path(self.absolute, tuple(self.steps)))
        self.steps = []

    def elsewhere(self) -> None:
        """Continue anywhere in the document."""
        self.close()
        self.absolute, self.ended = True, False
        self.steps = [ANYWHERE]

    def anywhere_below(self) -> None:
        if not self.steps and not self.absolute:
            self.steps.append(SELF)
        if not self.steps or self.steps[-1] != ANYWHERE:
            self.steps.append(ANYWHERE)

    def add(self, step: Step, predicates: tuple[Expression, ...]) -> None:
        kind, axis = step.test.kind, step.axis
        if self.ended or axis not in ("child", "descendant", "descendant-or-self", "attribute", "self"):
            if axis == "self":
                return
            self.elsewhere()
            if axis == "namespace":
                self.ended = True
                return
        if axis == "attribute" or (axis == "child" and kind in ("text", "comment", "processing-instruction")):
            self.value(step, predicates)
        elif kind == "node" and axis in ("self", "child", "descendant", "descendant-or-self"):
            if axis != "self":
                self.anywhere_below()
        elif axis == "self":
            return  # the name of a step before it, perhaps
        elif kind in ("name", "any"):
            if axis == "descendant-or-self":
                self.elsewhere()
            elif axis == "descendant":
                self.anywhere_below()
            self.steps.append(Step("child", step.test, predicates))
        else:
            self.elsewhere()
            self.value(step, predicates)

    def value(self, step: Step, predicates: tuple[Expression, ...]) -> None:
        """A step to an attribute or a text, which has nothing below it."""
        self.ended = True
        if step.axis == "attribute" and step.test.kind == "name":
            self.steps.append(Step("attribute", step.test, predicates))
        elif step.test.kind == "text":
            self.steps.append(Step("child", step.test, predicates))
        elif self.steps and self.steps[-1] == ANYWHERE:
            self.steps.pop()


def _is_value(part: Expression) -> bool:
    """Whether a part of a condition looks at nothing but the value of its node, or begins at the document."""
    return not isinstance(part, Path) or part == TRUE or part.absolute


def _all(demands: Iterable[Demand]) -> Demand:
    return _joined("and", [demand for demand in demands if demand is not None])


def _any(demands: Iterable[Demand]) -> Demand:
    given = list(demands)
    return None if None in given else _joined("or", [demand for demand in given if demand is not None])


def _joined(word: str, given: list[Expression]) -> Demand:
    if len(given) < 2:
        return given[0] if given else None
    return Chain(given[0], tuple([(word, each) for each in given[1:]]))
