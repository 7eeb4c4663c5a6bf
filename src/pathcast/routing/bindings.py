"""Finding bindings: what the wildcards of a simple aggregate stand for in a document (§4.1, the online step).

Of an aggregate that is a single way down (absolute paths in its predicates apart, which hold for the whole document or
not), bindings follow from label paths alone: `/a/*//d` occurs at the element with the path a/b/c/d with `*` for b and
`//` for c. So they can be worked out once for a label path and be remembered (`SpineBindings`). Any other aggregate
has to be laid over the elements of the document (`document_bindings`), where all its branches and values have to hold
for the same elements.

Several bindings are found, not the first only: Example 3.1 of the paper loses a match by giving one.

Invariant: if a document matches the aggregate, and has an element with the label path, it matches the aggregate with
the wildcards bound so: `bound(aggregate, bindings)`.
Cost: for a label path some microseconds for each aggregate that ends like it; for a document as much as the reference
engine takes for the aggregate, and `most` times its steps.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import islice, product

import numpy as np

from ..documents import Document
from ..matching.reference.embedding import DOCUMENT, Embedding, Place
from ..patterns import Pattern
from ..patterns.model import WILDCARD, Node, Root
from .wildcards import Bindings, Labels, Wildcards

MOST_BINDINGS = 4
_TRIED = 64  # ways looked at for one aggregate and one label path or document


class Spine:
    """A pattern that is a single way down, so that label paths tell how it occurs."""

    def __init__(self, pattern: Pattern, wanted: Iterable[int]) -> None:
        self.wildcards = Wildcards(pattern)
        self.wanted = frozenset(wanted)

    @staticmethod
    def fits(pattern: Pattern) -> bool:
        """Whether a pattern is one."""
        node = pattern.root
        while node is not None:
            if not node.is_element:
                return False
            below = [each for each in node.conditions if not isinstance(each, Root)]
            if len(below) > 1 or (below and not isinstance(below[0], Node)):
                return False
            node = below[0] if below and isinstance(below[0], Node) else None
        return pattern.root is not None

    @property
    def end(self) -> str:
        """The last step's test."""
        return self.wildcards.nodes[-1].test

    def at(self, labels: Labels, most: int = MOST_BINDINGS) -> list[Bindings]:
        """How the pattern occurs with its last step at an element with this label path: different bindings."""
        found: dict[Bindings, None] = {}
        for ends in islice(self._ways(len(self.wildcards.nodes) - 1, len(labels) - 1, labels), _TRIED):
            found[self._bindings(ends, labels)] = None
            if len(found) >= most:
                break
        return list(found)

    def _ways(self, step: int, place: int, labels: Labels) -> Iterator[tuple[int, ...]]:
        """The places of the steps up to `step`, which stands at `place`."""
        node = self.wildcards.nodes[step]
        if place < step or (node.test not in (WILDCARD, labels[place])):
            return
        if step == 0:
            if node.axis == "//" or place == 0:
                yield (place,)
            return
        for above in range(place - 1, step - 2 if node.axis == "//" else place - 2, -1):
            for before in self._ways(step - 1, above, labels):
                yield (*before, place)

    def _bindings(self, places: tuple[int, ...], labels: Labels) -> Bindings:
        found = []
        before = -1
        for step, place in enumerate(places):
            if self.wildcards.descendant[step] in self.wanted:
                found.append((self.wildcards.descendant[step], labels[before + 1 : place]))
            if self.wildcards.star[step] in self.wanted:
                found.append((self.wildcards.star[step], (labels[place],)))
            before = place
        return tuple(found)


class SpineBindings:
    """Many aggregates that are single ways down, by number; finds those that occur at a label path, with bindings."""

    def __init__(self, aggregates: Iterable[tuple[int, Pattern, Iterable[int]]]) -> None:
        self._by_end: dict[str, list[tuple[int, Spine]]] = defaultdict(list)
        for number, pattern, wanted in aggregates:
            if Spine.fits(pattern):
                spine = Spine(pattern, wanted)
                self._by_end[spine.end].append((number, spine))

    def at(self, labels: Labels, most: int = MOST_BINDINGS) -> list[tuple[int, Bindings]]:
        """The aggregates that end at this label path, each with every different binding, up to `most`."""
        ending = [*self._by_end.get(labels[-1], ()), *self._by_end.get(WILDCARD, ())]
        return [(number, bindings) for number, spine in ending for bindings in spine.at(labels, most)]


def document_bindings(
    pattern: Pattern,
    wanted: Iterable[int],
    document: Document,
    same_name: Callable[[int, str], bool],
    label: Callable[[int], str],
    most: int = MOST_BINDINGS,
) -> list[Bindings]:
    """How a pattern occurs in a document: different bindings of the wanted wildcards; none where it does not match.

    `same_name(a, b)`: whether the document's name number `a` is the pattern's name `b`; `label(a)` is that name as
    patterns write it.
    """
    laid = _Laid(Wildcards(pattern), frozenset(wanted), Embedding(document, same_name), label)
    found: dict[Bindings, None] = {}
    for bindings in islice(laid.ways(), _TRIED):
        found[bindings] = None
        if len(found) >= most:
            break
    return list(found)


class _Laid:
    def __init__(
        self, wildcards: Wildcards, wanted: frozenset[int], embedding: Embedding, label: Callable[[int], str]
    ) -> None:
        self.wildcards, self.wanted, self.embedding, self.label = wildcards, wanted, embedding, label
        self._asked = [self._is_asked(place) for place in range(len(wildcards.nodes))]

    def _is_asked(self, place: int) -> bool:
        """Whether a wanted wildcard stands at this step or below."""
        here = {self.wildcards.descendant[place], self.wildcards.star[place]} & self.wanted
        return bool(here) or any(self._is_asked(below) for below in self.wildcards.below[place])

    def ways(self) -> Iterator[Bindings]:
        """The bindings of every way to lay the pattern over the document."""
        if self.wildcards.nodes:
            for found in self._below(0, DOCUMENT):
                yield tuple(sorted(found))

    def _below(self, place: int, context: Place) -> Iterator[Bindings]:
        """The bindings of a step and of those below it, under a node of the document."""
        node = self.wildcards.nodes[place]
        for target in self.embedding.reached(node, context):
            if not self.embedding.satisfies(node, target):
                continue
            if not self._asked[place]:
                yield ()
                return
            branches = [list(islice(self._below(below, target), _TRIED)) for below in self.wildcards.below[place]]
            here = self._here(place, context, target)
            for parts in product(*branches):
                yield (*here, *(each for part in parts for each in part))

    def _here(self, place: int, context: Place, target: Place) -> Bindings:
        """The bindings of one step."""
        found: list[tuple[int, Labels]] = []
        labels = self._labels(context, target)
        if self.wildcards.descendant[place] in self.wanted:
            found.append((self.wildcards.descendant[place], labels[:-1] if target.kind == "element" else labels))
        if self.wildcards.star[place] in self.wanted:
            found.append((self.wildcards.star[place], labels[-1:]))
        return tuple(found)

    def _labels(self, context: Place, target: Place) -> Labels:
        """The labels below `context` down to the element that `target` is or belongs to."""
        batch, element = self.embedding.batch, target.at
        if target.kind == "attribute":
            element = int(np.searchsorted(batch.attribute_begin, target.at, side="right")) - 1
        elif target.kind == "text":
            element = int(batch.text_parent[target.at])
        labels: list[str] = []
        while element != context.at and element >= 0:
            labels.append(self.label(int(batch.name[element])))
            element = int(batch.parent[element])
        return tuple(reversed(labels))
