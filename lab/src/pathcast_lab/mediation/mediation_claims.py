"""The claims of the mediation paper about its figures (§5.2), and their judges.

Response time is querying plus transmission. The paper's engine is XTrie; claims about response time are judged on the
default engine, those that compare the ways' querying times on `xtrie`, as the paper does. A claim must hold at every
value of the column that a figure varies, unless it names one; growth must hold from each value to the next.
"""

from collections.abc import Callable, Mapping
from itertools import pairwise

from pathcast_lab.harness import Claim, Judgement, PaperPoint, Rows, Value, every, judged

from .mediation_workloads import IDDR, NDDR, QRA, SDR, Way

PAPER = "Ni, Chan 2009, §5.2"
SDR_DEFAULT, NDDR_DEFAULT = str(Way(SDR, "automaton")), str(Way(NDDR, "automaton"))
SDR_XTRIE, NDDR_XTRIE, IDDR_XTRIE = (str(Way(kind, "xtrie")) for kind in (SDR, NDDR, IDDR))
QRA_DEFAULT = str(Way(QRA, "automaton"))
WAYS = (SDR_DEFAULT, NDDR_DEFAULT, SDR_XTRIE, NDDR_XTRIE, IDDR_XTRIE)
Judge = Callable[[Rows], Judgement]
# Parts of a response time that differ by less are the same.
SAME = 0.002


def gain(rows: Rows, way: str, over: str, **values: Value) -> float:
    """Which part of the response time of `over` a way saves."""
    return _saved(rows, "ms", way, over, values)


def _saved(rows: Rows, column: str, way: str, over: str, values: Mapping[str, Value]) -> float:
    return 1 - rows.number(column, way=way, **values) / rows.number(column, way=over, **values)


def saves(key: str, least: dict[Value, float], way: str = NDDR_DEFAULT, over: str = SDR_DEFAULT) -> Judge:
    """A judge: at each value of a column a way saves at least this part of another's response time."""

    def judge(rows: Rows) -> Judgement:
        found = {value: gain(rows, way, over, **{key: value}) for value in least}
        said = ", ".join(f"{part:.0%} {_at(key, value)}" for value, part in found.items())
        return judged(all(found[value] >= part for value, part in least.items()), f"{way} saves {said}")

    return judge


def grows(key: str, way: str = NDDR_DEFAULT, over: str = SDR_DEFAULT, *, falling: bool = False) -> Judge:
    """A judge: what a way saves of another's response time grows along a column, or as it falls, at every step."""

    def judge(rows: Rows) -> Judgement:
        values = sorted(rows.distinct(key), key=_numbers, reverse=falling)
        parts = [gain(rows, way, over, **{key: value}) for value in values]
        said = ", ".join(f"{part:.1%} {_at(key, value)}" for value, part in zip(values, parts, strict=True))
        steps = [after - before for before, after in pairwise(parts)]
        grown = None if not steps or any(abs(step) <= SAME for step in steps) else min(steps) > 0
        return judged(False if steps and min(steps) < -SAME else grown, f"{way} saves {said}")

    return judge


def _numbers(value: Value) -> float:
    assert isinstance(value, int | float)
    return float(value)


def queries_like(way: str, other: str, within: float, key: str) -> Judge:
    """A judge: the querying times of two ways differ by at most some part, at every value of a column."""

    def judge(rows: Rows) -> Judgement:
        found = {_at(key, value): -_saved(rows, "query_ms", way, other, {key: value}) for value in rows.distinct(key)}
        return every(found, f"{{:+.0%}} of the time of {other}", least=-within, most=within)

    return judge


def slower(way: str, than: str, key: str) -> Judge:
    """A judge: a way's querying time is longer than another's, at every value of a column."""

    def judge(rows: Rows) -> Judgement:
        found = {_at(key, value): -_saved(rows, "query_ms", way, than, {key: value}) for value in rows.distinct(key)}
        return every(found, f"{{:+.0%}} of the time of {than}", least=0, undecided=(-0.03, 0.03))

    return judge


def _at(key: str, value: Value) -> str:
    texts = {
        "mbits": "at {:,.0f} Mb/s",
        "bytes": "at {:,} bytes per document",
        "subscriptions": "at {:,} subscriptions per router",
    }
    return texts[key].format(value)


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
        return judged(gaps[0] > gaps[1], f"{gaps[0]:.2f} ms apart ({value}), {gaps[1]:.2f} ms ({than})")

    return judge


def same_increase(way: str, over: str, within: float) -> Judge:
    """A judge: from the fewest subscriptions to any other number the querying times of two ways grow by one factor."""

    def judge(rows: Rows) -> Judgement:
        first, *others = sorted(rows.distinct("subscriptions"), key=_numbers)
        if not others:
            return judged(None, "one number of subscriptions only")
        found = {}
        for count in others:
            one, other = (
                rows.number("query_ms", way=each, subscriptions=count)
                / rows.number("query_ms", way=each, subscriptions=first)
                for each in (way, over)
            )
            found[_at("subscriptions", count)] = one / other
        return every(found, f"{{:.2f}} times the growth of {over}", least=1 - within, most=1 + within)

    return judge


def _named(key: dict[float, float], source: str = PAPER) -> tuple[PaperPoint, ...]:
    """The share of SDR's response time that NDDR saves in the paper: x → share."""
    return tuple(
        PaperPoint(NDDR_DEFAULT, x, 1 - part, f"{source}: as a part of our SDR", of=SDR_DEFAULT)
        for x, part in key.items()
    )


BANDWIDTH_POINTS = _named({100.0: 0.12, 10.0: 0.41})
SIZE_POINTS = _named({10_000: 0.20, 40_000: 0.25, 1_000_000: 0.28})

_FAST_ENGINE = (
    "Our engine takes little time to match a document, so bridging its schema is a larger part of querying than with "
    "the paper's engine."
)
WALKED_ONCE = "Our IDDR walks a subtree that an exchange repeats once, which makes up for its longer matching."
BANDWIDTH = (
    Claim(
        "NDDR is 12 % faster than SDR at 100 Mb/s and 41 % at 10 Mb/s",
        PAPER,
        saves("mbits", {100.0: 0.12, 10.0: 0.41}),
        "12 % and 41 %",
    ),
    Claim(
        "the slower the links, the further NDDR is ahead of SDR", PAPER, grows("mbits", falling=True), "12 % to 41 %"
    ),
    Claim(
        "at 10 Mb/s transmission is at least 78 % of SDR's response time",
        PAPER,
        share_of_transmission(SDR_DEFAULT, 0.78, mbits=10.0),
        "78 %",
    ),
    Claim(
        "NDDR queries about as long as SDR (within 20 %)",
        PAPER,
        queries_like(NDDR_XTRIE, SDR_XTRIE, 0.2, "mbits"),
        "similar",
        _FAST_ENGINE,
    ),
    Claim(
        "IDDR queries a little longer than NDDR",
        PAPER,
        slower(IDDR_XTRIE, NDDR_XTRIE, "mbits"),
        "slightly longer",
        WALKED_ONCE,
    ),
)
SIZES = (
    Claim(
        "NDDR is 20 % faster than SDR at 10 KB, 25 % at 40 KB, 28 % at 1 MB",
        PAPER,
        saves("bytes", {10_000: 0.20, 40_000: 0.25, 1_000_000: 0.28}),
        "20 %, 25 %, 28 %",
    ),
    Claim("the larger the document, the further NDDR is ahead of SDR", PAPER, grows("bytes"), "20 % to 28 %"),
    Claim(
        "NDDR is 10 % faster than IDDR at 1 MB",
        PAPER,
        saves("bytes", {1_000_000: 0.10}, way=NDDR_XTRIE, over=IDDR_XTRIE),
        "10 %",
        WALKED_ONCE,
    ),
)
TOPOLOGIES = (
    Claim(
        "NDDR is further ahead of SDR where only leaves have subscribers",
        PAPER,
        further_apart("topology", "leaf-only", "chain"),
        "further",
    ),
    Claim(
        "NDDR is further ahead of SDR in a tree than in a chain",
        PAPER,
        further_apart("topology", "tree", "chain"),
        "further",
    ),
)
SUBSCRIPTIONS = (
    Claim(
        "with more subscriptions the querying times of NDDR and SDR grow alike (within 15 %)",
        PAPER,
        same_increase(NDDR_XTRIE, SDR_XTRIE, 0.15),
        "the same",
    ),
    Claim(
        "the more subscriptions, the further NDDR is ahead of IDDR",
        PAPER,
        grows("subscriptions", NDDR_XTRIE, IDDR_XTRIE),
        "grows",
        WALKED_ONCE,
    ),
)
