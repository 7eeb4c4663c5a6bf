"""The workload of the piggyback paper's evaluation (§6.1): documents, subscriptions, and the overlay that has them.

A complete binary tree of routers; the same number of subscriptions at each, about a tenth of which match a document;
`<test>` and the predicate `//test` say where in a document the first match comes (`workloads/first_match_position.py`).
Sets of documents are named by kind and number of elements: `news 130` is the default.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pathcast.errors import PathcastError

if TYPE_CHECKING:
    from pathcast.documents.schema.document_schema import Schema
    from pathcast.routing import Overlay

NEWS_50, NEWS_130, NEWS_200 = "news 50", "news 130", "news 200"
TREEBANK, BIBLIOGRAPHY, LARGE = "treebank 144", "bibliography 117", "protein, 10 MB"
LARGE_SMALL = "protein, 200 kB"
SETS = (NEWS_50, NEWS_130, NEWS_200, TREEBANK, BIBLIOGRAPHY, LARGE_SMALL, LARGE)
_LARGE_BYTES = {LARGE_SMALL: 200_000, LARGE: 10_000_000}


@dataclass(frozen=True)
class Workload:
    """The settings of an overlay's workload. `keep` is the paper's k, `skew` its θ, `nested` its ρ_λ."""

    documents_like: str
    subscriptions: int
    documents: int
    nested: float = 0.2
    skew: float = 0.0
    keep: float = 0.25
    levels: int = 4
    match_rate: float = 0.1


def schema_of(name: str) -> "Schema":
    """The schema of a set of documents."""
    from pathcast import workloads

    return {
        "news": workloads.news_schema,
        "treebank": workloads.treebank_schema,
        "bibliography": workloads.bibliography_schema,
        "protein,": workloads.protein_schema,
    }[_known(name).split()[0]]()


def documents_of(name: str, count: int, seed: int) -> list[bytes]:
    """Documents of a set; a large set has one."""
    from pathcast.workloads import generate_documents
    from pathcast_lab.workloads import documents_of_size, joined_document

    schema = schema_of(name)
    if name in _LARGE_BYTES:
        parts, size = [], 0
        for document in generate_documents(schema, 1_000_000, seed=seed, text="words"):
            parts.append(document)
            size += len(document)
            if size >= _LARGE_BYTES[name]:
                break
        return [joined_document(parts)]
    repeats = 6 if name == BIBLIOGRAPHY else 3
    return documents_of_size(schema, count, int(name.split()[1]), seed=seed, max_repeats=repeats)


def subscriptions_of(workload: Workload, documents: Sequence[bytes], seed: int) -> list[list[str]]:
    """The subscriptions of each router: L = 8, ρ_* = ρ_// = 0.1, with the predicate that steers the first match."""
    from pathcast.workloads import SubscriptionOptions, generate_subscriptions
    from pathcast_lab.workloads import steered_subscriptions

    routers = 2**workload.levels - 1
    # A match rate is measured on documents; large documents would take too long.
    sample = documents if workload.documents_like not in _LARGE_BYTES else [_one(workload, seed)]
    options = SubscriptionOptions(
        max_depth=8,
        wildcard=0.1,
        descendant=0.1,
        nested_probability=workload.nested,
        skew=workload.skew,
        match_rate=workload.match_rate,
    )
    schema, count = schema_of(workload.documents_like), routers * workload.subscriptions
    drawn = generate_subscriptions(schema, count, options, seed=seed, documents=list(sample))
    steered = list(steered_subscriptions(drawn))
    return [steered[number::routers] for number in range(routers)]


def overlay_of(workload: Workload, subscriptions: Sequence[Sequence[str]]) -> "Overlay":
    """The tree of routers with all subscriptions, each of a subscriber of its own, advertised."""
    from pathcast.routing import Overlay

    overlay = Overlay.tree(levels=workload.levels, fanout=2)
    for router, xpaths in zip(overlay.routers, subscriptions, strict=True):
        overlay.subscribe_many(router, list(xpaths), [f"{router}/{number}" for number in range(len(xpaths))])
    overlay.advertise(keep=workload.keep)
    return overlay


def wanting(subscriptions: Sequence[Sequence[str]], routers: Sequence[str]) -> Callable[[bytes], set[str]]:
    """The correct recipients of a document, from one matcher over all subscriptions."""
    from pathcast import Subscriptions

    flat = Subscriptions()
    names = [
        f"{router}/{number}" for router, each in zip(routers, subscriptions, strict=True) for number in range(len(each))
    ]
    ids = flat.add_many([xpath for each in subscriptions for xpath in each])
    who = dict(zip(ids, names, strict=True))
    matcher = flat.compile()
    return lambda document: {who[id] for id in matcher.match(document).ids.tolist()}


def warming(workload: Workload, documents: Sequence[bytes], seed: int) -> bytes:
    """A document of a set that takes little time."""
    return _one(workload, seed) if workload.documents_like in _LARGE_BYTES else documents[0]


def _one(workload: Workload, seed: int) -> bytes:
    """The first of the documents that make up a large one."""
    from pathcast.workloads import generate_documents

    return next(iter(generate_documents(schema_of(workload.documents_like), 1, seed=seed, text="words")))


def _known(name: str) -> str:
    if name not in SETS:
        raise PathcastError(f"unknown set of documents '{name}'; the sets are {'; '.join(SETS)}")
    return name
