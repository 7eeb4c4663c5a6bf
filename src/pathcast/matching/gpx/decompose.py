"""Decomposition: a pattern with branches as paths, and how their matches join on the nodes that they share.

    /a[b]/c[d]//e       paths      /a/b   /a/c/d   /a/c//e
                        branches   a: b, c       c: d, e  (inside a's second)

A path that matches in a publication binds each of its steps to an element. A branch holds at an element when every one
of its parts does: a path that ends below it, or the next branch. Elements of all branches above count too, so that
`//a[b]//c[d][e]` asks d, e and b of one and the same a. Section 3.1.4 of the paper leaves this to "a scheme similar to"
YFilter's; joining on bindings is that scheme, but while the document is read and not after it.

A branch is found in a publication by a tag of the path and a number of steps from it (`places.py`). A `*` between two
`//` stands nowhere in particular, and such a branch can't be taken (`Unencodable`).
"""

from dataclasses import dataclass, field

from ...patterns.model import WILDCARD, Node, Pattern
from .encode import Predicate, elements_below, path_predicates
from .places import Place, Unencodable, place_of

# The parts of a branch are bits of a word.
MOST_PARTS = 62


@dataclass(slots=True)
class Branch:
    """A node with several parts: the branch above it (-1: none), which part of that it is, and how many it has."""

    above: int
    part: int
    parts: int


@dataclass(slots=True)
class Piece:
    """A path of the pattern: its predicates, the branches along it and where they are, and its part of the last."""

    predicates: tuple[Predicate, ...]
    branches: tuple[int, ...]
    places: tuple[Place, ...]
    part: int


@dataclass(slots=True)
class Decomposition:
    """A pattern as pieces; one without branches is a single piece."""

    pieces: list[Piece] = field(default_factory=list)
    branches: list[Branch] = field(default_factory=list)


def decompose(pattern: Pattern) -> Decomposition:
    """Take a pattern apart; `Unencodable` when a part of it is beyond the predicate calculus."""
    result = Decomposition()
    if pattern.root is None:
        result.pieces.append(Piece(path_predicates(()), (), (), 0))
    else:
        _descend(pattern.root, [], [], 0, result)
    return result


def _descend(node: Node, above: list[Node], branches: list[tuple[int, int]], part: int, result: Decomposition) -> None:
    """Follow the pattern down; `branches` are those above, each with its number and its step."""
    steps = [*above, node]
    below = elements_below(node)
    if not below:
        places = tuple(place_of(steps, step) for _, step in branches)
        conjunction = path_predicates(steps)
        if branches and all(step.test == WILDCARD for step in steps):
            raise Unencodable("a branch without any tag is only a length")
        result.pieces.append(Piece(conjunction, tuple(number for number, _ in branches), places, part))
        return
    if len(below) == 1:
        _descend(below[0], steps, branches, part, result)
        return
    if len(below) > MOST_PARTS:
        raise Unencodable(f"a step with more than {MOST_PARTS} branches")
    number = len(result.branches)
    result.branches.append(Branch(branches[-1][0] if branches else -1, part, len(below)))
    for place, child in enumerate(below):
        _descend(child, steps, [*branches, (number, len(steps) - 1)], place, result)
