"""Judges of the select-join paper's claims about overlay traffic.

A claim must hold at every point of a figure's axis; growth must hold from each point to the next.
"""

from collections.abc import Callable
from itertools import pairwise
from math import inf

from pathcast_lab.harness import Claim, Judgement, MissingRowError, Rows, judged

OURS = "ref-sj-clu+"
STRAWMEN = ("enum-j", "rel-sel", "ref-j", "ref-j+")
NETWORKS = ("can", "cbn")


def figures(rows: Rows, scheme: str, column: str, network: str = "can") -> list[float]:
    """A scheme's figures at all points, by default on the paper's kind of network."""
    found = [
        float(row[column])  # type: ignore[arg-type]
        for row in rows
        if row["scheme"] == scheme and row["network"] == network
    ]
    if not found:
        raise MissingRowError(f"no row of scheme '{scheme}' in network '{network}'")
    return found


def below(times: float, column: str, rivals: tuple[str, ...]) -> Callable[[Rows], Judgement]:
    """Ours is this many times below each rival, at every point."""

    def judge(rows: Rows) -> Judgement:
        ours = figures(rows, OURS, column)
        said, holds = [], True
        for rival in rivals:
            found = [_times(theirs, mine) for theirs, mine in zip(figures(rows, rival, column), ours, strict=True)]
            at = min(range(len(found)), key=found.__getitem__)
            spread = _spread(rows, rival, at) if column == "bytes" else ""
            said.append(f"{rival} {found[at]:.1f} ×{spread}" + (f" to {max(found):.1f} ×" if len(found) > 1 else ""))
            holds &= found[at] >= times
        return judged(holds, ", ".join(said))

    return judge


def _spread(rows: Rows, rival: str, at: int) -> str:
    """The interval of a ratio of bytes, if the row has one."""
    row = [row for row in rows if row["scheme"] == rival and row["network"] == "can"][at]
    low, high = row.get("times_low"), row.get("times_high")
    return f" (interval {low:.1f} to {high:.1f})" if isinstance(low, float) and isinstance(high, float) else ""


def usually(times: float, column: str, rivals: tuple[str, ...]) -> Callable[[Rows], Judgement]:
    """Ours is this many times below a rival in more than half of the pairs of a point and a rival."""

    def judge(rows: Rows) -> Judgement:
        ours = figures(rows, OURS, column)
        found = {
            rival: [_times(theirs, mine) for theirs, mine in zip(figures(rows, rival, column), ours, strict=True)]
            for rival in rivals
        }
        every = [one for values in found.values() for one in values]
        text = "; ".join(f"{rival} {', '.join(f'{one:.1f}' for one in values)} ×" for rival, values in found.items())
        return judged(2 * sum(one >= times for one in every) > len(every), text)

    return judge


def saves(column: str, rivals: tuple[str, ...]) -> Callable[[Rows], Judgement]:
    """What ours saves of each rival's figure grows from each point to the next."""

    def judge(rows: Rows) -> Judgement:
        ours = figures(rows, OURS, column)
        if len(ours) < 2:
            raise MissingRowError("only one point was measured; the claim needs two")
        saved = {
            rival: [theirs - mine for theirs, mine in zip(figures(rows, rival, column), ours, strict=True)]
            for rival in rivals
        }
        text = "; ".join(f"{rival} {' → '.join(f'{one:,.0f}' for one in found)}" for rival, found in saved.items())
        return judged(all(after > before for found in saved.values() for before, after in pairwise(found)), text)

    return judge


def _times(theirs: float, mine: float) -> float:
    return theirs / mine if mine else inf


def least(column: str) -> Callable[[Rows], Judgement]:
    """Ours has the least of all schemes, at every point (within a thousandth)."""

    def judge(rows: Rows) -> Judgement:
        schemes = dict.fromkeys(str(row["scheme"]) for row in rows)
        found = {scheme: figures(rows, scheme, column) for scheme in schemes}
        ours = found.pop(OURS)
        best = [min(found, key=lambda scheme: found[scheme][at]) for at in range(len(ours))]
        said = [
            f"{mine:,.0f}, next {one} {found[one][at]:,.0f}"
            for at, (mine, one) in enumerate(zip(ours, best, strict=True))
        ]
        holds = all(mine <= 1.001 * found[one][at] for at, (mine, one) in enumerate(zip(ours, best, strict=True)))
        return judged(holds, "; ".join(said))

    return judge


def falls(scheme: str, column: str, *, rising: bool = False) -> Callable[[Rows], Judgement]:
    """A scheme's figure falls (or rises) from each point to the next."""

    def judge(rows: Rows) -> Judgement:
        found = figures(rows, scheme, column)
        if len(found) < 2:
            raise MissingRowError("only one point was measured; the claim needs two")
        steps = [(after - before) if rising else (before - after) for before, after in pairwise(found)]
        return judged(min(steps) > 0, " → ".join(f"{one:,.0f}" for one in found))

    return judge


def selections(rows: Rows, network: str = "cbn") -> Judgement:
    """The ratio of Rel-Sel's traffic to ours, from the first point to the last."""
    pairs = zip(figures(rows, "rel-sel", "bytes", network), figures(rows, OURS, "bytes", network), strict=True)
    times = [_times(theirs, ours) for theirs, ours in pairs]
    return judged(times == sorted(times, reverse=True), ", ".join(f"{one:.1f} ×" for one in times))


TEN = Claim(
    "Ref-SJ-Clu+ has at least 10 times less overlay traffic than every strawman",
    "select-join paper, §6.1",
    below(10, "bytes", STRAWMEN),
    "10 times",
)
TARGET = Claim(
    "overlay traffic of ref-sj-clu+ at least 10 times below the best strawman",
    "target",
    below(10, "bytes", STRAWMEN),
    "10 times",
)
