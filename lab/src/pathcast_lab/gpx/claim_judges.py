"""How rows of the GPX figures judge what the paper claims, and what the rows say where a claim does not hold.

A row of a figure has `x`, the place on its axis, and `case`, what else sets it apart (a match rate, filters a query).
Unless a claim says otherwise it is judged at the largest `x` of every case, and must hold in all.

An explanation takes an engine's time apart: how many steps its own counts say that a document took, and how long one
was. The first is the algorithm's, and would be the same in any language; the second is the implementation's.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from pathcast_lab.harness import Claim, Judgement, MissingRowError, Row, Rows, Value, judged, number_in

GPX, GPX_AP, GPX_APF, YFILTER, BPA, OURS = "gpx", "gpx-ap", "gpx-apf", "yfilter", "bpa", "automaton"
# What §5 says of NITF and 90,000 queries, in microseconds a document.
PAPER_QUERIES = 90_000
PAPER_US = {GPX_AP: 1_000.0, YFILTER: 18_000.0}


@runtime_checkable
class Explaining(Protocol):
    """A judge that can say where a difference comes from."""

    def explain(self, rows: Rows) -> Iterator[str]:
        """What the rows of one case say, if they do not hold."""
        ...


def explanations(claims: Iterable[Claim], rows: Rows) -> Iterator[str]:
    """For each claim that does not hold in the rows of a case, why, by what was counted; each comparison once."""
    said: set[object] = set()
    for claim in claims:
        if not isinstance(claim.judge, Explaining):
            continue
        subject = getattr(claim.judge, "subject", claim.judge)
        if subject in said:
            continue
        try:
            texts = list(claim.judge.explain(rows))
        except MissingRowError:
            continue
        if texts:
            said.add(subject)
        yield from texts


def cases(rows: Rows) -> Iterator[tuple[Value, Rows]]:
    """The rows of each case."""
    for case in rows.distinct("case"):
        yield case, rows.where(case=case)


def ends(rows: Rows) -> tuple[float, float]:
    """The smallest and the largest place on the axis."""
    places = sorted(rows.numbers("x"))
    return places[0], places[-1]


def us(rows: Rows, engine: str, x: Value, column: str = "us") -> float:
    """An engine's time at a place."""
    return rows.number(column, engine=engine, x=x)


@dataclass(frozen=True)
class Faster:
    """`fast` needs at most 1/`least` of the time of `slow`, at the largest or the smallest place."""

    slow: str
    fast: str
    least: float
    at: str = "largest"

    @property
    def subject(self) -> tuple[str, str, str]:
        return self.slow, self.fast, self.at

    def _times(self, rows: Rows) -> tuple[float, float]:
        x = ends(rows)[self.at == "largest"]
        return x, us(rows, self.slow, x) / us(rows, self.fast, x)

    def __call__(self, rows: Rows) -> Judgement:
        found = []
        for case, those in cases(rows):
            x, times = self._times(those)
            text = f"{self.fast} is {_rounded(times)} times as fast as {self.slow} ({_where(case, x)})"
            found.append((times >= self.least, text))
        return _in_all(found)

    def explain(self, rows: Rows) -> Iterator[str]:
        for case, those in cases(rows):
            x, times = self._times(those)
            if times >= self.least:
                continue
            slow, fast = those.one(engine=self.slow, x=x), those.one(engine=self.fast, x=x)
            wanted = "ahead" if self.least == 1 else f"{self.least:g} times as fast"
            text = (
                f"{self.fast} is not {wanted} but {_rounded(times)} times as fast as {self.slow} ({_where(case, x)}). "
            )
            text += _compared(slow, fast)
            aim = "To be no faster" if self.least == 1 else f"For a factor of {self.least:g}"
            text += _needed(slow, number_in(fast, "us") * self.least, aim)
            if self.slow in PAPER_US and x == PAPER_QUERIES:
                text += " " + _needed(slow, PAPER_US[self.slow], f"For the paper's {PAPER_US[self.slow] / 1e3:g} ms")
            yield text


def _compared(slow: Row, fast: Row) -> str:
    """Two engines' times as steps and nanoseconds."""
    steps = number_in(slow, "steps") / number_in(fast, "steps")
    ns = number_in(slow, "ns_step") / number_in(fast, "ns_step")
    return (
        f"A document takes {_profile(slow)}, and {_profile(fast)}: {_rounded(steps)} times the steps, each "
        f"{_rounded(ns)} times as long. Reading ({_short(fast, 'reading_us')} µs) and collecting "
        f"({_short(fast, 'collecting_us')} µs) come on top of both. "
    )


def _profile(row: Row) -> str:
    return (
        f"{row['engine']} {_short(row, 'match_us')} µs, {number_in(row, 'steps'):,.0f} steps ({row['work']}) of "
        f"{_short(row, 'ns_step')} ns"
    )


def _needed(row: Row, whole_us: float, beginning: str) -> str:
    """How long a step of an engine would have to be for its time to be this."""
    rest = whole_us - number_in(row, "us") + number_in(row, "match_us")
    needed = 1e3 * rest / number_in(row, "steps")
    return (
        f"{beginning}, a step of {row['engine']} would have to take {_rounded(needed)} ns "
        f"instead of {_short(row, 'ns_step')}: what lies between the two is implementation, not the algorithm."
    )


@dataclass(frozen=True)
class Steady:
    """The time at the largest place is at most `most` times the one at the smallest."""

    engine: str
    most: float

    def __call__(self, rows: Rows) -> Judgement:
        found = []
        for case, those in cases(rows):
            low, high = ends(those)
            times = us(those, self.engine, high) / us(those, self.engine, low)
            text = f"{self.engine} takes {_rounded(times)} times as long at {high:g} as at {low:g}{_of(case)}"
            found.append((times <= self.most, text))
        return _in_all(found)

    def explain(self, rows: Rows) -> Iterator[str]:
        for case, those in cases(rows):
            low, high = (those.one(engine=self.engine, x=x) for x in ends(those))
            if number_in(high, "us") <= self.most * number_in(low, "us"):
                continue
            yield (
                f"{self.engine} does not stay as it is{_of(case)}. At {low['x']:g}, with {low['distinct']:,} distinct "
                f"queries of which {number_in(low, 'matched'):.2g} % match, a document takes {_profile(low)}; at "
                f"{high['x']:g}, with {high['distinct']:,} and {number_in(high, 'matched'):.2g} %, {_profile(high)}."
            )


@dataclass(frozen=True)
class ReadingNegligible:
    """Reading is at most this share of an engine's whole time."""

    engine: str
    most: float

    def __call__(self, rows: Rows) -> Judgement:
        found = []
        for case, those in cases(rows):
            x = ends(those)[1]
            share = us(those, self.engine, x, "reading_us") / us(those, self.engine, x)
            found.append((share <= self.most, f"reading is {share:.1%} of {self.engine}'s time ({_where(case, x)})"))
        return _in_all(found)

    def explain(self, rows: Rows) -> Iterator[str]:
        for case, those in cases(rows):
            row = those.one(engine=self.engine, x=ends(those)[1])
            reading = number_in(row, "reading_us")
            if reading <= self.most * number_in(row, "us"):
                continue
            paper = PAPER_US[self.engine]
            yield (
                f"Reading is not negligible{_of(case)} since matching is fast: a document is read in "
                f"{_rounded(reading)} µs and matched by {self.engine} in {_short(row, 'match_us')} µs. Of the "
                f"{paper / 1e3:g} ms that the paper names for it, this reading would be {reading / paper:.1%}."
            )


@dataclass(frozen=True)
class Ahead:
    """`automaton` matches this many times faster than the best of the others."""

    least: float

    def _best(self, rows: Rows) -> tuple[Row, Row, float]:
        x = ends(rows)[1]
        ours = rows.one(engine=OURS, x=x)
        best = min(
            (row for row in rows if row["x"] == x and row["engine"] != OURS), key=lambda row: number_in(row, "match_us")
        )
        return ours, best, number_in(best, "match_us") / number_in(ours, "match_us")

    def __call__(self, rows: Rows) -> Judgement:
        found = []
        for case, those in cases(rows):
            ours, best, times = self._best(those)
            found.append(
                (
                    times >= self.least,
                    f"{_rounded(times)} times as fast as {best['engine']} ({_where(case, ours['x'])})",
                )
            )
        return _in_all(found)

    def explain(self, rows: Rows) -> Iterator[str]:
        for case, those in cases(rows):
            ours, best, times = self._best(those)
            if times >= self.least:
                continue
            yield (
                f"{OURS} matches {_rounded(times)} times as fast as {best['engine']}, not {self.least:g} times "
                f"({_where(case, ours['x'])}). A document takes {_profile(ours)}, and {_profile(best)}."
            )


@dataclass(frozen=True)
class Takes:
    """An engine's time at a place that the paper names, at the paper's match rate, in these bounds."""

    engine: str
    x: int
    low_us: float
    high_us: float

    def __call__(self, rows: Rows) -> Judgement:
        found = rows.number("us", engine=self.engine, x=self.x, case="0.06 % match")
        return judged(self.low_us <= found <= self.high_us, f"{found / 1e3:.2g} ms a document")


def nothing_delegated(rows: Rows) -> Judgement:
    """No engine handed a pattern or a document to another."""
    shares = {
        f"{row['engine']}: {row['delegated_patterns']:.2%} of the patterns, {row['delegated_documents']:.2%} of the "
        "documents"
        for row in rows
        if row["delegated_patterns"] or row["delegated_documents"]
    }
    return judged(not shares, "; ".join(sorted(shares)) or "none")


@dataclass(frozen=True)
class Fits:
    """The process with all engines stayed within this much memory."""

    gigabytes: float

    def __call__(self, rows: Rows) -> Judgement:
        peak = max(rows.numbers("peak_mb")) / 1e3
        return judged(peak <= self.gigabytes, f"{peak:.2g} GB, with all engines in one process")


def _short(row: Row, column: str) -> str:
    return _rounded(number_in(row, column))


def _rounded(number: float) -> str:
    return f"{number:,.0f}" if abs(number) >= 100 else f"{number:.3g}"


def _in_all(found: list[tuple[bool, str]]) -> Judgement:
    return judged(all(held for held, _ in found), "; ".join(text for _, text in found))


def _where(case: Value, x: Value) -> str:
    return f"{case}, {x:,}" if case else f"at {x:,}"


def _of(case: Value) -> str:
    return f" ({case})" if case else ""
