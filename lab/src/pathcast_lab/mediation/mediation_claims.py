"""What the mediation paper claims of its figures (§5.2), and how our rows judge it.

Response time is querying plus transmission. The paper's engine is XTrie; claims about response time are judged on the
default engine, those that compare the ways' querying times on `xtrie`, as the paper does.
"""

from collections.abc import Callable, Mapping

from pathcast_lab.harness import Claim, Judgement, Rows, Value, judged

from .mediation_workloads import IDDR, NDDR, QRA, SDR, Way

PAPER = "Ni, Chan 2009, §5.2"
SDR_DEFAULT, NDDR_DEFAULT = str(Way(SDR, "automaton")), str(Way(NDDR, "automaton"))
SDR_XTRIE, NDDR_XTRIE, IDDR_XTRIE = (str(Way(kind, "xtrie")) for kind in (SDR, NDDR, IDDR))
QRA_DEFAULT = str(Way(QRA, "automaton"))
WAYS = (SDR_DEFAULT, NDDR_DEFAULT, SDR_XTRIE, NDDR_XTRIE, IDDR_XTRIE)
Judge = Callable[[Rows], Judgement]


def gain(rows: Rows, way: str, over: str, **values: Value) -> float:
    """Which part of the response time of `over` a way saves."""
    return _saved(rows, "ms", way, over, values)


def _saved(rows: Rows, column: str, way: str, over: str, values: Mapping[str, Value]) -> float:
    return 1 - rows.number(column, way=way, **values) / rows.number(column, way=over, **values)


def saves(key: str, least: dict[Value, float], way: str = NDDR_DEFAULT, over: str = SDR_DEFAULT) -> Judge:
    """A judge: at each value of a column a way saves at least this part of another's response time."""

    def judge(rows: Rows) -> Judgement:
        found = {value: gain(rows, way, over, **{key: value}) for value in least}
        said = ", ".join(f"{part:.0%} at {value}" for value, part in found.items())
        return judged(all(found[value] >= part for value, part in least.items()), f"{way} saves {said}")

    return judge


def grows(key: str, way: str = NDDR_DEFAULT, over: str = SDR_DEFAULT, *, falling: bool = False) -> Judge:
    """A judge: what a way saves of another's response time grows along a column, or as it falls."""

    def judge(rows: Rows) -> Judgement:
        values = sorted(rows.distinct(key), key=_numbers, reverse=falling)
        found = [(value, gain(rows, way, over, **{key: value})) for value in values]
        said = ", ".join(f"{part:.1%} at {value}" for value, part in found)
        parts = [part for _, part in found]
        grown = parts[-1] > parts[0] if len(parts) > 1 and abs(parts[-1] - parts[0]) > 0.002 else None
        return judged(grown, f"{way} saves {said}")

    return judge


def _numbers(value: Value) -> float:
    assert isinstance(value, int | float)
    return float(value)


def queries_like(way: str, other: str, within: float, key: str) -> Judge:
    """A judge: the querying times of two ways differ by at most some part, on average over a column."""

    def judge(rows: Rows) -> Judgement:
        parts = [-_saved(rows, "query_ms", way, other, {key: value}) for value in rows.distinct(key)]
        mean = sum(parts) / len(parts)
        return judged(abs(mean) <= within, f"{way} queries {mean:+.0%} of the time of {other}")

    return judge


def slower(way: str, than: str, key: str) -> Judge:
    """A judge: a way's querying time is longer than another's."""

    def judge(rows: Rows) -> Judgement:
        parts = [-_saved(rows, "query_ms", way, than, {key: value}) for value in rows.distinct(key)]
        mean = sum(parts) / len(parts)
        return judged(None if abs(mean) < 0.03 else mean > 0, f"{way} queries {mean:+.0%} of the time of {than}")

    return judge


def share_of_transmission(way: str, about: float, **values: Value) -> Judge:
    """A judge: transmission is at least this part of a way's response time."""

    def judge(rows: Rows) -> Judgement:
        part = rows.number("transmission_ms", way=way, **values) / rows.number("ms", way=way, **values)
        return judged(part >= about, f"{part:.1%} of the response time")

    return judge


def further_apart(column: str, value: Value, than: Value) -> Judge:
    """A judge: the response times of SDR and NDDR are further apart at one value than at another, in ms."""

    def judge(rows: Rows) -> Judgement:
        gaps = [
            rows.number("ms", way=SDR_DEFAULT, **{column: each}) - rows.number("ms", way=NDDR_DEFAULT, **{column: each})
            for each in (value, than)
        ]
        return judged(gaps[0] > gaps[1], f"{gaps[0]:.2f} ms apart at {value}, {gaps[1]:.2f} at {than}")

    return judge


def same_increase(way: str, over: str, within: float) -> Judge:
    """A judge: from the fewest to the most subscriptions the querying times of two ways grow by the same factor."""

    def judge(rows: Rows) -> Judgement:
        counts = sorted(rows.distinct("subscriptions"), key=_numbers)
        factors = [
            rows.number("query_ms", way=each, subscriptions=counts[-1])
            / rows.number("query_ms", way=each, subscriptions=counts[0])
            for each in (way, over)
        ]
        near = abs(factors[0] / factors[1] - 1) <= within if len(counts) > 1 else None
        return judged(near, f"{way} takes {factors[0]:.2f} times as long, {over} {factors[1]:.2f} times")

    return judge


BANDWIDTH = (
    Claim("NDDR is 12 % better than SDR at 100 Mb/s and 41 % at 10", PAPER, saves("mbits", {100.0: 0.12, 10.0: 0.41})),
    Claim("the slower the links, the more NDDR is ahead of SDR", PAPER, grows("mbits", falling=True)),
    Claim(
        "at 10 Mb/s transmission is about 78 % of SDR's response time",
        PAPER,
        share_of_transmission(SDR_DEFAULT, 0.78, mbits=10.0),
    ),
    Claim(
        "NDDR queries about as long as SDR: rewriting is cheap",
        PAPER,
        queries_like(NDDR_XTRIE, SDR_XTRIE, 0.2, "mbits"),
    ),
    Claim("IDDR queries a little longer than NDDR", PAPER, slower(IDDR_XTRIE, NDDR_XTRIE, "mbits")),
)
SIZES = (
    Claim(
        "NDDR is 20 % better than SDR at 10 KB, 25 % at 40 KB, 28 % at 1 MB",
        PAPER,
        saves("bytes", {10_000: 0.20, 40_000: 0.25, 1_000_000: 0.28}),
    ),
    Claim("the larger the document, the more NDDR is ahead of SDR", PAPER, grows("bytes")),
    Claim(
        "NDDR is 10 % better than IDDR at 1 MB",
        PAPER,
        saves("bytes", {1_000_000: 0.10}, way=NDDR_XTRIE, over=IDDR_XTRIE),
    ),
)
TOPOLOGIES = (
    Claim(
        "NDDR is further ahead of SDR where only leaves have subscribers",
        PAPER,
        further_apart("topology", "leaf-only", "chain"),
    ),
    Claim("NDDR is further ahead of SDR in a tree than in a chain", PAPER, further_apart("topology", "tree", "chain")),
)
SUBSCRIPTIONS = (
    Claim(
        "with more subscriptions the querying times of NDDR and SDR grow alike",
        PAPER,
        same_increase(NDDR_XTRIE, SDR_XTRIE, 0.15),
    ),
    Claim(
        "the more subscriptions, the more NDDR is ahead of IDDR", PAPER, grows("subscriptions", NDDR_XTRIE, IDDR_XTRIE)
    ),
)
