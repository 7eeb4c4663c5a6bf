"""A table of subscriptions on Spark: the time to the next version of an index, by one task, or by workers and one task.

Patterns with predicates are parsed and compiled by workers and merged by the task that publishes; the task parses
plain paths itself, so for them only the number of cores that read the table differs.
"""

import itertools
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, process_time
from typing import TYPE_CHECKING, NamedTuple

from pathcast_lab.harness import Claim, Judgement, Plot, Row, Rows, Run, Timing, experiment, judged

if TYPE_CHECKING:
    from pathcast.matching.subscriptions.subscriptions import Subscription

PLAIN, TREES = "plain paths", "with predicates"
ALONE, TOGETHER = "one task", "workers, then one task"
# More than the table has, so one task compiles all.
_NEVER = 1 << 40


@dataclass(frozen=True)
class SparkSubscriptions:
    """Numbers of subscriptions, as they are drawn; `cores` are those of the workers, one session each."""

    plain: int = 1_000_000
    trees: int = 200_000
    cores: tuple[int, ...] = (2,)
    rounds: int = 3


class _Measured(NamedTuple):
    wall: float
    driver: float
    answers: list[list[int]]
    subscriptions: "list[Subscription]"


def _share(rows: Rows) -> Judgement:
    together, alone = (rows.number("s", kind=TREES, way=way, cores=2) for way in (TOGETHER, ALONE))
    return judged(together <= 0.75 * alone, f"{together / alone:.2f} ({together:.1f} against {alone:.1f} s)")


def _driver(rows: Rows) -> Judgement:
    found = rows.number("driver_us_each", kind=TREES, way=TOGETHER, cores=2)
    return judged(found <= 1, f"{found:.2f} µs")


@experiment(
    "spark-subscriptions",
    title="A table of subscriptions compiled on Spark",
    small=SparkSubscriptions(),
    paper=SparkSubscriptions(trees=1_000_000),
    claims=(
        Claim(
            "two workers compile patterns with predicates in at most 0.75 of the time of one task",
            "target",
            _share,
            "0.75",
        ),
        Claim("each pattern costs the driver at most 1 µs", "target", _driver, "1 µs"),
    ),
    plots=(
        Plot(
            "time",
            "Time from a Parquet file to a published version",
            y="s",
            y_label="seconds",
            series="way",
            kind="bars",
            ours=(TOGETHER,),
            panel="kind",
        ),
    ),
    show={
        "kind": "subscriptions",
        "size": "how many",
        "way": "compiled by",
        "cores": "workers",
        "s": "s",
        "us_each": "µs per subscription",
        "driver_us_each": "of the driver's processor",
    },
)
def spark_subscriptions(run: Run, parameters: SparkSubscriptions) -> Iterator[Row]:
    """From a Parquet file to a published version, the ways in turn; the figure is the median.

    What the versions match is compared first. Workers have been started and have compiled something before.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    from pathcast.spark import session
    from pathcast.workloads import (
        SubscriptionOptions,
        assign_subscribers,
        generate_documents,
        generate_subscriptions,
        news_schema,
    )

    schema = news_schema()
    documents = list(generate_documents(schema, 20, seed=run.seed))
    with tempfile.TemporaryDirectory(prefix="pathcast-spark-subscriptions-") as name:
        folder = Path(name)
        for kind, size, predicates in ((PLAIN, parameters.plain, 0), (TREES, parameters.trees, 2)):
            run.begin(f"generating {size:,} {kind}")
            xpaths = generate_subscriptions(
                schema, size, SubscriptionOptions(max_depth=8, predicates=predicates), seed=run.seed
            )
            owners = assign_subscribers(size, readers=200, seed=run.seed)
            pq.write_table(pa.table({"id": range(1, size + 1), "subscriber": owners, "xpath": xpaths}), folder / kind)
        for cores in parameters.cores:
            spark = session(settings={"spark.master": f"local[{cores}]"})
            try:
                for kind, size in ((PLAIN, parameters.plain), (TREES, parameters.trees)):
                    yield from _ways(run, parameters, folder / kind, kind, size, cores, documents)
            finally:
                spark.stop()


def _ways(
    run: Run, parameters: SparkSubscriptions, table: Path, kind: str, size: int, cores: int, documents: list[bytes]
) -> Iterator[Row]:
    ways = {ALONE: _NEVER, TOGETHER: 1} if kind == TREES else {ALONE: _NEVER}
    run.begin(f"{size:,} {kind}, {cores} workers", (1 + parameters.rounds) * len(ways))
    found: dict[str, list[_Measured]] = {way: [] for way in ways}
    for number in range(1 + parameters.rounds):  # the first round warms up, and its answers are compared
        for way, many in ways.items():
            found[way].append(_compiled(table, many, documents if number == 0 else []))
            run.advance()
    answers = {way: measured[0].answers for way, measured in found.items()}
    run.check_equal(
        f"the same matches as without Spark, {kind}", {**answers, "in process": _in_process(table, documents)}
    )
    if len(ways) > 1:
        run.check_equal(f"the same sets, {kind}", {way: measured[0].subscriptions for way, measured in found.items()})
    for way, measured in found.items():
        wall = Timing(tuple(each.wall for each in measured[1:])).median
        driver = Timing(tuple(each.driver for each in measured[1:])).median
        yield {
            "kind": kind,
            "size": size,
            "way": way,
            "cores": cores,
            "s": wall,
            "us_each": wall / size * 1e6,
            "driver_us_each": driver / size * 1e6,
        }


def _compiled(table: Path, many: int, documents: list[bytes]) -> _Measured:
    from pathcast.spark import compile_subscriptions
    from pathcast.spark.publishing.subscription_row_parser import read_table
    from pathcast.spark.sessions.spark_session import running

    spark = running()
    assert spark is not None
    with tempfile.TemporaryDirectory() as folder:
        begin, begun = perf_counter(), process_time()
        compile_subscriptions(read_table(spark, table), folder, many=many)
        wall, driver = perf_counter() - begin, process_time() - begun
        return _Measured(wall, driver, *_looked_at(folder, documents))


def _in_process(table: Path, documents: list[bytes]) -> list[list[int]]:
    """The matches of a file's subscriptions without Spark."""
    import pyarrow.parquet as pq

    from pathcast.matching import Subscriptions

    rows = pq.read_table(table, columns=["id", "xpath"])
    subscriptions = Subscriptions()
    subscriptions.add_many(rows["xpath"].to_pylist(), ids=rows["id"].to_pylist())
    matcher = subscriptions.compile()
    return [matcher.match(document).ids.tolist() for document in documents]


def _looked_at(folder: str, documents: list[bytes]) -> "tuple[list[list[int]], list[Subscription]]":
    """The matches of the index in a folder, and its first subscriptions."""
    from pathcast.matching import open_index
    from pathcast.spark.publishing.index_versions import latest, version_folder

    if not documents:
        return [], []
    matcher = open_index(version_folder(folder, latest(folder)))
    some = list(itertools.islice(matcher.subscriptions, 1000))
    return [matcher.match(document).ids.tolist() for document in documents], some
