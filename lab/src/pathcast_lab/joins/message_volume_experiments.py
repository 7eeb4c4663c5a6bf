"""Messages and bytes per event that each scheme injects into a network, on every workload of the paper's evaluation.

Injected bytes are not the bytes on links: a message of `rel-sel` is small and goes to all subscribers who select its
tuple, a message of `ref-sj-*` only to those who lack the tuple. The experiments of `network` measure links, with the
server's among them: its stress, of Table 3.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import inf
from statistics import fmean
from typing import TYPE_CHECKING

from pathcast_lab.harness import Claim, Judgement, Plot, Row, Rows, Run, Verdict, experiment

from . import join_server_claims as claims
from .join_scheme_timing import Entrant, Tally, check_clients, mean_interval, race_changes
from .server_experiments import SCHEMES

if TYPE_CHECKING:
    from pathcast_lab.workloads import JoinWorkload

BINARY, STOCKS, MIX, STAR, FACTS = "R ⋈ S", "stocks and ratings", "general mix", "star", "star, facts with payload"
WORKLOADS = (BINARY, STOCKS, MIX, STAR, FACTS)
# Schemes that make every join result: on the general mix an insertion has tens of thousands.
_RESULTS = (claims.ENUM_J, claims.REF_J, claims.REF_J_PLUS)
_CHECKED = 8
_MANY = 100_000
_TABLE_3 = f"{claims.PAPER}, Table 3"


@dataclass(frozen=True)
class Messages:
    """`subscriptions` to two tables; a multi-way mix has 1.7 times as many, as the paper's 170,000.

    `base_rows`: of R with two tables; stocks have as many days as give five eighths of it. `part`: of the join values
    of a multi-way mix, and so of its rows; rows to a join value stay as they are.
    """

    workloads: tuple[str, ...] = WORKLOADS
    schemes: tuple[str, ...] = SCHEMES
    subscriptions: int = 10_000
    base_rows: int = 16_000
    part: float = 0.2
    changes: int = 60
    seeds: int = 3
    clients: int = 2


def _made(name: str, parameters: Messages, seed: int, events: int) -> "JoinWorkload":
    from pathcast_lab import workloads

    count, insertions = parameters.subscriptions, (parameters.changes + _CHECKED + 1) // 2
    many, part, base_rows = round(1.7 * count), parameters.part, parameters.base_rows

    def star(fact_payload: int) -> "JoinWorkload":
        return workloads.star_joins(
            many,
            insertions,
            seed=seed,
            events=events,
            facts=round(25_000 * part),
            dimension=round(1_000 * part),
            fact_payload=fact_payload,
        )

    makers: Mapping[str, Callable[[], JoinWorkload]] = {
        BINARY: lambda: workloads.binary_joins(count, insertions, seed=seed, events=events, base_rows=base_rows),
        STOCKS: lambda: workloads.stock_joins(count, insertions, seed=seed, events=events, days=base_rows // 160),
        MIX: lambda: workloads.mixed_joins(many, insertions, seed=seed, events=events, join_values=round(100 * part)),
        STAR: lambda: star(0),
        FACTS: lambda: star(100),
    }
    if name not in makers:
        raise ValueError(f"workloads: unknown workload '{name}'; the workloads are {', '.join(makers)}")
    return makers[name]()


def _only(*workloads: str, judge: Callable[[Rows], Judgement]) -> Callable[[Rows], Judgement]:
    """A judge that sees only these workloads; the paper's table has figures of one."""
    return lambda rows: judge(Rows(row for row in rows if row["workload"] in workloads))


def _of_many(judge: Callable[[Rows], Judgement]) -> Callable[[Rows], Judgement]:
    """A judge that needs the paper's number of subscriptions: schemes that enumerate them pay for each."""

    def judged_at(rows: Rows) -> Judgement:
        found = judge(rows)
        many = max(rows.numbers("subscriptions"), default=0) >= _MANY
        return (
            found
            if many
            else Judgement(Verdict.NOT_MEASURABLE, f"with fewer than {_MANY:,} subscriptions: {found.measured}")
        )

    return judged_at


@experiment(
    "joins-messages",
    title="Select-joins: messages and bytes that each scheme injects per event",
    small=Messages(),
    paper=Messages(subscriptions=100_000, part=1.0, changes=300, seeds=10),
    claims=(
        Claim(
            "Clu+ injects at most a tenth of the bytes of Ref-J and Ref-J+",
            _TABLE_3,
            _only(BINARY, judge=claims.smallest("bytes", claims.CLU_PLUS, (claims.REF_J, claims.REF_J_PLUS), 10)),
            "lowest",
        ),
        Claim(
            "enumeration takes orders of magnitude more of the server's bandwidth (criterion: 100 times)",
            _TABLE_3,
            _of_many(
                _only(BINARY, judge=claims.smallest("bytes", claims.CLU_PLUS, (claims.ENUM_J, claims.ENUM_SJ), 100))
            ),
            "orders of magnitude",
        ),
        Claim(
            "of the paper's skylines Clu+ makes the smallest messages on every workload of two tables",
            "target",
            _only(
                BINARY, STOCKS, judge=claims.smallest("bytes", claims.CLU_PLUS, (claims.SUB, claims.TUP, claims.CLU))
            ),
            "smallest",
        ),
    ),
    plots=(
        Plot(
            "bytes",
            "Bytes injected per event",
            "bytes",
            "bytes per event",
            "series",
            kind="bars",
            ours=(claims.CLU_PLUS,),
            panel="workload",
            log="y",
        ),
    ),
    show={
        "workload": "workload",
        "subscriptions": "subscriptions",
        "series": "scheme",
        "messages": "messages per event",
        "messages_low": "from",
        "messages_high": "to",
        "bytes": "bytes per event",
        "bytes_low": "from ",
        "bytes_high": "to ",
        "us": "µs per insertion",
        "delete_us": "µs per deletion",
    },
)
def joins_messages(run: Run, parameters: Messages) -> Iterator[Row]:
    """Every scheme's server takes the same insertions and deletions, and the messages are counted as bytes, each once.
    What a server sends over its links, its stress, is in Figure 6.

    An event is an insertion or the deletion that follows it. Each seed draws other rows and changes for the same
    subscriptions; figures are means over seeds. A payload is 100 bytes; facts have a payload only in the last workload.
    On the general mix an insertion has very many join results, and schemes that make them are left out, as in the
    paper.
    """
    for name in parameters.workloads:
        found: dict[str, list[Tally]] = {}
        size = 0
        for events in run.steps(name, range(parameters.seeds)):
            workload = _made(name, parameters, run.seed, events)
            size = len(workload)
            schemes = [one for one in parameters.schemes if name != MIX or one not in _RESULTS]
            entrants = [Entrant(scheme, workload.server(scheme)) for scheme in schemes]
            check_clients(run, workload, entrants, changes=_CHECKED, clients=parameters.clients)
            for scheme, tally in race_changes(entrants, workload.changes, parameters.changes, inf).items():
                found.setdefault(scheme, []).append(tally)
        for scheme, tallies in found.items():
            yield {"workload": name, "subscriptions": size, "series": scheme, **_figures(tallies)}


def _figures(tallies: list[Tally]) -> dict[str, float]:
    row = {}
    for name in ("messages", "bytes"):
        each = [tally.each(getattr(tally, name)) for tally in tallies]
        row[name], row[f"{name}_low"], row[f"{name}_high"] = mean_interval(each)
    for verb, column in (("insert", "us"), ("delete", "delete_us")):
        row[column] = fmean(tally.us(verb) or 0.0 for tally in tallies)
    return row
