"""Comparisons of XPath 1.0, with sets of nodes on either side, on both or on none.

A set of nodes compares if one of its nodes does. Two sets are compared by their distinct values, or by their smallest
and largest numbers: never pair by pair.
"""

import operator
from collections.abc import Callable
from math import isnan
from typing import Any

from pathcast.patterns import number_of
from pathcast.patterns.xpath import Kind

from .document_nodes import DocumentNodes

Any_ = Callable[[DocumentNodes, int, int, int], Any]
Compared = Callable[[DocumentNodes, int, int, int], bool]

_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_MIRRORED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def compile_comparison(symbol: str, kinds: tuple[Kind, Kind], left: Any_, right: Any_) -> Compared:
    """`left symbol right`, for two functions with values of these kinds: sets of nodes, numbers, strings, booleans.

    If one side is a boolean, or no side is a set, both must return values of the kind that is compared (`compared_as`).
    """
    if "boolean" in kinds or "nodes" not in kinds:
        compare = _OPERATORS[symbol]
        return lambda nodes, node, place, size: compare(left(nodes, node, place, size), right(nodes, node, place, size))
    if kinds == ("nodes", "nodes"):
        return _two_sets(symbol, left, right)
    if kinds[1] == "nodes":
        return _set_and_value(_MIRRORED[symbol], right, left, is_text=kinds[0] == "string" and symbol in ("=", "!="))
    return _set_and_value(symbol, left, right, is_text=kinds[1] == "string" and symbol in ("=", "!="))


def compared_as(symbol: str, kinds: tuple[Kind, Kind]) -> tuple[Kind, Kind]:
    """The kinds to which both sides are converted before they are compared."""
    equality = symbol in ("=", "!=")
    if "boolean" in kinds:
        return ("boolean", "boolean") if equality else ("number", "number")
    if "nodes" in kinds:
        left, right = (kind if kind == "nodes" or equality else "number" for kind in kinds)
        return left, right
    if "number" in kinds or not equality:
        return "number", "number"
    return "string", "string"


def _set_and_value(symbol: str, found: Any_, value: Any_, *, is_text: bool) -> Compared:
    compare = _OPERATORS[symbol]

    def compared(nodes: DocumentNodes, node: int, place: int, size: int) -> bool:
        other = value(nodes, node, place, size)
        for each in found(nodes, node, place, size):
            text = nodes.value(each)
            if compare(text if is_text else number_in(nodes, text), other):
                return True
        return False

    return compared


def _two_sets(symbol: str, left: Any_, right: Any_) -> Compared:
    def equality(nodes: DocumentNodes, node: int, place: int, size: int) -> bool:
        first, second = left(nodes, node, place, size), right(nodes, node, place, size)
        if not first or not second:
            return False
        values, others = _values(nodes, first), _values(nodes, second)
        if symbol == "=":
            return not values.isdisjoint(others)
        return len(values | others) > 1

    def order(nodes: DocumentNodes, node: int, place: int, size: int) -> bool:
        first = _numbers(nodes, left(nodes, node, place, size))
        second = _numbers(nodes, right(nodes, node, place, size))
        if not first or not second:
            return False
        if symbol in ("<", "<="):
            return compare(min(first), max(second))
        return compare(max(first), min(second))

    compare = _OPERATORS[symbol]
    return equality if symbol in ("=", "!=") else order


def _values(nodes: DocumentNodes, found: list[int]) -> set[str]:
    return {nodes.value(node) for node in found}


def _numbers(nodes: DocumentNodes, found: list[int]) -> list[float]:
    numbers = [number_in(nodes, nodes.value(node)) for node in found]
    return [number for number in numbers if not isnan(number)]


def number_in(nodes: DocumentNodes, text: str) -> float:
    """XPath's number() of a string; long strings cost more."""
    if len(text) > 64:
        nodes.spend(len(text) >> 4)
    return number_of(text)
