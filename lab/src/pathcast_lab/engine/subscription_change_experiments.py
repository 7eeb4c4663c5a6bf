"""Subscriptions that change while documents are matched: how fast changes are, and how much they slow down matching."""

import gc
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from time import perf_counter, sleep, thread_time
from typing import TYPE_CHECKING

from pathcast_lab.harness import Claim, Judgement, Plot, Row, Rows, Run, collector_watched, experiment, judged

from .parallel_matching import ONE, PROCESSES, TWO, compared

if TYPE_CHECKING:
    from pathcast.matching import Matcher, Subscriptions

ADD, ADD_AGAIN, REMOVE, REPLACE, ADD_TREES = (
    "add a new path",
    "add a path that is there",
    "remove",
    "replace",
    "add a pattern with a predicate",
)
QUIET, CHANGING = "match, quiet", "match, during changes"
QUIET_TREES = "match against patterns with predicates, quiet"
CHANGING_TREES = "match, during changes of patterns with predicates"
# Our claims: the factor by which a match slows down while patterns with predicates change, and the longest match.
TREES_SLOWER = 2
LONGEST_MATCH_MS = 20
LONGEST_PAUSE_MS = 50


@dataclass(frozen=True)
class EngineChanges:
    """`size` initial subscriptions, `changes` of each kind, `rate` changes per second while matching for `seconds`.

    The same with `trees` patterns with predicates, `tree_rate` changes per second. Threads are compared in `rounds`, in
    which all documents are matched `batches` times.
    """

    size: int = 100_000
    changes: int = 20_000
    rate: int = 10_000
    seconds: float = 6.0
    documents: int = 200
    trees: int = 20_000
    tree_rate: int = 2_000
    batches: int = 50
    rounds: int = 11


def _at_least(limit: float, *series: str) -> Callable[[Rows], Judgement]:
    def judge(rows: Rows) -> Judgement:
        found = {name: rows.number("per_second", series=name) for name in series}
        slowest = min(found, key=found.__getitem__)
        told = ", ".join(f"{name} {value:,.0f}" for name, value in found.items())
        return judged(found[slowest] >= limit, f"{told} per second")

    return judge


def _p99(rows: Rows) -> Judgement:
    quiet, changing = (rows.number("p99_us", series=name) for name in (QUIET, CHANGING))
    rate = rows.number("changes_per_second", series=CHANGING)
    return judged(
        changing <= 3 * quiet,
        f"{changing:,.0f} µs against {quiet:,.0f} µs ({changing / quiet:.1f} times) at {rate:,.0f} changes per second",
    )


def _trees(rows: Rows) -> Judgement:
    quiet, changing = (rows.number("p50_us", series=name) for name in (QUIET_TREES, CHANGING_TREES))
    rate = rows.number("changes_per_second", series=CHANGING_TREES)
    return judged(
        changing <= TREES_SLOWER * quiet,
        f"{changing:,.0f} µs against {quiet:,.0f} µs ({changing / quiet:.1f} times) at {rate:,.0f} changes per second",
    )


def _longest(rows: Rows) -> Judgement:
    worst = rows.number("worst_us", series=CHANGING_TREES) / 1e3
    return judged(worst <= LONGEST_MATCH_MS, f"{worst:,.1f} ms")


def _why_longest(rows: Rows) -> str:
    """What the longest match was made of."""
    found = {name: rows.number(f"worst_{name}us", series=CHANGING_TREES) / 1e3 for name in ("", "cpu_", "collector_")}
    quiet = rows.number("worst_us", series=QUIET_TREES) / 1e3
    return (
        f"Of these {found['']:,.1f} ms the match computed for {found['cpu_']:,.1f} ms, and the collector ran for "
        f"{found['collector_']:,.1f} ms. Otherwise the match waited for threads that change and index patterns, or for "
        f"a processor. Without changes, the longest match of the same run took {quiet:,.1f} ms."
    )


def _pause(rows: Rows) -> Judgement:
    longest = rows.number("pause_ms", series=CHANGING_TREES)
    return judged(longest < LONGEST_PAUSE_MS, f"{longest:,.1f} ms")


def _why_pause(rows: Rows) -> str:
    """How many objects a collection scans, and how many of them belong to patterns."""
    tracked = rows.number("tracked", series=CHANGING_TREES)
    patterns, of_patterns = (rows.number(name, series=CHANGING_TREES) for name in ("patterns", "of_patterns"))
    return (
        f"A full collection scans the {tracked:,.0f} objects that the collector tracks in this process. The index of "
        f"{patterns:,.0f} patterns, with all that it loads, accounts for {of_patterns:,.0f} of them."
    )


def _why_threads(rows: Rows) -> str:
    """What a second processor adds without anything shared, and what two threads compute more."""
    of_two, of_one = (rows.number("cpu_us", series=name) for name in (TWO, ONE))
    processes = rows.number("per_second", series=PROCESSES) / rows.number("per_second", series=ONE)
    return (
        f"Two processes, which share neither Python's lock nor an index, match {processes:.2f} times as many in the "
        f"same run. Two threads take {of_two / of_one:.2f} times the processor time of one per document."
    )


def _threads(rows: Rows) -> Judgement:
    found = rows.number("per_second", series=TWO) / rows.number("per_second", series=ONE)
    return judged(found >= 1.5, f"{found:.2f} times as many documents per second")


@experiment(
    "engine-changes",
    title="Subscriptions that change while documents are matched",
    small=EngineChanges(),
    paper=EngineChanges(size=1_000_000, changes=100_000, seconds=30.0, trees=200_000),
    claims=(
        Claim("at least 50,000 adds and removes per second", "target", _at_least(50_000, ADD, REMOVE), "50,000"),
        Claim(
            "during 10,000 changes per second, the 99th percentile of a match at most triples",
            "target",
            _p99,
            "3 times",
        ),
        Claim(
            "during 2,000 changes per second of patterns with predicates, the median match at most doubles",
            "target",
            _trees,
            "2 times",
            "A document is also joined with a second, small index, and checked for each pattern that is not indexed "
            "yet; the threads that add and index patterns displace its data from the processor's cache.",
        ),
        Claim(
            "during 2,000 changes per second of patterns with predicates, the longest match takes at most "
            f"{LONGEST_MATCH_MS} ms",
            "target",
            _longest,
            f"{LONGEST_MATCH_MS} ms",
            _why_longest,
        ),
        Claim(
            f"during changes of patterns with predicates, the longest collector pause is below {LONGEST_PAUSE_MS} ms",
            "target",
            _pause,
            f"{LONGEST_PAUSE_MS} ms",
            _why_pause,
        ),
        Claim(
            "two threads match at least 1.5 times as many documents as one",
            "target",
            _threads,
            "1.5 times",
            _why_threads,
        ),
    ),
    plots=(
        Plot(
            "latency",
            "Median time of a match, quiet and during changes",
            y="p50_us",
            y_label="µs",
            series="series",
            kind="bars",
            ours=(CHANGING, CHANGING_TREES),
            only=lambda row: row.get("p50_us") is not None,
        ),
    ),
    show={
        "series": "what",
        "per_second": "per second",
        "p50_us": "median, µs",
        "p99_us": "99th percentile, µs",
        "worst_us": "worst, µs",
        "changes_per_second": "changes per second meanwhile",
        "worst_cpu_us": "computed, µs",
        "worst_collector_us": "collector, µs",
        "pause_ms": "longest collector pause, ms",
        "tracked": "objects that the collector tracks",
        "cpu_us": "processor time per document, µs",
    },
)
def engine_changes(run: Run, parameters: EngineChanges) -> Iterator[Row]:
    """One thread makes changes, one call each; the next match sees them. For the percentiles one thread matches one
    document after the other while another adds and removes subscriptions at the given rate: plain paths first, then,
    against an index of their own, patterns with a value or a nested path. Finally the answers are compared with those
    of an index built from scratch. Pauses are those of the garbage collections during the measurement, and of a full
    one at its end. One thread, two threads and two processes with an index each take turns to match all documents.
    """
    import pathcast
    from pathcast.workloads import SubscriptionOptions, generate_documents, generate_subscriptions, news_schema

    run.begin("documents and subscriptions")
    schema = news_schema()
    documents = list(generate_documents(schema, parameters.documents, seed=run.seed))
    count = parameters.size + 3 * parameters.changes
    paths = list(
        dict.fromkeys(generate_subscriptions(schema, 2 * count, SubscriptionOptions(max_depth=9), seed=run.seed))
    )
    known, fresh = paths[: len(paths) // 2], paths[len(paths) // 2 :]
    trees = generate_subscriptions(schema, parameters.changes, SubscriptionOptions(predicates=1), seed=run.seed + 1)
    subscriptions = pathcast.Subscriptions()
    subscriptions.add_many([known[number % len(known)] for number in range(parameters.size)])
    matcher = subscriptions.compile(engine="automaton")
    for _ in matcher.match_many(documents):
        pass
    run.check("the index has subscriptions", len(subscriptions) == parameters.size)
    run.begin("matching, quiet")
    yield {"series": QUIET, **_latencies(matcher, documents, parameters.seconds / 2)}
    run.begin("matching, during changes")
    seconds = parameters.seconds
    yield {"series": CHANGING, **_while_changing(parameters.rate, seconds, subscriptions, matcher, documents, fresh)}
    run.begin("threads")
    yield from compared(matcher, documents, parameters.batches, parameters.rounds)
    yield from _alone(run, parameters, subscriptions, matcher, documents, known, fresh, trees)
    _check(run, subscriptions, matcher, documents)
    yield from _trees_alone(run, parameters, documents)


def _check(run: Run, subscriptions: "Subscriptions", matcher: "Matcher", documents: list[bytes]) -> None:
    """Check that a matcher that has followed all changes returns the answers of a new one."""
    import pathcast

    anew = pathcast.Subscriptions()
    ids, xpaths = zip(*((each.id, each.xpath) for each in subscriptions), strict=True)
    anew.add_many(xpaths, ids=ids)
    again = anew.compile(engine="automaton")
    run.check_equal(
        "after all changes the answers are those of an index built from scratch",
        {
            "changed": [matcher.match(document).ids.tolist() for document in documents],
            "anew": [again.match(document).ids.tolist() for document in documents],
        },
    )


def _trees_alone(run: Run, parameters: EngineChanges, documents: list[bytes]) -> Iterator[Row]:
    """Match against patterns with predicates only, first without changes and then during changes."""
    import pathcast
    from pathcast.workloads import SubscriptionOptions, generate_subscriptions, news_schema

    run.begin("patterns with predicates")
    patterns: list[str] = []
    schema, count = news_schema(), 2 * parameters.trees
    for values, nested in ((1, 0), (0, 1)):
        found = generate_subscriptions(
            schema, count, SubscriptionOptions(max_depth=9, predicates=values, nested=nested), seed=run.seed
        )
        patterns += [xpath for xpath in dict.fromkeys(found) if "[" in xpath]
    Random(run.seed).shuffle(patterns)
    gc.collect()
    before = len(gc.get_objects())
    subscriptions = pathcast.Subscriptions()
    subscriptions.add_many(patterns[: parameters.trees])
    matcher = subscriptions.compile(engine="automaton")
    for _ in range(3):  # so that patterns have selected their access predicates
        for _ in matcher.match_many(documents):
            pass
    run.begin("matching patterns with predicates, quiet")
    yield {"series": QUIET_TREES, **_latencies(matcher, documents, parameters.seconds / 2)}
    run.begin("matching, during changes of patterns with predicates")
    rate, seconds, fresh = parameters.tree_rate, parameters.seconds, patterns[parameters.trees :]
    measured = _while_changing(rate, seconds, subscriptions, matcher, documents, fresh)
    tracked = len(gc.get_objects())
    objects = {"tracked": tracked, "patterns": len(subscriptions), "of_patterns": tracked - before}
    yield {"series": CHANGING_TREES, **measured, **objects}
    _check(run, subscriptions, matcher, documents)


def _alone(
    run: Run,
    parameters: EngineChanges,
    subscriptions: "Subscriptions",
    matcher: "Matcher",
    documents: list[bytes],
    known: list[str],
    fresh: list[str],
    trees: list[str],
) -> Iterator[Row]:
    """Time changes while nothing else runs; a match after each kind has to index them."""
    count = parameters.changes
    ids: list[int] = []
    kinds: dict[str, tuple[Callable[[int], object], int]] = {
        ADD: (lambda number: ids.append(subscriptions.add(fresh[number % len(fresh)])), count),
        ADD_AGAIN: (lambda number: ids.append(subscriptions.add(known[number % len(known)])), count),
        REPLACE: (lambda number: subscriptions.replace(ids[number], known[-1 - number % len(known)]), count),
        ADD_TREES: (lambda number: ids.append(subscriptions.add(trees[number])), len(trees)),
        REMOVE: (lambda number: subscriptions.remove(ids[number]), 0),
    }
    for series, (change, times) in kinds.items():
        run.begin(series)
        numbers = range(times or len(ids))
        begin = perf_counter()
        for number in numbers:
            change(number)
        taken = perf_counter() - begin
        matcher.match(documents[0])
        yield {"series": series, "per_second": len(numbers) / taken}


def _latencies(
    matcher: "Matcher", documents: list[bytes], seconds: float, stopped: Callable[[], bool] = lambda: False
) -> dict[str, float]:
    """The time of single matches, measured for `seconds` seconds."""
    import numpy as np

    taken: list[float] = []
    longest = computed = collected = 0.0
    with collector_watched() as pauses:
        end = perf_counter() + seconds
        while perf_counter() < end and not stopped():
            document = documents[len(taken) % len(documents)]
            collections, cpu = len(pauses), thread_time()
            begin = perf_counter()
            matcher.match(document)
            taken.append(perf_counter() - begin)
            if taken[-1] > longest:
                longest, computed, collected = taken[-1], thread_time() - cpu, sum(pauses[collections:])
    micro = np.array(taken) * 1e6
    return {
        "per_second": len(taken) / (micro.sum() / 1e6),
        "p50_us": float(np.percentile(micro, 50)),
        "p99_us": float(np.percentile(micro, 99)),
        "worst_us": longest * 1e6,
        "worst_cpu_us": computed * 1e6,
        "worst_collector_us": collected * 1e6,
        "pause_ms": max(pauses) * 1e3,
    }


def _while_changing(
    rate: int,
    seconds: float,
    subscriptions: "Subscriptions",
    matcher: "Matcher",
    documents: list[bytes],
    fresh: list[str],
) -> dict[str, float]:
    """The same while another thread adds and removes at the given rate."""
    stop = threading.Event()
    made = [0]

    def change() -> None:
        ids: list[int] = []
        begin = perf_counter()
        while not stop.is_set():
            due = int((perf_counter() - begin) * rate)
            while made[0] < due and not stop.is_set():
                if len(ids) > 200:
                    subscriptions.remove(ids.pop(0))
                else:
                    ids.append(subscriptions.add(fresh[made[0] % len(fresh)]))
                made[0] += 1
            sleep(0.0005)

    thread = threading.Thread(target=change, daemon=True)
    begin = perf_counter()
    thread.start()
    try:
        found = _latencies(matcher, documents, seconds)
    finally:
        stop.set()
        thread.join()
    return {**found, "changes_per_second": made[0] / (perf_counter() - begin)}
