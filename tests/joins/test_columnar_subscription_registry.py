"""Batches: many subscriptions as arrays behave like single ones."""

import tracemalloc
from random import Random
from typing import Any

import numpy as np
import pytest

from pathcast import QueryError
from pathcast.joins import SCHEMES, Client, JoinServer, Schema, select
from pathcast.joins.query.columnar_subscription_registry import keys_of
from pathcast.joins.query.order_preserving_key_encoding import FLOAT, INT
from pathcast.joins.schemes.reserved_message_attributes import SKYLINE
from pathcast.messages import Interval, Message

QUERY = select("R", "S")


def schema() -> Schema:
    return Schema({"R": "b int, a, p", "S": "b int, c int, q", "T": "b int"}, ["R.b = S.b", "S.b = T.b"])


def ranges(count: int, seed: int = 1) -> dict[str, tuple[Any, Any]]:
    random = np.random.default_rng(seed)
    a, c = np.sort(random.random((2, count)) * 10, axis=0), np.sort(random.integers(0, 10, (2, count)), axis=0)
    return {"a": (a[0], a[1]), "S.c": (c[0], c[1])}


def changes(count: int) -> list[tuple]:
    random = Random(2)
    rows = [
        ("insert", "R", {"b": random.randrange(2), "a": random.random() * 10, "p": "x"})
        if random.random() < 0.5
        else ("insert", "S", {"b": random.randrange(2), "c": random.randrange(10), "q": "y"})
        for _ in range(count)
    ]
    gone = [("delete", *row[1:]) for row in random.sample(rows, count // 2)]
    return [*rows, *gone]


def described(messages: list[Message], index: str, scheme: str) -> list[dict[str, Any]]:
    """Messages without skylines, which depend on anchors, and so on the order of changes."""
    history = index == "stabbing" and "-clu" in scheme
    return [{name: one for name, one in message.items() if not (history and name == SKYLINE)} for message in messages]


@pytest.mark.slow
@pytest.mark.parametrize("index", ["scan", "stabbing"])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_batch_is_what_its_members_would_be_one_by_one(scheme: str, index: str) -> None:
    many, single = JoinServer(schema(), scheme, index=index), JoinServer(schema(), scheme, index=index)
    given = ranges(20)
    ids = many.subscribe_many(QUERY, given)
    for at in ids:
        where = {name: Interval(*(ends[at - 1].item() for ends in pair)) for name, pair in given.items()}
        single.subscribe(select("R", "S", where=where))
    assert list(ids) == list(many.subscriptions) == list(single.subscriptions) and len(many) == 20
    clients = [Client(many.schema, many.subscriptions[id]) for id in ids]
    for change in changes(40):
        messages = many.apply([change])
        assert described(messages, index, scheme) == described(single.apply([change]), index, scheme)
        for client in clients:
            for message in messages:
                client.receive(message)
    for id, client in zip(ids, clients, strict=True):
        assert many.subscriptions[id].filters == single.subscriptions[id].filters
        fresh = Client(many.schema, many.subscriptions[id])
        assert sorted(client.rows()) == sorted(fresh.rows())
    for id in ids:
        many.unsubscribe(id)
    assert len(many) == 0 and many.apply(changes(5)) == []
    with pytest.raises(QueryError):
        many.unsubscribe(ids[0])


def test_a_batch_moves_as_a_whole() -> None:
    server = JoinServer(schema())
    ids = server.subscribe_many(select("R", "S", "T"), ranges(5))
    server.subscribe("select * from S where c > 3")
    client = Client(server.schema, server.subscriptions[ids[2]])
    for change in [*changes(60), *(("insert", "T", {"b": 0}) for _ in range(30))]:
        for message in server.apply([change]):
            client.receive(message)
    assert server.drift() >= 1
    for by in ("simulation", "model", "simulation"):
        for message in server.regroup(by=by, force=True).messages:
            client.receive(message)
        subscription = server.subscriptions[ids[2]]
        assert client.filters == subscription.filters
        assert {t: client.content(t) for t in "RST"} == server.contents(subscription)


def test_keys_of_arrays_are_those_of_values() -> None:
    values = np.array([-np.inf, -1.5, -0.0, 0.0, 5e-324, 7.25, np.inf])
    low, high = keys_of("c", FLOAT, (values, values))
    assert low.tolist() == high.tolist() == [FLOAT.key(value) for value in values.tolist()]
    whole = np.array([-3, 0, 9])
    assert keys_of("c", FLOAT, (whole, whole))[0].tolist() == [FLOAT.key(value) for value in whole.tolist()]
    assert [one.tolist() for one in keys_of("c", INT, (np.array([0.5]), np.array([3.5])))] == [[1], [3]]


@pytest.mark.parametrize(
    ("query", "given", "reason"),
    [
        (QUERY, {}, "at least one column"),
        (QUERY, {"a": ([], [])}, "at least one column|arrays of numbers"),
        (QUERY, {"a": ([1], [2]), "c": ([1, 2], [3, 4])}, "the same number of ranges on each, got 1 on R.a, 2 on S.c"),
        (QUERY, {"a": ([3], [2])}, "must have low at most high"),
        (QUERY, {"a": ([1], [2]), "R.a": ([2], [3])}, "'R.a' and an earlier key of `ranges` name the same column, R.a"),
        (QUERY, {"a": ([float("nan")], [2])}, "must have low at most high"),
        (QUERY, {"a": (["x"], ["y"])}, "arrays of numbers"),
        (QUERY, {"a": 5}, "a pair of arrays"),
        (QUERY, {"nope": ([1], [2])}, "no column 'nope'|has a column 'nope'"),
        (QUERY, {"R.b": ([1], [2])}, "ranges on the join column 'R.b'"),
        (QUERY, {"c": ([0.2], [0.8])}, "no whole number"),
        (select("R", where={"a": 5}), {"a": ([1], [2])}, "must not have ranges"),
    ],
)
def test_batches_that_can_not_be(query: Any, given: dict, reason: str) -> None:
    server = JoinServer(schema())
    with pytest.raises(QueryError, match=reason):
        server.subscribe_many(query, given)
    assert len(server) == 0 and server.schema.kind("R", "a") is None


def test_batches_have_ranges_on_numbers() -> None:
    server = JoinServer(schema())
    server.insert("R", {"b": 1, "a": "text", "p": ""})
    with pytest.raises(QueryError, match="'a' is of kind string"):
        server.subscribe_many(QUERY, {"a": ([1], [2])})


def test_a_subscription_takes_200_bytes_at_most() -> None:
    count = 30_000
    given = ranges(count)
    JoinServer(schema()).subscribe_many(QUERY, ranges(10))
    server = JoinServer(schema())
    tracemalloc.start()
    server.subscribe_many(QUERY, given)
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert 100 * count < taken < 200 * count


@pytest.mark.parametrize("scheme", ["ref-sj-clu+", "enum-sj", "ref-j+", "rel-sel"])
def test_members_of_a_batch_over_tables_with_payloads_come_and_go(scheme: str) -> None:
    random = Random(5)
    shop = Schema(
        {"P": "id int, rating float, photo bytes", "Q": "id int, price float"},
        joins=["P.id = Q.id"],
        payloads={"P": "photo"},
    )
    server = JoinServer(shop, scheme)
    lows = np.array([random.random() * 8 for _ in range(12)])
    given = {"rating": (lows, lows + 3), "price": (lows[::-1].copy(), lows[::-1] + 4)}
    ids = server.subscribe_many(select("P", "Q"), given)
    clients = {id: Client(shop, server.subscriptions[id]) for id in ids}
    rows: list[tuple[str, dict[str, Any]]] = []
    for step in range(80):
        if step % 16 == 15:
            id = random.choice(list(clients))
            server.unsubscribe(id)
            del clients[id]
        if rows and random.random() < 0.4:
            change = ("delete", *rows.pop(random.randrange(len(rows))))
        else:
            row = {"id": random.randrange(3), "rating": random.random() * 10, "photo": random.choice([b"x", b"y"])}
            rows.append(("P", row) if random.random() < 0.5 else ("Q", {"id": row["id"], "price": row["rating"]}))
            change = ("insert", *rows[-1])
        for message in server.apply([change]):
            for client in clients.values():
                client.receive(message)
    assert len(clients) == len(server) == 7
    for id, client in clients.items():
        where = {name: (low[id - 1].item(), high[id - 1].item()) for name, (low, high) in given.items()}
        single = Client(shop, server.subscribe(select("P", "Q", where=where)))
        assert sorted(client.rows()) == sorted(single.rows())
    assert any(client.rows() for client in clients.values())
