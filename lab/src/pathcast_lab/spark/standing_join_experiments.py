"""Standing joins on Spark: changes per second, against one server in a process and against Spark's stream–stream join.

The workload is that of §6.1 of the select-join paper as `workloads/join_workloads.py` has it (an insertion affects some
5 % of all subscriptions), over 1,000 join values instead of 100: R of constant size, an insertion and a deletion in
turn, S fixed, 70 % of the values joining. The messages of some changes are compared with those of one server first.
"""

import statistics
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from pathcast_lab.harness import Claim, Judgement, Plot, Row, Rows, Run, experiment, judged

from .measured_join_streams import JoinStream, NativeStream, Numbered, Tables, make_tables, one_server

OURS, ALONE = "join_subscriptions", "one server, in process"
NATIVE, BARE = "stream–stream join of Spark, ranges applied", "stream–stream join of Spark, no subscriptions"
STATE, RECOVERY = "state", "after a restart"


@dataclass(frozen=True)
class SparkJoins:
    """`changes` come with a micro-batch, `native` with one of Spark's own join with ranges; `checked` are compared."""

    subscriptions: int = 100_000
    join_values: int = 1_000
    base_rows: int = 16_000
    joined_rows: int = 5_100
    changes: tuple[int, ...] = (20_000, 100_000)
    micro_batches: int = 2
    checked: int = 1_000
    native: int = 500
    cores: int = 2


def _speed(rows: Rows, series: str, changes: int) -> float:
    return rows.number("changes_s", series=series, changes=changes)


def _target(rows: Rows) -> Judgement:
    row = rows.one(series=OURS, changes=100_000)
    if (row["subscriptions"], row["join_values"], row["cores"]) != (100_000, 1_000, 2):
        return judged(None, "another setting was measured")
    found = _speed(rows, OURS, 100_000)
    return judged(found >= 20_000, f"{found:,.0f} changes/s")


def _native(rows: Rows) -> Judgement:
    ours, native = rows.number("us", series=OURS, changes=100_000), rows.number("us", series=NATIVE)
    return judged(native >= 10 * ours, f"{native / ours:,.0f} times ({native:,.0f} against {ours:,.0f} µs per change)")


def _again(rows: Rows) -> Judgement:
    row = rows.one(series=RECOVERY)
    return judged(
        row["again"] in (0, 1),
        f"{row['again']} repeated; {row['s']:.1f} s from the start to the end of the next micro-batch",
    )


@experiment(
    "spark-joins",
    title="Standing joins on Spark",
    small=SparkJoins(),
    paper=SparkJoins(micro_batches=9, native=2_000),
    claims=(
        Claim(
            "100,000 subscriptions, 1,000 join values, 2 cores, micro-batches of 100,000 changes: 20,000 changes/s",
            "target",
            _target,
            "20,000 per second",
        ),
        Claim(
            "a change takes at most a tenth of the time of Spark's stream–stream join with the ranges applied",
            "target",
            _native,
            "10 times",
        ),
        Claim("after a restart at most one micro-batch is repeated", "target", _again, "1"),
    ),
    plots=(
        Plot(
            "speed",
            "Changes per second, by the changes per micro-batch",
            y="changes_s",
            y_label="changes/s",
            series="series",
            x="changes",
            x_label="changes per micro-batch",
            ours=(OURS,),
            log="xy",
            only=lambda row: row.get("changes_s") is not None,
        ),
    ),
    show={
        "series": "what",
        "changes": "changes per micro-batch",
        "changes_s": "changes/s",
        "us": "µs per change",
        "messages": "messages per change",
        "bytes": "bytes per tuple",
        "again": "micro-batches repeated",
        "s": "s",
    },
)
def spark_joins(run: Run, parameters: SparkJoins) -> Iterator[Row]:
    """Changes are read from one file per micro-batch, and messages go to a sink that discards them; times are Spark's.

    The first micro-batch fills the tables, the second is compared with one server, and the figure is the median of the
    others, without the first of each size. The server in a process has one core and encodes the same messages. Spark's
    own join gets insertions only, since it supports no other changes; its results are joined with a table of the ranges
    by nested loops, so it gets fewer changes per micro-batch. Finally the sink fails before a micro-batch is committed,
    and the stream is started again.
    """
    from pathcast.spark import session

    run.begin("tables and changes")
    most = parameters.checked + (parameters.micro_batches + 1) * sum(parameters.changes) + min(parameters.changes)
    tables = make_tables(
        parameters.subscriptions, parameters.join_values, parameters.base_rows, parameters.joined_rows, most, run.seed
    )
    facts = {
        "subscriptions": parameters.subscriptions,
        "join_values": parameters.join_values,
        "cores": parameters.cores,
    }
    # As many parts of the state as cores: each part costs a task and a commit per micro-batch.
    spark = session(
        settings={"spark.master": f"local[{parameters.cores}]", "spark.sql.shuffle.partitions": str(parameters.cores)}
    )
    try:
        with tempfile.TemporaryDirectory(prefix="pathcast-spark-joins-") as name:
            for row in (
                *_ours(run, parameters, tables, JoinStream(spark, Path(name) / "ours", tables)),
                *_native_rows(run, parameters, tables, NativeStream(spark, Path(name) / "native", tables)),
            ):
                yield {**facts, **row}
    finally:
        spark.stop()


def _ours(run: Run, parameters: SparkJoins, tables: Tables, stream: JoinStream) -> Iterator[Row]:
    server = one_server(tables)
    run.begin("the tables, and messages to compare", 2)
    stream.batch(tables.rows)
    run.advance()
    coming = iter(tables.changes)
    checked = _next(coming, parameters.checked)
    run.check_equal(
        "the messages of each change are those of one server",
        {"Spark": stream.messages(checked), "one server": server.messages(checked)},
    )
    run.advance()
    for size in parameters.changes:
        run.begin(f"micro-batches of {size:,} changes", parameters.micro_batches + 1)
        spent: list[float] = []
        alone: list[float] = []
        count = 0
        for _ in range(parameters.micro_batches + 1):
            changes = _next(coming, size)
            begin = perf_counter()
            count = server.count_messages(changes)
            alone.append(perf_counter() - begin)
            spent.append(stream.batch(changes))
            run.advance()
        for series, times in ((OURS, spent[1:]), (ALONE, alone[1:])):
            took = statistics.median(times)
            yield {
                "series": series,
                "changes": size,
                "changes_s": size / took,
                "us": took / size * 1e6,
                "messages": count / size,
            }
    run.begin("state, and a restart")
    yield {"series": STATE, "bytes": stream.state_bytes() / len(tables.rows)}
    again, seconds = stream.restart(_next(coming, min(parameters.changes)))
    yield {"series": RECOVERY, "again": again, "s": seconds}


def _native_rows(run: Run, parameters: SparkJoins, tables: Tables, native: NativeStream) -> Iterator[Row]:
    """Spark's own join: some insertions with ranges, many without."""
    inserted = [change for change in tables.changes if change[1] == "insert"]
    part = inserted[: parameters.native]
    run.begin("Spark's own join", 4)
    run.check_equal(
        "Spark's own join with ranges has the results that the tables have",
        {"Spark": native.results(part), "the tables": native.expected(part)},
    )
    run.advance()
    for series, changes, ranges in ((NATIVE, part, True), (BARE, inserted[: max(parameters.changes)], False)):
        took = native.seconds(changes, ranges=ranges)
        yield {
            "series": series,
            "changes": len(changes),
            "changes_s": len(changes) / took,
            "us": took / len(changes) * 1e6,
        }
        run.advance()


def _next(coming: Iterator[Numbered], count: int) -> Sequence[Numbered]:
    return [next(coming) for _ in range(count)]
