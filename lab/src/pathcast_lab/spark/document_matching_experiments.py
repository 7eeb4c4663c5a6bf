"""Matching on Spark, compared with the limit: sending the documents to Python and back.

Documents are generated news of some 8 kB. Sets of subscriptions of several sizes are made so that a document matches
about 5, 50 or 5,000 of each: paths that no document has, filled up with paths whose share of the documents is known,
both drawn with repetition from the same generated candidates.
"""

import random
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pathcast_lab.harness import (
    Claim,
    Judgement,
    Row,
    Rows,
    Run,
    Timing,
    experiment,
    judged,
    over_subscriptions,
    race,
    ratio,
)

if TYPE_CHECKING:
    from pathcast.kernels import Int64s, UInt8s
    from pathcast.matching import Matcher

    from .matching_rivals import Stage

IDENTITY, LXML, XPATH = "identity mapInArrow", "lxml parsing in mapInArrow", "xpath_boolean (extrapolated)"
BY_ID, BY_SUBSCRIBER = "matching, by id", "matching, by subscriber"
ALONE_ID, ALONE_SUBSCRIBER = "single process, by id", "single process, by subscriber"
FIXED = "identity mapInArrow, 8 documents"
IDENTITY_STREAM, MATCHING_STREAM, INDEX_MEMORY = "identity, micro-batch", "matching, micro-batch", "index in memory"
SUBSCRIBERS = 1_000
# What a set is filled up with: shares of documents that its paths have, by the matches that are wanted.
_SHARES = {5: (0.001, 0.05), 50: (0.005, 0.2), 5_000: (0.3, 1.0)}
# With more matches than this a measurement takes fewer documents.
_MATCHES_AT_ONCE = 4_000_000
_SAMPLE = 100


@dataclass(frozen=True)
class SparkDocuments:
    """`sizes`: numbers of subscriptions; `matches`: matches per document; `documents`: documents per measurement."""

    sizes: tuple[int, ...] = (10_000, 150_000, 1_000_000)
    matches: tuple[int, ...] = (5, 50, 5_000)
    documents: int = 12_000
    distinct: int = 1_000
    candidates: int = 150_000
    cores: int = 2
    rounds: int = 3
    micro_batch: int = 50
    micro_batches: int = 12


def _speed(rows: Rows, series: str, subscriptions: int, matches: int) -> float:
    return rows.number("documents_s", series=series, subscriptions=subscriptions, wanted=matches)


def _share_of_identity(rows: Rows) -> Judgement:
    ours = _speed(rows, BY_SUBSCRIBER, 150_000, 50)
    limit = _speed(rows, IDENTITY, 150_000, 50)
    share = rows.number("share", series=BY_SUBSCRIBER, subscriptions=150_000, wanted=50)
    return judged(share >= 0.6, f"{100 * share:.0f} % ({ours:,.0f} against {limit:,.0f} documents/s)")


def _latency(rows: Rows) -> Judgement:
    ours, identity = (rows.number("ms", series=series) for series in (MATCHING_STREAM, IDENTITY_STREAM))
    return judged(ours <= 1.5 * identity, f"{ours / identity:.2f} times ({ours:.0f} against {identity:.0f} ms)")


def _one_copy(rows: Rows) -> Judgement:
    row = rows.one(series=INDEX_MEMORY)
    mapped, share, workers = (float(row[name] or 0) for name in ("mapped_mb", "share_mb", "workers"))
    if workers < 2:
        return judged(None, f"{workers:.0f} worker held the index")
    return judged(share <= 1.1 * mapped, f"{share:.1f} MB in {workers:.0f} workers together, {mapped:.1f} MB in one")


def _two_cores(rows: Rows) -> Judgement:
    found = rows.number("times_one_core", series=BY_SUBSCRIBER, subscriptions=150_000, wanted=50)
    return judged(found >= 1.6, f"{found:.2f} times")


@experiment(
    "spark-documents",
    title="Spark: matching beside identity mapInArrow",
    small=SparkDocuments(),
    paper=SparkDocuments(documents=40_000, distinct=4_000, candidates=400_000, rounds=7),
    claims=(
        Claim(
            "8 kB documents, 150,000 subscriptions, 50 matches per document, by subscriber: at least 60 % of the "
            "speed of identity mapInArrow",
            "target",
            _share_of_identity,
            "60 %",
        ),
        Claim(
            "a micro-batch of 50 documents takes at most 1.5 times as long as one of the identity stream",
            "target",
            _latency,
            "1.5 times",
        ),
        Claim("the workers of a machine hold one copy of the index", "target", _one_copy, "1 copy"),
        Claim(
            "two cores match at least 1.6 times as fast as one: 150,000 subscriptions, 50 matches per document",
            "target",
            _two_cores,
            "1.6 times",
            "A single task already uses two cores: one for the JVM, one for its Python worker.",
        ),
    ),
    plots=(
        over_subscriptions(
            "speed",
            "Documents per second, 50 matches per document",
            y="documents_s",
            y_label="documents/s",
            ours=BY_SUBSCRIBER,
            floor=IDENTITY,
            only=lambda row: row.get("wanted") == 50 and row.get("documents_s") is not None,
        ),
    ),
    show={
        "series": "what",
        "subscriptions": "subscriptions",
        "distinct": "distinct",
        "matches": "matches per document",
        "documents_s": "documents/s",
        "share": "share of identity",
        "times_one_core": "times one core",
        "ms": "ms",
        "mapped_mb": "index mapped by a worker, MB",
        "share_mb": "by all together, MB",
        "own_mb": "besides, of a worker's own, MB",
        "workers": "workers",
    },
)
def spark_documents(run: Run, parameters: SparkDocuments) -> Iterator[Row]:
    """Documents are cached in Spark's memory and pass through Python to a sink that discards rows.

    Documents are repeated, so the engine's memo is warm, as in a long stream. The single process has one core and the
    documents as one array. `xpath_boolean` is timed for a sample of expressions and documents and extrapolated to all
    expressions. Micro-batches are read from one file each, matched by subscriber with an index of versions, and timed
    by Spark; the figure is the median of the last two thirds. Every figure includes the fixed cost of a Spark job.
    """
    from .matching_rivals import Stage

    run.begin("documents and candidates")
    work = Workload.make(run, parameters)
    with tempfile.TemporaryDirectory(prefix="pathcast-spark-documents-") as name:
        folder = Path(name)
        indexes = {}
        for size in parameters.sizes:
            for wanted in parameters.matches:
                run.begin(f"index of {size:,} subscriptions, {wanted:,} matches")
                matcher = work.matcher(size, wanted)
                matcher.save(folder / f"index-{size}-{wanted}")
                indexes[size, wanted] = matcher
        found: list[dict[str, object]] = []
        stage = Stage(parameters.cores, work.documents, folder)
        try:
            for (size, wanted), matcher in indexes.items():
                index = folder / f"index-{size}-{wanted}"
                _check(run, stage, index, matcher, work)
                found += _measure(run, parameters, stage, index, matcher, work, size, wanted)
            found.append(_fixed(parameters, stage))
            found += _streams(run, parameters, stage, folder, indexes)
            found += _memory(run, parameters, stage, folder)
        finally:
            stage.close()
        _one_core(run, parameters, work, folder, found)
    yield from found  # type: ignore[misc]


@dataclass(frozen=True)
class Workload:
    """Documents, and candidates with the share of the documents that each matches."""

    documents: list[bytes]
    paths: list[str]
    shares: list[float]
    seed: int

    @classmethod
    def make(cls, run: Run, parameters: SparkDocuments) -> "Workload":
        import numpy as np

        from pathcast.matching import Subscriptions
        from pathcast.workloads import SubscriptionOptions, generate_documents, generate_subscriptions, news_schema

        schema = news_schema()
        documents = list(generate_documents(schema, parameters.distinct, seed=run.seed, text="words"))
        paths = generate_subscriptions(
            schema,
            parameters.candidates,
            SubscriptionOptions(min_depth=4, max_depth=10, descendant=0.1, distinct=True),
            seed=run.seed,
        )
        subscriptions = Subscriptions()
        subscriptions.add_many(paths)
        counts = np.zeros(len(paths) + 1, dtype=np.int64)
        for answer in subscriptions.compile().match_many(documents):
            counts[answer.ids] += 1
        return cls(documents, paths, (counts[1:] / len(documents)).tolist(), run.seed)

    def matcher(self, size: int, wanted: int) -> "Matcher":
        """A matcher with this many subscriptions, of which a document matches about `wanted`."""
        from pathcast.matching import Subscriptions
        from pathcast.workloads import assign_subscribers

        draw = random.Random(f"{self.seed}/{size}/{wanted}")
        low, high = _SHARES.get(wanted, (0.001, 1.0))
        rare = [path for path, share in zip(self.paths, self.shares, strict=True) if share == 0]
        lively = [(path, share) for path, share in zip(self.paths, self.shares, strict=True) if low <= share <= high]
        xpaths: list[str] = []
        expected = 0.0
        while expected < wanted and len(xpaths) < size:
            path, share = draw.choice(lively)
            xpaths.append(path)
            expected += share
        xpaths += [draw.choice(rare) for _ in range(size - len(xpaths))]
        draw.shuffle(xpaths)
        subscriptions = Subscriptions()
        subscriptions.add_many(xpaths, assign_subscribers(size, readers=SUBSCRIBERS, seed=self.seed))
        return subscriptions.compile()


def _usual(parameters: SparkDocuments) -> int:
    """The number of matches that the targets refer to: the second, or the only one."""
    return parameters.matches[1 % len(parameters.matches)]


def _middle(parameters: SparkDocuments) -> int:
    """The number of subscriptions that the targets refer to: the second, or the only one."""
    return parameters.sizes[1 % len(parameters.sizes)]


def _count(parameters: SparkDocuments, wanted: int) -> int:
    """The number of documents per measurement."""
    return min(parameters.documents, max(_SAMPLE, _MATCHES_AT_ONCE // wanted))


def _check(run: Run, stage: "Stage", index: Path, matcher: "Matcher", work: Workload) -> None:
    count = min(_SAMPLE, len(work.documents))
    some = [matcher.match(document) for document in work.documents[:count]]
    expected = {"id": [one.ids.tolist() for one in some], "subscriber": [one.subscribers for one in some]}
    for by in ("id", "subscriber"):
        found = stage.answers(index, by, count)
        run.check_equal("Spark finds what a single process finds, on a sample", {"one": expected[by], "Spark": found})


def _measure(
    run: Run,
    parameters: SparkDocuments,
    stage: "Stage",
    index: Path,
    matcher: "Matcher",
    work: Workload,
    size: int,
    wanted: int,
) -> Iterator[dict[str, object]]:
    count = _count(parameters, wanted)
    rivals: dict[str, Callable[[], object]] = {
        IDENTITY: lambda: stage.identity(count),
        BY_ID: lambda: stage.match(index, "id", count),
        BY_SUBSCRIBER: lambda: stage.match(index, "subscriber", count),
    }
    others = wanted == _usual(parameters)  # these do not depend on the matches
    if others:
        rivals[LXML] = lambda: stage.lxml(count)
    data, offsets = _as_data(work.documents[: min(count, 500)])
    run.begin(f"{size:,} subscriptions, {wanted:,} matches", parameters.rounds)
    times = race(rivals, rounds=parameters.rounds, at_least=0, after_round=run.advance)
    alone = race(
        {
            ALONE_ID: lambda: matcher.match_data(data, offsets, "id"),
            ALONE_SUBSCRIBER: lambda: matcher.match_data(data, offsets, "subscriber"),
        },
        rounds=parameters.rounds,
    )
    speeds = {series: count / time.median for series, time in times.items()}
    speeds |= {series: (len(offsets) - 1) / time.median for series, time in alone.items()}
    if others:
        speeds[XPATH] = _xpath_speed(run, stage, matcher, work, size)
    matches = len(matcher.match_data(data, offsets, "id").values) / (len(offsets) - 1)
    for series, speed in speeds.items():
        yield {
            "series": series,
            "subscriptions": size,
            "distinct": len(matcher.subscriptions.table),
            "wanted": wanted,
            "matches": matches,
            "documents_s": speed,
            # Round by round where both run in turn, so that noise which hits both cancels.
            "share": ratio(times[IDENTITY], times[series]).median if series in times else speed / speeds[IDENTITY],
            "spread": times[series].spread if series in times else None,
        }


def _xpath_speed(run: Run, stage: "Stage", matcher: "Matcher", work: Workload, size: int) -> float:
    """Documents per second of Spark's own function with all expressions, from a sample of both."""
    paths = [one.xpath for one in matcher.subscriptions][:10]
    documents = 40
    seconds, found = stage.xpath_boolean(paths, documents)
    texts = [work.documents[number % len(work.documents)] for number in range(documents)]
    expected = sum(1 for text in texts for id in matcher.match(text).ids if id <= len(paths))
    run.check_equal("xpath_boolean finds what we find, on a sample", {"ours": expected, "Spark's own": found})
    run.note(f"xpath_boolean: {len(paths)} expressions on {documents} documents, extrapolated to all expressions.")
    return 1 / (seconds * size)


def _fixed(parameters: SparkDocuments, stage: "Stage") -> dict[str, object]:
    """The fixed cost of a job, which every figure includes."""
    time = race({FIXED: lambda: stage.identity(8)}, rounds=parameters.rounds, at_least=0)[FIXED]
    return {"series": FIXED, "subscriptions": None, "wanted": None, "ms": time.median * 1e3}


def _streams(
    run: Run, parameters: SparkDocuments, stage: "Stage", folder: Path, indexes: "dict[tuple[int, int], Matcher]"
) -> Iterator[dict[str, object]]:
    from pathcast.spark.publishing.index_versions import publish

    run.begin("micro-batches")
    size, wanted = _middle(parameters), _usual(parameters)
    publish(indexes[size, wanted], folder / "versions")
    rivals = {IDENTITY_STREAM: None, MATCHING_STREAM: folder / "versions"}
    taken: dict[str, list[float]] = {series: [] for series in rivals}
    for _ in range(3):
        for series, index in rivals.items():
            taken[series].append(stage.micro_batches(index, parameters.micro_batch, parameters.micro_batches))
    for series, seconds in taken.items():  # the first streams warm the machine up
        yield {"series": series, "subscriptions": size, "wanted": None, "ms": 1e3 * sum(seconds[1:]) / 2}


def _memory(run: Run, parameters: SparkDocuments, stage: "Stage", folder: Path) -> Iterator[dict[str, object]]:
    run.begin("memory")
    size, wanted = parameters.sizes[-1], _usual(parameters)
    workers = stage.index_memory(folder / f"index-{size}-{wanted}", _count(parameters, wanted))
    yield {
        "series": INDEX_MEMORY,
        "subscriptions": size,
        "wanted": None,
        "mapped_mb": max(worker.mapped for worker in workers) / 1e6,
        "share_mb": sum(worker.share for worker in workers) / 1e6,
        "own_mb": max(worker.own for worker in workers) / 1e6,
        "workers": len(workers),
    }


def _one_core(
    run: Run, parameters: SparkDocuments, work: Workload, folder: Path, found: list[dict[str, object]]
) -> None:
    """Set `times_one_core` on the rows of identity and matching that a Spark with one core measures too."""
    from .matching_rivals import Stage

    size, wanted = _middle(parameters), _usual(parameters)
    index, count = folder / f"index-{size}-{wanted}", _count(parameters, wanted)
    run.begin("one core", parameters.rounds)
    stage = Stage(1, work.documents, folder)
    try:
        rivals: dict[str, Callable[[], object]] = {
            IDENTITY: lambda: stage.identity(count),
            BY_SUBSCRIBER: lambda: stage.match(index, "subscriber", count),
        }
        times: dict[str, Timing] = race(rivals, rounds=parameters.rounds, at_least=0, after_round=run.advance)
    finally:
        stage.close()
    for row in found:
        time = times.get(str(row["series"]))
        if time is not None and (row["subscriptions"], row["wanted"]) == (size, wanted):
            row["times_one_core"] = float(str(row["documents_s"])) / (count / time.median)


def _as_data(documents: list[bytes]) -> "tuple[UInt8s, Int64s]":
    """Documents one after the other, as a column has them."""
    import numpy as np

    from pathcast.documents.scanner.character_kernels import PADDING
    from pathcast.store import offsets_of

    data = np.frombuffer(b"".join(documents) + bytes(PADDING), dtype=np.uint8)
    return data, offsets_of([len(document) for document in documents])
