"""The server side of the select-join paper's evaluation (§6.1): Figures 5 and 8, and Table 4.

Every scheme's server is given the same rows, subscriptions and changes; rivals are DuckDB and a plain loop. The
figures are data in `FIGURES`. The experiments of `network` measure the traffic of messages.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import inf
from statistics import fmean
from typing import TYPE_CHECKING

from pathcast_lab.harness import Claim, Plot, Row, Run, experiment

from . import join_server_claims as claims
from .join_rivals import Loop, OneQuery, Queries, rivals_of
from .join_scheme_timing import Entrant, Tally, check_clients, check_results, mean_interval, race_changes, race_rivals

if TYPE_CHECKING:
    from pathcast_lab.workloads import JoinWorkload

SCHEMES = (
    "enum-j",
    "rel-sel",
    "ref-j",
    "ref-j+",
    "enum-sj",
    "ref-sj-sub",
    "ref-sj-tup",
    "ref-sj-clu",
    "ref-sj-clu+",
    "ref-sj-min",
)
_METHOD = """R ⋈ S with 100 join values; the rows of S follow Zipf's law; 70 % of the insertions into R join something,
and each is followed by the deletion of R's oldest row. Every scheme's server takes the same changes in turn, up to its
limit of seconds; a change is timed from the call to the bytes of its messages, in seconds of the processor. Each seed
draws other rows and changes for the same subscriptions; figures are means over seeds. DuckDB runs on one core, with the
ranges of all subscriptions as a table and one query per insertion; "one by one" is one query per subscription, for a
sample, multiplied, and so is the loop in plain Python. Rivals find results and send nothing."""


@dataclass(frozen=True)
class Joins:
    """The measured settings, in every combination. `changes` and `seconds` are per server, setting and seed."""

    schemes: tuple[str, ...] = SCHEMES
    subscriptions: tuple[int, ...] = (10_000, 30_000, 100_000)
    rjor: tuple[int, ...] = (51,)
    base_rows: int = 16_000
    changes: int = 100
    seconds: float = 0.3
    seeds: int = 3
    clients: int = 2
    rivals: bool = True
    rival_events: int = 3
    queries: int = 100
    looped: int = 3_000
    memory: bool = False


@dataclass(frozen=True)
class Figure:
    """One figure: what differs from the default at the small scale, and what else at the paper's."""

    name: str
    title: str
    claims: tuple[Claim, ...]
    plots: tuple[Plot, ...]
    show: Mapping[str, str]
    small: Mapping[str, object] = field(default_factory=dict)
    paper: Mapping[str, object] = field(default_factory=dict)


# The figures of a series in one seed: µs per insertion, and counts.
_Found = tuple[float, Tally | None]
_CHECKED, _COMPARED = 8, 6


def measure(run: Run, parameters: Joins) -> Iterator[Row]:
    """Every number of results and of subscriptions, under every scheme and seed."""
    found: dict[tuple[int, int, str], list[_Found]] = {}
    for rjor in parameters.rjor:
        for events in range(parameters.seeds):
            for size, series, one in _seed(run, parameters, rjor, events):
                found.setdefault((rjor, size, series), []).append(one)
    for (rjor, size, series), seeds in found.items():
        yield {"rjor": rjor, "subscriptions": size, "series": series, **_figures(run, parameters, size, series, seeds)}


def _seed(run: Run, parameters: Joins, rjor: int, events: int) -> Iterator[tuple[int, str, _Found]]:
    """One seed of the rows and changes: servers grow from one number of subscriptions to the next."""
    from pathcast.joins import JoinServer
    from pathcast_lab.workloads import binary_joins

    sizes = sorted(parameters.subscriptions)
    steps = parameters.changes + _CHECKED + _COMPARED
    whole = binary_joins(
        sizes[-1],
        steps * len(sizes),
        seed=run.seed,
        events=events,
        base_rows=parameters.base_rows,
        joined_rows=100 * rjor,
    )
    (batch,) = whole.batches
    run.begin(f"seed {events + 1} of {parameters.seeds}, {rjor} results an insertion", len(sizes))
    entrants = [Entrant(scheme, JoinServer(whole.schema(), scheme)) for scheme in parameters.schemes]
    for entrant in entrants:
        entrant.server.apply(whole.rows)
    before = 0
    for size in sizes:
        for entrant in entrants:
            entrant.server.subscribe_many(batch.query, batch.part(before, size).ranges)
        before = size
        yield from _at_size(run, parameters, replace(whole, batches=(batch.part(0, size),)), entrants)
        run.advance()


def _at_size(
    run: Run, parameters: Joins, workload: "JoinWorkload", entrants: list[Entrant]
) -> Iterator[tuple[int, str, _Found]]:
    size = len(workload)
    check_clients(run, workload, entrants, changes=_CHECKED, clients=parameters.clients)
    if parameters.rivals:
        rivals = rivals_of(workload, queries=parameters.queries, looped=parameters.looped)
        for entrant in entrants:
            if entrant.scheme == claims.ENUM_J:
                check_results(run, entrant, rivals, workload.changes, _COMPARED)
        coming = [row for verb, _, row in workload.changes if verb == "insert"][: parameters.rival_events]
        for name, seconds in race_rivals(rivals, coming, size).items():
            yield size, name, (1e6 * seconds, None)
    for scheme, tally in race_changes(entrants, workload.changes, parameters.changes, parameters.seconds).items():
        yield size, scheme, (tally.us("insert") or 0.0, tally)


def _figures(run: Run, parameters: Joins, size: int, series: str, seeds: list[_Found]) -> dict[str, float | None]:
    """The figures of one series over all seeds."""
    mean, low, high = mean_interval([us for us, _ in seeds])
    tallies = [tally for _, tally in seeds if tally is not None]
    row: dict[str, float | None] = {"us": mean, "us_low": low, "us_high": high}
    if not tallies:
        return row
    described = [tally for tally in tallies if tally.skylines]
    row |= {
        "delete_us": fmean(tally.us("delete") or 0.0 for tally in tallies),
        "changes": sum(tally.changes.total() for tally in tallies),
        "messages": fmean(tally.each(tally.messages) for tally in tallies),
        "bytes": fmean(tally.each(tally.bytes) for tally in tallies),
    }
    if described:
        sizes = [tally.description / tally.skylines for tally in described]
        row["description"], row["description_low"], row["description_high"] = mean_interval(sizes)
        row["points"] = fmean(tally.points / tally.skylines for tally in described)
    if parameters.memory and series == claims.CLU_PLUS:
        row["memory"] = memory_of(size, run.seed)
    return row


def memory_of(subscriptions: int, seed: int) -> float:
    """Bytes of memory that a subscription takes at the server under `ref-sj-clu+`."""
    from pathcast_lab.harness import in_fresh_process

    return in_fresh_process(_grown, subscriptions, seed).value


def _grown(subscriptions: int, seed: int) -> float:
    """The memory growth of this process per subscription, without the first thousandth of the subscriptions."""
    import gc

    from pathcast.joins import JoinServer
    from pathcast_lab.harness import resident_bytes
    from pathcast_lab.workloads import binary_joins

    workload = binary_joins(subscriptions, 20, seed=seed, base_rows=2_000)
    (batch,) = workload.batches
    few = max(1, subscriptions // 1_000)
    server = JoinServer(workload.schema(), claims.CLU_PLUS)
    server.apply(workload.rows)
    server.subscribe_many(batch.query, batch.part(0, few).ranges)
    server.apply(workload.changes[:20])
    gc.collect()
    before = resident_bytes()
    server.subscribe_many(batch.query, batch.part(few, subscriptions).ranges)
    server.apply(workload.changes[20:])
    gc.collect()
    return (resident_bytes() - before) / (subscriptions - few)


_TIMES = {
    "subscriptions": "subscriptions",
    "rjor": "results per insertion",
    "series": "scheme",
    "us": "µs per insertion",
    "us_low": "from",
    "us_high": "to",
    "delete_us": "µs per deletion",
    "messages": "messages per change",
    "bytes": "bytes per change",
    "changes": "changes",
    "memory": "bytes of memory per subscription",
}
# Series that a plot can show: the paper's schemes; and ours beside the rivals.
_PAPERS = frozenset(SCHEMES) - {claims.MIN}
_RIVALS = frozenset({claims.CLU_PLUS, claims.ENUM_J, OneQuery.name, Queries.name, Loop.name})


def _times(x: str, x_label: str) -> tuple[Plot, ...]:
    """Times over some column: of the schemes, and of ours beside the rivals."""
    return tuple(
        Plot(
            name,
            title,
            "us",
            "µs per insertion",
            "series",
            x=x,
            x_label=x_label,
            ours=(claims.CLU_PLUS,),
            log="xy",
            only=lambda row, shown=shown: row["series"] in shown,  # type: ignore[misc]
        )
        for name, title, shown in (
            ("time", "Time per insertion, one core", _PAPERS),
            ("rivals", "Time per insertion, one core, beside rivals", _RIVALS),
        )
    )


FIGURES = (
    Figure(
        "joins-fig5",
        "Select-joins, Figure 5: time per insertion by the number of subscriptions",
        (*claims.TIMES, *claims.TARGETS),
        _times("subscriptions", "subscriptions"),
        _TIMES,
        {"memory": True},
        {"subscriptions": (100_000, 250_000, 500_000, 1_000_000)},
    ),
    Figure(
        "joins-fig8",
        "Select-joins, Figure 8: time per insertion by its number of join results",
        claims.RATES,
        _times("rjor", "join results of an insertion"),
        _TIMES,
        {"subscriptions": (30_000,), "rjor": (2, 20, 200), "changes": 60, "seconds": 0.2},
        {"subscriptions": (100_000,), "rjor": (1, 5, 10, 23, 51, 100, 200, 400)},
    ),
    Figure(
        "joins-table4",
        "Select-joins, Table 4: size of descriptions",
        claims.DESCRIPTIONS,
        (
            Plot(
                "description",
                "Size of a description",
                "description",
                "bytes",
                "series",
                x="subscriptions",
                x_label="subscriptions",
                ours=(claims.CLU_PLUS,),
                log="xy",
                interval=("description_low", "description_high"),
            ),
        ),
        {
            "subscriptions": "subscriptions",
            "series": "skyline",
            "description": "bytes per skyline",
            "description_low": "from",
            "description_high": "to",
            "points": "points",
            "us": "µs per insertion",
            "bytes": "bytes per change",
            "changes": "changes",
        },
        {
            "schemes": claims.SKYLINES,
            "rivals": False,
            "seeds": 5,
            "seconds": inf,
            "changes": 40,
            "subscriptions": (10_000, 100_000),
        },
        {"subscriptions": (100_000, 1_000_000), "seconds": inf, "changes": 200},
    ),
)


def register(figure: Figure) -> None:
    """Make an experiment of a figure."""

    def measured(run: Run, parameters: Joins) -> Iterator[Row]:
        yield from measure(run, parameters)

    measured.__doc__ = _METHOD
    small = replace(Joins(), **figure.small)  # type: ignore[arg-type]
    at_paper = {"changes": 2_000, "seconds": 8.0, "seeds": 10, "rival_events": 10, **figure.paper}
    experiment(
        figure.name,
        title=figure.title,
        small=small,
        paper=replace(small, **at_paper),  # type: ignore[arg-type]
        claims=figure.claims,
        plots=figure.plots,
        show=figure.show,
    )(measured)


for _figure in FIGURES:
    register(_figure)
