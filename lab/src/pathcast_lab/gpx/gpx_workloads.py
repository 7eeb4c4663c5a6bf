"""Workloads of the GPX paper's evaluation (§5): documents and queries from a schema, by its letters.

    L   the longest query and the deepest document        max_depth, max_levels
    D   queries are distinct                               distinct
    W   the probability of `*` at a step, also the last    wildcard
    DO  the probability of `//` at a step                  descendant
    P   attribute filters of a query, with =, >= and <=,   predicates
        at steps with a tag name

NITF comes from its DTD where that is on the machine, otherwise our news schema stands in for it; protein and astronomy
are ours in place of PSD and NASA. `mix` is a third of each. A match rate of 0 means that the generator does not control
the rate. Choosing queries by their match rate takes a while, so that of more than `pool` queries with duplicates,
`pool` are chosen, and repeated at random. The rate is held on at most STEERED of the documents, evenly spread: on many,
too few queries match that rarely. The rate on all documents is what a figure reports.
"""

from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from pathcast_lab.harness import Run

if TYPE_CHECKING:
    from pathcast.documents.schema.document_schema import Schema

POOL = 400_000
STEERED = 50
NITF, PROTEIN, ASTRONOMY, MIX = "nitf", "protein", "astronomy", "mix"


@dataclass(frozen=True)
class Workload:
    """One point of a figure: how many documents and queries, of which kind; `pool` queries are chosen at most."""

    schema: str
    documents: int
    queries: int
    length: int = 6
    levels: int = 6
    distinct: bool = False
    wildcard: float = 0.2
    descendant: float = 0.2
    filters: int = 0
    match_rate: float = 0.0
    pool: int = POOL

    def generate(self, run: Run) -> tuple[list[bytes], list[str]]:
        """The documents and the queries."""
        if self.schema == MIX:
            return self._mixed(run)
        if not self.match_rate or self.distinct or self.queries <= self.pool:
            return self._generated(run)
        documents, pool = _pooled(run, replace(self, queries=self.pool))
        return list(documents), [*pool, *Random(run.seed).choices(pool, k=self.queries - self.pool)]

    def _generated(self, run: Run) -> tuple[list[bytes], list[str]]:
        from pathcast.workloads import (
            DocumentOptions,
            SubscriptionOptions,
            Values,
            generate_documents,
            generate_subscriptions,
        )

        schema = _schema(run, self.schema)
        values = Values(schema, seed=run.seed)
        documents = list(
            generate_documents(
                schema, self.documents, DocumentOptions(max_levels=self.levels), seed=run.seed, values=values
            )
        )
        steering = documents[:: ceil(len(documents) / STEERED)]
        if self.match_rate and len(steering) < len(documents):
            run.note(
                f"The match rate of {self.match_rate:.2%} is held on {len(steering)} of the {len(documents)} documents."
            )
        queries = generate_subscriptions(
            schema,
            self.queries,
            SubscriptionOptions(
                max_depth=self.length,
                wildcard=self.wildcard,
                descendant=self.descendant,
                last_wildcard=True,
                predicates=self.filters,
                predicate_targets=("attribute",),
                predicate_steps="named",
                distinct=self.distinct,
                match_rate=self.match_rate or None,
            ),
            seed=run.seed,
            documents=steering if self.match_rate else None,
            values=values,
        )
        return documents, queries

    def _mixed(self, run: Run) -> tuple[list[bytes], list[str]]:
        parts = (NITF, PROTEIN, ASTRONOMY)
        documents: list[bytes] = []
        queries: list[str] = []
        for place, schema in enumerate(parts):
            part = replace(
                self,
                schema=schema,
                documents=_share(self.documents, place, len(parts)),
                queries=_share(self.queries, place, len(parts)),
            )
            of_documents, of_queries = part.generate(run)
            documents += of_documents
            queries += of_queries
        return documents, queries


# The last pool: a figure needs the same one at each of its points.
_last: dict[tuple[int, Workload], tuple[list[bytes], list[str]]] = {}


def _pooled(run: Run, workload: Workload) -> tuple[list[bytes], list[str]]:
    if (run.seed, workload) not in _last:
        _last.clear()
        _last[run.seed, workload] = workload._generated(run)
    return _last[run.seed, workload]


def _share(total: int, place: int, parts: int) -> int:
    return total // parts + (place < total % parts)


def _schema(run: Run, name: str) -> "Schema":
    from pathcast.workloads import astronomy_schema, news_schema, protein_schema, schema_from_dtd

    if name == PROTEIN:
        return protein_schema()
    if name == ASTRONOMY:
        return astronomy_schema()
    dtd = run.data / "nitf" / "nitf-2-5.dtd" if run.data else Path("nowhere")
    if dtd.is_file():
        return schema_from_dtd(dtd, root="nitf")
    run.note("The NITF DTD is not on this machine: our news schema stands in for it.")
    return news_schema()
