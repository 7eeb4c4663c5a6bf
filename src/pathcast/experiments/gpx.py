"""The GPX paper's evaluation (§5), one experiment a figure; the figures are data in `gpx_figures.py`.

As in the paper, a document's time is that of reading it, matching it, and collecting the matches in a bit vector with
one bit a query, copies included; building is not counted. All engines share the subscriptions and one process; the
memory of each is that of its own arrays and the table of distinct patterns.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any

from .gpx_claims import ALWAYS, OURS
from .gpx_figures import FIGURES, Figure
from .gpx_workloads import Workload
from .measure import race
from .parameters import ParameterError
from .plot import Plot
from .process import peak_bytes
from .registry import experiment
from .rows import Row
from .run import Run

if TYPE_CHECKING:
    from ..documents.reader import Reader
    from ..matching import Subscriptions
    from ..matching.contract import Engine, Entries, Offsets

    Behind = tuple[Offsets, Entries]

_METHOD = """All documents are read, matched and their results collected in bit vectors, again and again on one core,
the engines in turn; the time is a document's share, as in §5 of the paper. All engines' answers are compared before
any is timed. Of each engine's time, the parts for reading and for matching are taken inside the same calls.
Memory is an engine's arrays and the table of patterns; the peak is that of the process with all engines. What is done
a document are the engine's own counts (states visited, paths compared and the like); the nanoseconds for each of the
most frequent one tell an algorithm that does more from one that is slower at what it does."""


# Axes of the figures that are no whole numbers.
PROBABILITIES = ("wildcard", "descendant")


@dataclass(frozen=True)
class Points:
    """`points` are places on the figure's axis, `queries` how many there are where the axis does not set it.

    `cases` are those of the figure that are measured.
    """

    points: tuple[float, ...]
    queries: int
    documents: int
    rounds: int
    engines: tuple[str, ...]
    cases: tuple[str, ...]


def register(figure: Figure) -> None:
    """Make an experiment of a figure."""

    def measure(run: Run, parameters: Points) -> Iterator[Row]:
        for case in parameters.cases:
            settings = _settings(figure, case)
            for point in parameters.points:
                x = point if figure.axis in PROBABILITIES else int(point)
                yield from _measure(run, parameters, x, case, _workload(figure, parameters, x, settings))

    measure.__doc__ = _METHOD
    series = (figure.engines, tuple(figure.cases))
    experiment(
        figure.name,
        title=figure.title,
        small=Points(figure.small, figure.queries[0], figure.documents, figure.rounds, *series),
        paper=Points(figure.paper, figure.queries[1], 500, 5, *series),
        claims=(*figure.claims, *ALWAYS),
        plots=(
            Plot(
                name="time",
                title=figure.title,
                y="us",
                y_label="µs a document",
                series="engine",
                x="x",
                x_label=figure.label,
                ours=(OURS,),
                panel="case" if len(figure.cases) > 1 else None,
                log="xy" if figure.axis == "queries" else "y",
            ),
        ),
        show={
            **({"case": "case"} if len(figure.cases) > 1 else {}),
            "x": figure.label,
            "distinct": "distinct",
            "matched": "matched queries, %",
            "engine": "engine",
            "us": "µs a document",
            "us_low": "from",
            "us_high": "to",
            "match_us": "of it matching",
            "reading_us": "reading",
            "build_s": "built in s",
            "memory_mb": "MB",
            "delegated_patterns": "patterns delegated",
            "delegated_documents": "documents delegated",
            "work": "done a document, in the first pass",
            "ns_each": "ns for each of the most frequent",
        },
    )(measure)


def _settings(figure: Figure, case: str) -> Mapping[str, float | int]:
    if case not in figure.cases:
        known = ", ".join(figure.cases) or "none"
        raise ParameterError(f"{figure.name} has no case '{case}'; there are: {known}")
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

    from ..documents import Limits
    from ..documents.reader import Reader

    run.begin(f"documents and queries {case} at {x:,}")
    documents, queries = workload.generate(run)
    subscriptions = pathcast.Subscriptions()
    subscriptions.add_many(queries)
    del queries
    reader = Reader(subscriptions.table.names, Limits(), "refuse")
    engines, seconds = _built(run, parameters.engines, subscriptions, x)
    batch = reader.read(documents)
    before = {name: dict(engine.statistics()) for name, engine in engines.items()}
    answers = {name: engine.match_batch(batch) for name, engine in engines.items()}
    run.check("the documents can be read", not batch.errors)
    run.check_equal("all engines find the same matches", answers)
    spent = {
        name: _spent(engine, before[name], len(subscriptions.table), len(documents)) for name, engine in engines.items()
    }
    most = {name: counts.pop("most") for name, counts in spent.items()}
    behind = _behind(subscriptions)
    _, entries = next(iter(answers.values()))
    found = int(np.diff(behind[0])[entries].sum())
    del answers
    run.begin(f"matching {case} at {x:,}", parameters.rounds)
    rivals = {name: Filtering(engine, behind, reader, documents) for name, engine in engines.items()}
    times = race(rivals, rounds=parameters.rounds, at_least=0.01, after_round=run.advance)
    each = 1e6 / len(documents)
    for name, engine in engines.items():
        low, high = times[name].interval
        yield {
            "case": case,
            "x": x,
            "engine": name,
            "queries": len(subscriptions),
            "distinct": len(subscriptions.table),
            "documents": len(documents),
            "matched": 100 * found / len(documents) / len(subscriptions),
            "us": times[name].median * each,
            "us_low": low * each,
            "us_high": high * each,
            "match_us": median(rivals[name].matching) * each,
            "reading_us": median(rivals[name].reading) * each,
            "collecting_us": median(rivals[name].collecting) * each,
            "build_s": seconds[name],
            "memory_mb": (_bytes(engine) + subscriptions.table.bytes) / 1e6,
            "peak_mb": peak_bytes() / 1e6,
            **spent[name],
            "ns_each": 1e3 * median(rivals[name].matching) * each / most[name] if most[name] else None,
        }


def _built(
    run: Run, names: Iterable[str], subscriptions: "Subscriptions", x: float
) -> tuple[dict[str, "Engine"], dict[str, float]]:
    """The engines that are there, and how long each took to build."""
    from ..matching.registry import engine_class, engines

    built: dict[str, Engine] = {}
    seconds: dict[str, float] = {}
    for name in names:
        if name not in engines():
            run.note(f"The engine {name} is not part of this Pathcast: it is left out.")
            continue
        run.begin(f"building {name} at {x:,}")
        kind = engine_class(name)  # which loads its kernels
        begin = perf_counter()
        built[name] = kind.build(subscriptions.table)
        seconds[name] = perf_counter() - begin
    return built, seconds


class Filtering:
    """An engine's way from bytes to bit vectors; keeps what each part of it took, call by call."""

    def __init__(self, engine: "Engine", behind: "Behind", reader: "Reader", documents: list[bytes]) -> None:
        import numpy as np

        self.engine, self.reader, self.documents = engine, reader, documents
        self.begin, self.ids = behind
        self.bits = np.zeros(int(self.ids.max(initial=0)) + 63 >> 6, dtype=np.uint64)
        self.reading: list[float] = []
        self.matching: list[float] = []
        self.collecting: list[float] = []

    def __call__(self) -> None:
        from .gpx_kernels import collect_bits

        started = perf_counter()
        batch = self.reader.read(self.documents, borrowed=True)
        read = perf_counter()
        offsets, entries = self.engine.match_batch(batch)
        matched = perf_counter()
        collect_bits(offsets, entries, self.begin, self.ids, self.bits)
        self.reading.append(read - started)
        self.matching.append(matched - read)
        self.collecting.append(perf_counter() - matched)


def _behind(subscriptions: "Subscriptions") -> "Behind":
    """The queries behind each distinct one: where they begin, and their ids."""
    import numpy as np

    distinct = len(subscriptions.table)
    return subscriptions.expansion().ids_of_all(
        np.arange(distinct + 1, dtype=np.int64), np.arange(distinct, dtype=np.int32)
    )


def _bytes(engine: "Engine") -> int:
    return sum(array.nbytes for array in engine.arrays().values())


def _spent(engine: "Engine", before: dict[str, Any], patterns: int, documents: int) -> dict[str, Any]:
    """What one pass over the documents took, by the engine's own counts, and what it handed to another engine."""
    after = engine.statistics()
    grown = {name: count - before.get(name, 0) for name, count in after.items() if not name.endswith("bytes")}
    each = {name: count / documents for name, count in grown.items() if count > 0}
    work = (f"{name} {count:,.0f}" if count >= 10 else f"{name} {count:.2g}" for name, count in each.items())
    return {
        "delegated_patterns": after.get("delegated patterns", 0) / patterns if patterns else 0.0,
        "delegated_documents": grown.get("delegated documents", 0) / documents,
        "work": ", ".join(work),
        "most": max(each.values(), default=0.0),
    }


for _figure in FIGURES:
    register(_figure)
