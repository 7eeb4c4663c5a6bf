"""Joins of up to four tables: the mixes of the select-join paper's §6.3.

    R(x, a, r) ─ S(x, y, z, c, s) ─ T(y, d, t)      S in the middle, joined with each of the others on a column of
                         └───────── U(z, e, u)      its own

Subscriptions are 50 : 50 : 50 : 20 to R ⋈ S, R ⋈ S ⋈ T, R ⋈ S ⋈ T ⋈ U and S ⋈ T ⋈ U, with a range on each table; ranges
and values are those of `join_workloads.py` (c as there, the others like a): the paper only says "generated using
normal distributions as before".

`mixed_joins` has 10, 70, 70 and 30 rows of R, S, T and U to each of 100 values of a join column; all tables change as
often as each other. Where rows of a join value are alike (`setting=ALIKE`), they are so in all four tables, around a
middle of the table's own, and a row of S has the same value in all its join columns: a stock has prices, ratings, news
and filings, and all four tables speak of one stock.

In `star_joins` S is a fact table: every row of S joins one row of each dimension, and only S changes. With
`setting=STAR` S has the wide ranges and the wide deviation of centres that R, the changing table, has elsewhere;
dimensions have the narrow ones that S has elsewhere. A subscriber then has most dimension rows before a fact needs
them. Widths (40,000 ± 5,000 and 10,000 ± 1,500) are ours, chosen to reproduce the ratios of the paper's strawmen in
Figure 14: Enum-J 25 times and Ref-J 1.8 times Rel-Sel.

Invariant: every table keeps its size. The same settings give the same workload in every process.
"""

from collections.abc import Callable

import numpy as np

from pathcast.joins import select
from pathcast.kernels import Floats

from .join_workloads import (
    DENSE,
    DEVIATION_A,
    DEVIATION_C,
    JOIN_VALUES,
    JoinBatch,
    JoinSetting,
    JoinWorkload,
    Row,
    balanced,
    middles,
    ranges,
    reflected,
    values,
)

TABLES = {
    "R": "x int, a float, r bytes",
    "S": "x int, y int, z int, c float, s bytes",
    "T": "y int, d float, t bytes",
    "U": "z int, e float, u bytes",
}
JOINS = ("R.x = S.x", "S.y = T.y", "S.z = U.z")
ROWS_PER_VALUE = {"R": 10, "S": 70, "T": 70, "U": 30}
FACTS, DIMENSION = 25_000, 1_000
MIX = ((("R", "S"), 50), (("R", "S", "T"), 50), (("R", "S", "T", "U"), 50), (("S", "T", "U"), 20))
SELECTED = {"R": "a", "S": "c", "T": "d", "U": "e"}
_JOINED = {"R": "x", "T": "y", "U": "z"}


def mixed_joins(
    subscriptions: int,
    insertions: int,
    *,
    seed: int = 0,
    events: int = 0,
    join_values: int = JOIN_VALUES,
    payload: int = 100,
    setting: JoinSetting = DENSE,
) -> JoinWorkload:
    """The general mix: every table has several rows per join value. `subscriptions` is their total number."""
    draw = np.random.default_rng((seed, events, 5))
    around = {table: _middles(draw, join_values, setting) for table in TABLES}

    def rows(table: str, count: int) -> list[Row]:
        found = _drawn(draw, table, count, join_values, payload)
        if setting.alike is not None:
            for row, rough in zip(found, draw.normal(0, setting.alike[1], count).tolist(), strict=True):
                keys = [name for name in _JOINED.values() if name in row]
                row.update(dict.fromkeys(keys, row[keys[0]]))
                row[SELECTED[table]] = float(reflected(around[table][row[keys[0]]] + rough).round(3))
        return found

    present = {table: rows(table, count * join_values) for table, count in ROWS_PER_VALUE.items()}
    changed = [str(table) for table in draw.choice(list(TABLES), insertions)]
    return _workload(subscriptions, seed, present, changed, lambda table: rows(table, 1)[0], setting)


def star_joins(
    subscriptions: int,
    insertions: int,
    *,
    seed: int = 0,
    events: int = 0,
    facts: int = FACTS,
    dimension: int = DIMENSION,
    payload: int = 100,
    fact_payload: int = 0,
    setting: JoinSetting = DENSE,
) -> JoinWorkload:
    """A star: every insertion into the fact table S joins one row of each dimension, and so has one result."""
    draw = np.random.default_rng((seed, events, 6))
    present = {
        table: [{**row, _JOINED[table]: key} for key, row in enumerate(_drawn(draw, table, dimension, 1, payload))]
        for table in _JOINED
    }
    present["S"] = _drawn(draw, "S", facts, dimension, fact_payload)
    return _workload(
        subscriptions,
        seed,
        present,
        ["S"] * insertions,
        lambda table: _drawn(draw, table, 1, dimension, fact_payload)[0],
        setting,
    )


def _workload(
    subscriptions: int,
    seed: int,
    present: dict[str, list[Row]],
    changed: list[str],
    draw: Callable[[str], Row],
    setting: JoinSetting = DENSE,
) -> JoinWorkload:
    coming = [(table, draw(table)) for table in changed]
    return JoinWorkload(
        TABLES,
        JOINS,
        tuple(_batches(subscriptions, seed, setting)),
        [("insert", table, row) for table, rows in present.items() for row in rows],
        list(balanced(present, iter(coming))),
    )


def _batches(subscriptions: int, seed: int, setting: JoinSetting) -> list[JoinBatch]:
    whole = sum(part for _, part in MIX)
    found = []
    for number, (tables, part) in enumerate(MIX):
        count = round(subscriptions * part / whole)
        if count:
            asked = {SELECTED[table]: _ranges(table, count, (seed, 7, number), setting) for table in tables}
            found.append(JoinBatch(select(*tables), asked))
    return found


def _ranges(table: str, count: int, seed: tuple[int, ...], setting: JoinSetting) -> tuple[np.ndarray, np.ndarray]:
    """Ranges on a table: like those on c for S, or in a star's own setting, for all others."""
    like_c = (table == "S") != setting.facts
    deviation, width = (DEVIATION_C, setting.width_c) if like_c else (DEVIATION_A, setting.width_a)
    return ranges(count, (*seed, "RSTU".index(table)), deviation, width)


def _middles(draw: np.random.Generator, join_values: int, setting: JoinSetting) -> Floats:
    """The mean value of a table's column for the rows of each join value, where these rows are alike."""
    return np.array([] if setting.alike is None else middles(draw, join_values, setting.alike[0]))


def _drawn(draw: np.random.Generator, table: str, count: int, join_values: int, payload: int) -> list[Row]:
    """Rows of a table with join values drawn evenly."""
    names = [part.split()[0] for part in TABLES[table].split(", ")]
    *keys, selected, bulky = names
    joined = [draw.integers(0, join_values, count).tolist() for _ in keys]
    numbers = values(draw, count)
    return [
        {
            **{key: column[at] for key, column in zip(keys, joined, strict=True)},
            selected: numbers[at],
            bulky: draw.bytes(payload),
        }
        for at in range(count)
    ]
