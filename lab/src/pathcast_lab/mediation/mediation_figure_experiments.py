"""The mediation paper's evaluation (§5.2), Figures 5(a) to 5(c) and subscriptions per router, declared as data.

Response time is the sum of querying (measured) and transmission (modelled). Our engines take a hundredth of the time
of the paper's engine per document, so at the paper's bandwidths nearly all of the response time is transmission.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from statistics import fmean
from typing import TYPE_CHECKING

from pathcast_lab.harness import Claim, PaperPoint, Plot, Row, Run, experiment, race

from . import mediation_claims as claims
from .mediation_workloads import (
    SDR,
    Matching,
    Sent,
    Way,
    all_of,
    matching_by,
    mediator_of,
    sent_documents,
    subscriptions_to,
)

if TYPE_CHECKING:
    from pathcast.transmission import Topology

_METHOD = """Routers in a chain of four, or in a complete binary tree of fifteen, have subscriptions of their own, or
only the leaves have; a document of each catalogue is published at the root and goes to all of them. Each router reads,
bridges and matches the document, then sends it on. Querying time is the time that the routers on the way to a
subscriber spend. Transmission time follows from bytes and bandwidth: under SDR the original and the rewritten document
pass every link, and before that the link from the publisher to the mediator; otherwise the original passes with its
mapping as a header. Figures are means over deliveries. The time of the mediator to rewrite a document does not
count."""


@dataclass(frozen=True)
class Mediation:
    """The measured settings, in every combination. `subscriptions` are per router, `sizes` bytes per document."""

    ways: tuple[str, ...] = claims.WAYS
    bandwidths: tuple[str, ...] = ("50Mb/s",)
    sizes: tuple[int, ...] = (20_000,)
    topologies: tuple[str, ...] = ("chain",)
    subscriptions: tuple[int, ...] = (1_000,)
    catalogues: int = 6
    rounds: int = 5


@dataclass(frozen=True)
class Figure:
    """One figure: what differs from the default at the small scale, and what else at the paper's."""

    name: str
    title: str
    claims: tuple[Claim, ...]
    x: str
    x_label: str
    small: Mapping[str, object] = field(default_factory=dict)
    paper: Mapping[str, object] = field(default_factory=dict)
    paper_points: tuple[PaperPoint, ...] = ()


def topology_of(name: str) -> tuple["Topology", bool]:
    """The routers, and whether only leaves have subscriptions."""
    from pathcast.errors import PathcastError
    from pathcast.transmission import Topology

    if name in ("chain", "leaf-only"):
        return Topology.chain(4), name == "leaf-only"
    if name == "tree":
        return Topology.tree(4, 2), False
    raise PathcastError(f"unknown topology '{name}'; the topologies are chain, leaf-only, tree")


def measure(run: Run, parameters: Mediation) -> Iterator[Row]:
    """Every combination of topologies, sizes, subscriptions and bandwidths."""
    from pathcast_lab.workloads import GLOBAL, generate_catalogues

    catalogues = generate_catalogues(parameters.catalogues, seed=run.seed)
    mediator = mediator_of(catalogues)
    ways = [Way.read(text) for text in parameters.ways]
    for name, size, count in product(parameters.topologies, parameters.sizes, parameters.subscriptions):
        topology, leaves_only = topology_of(name)
        sent = sent_documents(mediator, catalogues, size, run.seed)
        routers = range(len(topology.nodes))
        own = [subscriptions_to(GLOBAL, count, run.seed + router) for router in routers]
        matching = {way: [matching_by(way, mediator, own[router]) for router in routers] for way in ways}
        matched = _checked(run, matching, sent)
        run.begin(f"{name}, {size:,} bytes, {count:,} subscriptions per router", parameters.rounds)
        times = race(
            {str(way): all_of(matching[way], sent) for way in ways},
            rounds=parameters.rounds,
            after_round=run.advance,
        )
        for way in ways:
            seconds = times[str(way)].median / len(sent) / len(routers)
            for bandwidth in parameters.bandwidths:
                found = _response(topology, leaves_only, seconds, matched, sent, way, bandwidth)
                yield {
                    "topology": name,
                    "bytes": size,
                    "subscriptions": count,
                    "bandwidth": bandwidth,
                    "mbits": float(bandwidth.removesuffix("Mb/s")),
                    "way": str(way),
                    **found,
                    "matches": fmean(fmean(each) for each in matched),
                    "header": fmean(len(each.message) - len(each.original) for each in sent),
                }
                if str(way) == claims.NDDR_DEFAULT and bandwidth == parameters.bandwidths[0]:
                    run.note(
                        f"{name}, {size:,} bytes, {count:,} subscriptions per router: under NDDR a router takes "
                        f"{found['router_us'] / 1e3:.2f} ms per document, and at {bandwidth} transmission is "
                        f"{found['transmission_ms'] / found['ms']:.0%} of the response time."
                    )


def _checked(run: Run, matching: Mapping[Way, list[Matching]], sent: list[Sent]) -> list[list[int]]:
    """The number of matching subscriptions per router and document, by each method."""
    matched: list[list[int]] = []
    for router in range(len(next(iter(matching.values())))):
        matched.append([])
        for document in sent:
            answers = {str(way): each[router](document) for way, each in matching.items()}
            run.check_equal("every way matches what the rewritten document matches", answers)
            matched[router].append(len(next(iter(answers.values()))))
    return matched


def _response(
    topology: "Topology",
    leaves_only: bool,
    seconds: float,
    matched: list[list[int]],
    sent: list[Sent],
    way: Way,
    bandwidth: str,
) -> dict[str, float]:
    """Means over deliveries of querying and of transmission, in ms."""
    from pathcast.transmission import bandwidth as read_bandwidth

    speed, rooted = read_bandwidth(bandwidth), topology.rooted(0)
    querying, transmission, deliveries = 0.0, 0.0, 0
    for router, counts in enumerate(matched):
        if leaves_only and rooted.children[router]:
            continue
        path = rooted.path(router)
        for document, count in zip(sent, counts, strict=True):
            links = len(path) * document.size(way.kind) + len(document.original) * (way.kind == SDR)
            querying += count * len(path) * seconds
            transmission += count * links / speed
            deliveries += count
    mean = 1e3 / max(1, deliveries)
    return {
        "query_ms": querying * mean,
        "transmission_ms": transmission * mean,
        "ms": (querying + transmission) * mean,
        "router_us": 1e6 * seconds,
        "link_bytes": fmean(each.size(way.kind) for each in sent),
    }


FIGURES = (
    Figure(
        "mediation-fig5a",
        "Mediation, Figure 5(a): bandwidth",
        claims.BANDWIDTH,
        "mbits",
        "Mb/s",
        {"bandwidths": ("10Mb/s", "50Mb/s", "100Mb/s", "10000Mb/s"), "ways": (*claims.WAYS, claims.QRA_DEFAULT)},
        paper_points=claims.BANDWIDTH_POINTS,
    ),
    Figure(
        "mediation-fig5b",
        "Mediation, Figure 5(b): document size",
        claims.SIZES,
        "bytes",
        "bytes per document",
        {"sizes": (10_000, 20_000, 40_000, 1_000_000), "catalogues": 3, "rounds": 3},
        paper_points=claims.SIZE_POINTS,
    ),
    Figure(
        "mediation-fig5c",
        "Mediation, Figure 5(c): topologies",
        claims.TOPOLOGIES,
        "topology",
        "topology",
        {"topologies": ("chain", "leaf-only", "tree"), "catalogues": 3, "rounds": 3},
    ),
    Figure(
        "mediation-subscriptions",
        "Mediation: subscriptions per router",
        claims.SUBSCRIPTIONS,
        "subscriptions",
        "subscriptions per router",
        {"subscriptions": (1_000, 2_000, 4_000), "catalogues": 3, "rounds": 3},
    ),
)


def register(figure: Figure) -> None:
    """Make an experiment of a figure."""

    def measured(run: Run, parameters: Mediation) -> Iterator[Row]:
        yield from measure(run, parameters)

    measured.__doc__ = _METHOD
    small = replace(Mediation(), **figure.small)  # type: ignore[arg-type]
    lines = figure.x != "topology"
    experiment(
        figure.name,
        title=figure.title,
        small=small,
        paper=replace(small, **{"catalogues": 40, "rounds": 7, **figure.paper}),  # type: ignore[arg-type]
        claims=figure.claims,
        plots=tuple(
            Plot(
                name,
                f"{figure.title}: {what}",
                y=column,
                y_label=f"{what}, ms",
                series="way",
                kind="lines" if lines else "bars",
                x=figure.x if lines else "",
                x_label=figure.x_label if lines else "",
                panel=None if lines else "topology",
                ours=(claims.NDDR_DEFAULT,),
                log="xy" if lines and figure.x != "subscriptions" else "",
                paper_points=figure.paper_points if column == "ms" else (),
            )
            for name, column, what in (("response", "ms", "response time"), ("querying", "query_ms", "querying time"))
        ),
        show={
            **{name: name for name in ("topology", "bytes", "subscriptions", "bandwidth")},
            "way": "way",
            "ms": "response time, ms",
            "query_ms": "querying, ms",
            "transmission_ms": "transmission, ms",
            "router_us": "µs per router",
            "link_bytes": "bytes per link",
        },
    )(measured)


for _figure in FIGURES:
    register(_figure)
