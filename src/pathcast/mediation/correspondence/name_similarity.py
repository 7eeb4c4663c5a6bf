"""Similarity of names: their words, abbreviations, spellings and synonyms, and those of the names around them.

A name is split into words at case, digits and signs: `UnitOfMeasure` is unit, measure. Two words are alike if they are
equal, synonyms (`synonym_dictionary.py`), one an abbreviation of the other, or spelt nearly alike (rapidfuzz). A word
that many names of a schema have, such as `Trade` in a trade document, counts less than one that few have.

    name     the words of the node
    context  the words of the whole path, those further up counting less: seller/address/city is not buyer/address/city

Invariant: likeness is 0 to 1, and 1 for equal names.
Cost: distinct words × distinct words, then words × nodes.
"""

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np

from pathcast.documents import local_part
from pathcast.extras import extra
from pathcast.kernels import Floats

from ..schemas.schema_tree import steps_of
from .synonym_dictionary import SynonymDictionary

_WORD = re.compile(r"[A-Z]{2,}s(?![a-z])|[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+")
_IDLE = frozenset({"of", "the", "and", "for", "in", "by", "to", "a"})
# Spellings that are less alike than this have nothing in common.
_SPELLING = 0.8
_ABBREVIATION, _SUBSEQUENCE = 0.85, 0.6
# What the words of a parent count beside those of its child.
_UPWARDS = 0.6


def words_of(name: str) -> tuple[str, ...]:
    """The words of a name, in lower case and in the singular.

    >>> words_of("{urn:x}buyersItemIDs")
    ('buyer', 'item', 'id')
    """
    found = [_singular(word.lower()) for word in _WORD.findall(local_part(name))]
    return tuple(word for word in found if word not in _IDLE) or tuple(found) or (name,)


def _singular(word: str) -> str:
    if word == "ids":
        return "id"
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


class NameSimilarity:
    """The similarity of the names of two lists of paths."""

    def __init__(self, here: Sequence[str], there: Sequence[str], synonyms: SynonymDictionary) -> None:
        self._here, self._there = ([_words_upwards(path) for path in paths] for paths in (here, there))
        vocabularies = [sorted({word for path in paths for step in path for word in step})
                        for paths in (self._here, self._there)]  # fmt: skip
        self._numbers = [{word: at for at, word in enumerate(words)} for words in vocabularies]
        self._alike = word_likeness(vocabularies[0], vocabularies[1], synonyms)
        self._weights = [
            _weights(paths, numbers) for paths, numbers in zip((self._here, self._there), self._numbers, strict=True)
        ]

    def names(self) -> Floats:
        """The likeness of the nodes' own names."""
        return self._likeness(1, 0.0)

    def contexts(self) -> Floats:
        """The likeness of the names on the whole paths."""
        return self._likeness(99, _UPWARDS)

    def _likeness(self, levels: int, upwards: float) -> Floats:
        bags = [
            self._bags(paths, numbers, weights, levels, upwards)
            for paths, numbers, weights in zip((self._here, self._there), self._numbers, self._weights, strict=True)
        ]
        forth = _covered(bags[0], bags[1], self._alike)
        back = _covered(bags[1], bags[0], self._alike.T)
        totals = bags[0].sum(axis=1)[:, None], bags[1].sum(axis=1)[None, :]
        return np.asarray((forth + back.T) / np.maximum(1e-9, totals[0] + totals[1]))

    @staticmethod
    def _bags(
        paths: list[list[tuple[str, ...]]], numbers: dict[str, int], weights: Floats, levels: int, upwards: float
    ) -> Floats:
        """A row per path: the weight of each word, that of its nearest occurrence."""
        bags = np.zeros((len(paths), len(numbers)))
        for row, path in enumerate(paths):
            for up, step in enumerate(path[:levels]):
                for word in step:
                    at = numbers[word]
                    bags[row, at] = max(bags[row, at], weights[at] * upwards**up)
        return bags


def _words_upwards(path: str) -> list[tuple[str, ...]]:
    return [words_of(step.removeprefix("@")) for step in reversed(steps_of(path))]


def _weights(paths: list[list[tuple[str, ...]]], numbers: dict[str, int]) -> Floats:
    """Words that few nodes have count most."""
    counts = Counter(word for path in paths for word in set(path[0]))
    weights = np.ones(len(numbers))
    for word, at in numbers.items():
        weights[at] = np.log(1 + len(paths) / max(1, counts[word]))
    return weights


def _covered(bags: Floats, others: Floats, alike: Floats) -> Floats:
    """The weight of the words of each path here that a path there has, too."""
    best = np.zeros((alike.shape[0], others.shape[0]))
    for column, row in enumerate(others):
        has = np.flatnonzero(row)
        if len(has):
            best[:, column] = alike[:, has].max(axis=1)
    return np.asarray(bags @ best)


def word_likeness(first: Sequence[str], second: Sequence[str], synonyms: SynonymDictionary) -> Floats:
    """The likeness of each word with each other one."""
    with extra("mediation"):
        from rapidfuzz.distance import JaroWinkler
        from rapidfuzz.process import cdist

    spelt = cdist(first, second, scorer=JaroWinkler.similarity, dtype=np.float64)
    alike = np.where(spelt >= _SPELLING, (spelt - _SPELLING) / (1 - _SPELLING) * 0.8, 0.0)
    groups = [[synonyms.groups(word) for word in words] for words in (first, second)]
    for row, one in enumerate(first):
        for column, other in enumerate(second):
            if one == other:
                alike[row, column] = 1.0
            elif common := groups[0][row].keys() & groups[1][column].keys():
                each = max(groups[0][row][group] * groups[1][column][group] for group in common)
                alike[row, column] = max(alike[row, column], each)
            else:
                alike[row, column] = max(alike[row, column], _shortened(one, other))
    return np.asarray(alike)


def _shortened(one: str, other: str) -> float:
    """Whether one word is an abbreviation of the other."""
    short, long = sorted((one, other), key=len)
    if len(short) < 2 or short[0] != long[0] or len(long) - len(short) < 2 or not short.isalpha():
        return 0.0
    if len(short) >= 3 and long.startswith(short):
        return _ABBREVIATION
    letters = iter(long)
    return _SUBSEQUENCE if len(short) >= 3 and all(letter in letters for letter in short) else 0.0
