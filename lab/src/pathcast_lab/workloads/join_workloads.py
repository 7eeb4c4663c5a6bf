"""Standing joins: tables, changes and subscriptions as in the select-join paper's evaluation (§6).

    R(b, a, r)   changes: after each insertion its oldest row is deleted, so its size is constant
    S(b, c, s)   fixed; 70 of the 100 join values have rows in it, as many as Zipf's law gives them
    X            σ(a in I_A) R ⋈ σ(c in I_C) S

The paper's table of parameters is not available. Parameters in its text are used; the others are ours:

    domain of a and c      [0, 100,000]; values outside are reflected at its ends
    join values            100; R rows draw theirs evenly, so that 70 % of the insertions join something and one has
                           |S|/100 results on average (51 with 5,100 S rows, 23 with 2,300, as in the paper)
    centres of I_A, I_C    half around 25,000, half around 75,000, normal with deviations 13,000 and 7,500
    values of a            ours: around the same two spots, normal with deviation 13,000
    payloads               random bytes, 100 per row

Widths and the values of c are ours, in two settings, because no single setting fits all of the paper's text:

    `DENSE`  I_A 7,500 ± 1,000, I_C 3,500 ± 500; c as a. With a million subscriptions that is some 50 clusters on c,
             and an insertion affects some 5 % of all: what the paper's index is made for. The join itself filters
             nothing, since of 51 rows anywhere one lies in nearly every range.
    `ALIKE`  I_A 20,000 ± 3,000, I_C 3,500 ± 500; the rows of one join value are alike, as a stock's ratings are: c is
             normal with deviation 1,000 around a middle of the value's own, and the 70 middles are spread as a normal
             distribution around 50,000 with deviation 10,000 is. A range on c then holds a row of a join value with
             a probability of some 5 %: the join filters, which is what the paper's overlay traffic is about. Of a
             hundred insertions each has a join value of its own.

`ALIKE` follows appendix J: the closer the centres, the fewer subscriptions are affected, though more rows of R reach
more of them; so values of a lie at the spots and those of c beside them. It follows §6.2: with 500 rows of R,
insertions expose S rows, so I_A is not wider than the gaps between five rows. Narrower ranges on c would filter as much
with c anywhere, but then skylines have a point per row, and Table 4 has few. (Tests keep the first two.)

The text gives only the direction; the amount is chosen by the target. The ratio of Rel-Sel's traffic to ours depends on
these numbers (`network-selectivity`), and grows as the middles get closer. A factor near 10 with `ALIKE` shows that
such workloads exist, not that the paper used this one.

Invariant: the same settings give the same workload in every process; of two workloads that differ in the number of
subscriptions, the smaller one's are the first of the larger one's. `events` changes rows and changes, and leaves
subscriptions as they are.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any

import numpy as np

from pathcast.joins import JoinServer, Schema, Selection, select
from pathcast.kernels import Floats

DOMAIN = 100_000.0
SPOTS = (25_000.0, 75_000.0)
# Deviations of centres of ranges on an R-like and on an S-like attribute.
DEVIATION_A, DEVIATION_C = 13_000.0, 7_500.0
EVENT_DEVIATION = 13_000.0
JOIN_VALUES = 100
JOINING = 0.7
ZIPF = 0.8

Numbers = Floats
Ends = tuple[Numbers, Numbers]
Row = dict[str, Any]
Change = tuple[str, str, Row]


@dataclass(frozen=True)
class JoinSetting:
    """Width and its deviation of ranges on an R-like and an S-like attribute; `alike`: the deviations of c between join
    values and among the rows of one, None if rows are anywhere; `facts`: the table in the middle of several is R-like.
    """

    width_a: tuple[float, float]
    width_c: tuple[float, float]
    alike: tuple[float, float] | None = None
    facts: bool = False


DENSE = JoinSetting((7_500.0, 1_000.0), (3_500.0, 500.0))
STAR = JoinSetting((40_000.0, 5_000.0), (10_000.0, 1_500.0), facts=True)
ALIKE = JoinSetting((20_000.0, 3_000.0), (3_500.0, 500.0), (10_000.0, 1_000.0))


@dataclass(frozen=True)
class JoinBatch:
    """Subscriptions to the same tables: for each column the low ends and the high ends of all ranges."""

    query: Selection
    ranges: Mapping[str, Ends]

    def __len__(self) -> int:
        return len(next(iter(self.ranges.values()))[0])

    def part(self, first: int, last: int) -> "JoinBatch":
        """The subscriptions from one place up to another."""
        return JoinBatch(
            self.query, {name: (low[first:last], high[first:last]) for name, (low, high) in self.ranges.items()}
        )


@dataclass(frozen=True)
class JoinWorkload:
    """Tables with initial rows, subscriptions, and changes: an insertion and a deletion in turn."""

    tables: Mapping[str, str]
    joins: tuple[str, ...]
    batches: tuple[JoinBatch, ...]
    rows: Sequence[Change]
    changes: Sequence[Change]

    def schema(self) -> Schema:
        """The schema, without inferred kinds."""
        return Schema(self.tables, joins=self.joins)

    def server(self, scheme: str, **options: Any) -> JoinServer:
        """A server with the rows and all subscriptions."""
        server = JoinServer(self.schema(), scheme, **options)
        server.apply(self.rows)
        for batch in self.batches:
            server.subscribe_many(batch.query, batch.ranges)
        return server

    def first(self, count: int) -> "JoinWorkload":
        """The same with the first subscriptions of each batch only."""
        return replace(self, batches=tuple(batch.part(0, count) for batch in self.batches))

    def __len__(self) -> int:
        """The number of subscriptions."""
        return sum(map(len, self.batches))


def binary_joins(
    subscriptions: int,
    insertions: int,
    *,
    seed: int = 0,
    events: int = 0,
    base_rows: int = 16_000,
    joined_rows: int = 5_100,
    payload: int = 100,
    narrower: float = 0.0,
    setting: JoinSetting = DENSE,
) -> JoinWorkload:
    """R ⋈ S of §6.1. `joined_rows` are those of S; `narrower` is taken off the deviation of the centres of ranges on c,
    and twice of that on a (appendix J).
    """
    batch = JoinBatch(
        select("R", "S"),
        {
            "a": ranges(subscriptions, (seed, 1), DEVIATION_A - 2 * narrower, setting.width_a),
            "c": ranges(subscriptions, (seed, 2), DEVIATION_C - narrower, setting.width_c),
        },
    )
    draw = np.random.default_rng((seed, events, 3))
    counts = zipf_counts(joined_rows, round(JOINING * JOIN_VALUES))
    joined = [
        ("insert", "S", {"b": value, "c": c, "s": draw.bytes(payload)})
        for value, column in enumerate(_joined_values(draw, counts, setting.alike))
        for c in column
    ]

    def base(count: int) -> list[Row]:
        keys, numbers = _keys(draw, count, each_in_turn=setting.alike is not None), values(draw, count)
        return [{"b": b, "a": a, "r": draw.bytes(payload)} for b, a in zip(keys, numbers, strict=True)]

    present, coming = base(base_rows), base(insertions)
    return JoinWorkload(
        {"R": "b int, a float, r bytes", "S": "b int, c float, s bytes"},
        ("R.b = S.b",),
        (batch,),
        [*joined, *(("insert", "R", row) for row in present)],
        list(balanced({"R": present}, (("R", row) for row in coming))),
    )


def stock_joins(
    subscriptions: int,
    insertions: int,
    *,
    seed: int = 0,
    events: int = 0,
    days: int = 100,
    payload: int = 100,
    setting: JoinSetting = DENSE,
) -> JoinWorkload:
    """Stocks and ratings, generated like those of the paper's finance site, with the subscriptions of §6.1.

    100 stocks, whose price-earnings ratio changes by some per cent per day; R has their last `days` days, and an
    insertion is a stock's next day; each stock has one before any stock has another. 70 stocks may be rated, 460 times
    in all, from 1 to 5; each rating is perturbed five times, which makes 2,300. Ratings of one stock agree, to a
    quarter of a star, where rows are `ALIKE`.
    """
    draw = np.random.default_rng((seed, events, 4))
    needed = days + -(-insertions // JOIN_VALUES)
    # A ratio of 20 in the middle; 100 and more is the end of the domain.
    walks = np.exp(np.cumsum(draw.normal(0, 0.03, (needed, JOIN_VALUES)), axis=0) + draw.normal(3, 0.6, JOIN_VALUES))
    ratios = reflected(1_000 * walks).round(3)
    stars = draw.choice(5, 460, p=(0.05, 0.1, 0.25, 0.35, 0.25))
    kinds = round(JOINING * JOIN_VALUES)
    who = draw.choice(kinds, 460, p=_shares(kinds))
    if setting.alike is None:
        ratings, rough = stars * DOMAIN / 4, 5_000.0
    else:
        # A star is a fifth of the domain.
        ratings = np.array(middles(draw, kinds, setting.alike[0]))[who] + draw.normal(0, DOMAIN / 5 / 4, 460)
        rough = setting.alike[1]
    rated = np.repeat(who, 5)
    ratings = reflected(np.repeat(ratings, 5) + draw.normal(0, rough, 2_300)).round(3)

    def day(number: int) -> list[Row]:
        order = draw.permutation(JOIN_VALUES).tolist()
        return [{"b": b, "a": float(ratios[number, b]), "r": draw.bytes(payload)} for b in order]

    joined: list[Change] = [
        ("insert", "S", {"b": b, "c": c, "s": draw.bytes(payload)})
        for b, c in zip(rated.tolist(), ratings.tolist(), strict=True)
    ]
    present = [row for number in range(days) for row in day(number)]
    coming = [row for number in range(days, needed) for row in day(number)][:insertions]
    plain = binary_joins(subscriptions, 0, seed=seed, base_rows=0, joined_rows=0, setting=setting)
    return JoinWorkload(
        plain.tables,
        plain.joins,
        plain.batches,
        [*joined, *(("insert", "R", row) for row in present)],
        list(balanced({"R": present}, (("R", row) for row in coming))),
    )


# Parts of workloads.


def ranges(count: int, seed: Sequence[int], deviation: float, width: tuple[float, float]) -> Ends:
    """Ranges with centres around the two spots: low ends and high ends, within the domain."""
    spots = np.random.default_rng((*seed, 1)).choice(SPOTS, count)
    centres = reflected(spots + np.random.default_rng((*seed, 2)).normal(0, deviation, count))
    widths = np.random.default_rng((*seed, 3)).normal(*width, count)
    half = np.maximum(widths, width[0] / 10) / 2
    return np.clip(centres - half, 0, DOMAIN).round(3), np.clip(centres + half, 0, DOMAIN).round(3)


def _keys(draw: np.random.Generator, count: int, *, each_in_turn: bool) -> list[int]:
    """Join values, drawn evenly; or all of them in some order, again and again."""
    if not each_in_turn:
        return [int(one) for one in draw.integers(0, JOIN_VALUES, count)]
    rounds = [draw.permutation(JOIN_VALUES) for _ in range(-(-count // JOIN_VALUES))]
    return [int(one) for numbers in rounds for one in numbers][:count]


def values(draw: np.random.Generator, count: int) -> list[float]:
    """Values of a column around the two spots."""
    found = reflected(draw.choice(SPOTS, count) + draw.normal(0, EVENT_DEVIATION, count))
    return [float(one) for one in found.round(3)]


def _joined_values(
    draw: np.random.Generator, counts: Sequence[int], alike: tuple[float, float] | None
) -> Iterator[list[float]]:
    """Values of c, of one join value after the other."""
    if alike is None:
        yield from (values(draw, count) for count in counts)
        return
    for middle, count in zip(middles(draw, len(counts), alike[0]), counts, strict=True):
        yield reflected(draw.normal(middle, alike[1], count)).round(3).tolist()


def middles(draw: np.random.Generator, count: int, deviation: float) -> list[float]:
    """Values that are spread as a normal distribution around the middle of the domain, in some order."""
    law = NormalDist(DOMAIN / 2, deviation)
    return [law.inv_cdf((place + 0.5) / count) for place in draw.permutation(count).tolist()]


def reflected(numbers: Numbers) -> Numbers:
    """Numbers within the domain: those beyond an end are reflected."""
    return DOMAIN - np.abs(DOMAIN - np.abs(numbers) % (2 * DOMAIN))


def zipf_counts(total: int, kinds: int) -> list[int]:
    """The number of occurrences of each kind among `total`, by Zipf's law; at least 1 each if `total` suffices."""
    kinds = min(kinds, total)
    if not kinds:
        return []
    exact = _shares(kinds) * (total - kinds)
    counts = exact.astype(np.int64)
    counts[np.argsort(counts - exact, kind="stable")[: total - kinds - int(counts.sum())]] += 1
    return [int(count) + 1 for count in counts]


def _shares(kinds: int) -> Numbers:
    weights = np.arange(1, kinds + 1) ** -ZIPF
    return np.asarray(weights / weights.sum(), np.float64)


def balanced(present: Mapping[str, Sequence[Row]], coming: Iterator[tuple[str, Row]]) -> Iterator[Change]:
    """Insertions, each followed by the deletion of the oldest row of the same table."""
    waiting = {table: deque(rows) for table, rows in present.items()}
    for table, row in coming:
        yield "insert", table, row
        rows = waiting[table]
        rows.append(row)
        yield "delete", table, rows.popleft()
