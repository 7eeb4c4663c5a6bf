"""Twigs: patterns with predicates, split into rows of the substring table.

XTrie (Chan et al., ICDE 2002): a tree pattern is covered by maximal wildcard-free substrings. A row ends where the
pattern branches, where values are tested, before `*` and `//`, and at its leaves; its substring extends back as far as
`/` alone connects names, across branches, too:

    /a/b[c/d][@k]//e      ab (level 2; @k) ─┬─ abcd (2 levels below)
                                            └─ e    (1 or more levels below)

The path to the first row that branches or tests is a plain path (`base`), which shares the rows of plain paths.
A `*` that branches or tests is a row with the empty substring; so is one that ends a branch. `[.//@k]` is a branch,
too: a row with the empty substring at the element itself or anywhere below, which tests the attribute.

Left to the default engine's verifier: `or`, `not`, absolute paths in predicates, tests on the first node of a path,
patterns that begin with an attribute or text, and nodes with more branches than a word has bits.
"""

from collections.abc import Sequence
from typing import NamedTuple

from pathcast.matching.automaton.values import gate
from pathcast.patterns import Condition, Node, Pattern
from pathcast.patterns.parsing import PathEncoder, Steps

from ..streaming.value_tests import Selections, branches, is_conjunctive, is_selection
from .table_and_stack_layout_kernels import MOST_BRANCHES

NONE = -1
_HERE_OR_BELOW = 1  # a reach of 0 levels or more
Symbols = tuple[int, ...]


class TwigRow(NamedTuple):
    """A row: its entry, its substring, how far it is below the row above, and what it needs and gives."""

    entry: int
    substring: Symbols
    reach: int  # levels below the row above or the base, doubled, plus 1 if it may be more
    above: int
    base: int  # for the highest row the number of its base path, otherwise NONE
    credit: int
    needs: int
    early: int
    late: int
    late_end: int


class _Place(NamedTuple):
    """The state of a walk down a pattern: after a node, with the steps that are not yet in a row."""

    steps: Steps = ()  # from the document
    base: Steps = ()
    run: Symbols = ()  # of names that lead here, connected by `/`
    reach: int = 0
    above: int = NONE
    credit: int = 0


class Twigs:
    """The growing rows of all patterns with predicates, and the paths that lead to them and to delegated patterns."""

    def __init__(self, encoder: PathEncoder) -> None:
        self.encoder = encoder
        self.selections = Selections(encoder.names)
        self.rows: list[TwigRow] = []
        self.selects: list[int] = []
        self.bases: list[Steps] = []
        self.delegated: list[int] = []
        self.gates: list[Steps] = []
        self._base_numbers: dict[Steps, int] = {}

    def add(self, entry: int, pattern: Pattern) -> None:
        """Add a pattern."""
        anonymous = bool(pattern.expression) and not pattern.names  # such as /*, which is no twig
        if is_conjunctive(pattern) and pattern.root is not None and not anonymous and _fits(pattern.root):
            self._descend(entry, pattern.root, _Place())
        else:
            self.gates.append(gate(pattern, self.encoder))
            self.delegated.append(entry)

    def _descend(self, entry: int, node: Node, place: _Place) -> None:
        """Add the rows of a node and of its descendants, each after the row above it."""
        while True:
            step = self.encoder.step(node)
            symbol, deep = step >> 1, step & 1
            goes_on = symbol > 0 and not deep
            if place.run and not goes_on and place.reach:
                place = self._closed(entry, place)
            run = (*place.run, symbol) if goes_on else (symbol,) if symbol else ()
            place = place._replace(steps=(*place.steps, step), run=run, reach=(place.reach + 2) | deep)
            below = branches(node)
            if len(below) != 1 or len(below) < len(node.conditions):
                break
            node = below[0]
        attributes = _attributes_inside(node)
        tests = [part for part in node.conditions if is_selection(part) and part not in attributes]
        number = self._row(entry, place, len(below) + len(attributes), tests)
        for credit, branch in enumerate(below):
            self._descend(entry, branch, _Place(place.steps, (), run, 0, number, credit))
        for credit, attribute in enumerate(attributes, len(below)):
            own = Node("/", attribute.test, attribute.conditions)
            self._row(entry, _Place(reach=_HERE_OR_BELOW, above=number, credit=credit), 0, [own])

    def _closed(self, entry: int, place: _Place) -> _Place:
        """The state after the run that ends here: the run becomes a row, or the base if there is no row above."""
        if place.above == NONE:
            return place._replace(base=place.steps, reach=0)
        number = self._row(entry, place, 1, [])
        return place._replace(reach=0, above=number, credit=0)

    def _row(self, entry: int, place: _Place, needs: int, tests: Sequence[Condition]) -> int:
        numbers = [self.selections.number(test) for test in tests]
        late = [number for number in numbers if self.selections.is_late(number)]
        begin = len(self.selects)
        self.selects += [number for number in numbers if number not in late] + late
        end = len(self.selects)
        base = NONE
        if place.above == NONE:
            base = self._base_numbers.setdefault(place.base, len(self.bases))
            if base == len(self.bases):
                self.bases.append(place.base)
        tested = (begin, end - len(late), end)
        self.rows.append(TwigRow(entry, place.run, place.reach, place.above, base, place.credit, needs, *tested))
        return len(self.rows) - 1


def _attributes_inside(node: Node) -> list[Node]:
    """The attributes that are demanded of an element or of any element inside."""
    return [part for part in node.conditions if isinstance(part, Node) and part.is_attribute and part.axis == "//"]


def _fits(root: Node) -> bool:
    """Whether no node has more branches than a word has bits."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        below = branches(node)
        if len(below) + len(_attributes_inside(node)) > MOST_BRANCHES:
            return False
        waiting += below
    return True
