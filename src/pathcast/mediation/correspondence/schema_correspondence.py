"""Correspondences: which node of a local schema is which node of the global one, and why.

Evidence is gathered for each pair of nodes: values in samples first, then names, documentation and frequency
(`pair_evidence.py`); a model weighs it (`pair_model.py`); one optimal assignment chooses among all pairs
(`optimal_assignment.py`). Then the structure is taken into account: what the chosen pairs imply for others, twice.

The confidence of a pair is the probability that it is right, given its score and those of its rivals: all other pairs
of its two nodes.

Invariant: a correspondence is one to one, and the roots correspond to each other and to nothing else. Same input, same
answer.
Cost: nodes × nodes × features, and three assignments; two trees of 300 nodes take about a second.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from pathcast.kernels import Floats

from ..mappings.operator_derivation import check_correspondence
from ..schemas.schema_tree import SchemaTree, is_attribute, nodes_of
from .optimal_assignment import optimal_assignment
from .pair_evidence import PairEvidence, pair_evidence
from .pair_model import Features, Weights, known_weights, scores
from .structure_evidence import TreeShape, structure_evidence
from .synonym_dictionary import SynonymDictionary
from .twin_documents import Twins

# How often the structure is taken into account.
_ROUNDS = 2
# Pairs with less confidence are not proposed.
_LEAST = 0.1
_FIXED, _IMPOSSIBLE = 30.0, -30.0
# Features that a person can judge, by their names in reports.
_SHOWN = {
    "twins": "values of twins",
    "overlap": "values in common",
    "kind": "formats of values",
    "name": "names",
    "context": "names around",
    "documentation": "documentation",
    "above": "place",
    "below": "content",
}


@dataclass(frozen=True, slots=True)
class Pair:
    """A local node, the corresponding global node, the confidence from 0 to 1, and the evidence, each from 0 to 1."""

    local: str
    glob: str
    confidence: float
    evidence: Mapping[str, float] = field(default_factory=dict, compare=False)

    def why(self) -> str:
        """The evidence as text, the strongest first."""
        found = sorted(self.evidence.items(), key=lambda each: -each[1])
        return ", ".join(f"{name} {much:.0%}" for name, much in found if much >= 0.05) or "none"


def correspond(
    local: SchemaTree,
    glob: SchemaTree,
    *,
    known: Mapping[str, str] | None = None,
    twins: Twins | None = None,
    synonyms: SynonymDictionary | None = None,
    least: float = _LEAST,
    weights: Weights | None = None,
) -> list[Pair]:
    """The correspondence, in the order of the local tree; pairs in `known` are fixed, others below `least` are omitted.

    `twins` are the numbers of sample documents that say the same: of local ones, those of global ones; by default they
    are recognised by their values.
    """
    here, there = nodes_of(local), nodes_of(glob)
    fixed = dict(known or {})
    check_correspondence(local, glob, fixed)
    fixed.setdefault(here[0], there[0])
    evidence = pair_evidence(local, glob, here, there, synonyms or SynonymDictionary.open(), twins)
    return chosen_by(evidence, weights or known_weights(), (TreeShape(here), TreeShape(there)), fixed, least)


def chosen_by(
    evidence: PairEvidence,
    weights: Weights,
    shapes: tuple[TreeShape, TreeShape],
    fixed: Mapping[str, str],
    least: float = _LEAST,
) -> list[Pair]:
    """The pairs that a model chooses, given the evidence."""
    limits = _limits(evidence.here, evidence.there, fixed)
    found = _limited(scores(evidence, weights), limits)
    structure: Features = {}
    for _ in range(_ROUNDS):
        structure = structure_evidence(*shapes, chosen_pairs(found))
        found = _limited(scores(evidence, weights, structure), limits)
    return _pairs(evidence, structure, found, fixed, least)


def chosen_pairs(found: Floats) -> Floats:
    """The confidence of each chosen pair, 0 for the others."""
    certain = confidences(found)
    chosen = np.zeros_like(found)
    for row, column in optimal_assignment(found - _EVEN):
        chosen[row, column] = certain[row, column]
    return chosen


# A pair is chosen from these odds on; less than even, since its rivals are excluded.
_EVEN = -2.0


def confidences(found: Floats) -> Floats:
    """The probability of each pair, given that at most one pair of each node is right."""
    odds = np.exp(np.clip(found, -30, 30))
    rivals = odds.sum(axis=1)[:, None] + odds.sum(axis=0)[None, :] - odds
    return np.asarray(odds / (1 + rivals))


def _limits(here: list[str], there: list[str], fixed: Mapping[str, str]) -> Floats:
    """What is added to scores: nothing, much for a fixed pair, and less than anything for its rivals."""
    limits = np.zeros((len(here), len(there)))
    rows, columns = ({path: at for at, path in enumerate(paths)} for paths in (here, there))
    for path, other in fixed.items():
        limits[rows[path], :] = limits[:, columns[other]] = _IMPOSSIBLE * 2
    for path, other in fixed.items():
        limits[rows[path], columns[other]] = _FIXED * 2
    return limits


def _limited(found: Floats, limits: Floats) -> Floats:
    return np.asarray(np.clip(found + limits, _IMPOSSIBLE, _FIXED))


def _pairs(
    evidence: PairEvidence, structure: Features, found: Floats, fixed: Mapping[str, str], least: float
) -> list[Pair]:
    certain = confidences(found)
    features = {**evidence.features, **structure}
    made = []
    for row, column in optimal_assignment(found - _EVEN):
        path, other = evidence.here[row], evidence.there[column]
        is_fixed = fixed.get(path) == other
        if not is_fixed and certain[row, column] < least:
            continue
        why = {shown: float(features[name][row, column]) for name, shown in _SHOWN.items()}
        made.append(Pair(path, other, 1.0 if is_fixed else float(certain[row, column]), why))
    return made


def can_be_moved(path: str, other: str) -> bool:
    """Whether operators can make a local node what the global one is: no element becomes an attribute."""
    return is_attribute(path) or not is_attribute(other)
