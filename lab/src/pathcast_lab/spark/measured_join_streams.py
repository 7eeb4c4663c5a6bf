"""Streams of the experiment `spark-joins`: the tables and changes, ours, one server, and Spark's own join."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, sleep
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathcast.joins.partition.join_server_specification import StandingJoins
    from pathcast_lab.workloads import JoinBatch

# A change under its number: number, insert or delete, table, row.
Numbered = tuple[int, str, str, Mapping[str, Any]]
Messages = Mapping[int, Counter[bytes]]
# Sessions, frames and queries of Spark, which only its package imports.
_Spark = Any
_CHANGES = "sequence long, table string, change string, row string"


@dataclass(frozen=True)
class Tables:
    """Initial rows and changes, numbered, and subscriptions."""

    rows: Sequence[Numbered]
    changes: Sequence[Numbered]
    batch: "JoinBatch"
    standing: "StandingJoins"


def make_tables(subscriptions: int, values: int, base: int, joined: int, changes: int, seed: int) -> Tables:
    """R and S over this many join values, 70 % of which S has, and changes of R."""
    import numpy as np

    from pathcast.joins import Schema
    from pathcast.joins.partition.join_server_specification import StandingJoins
    from pathcast_lab.workloads import JOINING, balanced, binary_joins, zipf_counts
    from pathcast_lab.workloads import values as drawn

    plain = binary_joins(subscriptions, 0, seed=seed, base_rows=0, joined_rows=0)
    draw = np.random.default_rng((seed, 11))

    def rows(count: int) -> list[dict[str, Any]]:
        keys = draw.integers(0, values, count).tolist()
        return [{"b": b, "a": a, "r": draw.bytes(100)} for b, a in zip(keys, drawn(draw, count), strict=True)]

    fixed = [
        ("insert", "S", {"b": value, "c": c, "s": draw.bytes(100)})
        for value, count in enumerate(zipf_counts(joined, round(JOINING * values)))
        for c in drawn(draw, count)
    ]
    present = rows(base)
    begin = [*fixed, *(("insert", "R", row) for row in present)]
    coming = balanced({"R": present}, (("R", row) for row in rows(-(-changes // 2))))
    (batch,) = plain.batches
    return Tables(
        [(number, *one) for number, one in enumerate(begin, 1)],
        [(number, *one) for number, one in enumerate(coming, len(begin) + 1)],
        batch,
        StandingJoins(Schema(plain.tables, plain.joins), batches=[(batch.query, batch.ranges)]),
    )


class OneServer:
    """A server in this process, whose rows have the numbers of the changes that brought them."""

    def __init__(self, tables: Tables) -> None:
        self._server = tables.standing.server()
        self._columns = tables.standing.schema.columns
        for change in tables.rows:
            self._make(change)

    def _make(self, change: Numbered) -> list[Any]:
        from pathcast.joins.server.join_server import Step

        number, verb, table, given = change
        row = tuple(given[name] for name in self._columns[table])
        step = Step(table, None, row) if verb == "insert" else Step(table, row, None)
        return self._server.make(step, number)

    def messages(self, changes: Sequence[Numbered]) -> Messages:
        """The messages of each change that has some."""
        made = {change[0]: Counter(message.encode() for message in self._make(change)) for change in changes}
        return {number: messages for number, messages in made.items() if messages}

    def count_messages(self, changes: Sequence[Numbered]) -> int:
        """Make changes, encode the messages, and count them."""
        return sum(len([message.encode() for message in self._make(change)]) for change in changes)


def one_server(tables: Tables) -> OneServer:
    """A server with the rows of the tables."""
    return OneServer(tables)


class _Files:
    """A folder of Parquet files, one per micro-batch."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self.folder = folder
        self._count = 0

    def put(self, columns: Mapping[str, Any]) -> None:
        """The next file, in as many pieces as there are tasks to read it."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = pa.table(dict(columns))
        hidden = self.folder / f".{self._count}"
        pq.write_table(table, hidden, row_group_size=max(1, len(table) // 2))
        hidden.rename(self.folder / f"{self._count:06}.parquet")
        self._count += 1


class JoinStream:
    """`join_subscriptions` over files."""

    def __init__(self, spark: _Spark, folder: Path, tables: Tables) -> None:
        self._spark, self._folder, self._tables = spark, folder, tables
        self._files = _Files(folder / "changes")
        self._use: Callable[[_Spark], None] = _thrown_away
        self._query = self._start()

    def _start(self) -> _Spark:
        from pathcast.spark import join_subscriptions

        # A worker takes as many rows at a time as pay for handing them over.
        self._spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "10000")
        changes = self._spark.readStream.schema(_CHANGES).option("maxFilesPerTrigger", 1)
        changes_of = changes.parquet(str(self._files.folder))
        messages = join_subscriptions(changes_of, self._tables.standing, folder=self._folder / "subscriptions")
        writer = messages.writeStream.foreachBatch(lambda rows, _: self._use(rows))
        return writer.option("checkpointLocation", str(self._folder / "checkpoint")).start()

    def _put(self, changes: Sequence[Numbered]) -> None:
        from pathcast.joins.query.value_text_conversion import write_row

        numbers, verbs, tables, rows = zip(*changes, strict=True)
        written = [write_row(row) for row in rows]
        self._files.put({"sequence": numbers, "table": tables, "change": verbs, "row": written})

    def batch(self, changes: Sequence[Numbered]) -> float:
        """Seconds that a micro-batch of changes takes, by Spark."""
        self._put(changes)
        self._query.processAllAvailable()
        return max(
            float(progress["durationMs"]["triggerExecution"]) / 1e3
            for progress in self._query.recentProgress[-2:]
            if progress["numInputRows"] == len(changes)
        )

    def messages(self, changes: Sequence[Numbered]) -> Messages:
        """The messages of some changes, by number."""
        found: dict[int, Counter[bytes]] = {}

        def collect(rows: _Spark) -> None:
            for row in rows.where("error is null").select("sequence", "message").collect():
                found.setdefault(row["sequence"], Counter())[bytes(row["message"])] += 1

        self._use = collect
        self.batch(changes)
        self._use = _thrown_away
        return found

    def state_bytes(self) -> int:
        """The bytes of all keys' states."""
        reader = self._spark.read.format("statestore").option("stateVarName", "part")
        states = reader.load(str(self._folder / "checkpoint"))
        return int(states.selectExpr("sum(length(value.part))").collect()[0][0])

    def restart(self, changes: Sequence[Numbered]) -> tuple[int, float]:
        """Interrupt a micro-batch and restart: return how many are repeated, and the seconds until one is complete."""

        def broken(rows: _Spark) -> None:
            _thrown_away(rows)
            raise RuntimeError("the sink fails, as requested")

        self._use = broken
        self._spark.sparkContext.setLogLevel("OFF")  # it fails on request
        self._put(changes)
        while self._query.isActive:
            sleep(0.05)
        self._spark.sparkContext.setLogLevel("WARN")
        self._use = _thrown_away
        logs = {name: self._batches(name) for name in ("offsets", "commits")}
        begin = perf_counter()
        self._query = self._start()
        self._query.processAllAvailable()
        took = perf_counter() - begin
        self._query.stop()
        return logs["offsets"] - logs["commits"], took

    def _batches(self, log: str) -> int:
        names = (entry.name for entry in (self._folder / "checkpoint" / log).iterdir())
        return max(int(name) for name in names if name.isdecimal())


class NativeStream:
    """Spark's own stream–stream join of R and S, with the subscriptions' ranges applied or without."""

    def __init__(self, spark: _Spark, folder: Path, tables: Tables) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self._spark, self._folder, self._tables = spark, folder, tables
        self._runs = 0
        (a1, a2), (c1, c2) = tables.batch.ranges["a"], tables.batch.ranges["c"]
        folder.mkdir(parents=True)
        ranges = pa.table({"id": range(1, len(a1) + 1), "a1": a1, "a2": a2, "c1": c1, "c2": c2})
        pq.write_table(ranges, folder / "ranges.parquet")

    def results(self, changes: Sequence[Numbered]) -> int:
        """The number of results that insertions have for all subscriptions."""
        return sum(count for count, _ in self._run(changes, ranges=True))

    def seconds(self, changes: Sequence[Numbered], *, ranges: bool) -> float:
        """Seconds of a micro-batch of insertions, after another one."""
        return [took for _, took in self._run(changes, ranges=ranges)][-1]

    def _run(self, changes: Sequence[Numbered], *, ranges: bool) -> Iterator[tuple[int, float]]:
        self._runs += 1
        home = self._folder / str(self._runs)
        base, fixed = _Files(home / "R"), _Files(home / "S")
        joined = [row for _, _, table, row in self._tables.rows if table == "S"]
        fixed.put({name: [row[name] for row in joined] for name in ("b", "c", "s")})
        read = self._spark.readStream.option("maxFilesPerTrigger", 1)
        left = read.schema("b long, a double, r binary").parquet(str(base.folder))
        right = read.schema("b long, c double, s binary").parquet(str(fixed.folder))
        rows = left.join(right, "b")
        if ranges:
            wanted = self._spark.read.parquet(str(self._folder / "ranges.parquet")).hint("broadcast")
            rows = rows.crossJoin(wanted).where("a between a1 and a2 and c between c1 and c2")
        counts: list[int] = []
        query = (
            rows.writeStream.foreachBatch(lambda batch, _: counts.append(batch.count()))
            .option("checkpointLocation", str(home / "checkpoint"))
            .start()
        )
        try:
            query.processAllAvailable()
            half = len(changes) // 2
            for part in (changes[:half], changes[half:]):
                counts.clear()
                base.put({name: [row[name] for _, _, _, row in part] for name in ("b", "a", "r")})
                query.processAllAvailable()
                took = [one["durationMs"]["triggerExecution"] for one in query.recentProgress if one["numInputRows"]]
                yield sum(counts), len(changes) / len(part) * float(took[-1]) / 1e3
        finally:
            query.stop()

    def expected(self, changes: Sequence[Numbered]) -> int:
        """The same from the tables, by NumPy."""
        (a1, a2), (c1, c2) = self._tables.batch.ranges["a"], self._tables.batch.ranges["c"]
        joined: dict[int, list[float]] = {}
        for _, _, table, row in self._tables.rows:
            if table == "S":
                joined.setdefault(row["b"], []).append(row["c"])
        count = 0
        for _, _, _, row in changes:
            mine = (a1 <= row["a"]) & (row["a"] <= a2)
            count += sum(int((mine & (c1 <= c) & (c <= c2)).sum()) for c in joined.get(row["b"], ()))
        return count


def _thrown_away(rows: _Spark) -> None:
    rows.write.format("noop").mode("append").save()
