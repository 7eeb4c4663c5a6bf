"""Twigs: patterns of elements alone whose branches all leave one path, the trunk; and what decides them.

    /a/b[x//y]/c[z]/d     trunk /a/b/c; from c leave z and d, from b leaves x//y

A *branch* is a path from the document to one of the pattern's ends, and the place of the trunk's node that it leaves,
seen from its end: so many levels up, or at a depth, as bound tests have it (`bound.py`). So an element with this path
tells the one element at which the branch holds. Between two `//` there may be several: those above from which the steps
in between lead to it (`climb`). They need not have the trunk's path; if no other branch tells that they have it, the
trunk itself is a branch of no steps.

A twig matches when branches that leave the lowest node of the trunk hold at one element; when, seen from this element,
those of the next node hold at the element that is so many levels up (`lift`), or at one of several; and so on.

Left to the verifier: values, `or`, `not`, branches that branch, paths that end with `//*` (which the automaton takes
for `/*`).
Invariant: the branches of one node hold at an element, and so on upwards ⇔ the pattern matches.
"""

from typing import NamedTuple

from ...patterns.linear import PathEncoder, Steps, normalised
from ...patterns.model import Node, Pattern
from .bound import ends_anywhere, place_of
from .join_kernels import ANYWHERE


class Tie(NamedTuple):
    """A branch, with its path; or a lift, without. `climb` has the steps from the node to the end, for ANYWHERE."""

    path: Steps | None
    place: int
    climb: Steps


class _Part(NamedTuple):
    """A node, its step, those below it, and whether there is a node with several below."""

    node: Node
    step: int
    below: list["_Part"]
    branches: bool


def ties_of(pattern: Pattern, encoder: PathEncoder) -> list[Tie]:
    """Branches and lifts, from the trunk's lowest node upwards; none for a pattern that is no twig."""
    root = None if pattern.root is None else _part(pattern.root, encoder)
    trunk = [] if root is None else _trunk(root)
    found: list[Tie] = []
    below: int | None = None  # the node of the trunk that has been dealt with last
    for index in reversed(range(len(trunk))):
        leaving = [part for part in trunk[index].below if index + 1 == len(trunk) or part is not trunk[index + 1]]
        if not leaving:
            continue
        if below is not None:
            found.append(_tie(trunk[: below + 1], index)._replace(path=None))
        below = index
        paths = [trunk[: index + 1] + _chain(part) for part in leaving]
        ties = [_tie(path, index) for path in paths]
        if all(tie.place == ANYWHERE for tie in ties):
            paths.append(trunk[: index + 1])
            ties.append(_tie(trunk[: index + 1], index))
        if any(ends_anywhere([part.node for part in path]) for path in paths):
            return []
        found += ties
    return found


def _tie(path: list[_Part], index: int) -> Tie:
    """The branch that leaves the node of a path with this index, and is the rest of it."""
    steps = tuple([part.step for part in path])
    place = place_of([part.node for part in path], index)
    return Tie(normalised(steps), ANYWHERE if place is None else place, () if place is not None else steps[index + 1 :])


def _part(node: Node, encoder: PathEncoder) -> _Part | None:
    """A pattern of elements alone, from a node on; None for another one."""
    if not node.is_element:
        return None
    below: list[_Part] = []
    branches = len(node.conditions) > 1
    for condition in node.conditions:
        part = _part(condition, encoder) if isinstance(condition, Node) else None
        if part is None:
            return None
        branches |= part.branches
        below.append(part)
    return _Part(node, encoder.step(node), below, branches)


def _chain(part: _Part) -> list[_Part]:
    """A node and those below it, down to the end; it has no branches."""
    chain = [part]
    while chain[-1].below:
        chain += chain[-1].below
    return chain


def _trunk(root: _Part) -> list[_Part]:
    """The path down to the lowest node with branches; empty when there are several such nodes, or no branches."""
    trunk: list[_Part] = []
    further = [root] if root.branches else []
    while further:
        trunk += further
        further = [part for part in trunk[-1].below if part.branches]
        if len(further) > 1:
            return []
    return trunk
