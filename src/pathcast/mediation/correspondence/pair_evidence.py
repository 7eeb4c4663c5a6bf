"""The evidence for each pair of nodes: a table of features, each a matrix of numbers from 0 to 1.

Leaves (attributes, and elements with text) have values; groups (elements with elements) have what is in them. A leaf
and a group do not correspond, except an element that has both.

Invariant: features do not depend on the order of the samples of different documents.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pathcast.kernels import Bools, Floats

from ..schemas.node_samples import NodeSamples
from ..schemas.schema_tree import SchemaTree, is_attribute, parent_of
from .name_similarity import NameSimilarity, word_likeness, words_of
from .synonym_dictionary import SynonymDictionary
from .twin_documents import Twins, find_twins, twin_likeness
from .value_evidence import ValueEvidence

_DOCUMENTATION_WORD = re.compile(r"[a-z]{3,}")


@dataclass(frozen=True, slots=True)
class PairEvidence:
    """Nodes of both trees, and the features of each pair of them."""

    here: list[str]
    there: list[str]
    leaves: Bools
    groups: Bools
    features: Mapping[str, Floats]

    @property
    def offset(self) -> float:
        """The more nodes there are to choose from, the less likely is each pair."""
        return -float(np.log(max(10, min(len(self.here), len(self.there)))))


def pair_evidence(
    local: SchemaTree,
    glob: SchemaTree,
    here: list[str],
    there: list[str],
    synonyms: SynonymDictionary,
    twins: Twins | None,
) -> PairEvidence:
    """The features that do not depend on other pairs."""
    names = NameSimilarity(here, there, synonyms)
    samples = [local.samples.get(path) for path in here], [glob.samples.get(path) for path in there]
    values = ValueEvidence(*samples, (_documents(local), _documents(glob)))
    leaves = _is_leaf(local, here)[:, None] & _is_leaf(glob, there)[None, :]
    groups = _is_group(local, here)[:, None] & _is_group(glob, there)[None, :]
    own, context = names.names(), names.contexts()
    twin = _twin_features(*samples, twins)
    known = values.has_values
    sampled = np.full(known.shape, bool(local.samples and glob.samples))
    attributes = _attributes(here)[:, None] == _attributes(there)[None, :]
    return PairEvidence(
        here,
        there,
        leaves,
        groups,
        {
            "name": own,
            "context": context,
            "parent": _of_parents(own, here, there),
            "kind": np.where(known, values.kind, 0.0),
            "overlap": values.overlap,
            "common": values.common,
            "words": values.words,
            "shape": values.shape,
            "frequency": np.where(sampled, values.frequency, 0.0),
            "twins": twin[0],
            "twin values": twin[1],
            "has twins": np.full(known.shape, float(twin[2])),
            "has values": known.astype(float),
            "documentation": _documentation(local, glob, here, there, synonyms),
            "same construct": attributes.astype(float),
        },
    )


def _documents(tree: SchemaTree) -> int:
    root = tree.samples.get(tree.root.name)
    return len(root.by_document) if root is not None else 0


def _attributes(paths: Sequence[str]) -> Bools:
    return np.array([is_attribute(path) for path in paths])


def _is_leaf(tree: SchemaTree, paths: Sequence[str]) -> Bools:
    return np.array([is_attribute(path) or tree[path].has_text or not tree[path].children for path in paths])


def _is_group(tree: SchemaTree, paths: Sequence[str]) -> Bools:
    return np.array([not is_attribute(path) and bool(tree[path].children or not tree[path].has_text) for path in paths])


def _of_parents(likeness: Floats, here: list[str], there: list[str]) -> Floats:
    """For each pair the likeness of their parents; for a root that of the roots."""
    rows, columns = parent_numbers(here), parent_numbers(there)
    return np.asarray(likeness[np.ix_(np.maximum(rows, 0), np.maximum(columns, 0))])


def parent_numbers(paths: Sequence[str]) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    """The number of each node's parent; -1 for the root."""
    numbers = {path: at for at, path in enumerate(paths)}
    return np.array([numbers.get(parent_of(path), -1) for path in paths], dtype=np.int64)


def _twin_features(
    here: Sequence[NodeSamples | None], there: Sequence[NodeSamples | None], twins: Twins | None
) -> tuple[Floats, Floats, bool]:
    found = find_twins(here, there) if twins is None else twins
    agree, much = twin_likeness(here, there, found)
    return agree, much, bool(found)


def _documentation(
    local: SchemaTree, glob: SchemaTree, here: list[str], there: list[str], synonyms: SynonymDictionary
) -> Floats:
    """Words that the documentation of two nodes has in common, and of one with the name of the other."""
    texts = [
        [{*_DOCUMENTATION_WORD.findall(tree.documentation.get(path, "").lower())} for path in paths]
        for tree, paths in ((local, here), (glob, there))
    ]
    if not (any(texts[0]) or any(texts[1])):
        return np.zeros((len(here), len(there)))
    bags = [
        [text | set(words_of(path.rpartition("/")[2])) for text, path in zip(side, paths, strict=True)]
        for side, paths in zip(texts, (here, there), strict=True)
    ]
    vocabulary = [sorted(set().union(*side)) for side in bags]
    alike = word_likeness(vocabulary[0], vocabulary[1], synonyms) >= 0.9
    numbers = [{word: at for at, word in enumerate(words)} for words in vocabulary]
    rows = [np.zeros((len(side), len(words))) for side, words in zip(bags, vocabulary, strict=True)]
    for matrix, side, number in zip(rows, bags, numbers, strict=True):
        for row, words in enumerate(side):
            matrix[row, [number[word] for word in words]] = 1
    first, second = (matrix / np.maximum(1, matrix.sum(axis=0)) for matrix in rows)
    common = first @ alike @ second.T
    totals = np.sqrt((first**2).sum(axis=1)[:, None] * (second**2).sum(axis=1)[None, :])
    has = np.array([bool(each) for each in texts[0]])[:, None] | np.array([bool(each) for each in texts[1]])[None, :]
    return np.asarray(np.clip(common / np.maximum(1e-9, totals), 0, 1) * has)
