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


def ties_of(pattern: Pattern, encoder: PathEncoder) -> list[Tie]:
    """Branches and lifts, from the trunk's lowest node upwards; none for a pattern that is no twig."""
    root = pattern.root
    if root is None or not _is_structural(root):
        return []
    trunk = _trunk(root)
    found: list[Tie] = []
    below: int | None = None  # the node of the trunk that has been dealt with last
    for index in reversed(range(len(trunk or ()))):
        assert trunk is not None
        leaving = [part for part in _below(trunk[index]) if index + 1 == len(trunk) or part is not trunk[index + 1]]
        if not leaving:
            continue
        if below is not None:
            found.append(_tie(trunk[: below + 1], index, encoder)._replace(path=None))
        below = index
        paths = [trunk[: index + 1] + _chain(part) for part in leaving]
        ties = [_tie(path, index, encoder) for path in paths]
        if all(tie.place == ANYWHERE for tie in ties):
            paths.append(trunk[: index + 1])
            ties.append(_tie(trunk[: index + 1], index, encoder))
        if any(map(ends_anywhere, paths)):
            return []
        found += ties
    return found


def _tie(path: list[Node], index: int, encoder: PathEncoder) -> Tie:
    """The branch that leaves the node of a path with this index, and is the rest of it."""
    steps = tuple(map(encoder.step, path))
    place = place_of(path, index)
    return Tie(normalised(steps), ANYWHERE if place is None else place, () if place is not None else steps[index + 1 :])


def _is_structural(node: Node) -> bool:
    return node.is_element and all(isinstance(part, Node) and _is_structural(part) for part in node.conditions)


def _below(node: Node) -> list[Node]:
    return [part for part in node.conditions if isinstance(part, Node)]


def _chain(node: Node) -> list[Node]:
    """A node and those below it, down to the end; it has no branches."""
    chain = [node]
    while chain[-1].conditions:
        chain += _below(chain[-1])
    return chain


def _branches(node: Node) -> bool:
    below = _below(node)
    return len(below) > 1 or any(map(_branches, below))


def _trunk(root: Node) -> list[Node] | None:
    """The path down to the lowest node with branches; None when there are several such nodes, or no branches."""
    trunk: list[Node] = []
    node: Node | None = root if _branches(root) else None
    while node is not None:
        trunk.append(node)
        further = [part for part in _below(node) if _branches(part)]
        if len(further) > 1:
            return None
        node = further[0] if further else None
    return trunk or None
