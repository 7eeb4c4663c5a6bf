"""Minimisation: a tree pattern without the parts that follow from the others.

`/a[b]/b/c` asks for no more than `/a/b/c`. A part may go when the pattern without it is still contained in the pattern
with it; the other direction is plain. Parts are tried from the largest to the smallest, each once: what could not go
does not become superfluous when something else goes.

Invariant: the same documents match. Minimal where containment is complete.
Cost: one containment test for each branch, condition and absolute path; none for a plain path, which is minimal.
"""

from collections.abc import Iterator

from . import normal
from .containment import contains
from .generalisation import size
from .model import Node, Pattern


def minimised(pattern: Pattern) -> Pattern:
    """The pattern without superfluous parts."""
    if pattern.root is None or pattern.linear is not None:
        return pattern
    tried: set[Pattern] = set()
    while True:
        for smaller in sorted(without_a_part(pattern), key=size):
            if smaller not in tried and contains(pattern, smaller):
                pattern = smaller
                break
            tried.add(smaller)
        else:
            return pattern


def without_a_part(pattern: Pattern) -> Iterator[Pattern]:
    """The pattern with one mandatory part left out, whole branches where there are several."""
    if pattern.root is not None:
        for root in _without(pattern.root):
            yield Pattern(root)


def _without(node: Node) -> Iterator[Node]:
    conditions = node.conditions
    for index, condition in enumerate(conditions):
        others = conditions[:index] + conditions[index + 1 :]
        if not isinstance(condition, Node) or others:
            smaller = normal.node(node.axis, node.test, others)
            if isinstance(smaller, Node):
                yield smaller
        if isinstance(condition, Node):
            for below in _without(condition):
                smaller = normal.node(node.axis, node.test, (*others, below))
                if isinstance(smaller, Node):
                    yield smaller
