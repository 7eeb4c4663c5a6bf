"""A scene in which a stream of joins is killed: tables keep changing, subscribers come and go, processes keep dying.

Changes are numbered; some are sent twice. In the end every remaining subscriber must have the rows that DuckDB
gives for the tables, from its contents and messages alone.
"""

from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from pathcast.joins import Client, Schema
from pathcast.joins.partition.join_server_specification import StandingJoins
from pathcast.joins.query.value_text_conversion import write_row
from pathcast.messages import decode
from pathcast.spark import open_joins, publish_joins

from .stage import Stage

PER_FILE = 12
# At most this many files wait for the stream: some three micro-batches.
AHEAD = 10
VALUES = 4
SCHEMA = {"R": "k int, a int, p string", "S": "k int, c int"}


def query(number: int) -> str:
    """A query that some rows satisfy."""
    return f"select * from R natural join S where a between {number % 5} and {number % 5 + 6} and c >= {number % 7}"


class JoinScene(Stage):
    """Changes of two tables and versions of subscriptions, for `join_program.py`."""

    def __init__(self, folder: Path, seed: int, most: int | None = None) -> None:
        """`most`: the number of files of changes."""
        self.files = self.sequence = 0
        self.most = most
        self.rows: dict[str, list[dict[str, Any]]] = {"R": [], "S": []}
        super().__init__(folder, seed, "join_program.py", "joins", {"joined": None})

    def publish(self) -> None:
        with self._publishing:
            folder = self.folder / "joins"
            if not self.version:
                schema = Schema(SCHEMA, joins=["R.k = S.k"])
                publish_joins(folder, StandingJoins(schema, {f"reader-{n}": query(n) for n in range(4)}))
            else:
                standing = open_joins(folder)
                leaving = [next(iter(standing))] if self.version % 2 else []
                name = f"reader-{standing.next_id - 1}"
                publish_joins(folder, add={name: query(standing.next_id)}, remove=leaving, keep=2, grace=20)
            self.version += 1

    def _feed(self) -> None:
        sent: list[tuple[Any, ...]] = []
        while not self._end.wait(0.1):
            if self.files == self.most or self.files - self._taken("joined") > AHEAD:
                continue  # a slow machine gets fewer changes, not a backlog that it cannot process in the end
            again = sent[-3:] if self.files % 3 == 0 else []
            sent = [self._change() for _ in range(PER_FILE)]
            letters = [*sent[:5], *again, *sent[5:]]
            names = ("sequence", "table", "change", "row", "values")
            kinds = (pa.int64(), *[pa.string()] * 4)
            columns = [pa.array(values, kind) for values, kind in zip(zip(*letters, strict=True), kinds, strict=True)]
            hidden = self.folder / "in" / f".{self.files}"
            pq.write_table(pa.table(columns, names=names), hidden)
            hidden.rename(self.folder / "in" / f"{self.files:08}.parquet")
            self.files += 1
            if self.files % 2 == 0:
                self.publish()

    def kill_workers(self) -> int:
        """As for any stage. A stream without work soon has no workers: then add one more file."""
        died = super().kill_workers()
        if not died and self.most is not None and self._taken("joined") >= self.most:
            self.most += 1
        return died

    def _change(self) -> tuple[Any, ...]:
        """The next change: number, table, change, row and values."""
        draw = self.random
        self.sequence += 1
        table = draw.choice(["R", "R", "S"])
        rows = self.rows[table]
        verb = draw.choice(["insert", "insert", "delete", "update"]) if len(rows) > 10 else "insert"
        if verb == "insert":
            row: dict[str, Any] = {"k": draw.randrange(VALUES), ("a" if table == "R" else "c"): draw.randrange(12)}
            if table == "R":
                row["p"] = draw.choice("xyz")
            rows.append(row)
            return self.sequence, table, verb, write_row(row), None
        row = rows.pop(draw.randrange(len(rows)))
        if verb == "delete":
            return self.sequence, table, verb, write_row(row), None
        values = (
            {"k": draw.randrange(VALUES)} if draw.random() < 0.3 else {"a" if table == "R" else "c": draw.randrange(12)}
        )
        rows.append({**row, **values})
        return self.sequence, table, verb, write_row(row), write_row(values)


def check(scene: JoinScene) -> None:
    """Clients that read the sinks have the rows that DuckDB gives; no message came twice, or to the wrong client."""
    standing = open_joins(scene.folder / "joins")
    subscriptions = standing.server().subscriptions
    clients = {id: Client(standing.schema, subscriptions[id]) for id in standing}
    pins = scene.pins["joined"]
    contents, delivered = (_by_batch(scene.folder / name) for name in ("contents", "delivered"))
    told: set[tuple[Any, ...]] = set()
    for batch in sorted(pins):
        there = set(open_joins(scene.folder / "joins", pins[batch])) if batch == max(pins) else None
        for row in contents[batch]:
            if row["subscription"] in clients:
                assert clients[row["subscription"]].receive(decode(row["message"]))
        for row in sorted(delivered[batch], key=lambda row: (row["sequence"], row["number"])):
            name = row["edge"], row["join_value"], row["sequence"], row["number"]
            assert name not in told, f"{name} was delivered twice"
            told.add(name)
            assert there is None or there.issuperset(row["subscriptions"])
            for id in set(row["subscriptions"]).intersection(clients):
                assert clients[id].receive(decode(row["message"]))
    database = duckdb.connect()
    for table, columns in SCHEMA.items():
        database.execute(f"create table {table} ({columns.replace('string', 'varchar')})")
        places = ", ".join("?" for _ in columns.split(","))
        database.executemany(
            f"insert into {table} values ({places})",
            [[row[part.split()[0]] for part in columns.split(",")] for row in scene.rows[table]],
        )
    taken_up = {id for id in clients if id in set(open_joins(scene.folder / "joins", pins[max(pins)]))}
    for one in standing.asked:
        if one.id in taken_up:
            names = clients[one.id].columns
            asked = str(one.query).replace("*", ", ".join(names))
            answer = database.execute(asked).fetchall()
            assert Counter(clients[one.id].rows()) == Counter(answer), f"subscription {one.id}"
    assert any(clients[id].rows() for id in taken_up)
    assert len(set(pins.values())) > 1, "subscriptions did not change"


def _by_batch(folder: Path) -> dict[int, list[dict[str, Any]]]:
    found: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for file in folder.glob("batch=*/*.parquet"):
        found[int(file.parent.name.partition("=")[2])] += pq.ParquetFile(file).read().to_pylist()
    return found
