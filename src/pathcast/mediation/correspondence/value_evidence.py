"""Evidence of values: how alike the sample values of two nodes are.

    kind       their formats (`value_formats.py`): dates, codes, currencies, identifiers, texts
    overlap    values that both have; one that few nodes have counts more
    words      words that both have in their texts, in the same way
    shape      lengths, magnitudes of numbers, how often values recur
    frequency  in how many documents the node occurs, and how often in each

Invariant: each likeness is 0 to 1; where a node has no values, `has_values` is false and the likeness of a value is 0.
Cost: linear in the sample values, then nodes × nodes × kinds, and a sparse product for values and words in common.
"""

import re
from collections import Counter
from collections.abc import Sequence
from math import log

import numpy as np

from pathcast.extras import extra
from pathcast.kernels import Bools, Floats

from ..schemas.node_samples import NodeSamples
from .value_formats import KINDS, RELATED, value_format

_WORD = re.compile(r"[^\W\d_]{2,}")
# Nodes without samples have this.
_NONE = NodeSamples({})


class ValueEvidence:
    """Matrices of likeness between the nodes of two schemas."""

    def __init__(
        self, here: Sequence[NodeSamples | None], there: Sequence[NodeSamples | None], documents: tuple[int, int]
    ) -> None:
        profiles = [[_Profile(each or _NONE, count) for each in nodes]
                    for nodes, count in ((here, documents[0]), (there, documents[1]))]  # fmt: skip
        local, glob = profiles
        known = (
            np.array([bool(each.kinds.any()) for each in local]),
            np.array([bool(each.kinds.any()) for each in glob]),
        )
        self.has_values: Bools = known[0][:, None] & known[1][None, :]
        self.kind = _kinds_alike(local, glob) * self.has_values
        self.overlap, common = _shared([each.tokens for each in local], [each.tokens for each in glob])
        self.common = 1 - np.exp(-common / 4)
        self.words = _shared([each.words for each in local], [each.words for each in glob])[0]
        self.shape = _shapes_alike(local, glob) * self.has_values
        self.frequency = _alike([each.frequency for each in local], [each.frequency for each in glob], (2.0, 1.0))


class _Profile:
    """What the values of one node are like."""

    def __init__(self, samples: NodeSamples, documents: int) -> None:
        values = samples.values
        formats = list(map(value_format, values))
        self.kinds = np.zeros(len(KINDS))
        for each in formats:
            self.kinds[KINDS.index(each.kind)] += 1 / len(values)
        self.tokens = Counter(token for each in formats for token in each.tokens)
        self.words = Counter(word.casefold() for value in values for word in _WORD.findall(value))
        lengths = [log(1 + len(value)) for value in values] or [0.0]
        numbers = [
            log(1 + abs(float(token[2:])))
            for each in formats
            if each.kind in ("integer", "decimal", "measure")
            for token in each.tokens
            if len(token) < 20
        ] or [0.0]
        distinct = len(self.tokens) / len(values) if values else 0.0
        means = float(np.mean(lengths)), float(np.std(lengths)), float(np.mean(numbers)), float(np.std(numbers))
        self.shape = (*means, distinct)
        counts = [len(each) for each in samples.by_document.values()]
        self.frequency = (len(counts) / documents if documents else 0.0, log(1 + float(np.mean(counts or [0]))))


def _kinds_alike(here: list[_Profile], there: list[_Profile]) -> Floats:
    related = np.eye(len(KINDS))
    for (one, other), much in RELATED.items():
        related[KINDS.index(one), KINDS.index(other)] = related[KINDS.index(other), KINDS.index(one)] = much
    first, second = np.array([each.kinds for each in here]), np.array([each.kinds for each in there])
    norms = [np.sqrt(np.einsum("ij,jk,ik->i", each, related, each)) for each in (first, second)]
    product = first @ related @ second.T
    return np.asarray(product / np.maximum(1e-9, norms[0][:, None] * norms[1][None, :]))


def _shared(here: list[Counter[str]], there: list[Counter[str]]) -> tuple[Floats, Floats]:
    """Dice's coefficient of the distinct tokens of nodes, by weight, and the weight of those in common."""
    with extra("mediation"):
        from scipy.sparse import csr_array

    nodes = Counter(token for bag in (*here, *there) for token in bag)
    numbers = {token: at for at, token in enumerate(nodes)}
    weights = np.array([1 / (log(count) + 0.7) ** 2 for count in nodes.values()])

    def rows(bags: list[Counter[str]]) -> "csr_array":
        columns = [numbers[token] for bag in bags for token in bag]
        begins = np.concatenate([[0], np.cumsum([len(bag) for bag in bags])])
        return csr_array((np.ones(len(columns)), columns, begins), shape=(len(bags), max(1, len(numbers))))

    if not numbers:
        nothing = np.zeros((len(here), len(there)))
        return nothing, nothing
    first, second = rows(here), rows(there)
    common = (first * weights[None, :]) @ second.T
    both = np.asarray(common.todense())
    totals = (first @ weights)[:, None] + (second @ weights)[None, :]
    smaller = np.minimum((first @ weights)[:, None], (second @ weights)[None, :])
    dice, contained = 2 * both / np.maximum(1e-9, totals), both / np.maximum(1e-9, smaller)
    return np.asarray((dice + contained) / 2), both


def _shapes_alike(here: list[_Profile], there: list[_Profile]) -> Floats:
    return _alike([each.shape for each in here], [each.shape for each in there], (1.5, 1.0, 0.7, 0.5, 1.0))


def _alike(here: Sequence[tuple[float, ...]], there: Sequence[tuple[float, ...]], scales: tuple[float, ...]) -> Floats:
    """1 for equal measures, less the further they are apart."""
    first, second = np.array(here), np.array(there)
    apart = np.abs(first[:, None, :] - second[None, :, :]) * np.array(scales)
    return np.asarray(np.exp(-apart.sum(axis=2)))
