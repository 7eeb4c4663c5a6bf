"""What the GPX paper claims of its figures, and how our rows judge it.

A row of a figure has `x`, the place on its axis, and `case`, what else sets it apart (a match rate, filters a query).
Unless a claim says otherwise it is judged at the largest `x` of every case, and must hold in all.
"""

from collections.abc import Callable, Iterator

from .claim import Claim, Judgement, judged
from .rows import Rows, Value

GPX, GPX_AP, GPX_APF, YFILTER, BPA, OURS = "gpx", "gpx-ap", "gpx-apf", "yfilter", "bpa", "automaton"
PAPER = "GPX-Matcher, §5"


def _cases(rows: Rows) -> Iterator[tuple[Value, Rows]]:
    for case in rows.distinct("case"):
        yield case, rows.where(case=case)


def _ends(rows: Rows) -> tuple[Value, Value]:
    places = sorted(rows.numbers("x"))
    return places[0], places[-1]


def _us(rows: Rows, engine: str, x: Value, column: str = "us") -> float:
    return rows.number(column, engine=engine, x=x)


def _in_all(found: list[tuple[bool, str]]) -> Judgement:
    return judged(all(held for held, _ in found), "; ".join(text for _, text in found))


def faster(slow: str, fast: str, least: float, *, at: str = "largest") -> Callable[[Rows], Judgement]:
    """A judge: `fast` needs at most 1/`least` of the time of `slow`, at the largest or the smallest place."""

    def judge(rows: Rows) -> Judgement:
        found = []
        for case, those in _cases(rows):
            x = _ends(those)[at == "largest"]
            times = _us(those, slow, x) / _us(those, fast, x)
            found.append((times >= least, f"{fast} is {times:.2g} times as fast as {slow} ({_where(case, x)})"))
        return _in_all(found)

    return judge


def steady(engine: str, most: float) -> Callable[[Rows], Judgement]:
    """A judge: the time at the largest place is at most `most` times the one at the smallest."""

    def judge(rows: Rows) -> Judgement:
        found = []
        for case, those in _cases(rows):
            low, high = _ends(those)
            times = _us(those, engine, high) / _us(those, engine, low)
            found.append(
                (times <= most, f"{engine} takes {times:.2g} times as long at {high:g} as at {low:g}{_of(case)}")
            )
        return _in_all(found)

    return judge


def reading_negligible(engine: str, most: float) -> Callable[[Rows], Judgement]:
    """A judge: reading is at most this share of an engine's whole time."""

    def judge(rows: Rows) -> Judgement:
        found = []
        for case, those in _cases(rows):
            x = _ends(those)[1]
            share = _us(those, engine, x, "reading_us") / _us(those, engine, x)
            found.append((share <= most, f"reading is {share:.1%} of {engine}'s time ({_where(case, x)})"))
        return _in_all(found)

    return judge


def ahead_in_matching(least: float) -> Callable[[Rows], Judgement]:
    """A judge: `automaton` matches this many times faster than the best of the others."""

    def judge(rows: Rows) -> Judgement:
        found = []
        for case, those in _cases(rows):
            x = _ends(those)[1]
            at = [row for row in those if row["x"] == x]
            rivals = {str(row["engine"]): float(row["match_us"] or 0) for row in at if row["engine"] != OURS}
            best = min(rivals, key=lambda name: rivals[name])
            times = rivals[best] / _us(those, OURS, x, "match_us")
            found.append((times >= least, f"{times:.3g} times as fast as {best} ({_where(case, x)})"))
        return _in_all(found)

    return judge


def takes(engine: str, x: int, low_us: float, high_us: float) -> Callable[[Rows], Judgement]:
    """A judge: an engine's time at a place that the paper names, at the paper's match rate, in these bounds."""

    def judge(rows: Rows) -> Judgement:
        found = rows.number("us", engine=engine, x=x, case="0.06 % match")
        return judged(low_us <= found <= high_us, f"{found / 1e3:.2g} ms a document")

    return judge


def nothing_delegated(rows: Rows) -> Judgement:
    """No engine handed a pattern or a document to another."""
    shares = {
        f"{row['engine']}: {row['delegated_patterns']:.2%} of the patterns, {row['delegated_documents']:.2%} of the "
        "documents"
        for row in rows
        if row["delegated_patterns"] or row["delegated_documents"]
    }
    return judged(not shares, "; ".join(sorted(shares)) or "none")


def fits(gigabytes: float) -> Callable[[Rows], Judgement]:
    """A judge: the process with all engines stayed within this much memory."""

    def judge(rows: Rows) -> Judgement:
        peak = max(rows.numbers("peak_mb")) / 1e3
        return judged(peak <= gigabytes, f"{peak:.2g} GB, with all engines in one process")

    return judge


def _where(case: Value, x: Value) -> str:
    return f"{case}, {x:,}" if case else f"at {x:,}"


def _of(case: Value) -> str:
    return f" ({case})" if case else ""


ORDER_OF_MAGNITUDE = (
    Claim("GPX-ap is an order of magnitude faster than GPX", PAPER, faster(GPX, GPX_AP, 10)),
    Claim("GPX-ap is an order of magnitude faster than YFilter", PAPER, faster(YFILTER, GPX_AP, 10)),
)
PAPERS_ORDER = (
    Claim("GPX-ap is ahead of GPX by 5 times or more", "target", faster(GPX, GPX_AP, 5)),
    Claim("GPX-ap is ahead of YFilter", "target", faster(YFILTER, GPX_AP, 1)),
)
CLUSTERING = (Claim("the last predicate as access predicate beats the first", PAPER, faster(GPX_APF, GPX_AP, 1)),)
PARSING = (Claim("parsing is negligible (a tenth of GPX-ap's time or less)", PAPER, reading_negligible(GPX_AP, 0.1)),)
GPX_BEFORE_YFILTER = (Claim("YFilter takes more than three times as long as GPX", PAPER, faster(YFILTER, GPX, 3)),)
GPX_FIRST = (Claim("YFilter is outperformed even by GPX", PAPER, faster(YFILTER, GPX, 1)),)
YFILTER_FIRST = (
    Claim("YFilter is ahead of GPX", PAPER, faster(GPX, YFILTER, 1)),
    Claim("YFilter is ahead of BPA", PAPER, faster(BPA, YFILTER, 1)),
)
ABSOLUTE = (
    Claim("90,000 queries take GPX-ap just under 1 ms a document", PAPER, takes(GPX_AP, 90_000, 0, 1_000)),
    Claim("… and YFilter 18 ms (within a factor of 1.5): the paper's own implementation", PAPER,
          takes(YFILTER, 90_000, 12_000, 27_000)),
)  # fmt: skip
WILDCARDS = (Claim("GPX-ap improves over GPX at least two times", PAPER, faster(GPX, GPX_AP, 2)),)
DESCENDANTS = (
    Claim("DO leaves GPX-ap nearly unaffected (within a half)", PAPER, steady(GPX_AP, 1.5)),
    Claim("GPX-ap stays ahead of YFilter", PAPER, faster(YFILTER, GPX_AP, 1)),
)
FILTERS = (
    Claim("without filters GPX-ap is faster than YFilter by orders of magnitude", PAPER,
          faster(YFILTER, GPX_AP, 10, at="smallest")),
    Claim("at 10 filters it is still at least 50 % better", PAPER, faster(YFILTER, GPX_AP, 1.5)),
)  # fmt: skip
FEW_FILTERS = (
    Claim("with one or two filters GPX-ap outperforms YFilter significantly (two times)", PAPER,
          faster(YFILTER, GPX_AP, 2)),
)  # fmt: skip
MEMORY = (Claim("all of it fits in 16 GB", "target", fits(16)),)
ALWAYS = (
    Claim("automaton matches 10 times faster than the best of the others", "target", ahead_in_matching(10)),
    Claim("no engine hands patterns or documents to another", "target", nothing_delegated),
)
