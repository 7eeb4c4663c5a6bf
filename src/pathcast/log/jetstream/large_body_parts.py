"""Bodies and checkpoints that are too large for a message, as parts in a stream of their own.

    LOG-parts.body.ID         chunks of the body of a record, or of all records of an append
    LOG-parts.checkpoint.ID   chunks of the data of a checkpoint

A part is stored before the message that refers to it, under an id that is never used again. So a part that nobody
refers to, because its writer failed or was fenced in between, does no harm: trimming removes the bodies up to a
position of the stream, and opening the log removes other checkpoints.

Each chunk begins with its number, since a chunk that was sent again may be out of order, or twice in the stream.
"""

import asyncio
from collections.abc import Iterable, Iterator
from uuid import uuid4

from ..log_contract import LogFullError
from .nats_stream import Stream

_NUMBER_BYTES = 4
# Chunks that are sent before the first of them is acknowledged.
_SENT_AT_ONCE = 16
_READ_BYTES = 8 << 20


class Parts:
    """The parts of a log; `position` is the last message of the stream that this process knows of."""

    def __init__(self, stream: Stream, chunk: int) -> None:
        self._stream = stream
        self._chunk = chunk - _NUMBER_BYTES
        self.position = 0

    def put(self, use: str, *data: bytes) -> str:
        """Store a part durably, which may come in pieces; return its id."""
        part = uuid4().hex
        try:
            last = self._stream.run(self._put(f"{self._stream.name}.{use}.{part}", self._chunks(data)))
        except LogFullError:
            self.remove(use, part)
            raise
        self.position = max(self.position, last)
        return part

    def _chunks(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """The same bytes in chunks, all of one size but for the last of a piece."""
        for piece in pieces:
            for at in range(0, len(piece), self._chunk):
                yield piece[at : at + self._chunk]

    async def _put(self, subject: str, data: Iterator[bytes]) -> int:
        chunks = enumerate(data)

        async def send(mine: Iterator[tuple[int, bytes]]) -> int:
            last = 0
            for number, chunk in mine:  # all senders take from the same chunks
                content = number.to_bytes(_NUMBER_BYTES, "big") + chunk
                last = max(last, await self._stream.publishing(subject, content))
            return last

        sent = await asyncio.gather(*(send(chunks) for _ in range(_SENT_AT_ONCE)), return_exceptions=True)
        for result in sent:
            if isinstance(result, BaseException):
                raise result
        return max(last for last in sent if isinstance(last, int))

    def get(self, use: str, part: str, length: int) -> bytes | None:
        """A part of this length; None if chunks of it are missing."""
        subject, position = f"{self._stream.name}.{use}.{part}", 1
        chunks: dict[int, bytes] = {}
        while sum(map(len, chunks.values())) < length:
            found = self._stream.batch(subject, position, 256, _READ_BYTES)
            if not found:
                following = self._stream.next(subject, position)
                if following is None:
                    return None
                found = [following]
            for message in found:
                chunks[int.from_bytes(message.data[:_NUMBER_BYTES], "big")] = message.data[_NUMBER_BYTES:]
            position = found[-1].sequence + 1
        return b"".join(chunks[number] for number in sorted(chunks))

    def remove(self, use: str, part: str) -> None:
        """Remove a part."""
        self._stream.purge(subject=f"{self._stream.name}.{use}.{part}")

    def remove_bodies(self, last: int) -> None:
        """Remove bodies up to a position."""
        self._stream.purge(before=last + 1, subject=f"{self._stream.name}.body.*")

    def remove_other_checkpoints(self, part: str | None, last: int) -> None:
        """Remove the data of checkpoints that nobody refers to, up to a position."""
        for subject in self._stream.state(f"{self._stream.name}.checkpoint.*").subjects:
            if subject.rpartition(".")[2] != part:
                self._stream.purge(before=last + 1, subject=subject)
