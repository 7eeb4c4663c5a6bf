"""Shards: an index in several pieces, for indexes that are too large for one worker.

    index/shard-0, index/shard-1, …                     a plain index
    index/versions/00000001/shard-0, shard-1, …         a version, complete like any other

All subscriptions of a subscriber are in one shard, so that nobody gets a document twice; those without a subscriber are
spread by id. Documents are parsed once and matched against every shard by structure (`parse_documents.py`).

Invariant: every subscription is in one shard, under its id; which one depends on the subscriber's name alone, or,
without one, on the id.
Cost: each shard is compiled again. `save_shards` builds them from a set in memory; for sets that do not fit into
memory, tasks write them from a table (`index_shard_writer.py`).
"""

import os
from pathlib import Path
from zlib import crc32

from pathcast.errors import PipelineError
from pathcast.matching import Matcher, Subscriptions
from pathcast.store import MANIFEST

SHARD = "shard-"
AnyPath = str | os.PathLike[str]


def shard_of(subscriber: str | None, id: int, shards: int) -> int:
    """The shard that a subscription belongs to."""
    return (id if subscriber is None else crc32(subscriber.encode())) % shards


def check_shards(shards: int) -> None:
    """Reject an invalid number of shards."""
    if shards < 1:
        raise PipelineError(f"shards must be a whole number of at least 1, got {shards}")


def save_shards(matcher: Matcher, folder: AnyPath, shards: int) -> None:
    """Write a matcher's index as this many shards into an empty or new folder."""
    check_shards(shards)
    place = Path(folder)
    if place.exists() and any(place.iterdir()):
        raise PipelineError(f"{place} is not empty; write shards to a new folder")
    subscriptions = matcher.subscriptions
    rows: list[list[tuple[int, str, str | None]]] = [[] for _ in range(shards)]
    for id, xpath, subscriber in subscriptions:
        rows[shard_of(subscriber, id, shards)].append((id, xpath, subscriber))
    for number, mine in enumerate(rows):
        part = Subscriptions(subscriptions.table.namespaces, max_steps=subscriptions.table.max_steps)
        ids, xpaths, subscribers = zip(*mine, strict=True) if mine else ((), (), ())
        part.add_many(xpaths, list(subscribers), list(ids))
        part.compile(matcher.engine_name).save(shard_folder(place, number))


def shard_folder(folder: AnyPath, number: int) -> Path:
    """The folder of a shard."""
    return Path(folder) / f"{SHARD}{number}"


def shards_in(folder: AnyPath) -> int:
    """The number of shards in a folder; 0 if it is not a sharded index."""
    count = 0
    while (shard_folder(folder, count) / MANIFEST).is_file():
        count += 1
    return count
