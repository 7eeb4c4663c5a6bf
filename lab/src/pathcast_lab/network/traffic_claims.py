"""How rows of overlay traffic judge what the select-join paper claims of its schemes."""

from collections.abc import Callable
from math import inf

from pathcast_lab.harness import Claim, Judgement, MissingRowError, Rows, judged

OURS = "ref-sj-clu+"
STRAWMEN = ("enum-j", "rel-sel", "ref-j", "ref-j+")
NETWORKS = ("can", "cbn")


def figures(rows: Rows, scheme: str, column: str, network: str = "can") -> list[float]:
    """A scheme's figures at all points, on the paper's kind of network unless told."""
    found = [
        float(row[column])  # type: ignore[arg-type]
        for row in rows
        if row["scheme"] == scheme and row["network"] == network
    ]
    if not found:
        raise MissingRowError(f"no row of '{scheme}'")
    return found


def below(times: float, column: str, rivals: tuple[str, ...]) -> Callable[[Rows], Judgement]:
    """Ours is so many times below each rival, at every point."""

    def judge(rows: Rows) -> Judgement:
        ours = figures(rows, OURS, column)
        least = {}
        for rival in rivals:
            found = [_times(theirs, mine) for theirs, mine in zip(figures(rows, rival, column), ours, strict=True)]
            at = min(range(len(found)), key=found.__getitem__)
            least[rival] = found[at], _spread(rows, rival, at) if column == "bytes" else ""
        return judged(
            all(value >= times for value, _ in least.values()),
            ", ".join(f"{rival} {value:.1f} ×{spread}" for rival, (value, spread) in least.items()),
        )

    return judge


def _spread(rows: Rows, rival: str, at: int) -> str:
    """Between which values a ratio of bytes may lie, as far as rows tell."""
    row = [row for row in rows if row["scheme"] == rival and row["network"] == "can"][at]
    low, high = row.get("times_low"), row.get("times_high")
    return f" ({low:.1f} to {high:.1f})" if isinstance(low, float) and isinstance(high, float) else ""


def usually(times: float, column: str, rivals: tuple[str, ...]) -> Callable[[Rows], Judgement]:
    """Ours is so many times below a rival in more than half of the pairs of a point and a rival."""

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
    """What ours saves of each rival's figure is more at the last point than at the first."""

    def judge(rows: Rows) -> Judgement:
        ours = figures(rows, OURS, column)
        if len(ours) < 2:
            raise MissingRowError("one point alone")
        saved = {rival: [figures(rows, rival, column)[at] - ours[at] for at in (0, -1)] for rival in rivals}
        text = ", ".join(f"{rival} {first:,.0f} → {last:,.0f}" for rival, (first, last) in saved.items())
        return judged(all(last > first for first, last in saved.values()), text)

    return judge


def _times(theirs: float, mine: float) -> float:
    return theirs / mine if mine else inf


def least(column: str) -> Callable[[Rows], Judgement]:
    """Ours has the least of all schemes."""

    def judge(rows: Rows) -> Judgement:
        schemes = dict.fromkeys(str(row["scheme"]) for row in rows)
        means = {scheme: sum(found) / len(found) for scheme in schemes if (found := figures(rows, scheme, column))}
        best = min(means, key=lambda scheme: means[scheme])
        return judged(means[OURS] <= 1.001 * means[best], f"{best} {means[best]:,.0f}, {OURS} {means[OURS]:,.0f}")

    return judge


def falls(scheme: str, column: str, *, rising: bool = False) -> Callable[[Rows], Judgement]:
    """A scheme's figure falls (or rises) from the first point to the last."""

    def judge(rows: Rows) -> Judgement:
        found = figures(rows, scheme, column)
        if len(found) < 2:
            raise MissingRowError("one point alone")
        return judged(found[-1] > found[0] if rising else found[-1] < found[0], f"{found[0]:,.0f} → {found[-1]:,.0f}")

    return judge


def selections(rows: Rows, network: str = "cbn") -> Judgement:
    """How many times our traffic Rel-Sel's is, from the first point to the last."""
    pairs = zip(figures(rows, "rel-sel", "bytes", network), figures(rows, OURS, "bytes", network), strict=True)
    times = [_times(theirs, ours) for theirs, ours in pairs]
    return judged(times == sorted(times, reverse=True), ", ".join(f"{one:.1f} ×" for one in times))


TEN = Claim(
    "Ref-SJ-Clu+ has at least 10 times less overlay traffic than every strawman",
    "select-join paper, §6.1",
    below(10, "bytes", STRAWMEN),
)
TARGET = Claim(
    "overlay traffic of ref-sj-clu+ at least 10 times below the best strawman", "target", below(10, "bytes", STRAWMEN)
)
