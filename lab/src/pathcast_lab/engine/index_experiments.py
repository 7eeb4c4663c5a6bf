"""The default engine's index: building it, keeping it on disk, opening it, and the first answer of a new process.

Two kinds of indexes: distinct plain paths, and patterns with predicates. An index is opened once in each of several
processes, since opening leaves its pages in memory and its code loaded; with and without verifying the checksums of its
files. Start-up is measured from the start of a process to its first answer, with an empty and with a filled cache of
compiled kernels.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from pathcast_lab.harness import Claim, Judgement, Plot, Row, Rows, Run, Timing, experiment, in_fresh_process, judged

PLAIN, TREES = "plain paths", "with predicates"
BUILD, SAVE, OPEN, UNVERIFIED = "build", "save", "open", "open, unverified"
FIRST, LATER, FIRST_TREES = "first start", "later starts", "first start, with predicates"

_ANSWER = """
import pathcast
subscriptions = pathcast.Subscriptions()
subscriptions.add({xpath!r})
assert subscriptions.compile().match("<a x='1'/>").ids.tolist() == [1]
"""


@dataclass(frozen=True)
class Index:
    """`plain` and `trees` are numbers of distinct subscriptions, `opens` how often an index is opened.

    `first_starts` have an empty cache and take some 20 s each; `starts` have a filled one.
    """

    plain: tuple[int, ...] = (100_000, 1_000_000)
    trees: tuple[int, ...] = (100_000,)
    opens: int = 9
    first_starts: int = 1
    starts: int = 5


def _within(limit: float, what: str, kind: str = "", size: int = 0) -> Callable[[Rows], Judgement]:
    """A judge: a median time, in seconds, is at most a limit."""

    def judge(rows: Rows) -> Judgement:
        found = rows.number("s", what=what, kind=kind, subscriptions=size)
        text = f"{found * 1e3:.0f} ms" if found < 1 else f"{found:.1f} s"
        return judged(found <= limit, text)

    return judge


@experiment(
    "engine-index",
    title="The default engine's index: building, saving, opening, starting",
    small=Index(),
    paper=Index(plain=(100_000, 1_000_000, 4_000_000), trees=(100_000, 1_000_000)),
    claims=(
        Claim(
            "a million distinct paths are built in at most 20 s", "target", _within(20, BUILD, PLAIN, 1_000_000), "20 s"
        ),
        Claim(
            "a million distinct paths are opened in at most 50 ms",
            "target",
            _within(0.05, OPEN, PLAIN, 1_000_000),
            "50 ms",
            "Opening verifies the checksums of all files, which takes a good part of the time.",
        ),
        Claim(
            "a hundred thousand patterns with predicates are opened in at most 50 ms",
            "target",
            _within(0.05, OPEN, TREES, 100_000),
            "50 ms",
        ),
        Claim("the first start, which compiles all kernels, takes at most 20 s", "target", _within(20, FIRST), "20 s"),
        Claim("a later start takes at most 2 s", "target", _within(2, LATER), "2 s"),
    ),
    plots=(
        Plot(
            "time",
            "Saving and opening an index of plain paths",
            y="s",
            y_label="seconds",
            series="what",
            x="subscriptions",
            x_label="distinct subscriptions",
            ours=(OPEN,),
            interval=("s_low", "s_high"),
            log="xy",
            only=lambda row: row["kind"] == PLAIN,
        ),
    ),
    show={
        "kind": "subscriptions",
        "subscriptions": "distinct",
        "what": "what",
        "s": "s",
        "s_low": "from",
        "s_high": "to",
        "us_each": "µs per subscription",
        "bytes_each": "bytes per subscription on disk",
    },
)
def engine_index(run: Run, parameters: Index) -> Iterator[Row]:
    """Figures are medians of several opens and starts, each in a process of its own.

    The matches of an opened index are first compared with those of the index in memory. A first start has an empty
    cache of compiled kernels and one subscription.
    """
    for kind, sizes in ((PLAIN, parameters.plain), (TREES, parameters.trees)):
        for size in sizes:
            yield from _measure(run, parameters, kind, size)
    yield from _starts(run, parameters)


def _measure(run: Run, parameters: Index, kind: str, size: int) -> Iterator[Row]:
    import pathcast
    from pathcast.workloads import SubscriptionOptions, generate_documents, generate_subscriptions, news_schema

    run.begin(f"generating {size:,} {kind}")
    schema = news_schema()
    predicates = 2 if kind == TREES else 0
    xpaths = generate_subscriptions(
        schema,
        size,
        SubscriptionOptions(max_depth=12, min_depth=6, predicates=predicates, distinct=True),
        seed=run.seed,
    )
    documents = list(generate_documents(schema, 20, seed=run.seed))
    run.begin(f"building, saving and opening {size:,} {kind}", parameters.opens)
    begin = perf_counter()
    subscriptions = pathcast.Subscriptions()
    subscriptions.add_many(xpaths)
    matcher = subscriptions.compile()
    built = perf_counter() - begin
    with tempfile.TemporaryDirectory() as folder:
        begin = perf_counter()
        matcher.save(folder)
        saved = perf_counter() - begin
        on_disk = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
        found = [matcher.match(document).ids.tolist() for document in documents]
        run.check_equal(
            "an opened index finds what the one in memory finds",
            {"in memory": found, "opened": in_fresh_process(_answers, folder, documents).value},
        )
        opened: dict[str, list[float]] = {OPEN: [], UNVERIFIED: []}
        for _ in range(parameters.opens):
            for what, seconds in opened.items():
                seconds.append(in_fresh_process(_open, folder, what == OPEN).value)
            run.advance()
    times = {BUILD: [built], SAVE: [saved], **opened}
    for what, seconds in times.items():
        yield {
            **_row(what, seconds),
            "kind": kind,
            "subscriptions": size,
            "us_each": Timing(tuple(seconds)).median / size * 1e6,
            "bytes_each": on_disk / size,
        }


def _starts(run: Run, parameters: Index) -> Iterator[Row]:
    run.begin("starting", 2 * parameters.first_starts + parameters.starts)
    for what, xpath in ((FIRST, "//a"), (FIRST_TREES, "//a[@x = 1]")):
        first = []
        for _ in range(parameters.first_starts):
            with tempfile.TemporaryDirectory() as cache:
                first.append(_start(xpath, PATHCAST_CACHE=cache))
            run.advance()
        if first:
            yield {**_row(what, first), "kind": "", "subscriptions": 0}
    later = []
    for _ in range(parameters.starts):
        later.append(_start("//a"))
        run.advance()
    yield {**_row(LATER, later), "kind": "", "subscriptions": 0}


def _row(what: str, seconds: list[float]) -> Row:
    time = Timing(tuple(seconds))
    return {"what": what, "s": time.median, "s_low": time.best, "s_high": max(seconds)}


def _start(xpath: str, **environment: str) -> float:
    """Seconds from the start of a process to the end of its first answer."""
    begin = perf_counter()
    command = [sys.executable, "-c", _ANSWER.format(xpath=xpath)]
    subprocess.run(command, check=True, env={**os.environ, **environment})
    return perf_counter() - begin


def _open(folder: str, verify: bool) -> float:
    """Seconds to open an index, in a process that has loaded all code."""
    import pathcast

    subscriptions = pathcast.Subscriptions()
    subscriptions.add_many(["//a", "//a[@x = 1]"])
    subscriptions.compile().match("<a/>")
    begin = perf_counter()
    pathcast.open_index(folder, verify=verify)
    return perf_counter() - begin


def _answers(folder: str, documents: list[bytes]) -> list[list[int]]:
    import pathcast

    matcher = pathcast.open_index(folder)
    return [matcher.match(document).ids.tolist() for document in documents]
