"""The server: the paper's example, the messages of each kind of change, and calls that must change nothing."""

from datetime import date, datetime
from random import Random
from typing import Any

import pytest

from pathcast import ChangeError, QueryError
from pathcast.joins import SCHEMES, Client, JoinServer, Schema, select
from pathcast.joins.schemes.reserved_message_attributes import (
    ARRIVE,
    ENTER,
    EXPOSE,
    KIND,
    LEAVE,
    OTHER,
    PATCH,
    SKYLINE,
    WITHDRAW,
)
from pathcast.messages import Message, Points

SEMIJOINS = [scheme for scheme in SCHEMES if "-sj" in scheme]
REFORMULATED = [scheme for scheme in SEMIJOINS if scheme.startswith("ref")]
X1 = "select * from Stocks natural join Reviews where per between 45 and 70 and rating >= 6"
X2 = "select * from Stocks natural join Reviews where per between 50 and 80 and rating >= 7"


def stocks(scheme: str = "ref-sj-clu+", **options: Any) -> JoinServer:
    """The tables of the paper's Example 1."""
    schema = Schema(
        {"Stocks": "symbol, per, name", "Reviews": "symbol, rating, text"}, joins=["Stocks.symbol = Reviews.symbol"]
    )
    server = JoinServer(schema, scheme, **options)
    for symbol, per in [("GOOG", 51.7), ("YHOO", 51.2), ("AMZN", 92.8)]:
        server.insert("Stocks", stock(symbol, per))
    for at in range(20):
        server.insert("Reviews", {"symbol": "GOOG", "rating": 5.5 + at / 5, "text": f"review {at}"})
    for symbol, rating in [("YHOO", 7.5), ("AMZN", 7.2), ("AMZN", 7.8)]:
        server.insert("Reviews", {"symbol": symbol, "rating": rating, "text": ""})
    return server


def stock(symbol: str, per: float) -> dict[str, Any]:
    return {"symbol": symbol, "per": per, "name": "a long name, which is payload"}


def kinds(messages: list[Message]) -> list[Any]:
    return [message.get(KIND) for message in messages]


def test_example_1_sends_the_new_stock_once_and_no_review() -> None:
    sizes = {}
    for scheme in SCHEMES:
        server = stocks(scheme)
        clients = [Client(server.schema, server.subscribe(query)) for query in (X1, X2)]
        before = [len(client.rows()) for client in clients]
        messages = server.insert("Stocks", stock("GOOG", 52.1))
        taken = [[message for message in messages if client.receive(message)] for client in clients]
        assert [len(client.rows()) for client in clients] == [before[0] + 17, before[1] + 12], scheme
        sizes[scheme] = sum(message.size for message in messages)
        if scheme in REFORMULATED:
            assert kinds(messages) == [ARRIVE] and taken == [messages, messages]
    assert all(10 * sizes[scheme] < sizes["ref-j"] for scheme in REFORMULATED)
    assert sizes["enum-sj"] < sizes["enum-j"] / 5


def test_a_message_carries_its_tuple_as_payload_and_columns() -> None:
    server = stocks()
    server.subscribe(X1)
    (message,) = server.insert("Stocks", stock("GOOG", 52.1))
    assert message.payload == {"name"} and message["per"] == 52.1
    skyline = message[SKYLINE]
    assert isinstance(skyline, Points) and skyline.axes == ("rating",)


@pytest.mark.parametrize("scheme", REFORMULATED)
def test_an_update_sends_what_changed_to_those_who_stay(scheme: str) -> None:
    server = stocks(scheme)
    clients = [Client(server.schema, server.subscribe(query)) for query in (X1, X2)]
    (patch,) = server.update("Stocks", stock("GOOG", 51.7), {"per": 60.0})
    assert patch[KIND] == PATCH and "name" not in patch and patch["per"] == 60.0
    assert all(client.receive(patch) for client in clients)
    # To 47: the first keeps it, the second loses it together with its reviews.
    messages = server.update("Stocks", stock("GOOG", 60.0), {"per": 47.0})
    assert sorted(kinds(messages)) == [LEAVE, PATCH, WITHDRAW]
    taken = [[str(message[KIND]) for message in messages if client.receive(message)] for client in clients]
    assert [sorted(one) for one in taken] == [[PATCH], [LEAVE, WITHDRAW]]
    assert len(clients[1].content("Reviews")) == 1
    # And back: the second gets all of it, the first a patch.
    messages = server.update("Stocks", stock("GOOG", 47.0), {"per": 52.0})
    taken = [[str(message[KIND]) for message in messages if client.receive(message)] for client in clients]
    assert taken[0] == [PATCH] and set(taken[1]) == {ENTER, EXPOSE}
    assert server.update("Stocks", stock("GOOG", 52.0), {"per": 52.0}) == []


def test_an_update_that_no_range_looks_at_is_one_patch() -> None:
    server = stocks()
    client = Client(server.schema, server.subscribe(X1))
    (patch,) = server.update("Stocks", stock("GOOG", 51.7), {"name": "new"})
    assert set(patch) >= {"name", "per", OTHER} and client.receive(patch)
    assert ("GOOG", 51.7, "new", 9.3, "review 19") in client.rows()


@pytest.mark.parametrize("scheme", SCHEMES)
def test_equal_rows_come_and_go_one_by_one(scheme: str) -> None:
    server = stocks(scheme)
    client = Client(server.schema, server.subscribe("select * from Stocks natural join Reviews where rating = 7.5"))

    def count() -> int:
        return len(client.rows())

    def tell(messages: list[Message]) -> None:
        for message in messages:
            client.receive(message)

    assert count() == 2
    tell(server.insert("Stocks", stock("YHOO", 51.2)))
    assert count() == 3
    tell(server.insert("Reviews", {"symbol": "YHOO", "rating": 7.5, "text": ""}))
    assert count() == 5
    tell(server.delete("Stocks", stock("YHOO", 51.2)))
    assert count() == 3
    tell(server.delete("Stocks", stock("YHOO", 51.2)))
    assert count() == 1


def test_of_many_rows_of_one_join_value_the_right_ones_go() -> None:
    server = stocks()
    rows: list[dict[str, Any]] = [{"symbol": "GOOG", "per": number % 2, "name": str(number)} for number in range(100)]
    server.apply([("insert", "Stocks", row) for row in rows])
    server.subscribe("select * from Stocks natural join Reviews where per >= 0 and rating > 1")
    gone = Random(1).sample(rows, 60)
    server.apply([("delete", "Stocks", row) for row in gone])
    bag = server.bags["Stocks"]
    names = [str(row[2]) for row in bag.rows.values()]
    assert sorted(name for name in names if name.isdigit()) == sorted(row["name"] for row in rows if row not in gone)
    for view in bag.views().values():
        run = view.run(("GOOG",))
        assert sorted(run.rows) == [number for number, row in sorted(bag) if row[0] == "GOOG"]
        assert all(view.key(bag.rows[number]) == key for key, number in zip(run.keys, run.rows, strict=True))


def test_receiving_an_arrival_twice_changes_nothing() -> None:
    server = stocks()
    client = Client(server.schema, server.subscribe(X1))
    messages = server.insert("Stocks", stock("AMZN", 55.0))
    for message in [*messages, *messages]:
        assert client.receive(message)
    assert len(client.rows()) == 17 + 1 + 2


def test_the_initial_content_is_a_message_too() -> None:
    server = stocks()
    subscription = server.subscribe(X1, subscriber="x1")
    assert subscription.subscriber == "x1" and subscription.matches(subscription.initial)
    stocks_sent, reviews_sent = subscription.initial["+Stocks"], subscription.initial["+Reviews"]
    assert isinstance(stocks_sent, Points) and isinstance(reviews_sent, Points)
    assert len(stocks_sent) == 2 and len(reviews_sent) == 18


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_range_that_nothing_satisfies_is_a_query_without_rows(scheme: str) -> None:
    server = stocks(scheme)
    subscription = server.subscribe("select * from Stocks natural join Reviews where per between 70 and 45")
    client = Client(server.schema, subscription)
    assert subscription.filters == () and client.rows() == []
    assert not any(client.receive(message) for message in server.insert("Stocks", stock("GOOG", 60.0)))
    server.unsubscribe(subscription)
    assert len(server) == 0


@pytest.mark.parametrize("scheme", SCHEMES)
def test_after_the_last_subscription_nothing_is_sent_and_no_view_is_kept(scheme: str) -> None:
    server = stocks(scheme)
    before = {table: len(bag._views) for table, bag in server.bags.items()}
    subscriptions = [server.subscribe(query) for query in (X1, X2, "select * from Reviews where rating > 3")]
    assert server.insert("Reviews", {"symbol": "GOOG", "rating": 8.0, "text": ""})
    for subscription in subscriptions:
        server.unsubscribe(subscription)
    assert server.insert("Reviews", {"symbol": "GOOG", "rating": 8.0, "text": ""}) == []
    assert {table: len(bag._views) for table, bag in server.bags.items()} == before
    with pytest.raises(QueryError, match="unknown subscription id 1"):
        server.unsubscribe(subscriptions[0])
    with pytest.raises(QueryError, match="unknown subscription id None"):
        server.unsubscribe(None)  # type: ignore[arg-type]


GOOD = ("insert", "Stocks", stock("GOOG", 60.0))
BAD: list[tuple[Any, str]] = [
    (("insert", "Nope", {}), "unknown table 'Nope'"),
    (("insert", "Stocks", {"symbol": "A", "per": 1.0}), "lacks column 'name'; give a value"),
    (("insert", "Stocks", {**stock("A", 1.0), "volume": 5}), "no column 'volume'"),
    (("insert", "Stocks", stock("A", "high")), "Stocks.per: expected a float, got 'high'"),  # type: ignore[arg-type]
    (("insert", "Stocks", stock("A", float("nan"))), "NaN"),
    (("insert", "Stocks", {**stock("A", 1.0), "name": True}), "expected a string"),
    (("insert", "Stocks", stock(None, 1.0)), "Stocks.symbol is a join column and must not be NULL"),  # type: ignore[arg-type]
    (("insert", "Stocks", stock(5, 1.0)), "expected a string, got 5"),  # type: ignore[arg-type]
    (("delete", "Stocks", stock("GOOG", 1.0)), "'Stocks' has no row ('GOOG', 1.0"),
    (("update", "Stocks", stock("GOOG", 1.0), {"per": 2.0}), "has no row"),
    (("update", "Stocks", stock("GOOG", 51.7), {"symbol": None}), "must not be NULL"),
    (("update", "Stocks", stock("GOOG", 51.7), {"nope": None}), "no column 'nope'"),
    (("update", "Stocks", stock("GOOG", 51.7)), "an update with new values"),
    (("upsert", "Stocks", stock("GOOG", 51.7)), "got 'upsert'"),
    (("insert", "Stocks", ["GOOG"]), "a row must map columns to values"),
    ("insert", "a change must be"),
]


@pytest.mark.parametrize(("change", "reason"), BAD, ids=[reason for _, reason in BAD])
def test_a_batch_with_a_bad_change_changes_nothing(change: Any, reason: str) -> None:
    server = stocks()
    client = Client(server.schema, server.subscribe(X1))
    before = state(server)
    with pytest.raises(ChangeError) as refused:
        server.apply([GOOD, change])
    assert reason in str(refused.value) and refused.value.index == 1
    assert state(server) == before
    for message in server.apply([GOOD, ("delete", *GOOD[1:])]):
        client.receive(message)
    assert client.content("Stocks") == server.contents(server.subscriptions[1])["Stocks"]


def state(server: JoinServer) -> Any:
    """The state that a rejected call must not change."""
    kinds = [(t, c, server.schema.kind(t, c)) for t, columns in server.schema.columns.items() for c in columns]
    rows = {table: dict(bag.rows) for table, bag in server.bags.items()}
    return (
        kinds,
        rows,
        list(server.subscriptions),
        server._next_row,
        server._next_subscription,
        server.statistics.events,
    )


def test_a_batch_may_delete_what_it_inserted_but_not_twice() -> None:
    server = stocks()
    server.subscribe(X1)
    server.apply([GOOD, ("delete", *GOOD[1:])])
    with pytest.raises(ChangeError, match="no row"):
        server.apply([GOOD, ("delete", *GOOD[1:]), ("delete", *GOOD[1:])])
    assert server.apply([]) == []


@pytest.mark.parametrize(
    "query",
    [
        "select * from Nope",
        "select * from Stocks where per > 'x'",
        select("Stocks", where={"name": 5}),
        select("Nope"),
        5,
    ],
)
def test_a_refused_subscription_changes_nothing(query: Any) -> None:
    server = stocks()
    before = state(server)
    with pytest.raises(QueryError):
        server.subscribe(query)
    assert state(server) == before


def test_ids_that_are_given_are_not_given_again_and_a_refused_one_changes_nothing() -> None:
    server = JoinServer(Schema({"A": "x, y"}))
    query = "select * from A where x > 1"
    assert [server.subscribe(query, id=id).id for id in (5, 3, None, None)] == [5, 3, 6, 7]
    assert list(server.subscribe_many(select("A"), {"x": ([1, 2], [3, 4])}, first=1)) == [1, 2]
    assert server.subscribe(query).id == 8
    with pytest.raises(QueryError, match="subscription id 5 is already in use"):
        server.subscribe("select * from A where y > 'm'", id=5)
    assert server.schema.kind("A", "y") is None


def test_a_range_without_ends_holds_all_but_null() -> None:
    server = JoinServer(Schema({"A": "x int, y, z bytes"}))
    client = Client(server.schema, server.subscribe(select("A", where={"x": (None, None)})))
    for x in (1, None):
        [client.receive(message) for message in server.insert("A", {"x": x, "y": None, "z": None})]
    assert client.rows() == [(1, None, None)]
    for column, reason in {"y": "does not imply one", "z": "bytes, which cannot be compared"}.items():
        with pytest.raises(QueryError, match=reason):
            server.subscribe(select("A", where={column: (None, None)}))


def test_kinds_settle_by_the_first_value_and_not_by_a_refused_one() -> None:
    schema = Schema({"A": "x, y", "B": "x"}, ["A.x = B.x"])
    server = JoinServer(schema)
    with pytest.raises(ChangeError, match="the value of column A.y has the unsupported type list"):
        server.insert("A", {"x": 1, "y": []})
    assert schema.kind("A", "x") is None
    server.insert("A", {"x": 1, "y": date(2026, 1, 1)})
    kind = schema.kind("B", "x")
    assert kind is not None and kind.name == "float"
    with pytest.raises(ChangeError, match="expected a float, got 'one'"):
        server.insert("B", {"x": "one"})
    with pytest.raises(ChangeError, match="expected a date"):
        server.insert("A", {"x": 1, "y": datetime.fromisoformat("2026-01-01")})


def test_options_that_do_not_exist() -> None:
    schema = Schema({"A": "x"})
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"scheme": "nope"}, "unknown scheme 'nope'; use one of enum-j, rel-sel"),
        ({"index": "nope"}, "unknown index 'nope'"),
        ({"axes": 0}, "at least 1"),
        ({"regroup_every": 0}, "at least 1"),
    ]
    for options, reason in wrong:
        with pytest.raises(QueryError, match=reason):
            JoinServer(schema, **options)
    with pytest.raises(QueryError, match="got 'guess'"):
        JoinServer(schema).regroup(by="guess")
    server = JoinServer(schema, "enum-j")
    subscription = server.subscribe("select * from A")
    with pytest.raises(QueryError, match="sends join results"):
        server.contents(subscription)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_all_edges_of_a_cycle_hold(scheme: str) -> None:
    schema = Schema({"A": "x, y", "B": "y, z", "C": "z, x"}, joins=["A.y = B.y", "B.z = C.z", "C.x = A.x"])
    server = JoinServer(schema, scheme)
    clients = [
        Client(schema, server.subscribe("select * from A join B on A.y = B.y join C on B.z = C.z and C.x = A.x")),
        Client(schema, server.subscribe("select * from A join B on A.y = B.y join C on B.z = C.z")),
    ]
    for row in [("A", {"x": 1, "y": 2}), ("B", {"y": 2, "z": 3}), ("C", {"z": 3, "x": 1}), ("C", {"z": 3, "x": 9})]:
        for message in server.insert(*row):
            for client in clients:
                client.receive(message)
    assert [sorted(client.rows()) for client in clients] == [
        [(1, 2, 2, 3, 3, 1)],
        [(1, 2, 2, 3, 3, 1), (1, 2, 2, 3, 3, 9)],
    ]


def test_wide_ranges_cover_narrow_ones_for_arrivals_departures_and_patches() -> None:
    server = stocks()
    query = "select * from Stocks natural join Reviews where per between {} and {} and rating >= {}"
    wide, narrow = (server.subscribe(query.format(*ends)) for ends in [(40, 80, 5), (45, 70, 6)])
    covered = [any(one.covers(other) for one in wide.filters) for other in narrow.filters[1:]]
    # Of seven kinds for each table: arrivals, departures and patches. The others test both sides of a range.
    assert covered == [True, True, True, False, False, False, False] * 2


@pytest.mark.parametrize("index", ["stabbing", "scan"])
def test_ref_j_plus_sends_those_results_of_ref_j_that_somebody_wants(index: str) -> None:
    random = Random(7)
    schema = {"R": "b, a, n string", "S": "b, c"}
    plain, wanted = (JoinServer(Schema(schema, ["R.b = S.b"]), scheme, index=index) for scheme in ("ref-j", "ref-j+"))
    queries = [
        "select * from R natural join S where a between {} and {} and c between {} and {}",
        "select * from R natural join S where a between {} and {}",
        "select * from R natural join S where a between {} and {} and n >= 'm' and c < {}",
    ]
    subscriptions = []
    for at in range(9):
        low, width = random.randrange(20), random.randrange(3)
        text = queries[at % 3].format(low, low + width, width, low)
        subscriptions.append(wanted.subscribe(text))
        plain.subscribe(text)
    sent = 0
    for _ in range(60):
        table = random.choice("RS")
        row = {"b": random.randrange(3), "a": random.randrange(20), "n": random.choice(["a", "x", None])}
        row = row if table == "R" else {"b": row["b"], "c": random.randrange(20)}
        every, some = plain.insert(table, row), wanted.insert(table, row)
        assert some == [message for message in every if any(one.matches(message) for one in subscriptions)]
        sent += len(every) - len(some)
    assert sent


@pytest.mark.parametrize("scheme", SEMIJOINS)
def test_an_update_carries_no_payload_to_those_who_have_the_row(scheme: str) -> None:
    server = stocks(scheme)
    client = Client(server.schema, server.subscribe(X1))
    for values in ({"per": 60.0}, {"per": 45.0}):
        per = next(row[1] for row in server.bags["Stocks"].rows.values() if row[0] == "GOOG")
        assert isinstance(per, float)
        messages = server.update("Stocks", stock("GOOG", per), values)
        taken = [message for message in messages if client.receive(message)]
        assert len(taken) == 1 and b"a long name" not in taken[0].encode()
    assert ("GOOG", 45.0, "a long name, which is payload", 9.3, "review 19") in client.rows()
