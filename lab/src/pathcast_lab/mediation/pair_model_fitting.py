"""Fitting the weights of the pair model: logistic regression on schema pairs with known truth.

The models without structure are fitted first; their choices are the structure that the others are fitted with.

Cost: all pairs of nodes of all schema pairs, in memory; a few seconds.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from pathcast.kernels import Bools, Floats
from pathcast.mediation import infer_tree
from pathcast.mediation.correspondence.pair_evidence import PairEvidence, pair_evidence
from pathcast.mediation.correspondence.pair_model import MODELS, Features, Weights, cases, feature, scores
from pathcast.mediation.correspondence.schema_correspondence import Pair, chosen_by, chosen_pairs
from pathcast.mediation.correspondence.structure_evidence import TreeShape, structure_evidence
from pathcast.mediation.correspondence.synonym_dictionary import SynonymDictionary
from pathcast.mediation.schemas.schema_tree import SchemaTree, nodes_of

from .schema_pair_suite import SchemaPair

# Weights are drawn towards 0 by this much; that of documentation, which the pairs do not have, towards an assumption.
_RIDGE = 0.3
_ASSUMED = {"documentation": 3.0}
# Features that speak for a pair never count against it.
_ANY_SIGN = ("bias", "has twins", "same construct")


@dataclass(frozen=True, slots=True)
class Known:
    """The evidence of a schema pair, and which pairs of nodes are right."""

    evidence: PairEvidence
    right: Bools
    shapes: tuple[TreeShape, TreeShape]


def known_pair(pair: SchemaPair, *, samples: bool = True) -> Known:
    """A pair, with its samples or with its schemas alone."""
    trees = [infer_tree(each) for each in (pair.first_samples, pair.second_samples)]
    if not samples:
        trees = [SchemaTree(tree.root) for tree in trees]
    here, there = map(nodes_of, trees)
    evidence = pair_evidence(trees[0], trees[1], here, there, SynonymDictionary.open(), None)
    right = np.zeros((len(here), len(there)), dtype=bool)
    rows, columns = ({path: at for at, path in enumerate(paths)} for paths in (here, there))
    for path, other in pair.truth.items():
        if path in rows and other in columns:
            right[rows[path], columns[other]] = True
    return Known(evidence, right, (TreeShape(here), TreeShape(there)))


def fit(known: Sequence[Known]) -> Weights:
    """The weights of all models."""
    weights: dict[str, dict[str, float]] = {}
    for model in MODELS:
        if not model.endswith("in place"):
            weights[model] = _fitted(model, known, [None] * len(known))
    structures: list[Features | None] = [
        structure_evidence(*each.shapes, chosen_pairs(scores(each.evidence, weights))) for each in known
    ]
    for _ in range(2):
        for model in MODELS:
            if model.endswith("in place"):
                weights[model] = _fitted(model, known, structures)
        structures = [
            structure_evidence(*each.shapes, chosen_pairs(scores(each.evidence, weights, structure)))
            for each, structure in zip(known, structures, strict=True)
        ]
    return weights


def _fitted(model: str, known: Sequence[Known], structures: Sequence[Features | None]) -> dict[str, float]:
    names = MODELS[model]
    rows: list[Floats] = []
    right: list[Bools] = []
    offsets: list[Floats] = []
    for each, structure in zip(known, structures, strict=True):
        scored = cases(each.evidence, structure)[model].copy()
        scored[0, :] = scored[:, 0] = False  # the roots are fixed
        features = {**each.evidence.features, **(structure or {})}
        rows.append(np.stack([feature(features, name)[scored] for name in names], axis=1))
        right.append(each.right[scored])
        offsets.append(np.full(int(scored.sum()), each.evidence.offset))
    x, y, offset = np.concatenate(rows), np.concatenate(right), np.concatenate(offsets)
    x = np.concatenate([np.ones((len(x), 1)), x], axis=1)
    free = [name in _ANY_SIGN for name in ("bias", *names)]
    assumed = np.array([_ASSUMED.get(name, 0.0) for name in names])
    sign = np.where(y, 1.0, -1.0)

    def loss(w: Floats) -> tuple[float, Floats]:
        margin = sign * (x @ w + offset)
        slope = -sign / (1 + np.exp(np.clip(margin, -30, 30)))
        drawn = np.r_[0.0, w[1:] - assumed]
        return float(np.logaddexp(0, -margin).sum() + _RIDGE * (drawn**2).sum() / 2), x.T @ slope + _RIDGE * drawn

    bounds = [(None, None) if each else (0.0, None) for each in free]
    found = minimize(loss, np.zeros(x.shape[1]), jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 500})
    return {name: round(float(weight), 3) for name, weight in zip(("bias", *names), found.x, strict=True)}


def proposed(known: Known, weights: Weights) -> list[Pair]:
    """The pairs that `correspond` proposes with these weights."""
    return chosen_by(known.evidence, weights, known.shapes, {known.evidence.here[0]: known.evidence.there[0]})
