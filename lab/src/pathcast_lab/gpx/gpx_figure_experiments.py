"""The GPX paper's evaluation (§5), one experiment per figure; the figures are data in `figure_settings.py`.

As in the paper, a document's time is that of reading it, matching it, and collecting the matches in a bit vector with
one bit per query, copies included; building is not counted. All engines share the subscriptions and one process; the
memory of each is that of its own arrays and the table of distinct patterns.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING, Any

from pathcast_lab.harness import ParameterError, Plot, Row, Rows, Run, Timing, experiment, peak_bytes, race

from .claim_judges import OURS, explanations
from .figure_settings import FIGURES, Figure
from .gpx_workloads import Workload
from .measured_engines import Filtering, build, bytes_of, check_answers, queries_behind, sampled

if TYPE_CHECKING:
    from pathcast.matching.engine_contract import Engine

_METHOD = """All documents are read, matched, and their results collected in bit vectors, repeatedly and on one core;
the time is that per document, as in §5 of the paper. Building an engine does not count. An engine that would take too
long is timed on every n-th document. The parts for reading and matching are taken inside the same calls. Memory is that
of an engine's arrays and of the table of patterns. Steps are what an engine itself counts (states visited, paths
compared and the like)."""


# Axes of the figures that are not whole numbers.
PROBABILITIES = ("wildcard", "descendant")


@dataclass(frozen=True)
class Points:
    """`points` are places on the figure's axis, `queries` how many there are where the axis does not set it.

    `seconds` is about the longest time of a pass over the documents: slower engines are timed on fewer documents.
    `cases` are those of the figure that are measured.
    """

    points: tuple[float, ...]
    queries: int
    documents: int
    rounds: int
    seconds: float
    engines: tuple[str, ...]
    cases: tuple[str, ...]


def register(figure: Figure) -> None:
    """Make an experiment of a figure."""

    def measure(run: Run, parameters: Points) -> Iterator[Row]:
        for case in parameters.cases:
            settings = _settings(figure, case)
            rows: list[Row] = []
            for point in parameters.points:
                x = point if figure.axis in PROBABILITIES else int(point)
                for row in _measure(run, parameters, x, case, _workload(figure, parameters, x, settings)):
                    rows.append({**row, "place": figure.place.format(x)})
                    yield rows[-1]
            for text in explanations(claims, Rows(rows)):
                run.note(text)

    measure.__doc__ = _METHOD
    series = (figure.engines, tuple(figure.cases))
    claims = (*figure.claims, *figure.always)
    experiment(
        figure.name,
        title=figure.title,
        small=Points(figure.small, figure.queries[0], figure.documents, figure.rounds, 0.5, *series),
        paper=Points(figure.paper, figure.queries[1], 500, 5, 1.0, *series),
        claims=claims,
        plots=(
            Plot(
                name="time",
                title=figure.title,
                y="us",
                y_label="µs per document",
                series="engine",
                x="x",
                x_label=figure.label,
                ours=(OURS,),
                panel="case" if len(figure.cases) > 1 else None,
                log="xy" if figure.axis == "queries" else "y",
                paper_points=figure.paper_points,
            ),
        ),
        show={
            **({"case": "case"} if len(figure.cases) > 1 else {}),
            "x": figure.label,
            "distinct": "distinct",
            "matched": "matched queries, %",
            "engine": "engine",
            "us": "µs per document",
            "us_low": "from",
            "us_high": "to",
            "match_us": "of it matching",
            "reading_us": "reading",
            "build_s": "built in s",
            "memory_mb": "MB",
            "delegated_patterns": "patterns delegated",
            "delegated_documents": "documents delegated",
            "timed": "documents timed",
            "work": "steps per document",
            "ns_step": "ns per step",
        },
    )(measure)


def _settings(figure: Figure, case: str) -> Mapping[str, float | int]:
    if case not in figure.cases:
        known = ", ".join(figure.cases) or "none"
        raise ParameterError(f"{figure.name} has no case '{case}'; its cases are {known}")
    return figure.cases[case]


def _workload(figure: Figure, parameters: Points, x: float, settings: Any) -> Workload:
    """The workload at one place of the axis."""
    workload = Workload(figure.schema, parameters.documents, parameters.queries, **{**figure.fixed, **settings})
    if figure.axis == "length and levels":
        return replace(workload, length=int(x), levels=int(x))
    change: dict[str, Any] = {figure.axis: x}
    return replace(workload, **change)


def _measure(run: Run, parameters: Points, x: float, case: str, workload: Workload) -> Iterator[Row]:
    import numpy as np

    import pathcast
    from pathcast.documents import Limits
    from pathcast.documents.document_reader import Reader

    run.begin(f"documents and queries {case} at {x:,}")
    documents, queries = workload.generate(run)
    subscriptions = pathcast.Subscriptions()
    subscriptions.add_many(queries)
    del queries
    reader = Reader(subscriptions.table.names, Limits(), "refuse")
    engines, seconds = build(run, parameters.engines, subscriptions.table, x)
    run.begin(f"comparing answers {case} at {x:,}")
    samples = {name: sampled(engine, reader, documents, parameters.seconds) for name, engine in engines.items()}
    answers = check_answers(run, engines, reader, documents, samples)
    behind = queries_behind(subscriptions)
    found = int(np.diff(behind[0])[answers[1]].sum())
    del answers
    run.begin(f"matching {case} at {x:,}", parameters.rounds)
    rivals = {
        name: Filtering(engine, behind, reader, [documents[index] for index in samples[name]])
        for name, engine in engines.items()
    }
    times = race(rivals, rounds=parameters.rounds, at_least=0.01, after_round=run.advance)
    for name, engine in engines.items():
        yield {
            "case": case,
            "x": x,
            "engine": name,
            "queries": len(subscriptions),
            "distinct": len(subscriptions.table),
            "documents": len(documents),
            "timed": len(samples[name]),
            "matched": 100 * found / len(documents) / len(subscriptions),
            **_times(times[name], rivals[name]),
            "build_s": seconds[name],
            "memory_mb": (bytes_of(engine) + subscriptions.table.bytes) / 1e6,
            "peak_mb": peak_bytes() / 1e6,
            **_work(engine, rivals[name], len(subscriptions.table)),
        }


def _times(timing: Timing, rival: Filtering) -> Row:
    """Microseconds per document, and their parts."""
    each = 1e6 / len(rival.documents)
    low, high = timing.interval
    return {
        "us": timing.median * each,
        "us_low": low * each,
        "us_high": high * each,
        "match_us": median(rival.matching) * each,
        "reading_us": median(rival.reading) * each,
        "collecting_us": median(rival.collecting) * each,
    }


def _work(engine: "Engine", rival: Filtering, patterns: int) -> Row:
    """The engine's own counts of work per document, and what it handed to another engine."""
    counts = rival.counts()
    delegated = counts.pop("delegated documents", 0.0)
    steps = sum(counts.values())
    words = (f"{name} {count:,.0f}" if count >= 10 else f"{name} {count:.2g}" for name, count in counts.items())
    ns = 1e9 * median(rival.matching) / len(rival.documents)
    return {
        "delegated_patterns": engine.statistics().get("delegated patterns", 0) / patterns if patterns else 0.0,
        "delegated_documents": delegated,
        "work": ", ".join(words),
        "steps": steps,
        "ns_step": ns / steps if steps else None,
    }


for _figure in FIGURES:
    register(_figure)
