"""Documents per second of one thread, of two threads, and of two processes, in turns.

Two processes share neither Python's lock nor an index. So they show how much a second processor of this machine adds,
and what two threads lack beside them is the cost of sharing.
"""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection
from statistics import median
from time import process_time
from typing import TYPE_CHECKING

from pathcast_lab.harness import Row, race

if TYPE_CHECKING:
    from pathcast.matching import Matcher

ONE, TWO, PROCESSES = "match_many, 1 thread", "match_many, 2 threads", "match_many in each of 2 processes"


def compared(matcher: "Matcher", documents: Sequence[bytes], times: int, rounds: int) -> Iterator[Row]:
    """Match all documents, `times` times, in each of the three ways; `cpu_us` is processor time per document."""
    many = list(documents) * times
    spent: dict[str, list[float]] = {ONE: [], TWO: []}

    def threads(series: str, count: int) -> None:
        begin = process_time()
        for _ in matcher.match_many(many, threads=count):
            pass
        spent[series].append((process_time() - begin) / len(many))

    with tempfile.TemporaryDirectory() as folder, ExitStack() as open_processes:
        matcher.save(folder)
        # Each matches half of the documents that a thread alone matches.
        processes = [open_processes.enter_context(_process(folder, many[::2])) for _ in range(2)]

        def both() -> None:
            for process in processes:
                process.send(True)
            for process in processes:
                process.recv()

        rivals = {ONE: lambda: threads(ONE, 1), TWO: lambda: threads(TWO, 2), PROCESSES: both}
        timings = race(rivals, rounds=rounds)
    for series, timing in timings.items():
        row: Row = {"series": series, "per_second": len(many) / timing.median}
        yield {**row, "cpu_us": median(spent[series]) * 1e6} if series in spent else row


@contextmanager
def _process(folder: str, documents: list[bytes]) -> Iterator[Connection]:
    """A process that matches the documents whenever it is asked to."""
    context = get_context("spawn")
    ours, its = context.Pipe()
    process = context.Process(target=_serve, args=(its, folder, documents), daemon=True)
    process.start()
    its.close()
    try:
        yield ours
    finally:
        ours.close()
        process.join()


def _serve(requests: Connection, folder: str, documents: list[bytes]) -> None:
    import pathcast

    matcher = pathcast.open_index(folder)
    while True:
        try:
            requests.recv()
        except EOFError:
            return
        for _ in matcher.match_many(documents):
            pass
        requests.send(True)
