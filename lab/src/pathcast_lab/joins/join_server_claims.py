"""What the select-join paper says of its server's figures (§6.1), what we aim at, and how our rows judge it.

A row has a series (a scheme, or a rival), the number of subscriptions and the mean number of results of an insertion
(`rjor`); its `us` is the mean over seeds with an interval. Unless a claim says otherwise it is judged at the largest
setting that the rows have. Times that differ by less than a tenth are not told apart.
"""

from collections.abc import Callable, Iterable, Sequence

from pathcast_lab.harness import Claim, Judgement, Row, Rows, Value, judged, number_in

PAPER = "Chandramouli, Yang 2008, §6.1"
CLU_PLUS, CLU, TUP, SUB, MIN = "ref-sj-clu+", "ref-sj-clu", "ref-sj-tup", "ref-sj-sub", "ref-sj-min"
ENUM_J, ENUM_SJ, REF_J, REF_J_PLUS, REL_SEL = "enum-j", "enum-sj", "ref-j", "ref-j+", "rel-sel"
REFORMULATED = (REF_J, REF_J_PLUS, SUB, TUP, CLU, CLU_PLUS)
SKYLINES = (SUB, TUP, CLU, CLU_PLUS, MIN)
# Times are told apart from so many times on.
NOISE = 1.1
Judge = Callable[[Rows], Judgement]


def largest(rows: Rows, column: str) -> Value:
    """The largest number of a column."""
    return max(rows.numbers(column), default=None)


def at_largest(rows: Rows) -> Rows:
    """The rows with the most subscriptions, and of these those with the most results an insertion."""
    for column in ("subscriptions", "rjor"):
        rows = rows.where(**{column: largest(rows, column)})
    return rows


def slower(one: str, others: Sequence[str]) -> Judge:
    """A judge: a series takes longer than each of some others."""

    def judge(rows: Rows) -> Judgement:
        rows = at_largest(rows)
        mine = rows.one(series=one)
        found = [rows.one(series=other) for other in others]
        said = ", ".join(f"{_us(other)} {other['series']}" for other in found)
        return judged(_all(_longer(mine, other) for other in found), f"{_us(mine)} {one}; {said}")

    return judge


def _us(row: Row) -> str:
    return f"{row['us']:,.0f} µs"


def _longer(one: Row, other: Row) -> bool | None:
    """Whether one takes longer; None when they differ by less than noise."""
    ratio = number_in(one, "us") / number_in(other, "us")
    return None if 1 / NOISE < ratio < NOISE else ratio > 1


def _all(answers: Iterable[bool | None]) -> bool | None:
    found = list(answers)
    if False in found:
        return False
    return None if None in found else True


def within(one: str, other: str, times: float) -> Judge:
    """A judge: a series takes at most so many times as long as another."""

    def judge(rows: Rows) -> Judgement:
        rows = at_largest(rows)
        ratio = rows.number("us", series=one) / rows.number("us", series=other)
        return judged(ratio <= times, f"{ratio:.2f} times as long as {other}")

    return judge


def grows_less(one: str, other: str, column: str) -> Judge:
    """A judge: over the settings of a column, the time of one series grows less than that of another."""

    def judge(rows: Rows) -> Judgement:
        few, many = min(rows.numbers(column), default=0), largest(rows, column)
        if few == many:
            return judged(None, f"one {column} only")
        grown = {
            name: rows.number("us", series=name, **{column: many}) / rows.number("us", series=name, **{column: few})
            for name in (one, other)
        }
        said = ", ".join(f"{name} {times:.1f} times" for name, times in grown.items())
        return judged(grown[one] < grown[other], f"from {few:,} to {many:,}: {said}")

    return judge


def fastest_at_fewest(one: str, others: Sequence[str], times: float) -> Judge:
    """A judge: with the fewest results a series is at most so many times slower than the fastest of some."""

    def judge(rows: Rows) -> Judgement:
        few = rows.where(rjor=min(rows.numbers("rjor"), default=0))
        mine = few.number("us", series=one)
        best = min(others, key=lambda name: few.number("us", series=name))
        ratio = mine / few.number("us", series=best)
        return judged(ratio <= times, f"{mine:,.0f} µs, {ratio:.2f} times {best}")

    return judge


def at_most(column: str, limit: float, unit: str, subscriptions: int, series: str = CLU_PLUS) -> Judge:
    """A judge: at so many subscriptions a figure of a series is at most this."""

    def judge(rows: Rows) -> Judgement:
        found = rows.number(column, series=series, subscriptions=subscriptions)
        return judged(found <= limit, f"{found:,.0f} {unit}")

    return judge


def smallest(column: str, one: str, others: Sequence[str], times: float = 1.0, unit: str = "bytes") -> Judge:
    """A judge: at every number of subscriptions and workload, a series' figure is so many times below the others'."""

    def judge(rows: Rows) -> Judgement:
        holds, said = True, []
        settings = dict.fromkeys((row.get("workload"), row.get("subscriptions")) for row in rows)
        for workload, subscriptions in settings:
            part = Rows(
                row for row in rows if (row.get("workload"), row.get("subscriptions")) == (workload, subscriptions)
            )
            mine = part.number(column, series=one)
            found = {name: part.number(column, series=name) for name in others if part.where(series=name)}
            holds &= all(times * mine < theirs for theirs in found.values())
            where = f"{workload}: " if workload else f"{subscriptions:,} subscriptions: "
            theirs = ", ".join(f"{name} {value:,.0f}" for name, value in found.items())
            said.append(f"{where}{mine:,.0f} {unit} against {theirs}")
        return judged(holds if said else None, "; ".join(said))

    return judge


TIMES = (
    Claim("Enum-J is the slowest: the size of its output dominates", PAPER, slower(ENUM_J, [ENUM_SJ, *REFORMULATED])),
    Claim("Enum-SJ is slower than all reformulations", PAPER, slower(ENUM_SJ, REFORMULATED)),
    Claim("Ref-J+ is slower than Ref-J: it looks whether somebody wants a result", PAPER, slower(REF_J_PLUS, [REF_J])),
    Claim(
        "Ref-SJ-Sub is slower than Tup, Clu and Clu+: it computes a skyline of all affected subscriptions",
        PAPER,
        slower(SUB, [TUP, CLU, CLU_PLUS]),
    ),
    Claim("Clu's overhead over Tup is insignificant (we take: at most a half)", PAPER, within(CLU, TUP, 1.5)),
    Claim("so is that of Clu+", PAPER, within(CLU_PLUS, TUP, 1.5)),
    Claim(
        "a reformulation does not enumerate who is affected: Clu+ grows less with the subscriptions than Enum-SJ",
        "Chandramouli, Yang 2008, §3.2.3",
        grows_less(CLU_PLUS, ENUM_SJ, "subscriptions"),
    ),
)
TARGETS = (
    Claim(
        "with 1 million subscriptions Clu+ takes at most 200 µs an insertion",
        "target",
        at_most("us", 200, "µs", 1_000_000),
    ),
    Claim("… and a deletion", "target", at_most("delete_us", 200, "µs", 1_000_000)),
    Claim("… and at most 200 bytes a subscription", "target", at_most("memory", 200, "bytes", 1_000_000)),
    Claim(
        "Clu+ takes less time than DuckDB with one query for all subscriptions", "target", slower("DuckDB", [CLU_PLUS])
    ),
)
RATES = (
    Claim(
        "Ref-J is very good where an insertion has few results (we take: at most twice the fastest scheme)",
        PAPER,
        fastest_at_fewest(REF_J, REFORMULATED, 2),
    ),
    Claim("Ref-J degrades quickly with the results, Clu+ scales", PAPER, grows_less(CLU_PLUS, REF_J, "rjor")),
    Claim("with the most results Clu+ is faster than Ref-J", PAPER, slower(REF_J, [CLU_PLUS])),
)
DESCRIPTIONS = (
    Claim(
        "Clu+ has the smallest description of the paper's skylines",
        PAPER,
        smallest("description", CLU_PLUS, (SUB, TUP, CLU)),
    ),
    Claim(
        "… and beats Sub and Tup by a wide margin (we take: to less than a half)",
        PAPER,
        smallest("description", CLU_PLUS, (SUB, TUP), 2),
    ),
    Claim(
        "… and has at most a tenth more points than the skyline of the fewest points",
        "target",
        smallest("points", CLU_PLUS, (MIN,), 1 / 1.1, "points"),
    ),
)
