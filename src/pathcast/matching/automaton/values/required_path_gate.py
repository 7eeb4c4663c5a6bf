"""Gates: a plain path that a document must have before a pattern with predicates can match it.

The mandatory nodes of a tree pattern (not under `or` or `not`) form plain paths from the root, without values. A
document that matches the pattern has every one of these paths, so a document that lacks one cannot match. The longest
is the pattern's gate. The automaton finds open gates along with its matches, and only the patterns behind them are
tried.

Invariant: a gate may be open without a match, but it is never shut for a match.
"""

from itertools import zip_longest

from pathcast.patterns import WILDCARD, Condition, Node, Pattern
from pathcast.patterns.parsing import PathEncoder, Steps, normalised


def gate(pattern: Pattern, encoder: PathEncoder) -> Steps:
    """The steps of the longest path of elements that the pattern demands; empty if it demands no element."""
    if pattern.root is None or not pattern.root.is_element:
        return ()
    return normalised(tuple(encoder.step(node) for node in longest_path(pattern.root)))


def longest_path(node: Node) -> list[Node]:
    """The path below and including `node` with the most names, then the most steps."""
    _, _, path = _longest(node)
    return path[::-1]


def _longest(node: Node) -> tuple[int, int, list[Node]]:
    """The number of names and of steps of that path, and the path itself from its end upwards."""
    names, steps, path = 0, 0, list[Node]()
    for part in node.conditions:
        if isinstance(part, Node) and part.is_element:
            found = _longest(part)
            if found[:2] > (names, steps):
                names, steps, path = found
    path.append(node)
    return names + (node.test != WILDCARD), steps + 1, path


def in_order(patterns: dict[int, Pattern]) -> list[int]:
    """Entries ordered so that patterns whose longest paths begin alike, conditions included, are adjacent."""
    numbers: dict[tuple[str, str, tuple[Condition, ...]], int] = {}

    def path(entry: int) -> tuple[int, ...]:
        root = patterns[entry].root
        spine = [] if root is None else longest_path(root)
        steps = []
        for node, below in zip_longest(spine, spine[1:]):
            others = tuple([part for part in node.conditions if part is not below])
            steps.append(numbers.setdefault((node.axis, node.test, others), len(numbers)))
        return tuple(steps)

    return sorted(patterns, key=path)
