"""Judges of the GPX paper's claims, and explanations from the rows where a claim does not hold.

A row of a figure has `x`, the place on its axis, `place`, the same in words, and `case`, what else sets it apart (a
match rate, filters per query). A claim must hold at every `x` of every case, unless it names a place.

An explanation splits an engine's time into the number of steps per document, by its own counts, and the time per step.
The number of steps is the algorithm's; the time per step is the implementation's.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from pathcast_lab.harness import Claim, Judgement, MissingRowError, Row, Rows, Value, every, judged, number_in

GPX, GPX_AP, GPX_APF, YFILTER, BPA, OURS = "gpx", "gpx-ap", "gpx-apf", "yfilter", "bpa", "automaton"

_TIMES = re.compile(r"(\d[\d.e+-]*) times\b")


@runtime_checkable
class Explaining(Protocol):
    """A judge that can name the counts behind a difference."""

    def explain(self, rows: Rows) -> Iterator[str]:
        """The counters at the worst place of each case in which the claim does not hold."""
        ...


def explanations(claims: Iterable[Claim], rows: Rows) -> Iterator[str]:
    """For each claim that does not hold in the rows of a case, what was counted; each comparison once."""
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


def places(rows: Rows) -> list[float]:
    """The places on the axis, ascending."""
    return sorted(set(rows.numbers("x")))


def us(rows: Rows, engine: str, x: Value, column: str = "us") -> float:
    """An engine's time at a place."""
    return rows.number(column, engine=engine, x=x)


@dataclass(frozen=True)
class Faster:
    """`fast` needs at most 1/`least` of the time of `slow`, at every place, or at the place `x`."""

    slow: str
    fast: str
    least: float
    x: float | None = None

    @property
    def subject(self) -> tuple[str, str]:
        return self.slow, self.fast

    def _times(self, rows: Rows) -> dict[float, float]:
        at = places(rows) if self.x is None else [self.x]
        return {x: us(rows, self.slow, x) / us(rows, self.fast, x) for x in at}

    def __call__(self, rows: Rows) -> Judgement:
        found = {_where(those, x): times for _, those in cases(rows) for x, times in self._times(those).items()}
        judgement = every(found, "{:.3g} times", least=self.least)
        return replace(judgement, measured=self.worded(judgement.measured))

    def worded(self, measured: str) -> str:
        """Measured ratios, with the engines that they compare and which of them is faster."""
        return f"{self.fast} against {self.slow}: {faster_or_slower(measured)}"

    def explain(self, rows: Rows) -> Iterator[str]:
        for _, those in cases(rows):
            found = self._times(those)
            x = min(found, key=found.__getitem__)
            if found[x] < self.least:
                slow, fast = (_profile(those, engine, x) for engine in (self.slow, self.fast))
                yield f"{slow}, {fast} per document {_where(those, x)}."


def _profile(rows: Rows, engine: str, x: float) -> str:
    row = rows.one(engine=engine, x=x)
    return f"{engine} takes {number_in(row, 'steps'):,.0f} steps of {_short(row, 'ns_step')} ns"


@dataclass(frozen=True)
class Steady:
    """The time at every place is at most `most` times the one at the smallest."""

    engine: str
    most: float

    def _times(self, rows: Rows) -> dict[float, float]:
        first, *others = places(rows)
        return {x: us(rows, self.engine, x) / us(rows, self.engine, first) for x in others}

    def __call__(self, rows: Rows) -> Judgement:
        found = {_where(those, x): times for _, those in cases(rows) for x, times in self._times(those).items()}
        return every(found, "{:.3g} times", most=self.most)

    def explain(self, rows: Rows) -> Iterator[str]:
        for case, those in cases(rows):
            found = self._times(those)
            worst = max(found, key=found.__getitem__, default=None)
            if worst is not None and found[worst] > self.most:
                at = (those.one(engine=self.engine, x=x) for x in (places(those)[0], worst))
                said = (f"{row['distinct']:,} and {number_in(row, 'steps'):,.0f} {_place(row)}" for row in at)
                yield f"Distinct queries, and steps of {self.engine} per document{_of(case)}: {', '.join(said)}."


@dataclass(frozen=True)
class ReadingNegligible:
    """Reading is at most this share of an engine's whole time, at every place."""

    engine: str
    most: float

    def _shares(self, rows: Rows) -> dict[float, float]:
        return {x: us(rows, self.engine, x, "reading_us") / us(rows, self.engine, x) for x in places(rows)}

    def __call__(self, rows: Rows) -> Judgement:
        found = {_where(those, x): share for _, those in cases(rows) for x, share in self._shares(those).items()}
        return every(found, "{:.1%}", most=self.most)

    def explain(self, rows: Rows) -> Iterator[str]:
        for _, those in cases(rows):
            found = self._shares(those)
            x = max(found, key=found.__getitem__)
            if found[x] > self.most:
                row = those.one(engine=self.engine, x=x)
                reading, match = _short(row, "reading_us"), _short(row, "match_us")
                matched = f"matched by {self.engine} in {match} µs"
                yield f"A document is read in {reading} µs and {matched} {_where(those, x)}."


@dataclass(frozen=True)
class Ahead:
    """`automaton` matches this many times faster than the best of the others, at every place."""

    least: float

    def _best(self, rows: Rows) -> dict[float, tuple[str, float]]:
        """The best of the others at each place, and how many times longer it takes."""
        found: dict[float, tuple[str, float]] = {}
        for x in places(rows):
            others = [row for row in rows if row["x"] == x and row["engine"] != OURS]
            best = min(others, key=lambda row: number_in(row, "match_us"))
            found[x] = str(best["engine"]), number_in(best, "match_us") / us(rows, OURS, x, "match_us")
        return found

    def __call__(self, rows: Rows) -> Judgement:
        found = {
            f"than {engine} {_where(those, x)}": times
            for _, those in cases(rows)
            for x, (engine, times) in self._best(those).items()
        }
        judgement = every(found, "{:.3g} times", least=self.least)
        return replace(judgement, measured=self.worded(judgement.measured))

    def worded(self, measured: str) -> str:
        """Measured ratios, with which engine is faster."""
        return faster_or_slower(measured)

    def explain(self, rows: Rows) -> Iterator[str]:
        for _, those in cases(rows):
            found = self._best(those)
            x = min(found, key=lambda place: found[place][1])
            engine, times = found[x]
            if times < self.least:
                yield f"{_profile(those, OURS, x)}, {_profile(those, engine, x)} per document {_where(those, x)}."


@dataclass(frozen=True)
class Takes:
    """An engine's time at a place that the paper names, at the paper's match rate, in these bounds."""

    engine: str
    x: int
    low_us: float
    high_us: float

    def __call__(self, rows: Rows) -> Judgement:
        found = rows.number("us", engine=self.engine, x=self.x, case="0.06 % match")
        return judged(self.low_us <= found <= self.high_us, f"{found / 1e3:.2g} ms per document")


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


def faster_or_slower(measured: str) -> str:
    """Ratios of times in words: "0.5 times" is 2 times slower."""

    def worded(found: re.Match[str]) -> str:
        times = float(found[1])
        return f"{found[1]} times faster" if times >= 1 else f"{1 / times:.3g} times slower"

    return _TIMES.sub(worded, measured)


def _place(row: Row) -> str:
    return f"at {row.get('place') or row['x']}"


def _where(rows: Rows, x: float) -> str:
    """A place in words; `rows` are those of one case."""
    row = next(row for row in rows if row["x"] == x)
    return _place(row) + _of(row["case"])


def _of(case: Value) -> str:
    return f" ({case})" if case else ""
