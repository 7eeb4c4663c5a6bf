"""A selection with a large column is sent as a join: the column goes only to clients that lack it."""

from collections import Counter
from random import Random
from typing import Any

import duckdb
import pytest

from pathcast import ChangeError, SchemaError
from pathcast.joins import SCHEMES, Client, JoinServer, Schema
from pathcast.messages import decode

PHOTO = b"\x89" * 10_000


def products() -> Schema:
    return Schema({"Products": "id int, rating float, photo bytes, text string"}, payloads={"Products": "photo, text"})


def test_a_new_rating_does_not_carry_the_photo_to_those_who_have_it() -> None:
    schema = products()
    server = JoinServer(schema)
    clients = [
        Client(schema, server.subscribe(f"select * from Products where rating between {low} and {high}"))
        for low, high in [(1, 5), (4, 9)]
    ]
    row = {"id": 1, "rating": 3.0, "photo": PHOTO, "text": "a lamp"}

    def sizes(messages: list) -> list[int]:
        return [sum(message.size for message in messages if client.receive(message)) for client in clients]

    first, none = sizes(server.insert("Products", row))
    assert first > 10_000 and none == 0
    again, other = sizes(server.update("Products", row, {"rating": 4.5}))
    assert again < 200 and other > 10_000
    assert [client.rows() for client in clients] == [[(1, 4.5, PHOTO, "a lamp")]] * 2
    # Another row with the same photo, and then the photo of one changes.
    assert max(sizes(server.insert("Products", {**row, "id": 2, "rating": 4.0}))) < 400
    assert min(sizes(server.update("Products", {**row, "rating": 4.5}, {"photo": b"new"}))) < 600
    assert sorted(clients[1].rows()) == [(1, 4.5, b"new", "a lamp"), (2, 4.0, PHOTO, "a lamp")]
    server.delete("Products", {**row, "id": 2, "rating": 4.0})
    assert len(server.bags["Products_payload"]) == 1


def test_the_row_stays_as_it_was_declared() -> None:
    schema = products()
    server = JoinServer(schema)
    client = Client(schema, server.subscribe("select * from products where text >= 'a' and id = 1"))
    assert client.columns == ("id", "rating", "photo", "text")
    for message in server.insert("Products", {"id": 1, "rating": None, "photo": None, "text": "b"}):
        client.receive(message)
    assert client.rows() == [(1, None, None, "b")]
    with pytest.raises(ChangeError, match="no row"):
        server.delete("Products", {"id": 1, "rating": None, "photo": None, "text": "c"})
    with pytest.raises(ChangeError, match="expected a string"):
        server.insert("Products", {"id": 1, "rating": None, "photo": None, "text": 5})


@pytest.mark.slow
@pytest.mark.parametrize("scheme", SCHEMES)
def test_declared_tables_stay_right_under_every_scheme(scheme: str) -> None:
    random = Random(scheme)
    schema = Schema(
        {"P": "id, rating, photo", "Q": "id, price, text"}, joins=["P.id = Q.id"], payloads={"P": "photo", "Q": "text"}
    )
    server = JoinServer(schema, scheme)
    database = duckdb.connect()
    database.execute("create table P (id double, rating double, photo varchar)")
    database.execute("create table Q (id double, price double, text varchar)")
    tables: dict[str, list[dict[str, Any]]] = {"P": [], "Q": []}
    queries = [
        "select * from P natural join Q where rating between 2 and 5 and price < 6",
        "select * from P natural join Q where rating >= 4 and text > 'a'",
        "select * from P where rating = 3 and photo <= 'b'",
    ]
    clients = {query: Client(schema, server.subscribe(query)) for query in queries}

    def row(table: str) -> dict[str, Any]:
        value, text = random.randrange(9), random.choice(["", "a", "b", "c", None])
        names = ("rating", "photo") if table == "P" else ("price", "text")
        return {"id": random.randrange(3), names[0]: value, names[1]: text}

    for _ in range(80):
        table = random.choice("PQ")
        rows = tables[table]
        verb = random.choice(["insert", "insert", "delete", "update"]) if rows else "insert"
        old = random.choice(rows) if verb != "insert" else row(table)
        new = {name: value for name, value in row(table).items() if random.random() < 0.5}
        change = (verb, table, old, new) if verb == "update" else (verb, table, old)
        for message in server.apply([change]):
            for client in clients.values():
                client.receive(decode(message.encode()))
        if verb != "insert":
            rows.remove(old)
        if verb != "delete":
            rows.append({**old, **new} if verb == "update" else old)
    for table, rows in tables.items():
        database.executemany(f"insert into {table} values (?, ?, ?)", [list(one.values()) for one in rows])
    assert any(client.rows() for client in clients.values())
    for query, client in clients.items():
        assert Counter(client.rows()) == Counter(database.execute(query).fetchall()), query
    database.close()


@pytest.mark.parametrize(
    ("payloads", "reason"),
    [
        ({"P": "id"}, "P.id is a join column and cannot be payload"),
        ({"P": "nope"}, "no column 'nope'"),
        ({"X": "photo"}, "unknown table 'X'"),
        ({"P": []}, "the payload of 'P' has no columns; name at least one"),
        ({"P": "photo, photo"}, "names a column twice"),
        ({"Q": "of"}, "the payload of 'Q' cannot have a column named 'of'"),
    ],
)
def test_payloads_that_can_not_be(payloads: dict, reason: str) -> None:
    with pytest.raises(SchemaError, match=reason):
        Schema({"P": "id, photo", "Q": "id, of"}, joins=["P.id = Q.id"], payloads=payloads)


def test_equal_numbers_are_one_payload() -> None:
    server = JoinServer(Schema({"P": "id int, size float"}, payloads={"P": "size"}))
    server.insert("P", {"id": 1, "size": 1})
    server.apply([("delete", "P", {"id": 1, "size": 1.0}), ("insert", "P", {"id": 2, "size": -0.0})])
    server.delete("P", {"id": 2, "size": 0})
    assert not any(len(bag) for bag in server.bags.values())
