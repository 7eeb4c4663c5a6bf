"""Implication between tests of one value: `@a >= 5` implies `@a >= 3`.

Both tests look at the same node and so at the same string-value. XPath 1.0 compares with `<`, `<=`, `>`, `>=` as
numbers, and so does `=` or `!=` with a number. A non-numeric value is NaN: unequal to every number and unordered.

Invariant: `implies(known, wanted)` only if every value that passes `known` passes `wanted`; `excludes(known, other)`
only if no value passes both. For two single tests both are complete, except for pairs of `contains` and `starts-with`
that exclude each other only through a third fact. Several tests are not combined (`>= 5` and `<= 5` do not give
`= 5`).
"""

from ..tree_pattern import Compare, Operator, StringTest
from ..xpath_value_comparison import compare_numbers, holds

Test = Compare | StringTest

_COMPLEMENTS: dict[Operator, Operator] = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


def implies(known: Test, wanted: Test) -> bool:
    """Whether every value that passes `known` passes `wanted`."""
    if known == wanted:
        return True
    if _is_text(known, "="):
        assert isinstance(known, Compare)
        return holds(wanted, known.string or "")
    if _is_text(wanted, "!="):  # all values but one pass
        assert isinstance(wanted, Compare)
        return not holds(known, wanted.string or "")
    if isinstance(known, StringTest):
        return isinstance(wanted, StringTest) and _part_implies(known, wanted)
    if isinstance(wanted, StringTest) or known.number is None or wanted.number is None:
        return False
    return _number_implies(known.operator, known.number, wanted.operator, wanted.number)


def excludes(known: Test, other: Test) -> bool:
    """Whether no value passes both."""
    for one, two in ((known, other), (other, known)):
        if _is_text(one, "="):
            assert isinstance(one, Compare)
            return not holds(two, one.string or "")
    if isinstance(known, StringTest) and isinstance(other, StringTest):
        begin = known.text, other.text
        both = known.function == other.function == "starts-with"
        return both and not (begin[0].startswith(begin[1]) or begin[1].startswith(begin[0]))
    if isinstance(known, StringTest) or isinstance(other, StringTest):
        return False
    if known.number is None or other.number is None:
        return False
    if known.operator == "!=":  # non-numeric values pass
        known, other = other, known
    if known.operator == "!=" or known.number is None or other.number is None:
        return False
    return _number_implies(known.operator, known.number, _COMPLEMENTS[other.operator], other.number)


def _is_text(test: Test, operator: Operator) -> bool:
    return isinstance(test, Compare) and test.number is None and test.operator == operator


def _part_implies(known: StringTest, wanted: StringTest) -> bool:
    if wanted.function == "contains":
        return wanted.text in known.text
    return known.function == "starts-with" and known.text.startswith(wanted.text)


def _number_implies(operator: Operator, bound: float, wanted: Operator, limit: float) -> bool:
    """Whether `x operator bound` implies `x wanted limit` for every x; NaN passes `!=` only."""
    match operator, wanted:
        case "=", _:
            return compare_numbers(wanted, bound, limit)
        case "!=", _:
            return wanted == "!=" and bound == limit
        case ("<", "<") | ("<", "<=") | ("<=", "<="):
            return bound <= limit
        case "<=", "<":
            return bound < limit
        case (">", ">") | (">", ">=") | (">=", ">="):
            return bound >= limit
        case ">=", ">":
            return bound > limit
        case "<" | "<=" | ">" | ">=", "!=":
            return not compare_numbers(operator, limit, bound)
    return False
