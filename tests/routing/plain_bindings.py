"""Bindings by definition: every embedding of an aggregate in a document, as the reference engine would find them."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice, product

import numpy as np

from pathcast.documents import Document
from pathcast.matching.reference.pattern_embedding import DOCUMENT, Embedding, Place
from pathcast.patterns import Pattern
from pathcast.routing.annotations.wildcard_substitution import Bindings, Labels, Wildcards

MOST_BINDINGS = 4
_TRIED = 64  # embeddings tried for one aggregate and one label path or document


def document_bindings(
    pattern: Pattern,
    wanted: Iterable[int],
    document: Document,
    same_name: Callable[[int, str], bool],
    label: Callable[[int], str],
    most: int = MOST_BINDINGS,
) -> list[Bindings]:
    """The distinct bindings of the wanted wildcards of a pattern in a document; none if it does not match.

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
        """Whether a wanted wildcard is at this step or below."""
        here = {self.wildcards.descendant[place], self.wildcards.star[place]} & self.wanted
        return bool(here) or any(self._is_asked(below) for below in self.wildcards.below[place])

    def ways(self) -> Iterator[Bindings]:
        """The bindings of every embedding of the pattern in the document."""
        if self.wildcards.nodes:
            for found in self._below(0, DOCUMENT):
                yield tuple(sorted(found))

    def _below(self, place: int, context: Place) -> Iterator[Bindings]:
        """The bindings of a step and of the steps below it, under a node of the document."""
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
