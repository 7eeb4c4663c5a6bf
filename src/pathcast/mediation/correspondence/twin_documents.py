"""Twins: documents that say the same in two schemas.

Where the same items exist in both forms, a few twins show what corresponds to what: nodes whose values agree document
by document. Twins are given by the caller, or found: two documents are twins if they have more rare values in common
than with any other document.

Invariant: a document has at most one twin.
Cost: documents × documents, then the values that twins have in common.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from math import log

import numpy as np

from pathcast.kernels import Floats

from ..schemas.node_samples import NodeSamples
from .value_formats import value_format

# Two documents are twins only if they have at least this share of their rare values in common.
_ALIKE = 0.25

Twins = Mapping[int, int]


def find_twins(here: Sequence[NodeSamples | None], there: Sequence[NodeSamples | None]) -> dict[int, int]:
    """The documents of both sides that have the most rare values in common."""
    bags = [_document_tokens(nodes) for nodes in (here, there)]
    frequency = Counter(token for side in bags for tokens in side.values() for token in tokens)
    alike: list[tuple[float, int, int]] = []
    for one, first in bags[0].items():
        for other, second in bags[1].items():
            rare = [1 / (frequency[token] - 1) for token in first & second if frequency[token] > 1]
            least = min(sum(1 / max(1, frequency[token] - 1) for token in tokens) for tokens in (first, second))
            if rare and sum(rare) >= _ALIKE * least and sum(rare) >= 2:
                alike.append((sum(rare), one, other))
    found: dict[int, int] = {}
    for _, one, other in sorted(alike, key=lambda each: -each[0]):
        if one not in found and other not in found.values():
            found[one] = other
    return found


def _document_tokens(nodes: Sequence[NodeSamples | None]) -> dict[int, set[str]]:
    """The tokens of each document that occur in few places."""
    found: dict[int, set[str]] = {}
    for node in nodes:
        for number, values in node.by_document.items() if node is not None else ():
            tokens = (token for value in values[:50] if value for token in value_format(value).tokens)
            found.setdefault(number, set()).update(token for token in tokens if len(token) > 4)
    return found


def twin_likeness(
    here: Sequence[NodeSamples | None], there: Sequence[NodeSamples | None], twins: Twins
) -> tuple[Floats, Floats]:
    """The share of values that agree in twins, and how much evidence that is."""
    agree = np.zeros((len(here), len(there)))
    numbers = dict(enumerate(twins.items()))
    first = [_by_twin(node, [one for one, _ in numbers.values()]) for node in here]
    second = [_by_twin(node, [other for _, other in numbers.values()]) for node in there]
    values = np.zeros((len(here), len(there)))
    places: dict[tuple[int, str], list[int]] = {}
    for column, bags in enumerate(second):
        for twin, bag in bags.items():
            for token in bag:
                places.setdefault((twin, token), []).append(column)
    rarity = {key: 1 / (1 + log(len(columns))) for key, columns in places.items()}
    for row, bags in enumerate(first):
        for twin, bag in bags.items():
            for token, count in bag.items():
                for column in places.get((twin, token), ()):
                    both = min(count, second[column][twin][token])
                    agree[row, column] += both
                    values[row, column] += both * rarity[twin, token]
    totals = [np.array([sum(sum(bag.values()) for bag in bags.values()) for bags in side]) for side in (first, second)]
    share = 2 * agree / np.maximum(1, totals[0][:, None] + totals[1][None, :])
    return np.asarray(share), np.asarray(1 - np.exp(-values / 2))


def _by_twin(node: NodeSamples | None, documents: list[int]) -> dict[int, Counter[str]]:
    found: dict[int, Counter[str]] = {}
    for number, document in enumerate(documents):
        values = node.by_document.get(document, ()) if node is not None else ()
        bag = Counter(value_format(value).tokens[-1] for value in values if value)
        if bag:
            found[number] = bag
    return found
