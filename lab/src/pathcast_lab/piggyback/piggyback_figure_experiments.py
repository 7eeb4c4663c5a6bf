"""The piggyback paper's evaluation (§6), one experiment per figure; the figures are data in `FIGURES`.

Response time is the mean over deliveries of measured processing and modelled transmission; under `ES` the clock stops
as soon as the streaming engine is certain of a match. Engines are far faster than the paper's, so that at its
bandwidths transmission outweighs processing; links of 1 and 10 GB/s restore the paper's proportions.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from statistics import fmean
from typing import TYPE_CHECKING

from pathcast_lab.harness import Claim, PaperPoint, Plot, Row, Run, experiment

from . import piggyback_claims as claims
from .overlay_timing import PARTS, Way, mean_parts, seconds_below, seconds_of_routers
from .piggyback_workloads import (
    BIBLIOGRAPHY,
    LARGE,
    LARGE_SMALL,
    NEWS_50,
    NEWS_130,
    NEWS_200,
    TREEBANK,
    Workload,
    documents_of,
    overlay_of,
    subscriptions_of,
    wanting,
    warming,
)

if TYPE_CHECKING:
    from pathcast.routing import Overlay, Report

ES, ALL_THREE = claims.ES, claims.ALL_THREE
_METHOD = """A complete binary tree of routers, subscriptions at each of them, a tenth of which match a document. `news
130` are news documents of some 130 elements, and so on for the other sets. `<test>` and the predicate `//test` set
where in a document the first match comes (f). Every document is published several times under every policy, the
policies in turn; of each step of a router the shortest time counts. Transmission is modelled: the measured steps are
laid out for each bandwidth. Throughput is that of the slowest router."""


@dataclass(frozen=True)
class Piggyback:
    """The measured settings, in every combination. `subscriptions` are per router."""

    policies: tuple[str, ...] = (ES, ALL_THREE)
    fractions: tuple[float, ...] = (0.25, 0.5, 0.75, 1.0)
    sets: tuple[str, ...] = (NEWS_130,)
    subscriptions: tuple[int, ...] = (500,)
    bandwidths: tuple[str, ...] = (claims.PAPERS, claims.FASTEST)
    engines: tuple[str, ...] = ("xtrie",)
    nested: tuple[float, ...] = (0.2,)
    skew: tuple[float, ...] = (0.0,)
    keep: tuple[float, ...] = (0.25,)
    documents: int = 4
    levels: int = 4
    rounds: int = 5
    repeats: int = 2


@dataclass(frozen=True)
class Figure:
    """One figure: what differs from the default at the small scale, and what else at the paper's."""

    name: str
    title: str
    claims: tuple[Claim, ...]
    small: Mapping[str, object] = field(default_factory=dict)
    paper: Mapping[str, object] = field(default_factory=dict)
    panel: str | None = None
    paper_points: tuple[PaperPoint, ...] = ()


def measure(run: Run, parameters: Piggyback) -> Iterator[Row]:
    """Every combination of workloads, bandwidths, engines and places."""
    for like, count, nested, skew, keep in product(
        parameters.sets, parameters.subscriptions, parameters.nested, parameters.skew, parameters.keep
    ):
        workload = Workload(like, count, parameters.documents, nested, skew, keep, parameters.levels)
        run.begin(f"{like}, {count:,} subscriptions per router")
        documents = documents_of(like, parameters.documents, run.seed)
        subscriptions = subscriptions_of(workload, documents, run.seed)
        overlay = overlay_of(workload, subscriptions)
        expected = wanting(subscriptions, overlay.routers)
        for f in parameters.fractions:
            yield from _at_place(run, parameters, workload, overlay, expected, documents, f)


def _at_place(
    run: Run,
    parameters: Piggyback,
    workload: Workload,
    overlay: "Overlay",
    expected: Callable[[bytes], set[str]],
    documents: list[bytes],
    f: float,
) -> Iterator[Row]:
    from pathcast.transmission import bandwidth as read_bandwidth
    from pathcast_lab.workloads import steered_documents

    steered = list(steered_documents(documents, f))
    runs = list(_runs(run, parameters))
    for engine, policy in runs:  # work that is done once is not timed
        overlay.publish(next(iter(steered_documents([warming(workload, documents, run.seed)], f))), policy, engine)
    run.begin(f"f = {f:g}", parameters.rounds * len(steered))
    ways = _ways(run, parameters, overlay, expected, steered, runs)
    reading = _reading(steered)
    matching = {engine: _matching(overlay, engine, steered) for engine in dict.fromkeys(engine for engine, _ in runs)}
    if workload.subscriptions == max(parameters.subscriptions) and f == parameters.fractions[-1]:
        _explain(run, parameters, workload, reading, matching, ways)
    for bandwidth, ((engine, policy), gone) in product(parameters.bandwidths, ways.items()):
        parts = mean_parts(gone, read_bandwidth(bandwidth))
        yield {
            "set": workload.documents_like,
            "subscriptions": workload.subscriptions,
            "nested": workload.nested,
            "skew": workload.skew,
            "keep": workload.keep,
            "bandwidth": bandwidth,
            "engine": engine,
            "f": f,
            "policy": policy,
            "ms": 1e3 * sum(parts.values()),
            "reading_us": 1e6 * reading,
            "match_us": 1e6 * matching[engine][0],
            "match_least_us": 1e6 * matching[engine][1],
            **{f"{place}: {step}, µs": 1e6 * parts.get((place, step), 0.0) for place, step in PARTS},
            **_figures(gone, steered),
        }


def _ways(
    run: Run,
    parameters: Piggyback,
    overlay: "Overlay",
    expected: Callable[[bytes], set[str]],
    documents: list[bytes],
    runs: list[tuple[str, str]],
) -> dict[tuple[str, str], list[Way]]:
    """The way of every document under every engine and policy; deliveries of the first round are compared."""
    ways: dict[tuple[str, str], list[Way]] = {each: [] for each in runs}
    for document in documents:
        reports: dict[tuple[str, str], list[Report]] = {each: [] for each in runs}
        for number in range(parameters.rounds):
            for engine, policy in _rotated(runs, number):
                published = overlay.publish(document, policy, engine, repeats=parameters.repeats)
                reports[engine, policy].append(published)
            run.advance()
        answers: dict[str, object] = {
            f"{policy}, {engine}": {each.subscriber for each in several[0].deliveries}
            for (engine, policy), several in reports.items()
        }
        answers["one matcher"] = expected(document)
        run.check_equal("every policy and engine delivers what one matcher over all subscriptions names", answers)
        for each in runs:
            ways[each].append(Way(reports[each], overlay.root))
    return ways


def _explain(
    run: Run,
    parameters: Piggyback,
    workload: Workload,
    reading: float,
    matching: dict[str, tuple[float, float]],
    ways: dict[tuple[str, str], list[Way]],
) -> None:
    """Note how long reading and matching take, with and without what annotations can spare."""
    varied = [name for name in ("nested", "keep", "skew") if len(getattr(parameters, name)) > 1]
    settings = [f"{name} = {getattr(workload, name):g}" for name in varied]
    where = ", ".join([workload.documents_like, f"{workload.subscriptions:,} subscriptions per router", *settings])
    for engine, (all_of_it, least) in matching.items():
        run.note(
            f"{engine}, {where}: below the root a document is read in {1e6 * reading:.0f} µs and matched in "
            f"{1e6 * all_of_it:.0f} µs, or in {1e6 * least:.0f} µs without subscriptions that do not match."
        )
    for (engine, policy), gone in ways.items():
        unread, delivered = (sum(way.unread[place] for way in gone) for place in (0, 1))
        if unread:
            run.note(
                f"{policy}, {engine}, {where}: {unread / delivered:.0%} of the deliveries below the root leave before "
                "the document is read."
            )


def _runs(run: Run, parameters: Piggyback) -> Iterator[tuple[str, str]]:
    """Engines and the policies that they can run."""
    from pathcast.routing import streaming_engines

    for engine in parameters.engines:
        for policy in parameters.policies:
            if policy.startswith("L") or engine in streaming_engines():
                yield engine, policy
            else:
                run.note(f"{engine} reads a document to its end before it answers: {policy} is left out.")


def _figures(ways: list[Way], documents: list[bytes]) -> dict[str, float | None]:
    """The figures of all documents' paths."""
    below = [each for way in ways for name, each in way.report.per_router.items() if name != way.root]
    size = fmean(map(len, documents))
    sizes = [sum(each.annotations.values()) for each in below]
    entries = sum(each.wanted for each in below) or 1
    seconds = seconds_of_routers(ways)
    unread, delivered = (sum(way.unread[place] for way in ways) for place in (0, 1))
    return {
        "processing_ms": 1e3 * sum(seconds.values()),
        "root_us": 1e6 * seconds[ways[0].root],
        "downstream_us": 1e6 * seconds_below(ways),
        "throughput": 1 / max(seconds.values()),
        "bytes": size,
        "header_bytes": fmean(sizes) if sizes else 0.0,
        "annotated": fmean(sizes) / size if sizes else 0.0,
        **{
            f"bytes{kind}": fmean(each.annotations.get(kind, 0) for each in below) if below else 0.0
            for kind in ("+s", "+d", "-s", "-d", "+t")
        },
        "skipped-s": sum(each.skipped.get("-s", 0) for each in below) / entries,
        "skipped-d": sum(each.skipped.get("-d", 0) for each in below) / entries,
        "unread": unread / delivered if delivered else 0.0,
        "parsed": fmean(each.parsed for each in below) if below else 0.0,
        "routers": fmean(len(way.report.per_router) for way in ways),
        "deliveries": fmean(len(way.report.deliveries) for way in ways),
    }


def _rotated(runs: list[tuple[str, str]], by: int) -> list[tuple[str, str]]:
    by %= len(runs)
    return runs[by:] + runs[:by]


def _matching(overlay: "Overlay", engine: str, documents: list[bytes]) -> tuple[float, float]:
    """Seconds to match a document at the second router: all of its table, and only what matches, if it can skip."""
    import time

    import numpy as np

    from pathcast.matching.engine_contract import Skipping

    router = overlay.router(overlay.routers[min(1, len(overlay.routers) - 1)])
    found = router.table.engine(engine)
    spent = [[float("inf")] * 2 for _ in documents]
    for number, document in enumerate(documents):
        batch = router.read(document, text=False)
        skip = np.ones(len(found.table), dtype=np.bool_)
        skip[found.match_batch(batch)[1]] = False
        for _ in range(5):
            began = time.thread_time()
            found.match_batch(batch)
            middle = time.thread_time()
            if isinstance(found, Skipping):
                found.match_except(batch, skip)
            ended = time.thread_time()
            spent[number] = [min(spent[number][0], middle - began), min(spent[number][1], ended - middle)]
    whole, least = (fmean(each[place] for each in spent) for place in (0, 1))
    return whole, least if isinstance(found, Skipping) else whole


def _reading(documents: list[bytes]) -> float:
    """Seconds to read a document, alone, by a reader that knows its names."""
    import time

    from pathcast.documents import Limits, Names
    from pathcast.documents.document_reader import Reader

    scanner = Reader(Names(), Limits(), "refuse").scanner
    best = float("inf")
    for _ in range(3):
        began = time.thread_time()
        for document in documents:
            scanner.read([document])
        best = min(best, time.thread_time() - began)
    return best / len(documents)


_LAZY = ("L", "L+d", "L-s", "L+s", "L-d", "L-sd", ALL_THREE)
_FEW = {"fractions": (0.25, 1.0)}
FIGURES = (
    Figure("piggyback-fig4a", "Piggyback, Figure 4(a): kinds of annotations", claims.KINDS, {"policies": _LAZY}),
    Figure(
        "piggyback-fig4b",
        "Piggyback, Figure 4(b): eager and lazy forwarding",
        claims.FORWARDING,
        {"policies": (ES, "ES+s", "ES+d", ALL_THREE, "adaptive")},
        paper_points=claims.FORWARDING_POINTS,
    ),
    Figure(
        "piggyback-fig4c",
        "Piggyback, Figure 4(c): a large document",
        claims.LARGE_DOCUMENT,
        {
            "policies": (ES, ALL_THREE, "adaptive"),
            "sets": (LARGE_SMALL,),
            "subscriptions": (200,),
            "rounds": 2,
            "repeats": 1,
        },
        {"sets": (LARGE,), "rounds": 3},
    ),
    Figure(
        "piggyback-fig4d",
        "Piggyback, Figure 4(d): bandwidth",
        claims.BANDWIDTH,
        {"bandwidths": ("1MB/s", "10MB/s", "100MB/s", "1GB/s", "10GB/s"), **_FEW},
        panel="bandwidth",
        paper_points=claims.BANDWIDTH_POINTS,
    ),
    Figure(
        "piggyback-fig5a",
        "Piggyback, Figure 5(a): documents",
        claims.SIZES,
        {"sets": (NEWS_50, NEWS_130, NEWS_200, TREEBANK, BIBLIOGRAPHY), "subscriptions": (300,), **_FEW},
        panel="set",
        paper_points=claims.SIZE_POINTS,
    ),
    Figure(
        "piggyback-fig5b",
        "Piggyback, Figure 5(b): nested paths",
        claims.COMPLEXITY,
        {"nested": (0.1, 0.2, 0.4), "subscriptions": (300,), **_FEW},
        panel="nested",
        paper_points=claims.NESTED_POINTS,
    ),
    Figure(
        "piggyback-fig6",
        "Piggyback, Figure 6: subscriptions",
        claims.NUMBERS,
        {"subscriptions": (250, 500, 1_000), **_FEW},
        {"subscriptions": (2_500, 5_000, 50_000), "fractions": (0.25, 0.5, 0.75, 1.0), "rounds": 3},
        panel="subscriptions",
        paper_points=claims.NUMBER_POINTS,
    ),
    Figure(
        "piggyback-bounds",
        "Piggyback: the bound on aggregates, and skewed names",
        claims.BOUNDS,
        {"keep": (0.125, 0.25), "skew": (0.0, 0.5), "subscriptions": (300,), **_FEW},
        panel="keep",
    ),
    Figure(
        "piggyback-engines",
        "Piggyback: engines, and structure annotations",
        claims.ENGINES,
        {
            "engines": ("xtrie", "yfilter", "gpx-ap", "automaton"),
            "subscriptions": (300,),
            **_FEW,
            "policies": (ES, "L", ALL_THREE, "L+t", "L+st-sd", "ES+t"),
        },
        panel="engine",
    ),
)


def register(figure: Figure) -> None:
    """Make an experiment of a figure."""

    def measured(run: Run, parameters: Piggyback) -> Iterator[Row]:
        yield from measure(run, parameters)

    measured.__doc__ = _METHOD
    small = replace(Piggyback(), **figure.small)  # type: ignore[arg-type]
    at_paper = {"subscriptions": (5_000,), "documents": 10, "rounds": 5, **figure.paper}
    experiment(
        figure.name,
        title=figure.title,
        small=small,
        paper=replace(small, **at_paper),  # type: ignore[arg-type]
        claims=figure.claims,
        plots=(
            Plot(
                "response",
                figure.title,
                y="ms",
                y_label="response time, ms",
                series="policy",
                x="f",
                x_label="part of the document before the first match",
                ours=(ALL_THREE,),
                panel=figure.panel or "bandwidth",
                only=_on_fast_links if figure.panel not in {None, "bandwidth"} else None,
                paper_points=figure.paper_points,
            ),
        ),
        show={
            **{
                name: name
                for name in ("set", "subscriptions", "nested", "keep", "skew", "bandwidth", "engine")
                if name == figure.panel or name in {"engine", "bandwidth"}
            },
            "f": "f",
            "policy": "policy",
            "ms": "response time, ms",
            "downstream_us": "µs per hop",
            "root_us": "µs at the root",
            "match_us": "matching alone, µs",
            "match_least_us": "of what matches, µs",
            "throughput": "documents per second",
            "header_bytes": "annotations, bytes",
            "skipped-s": "skipped by NS",
            "skipped-d": "by ND",
            "unread": "unread",
            "parsed": "parsed",
        },
    )(measured)


def _on_fast_links(row: Row) -> bool:
    return row["bandwidth"] == claims.FASTEST


for _figure in FIGURES:
    register(_figure)
