"""Rounds of patterns and documents that many tests ask the same of; lxml says what matches."""

import functools
from random import Random

from pathcast.patterns import Pattern, parse
from tests import oracle
from tests.generators.documents import NAMESPACES, random_document, varied
from tests.generators.expressions import expression
from tests.generators.patterns import random_pattern


class Round:
    """Patterns, documents, and for each pattern the documents that match it."""

    def __init__(self, seed: int, count: int, documents: int = 6, variants: int = 5) -> None:
        random = Random(seed)
        bases = [random_document(random, size=14) for _ in range(documents)]
        drawn = [varied(random, base) for base in bases for _ in range(variants)]
        self.documents = [document.data for document in drawn]
        self.trees = [oracle.read(data) for data in self.documents]
        self.patterns: list[Pattern] = []
        self.matched: list[set[int]] = []
        for _ in range(count):
            text = expression(random_pattern(random, random.choice(self.trees).getroot()))
            self.patterns.append(parse(text, NAMESPACES))
            self.matched.append(self._matches(text))

    def _matches(self, text: str) -> set[int]:
        question = oracle.ask(text, NAMESPACES)
        return {number for number, tree in enumerate(self.trees) if oracle.answer(question, tree)}

    def asked(self, pattern: Pattern) -> set[int]:
        """The documents that match a pattern that was made from others; names in namespaces get their prefixes."""
        text = str(pattern)
        for prefix, uri in NAMESPACES.items():
            text = text.replace(f"Q{{{uri}}}", f"{prefix}:")
        text = text.replace("Q{http://www.w3.org/XML/1998/namespace}", "xml:")
        return self._matches(text) if text != "/" else set(range(len(self.trees)))


@functools.lru_cache(maxsize=8)
def drawn(seed: int, count: int = 60, documents: int = 6) -> Round:
    """The round of a seed; the same one for all who ask."""
    return Round(seed, count, documents)
