"""Value tests: tests of the values of one element, for engines that find elements first and test values afterwards.

    [@a], [@a > 5], [text() = 'x'], [. = 5], [contains(., 'x')], [.//@a = 5]

A selection is a condition that the element alone decides, with its content: on attributes and text nodes, its own or
(`//`) those of all elements inside, or on its string-value. Equal selections are stored once, in the layout of the
automaton's table of conditions, so that one set of kernels compares values for every engine.

Not done: `or`, `not`, and tests on the first node of a path; such patterns are delegated.
"""

import numpy as np

from pathcast.documents import Names
from pathcast.kernels import AnyArray, Int64s, UInt8s
from pathcast.matching.automaton.verify import Conditions
from pathcast.matching.automaton.verify.value_condition_kernels import ATTRIBUTE, Tests
from pathcast.patterns import Compare, Condition, Node, Pattern, StringTest


def is_selection(condition: Condition) -> bool:
    """Whether the element alone decides the condition."""
    if isinstance(condition, Compare | StringTest):
        return True
    return (
        isinstance(condition, Node)
        and not condition.is_element
        and all(isinstance(test, Compare | StringTest) for test in condition.conditions)
    )


def is_conjunctive(pattern: Pattern) -> bool:
    """Whether the pattern consists of elements and selections, all of them mandatory."""
    waiting: list[Condition | None] = [pattern.root]
    while waiting:
        node = waiting.pop()
        if not isinstance(node, Node) or not node.is_element:
            return False
        waiting.extend(condition for condition in node.conditions if not is_selection(condition))
    return True


def branches(node: Node) -> list[Node]:
    """The elements demanded below a node."""
    return [part for part in node.conditions if isinstance(part, Node) and part.is_element]


class Selections:
    """The growing table of distinct selections."""

    def __init__(self, names: Names) -> None:
        self._conditions = Conditions(names)

    def number(self, condition: Condition) -> int:
        """The number of a selection."""
        return self._conditions.number(condition)

    def is_late(self, number: int) -> bool:
        """Whether the selection is certain only at the element's end: all are, except tests of its own attributes."""
        return self._conditions.kind(number) != ATTRIBUTE

    def arrays(self) -> dict[str, AnyArray]:
        """The table for the kernels."""
        it = self._conditions.arrays()
        return {"selection_rows": it.rows, "limits": it.limits, "literals": it.literals, "parts": it.parts}


def kernel_tests(arrays: dict[str, AnyArray]) -> Tests:
    """The table of selections in the form that kernels read."""
    return Tests(arrays["selection_rows"], arrays["limits"], arrays["literals"], arrays["parts"])


def text_room(data_offsets: Int64s, arena: UInt8s) -> int:
    """The most bytes that the string-value of an element of these documents can take."""
    return int(np.diff(data_offsets).max(initial=0)) + len(arena)
