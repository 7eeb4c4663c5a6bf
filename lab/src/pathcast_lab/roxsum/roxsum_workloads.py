"""Workloads of the RoXSum experiments: collections of documents, and profiles with targets.

Two collections: notices of an auction house (one schema of XMark's shape), and documents of many schemas; for sizes
also the auction's with sentences as texts, for routing also documents of a hundred schemas, which go to one each of a
hundred targets. The documents of a collection fall into *groups* by the
beginning of their label paths: the subject of the notice, or the schema.

Profiles are plain paths of 3 to 7 steps. Some are taken from the documents, so that each document that is to be matched
has one: label paths that cover the wanted groups, the one with the most documents first. The others are random
walks through the schemas of the wanted groups. Groups are dealt out to the targets in turn, and where there are more
targets than groups, a group's profiles to several, so that all targets get about as many documents.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import count
from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyroaring import BitMap

    from pathcast.documents.schema.document_schema import Schema
    from pathcast.roxsum import RoXSum
    from pathcast.workloads import Values

PAPER = "Vagena, Moro, Tsotras 2007, §5"
AUCTION, MIXED, PROSE, HUNDRED = "auction", "many schemas", "auction, prose", "a hundred schemas"
COLLECTIONS = (AUCTION, MIXED)
STEPS = (3, 7)
SCHEMAS = {MIXED: 30, HUNDRED: 100}
# Words and sentences of each element in prose.
_WORDS, _SENTENCES = 2_000, 5_000
PATIENCE = 20_000


@dataclass(frozen=True)
class Profiles:
    """Profiles by target, how many different ones there are, and the share of the documents that match one."""

    by_target: dict[str, list[str]]
    distinct: int
    selectivity: float

    @property
    def count(self) -> int:
        return sum(map(len, self.by_target.values()))


def collection(name: str, size: int, seed: int) -> list[bytes]:
    """`count` documents of a collection."""
    from pathcast.workloads import auction_schema, generate_documents
    from pathcast_lab.workloads import mixed_documents

    if name == AUCTION:
        return list(generate_documents(auction_schema(), size, seed=seed))
    if name == PROSE:
        return list(generate_documents(auction_schema(), size, seed=seed, values=prose_values(seed)))
    return list(mixed_documents(schemas_of(name, seed), size, seed=seed))


def prose_values(seed: int) -> "Values":
    """Values for the auction whose texts are sentences that hardly repeat: words by Zipf's law, 3 to 30 of them."""
    from pathcast.workloads import Values, auction_schema
    from pathcast.workloads.value_pools import Domain

    class Prose(Values):
        def of_text(self, element: str) -> Domain:
            random = Random(f"pathcast/prose/{self.seed}/{element}")
            words = [_word(random) for _ in range(_WORDS)]
            weights = [1 / (rank + 1) for rank in range(_WORDS)]
            sentences = (random.choices(words, weights, k=random.randint(3, 30)) for _ in range(_SENTENCES))
            return Domain(tuple(" ".join(sentence) for sentence in sentences), False)

    return Prose(auction_schema(), seed=seed)


def _word(random: Random) -> str:
    return "".join(random.choice("bcdfglmnprstv") + random.choice("aeiou") for _ in range(random.randint(1, 4)))


@cache
def schemas_of(name: str, seed: int) -> "list[Schema]":
    """The schemas of a collection."""
    from pathcast.workloads import auction_schema
    from pathcast_lab.workloads import generate_schemas

    return [auction_schema()] if name == AUCTION else generate_schemas(SCHEMAS[name], seed=seed)


def profiles(name: str, batch: "RoXSum", wanted: int, targets: int, selectivity: float, seed: int) -> Profiles:
    """Profiles for targets, which together match about this share of the batch."""
    groups = _wanted(name, batch, selectivity)
    drawn = {group: list(_cover(batch, nodes, documents)) for group, (nodes, documents) in groups.items()}
    walks = {group: _walks(name, group, seed) for group in groups}
    known = {path for paths in drawn.values() for path in paths}
    missing, idle = wanted - len(known), 0
    while missing > 0:
        for group, more in walks.items():
            path = next(more)
            idle += 1
            # Distinct profiles first; then some repeat, as with real subscribers.
            if missing > 0 and (path not in known or idle > PATIENCE):
                known.add(path)
                drawn[group].append(path)
                missing, idle = missing - 1, idle if idle > PATIENCE else 0
    by_target: dict[str, list[str]] = {f"broker-{number:03}": [] for number in range(targets)}
    names = list(by_target)
    for place, paths in enumerate(drawn.values()):
        mine = names[place :: len(drawn)] if targets > len(drawn) else [names[place % targets]]
        for number, path in enumerate(paths):
            by_target[mine[number % len(mine)]].append(path)
    matched = sum(len(documents) for _, documents in groups.values())
    return Profiles(by_target, len(known), matched / max(1, len(batch)))


def _wanted(name: str, batch: "RoXSum", selectivity: float) -> "dict[tuple[str, ...], tuple[list[int], BitMap]]":
    """Groups that hold about this share of the documents: their label paths, and their documents."""
    from pyroaring import BitMap

    extents, paths = batch.extents, batch.paths
    groups: dict[tuple[str, ...], tuple[list[int], BitMap]] = {}
    for node in batch.nodes.tolist():
        labels = paths.labels(node)
        length = 1 if name in SCHEMAS else 3 if labels[1:2] == ("regions",) else 2
        if len(labels) < length:
            continue
        nodes, documents = groups.setdefault(labels[:length], ([], BitMap()))
        nodes.append(node)
        documents |= extents.get(node, BitMap())
    chosen: dict[tuple[str, ...], tuple[list[int], BitMap]] = {}
    left = selectivity * len(batch)
    # The large groups first, as long as they fit: the remainder is smaller than the smallest group.
    for group, (nodes, documents) in sorted(groups.items(), key=lambda item: (-len(item[1][1]), item[0])):
        if len(documents) <= left + 0.005 * len(batch):
            chosen[group] = nodes, documents
            left -= len(documents)
    return chosen


def _cover(batch: "RoXSum", nodes: list[int], documents: "BitMap") -> Iterator[str]:
    """Label paths of the documents, of 3 to 7 names where they have such, until every document has one of them."""
    from pyroaring import BitMap

    having: dict[int, BitMap] = {}
    for node in reversed(nodes):
        below = having.setdefault(node, BitMap())
        below |= batch.extents.get(node, BitMap())
        parent = batch.paths.parent(node)
        if parent >= 0:
            above = having.setdefault(parent, BitMap())
            above |= below
    texts = {node: batch.paths.labels(node) for node in nodes}
    proper = [node for node in nodes if STEPS[0] <= len(texts[node]) <= STEPS[1]]
    left = documents.copy()
    while left:
        candidates = [node for node in proper if having[node] & left] or nodes
        best = max(candidates, key=lambda node: (having[node].intersection_cardinality(left), -node))
        yield "/" + "/".join(texts[best])
        left -= having[best]


def _walks(name: str, group: tuple[str, ...], seed: int) -> Iterator[str]:
    """Random paths of 3 to 7 steps through the schema of a group, none of which can leave it."""
    from pathcast.workloads import SubscriptionOptions, generate_subscriptions

    schema = next(schema for schema in schemas_of(name, seed) if schema.root == group[0]).with_root(group[-1])
    above = len(group) - 1
    prefix = "".join(f"/{label}" for label in group[:-1])
    for number in count():
        paths = generate_subscriptions(
            schema,
            500,
            SubscriptionOptions(min_depth=max(2, STEPS[0] - above), max_depth=STEPS[1] - above),
            seed=seed + 1_000 * number,
        )
        # A walk that begins with a wildcard or a // would match documents of other groups.
        yield from (prefix + path for path in paths if path.startswith(f"/{group[-1]}/"))
