"""The least that a durable broker does with documents: decode them, read their XML, write them to disk.

    requests ──▶ all that wait, as one group ──read──write──one fsync──▶ answers

One thread takes the groups, so requests that arrive during an fsync share the next one, as in the broker. There is no
index, no order of records, no check for duplicates: what remains is what no durable broker can leave out. XML is read
by Pathcast's own reader, the fastest at hand.
"""

import asyncio
import os
import queue
import threading
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter, process_time

from msgspec import Struct, json

from pathcast.documents import Limits, Names, Reader

from .http_requests import BATCH


class Event(Struct):
    """The data of a CloudEvent."""

    data: str


_events = json.Decoder(list[Event])


def documents_of(content_type: str, body: bytes) -> list[bytes]:
    """The documents of a request."""
    return [event.data.encode() for event in _events.decode(body)] if content_type == BATCH else [body]


class GroupedWrites:
    """Groups of documents, read and appended to a file; without a file, only read."""

    def __init__(self, path: Path | None) -> None:
        self._file = None if path is None else os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        self._reader = Reader(Names(), Limits(), "refuse")
        self._waiting: queue.SimpleQueue[tuple[list[bytes], asyncio.Future[int]]] = queue.SimpleQueue()
        threading.Thread(target=self._run, daemon=True).start()

    async def write(self, documents: list[bytes]) -> int:
        """Returns the number of documents once they are read and on disk."""
        done: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._waiting.put((documents, done))
        return await done

    def _run(self) -> None:
        while True:
            group = [self._waiting.get()]
            while not self._waiting.empty():
                group.append(self._waiting.get())
            documents = [document for some, _ in group for document in some]
            assert not self._reader.read(documents, borrowed=True).errors
            if self._file is not None:
                append(self._file, documents)
            group[0][1].get_loop().call_soon_threadsafe(_complete, group)


def _complete(group: list[tuple[list[bytes], "asyncio.Future[int]"]]) -> None:
    for documents, done in group:
        if not done.done():
            done.set_result(len(documents))


def append(file: int, documents: Sequence[bytes]) -> None:
    """Append documents to a file, which is on disk when this returns."""
    data = memoryview(b"".join(documents))
    while data:
        data = data[os.write(file, data) :]
    os.fdatasync(file)


def seconds_to_append(path: Path, documents: Sequence[bytes], size: int) -> tuple[float, float]:
    """Append documents to a file, `size` per fsync; the seconds, and those of CPU time."""
    file = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    try:
        begin, cpu = perf_counter(), process_time()
        for first in range(0, len(documents), size):
            append(file, documents[first : first + size])
        return perf_counter() - begin, process_time() - cpu
    finally:
        os.close(file)
