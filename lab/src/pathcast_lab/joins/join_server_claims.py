"""The claims of the select-join paper about its server (§6.1), our targets, and their judges.

A row has a series (a scheme, or a rival), the number of subscriptions and the mean number of results of an insertion
(`rjor`); its `us` is the mean over seeds with an interval. A claim must hold at every setting that the rows have,
unless it names one; growth is that from the smallest setting to each other. Times that differ by less than a tenth are
noise.
"""

from collections.abc import Callable, Sequence
from math import inf, nextafter

from pathcast_lab.harness import Claim, Judgement, Row, Rows, every, judged

PAPER = "Chandramouli, Yang 2008, §6.1"
CLU_PLUS, CLU, TUP, SUB, MIN = "ref-sj-clu+", "ref-sj-clu", "ref-sj-tup", "ref-sj-sub", "ref-sj-min"
ENUM_J, ENUM_SJ, REF_J, REF_J_PLUS, REL_SEL = "enum-j", "enum-sj", "ref-j", "ref-j+", "rel-sel"
REFORMULATED = (REF_J, REF_J_PLUS, SUB, TUP, CLU, CLU_PLUS)
SKYLINES = (SUB, TUP, CLU, CLU_PLUS, MIN)
# Times that differ by less than this factor count as equal.
NOISE = 1.1
Judge = Callable[[Rows], Judgement]


def settings(rows: Rows) -> dict[str, Rows]:
    """The rows of each setting, by what sets it apart."""
    columns = [column for column in ("subscriptions", "rjor") if len(rows.distinct(column)) > 1]
    names = {"subscriptions": "subscriptions", "rjor": "results"}
    found: dict[str, list[Row]] = {}
    for row in rows:
        where = ", ".join(f"{row[column]:,} {names[column]}" for column in columns)
        found.setdefault(f"at {where}" if where else "", []).append(row)
    return {where: Rows(those) for where, those in found.items()}


def slower(one: str, others: Sequence[str], results: str | None = None) -> Judge:
    """A judge: a series takes longer than each of some others, at every setting, or with the most `results` only."""

    def judge(rows: Rows) -> Judgement:
        if results == "most":
            rows = rows.where(rjor=max(rows.numbers("rjor"), default=None))
        found: dict[str, float] = {}
        for where, part in settings(rows).items():
            mine = part.number("us", series=one)
            for other in others:
                found[f"{other} {where}".rstrip()] = mine / part.number("us", series=other)
        return every(found, f"{one} takes {{:.3g}} times as long as", least=1, undecided=(1 / NOISE, NOISE))

    return judge


def within(one: str, other: str, times: float) -> Judge:
    """A judge: a series takes at most this many times as long as another, at every setting."""

    def judge(rows: Rows) -> Judgement:
        found = {
            where: part.number("us", series=one) / part.number("us", series=other)
            for where, part in settings(rows).items()
        }
        return every(found, f"{{:.2f}} times as long as {other}", most=times)

    return judge


def grows_less(one: str, other: str, column: str) -> Judge:
    """A judge: from the smallest value of a column to each other, the time of one series grows less than another's."""

    def judge(rows: Rows) -> Judgement:
        few, *more = sorted(set(rows.numbers(column)))
        if not more:
            return judged(None, f"one value of {column} only")
        found = {}
        for many in more:
            grown = {
                name: rows.number("us", series=name, **{column: many}) / rows.number("us", series=name, **{column: few})
                for name in (one, other)
            }
            found[f"({grown[one]:.2g} and {grown[other]:.2g} times, {few:,} to {many:,})"] = grown[one] / grown[other]
        return every(found, f"{{:.2g}} times the growth of {other}", most=1)

    return judge


def fastest_at_fewest(one: str, others: Sequence[str], times: float) -> Judge:
    """A judge: with the fewest results a series is at most this many times slower than the fastest of some."""

    def judge(rows: Rows) -> Judgement:
        few = rows.where(rjor=min(rows.numbers("rjor"), default=0))
        mine = few.number("us", series=one)
        best = min(others, key=lambda name: few.number("us", series=name))
        ratio = mine / few.number("us", series=best)
        return judged(ratio <= times, f"{mine:,.0f} µs, {ratio:.2f} times {best}")

    return judge


def at_most(column: str, limit: float, unit: str, subscriptions: int, series: str = CLU_PLUS) -> Judge:
    """A judge: at this many subscriptions a figure of a series is at most this."""

    def judge(rows: Rows) -> Judgement:
        found = rows.number(column, series=series, subscriptions=subscriptions)
        return judged(found <= limit, f"{found:,.0f} {unit}")

    return judge


def smallest(column: str, one: str, others: Sequence[str], times: float = 1.0, unit: str = "bytes") -> Judge:
    """A judge: at every number of subscriptions and workload, the others have more than this many times the figure."""

    def judge(rows: Rows) -> Judgement:
        found: dict[str, float] = {}
        for workload, subscriptions in dict.fromkeys((row.get("workload"), row.get("subscriptions")) for row in rows):
            part = Rows(
                row for row in rows if (row.get("workload"), row.get("subscriptions")) == (workload, subscriptions)
            )
            mine = part.number(column, series=one)
            where = f"on {workload}" if workload else f"with {subscriptions:,} subscriptions"
            for name in others:
                if part.where(series=name):
                    theirs = part.number(column, series=name)
                    found[f"for {name} {where} ({theirs:,.0f} against {mine:,.0f} {unit})"] = theirs / mine
        return every(found, "{:,.2f} times", least=nextafter(times, inf))

    return judge


TIMES = (
    Claim("Enum-J is the slowest", PAPER, slower(ENUM_J, [ENUM_SJ, *REFORMULATED]), "slowest"),
    Claim("Enum-SJ is slower than all reformulations", PAPER, slower(ENUM_SJ, REFORMULATED), "slower"),
    Claim("Ref-J+ is slower than Ref-J", PAPER, slower(REF_J_PLUS, [REF_J]), "slower"),
    Claim("Ref-SJ-Sub is slower than Tup, Clu and Clu+", PAPER, slower(SUB, [TUP, CLU, CLU_PLUS]), "slower"),
    Claim(
        "Clu's overhead over Tup is insignificant (criterion: at most 50 %)",
        PAPER,
        within(CLU, TUP, 1.5),
        "insignificant",
    ),
    Claim(
        "Clu+'s overhead over Tup is insignificant (criterion: at most 50 %)",
        PAPER,
        within(CLU_PLUS, TUP, 1.5),
        "insignificant",
    ),
    Claim(
        "Clu+ grows less with the subscriptions than Enum-SJ",
        "Chandramouli, Yang 2008, §3.2.3",
        grows_less(CLU_PLUS, ENUM_SJ, "subscriptions"),
        "less",
    ),
)
TARGETS = (
    Claim(
        "with 1 million subscriptions Clu+ takes at most 200 µs per insertion",
        "target",
        at_most("us", 200, "µs", 1_000_000),
        "200 µs",
    ),
    Claim(
        "with 1 million subscriptions Clu+ takes at most 200 µs per deletion",
        "target",
        at_most("delete_us", 200, "µs", 1_000_000),
        "200 µs",
    ),
    Claim(
        "with 1 million subscriptions Clu+ takes at most 200 bytes per subscription",
        "target",
        at_most("memory", 200, "bytes", 1_000_000),
        "200 bytes",
    ),
    Claim(
        "Clu+ takes less time than DuckDB with one query for all subscriptions",
        "target",
        slower("DuckDB", [CLU_PLUS]),
        "less",
    ),
)
RATES = (
    Claim(
        "Ref-J is very good where an insertion has few results (criterion: at most twice the fastest scheme)",
        PAPER,
        fastest_at_fewest(REF_J, REFORMULATED, 2),
        "very good",
    ),
    Claim("Ref-J degrades quickly with the results, Clu+ scales", PAPER, grows_less(CLU_PLUS, REF_J, "rjor"), "less"),
    Claim("with the most results Clu+ is faster than Ref-J", PAPER, slower(REF_J, [CLU_PLUS], "most"), "faster"),
)
DESCRIPTIONS = (
    Claim(
        "Clu+ has the smallest description of the paper's skylines",
        PAPER,
        smallest("description", CLU_PLUS, (SUB, TUP, CLU)),
        "smallest",
    ),
    Claim(
        "Clu+ beats Sub and Tup by a wide margin (criterion: less than half)",
        PAPER,
        smallest("description", CLU_PLUS, (SUB, TUP), 2),
        "wide margin",
    ),
    Claim(
        "Clu+ has at most a tenth more points than the skyline of the fewest points",
        "target",
        smallest("points", CLU_PLUS, (MIN,), 1 / 1.1, "points"),
        "1.1 times",
    ),
)
