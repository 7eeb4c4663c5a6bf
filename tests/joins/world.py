"""A server with clients, run beside DuckDB: four tables in a cycle, one edge of two columns, all kinds of values.

`World` makes the same changes to the server and to DuckDB, hands every message to every client over the wire, and
checks the invariants after each event.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import date, datetime
from typing import Any

import duckdb

from pathcast.joins import Client, JoinServer, Schema, Subscription
from pathcast.joins.schemes.reserved_message_attributes import ARRIVE, COME, ENTER, EXPOSE, FORM, KIND, ROW, TO
from pathcast.messages import Message, Points, decode

TABLES = {
    "R": "k int, a int, p string",
    "S": "k int, m int, c float, d date",
    "T": "m int, n string, e timestamp, q bytes",
    "U": "m int, n string, k int, f string",
}
JOINS = ["R.k = S.k", "S.m = T.m", "T.m = U.m and T.n = U.n", "U.k = R.k"]
DUCK_TYPES = {
    "int": "bigint", "float": "double", "string": "varchar", "date": "date", "timestamp": "timestamp", "bytes": "blob"
}  # fmt: skip
# Chooses one of several values, by Hypothesis or by a random number.
Choose = Callable[[Sequence[Any]], Any]

KEYS = (0, 1)
VALUES: dict[str, dict[str, Sequence[Any]]] = {
    "R": {"k": KEYS, "a": (*range(10), None), "p": ("x", "y")},
    "S": {"k": KEYS, "m": KEYS, "c": (*range(10), 2.5, None), "d": [date(2026, 1, day) for day in range(1, 7)]},
    "T": {
        "m": KEYS, "n": ("u", "v"), "q": (b"photo", None),
        "e": [None, *(datetime.fromisoformat(f"2026-01-0{day}T12:00:00") for day in range(1, 7))],
    },
    "U": {"m": KEYS, "n": ("u", "v"), "k": KEYS, "f": ("", "a", "ab", "b")},
}  # fmt: skip
NUMBERS = ["-1", "0", "1", "2", "2.5", *map(str, range(3, 10))]
CONSTANTS: dict[str, dict[str, list[str]]] = {
    "R": {"a": NUMBERS, "k": NUMBERS, "p": ["'x'", "'y'"]},
    "S": {"c": NUMBERS, "d": [f"date '2026-01-0{day}'" for day in range(1, 7)]},
    "T": {"e": [f"timestamp '2026-01-0{day} 12:00:00'" for day in range(1, 7)], "n": ["'u'", "'v'"]},
    "U": {"f": ["''", "'a'", "'aa'", "'b'"], "m": NUMBERS},
}
RING = ("R", "S", "T", "U")


def draw_row(table: str, choose: Choose) -> dict[str, Any]:
    return {column: choose(VALUES[table][column]) for column in (part.split()[0] for part in TABLES[table].split(","))}


def draw_query(choose: Choose) -> str:
    """SQL over a connected part of the cycle, with all or all but one of its edges."""
    start, size = choose([0, 0, 0, 1, 2, 3]), choose([1, 2, 2, 2, 2, 3, 4])
    tables = [RING[(start + at) % 4] for at in range(size)]
    conditions = [JOINS[RING.index(table)] for table in tables[:-1]]
    if size == 4 and choose([True, False]):
        conditions.append(JOINS[RING.index(tables[3])])
    ranged = [table for table in tables if choose(range(4))]
    conditions += [draw_condition(table, choose) for table in [*ranged, *ranged[: choose([0, 0, 1, 2])]]]
    return f"select * from {', '.join(tables)}" + (f" where {' and '.join(conditions)}" if conditions else "")


def draw_condition(table: str, choose: Choose) -> str:
    # Mostly the first: subscriptions should have ranges on the same columns.
    names = list(CONSTANTS[table])
    column = choose([names[0], names[0], *names])
    constants = CONSTANTS[table][column]
    if choose(range(3)):
        # Sometimes the ends are swapped: an empty range.
        low, high = sorted(
            [choose(range(len(constants))), choose(range(len(constants)))], reverse=not choose(range(12))
        )
        return f"{table}.{column} between {constants[low]} and {constants[high]}"
    return f"{table}.{column} {choose(['<', '<=', '>', '>=', '='])} {choose(constants)}"


class CheckedClient(Client):
    """A client that records when it receives a row that it already has."""

    def __init__(self, schema: Schema, subscription: Subscription) -> None:
        self.resent: list[Message] = []
        super().__init__(schema, subscription)

    def receive(self, message: Message) -> bool:
        before = {table: self.content(table) for table in getattr(self, "_tables", ())}
        taken = super().receive(message)
        if taken and message.get(KIND) in {ARRIVE, ENTER, EXPOSE} and ROW in message:
            form = message[FORM]
            assert isinstance(form, int)
            base = self._forms[form].base
            if message[ROW] in before[base]:
                self.resent.append(message)
        if taken and TO in message:
            for name, listed in message.items():
                if isinstance(listed, Points) and name.startswith(COME) and name[1:] in before:
                    self.resent += [message for row in listed.rows if row[0] in before[name[1:]]]
        return taken


class World:
    """A server of some scheme and DuckDB."""

    def __init__(self, scheme: str, *, typed: bool = True, **options: Any) -> None:
        tables = TABLES if typed else {name: _untyped(columns) for name, columns in TABLES.items()}
        self.schema = Schema(tables, JOINS)
        self.server = JoinServer(self.schema, scheme, **options)
        self.database = duckdb.connect()
        for table, columns in TABLES.items():
            declared = [part.split() for part in columns.split(",")]
            self.database.execute(
                f"create table {table} ({', '.join(f'{name} {DUCK_TYPES[kind]}' for name, kind in declared)})"
            )
        self.rows: dict[str, list[dict[str, Any]]] = {table: [] for table in TABLES}
        self.clients: dict[int, tuple[str, Subscription, CheckedClient]] = {}
        self.semijoins = not scheme.endswith(("-j", "-j+"))

    def deliver(self, messages: list[Message]) -> None:
        for message in messages:
            again = decode(message.encode())
            takers = [client for _, _, client in self.clients.values() if client.receive(again)]
            if message.get(KIND) == EXPOSE and ROW in message:
                assert takers, f"nobody wants {message}"
        self.check_contents()

    def change(self, *changes: tuple[Any, ...]) -> None:
        messages = self.server.apply(changes)
        for verb, table, row, *more in changes:
            if verb != "insert":
                self.rows[table].remove(row)
            if verb != "delete":
                self.rows[table].append({**row, **more[0]} if more else row)
        self.deliver(messages)

    def draw_change(self, choose: Choose) -> tuple[Any, ...]:
        """A change of a table: a new row, or a change of an existing one."""
        table = choose(RING)
        rows = self.rows[table]
        verb = choose(["insert", "insert", "delete", "update", "update"]) if rows else "insert"
        if verb == "insert":
            # Equal rows are inserted again: tables are bags.
            return ("insert", table, choose(rows) if rows and choose(range(5)) == 0 else draw_row(table, choose))
        row = choose(rows)
        if verb == "delete":
            return ("delete", table, row)
        new = draw_row(table, choose)
        columns = {choose(sorted(new)) for _ in range(choose([1, 1, 2]))}
        return ("update", table, row, {column: new[column] for column in columns})

    def live(self, choose: Choose, rows: int, clients: int, steps: int) -> None:
        """Some rows, some subscriptions, then anything that can happen."""
        for _ in range(rows):
            table = choose(RING)
            self.change(("insert", table, draw_row(table, choose)))
        while len(self.clients) < clients:
            self.subscribe(draw_query(choose))
        for _ in range(steps):
            what = choose(range(20))
            if what == 0:
                self.subscribe(draw_query(choose))
            elif what == 1 and len(self.clients) > clients // 2:
                self.unsubscribe(choose(sorted(self.clients)))
            elif what == 2:
                self.regroup(choose(["model", "simulation"]))
            else:
                self.change(self.draw_change(choose))

    def subscribe(self, query: str) -> None:
        subscription = self.server.subscribe(query)
        self.clients[subscription.id] = (query, subscription, CheckedClient(self.schema, subscription))

    def unsubscribe(self, id: int) -> None:
        self.server.unsubscribe(self.clients.pop(id)[1])

    def regroup(self, by: str) -> None:
        done = self.server.regroup(by=by, force=True)
        self.deliver(done.messages)
        for _, subscription, client in self.clients.values():
            assert set(client.filters) == set(subscription.filters)

    def check_contents(self) -> None:
        for query, subscription, client in self.clients.values():
            assert not client.resent, (query, client.resent)
            if self.semijoins:
                for table, content in self.server.contents(subscription).items():
                    assert client.content(table) == content, (query, table)

    def check_rows(self) -> None:
        for table, rows in self.rows.items():
            self.database.execute(f"delete from {table}")
            if rows:
                marks = ", ".join("?" for _ in rows[0])
                self.database.executemany(
                    f"insert into {table} values ({marks})",
                    [[row[name] for name in self.schema.columns[table]] for row in rows],
                )
        for query, _, client in self.clients.values():
            found = Counter(client.rows())
            expected = Counter(self.database.execute(query).fetchall())
            assert found == expected, query


def _untyped(columns: str) -> str:
    return ", ".join(part.split()[0] for part in columns.split(","))
