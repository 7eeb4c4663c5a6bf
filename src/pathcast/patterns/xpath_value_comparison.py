"""Values: XPath 1.0's comparisons between a node's string-value and a literal, as lxml computes them.

`number_of` follows libxml2 rather than the letter of XPath 1.0 in two points: it reads an exponent (`1e3` is 1000), and
it builds a number digit by digit in floating point, with at most 20 digits of the fraction after its leading zeros. The
last bit may therefore differ from the correctly rounded number. Results must agree with lxml's to that bit.
"""

import re
from decimal import Decimal
from math import isfinite

from .tree_pattern import Compare, Operator, StringTest

_NUMBER = re.compile(
    r"[ \t\r\n]*(?P<minus>-?)(?P<whole>[0-9]*)(?:\.(?P<fraction>[0-9]*))?"
    r"(?:[eE](?P<exponent>[+-]?[0-9]*))?[ \t\r\n]*",
)
_FRACTION_DIGITS = 20
_EXACT_DIGITS = 15  # numbers of up to 15 digits give the same double, however they are read
_LARGEST_EXPONENT = 1_000_000
NAN = float("nan")


def number_of(text: str) -> float:
    """XPath's number() of a string; NaN for a non-numeric string."""
    if len(text) <= _EXACT_DIGITS and text.isdigit() and text.isascii():
        return float(text)
    found = _NUMBER.fullmatch(text)
    if found is None:
        return NAN
    whole, fraction = found["whole"], found["fraction"] or ""
    if not whole and not fraction:
        return NAN
    value = 0.0
    for digit in whole:
        value = value * 10 + int(digit)
    if fraction:
        value += _fraction(fraction)
    if found["minus"]:
        value = -value
    exponent = found["exponent"]
    return value if exponent is None else value * _power_of_ten(exponent)


def number_text(number: float) -> str | None:
    """The shortest XPath number that reads as exactly this number; None in the rare case that none is so short."""
    if not isfinite(number):
        return None
    if number.is_integer() and abs(number) < 10.0**_EXACT_DIGITS:
        return str(int(number))
    text = format(Decimal(repr(number)), "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return text if number_of(text) == number else None


def _fraction(digits: str) -> float:
    zeros = len(digits) - len(digits.lstrip("0"))
    significant = digits[zeros : zeros + _FRACTION_DIGITS]
    value = 0.0
    for digit in significant:
        value = value * 10 + int(digit)
    try:
        return value / 10.0 ** (zeros + len(significant))
    except OverflowError:
        return 0.0


def _power_of_ten(exponent: str) -> float:
    digits = exponent.lstrip("+-")
    size = 0
    for digit in digits:
        if size < _LARGEST_EXPONENT:
            size = size * 10 + int(digit)
    try:
        return 10.0 ** (-size if exponent.startswith("-") else size)
    except OverflowError:
        return float("inf")


def compare_numbers(operator: Operator, left: float, right: float) -> bool:
    """IEEE 754's comparison: NaN is unequal to everything and unordered."""
    match operator:
        case "=":
            return left == right
        case "!=":
            return left != right
        case "<":
            return left < right
        case "<=":
            return left <= right
        case ">":
            return left > right
        case ">=":
            return left >= right


def holds(test: Compare | StringTest, value: str) -> bool:
    """Whether a node with this string-value passes the test."""
    if isinstance(test, StringTest):
        return test.text in value if test.function == "contains" else value.startswith(test.text)
    if test.number is not None:
        return compare_numbers(test.operator, number_of(value), test.number)
    return (value == test.string) == (test.operator == "=")
