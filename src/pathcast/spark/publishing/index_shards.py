"""Shards: an index in several, each of which a worker can hold, where it can't hold all.

    index/shard-0, index/shard-1, …                     a plain index
    index/versions/00000001/shard-0, shard-1, …         a version, whole as any

A subscriber's subscriptions are in one shard, so that nobody gets a document twice; those of nobody are spread by their
ids. Documents are parsed once and meet every shard as structure (`parse_documents.py`).

Invariant: every subscription is in one shard, under its id; which one depends on the subscriber's name alone, or else
on the id.
Cost: each shard is compiled anew. `save_shards` takes them from a set that is in memory as a whole; where that has no
room, tasks write them from a table (`write_shards.py`).
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
    """Refuse a number of shards that is none."""
    if shards < 1:
        raise PipelineError(f"shards={shards}: must be a whole number from 1 up")


def save_shards(matcher: Matcher, folder: AnyPath, shards: int) -> None:
    """Write a matcher's index as so many shards into a folder that is empty or not there."""
    check_shards(shards)
    place = Path(folder)
    if place.exists() and any(place.iterdir()):
        raise PipelineError(f"{place} is not empty; shards go to a folder of their own")
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
    """Where a shard lies."""
    return Path(folder) / f"{SHARD}{number}"


def shards_in(folder: AnyPath) -> int:
    """How many shards a folder holds; 0 for one that is no sharded index."""
    count = 0
    while (shard_folder(folder, count) / MANIFEST).is_file():
        count += 1
    return count
