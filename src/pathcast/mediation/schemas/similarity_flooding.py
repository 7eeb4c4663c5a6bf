"""Correspondences by similarity flooding over two schema trees, seeded with the similarity of names.

Each pair of a local and a global node (elements and attributes) has a similarity, initially that of their names and
kinds. Then it *floods*: in each round a pair passes a share of its similarity to the pair of its parents and to the
pairs of its children, so that `lecturer` and `instructor`, whose names differ, gain from the similarity of
their parents and children. In the end pairs are chosen one by one, the best first, each node once.

A pair that no operator can produce is dropped, and the choice is repeated without it.

Confidence is the lead of a pair over the next best pair of its nodes, times its similarity. Pairs below `least` are
dropped: `Mapping.check` reports a missing pair, but nothing would reveal a wrong one.

Invariant: a correspondence is one to one, and an element is never made an attribute. Same input, same answer.
Cost: rounds × nodes × nodes; two trees of 50 nodes take some milliseconds.
Not done: comparing values; lists of synonyms.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from pathcast.documents import local_part
from pathcast.kernels import Floats, Int64s

from ..mappings.operator_derivation import check_correspondence, derive
from .schema_tree import SchemaTree, is_attribute, name_of, parent_of

Likeness = Floats

_ROUNDS = 40
# How often pairs are chosen again.
_CHOICES = 20
# Pairs that have changed by less than this have settled.
_SETTLED = 1e-4
# How much a pair of nodes of different kinds (with text, or with children, or neither) keeps of its names' likeness.
_OTHER_KIND = 0.4
# The similarity of two names that have nothing in common.
_NOTHING = 0.02
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+")


@dataclass(frozen=True, slots=True)
class Pair:
    """A local node, the corresponding global node, and the confidence, from 0 to 1."""

    local: str
    glob: str
    confidence: float


def correspond(
    local: SchemaTree, glob: SchemaTree, *, known: Mapping[str, str] | None = None, least: float = 0.01
) -> list[Pair]:
    """The correspondence, in the order of the local tree; `known` pairs are fixed."""
    here, there = nodes_of(local), nodes_of(glob)
    fixed = dict(known or {})
    check_correspondence(local, glob, fixed)
    likeness = _flooded(_seeds(local, glob, here, there, fixed), _parents(here), _parents(there))
    likeness *= _possible(here, there)
    for _ in range(_CHOICES):
        chosen = _chosen(likeness, here, there, fixed)
        unexplained = derive(local, glob, {pair.local: pair.glob for pair in chosen}).unexplained
        strange = [pair for pair in chosen if pair.local in unexplained and pair.local not in fixed]
        if not strange:
            break
        for pair in strange:
            likeness[here.index(pair.local), there.index(pair.glob)] = 0
    return [pair for pair in chosen if pair.local in fixed or pair.confidence >= least]


def nodes_of(tree: SchemaTree) -> list[str]:
    """All nodes of a tree, attributes right after their elements."""
    return [
        found
        for path, node in tree.paths.items()
        for found in (path, *(f"{path}/@{attribute}" for attribute in node.attributes))
    ]


# Names.


def name_likeness(one: str, other: str) -> float:
    """The similarity of two names, from 0 to 1: common words, abbreviations, trigrams."""
    first, second = _words(one), _words(other)
    if first == second:
        return 1.0
    alike = _word_likeness(first, second)
    return max(alike, _pieces("".join(first), "".join(second)))


def _words(name: str) -> tuple[str, ...]:
    return tuple(_singular(word.lower()) for word in _WORD.findall(local_part(name))) or (name,)


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def _word_likeness(first: tuple[str, ...], second: tuple[str, ...]) -> float:
    """The mean of what each word finds best on the other side."""
    best = [max(_same_word(word, other) for other in second) for word in first]
    back = [max(_same_word(word, other) for other in first) for word in second]
    return (sum(best) + sum(back)) / (len(best) + len(back))


def _same_word(one: str, other: str) -> float:
    if one == other:
        return 1.0
    short, long = sorted((one, other), key=len)
    if len(short) >= 2 and long.startswith(short):
        return 0.9
    if len(short) >= 2 and long[0] == short[0] and _is_inside(short, long):
        return 0.7
    return 0.0


def _is_inside(short: str, long: str) -> bool:
    """Whether the letters of an abbreviation come in a word, in their order."""
    letters = iter(long)
    return all(letter in letters for letter in short)


def _pieces(one: str, other: str) -> float:
    """Dice's coefficient of the pieces of three letters."""
    first, second = ({f" {text} "[k : k + 3] for k in range(len(text))} for text in (one, other))
    return 2 * len(first & second) / max(1, len(first) + len(second))


# Likeness.


def _seeds(
    local: SchemaTree, glob: SchemaTree, here: list[str], there: list[str], known: Mapping[str, str]
) -> Likeness:
    seeds = np.empty((len(here), len(there)))
    kinds = [_kind(local, path) for path in here], [_kind(glob, path) for path in there]
    for row, path in enumerate(here):
        for column, other in enumerate(there):
            alike = max(_NOTHING, name_likeness(name_of(path), name_of(other)))
            seeds[row, column] = alike * (1.0 if kinds[0][row] == kinds[1][column] else _OTHER_KIND)
    for path, other in known.items():
        row, column = here.index(path), there.index(other)
        seeds[row, :] = seeds[:, column] = 0
        seeds[row, column] = 1
    return seeds


def _kind(tree: SchemaTree, path: str) -> str:
    """The kind of content of a node: a value, other elements, or nothing. An attribute is a value."""
    if is_attribute(path):
        return "value"
    node = tree[path]
    if node.children:
        return "elements"
    return "value" if node.has_text else "empty"


def _parents(nodes: list[str]) -> Int64s:
    places = {path: at for at, path in enumerate(nodes)}
    return np.array([places.get(parent_of(path), -1) for path in nodes])


def _flooded(seeds: Likeness, up: Int64s, over: Int64s) -> Likeness:
    """The likeness that is left unchanged when it floods, but for a factor."""
    children, others = _shares(up), _shares(over)
    likeness = seeds.copy()
    for _ in range(_ROUNDS):
        given = seeds + likeness
        # To the pair of the parents, the mean of what the children's pairs are for their best partners; to the pairs
        # of the children, an equal share each.
        upwards = children @ _best(given, others) @ others.T
        downwards = children.T @ given @ others
        found = given + upwards + downwards
        found /= found.max()
        change = np.abs(found - likeness).max()
        likeness = found
        if change < _SETTLED:
            break
    return likeness


def _shares(parents: Int64s) -> Likeness:
    """A row for each parent, with an equal share for each of its children."""
    shares = np.zeros((len(parents), len(parents)))
    below = np.flatnonzero(parents >= 0)
    shares[parents[below], below] = 1
    counts = shares.sum(axis=1, keepdims=True)
    return np.asarray(shares / np.maximum(counts, 1))


def _best(given: Likeness, others: Likeness) -> Likeness:
    """Likeness that is the best of its row among siblings counts in full, any other by the square."""
    top = np.zeros_like(given)
    for family in others > 0:  # those of one parent
        if family.any():
            top[:, family] = given[:, family].max(axis=1, keepdims=True)
    return np.asarray(np.where(given >= top, given, given * given / np.maximum(top, 1e-12)))


def _possible(here: list[str], there: list[str]) -> Likeness:
    """0 where an element would have to become an attribute, or a root something below, or the other way round."""
    attributes = np.array([[is_attribute(path)] for path in here]), np.array([is_attribute(path) for path in there])
    return np.where(~attributes[0] & attributes[1][None, :], 0.0, 1.0)


def _chosen(likeness: Likeness, here: list[str], there: list[str], known: Mapping[str, str]) -> list[Pair]:
    """Pairs, the best first, each node once."""
    left = likeness.copy()
    confidence: dict[int, tuple[int, float]] = {}
    for path, other in known.items():
        row, column = here.index(path), there.index(other)
        confidence[row] = column, 1.0
        left[row, :] = left[:, column] = 0
    while left.any():
        row, column = divmod(int(left.argmax()), left.shape[1])
        score = left[row, column]
        rest = left[row, :].copy(), left[:, column].copy()
        rest[0][column] = rest[1][row] = 0
        ahead = 1 - max(rest[0].max(), rest[1].max()) / score
        confidence[row] = column, float(min(1.0, score * (0.5 + ahead / 2)))
        left[row, :] = left[:, column] = 0
    return [
        Pair(path, there[confidence[row][0]], confidence[row][1]) for row, path in enumerate(here) if row in confidence
    ]
