"""The mediation paper's workload (§5.1): course catalogues, subscriptions to their global schema, routers and ways.

The paper's benchmark data is not available: catalogues are generated (`workloads/course_catalogues.py`), forty local
schemas with its kinds of heterogeneity and about its counts of operators. Subscriptions have up to 8 steps, `*` and
nested paths with probability 0.2, as the paper has them, and `//` with 0.2.

A *way* is how a router bridges schemas, and with which engine:

    SDR     the document comes rewritten, beside the original: it is read and matched like any other
    NDDR    rewritten between reader and engine
    IDDR    rewritten inside the engine
    QRA     subscriptions are rewritten, for each schema
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathcast.matching import Subscriptions
    from pathcast.mediation import Mediator, SchemaTree
    from pathcast_lab.workloads import Catalogue

SDR, NDDR, IDDR, QRA = "SDR", "NDDR", "IDDR", "QRA"
_REWRITINGS = {NDDR: "events", IDDR: "engine", QRA: "queries"}


class Way(NamedTuple):
    """How a router bridges schemas, and its engine."""

    kind: str
    engine: str

    def __str__(self) -> str:
        return f"{self.kind}, {self.engine}"

    @classmethod
    def read(cls, text: str) -> "Way":
        """The way that `str` wrote."""
        kind, engine = text.split(", ")
        return cls(kind, engine)


@dataclass(frozen=True)
class Sent:
    """A document of a publisher in three forms: original, in the global schema, and with its mapping."""

    schema: str
    original: bytes
    rewritten: bytes
    message: bytes

    def size(self, kind: str) -> int:
        """The bytes that each link carries."""
        return len(self.original) + len(self.rewritten) if kind == SDR else len(self.message)


def mediator_of(catalogues: "Sequence[Catalogue]") -> "Mediator":
    """A mediator with the true mappings of these catalogues."""
    from pathcast.mediation import Mediator
    from pathcast_lab.workloads import GLOBAL

    made = Mediator(GLOBAL)
    for catalogue in catalogues:
        made.add(catalogue.mapping)
    return made


def sent_documents(mediator: "Mediator", catalogues: "Sequence[Catalogue]", size: int, seed: int) -> list[Sent]:
    """A document of each catalogue, of about this many bytes."""
    made = []
    for catalogue in catalogues:
        document = catalogue.document(size, seed)
        name = catalogue.name
        made.append(Sent(name, document, mediator.rewrite(document, name), mediator.pack(document, name)))
    return made


def subscriptions_to(tree: "SchemaTree", count: int, seed: int, *, nested: float = 0.2) -> "Subscriptions":
    """`count` different subscriptions to a schema, or plain paths, some of them equal, with `nested` 0."""
    from pathcast.matching import Subscriptions
    from pathcast.workloads import SubscriptionOptions, generate_subscriptions

    made = Subscriptions()
    options = SubscriptionOptions(max_depth=8, nested_probability=nested, distinct=nested > 0)
    made.add_many(generate_subscriptions(tree.folded(), count, options, seed=seed))
    return made


Matching = Callable[[Sent], list[int]]


def matching_by(way: Way, mediator: "Mediator", subscriptions: "Subscriptions") -> Matching:
    """A router's function from a document to the ids that match."""
    if way.kind == SDR:
        plain = subscriptions.compile(way.engine)
        return lambda sent: plain.match(sent.rewritten).ids.tolist()
    matcher = mediator.compile(subscriptions, _REWRITINGS[way.kind], engine=way.engine)  # type: ignore[arg-type]
    return lambda sent: matcher.match_message(sent.message)[0].ids.tolist()


def all_of(routers: Sequence[Matching], documents: Sequence[Sent]) -> Callable[[], object]:
    """The timed call: every router matches every document."""
    return lambda: [match(document) for match in routers for document in documents]
