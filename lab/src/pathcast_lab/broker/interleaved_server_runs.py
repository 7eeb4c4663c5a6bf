"""Servers in turn: each rival once per round, with what it cost, and the rows that compare ours with the others."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from pathcast_lab.harness import Row, Run, Timing, ratio

if TYPE_CHECKING:
    from .load_generator import Answers

OURS = "pathcast"


@dataclass(frozen=True)
class Work:
    """One rival's share of one round: seconds, CPU seconds of the server, CPU seconds of the generator."""

    seconds: float
    server: float
    generator: float


def in_turn(run: Run, rivals: Mapping[str, Callable[[], Work]], rounds: int) -> dict[str, list[Work]]:
    """Each rival once per round, in rotating order, after a round that does not count."""
    done: dict[str, list[Work]] = {name: [] for name in rivals}
    order = list(rivals)
    for number in range(rounds + 1):
        for name in order:
            work = rivals[name]()
            if number:
                done[name].append(work)
        order = order[1:] + order[:1]
        run.advance()
    return done


def check_accepted(run: Run, done: "Answers", requests: int) -> None:
    """All requests were accepted, and none of their documents was a duplicate."""
    run.check("all publications are accepted", done.statuses == {202: requests}, str(done.statuses))
    run.check("no publication is a duplicate", not done.duplicates, f"{done.duplicates:,} are")


def rate_rows(part: str, done: Mapping[str, list[Work]], documents: int, **more: str | int | float) -> Iterator[Row]:
    """A row per rival: documents per second, and how many times faster ours is; also by the CPU time of the server."""
    ours = done[OURS]
    for name, works in done.items():
        faster = ratio(Timing(tuple(each.seconds for each in works)), Timing(tuple(each.seconds for each in ours)))
        cpu, own = (median(each.server for each in some) for some in (works, ours))
        yield {
            "part": part,
            "series": name,
            **more,
            "rate": documents / median(each.seconds for each in works),
            "times": faster.median,
            "low": faster.low,
            "high": faster.high,
            "cpu_us": cpu / documents * 1e6,
            "cpu_times": cpu / own if own else None,
            "generator": median(each.generator / each.seconds for each in works),
        }
