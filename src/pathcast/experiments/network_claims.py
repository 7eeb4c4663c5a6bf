"""How rows of overlay traffic judge what the select-join paper claims of its schemes."""

from collections.abc import Callable
from math import inf

from .claim import Claim, Judgement, judged
from .rows import MissingRowError, Rows

OURS = "ref-sj-clu+"
STRAWMEN = ("enum-j", "rel-sel", "ref-j", "ref-j+")


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
        least = {
            rival: min(_times(theirs, mine) for theirs, mine in zip(figures(rows, rival, column), ours, strict=True))
            for rival in rivals
        }
        return judged(
            all(value >= times for value in least.values()),
            ", ".join(f"{rival} {value:.1f} ×" for rival, value in least.items()),
        )

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


TEN = Claim("Ref-SJ-Clu+ has at least 10 times less overlay traffic than every strawman", "select-join paper, §6.1",
            below(10, "bytes", STRAWMEN))  # fmt: skip
TARGET = Claim("overlay traffic of ref-sj-clu+ at least 10 times below the best strawman", "target",
               below(10, "bytes", STRAWMEN))  # fmt: skip
