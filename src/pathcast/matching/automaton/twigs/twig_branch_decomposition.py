"""Twigs: patterns of elements alone whose branches all leave one path, the trunk; and how to decide them.

    /a/b[x//y]/c[z]/d     trunk /a/b/c; from c leave z and d, from b leaves x//y

A *branch* is a path from the document to one of the pattern's ends, and the place of the trunk node that it leaves,
seen from its end: a number of levels up, or a depth, as for bound tests (`ancestor_value_tests.py`). An element with
this path therefore determines the one element at which the branch holds. Between two `//` there may be several: all
elements above from which the steps in between lead to it (`climb`). They need not have the trunk's path; if no other
branch shows that they have it, the trunk itself is a branch of no steps.

A twig matches when the branches that leave the lowest node of the trunk hold at one element; when, seen from this
element, those of the next node hold at the element a given number of levels up (`lift`), or at one of several; and so
on.

Left to the verifier: values, `or`, `not`, branches that branch, paths that end with `//*` (the automaton treats it as
`/*`).
Invariant: the pattern matches ⇔ the branches of each trunk node hold at one element, from the lowest node upwards.
"""

from msgspec import Struct

from pathcast.patterns import Node, Pattern
from pathcast.patterns.parsing import PathEncoder, Steps, normalised

from ..state_test_joins.ancestor_value_tests import ends_anywhere, place_of
from ..state_test_joins.waiting_patterns_by_state_kernels import ANYWHERE


class Tie(Struct, frozen=True, gc=False):
    """A branch, with its path; or a lift, without one. `climb` has the steps from the node to the end, for ANYWHERE."""

    path: Steps | None
    place: int
    climb: Steps


class Twig(Struct, frozen=True, gc=False):
    """Branches and lifts, from the trunk's lowest node upwards; and the longest path, as in `required_path_gate.py`."""

    ties: tuple[Tie, ...]
    longest: Steps


class Part(Struct, frozen=True, gc=False):
    """A node's step, the nodes below it, and whether a node has several below; if not, all steps from it on.

    Also the path from it on with the most names, then the most steps: the number of each, and its steps.
    """

    step: int
    below: tuple["Part", ...]
    branches: bool
    steps: Steps
    longest: tuple[int, int, Steps]


def twig_of(pattern: Pattern, encoder: PathEncoder, parts: dict[Node, Part] | None = None) -> Twig | None:
    """A pattern as a twig, or None. `parts` caches nodes that several patterns share."""
    root = None if pattern.root is None else _part(pattern.root, encoder, {} if parts is None else parts)
    trunk = [] if root is None else _trunk(root)
    if root is None or not trunk:
        return None
    steps = tuple([part.step for part in trunk])
    found: list[Tie] = []
    below: int | None = None  # the last trunk node that was processed
    for index in reversed(range(len(trunk))):
        leaving = [part for part in trunk[index].below if not part.branches]
        if not leaving:
            continue
        if below is not None:
            found.append(_tie(steps[: below + 1], index, is_lift=True))
        below = index
        above = steps[: index + 1]
        ends = [part.steps for part in leaving]
        ties = [_tie(above + end, index) for end in ends]
        if all(tie.climb for tie in ties):
            ends.append(())
            ties.append(_tie(above, index))
        for end in ends:
            # Most paths end with a name, which is quick to see.
            if (not end or end[-1] <= 1) and ends_anywhere(above + end):
                return None
        found += ties
    return Twig(tuple(found), normalised(root.longest[2]))


def _tie(steps: Steps, index: int, *, is_lift: bool = False) -> Tie:
    """The branch, or the lift, that leaves the node of a path at this index: the rest of the path."""
    place = place_of(steps, index)
    path = None if is_lift else normalised(steps)
    return Tie(path, ANYWHERE, steps[index + 1 :]) if place is None else Tie(path, place, ())


def _part(node: Node, encoder: PathEncoder, parts: dict[Node, Part]) -> Part | None:
    """A pattern of elements alone, from a node on; None for any other pattern."""
    if not node.is_element:
        return None
    step = encoder.step(node)
    below: list[Part] = []
    branches = len(node.conditions) > 1
    names, count, path = 0, 0, Steps()
    for condition in node.conditions:
        if not isinstance(condition, Node):
            return None
        part = parts.get(condition)
        if part is None:
            part = _part(condition, encoder, parts)
            if part is None:
                return None
            parts[condition] = part
        branches |= part.branches
        below.append(part)
        if part.longest[:2] > (names, count):
            names, count, path = part.longest
    longest = (names + (step > 1), count + 1, (step, *path))
    return Part(step, tuple(below), branches, () if branches else longest[2], longest)


def _trunk(root: Part) -> list[Part]:
    """The path down to the lowest node with branches; empty if there are several such nodes, or no branches."""
    trunk: list[Part] = []
    further = [root] if root.branches else []
    while further:
        trunk += further
        further = [part for part in trunk[-1].below if part.branches]
        if len(further) > 1:
            return []
    return trunk
