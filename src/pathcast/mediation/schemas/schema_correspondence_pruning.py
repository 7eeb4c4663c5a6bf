"""Pruning by evidence: which pairs of a correspondence are supported by their names, or by the names around them.

Flooding (`similarity_flooding.py`) finds the best possible partner of a node, not whether the node has one. In schemas
with few nodes, such as those of one or two samples, the nodes left over on both sides are paired, `price` with
`author`, without any evidence against it.

A pair with similar names is supported by them. Any other pair needs two things:

    the schema speaks of the same   of its other nodes, a sample of what a publisher has, half have partners with names
                                    alike: not just k of n, but the lower end of Wilson's interval for that share, which
                                    is 0.43 for 2 of 2, 0.53 for 3 of 3, 0.5 for 5 of 6, 0.73 for 22 of 25
    its place is the same           of its parent, siblings and children, 3 of 5 have partners with names alike around
                                    its own partner

An unsupported pair also drops the pairs of its children that stay below it: they are parts of it, or similar by
chance. Of generated catalogues (`workloads.catalogues`), three at a time and cut down to 8 nodes each, 1 pair of 30 is
wrong, where flooding alone has 1 of 5 wrong; of forty whole ones as many are right.

Invariant: the pair of the roots is always supported, since a schema has one root.
Cost: rounds until nothing changes, nearly always two; each round checks all pairs of neighbours.
"""

from collections.abc import Collection, Mapping
from math import sqrt

from .schema_tree import SchemaTree, name_of, parent_of
from .similarity_flooding import name_likeness, nodes_of

# Names with at least this similarity are sufficient evidence.
_ALIKE = 0.5
# The share of a schema that must be alike, and the deviations for 95 of 100 such schemas; the share around a node.
_SCHEMA, _DEVIATIONS = 0.5, 1.645
_AROUND = 0.6


def borne_out(local: SchemaTree, glob: SchemaTree, correspondence: Mapping[str, str]) -> dict[str, str]:
    """The supported pairs of a correspondence."""
    here, there = _around(local), _around(glob)
    kept = dict(correspondence)
    while True:
        named = {path: other for path, other in kept.items() if has_names_alike(path, other)}
        same = _least_share(len(named), len(here) - 1) >= _SCHEMA
        doubtful = {
            path
            for path, other in kept.items()
            if path not in named and parent_of(path) and not (same and _agree(here[path], there[other], named))
        }
        if not doubtful:
            return kept
        kept = {path: other for path, other in kept.items() if not _falls(path, other, kept, doubtful)}


def doubtful(local: SchemaTree, glob: SchemaTree, correspondence: Mapping[str, str]) -> dict[str, str]:
    """The pairs that neither their names nor their surroundings support."""
    kept = borne_out(local, glob, correspondence)
    return {
        path: other for path, other in correspondence.items() if path not in kept and not has_names_alike(path, other)
    }


def has_names_alike(path: str, other: str) -> bool:
    """Whether the names of two nodes alone are sufficient evidence."""
    return name_likeness(name_of(path).removeprefix("@"), name_of(other).removeprefix("@")) >= _ALIKE


def _falls(path: str, other: str, pairs: Mapping[str, str], doubtful: Collection[str]) -> bool:
    """Whether a pair is doubtful, or stays below one that is."""
    while path not in doubtful:
        path, other = parent_of(path), parent_of(other)
        if not path or pairs.get(path) != other:
            return False
    return True


def _around(tree: SchemaTree) -> dict[str, set[str]]:
    """Parent, siblings and children of each node."""
    nodes = nodes_of(tree)
    below: dict[str, set[str]] = {path: set() for path in ("", *nodes)}
    for path in nodes:
        below[parent_of(path)].add(path)
    return {path: (below[parent_of(path)] | below[path] | {parent_of(path)}) - {path, ""} for path in nodes}


def _agree(here: set[str], there: set[str], named: Mapping[str, str]) -> bool:
    return sum(named.get(path) in there for path in here) >= _AROUND * len(here)


def _least_share(alike: int, nodes: int) -> float:
    """The lower end of Wilson's interval."""
    if not nodes:
        return 0.0
    share, spread = min(1.0, alike / nodes), _DEVIATIONS**2 / nodes
    return (share + spread / 2 - sqrt(spread * share * (1 - share) + spread * spread / 4)) / (1 + spread)
