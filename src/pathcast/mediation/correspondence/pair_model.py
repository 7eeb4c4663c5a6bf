"""The model that turns the evidence for a pair into a score: the logarithm of the odds that the pair is right.

A score is a weighted sum of features, a logistic model. There is one for leaves with values, one for leaves without,
one for groups, each before and after the structure is known. The weights are fitted on pairs of real formats; the
experiment `mediation-correspondence` fits them on some domains and reports on the others.

Invariant: weights are data (`pair_weights.toml`); a score depends on the features of its pair alone.
"""

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import numpy as np

from pathcast.kernels import Bools, Floats

from .pair_evidence import PairEvidence

Features = Mapping[str, Floats]
Weights = Mapping[str, Mapping[str, float]]
STRUCTURE = ("above", "beside", "below")
_IMPOSSIBLE = -30.0
_FILE = Path(__file__).with_name("pair_weights.toml")

_NAMES = ("name", "context", "parent", "frequency", "documentation", "name × context", "same construct")
_VALUES = (
    *_NAMES, "kind", "overlap", "overlap × common", "words", "shape", "name × kind", "context × kind",
    "kind × shape", "has twins", "twins", "twins × twin values", "twins × context",
)  # fmt: skip
# The features of each model.
MODELS: dict[str, tuple[str, ...]] = {
    "values": _VALUES,
    "names": _NAMES,
    "groups": _NAMES,
    "values in place": (*_VALUES, "above", "beside", "context × above", "kind × above"),
    "names in place": (*_NAMES, "above", "beside", "context × above"),
    "groups in place": (*_NAMES, "above", "beside", "below", "context × below"),
}


@cache
def known_weights() -> Weights:
    """The weights that Pathcast brings."""
    found: Weights = tomllib.loads(_FILE.read_text(encoding="utf-8"))
    return found


def scores(evidence: PairEvidence, weights: Weights, structure: Features | None = None) -> Floats:
    """The score of each pair."""
    suffix = "" if structure is None else " in place"
    features = {**evidence.features, **(structure or {})}
    has_values = features["has values"] > 0
    leaf = np.where(has_values, score(features, weights[f"values{suffix}"]), score(features, weights[f"names{suffix}"]))
    group = score(features, weights[f"groups{suffix}"])
    found = np.maximum(np.where(evidence.leaves, leaf, _IMPOSSIBLE), np.where(evidence.groups, group, _IMPOSSIBLE))
    return np.asarray(found + evidence.offset)


def score(features: Features, weights: Mapping[str, float]) -> Floats:
    """A weighted sum of features and of products of them."""
    found = np.full(next(iter(features.values())).shape, weights["bias"])
    for name, weight in weights.items():
        if name != "bias" and weight:
            found += weight * feature(features, name)
    return found


def feature(features: Features, name: str) -> Floats:
    """A feature, or a product of two."""
    one, times, other = name.partition(" × ")
    return features[one] * features[other] if times else features[one]


def cases(evidence: PairEvidence, structure: Features | None) -> dict[str, Bools]:
    """Which pairs each model scores."""
    suffix = "" if structure is None else " in place"
    has_values = evidence.features["has values"] > 0
    return {
        f"values{suffix}": evidence.leaves & has_values,
        f"names{suffix}": evidence.leaves & ~has_values,
        f"groups{suffix}": evidence.groups,
    }
