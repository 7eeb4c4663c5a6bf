"""Position tests: predicates on `position()` and `last()`, as comparisons of one place or size with a number.

    [2]                             position = 2
    [position() > last() - 2]       from-end < 3
    [last() = 3 and @x]             total = 3 and @x

A predicate compares `a * position + b * last + c` with 0; for the pairs (1, 0), (0, 1) and (1, -1) of a and b that is a
comparison of the position, the size, or the place from the end.

Invariant: the result holds exactly where the predicate does. None: no such comparison says the same.
"""

from collections.abc import Callable
from typing import NamedTuple

from ..computed_attributes import FROM_END, POSITION, TOTAL
from .equivalent_forms import FALSE, TRUE
from .expression_tree import Call, Chain, Expression, Negative, Number, is_positional, kind_of

_MIRRORED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_LARGEST = 1e9
_POSITION, _LAST = Call("position", ()), Call("last", ())

Place = Callable[[str, str, float], Expression]
"""A comparison of a measure (`position`, `from-end`, `total`) with a number."""
Other = Callable[[Expression], Expression]
"""A condition that does not depend on positions."""


class _Linear(NamedTuple):
    """`positions` * position + `sizes` * last + `rest`."""

    positions: int
    sizes: int
    rest: float


def is_first_place(predicate: Expression) -> bool:
    """Whether a predicate keeps the first of some nodes, or the last: one if there are any."""
    if isinstance(predicate, Number):
        return predicate.value == 1
    if isinstance(predicate, Chain) and predicate.first == _POSITION and len(predicate.rest) == 1:
        symbol, second = predicate.rest[0]
        return symbol == "=" and is_first_place(second)
    return predicate == _LAST


def position_test(predicate: Expression, place: Place, other: Other) -> Expression | None:
    """A predicate that depends on positions; a number is compared with the position."""
    if kind_of(predicate) == "number":
        return _comparison(_POSITION, "=", predicate, place)
    return _truth(predicate, place, other)


def _truth(expression: Expression, place: Place, other: Other) -> Expression | None:
    if not is_positional(expression):
        return other(expression)
    match expression:
        case Call(function="not", arguments=(argument,)):
            inner = _truth(argument, place, other)
            return None if inner is None else Call("not", (inner,))
        case Call(function="boolean", arguments=(argument,)):
            return _truth(argument, place, other)
        case Chain(first=first, rest=((symbol, _), *_) as rest) if symbol in ("and", "or"):
            found = [_truth(operand, place, other) for operand in (first, *[operand for _, operand in rest])]
            known = [operand for operand in found if operand is not None]
            if len(known) < len(found):
                return None
            return Chain(known[0], tuple([(symbol, operand) for operand in known[1:]]))
        case Chain(first=first, rest=((symbol, second),)) if symbol in _MIRRORED:
            return _comparison(first, symbol, second, place)
        case _:
            return None


def _comparison(left: Expression, symbol: str, right: Expression, place: Place) -> Expression | None:
    first, second = _linear(left), _linear(right)
    if first is None or second is None:
        return None
    positions, sizes = first.positions - second.positions, first.sizes - second.sizes
    rest = first.rest - second.rest
    moved = (first.rest and second.rest) or (positions and sizes)
    if moved and not (first.rest.is_integer() and second.rest.is_integer()):
        return None
    match positions, sizes:
        case 1, 0:
            return place(POSITION, symbol, -rest)
        case -1, 0:
            return place(POSITION, _MIRRORED[symbol], rest)
        case 0, 1:
            return place(TOTAL, symbol, -rest)
        case 0, -1:
            return place(TOTAL, _MIRRORED[symbol], rest)
        case 1, -1:  # position - last is 1 - from-end
            return place(FROM_END, _MIRRORED[symbol], rest + 1)
        case -1, 1:
            return place(FROM_END, symbol, 1 - rest)
        case 0, 0:
            return TRUE if _holds(rest, symbol) else FALSE
        case _:
            return None


def _linear(expression: Expression) -> _Linear | None:
    """A number made of positions, sizes and numbers; sums are of integers, so that moving terms loses no digit."""
    match expression:
        case Number(value=value) if abs(value) < _LARGEST:
            return _Linear(0, 0, value)
        case Call(function="position"):
            return _Linear(1, 0, 0.0)
        case Call(function="last"):
            return _Linear(0, 1, 0.0)
        case Negative(operand=operand):
            found = _linear(operand)
            return None if found is None else _Linear(-found.positions, -found.sizes, -found.rest)
        case Chain(first=first, rest=rest) if all(symbol in ("+", "-") for symbol, _ in rest):
            total = _linear(first)
            for symbol, operand in rest:
                term = _linear(operand)
                if total is None or term is None or not (total.rest.is_integer() and term.rest.is_integer()):
                    return None
                sign = 1 if symbol == "+" else -1
                total = _Linear(
                    total.positions + sign * term.positions,
                    total.sizes + sign * term.sizes,
                    total.rest + sign * term.rest,
                )
            return total
        case _:
            return None


def _holds(difference: float, symbol: str) -> bool:
    """Whether a difference compares with 0."""
    if symbol in ("=", "!="):
        return (difference == 0) is (symbol == "=")
    smaller = difference < 0 if symbol in ("<", "<=") else difference > 0
    return smaller or (difference == 0 and symbol in ("<=", ">="))
