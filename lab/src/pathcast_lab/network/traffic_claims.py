"""Judges of the select-join paper's claims about overlay traffic.

A claim must hold at every point of a figure's axis; growth must hold from each point to the next.
"""

from collections.abc import Callable, Mapping
from itertools import pairwise
from math import inf

from pathcast_lab.harness import Claim, Judgement, MissingRowError, Row, Rows, every, judged, number_in

PAPER = "Chandramouli, Yang 2008"
OURS = "ref-sj-clu+"
STRAWMEN = ("enum-j", "rel-sel", "ref-j", "ref-j+")
BY_GROUP, BY_TEMPLATE, TREE = "can", "can by template", "cbn"
NETWORKS = (BY_GROUP, BY_TEMPLATE, TREE)
# Ends a claim that is judged on zones by template.
SAME_ZONES = ", with all schemes in the same zones"
# What a column counts, and how a value on an axis reads.
UNITS = {
    "bytes": "bytes per insertion",
    "hops": "hops per insertion",
    "stress": "bytes per insertion sent by the server",
    "last_hop": "bytes per insertion with the last hop",
}
AXES = {
    "subscriptions": "{:,} subscriptions",
    "base_rows": "{:,} rows of R",
    "joined_rows": "{:,} rows of S",
    "payload": "{:,} bytes of payload",
    "narrower": "a reduction of {:,}",
    "alike": "deviation {:,}",
}


def figures(rows: Rows, scheme: str, column: str, network: str = "can") -> dict[str, float]:
    """A scheme's figures by place, by default on the paper's kind of network."""
    found = {_place(rows, row): number_in(row, column) for row in _measured(rows, scheme, network)}
    if not found:
        raise MissingRowError(f"no row of scheme '{scheme}' in network '{network}'")
    return found


def _measured(rows: Rows, scheme: str, network: str = "can") -> list[Row]:
    return [row for row in rows if row["scheme"] == scheme and row["network"] == network]


def _place(rows: Rows, row: Row) -> str:
    """The values of a row on the axes that the run varies."""
    return " and ".join(text.format(row[axis]) for axis, text in AXES.items() if len(rows.distinct(axis)) > 1)


def _at(place: str) -> str:
    return f" at {place}" if place else ""


def _times(rows: Rows, rival: str, column: str, network: str) -> dict[str, float]:
    """The ratio of a rival's figure to ours, by place, with the interval of the ratio if the row has one."""
    ours = figures(rows, OURS, column, network)
    found = {}
    for row in _measured(rows, rival, network):
        place, low, high = _place(rows, row), row.get("times_low"), row.get("times_high")
        known = column == "bytes" and isinstance(low, float) and isinstance(high, float)
        interval = f" (interval {low:,.1f} to {high:,.1f})" if known else ""
        found[f"for {rival}{_at(place)}{interval}"] = _ratio(number_in(row, column), ours[place])
    if not found:
        raise MissingRowError(f"no row of scheme '{rival}' in network '{network}'")
    return found


def _ratio(theirs: float, mine: float) -> float:
    return theirs / mine if mine else inf


def below(times: float, column: str, rivals: tuple[str, ...], network: str = BY_GROUP) -> Callable[[Rows], Judgement]:
    """Ours is this many times below each rival, at every point."""

    def judge(rows: Rows) -> Judgement:
        found = {place: ratio for rival in rivals for place, ratio in _times(rows, rival, column, network).items()}
        return every(found, "{:,.1f} times", least=times)

    return judge


def at_most(times: float, column: str, rival: str) -> Callable[[Rows], Judgement]:
    """Ours is at most this many times a rival's, at every point; `column` is the rival's figure as a multiple of
    ours.
    """

    def judge(rows: Rows) -> Judgement:
        found = {f"{rival}'s{_at(place)}": 1 / ratio for place, ratio in figures(rows, rival, column).items()}
        return every(found, "{:,.2f} times", most=times)

    return judge


def lowest(scheme: str, column: str) -> Callable[[Rows], Judgement]:
    """A scheme has the least of all, at every point; `column` has figures as multiples of ours."""

    def judge(rows: Rows) -> Judgement:
        mine, found = figures(rows, scheme, column), {}
        for other in (str(name) for name in rows.distinct("scheme") if name != scheme):
            for place, theirs in figures(rows, other, column).items():
                found[f"for {other}{_at(place)}"] = _ratio(theirs, mine[place])
        return every(found, "{:,.2f} times", least=1)

    return judge


def usually(times: float, column: str, rivals: tuple[str, ...]) -> Callable[[Rows], Judgement]:
    """Ours is this many times below a rival in more than half of the pairs of a point and a rival."""

    def judge(rows: Rows) -> Judgement:
        found = {place: ratio for rival in rivals for place, ratio in _times(rows, rival, column, BY_GROUP).items()}
        enough = sum(ratio >= times for ratio in found.values())
        text = f"{enough} of {len(found)} cases; {every(found, '{:,.1f} times', least=times).measured}"
        return judged(2 * enough > len(found), text)

    return judge


def saves(column: str, rivals: tuple[str, ...]) -> Callable[[Rows], Judgement]:
    """The saving over each rival grows from each point to the next."""

    def judge(rows: Rows) -> Judgement:
        ours, grown = figures(rows, OURS, column), {}
        for rival in rivals:
            saved = {place: theirs - ours[place] for place, theirs in figures(rows, rival, column).items()}
            for (former, before), (place, after) in _steps(saved):
                grown[f"of {rival}, from {former} to {place}"] = after - before
        return every(grown, f"{{:+,.0f}} {UNITS[column]}", least=1)

    return judge


def _steps(found: Mapping[str, float]) -> list[tuple[tuple[str, float], tuple[str, float]]]:
    if len(found) < 2:
        raise MissingRowError("only one point was measured; the claim needs two")
    return list(pairwise(found.items()))


def least(column: str) -> Callable[[Rows], Judgement]:
    """Ours has the least of all schemes, at every point (within a thousandth)."""

    def judge(rows: Rows) -> Judgement:
        ours, nearest = figures(rows, OURS, column), {}
        others = [str(name) for name in rows.distinct("scheme") if name != OURS]
        theirs = {scheme: figures(rows, scheme, column) for scheme in others}
        for place, mine in ours.items():
            next_best = min(others, key=lambda scheme: theirs[scheme][place])
            shown = f"({mine:,.0f} {UNITS[column]}; next {next_best}, {theirs[next_best][place]:,.0f})"
            nearest[f"{shown}{_at(place)}"] = _ratio(theirs[next_best][place], mine)
        return every(nearest, "{:.2f} times", least=0.999)

    return judge


def falls(scheme: str, column: str, *, rising: bool = False) -> Callable[[Rows], Judgement]:
    """A scheme's figure falls (or rises) from each point to the next."""

    def judge(rows: Rows) -> Judgement:
        found = figures(rows, scheme, column)
        steps = [(after - before) if rising else (before - after) for (_, before), (_, after) in _steps(found)]
        text = " → ".join(f"{figure:,.0f}" for figure in found.values())
        return judged(min(steps) > 0, f"{text} {UNITS[column]} at {', '.join(found)}")

    return judge


def selections(rows: Rows, network: str = "cbn") -> Judgement:
    """The ratio of Rel-Sel's traffic to ours falls from each point to the next."""
    theirs, ours = (figures(rows, scheme, "bytes", network) for scheme in ("rel-sel", OURS))
    times = {place: _ratio(theirs[place], mine) for place, mine in ours.items()}
    text = ", ".join(f"{ratio:.1f} times{_at(place)}" for place, ratio in times.items())
    return judged(all(after < before for (_, before), (_, after) in _steps(times)), text)


def ten_times_below(figure: str, reason: str = "") -> tuple[Claim, Claim]:
    """The paper's main claim about a figure, for both placements."""
    least, most = (
        Claim(
            f"Ref-SJ-Clu+ has at least 10 times less overlay traffic than every strawman{ending}",
            f"{PAPER}, §6.1, {figure}",
            below(10, "bytes", STRAWMEN, network),
            "10 times",
            reason,
        )
        for network, ending in ((BY_GROUP, ""), (BY_TEMPLATE, SAME_ZONES))
    )
    return least, most
