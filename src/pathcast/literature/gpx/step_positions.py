"""Step positions: where a step of a path lies in a publication.

A step with a name is at its tag. A `*` is a fixed number of steps from a tag, or from the document, unless it has a
`//` on both sides.
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from pathcast.patterns import WILDCARD, Node


class Unencodable(Exception):  # noqa: N818 - not an error: the pattern goes another way
    """Predicates cannot express a part of the pattern."""


class Tag(NamedTuple):
    """A tag name and the number of its occurrence in a path."""

    name: str
    occurrence: int = 1


class Place(NamedTuple):
    """The element `steps` below (or, if negative, above) a tag; without a tag, below the document."""

    tag: Tag | None
    steps: int = 0


def place_of(steps: Sequence[Node], step: int) -> Place:
    """The place of a step of the path (-1: the document); `Unencodable` if it has no fixed distance from a tag."""
    tags = tags_of(steps)
    at = step
    while at >= 0 and tags[at] is None and steps[at].axis == "/":
        at -= 1
    if at < 0:
        return Place(None, step + 1)
    if tags[at] is not None:
        return Place(tags[at], step - at)
    at = step
    while at + 1 < len(steps) and tags[at] is None and steps[at + 1].axis == "/":
        at += 1
    if tags[at] is None:
        raise Unencodable("a * between two // has no fixed position, so its conditions cannot be encoded")
    return Place(tags[at], step - at)


def tags_of(steps: Sequence[Node]) -> list[Tag | None]:
    """The tag of each step with its occurrence; None for `*`."""
    seen: Counter[str] = Counter()
    tags: list[Tag | None] = []
    for step in steps:
        seen[step.test] += 1
        tags.append(None if step.test == WILDCARD else Tag(step.test, seen[step.test]))
    return tags
