"""The cost of each further schema: a mapping under data rewriting, an index under query rewriting.

With this many schemas registered: the bytes that a router holds for them, the time until documents of the last schema
can be matched, and the bytes of its mapping in messages, as a header or as a reference to a mapping that the router
has. Registering is measured per node of the local schema. Derived mappings are compared with the generator's true
mappings, which the derivation does not see: the share of nodes that get the same operators.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from statistics import median
from time import process_time
from typing import TYPE_CHECKING

from pathcast_lab.harness import Claim, Judgement, Plot, Row, Rows, Run, every, experiment, judged, number_in

from .mediation_workloads import subscriptions_to

if TYPE_CHECKING:
    from pathcast.matching import Subscriptions
    from pathcast.mediation import Mapping, Mediator, Operator
    from pathcast.mediation.mediated_matcher import MediatedMatcher
    from pathcast_lab.workloads import Catalogue

_DATA, _QUERIES = "data rewriting", "query rewriting"
_HEADERS = "Ni, Chan 2009, §2.2.2"


@dataclass(frozen=True)
class Schemas:
    """Figures are given at these numbers of schemas."""

    schemas: tuple[int, ...] = (1, 4, 10, 20, 40)
    subscriptions: int = 1_000
    bytes: int = 20_000
    rounds: int = 3


def _counts(rows: Rows) -> list[int]:
    return sorted(count for count in rows.distinct("schemas") if isinstance(count, int))


def _space(rows: Rows) -> Judgement:
    """With n schemas query rewriting takes more than n/4 times the space: figures are parts of that bound."""
    found = {
        f"with {count} schemas": rows.number("index_bytes", way=_QUERIES, schemas=count)
        / rows.number("index_bytes", way=_DATA, schemas=count)
        / (count / 4)
        for count in _counts(rows)
    }
    return every(found, "{:.2f} times a quarter of the number of schemas", least=1)


def _update(rows: Rows) -> Judgement:
    found = {
        f"with {count} schemas": rows.number("update_ms", way=_QUERIES, schemas=count)
        / rows.number("update_ms", way=_DATA, schemas=count)
        for count in _counts(rows)
    }
    return every(found, "{:.0f} times the time of a mapping", least=2)


def _registering(rows: Rows) -> Judgement:
    early = rows.number("node_us", way=_DATA, schemas=4)
    late = rows.number("node_us", way=_DATA, schemas=40)
    return judged(late <= 1.25 * early, f"{early:.0f} µs per node up to the 4th schema, {late:.0f} µs up to the 40th")


def _recovered(rows: Rows) -> Judgement:
    found = {f"of {row['schemas']} schemas": number_in(row, "recovered") for row in rows.where(way=_DATA)}
    return every(found, "{:.1%} of the nodes", least=0.9)


def _header_bytes(rows: Rows) -> Judgement:
    found = {
        f"with {row['schemas']} schemas": number_in(row, "header_bytes") / number_in(row, "bytes")
        for row in rows.where(way=_DATA)
    }
    return every(found, "{:.1%} of a document's bytes", most=0.05)


def _header_time(rows: Rows) -> Judgement:
    found = {
        f"with {row['schemas']} schemas": number_in(row, "header_us") / number_in(row, "reference_us") - 1
        for row in rows.where(way=_DATA)
    }
    return every(found, "{:+.0%} of the time to match a document", most=0.1)


@experiment(
    "mediation-schemas",
    title="Mediation: cost of each further schema",
    small=Schemas(),
    paper=Schemas(subscriptions=4_000, rounds=7),
    claims=(
        Claim(
            "query rewriting takes space for each schema (criterion: n/4 times the space for n schemas)",
            "Ni, Chan 2009, §1",
            _space,
            "grows",
        ),
        Claim("a new schema costs more under query rewriting (criterion: twice)", "Ni, Chan 2009, §1", _update, "more"),
        Claim("mappings as headers take few bytes (criterion: 5 %)", _HEADERS, _header_bytes, "little"),
        Claim(
            "mappings as headers take little time (criterion: 10 %)",
            _HEADERS,
            _header_time,
            "little",
            "Our engine takes little time to match a document, so the time to read a mapping is a larger share.",
        ),
        Claim(
            "registering costs the same per schema node for the 40th schema as for the 4th",
            "target",
            _registering,
            "1.25 times",
        ),
        Claim("derivation recovers the operators of at least 90 % of the nodes", "target", _recovered, "90 %"),
    ),
    plots=(
        Plot(
            "space",
            "Bytes that a router holds",
            y="index_bytes",
            y_label="bytes",
            series="way",
            x="schemas",
            x_label="schemas",
            ours=(_DATA,),
            log="xy",
        ),
        Plot(
            "update",
            "Time until documents of a further schema can be matched",
            y="update_ms",
            y_label="ms",
            series="way",
            x="schemas",
            x_label="schemas",
            ours=(_DATA,),
            log="xy",
        ),
    ),
    show={
        "schemas": "schemas",
        "way": "way",
        "index_bytes": "bytes held",
        "update_ms": "a further schema, ms",
        "node_us": "registering, µs per node",
        "recovered": "recovered",
        "header_bytes": "header, bytes",
        "reference_bytes": "reference, bytes",
        "header_us": "with header, µs",
        "reference_us": "with reference, µs",
    },
)
def schemas(run: Run, parameters: Schemas) -> Iterator[Row]:
    """Catalogues are registered one after the other; mappings are derived from the two schemas alone. The bytes that a
    router holds are those of the index, of the subscriptions rewritten for each schema, and of mappings. The time for a
    further schema runs from its mapping to the first answer on one of its documents. A header is a whole mapping, a
    reference its name and fingerprint.
    """
    from pathcast.mediation import Mediator
    from pathcast_lab.workloads import GLOBAL, generate_catalogues

    catalogues = generate_catalogues(max(parameters.schemas), seed=run.seed)
    asked = subscriptions_to(GLOBAL, parameters.subscriptions, run.seed)
    mediator = Mediator(GLOBAL)
    spent: list[float] = []
    right = nodes = 0
    matchers = {_DATA: mediator.compile(asked), _QUERIES: mediator.compile(asked, "queries")}
    static = mediator.compile(asked, "static")
    run.begin("registering", len(catalogues))
    for number, catalogue in enumerate(catalogues, 1):
        spent.append(_registered(mediator, catalogue, parameters.rounds))
        found = _recovered_nodes(mediator, catalogue)
        right, nodes = right + found[0], nodes + found[1]
        document = catalogue.document(parameters.bytes, run.seed)
        updates = {way: _first_answer(run, each, static, document, catalogue.name) for way, each in matchers.items()}
        run.advance()
        if number not in parameters.schemas:
            continue
        for way, each in matchers.items():
            yield {
                "schemas": number,
                "way": way,
                "index_bytes": _held(mediator, asked, way),
                "update_ms": 1e3 * updates[way],
                **(_travelling(mediator, each, document, catalogue.name) if way == _DATA else {}),
                "node_us": 1e6 * median(spent[-4:]) if way == _DATA else None,
                "recovered": right / nodes if way == _DATA else None,
                "bytes": len(document),
            }


def _registered(mediator: "Mediator", catalogue: "Catalogue", rounds: int) -> float:
    """Register a catalogue several times; return the shortest time in seconds per node of its schema."""
    from pathcast.mediation.schemas import nodes_of

    best = float("inf")
    for _ in range(rounds):
        began = process_time()
        mediator.register(catalogue.name, catalogue.schema)
        best = min(best, process_time() - began)
    return best / len(nodes_of(catalogue.schema))


def _recovered_nodes(mediator: "Mediator", catalogue: "Catalogue") -> tuple[int, int]:
    """The number of nodes with the operators of the true mapping, and the number of all nodes."""
    from pathcast.mediation.schemas import nodes_of

    truth, derived = _operators_at(catalogue.mapping), _operators_at(mediator.mapping(catalogue.name))
    nodes = nodes_of(catalogue.schema)
    return sum(truth.get(path) == derived.get(path) for path in nodes), len(nodes)


def _operators_at(mapping: "Mapping") -> "dict[str, set[Operator]]":
    found: dict[str, set[Operator]] = {}
    for operator in mapping.operators:
        found.setdefault(operator.node, set()).add(operator)
    return found


def _first_answer(run: Run, matcher: "MediatedMatcher", static: "MediatedMatcher", document: bytes, name: str) -> float:
    """Seconds until a schema's first document is answered, less those of its second."""
    times = []
    for _ in range(2):
        began = process_time()
        found = matcher.match(document, name)
        times.append(process_time() - began)
        run.check_equal(
            "both match what the rewritten document matches",
            {"static": static.match(document, name).ids.tolist(), "this": found.ids.tolist()},
        )
    return max(1e-6, times[0] - times[1])


def _held(mediator: "Mediator", asked: "Subscriptions", way: str) -> int:
    """Bytes of the index, and of the data for each schema."""
    from pathcast.mediation.rewriting.query_rewriter import QueryIndex

    size = int(asked.bytes)
    for name in mediator.schemas:
        mapping = mediator.mapping(name)
        if way == _DATA:
            size += len(mapping.write())
        else:
            index = QueryIndex(mapping.plan, asked.table)
            index.follow(len(asked.table))
            size += index.bytes
    return size


def _travelling(mediator: "Mediator", matcher: "MediatedMatcher", document: bytes, name: str) -> dict[str, float]:
    """Bytes that a mapping or a reference adds to a document, and µs to match such a message."""
    from pathcast_lab.harness import race

    messages = {kind: mediator.pack(document, name, with_mapping=kind == "header") for kind in ("header", "reference")}
    times = race({kind: partial(matcher.match_message, data) for kind, data in messages.items()}, rounds=7)
    return {
        **{f"{kind}_bytes": len(data) - len(document) for kind, data in messages.items()},
        **{f"{kind}_us": 1e6 * time.median for kind, time in times.items()},
    }
