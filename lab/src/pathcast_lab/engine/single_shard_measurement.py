"""The cost of one shard of subscriptions for its worker, measured in separate processes.

One process builds the shard's index and saves it, another opens it and serves: as on a cluster, where a worker maps
what was built elsewhere. Times are CPU time, the best of several passes, because other work on the machine would
otherwise be part of them. Memory is what the serving process has in its memory after matching; pages of the mapped
index count.
"""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import process_time
from typing import NamedTuple

from pathcast_lab.harness import in_fresh_process, resident_bytes

from .distinct_path_variants import variants


class ShardAnswers(NamedTuple):
    """The ids that match each of some documents, and the numbers of matches of all documents together."""

    ids: list[list[int]]
    matches: int


@dataclass(frozen=True)
class ShardCost:
    """Seconds are CPU time: `build` for the index, `read` and `match` (with ids) for all documents together.

    `memory` and `build_memory` are bytes of the processes that serve and build, `disk` those of the index's files.
    `distinct` is the number of different patterns that the index reports.
    """

    size: int
    distinct: int
    build: float
    build_memory: int
    disk: int
    read: float
    match: float
    memory: int
    id_bytes: int
    answers: ShardAnswers


class _Built(NamedTuple):
    seconds: float
    distinct: int
    memory: int


class _Served(NamedTuple):
    read: float
    match: float
    memory: int
    id_bytes: int
    answers: ShardAnswers


def measure_shard(
    bases: Sequence[str], size: int, seed: int, documents: Sequence[bytes], *, rounds: int, checked: int
) -> ShardCost:
    """Build, save, open and serve a shard of `size` variants; `checked` documents have their ids in the answers."""
    with tempfile.TemporaryDirectory() as folder:
        built = in_fresh_process(_build, folder, list(bases), size, seed).value
        disk = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
        served = in_fresh_process(_serve, folder, list(documents), rounds, checked).value
    return ShardCost(
        size,
        built.distinct,
        built.seconds,
        built.memory,
        disk,
        served.read,
        served.match,
        served.memory,
        served.id_bytes,
        served.answers,
    )


def _build(folder: str, bases: list[str], size: int, seed: int) -> _Built:
    import pathcast

    xpaths = variants(bases, size, seed)
    begin = process_time()
    subscriptions = pathcast.Subscriptions()
    subscriptions.add_many(xpaths)
    matcher = subscriptions.compile(engine="automaton")
    seconds = process_time() - begin
    matcher.save(folder)
    return _Built(seconds, int(matcher.statistics()["patterns"]), resident_bytes())


def _serve(folder: str, documents: list[bytes], rounds: int, checked: int) -> _Served:
    import pathcast
    from pathcast.documents import Limits
    from pathcast.documents.document_reader import Reader

    matcher = pathcast.open_index(folder)
    reader = Reader(matcher.subscriptions.table.names, Limits(), "refuse")
    answers = [matches.ids.tolist() for matches in matcher.match_many(documents[:checked])]
    for _ in range(2):  # so that the states of all label paths are known
        matcher.match_batch(reader.read(documents, borrowed=True))
    reading, matching = [], []
    for _ in range(rounds):
        begin = process_time()
        batch = reader.read(documents, borrowed=True)
        read = process_time()
        _, ids = matcher.match_batch(batch)
        reading.append(read - begin)
        matching.append(process_time() - read)
    answers_of_all = ShardAnswers(answers, int(ids.size))
    return _Served(min(reading), min(matching), resident_bytes(), int(ids.itemsize), answers_of_all)
