"""Decomposition: a pattern with branches as paths, and the joins of their matches on shared nodes.

    /a[b]/c[d]//e       paths      /a/b   /a/c/d   /a/c//e
                        branches   a: b, c       c: d, e  (inside a's second)

A path that matches in a publication binds each of its steps to an element. A branch holds at an element if every one of
its parts does: a path that ends below it, or the next branch. The elements of all branches above count too, so that
`//a[b]//c[d][e]` demands d, e and b of one and the same a. Section 3.1.4 of the paper leaves this to "a scheme similar
to" YFilter's; joining on bindings is that scheme, but while the document is read and not afterwards.

An absolute path inside a predicate is one more path, and the document is the branch that joins them.

A branch is found in a publication by a tag of the path and a number of steps from it (`step_positions.py`). A `*`
between two `//` has no fixed position, so such a branch cannot be encoded (`Unencodable`).
"""

from dataclasses import dataclass, field

from pathcast.patterns import Node, Pattern

from ..streaming.pattern_binding_buffers import MOST_PARTS
from .step_positions import Place, Unencodable, place_of
from .xpath_as_boolean_predicates import Predicate, elements_below, path_predicates, roots_in


@dataclass(slots=True)
class Branch:
    """A node with several parts: the branch above it (-1: none), its part number there, and its number of parts."""

    above: int
    part: int
    parts: int


@dataclass(slots=True)
class Piece:
    """A path of the pattern: its predicates, the branches along it with their places, and its part of the last one."""

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
    """Split a pattern; `Unencodable` if predicates cannot express a part of it."""
    result = Decomposition()
    if pattern.root is None:
        result.pieces.append(Piece(path_predicates(()), (), (), 0))
    else:
        tops = [pattern.root]
        for top in tops:  # grows during the loop
            tops += [root for root in _absolute(top) if root not in tops]
        _branch(tops, [], [], 0, result)
    return result


def _absolute(top: Node) -> list[Node]:
    """The absolute paths in predicates of a tree of elements."""
    nodes, found = [top], []
    for node in nodes:  # grows during the loop
        found += roots_in(node)
        nodes += elements_below(node)
    return found


def _branch(
    below: list[Node], steps: list[Node], branches: list[tuple[int, int]], part: int, result: Decomposition
) -> None:
    """Continue below a step, or below the document; with several parts, it is a branch."""
    if len(below) > MOST_PARTS:
        raise Unencodable(f"a step has {len(below):,} branches; at most {MOST_PARTS} can be encoded")
    if len(below) > 1:
        number = len(result.branches)
        result.branches.append(Branch(branches[-1][0] if branches else -1, part, len(below)))
        branches = [*branches, (number, len(steps) - 1)]
    for place, child in enumerate(below):
        _descend(child, steps, branches, place if len(below) > 1 else part, result)


def _descend(node: Node, above: list[Node], branches: list[tuple[int, int]], part: int, result: Decomposition) -> None:
    """Follow the pattern down; `branches` are those above, each with its number and its step."""
    steps = [*above, node]
    below = elements_below(node)
    if below:
        _branch(below, steps, branches, part, result)
        return
    places = tuple(place_of(steps, step) for _, step in branches)
    result.pieces.append(Piece(path_predicates(steps), tuple(number for number, _ in branches), places, part))
