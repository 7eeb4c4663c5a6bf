"""Workloads of standing joins: they are what the select-join paper's evaluation describes."""

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from pathcast.joins import Client
from pathcast_lab.workloads import ALIKE, DENSE, STAR, JoinWorkload, binary_joins, mixed_joins, star_joins, stock_joins
from pathcast_lab.workloads.join_workloads import DOMAIN, reflected, zipf_counts

SMALL: dict[str, Callable[..., JoinWorkload]] = {
    "binary": lambda count=200, **given: binary_joins(count, 50, base_rows=300, joined_rows=200, **given),
    "alike": lambda count=200, **given: binary_joins(count, 50, base_rows=300, joined_rows=200, setting=ALIKE, **given),
    "stock": lambda count=200, **given: stock_joins(count, 50, days=3, **given),
    "alike stock": lambda count=200, **given: stock_joins(count, 50, days=3, setting=ALIKE, **given),
    "mixed": lambda count=200, **given: mixed_joins(count, 50, join_values=4, **given),
    "alike mixed": lambda count=200, **given: mixed_joins(count, 50, join_values=4, setting=ALIKE, **given),
    "star": lambda count=200, **given: star_joins(count, 50, facts=200, dimension=20, **given),
    "wide star": lambda count=200, **given: star_joins(count, 50, facts=200, dimension=20, setting=STAR, **given),
}


def rows_of(workload: JoinWorkload, table: str) -> list[dict]:
    return [row for _, name, row in workload.rows if name == table]


@pytest.mark.parametrize("name", SMALL)
def test_the_same_seed_gives_the_same_workload_and_events_change_rows_alone(name: str) -> None:
    make = SMALL[name]
    one, again, other, events = make(seed=1), make(seed=1), make(seed=2), make(seed=1, events=1)

    def ranges(workload: JoinWorkload) -> list:
        return [
            [end.tolist() for ends in batch.ranges.values() for end in ends]
            for batch in workload.batches
        ]  # fmt: skip

    assert one.rows == again.rows and one.changes == again.changes and ranges(one) == ranges(again)
    assert ranges(one) != ranges(other) and one.rows != other.rows
    assert ranges(one) == ranges(events) and one.rows != events.rows and one.changes != events.changes


@pytest.mark.parametrize("name", SMALL)
def test_fewer_subscriptions_are_the_first_of_more(name: str) -> None:
    for few, many in zip(SMALL[name](100).batches, SMALL[name](200).batches, strict=True):
        assert few.query == many.query and 2 * len(few) == pytest.approx(len(many), abs=1)
        for column, (low, high) in few.ranges.items():
            assert (low == many.ranges[column][0][: len(low)]).all()
            assert (high == many.ranges[column][1][: len(high)]).all()


@pytest.mark.parametrize("name", SMALL)
def test_tables_keep_their_sizes_and_every_change_can_be_made(name: str) -> None:
    workload = SMALL[name]()
    assert [verb for verb, _, _ in workload.changes] == ["insert", "delete"] * 50
    server = workload.server("ref-sj-clu+")
    sizes = {table: len(bag) for table, bag in server.bags.items()}
    clients = [Client(server.schema, server.subscriptions[id]) for id in list(server.subscriptions)[::20]]
    for message in server.apply(workload.changes):
        for client in clients:
            client.receive(message)
    assert {table: len(bag) for table, bag in server.bags.items()} == sizes
    for client in clients:
        fresh = Client(server.schema, server.subscriptions[client.id])
        assert Counter(client.rows()) == Counter(fresh.rows())


def test_seventy_of_a_hundred_insertions_join_and_have_51_results_in_the_mean() -> None:
    workload = binary_joins(1, 5_000, seed=3)
    joined = Counter(row["b"] for row in rows_of(workload, "S"))
    assert len(rows_of(workload, "R")) == 16_000 and joined.total() == 5_100
    inserted = [row["b"] for verb, _, row in workload.changes if verb == "insert"]
    assert set(inserted) == set(range(100))
    assert np.mean([b in joined for b in inserted]) == pytest.approx(0.7, abs=0.02)
    assert np.mean([joined[b] for b in inserted]) == pytest.approx(51, rel=0.05)
    # Zipf: the first value has 2^0.8 times what the second has.
    assert joined[0] / joined[1] == pytest.approx(2**0.8, rel=0.02)


def test_values_are_in_the_domain_and_ranges_around_two_spots() -> None:
    workload = binary_joins(20_000, 10, seed=4)
    for column, deviation, width in [("a", 13_000, 7_500), ("c", 7_500, 3_500)]:
        low, high = workload.batches[0].ranges[column]
        assert low.min() >= 0 and (low < high).all() and high.max() <= DOMAIN
        middle = (low + high) / 2
        lower = middle[middle < DOMAIN / 2]
        assert len(lower) / len(middle) == pytest.approx(0.5, abs=0.02)
        # A normal distribution has its quartiles 0.674 deviations from the middle.
        spread = np.subtract(*np.quantile(lower, [0.75, 0.25])) / 2 / 0.674
        assert np.median(lower) == pytest.approx(25_000, rel=0.03) and spread == pytest.approx(deviation, rel=0.06)
        assert np.median(high - low) == pytest.approx(width, rel=0.02)
    values = [row["c"] for row in rows_of(workload, "S")]
    assert min(values) >= 0 and max(values) <= DOMAIN
    assert reflected(np.array([-1.0, 100_001.0, 5.0])).tolist() == [1.0, 99_999.0, 5.0]
    narrow = binary_joins(20_000, 10, seed=4, narrower=6_000).batches[0].ranges
    for low, _ in narrow.values():
        assert np.subtract(*np.quantile(low[low < 50_000], [0.75, 0.25])) < 3_000


def test_a_million_subscriptions_make_some_fifty_clusters_and_a_twentieth_is_affected() -> None:
    workload = binary_joins(1_000_000, 60, seed=5, base_rows=0)
    assert 40 <= clusters(*workload.batches[0].ranges["c"]) <= 60
    assert np.mean(reached(workload)[1]) == pytest.approx(0.05, abs=0.015)


def test_where_rows_of_a_join_value_are_alike_the_join_filters_and_closer_centres_are_affected_less() -> None:
    def shares(base_rows: int, narrower: float = 0.0) -> list[float]:
        workload = binary_joins(20_000, 100, seed=5, setting=ALIKE, payload=1, base_rows=base_rows, narrower=narrower)
        return [float(np.mean(share)) for share in reached(workload)]

    selected, affected, exposed = shares(base_rows=4_000)
    assert selected == pytest.approx(0.21, abs=0.03) and 10 < selected / affected < 60
    assert exposed < affected / 100
    closer_selected, closer_affected, _ = shares(base_rows=10, narrower=6_000.0)
    assert closer_selected > 1.1 * selected and 0 < closer_affected < 0.9 * affected
    # Few rows of R: many insertions expose rows of S.
    assert shares(base_rows=500)[2] > affected / 5
    columns: dict[int, list[float]] = {}
    for row in rows_of(binary_joins(1, 100, seed=5, setting=ALIKE), "S"):
        columns.setdefault(row["b"], []).append(row["c"])
    assert len(columns) == 70 and np.mean([np.std(column) for column in columns.values()]) == pytest.approx(
        1_000, rel=0.1
    )
    assert np.std([np.mean(column) for column in columns.values()]) == pytest.approx(10_000, rel=0.1)


def reached(workload: JoinWorkload) -> tuple[list[float], list[float], list[float]]:
    """The shares of subscriptions that each insertion's row is selected by, affects, and exposes S rows to."""
    (low_a, high_a), (low, high) = (workload.batches[0].ranges[column] for column in "ac")
    joined: dict[int, list[float]] = {}
    for row in rows_of(workload, "S"):
        joined.setdefault(row["b"], []).append(row["c"])
    present: dict[int, list[float]] = {}
    for row in rows_of(workload, "R"):
        present.setdefault(row["b"], []).append(row["a"])
    found: tuple[list[float], list[float], list[float]] = ([], [], [])
    for verb, _, row in workload.changes:
        if verb == "insert":
            held = np.flatnonzero((low_a <= row["a"]) & (row["a"] <= high_a))
            points, others = np.sort(joined.get(row["b"], [])), np.sort(present.get(row["b"], []))
            reach = held[np.searchsorted(points, low[held]) < np.searchsorted(points, high[held], "right")]
            alone = np.searchsorted(others, low_a[reach]) == np.searchsorted(others, high_a[reach], "right")
            for share, count in zip(found, (len(held), len(reach), alone.sum()), strict=True):
                share.append(count / len(low))
    return found


def clusters(low: np.ndarray, high: np.ndarray) -> int:
    """The least number of points that stab all ranges."""
    order = np.argsort(high)
    low, high = low[order], high[order]
    count = 0
    while len(low):
        rest = low > high[0]
        low, high, count = low[rest], high[rest], count + 1
    return count


def test_stocks_walk_and_ratings_lie_around_five_marks() -> None:
    workload = stock_joins(1, 300, seed=6)
    stocks, ratings = rows_of(workload, "R"), rows_of(workload, "S")
    assert len(stocks) == 10_000 and len(ratings) == 2_300
    coming = [row["b"] for verb, _, row in workload.changes if verb == "insert"]
    assert Counter(coming) == Counter(dict.fromkeys(range(100), 3))
    walk = np.array([row["a"] for row in stocks if row["b"] == 7])
    assert np.median(np.abs(np.diff(walk)) / walk[:-1]) < 0.05
    marks = [min(abs(row["c"] - mark) for mark in range(0, 100_001, 25_000)) for row in ratings]
    assert np.mean(np.array(marks) < 10_000) > 0.9
    assert 0.5 < np.mean([b in {row["b"] for row in ratings} for b in range(100)]) <= 0.7


def test_every_fact_has_one_row_of_each_dimension() -> None:
    workload = star_joins(170, 20, seed=7, facts=300, dimension=50, fact_payload=30)
    assert [len(batch) for batch in workload.batches] == [50, 50, 50, 20]
    for table, key in [("R", "x"), ("T", "y"), ("U", "z")]:
        assert sorted(row[key] for row in rows_of(workload, table)) == list(range(50))
        assert all(0 <= row[key] < 50 for row in rows_of(workload, "S"))
    assert {len(row["s"]) for row in rows_of(workload, "S")} == {30}
    assert {len(row["r"]) for row in rows_of(workload, "R")} == {100}
    assert {table for _, table, _ in workload.changes} == {"S"}


def test_the_mix_has_the_papers_rows_to_a_join_value() -> None:
    workload = mixed_joins(170, 400, seed=8)
    counts = Counter(table for _, table, _ in workload.rows)
    assert counts == {"R": 1_000, "S": 7_000, "T": 7_000, "U": 3_000}
    assert [batch.query.tables for batch in workload.batches] == [
        ("R", "S"), ("R", "S", "T"), ("R", "S", "T", "U"), ("S", "T", "U")
    ]  # fmt: skip
    changed = Counter(table for _, table, _ in workload.changes)
    assert set(changed) == set("RSTU") and min(changed.values()) > 140


def test_where_rows_of_a_join_value_are_alike_a_mixs_are_so_in_all_tables() -> None:
    workload = mixed_joins(170, 400, seed=8, setting=ALIKE)
    assert Counter(table for _, table, _ in workload.rows) == {"R": 1_000, "S": 7_000, "T": 7_000, "U": 3_000}
    facts = rows_of(workload, "S")
    assert all(row["x"] == row["y"] == row["z"] for row in facts)
    for table, key, column in [("R", "x", "a"), ("S", "x", "c"), ("T", "y", "d"), ("U", "z", "e")]:
        rows = [row for row in rows_of(workload, table) if row[key] == 7]
        coming = [row for change, name, row in workload.changes if (change, name) == ("insert", table)]
        every = [row[column] for row in rows_of(workload, table)]
        assert np.std([row[column] for row in rows]) < 2_000 and np.std(every) > 8_000
        assert all(abs(row[column] - rows[0][column]) < 8_000 for row in coming if row[key] == 7)


@pytest.mark.parametrize(("total", "kinds"), [(5_100, 70), (70, 70), (10, 70), (0, 70), (71, 70), (1_000, 1)])
def test_zipf_counts_add_up_and_descend(total: int, kinds: int) -> None:
    counts = zipf_counts(total, kinds)
    assert sum(counts) == total and len(counts) == min(total, kinds)
    assert counts == sorted(counts, reverse=True)


def test_in_a_stars_own_setting_facts_have_the_wide_ranges() -> None:
    dense, wide = (star_joins(1_700, 1, facts=50, dimension=5, setting=one) for one in (DENSE, STAR))
    for workload, widths in (
        (dense, {"c": 3_500, "a": 7_500, "d": 7_500}),
        (wide, {"c": 40_000, "a": 10_000, "d": 10_000}),
    ):
        ranges = workload.batches[1].ranges
        for column, width in widths.items():
            assert np.median(ranges[column][1] - ranges[column][0]) == pytest.approx(width, rel=0.15)
