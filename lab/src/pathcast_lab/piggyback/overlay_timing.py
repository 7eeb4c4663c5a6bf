"""The path of a document through an overlay, timed several times; the shortest time of each step counts.

A report has the time of every router, by kind of step, up to when each copy or delivery left. The same document under
the same policy takes the same path each time, so rounds differ only in noise, and noise only adds: the time of a step
is its shortest of all rounds. Transmission is modelled, so one path gives the times for every bandwidth.

    response time = mean over deliveries of all steps, at all routers on the way, up to when it left, and the links

Invariant: the parts that `Way.parts` gives add up to the response time.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathcast.routing import Report
    from pathcast.routing.document_route_report import RouterReport, Spent

ROOT, BELOW, LINKS = "root", "below", "links"
TRANSMISSION = "transmission"
STEPS = ("take", "read", "match", "make", "encode", "structure")
PARTS = (*((place, step) for place in (ROOT, BELOW) for step in STEPS), (LINKS, TRANSMISSION))


@dataclass(frozen=True)
class Stay:
    """The time of a router: `spent` in total, up to each copy, and up to this many deliveries."""

    spent: "Spent"
    forwarded: "dict[str, Spent]"
    delivered: "list[tuple[int, Spent]]"

    @property
    def seconds(self) -> float:
        """The router's time."""
        return sum(self.spent.values())


class Way:
    """The path of one document under one policy, from its reports."""

    def __init__(self, reports: "Sequence[Report]", root: str) -> None:
        self.report, self.root = reports[0], root
        times = [{(each.router, each.subscriber): each.time for each in report.deliveries} for report in reports]
        groups: dict[tuple[str, float], list[str]] = {}
        for each in self.report.deliveries:
            groups.setdefault((each.router, each.time), []).append(each.subscriber)
        of_router: dict[str, list[tuple[int, Spent]]] = {}
        for (router, _), who in groups.items():
            moments = (
                report.per_router[router].moments[time[router, who[0]]]
                for report, time in zip(reports, times, strict=True)
            )
            of_router.setdefault(router, []).append((len(who), _least(moments)))
        self.stays = {
            name: _stay([report.per_router[name] for report in reports], of_router.get(name, []))
            for name in self.report.per_router
        }

    def parts(self, speed: float) -> dict[tuple[str, str], float]:
        """Seconds of the mean delivery by place (root, below, links) and step; `speed` in bytes per second."""
        parts: dict[tuple[str, str], float] = defaultdict(float)
        behind = {name: sum(count for count, _ in stay.delivered) for name, stay in self.stays.items()}
        for name in reversed(self.stays):  # routers further away come later
            stay = self.stays[name]
            behind[name] += sum(behind[neighbour] for neighbour in stay.forwarded)
            leaving = [*stay.delivered, *((behind[neighbour], spent) for neighbour, spent in stay.forwarded.items())]
            for count, spent in leaving:
                for step, seconds in spent.items():
                    parts[ROOT if name == self.root else BELOW, step] += count * seconds
            for neighbour in stay.forwarded:
                received = self.report.per_router[neighbour].received
                parts[LINKS, TRANSMISSION] += behind[neighbour] * received / speed
        everybody = behind[self.root] or 1
        return {part: seconds / everybody for part, seconds in parts.items()}

    def response(self, speed: float) -> float:
        """The mean time to a delivery."""
        return sum(self.parts(speed).values())

    @property
    def unread(self) -> tuple[int, int]:
        """The number of deliveries below the root before the document was read, and in all."""
        below = [each for name, stay in self.stays.items() if name != self.root for each in stay.delivered]
        return sum(count for count, spent in below if "match" not in spent), sum(count for count, _ in below)


def _stay(there: "list[RouterReport]", delivered: "list[tuple[int, Spent]]") -> Stay:
    forwarded = {
        neighbour: _least(each.moments[each.forwarded[neighbour]] for each in there) for neighbour in there[0].forwarded
    }
    return Stay(_least(each.spent for each in there), forwarded, delivered)


def _least(several: "Iterable[Spent]") -> "Spent":
    """The shortest time of each step."""
    rounds = list(several)
    return {step: min(each.get(step, 0.0) for each in rounds) for step in rounds[0]}


def mean_parts(ways: Sequence[Way], speed: float) -> dict[tuple[str, str], float]:
    """The parts of the mean response time of several documents."""
    parts: dict[tuple[str, str], float] = defaultdict(float)
    for way in ways:
        for part, seconds in way.parts(speed).items():
            parts[part] += seconds
    return {part: seconds / len(ways) for part, seconds in parts.items()}


def seconds_of_routers(ways: Sequence[Way]) -> dict[str, float]:
    """Seconds per document of each router that was reached."""
    names = dict.fromkeys(name for way in ways for name in way.stays)
    return {name: sum(way.stays[name].seconds for way in ways if name in way.stays) / len(ways) for name in names}


def seconds_below(ways: Sequence[Way]) -> float:
    """Seconds of a router below the root that a document reached."""
    spent = [stay.seconds for way in ways for name, stay in way.stays.items() if name != way.root]
    return fmean(spent) if spent else 0.0
