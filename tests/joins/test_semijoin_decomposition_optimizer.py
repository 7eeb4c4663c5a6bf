"""Decompositions: the cost model, the greedy choice, and moving when statistics drift."""

from collections import Counter
from random import Random
from typing import Any

import numpy as np
import pytest

from pathcast import QueryError
from pathcast.joins import Client, JoinServer, Schema, Subscription
from pathcast.joins.query.semijoin_decomposition_optimizer import REMEMBERED_EVENTS, choose, semijoin_cost, total
from pathcast_lab.workloads import mixed_joins

PER_VALUE = {"R": 10, "S": 70, "T": 70, "U": 30}


def star() -> Schema:
    return Schema({"R": "b, a", "S": "b, c", "T": "b, d", "U": "b, e"}, ["R.b = S.b", "S.b = T.b", "S.b = U.b"])


def test_the_model_orders_the_groups_of_section_6_3_as_the_paper_does() -> None:
    cost = {other: semijoin_cost(0.25, 0.25, PER_VALUE["S"], PER_VALUE[other]) for other in "RTU"}
    assert cost["R"] > cost["U"] > cost["T"]


@pytest.mark.parametrize("points", [1, 3, 10])
def test_the_model_is_what_uniform_ranges_and_points_give(points: int) -> None:
    random = np.random.default_rng(5)
    size = 40_000
    low, high = np.sort(random.random((2, size)), axis=0)
    tuples = random.random((points, size))
    mine = np.sort(random.random((2, size)), axis=0)
    new = random.random(size)
    selected = (mine[0] <= new) & (new <= mine[1])
    held = ((low <= tuples) & (tuples <= high)).any(axis=0)
    arrivals = (selected & held).mean()
    exposed = ((low <= new) & (new <= high) & ~held).mean() / 3
    assert arrivals == pytest.approx(semijoin_cost(1, 0, 7, points), abs=0.01)
    assert exposed == pytest.approx(semijoin_cost(0, 1, 1, points), abs=0.01)


def loaded(random: Random) -> list[tuple]:
    """Rows as in §6.3, a third of them, for two join values; tables with few rows change as often as the others."""
    names = {"R": "a", "S": "c", "T": "d", "U": "e"}
    changes: list[list[tuple]] = []
    for table, count in PER_VALUE.items():
        for at in range(2 * (70 // 3)):
            row = {"b": at % 2, names[table]: random.random() * 100}
            stays = at < 2 * (count // 3)
            changes.append([("insert", table, row)] if stays else [("insert", table, row), ("delete", table, row)])
    random.shuffle(changes)
    return [change for both in changes for change in both]


QUERY = (
    "select * from R natural join S natural join T natural join U "
    "where a < {} and c > {} and d between {} and 90 and e > 5"
)


def test_when_statistics_drift_subscriptions_move_and_stay_right() -> None:
    random = Random(3)
    server = JoinServer(star())
    subscriptions = [
        server.subscribe(QUERY.format(random.randrange(100), random.randrange(100), random.randrange(90)))
        for _ in range(6)
    ]
    clients = [Client(server.schema, one) for one in subscriptions]
    assert {str(form) for form in subscriptions[0].forms.values()} == {"R^S", "S^R", "T^S", "U^S"}
    for message in server.apply(loaded(random)):
        for client in clients:
            client.receive(message)
    assert server.drift() > 1.2
    before = subscriptions[0].filters
    done = server.regroup()
    assert len(done.subscriptions) == len(done.messages) == 6 and server.drift() == pytest.approx(1)
    assert {str(form) for form in subscriptions[0].forms.values()} == {"R^S", "S^T", "T^S", "U^S"}
    assert subscriptions[0].filters != before
    for message in [*done.messages, *server.insert("S", {"b": 1, "c": 50.0}), *server.delete("S", {"b": 1, "c": 50.0})]:
        for client in clients:
            client.receive(message)
    for subscription, client in zip(subscriptions, clients, strict=True):
        for table, content in server.contents(subscription).items():
            assert client.content(table) == content
        fresh = Client(server.schema, server.subscribe(subscription.query.text))
        assert sorted(client.rows()) == sorted(fresh.rows())
    assert server.regroup().messages == [] and server.regroup(force=True).messages == []


def test_regrouping_by_itself_after_some_changes() -> None:
    random = Random(3)
    server = JoinServer(star(), regroup_every=50)
    subscription = server.subscribe(QUERY.format(60, 20, 10))
    client = Client(server.schema, subscription)
    for change in loaded(random):
        for message in server.apply([change]):
            client.receive(message)
    assert "S^T" in {str(form) for form in subscription.forms.values()}
    assert all(client.content(table) == content for table, content in server.contents(subscription).items())


def test_a_simulation_finds_the_selective_neighbour() -> None:
    random = Random(4)
    server = JoinServer(star())
    # Ranges on R contain no tuple, which the model does not know.
    for _ in range(5):
        server.subscribe("select * from R natural join S natural join T where a > 1000 and c > 20 and d > 10")
    server.apply(loaded(random))
    rows = {table: dict(bag.rows) for table, bag in server.bags.items()}
    done = server.regroup(by="simulation")
    assert {str(form) for one in server.subscriptions.values() for form in one.forms.values()} == {"R^S", "S^R", "T^S"}
    assert done.messages == []
    assert {table: dict(bag.rows) for table, bag in server.bags.items()} == rows
    server.regroup(force=True)
    assert "S^T" in {str(form) for form in server.subscriptions[1].forms.values()}
    assert len(server.regroup(by="simulation").messages) == 5


def test_the_greedy_choice_is_the_cheapest_of_all() -> None:
    server = JoinServer(star())
    server.apply(loaded(Random(1)))
    query = server.subscribe(QUERY.format(50, 50, 50)).query
    costs = server.statistics.costs()
    chosen = total([choose(query, costs)], costs)
    others = [total([{**choose(query, costs), "S": edge}], costs) for edge in query.edges_of("S")]
    assert chosen == min(others) and len(set(others)) == 3


def test_a_scheme_without_semijoins_has_nothing_to_regroup() -> None:
    for scheme in ("rel-sel", "enum-j"):
        server = JoinServer(star(), scheme)
        server.subscribe(QUERY.format(50, 50, 50))
        assert server.regroup(force=True).messages == []


def test_statistics_of_the_mix_of_section_6_3_give_the_papers_order_and_decomposition() -> None:
    workload = mixed_joins(40, 400, join_values=10)
    server = JoinServer(workload.schema())
    server.apply([*workload.rows, *workload.changes])
    # As many events at every table, as in the paper; loading has put more into large tables.
    server.statistics.events = Counter(change[1] for change in workload.changes)
    cost = {edge.other("S"): server.statistics.cost("S", edge) for edge in server.schema.edges_of("S")}
    assert cost["R"] > cost["U"] > cost["T"]
    chosen = {}
    for batch in workload.batches:
        ids = server.subscribe_many(batch.query, batch.ranges)
        chosen[batch.query.tables] = {str(form) for form in server.subscriptions[ids[0]].forms.values()}
    assert chosen == {
        ("R", "S"): {"R^S", "S^R"},
        ("R", "S", "T"): {"R^S", "S^T", "T^S"},
        ("R", "S", "T", "U"): {"R^S", "S^T", "T^S", "U^S"},
        ("S", "T", "U"): {"S^T", "T^S", "U^S"},
    }


def test_statistics_forget() -> None:
    statistics = JoinServer(star()).statistics
    for table in ("R", "T"):
        for _ in range(2 * REMEMBERED_EVENTS):
            statistics.note(table, 1)
        assert statistics.share(table) > 0.7
    assert statistics.share("R") < 0.3


def loaded_server(**options: Any) -> tuple[JoinServer, Subscription]:
    """All neighbours of S are loaded after the first subscription; ranges on R contain no tuple."""
    server = JoinServer(star(), **options)
    subscription = server.subscribe(
        "select * from R natural join S natural join T where a > 1000 and c > 20 and d > 10"
    )
    return server, subscription


def forms(subscription: Subscription) -> set[str]:
    return {str(form) for form in subscription.forms.values()}


def test_regrouping_by_itself_may_simulate() -> None:
    found = {}
    for by in ("model", "simulation"):
        server, subscription = loaded_server(regroup_every=50, regroup_by=by)
        client = Client(server.schema, subscription)
        for change in loaded(Random(4)):
            for message in server.apply([change]):
                client.receive(message)
        found[by] = forms(subscription)
        assert all(client.content(table) == content for table, content in server.contents(subscription).items())
    # The model does not know that ranges on R contain no tuple.
    assert "S^T" in found["model"] and "S^R" in found["simulation"]


@pytest.mark.parametrize("by", ["model", "simulation"])
def test_nobody_moves_for_little(by: str) -> None:
    server, _ = loaded_server()
    server.apply(loaded(Random(4)))
    server.regroup(by="model" if by == "simulation" else "simulation", force=True)
    worse = server.drift(by=by)
    assert worse > 1.1
    assert server.regroup(by=by, beyond=worse + 1).messages == []
    assert len(server.regroup(by=by).messages) == 1 and server.drift(by=by) == pytest.approx(1)


def test_a_table_is_filtered_by_the_neighbour_that_was_asked_for() -> None:
    server = JoinServer(star(), filtered_by={"S": ("U", "T")})
    two, three, four = (
        server.subscribe(f"select * from {tables} where c > 5")
        for tables in (
            "R natural join S",
            "R natural join S natural join T",
            "R natural join S natural join T natural join U",
        )
    )
    server.apply(loaded(Random(1)))
    server.regroup(force=True)
    for subscription, expected in [(two, "S^R"), (three, "S^T"), (four, "S^U")]:
        assert expected in forms(subscription)
    assert server.drift() == pytest.approx(1)
    assert "S^U" in forms(JoinServer(star(), filtered_by={"S": "U"}).subscribe(four.query.text))


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"filtered_by": {"Nope": "S"}}, "unknown table 'Nope'"),
        ({"filtered_by": {"R": "T"}}, "assigns 'T' to 'R', but they are not joined; use one of S"),
        ({"regroup_by": "guess"}, "regroup_by must be 'model' or 'simulation', got 'guess'"),
    ],
)
def test_decompositions_that_can_not_be(options: dict, reason: str) -> None:
    with pytest.raises(QueryError, match=reason):
        JoinServer(star(), **options)
