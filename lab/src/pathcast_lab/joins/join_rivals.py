"""Rivals of the join server: DuckDB and a plain loop, which compute a change's join results for each subscription.

For an inserted R tuple they compute the new join results, σ(a) {tuple} ⋈ σ(c) S, which `enum-j` sends. `DuckDB` runs
one query for all subscriptions over a table of their ranges; `DuckDB, one by one` runs one query per subscription of a
sample; the loop tests every subscription of a sample and the S tuples of its join value. Times of a sample are
extrapolated to all subscriptions.

`Oracle` is DuckDB with all tables, for the rows that a subscription must have.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from pathcast_lab.workloads import JoinBatch, JoinWorkload

# For each subscription (by its place in the batch) that has results: how many.
Answer = dict[int, int]
_KINDS = {"int": "bigint", "float": "double", "bytes": "blob"}


class Rival(Protocol):
    """Computes a change's join results. `sample`: the places of the subscriptions; None for all."""

    @property
    def name(self) -> str: ...

    @property
    def sample(self) -> range | None: ...

    def results(self, row: Mapping[str, Any]) -> object:
        """The results of an insertion into R, in any form; this call is timed."""

    def answer(self, row: Mapping[str, Any]) -> Answer:
        """The number of results of each subscription."""


def connect() -> Any:
    """A DuckDB in memory, on one core."""
    import duckdb

    return duckdb.connect(config={"threads": 1})


def fill(database: Any, name: str, columns: Mapping[str, Any]) -> None:
    """Append columns to a table of DuckDB."""
    import pyarrow

    arrow = pyarrow.table(dict(columns))
    database.register("coming", arrow)
    database.execute(f"insert into {name} select * from coming")  # noqa: S608
    database.unregister("coming")


class Oracle:
    """The tables of a workload in DuckDB, after the first changes."""

    def __init__(self, workload: "JoinWorkload", changes: int) -> None:
        self._columns = {table: [part.split() for part in text.split(", ")] for table, text in workload.tables.items()}
        self._database = connect()
        made = workload.changes[:changes]
        gone = {id(row) for verb, _, row in made if verb == "delete"}
        present = [(table, row) for _, table, row in (*workload.rows, *made) if id(row) not in gone]
        for table, columns in self._columns.items():
            declared = ", ".join(f"{name} {_KINDS[kind]}" for name, kind in columns)
            self._database.execute(f"create table {table} ({declared})")
            rows = [row for of, row in present if of == table]
            if rows:
                fill(self._database, table, {name: [row[name] for row in rows] for name, _ in columns})

    def rows(self, batch: "JoinBatch", place: int, columns: Iterable[str] = ("count(*)",)) -> Counter[tuple[Any, ...]]:
        """The rows of one subscription of a batch."""
        ends = {column: (low[place].item(), high[place].item()) for column, (low, high) in batch.ranges.items()}
        asked = " and ".join(f"{column} between ? and ?" for column in ends)
        joined = " natural join ".join(batch.query.tables)
        query = f"select {', '.join(columns)} from {joined} where {asked}"  # noqa: S608
        return Counter(self._database.execute(query, [end for pair in ends.values() for end in pair]).fetchall())

    def close(self) -> None:
        self._database.close()


def rivals_of(workload: "JoinWorkload", *, queries: int, looped: int) -> Sequence[Rival]:
    """The rivals of a binary workload; samples of this many subscriptions."""
    (batch,) = workload.batches
    joined = [row for _, table, row in workload.rows if table == "S"]
    return (OneQuery(batch, joined), Queries(batch, joined, queries), Loop(batch, joined, looped))


class OneQuery:
    """Subscriptions are a table, and one query joins it with the S tuples of a join value."""

    name = "DuckDB"
    sample = None

    def __init__(self, batch: "JoinBatch", joined: Sequence[Mapping[str, Any]]) -> None:
        self._database = _with_joined(joined)
        self._database.execute("create table X (place bigint, a1 double, a2 double, c1 double, c2 double)")
        (a1, a2), (c1, c2) = batch.ranges["a"], batch.ranges["c"]
        fill(self._database, "X", {"place": range(len(a1)), "a1": a1, "a2": a2, "c1": c1, "c2": c2})

    def results(self, row: Mapping[str, Any]) -> Any:
        """Place, c and s of every result, as an Arrow table."""
        return self._database.sql(
            "select place, c, s from (select * from X where ? between a1 and a2) X, (select c, s from S where b = ?) S "
            "where c between c1 and c2",
            params=[row["a"], row["b"]],
        ).to_arrow_table()

    def answer(self, row: Mapping[str, Any]) -> Answer:
        """The number of results of each subscription."""
        return dict(Counter(self.results(row)["place"].to_pylist()))


class Queries:
    """One query per subscription."""

    name = "DuckDB, one by one"

    def __init__(self, batch: "JoinBatch", joined: Sequence[Mapping[str, Any]], sample: int) -> None:
        self._database = _with_joined(joined)
        self.sample = range(min(sample, len(batch)))
        self._ends = [[end[place].item() for ends in batch.ranges.values() for end in ends] for place in self.sample]

    def results(self, row: Mapping[str, Any]) -> dict[int, list[Any]]:
        """The results of each subscription of the sample that has some."""
        found = {
            place: self._database.execute(
                "select b, ?, c, s from S where ? between ? and ? and b = ? and c between ? and ?",
                [row["a"], row["a"], a1, a2, row["b"], c1, c2],
            ).fetchall()
            for place, (a1, a2, c1, c2) in zip(self.sample, self._ends, strict=True)
        }
        return {place: rows for place, rows in found.items() if rows}

    def answer(self, row: Mapping[str, Any]) -> Answer:
        """The number of results of each subscription of the sample."""
        return {place: len(rows) for place, rows in self.results(row).items()}


class Loop:
    """A loop over subscriptions, in plain Python."""

    name = "a plain loop"

    def __init__(self, batch: "JoinBatch", joined: Sequence[Mapping[str, Any]], sample: int) -> None:
        self.sample = range(min(sample, len(batch)))
        self._ends = [[end[place].item() for ends in batch.ranges.values() for end in ends] for place in self.sample]
        self._joined: dict[int, list[Mapping[str, Any]]] = {}
        for row in joined:
            self._joined.setdefault(row["b"], []).append(row)

    def results(self, row: Mapping[str, Any]) -> dict[int, list[Any]]:
        """The results of each subscription of the sample that has some."""
        a, joining = row["a"], self._joined.get(row["b"], [])
        found = {}
        for place, (a1, a2, c1, c2) in zip(self.sample, self._ends, strict=True):
            if a1 <= a <= a2 and (rows := [(row, one) for one in joining if c1 <= one["c"] <= c2]):
                found[place] = rows
        return found

    def answer(self, row: Mapping[str, Any]) -> Answer:
        """The number of results of each subscription of the sample."""
        return {place: len(rows) for place, rows in self.results(row).items()}


def _with_joined(joined: Sequence[Mapping[str, Any]]) -> Any:
    database = connect()
    database.execute("create table S (b bigint, c double, s blob)")
    if joined:
        fill(database, "S", {name: [row[name] for row in joined] for name in ("b", "c", "s")})
    return database
