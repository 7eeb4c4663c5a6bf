"""The broker: batches from any number of inputs, one message per target.

    documents ──┐                ┌───────────┐  batch   ┌───────────┐ documents ┌────────────┐   one message
    messages  ──┴─▶  receiving ─▶│ RoXSum    │─────────▶│ filtering │──────────▶│ forwarding │──▶ per target
                     (limits)    └───────────┘          └───────────┘ of targets└────────────┘

The three modules of §4 of the paper. *Receiving* reads documents and messages into the open batch, and closes it when
it reaches its limit of documents or bytes, or when its first document has waited long enough. *Filtering*
(`summary_matching.py`, over the profiles of `broker_routing_table.py`) finds the documents of each target. *Forwarding*
encodes one message per target, documents with the same targets once.

Invariant: every readable document is in exactly one batch, and no batch exceeds its limits unless a single document
does; a document that matches no profile is dropped and counted. An unreadable message changes nothing.
Not done: sending. A broker returns messages; the caller sends them, and calls `poll` when no input arrives.
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path

import numpy as np
from pyroaring import BitMap

from pathcast.documents import Entities, LabelPaths, Limits, Readable
from pathcast.errors import LimitError, PathcastError
from pathcast.patterns import Namespaces

from .broker_routing_table import Target, Targets
from .markup_value_splitter import Skeletons
from .message.message_limits import MessageLimits
from .message.messages_by_target import encode_by_target
from .message.segment_format import compressor_of
from .summary import RoXSum
from .summary_matching import Filtering

# Documents are read in groups of up to this many bytes.
_GROUP_BYTES = 8 << 20


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """Limits of a batch: documents, bytes and distinct label paths, and seconds that its first document may wait."""

    documents: int = 10_000
    bytes: int = 64 << 20
    seconds: float = 1.0
    label_paths: int = 1 << 20

    def __post_init__(self) -> None:
        for limit in fields(self):
            value = getattr(self, limit.name)
            if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
                raise LimitError(f"BatchLimits({limit.name}=…) must be a number above 0, got {value!r}")


@dataclass(frozen=True, slots=True)
class Message:
    """A message to one target: an encoded RoXSum and its number of documents."""

    target: Target
    data: bytes = field(repr=False)
    documents: int


@dataclass(slots=True)
class Received:
    """The result of receiving: the messages of closed batches, and the errors of rejected documents, by place."""

    messages: list[Message] = field(default_factory=list)
    errors: dict[int, PathcastError] = field(default_factory=dict)


class Receiving:
    """Reads input into the open batch; returns full batches."""

    def __init__(
        self,
        limits: BatchLimits,
        clock: Callable[[], float],
        *,
        document_limits: Limits | None,
        entities: Entities,
        message_limits: MessageLimits | None,
        trusted: bool,
    ) -> None:
        self.limits = limits
        self._clock = clock
        self._document_limits, self._entities = document_limits, entities
        self._message_limits, self._trusted = message_limits, trusted
        self._open = self._empty()
        self._bytes = 0
        self._since = 0.0

    def _empty(self) -> RoXSum:
        skeletons = Skeletons(LabelPaths(capacity=self.limits.label_paths))
        return RoXSum(limits=self._document_limits, entities=self._entities, skeletons=skeletons)

    @property
    def waiting(self) -> int:
        """The number of documents in the open batch."""
        return len(self._open)

    @property
    def due(self) -> bool:
        """Whether the open batch has to be closed."""
        limits = self.limits
        full = len(self._open) >= limits.documents or self._bytes >= limits.bytes
        return bool(len(self._open)) and (full or self._clock() - self._since >= limits.seconds)

    def close(self) -> RoXSum:
        """Close and return the open batch; begin a new one."""
        closed, self._open, self._bytes = self._open, self._empty(), 0
        return closed

    def documents(self, documents: Iterable[Readable], errors: dict[int, PathcastError]) -> Iterator[RoXSum]:
        """Add documents; return the batches that became full; `errors` gets the errors of rejected documents."""
        waiting: list[Readable] = []
        first = size = 0
        for place, document in enumerate(documents):
            length = _size(document)
            if waiting and (size >= _GROUP_BYTES or not self._fits(len(waiting) + 1, size + length)):
                yield from self._read(waiting, first, errors)
                waiting, size = [], 0
            if not waiting:
                first = place
                if not self._fits(1, length) and len(self._open):
                    yield self.close()
            waiting.append(document)
            size += length
        if waiting:
            yield from self._read(waiting, first, errors)

    def message(self, data: bytes | bytearray | memoryview) -> Iterator[RoXSum]:
        """Add a message of another broker; return the batches that became full."""
        batch = RoXSum.decode(
            data,
            limits=self._message_limits,
            document_limits=self._document_limits,
            entities=self._entities,
            trusted=self._trusted,
        )
        return self._batch(batch)

    def _batch(self, batch: RoXSum) -> Iterator[RoXSum]:
        sizes = batch.contents.sizes[batch.rows]
        at = 0
        while at < len(batch):
            room = max(0, self.limits.documents - len(self._open))
            fitting = int(np.searchsorted(np.cumsum(sizes[at : at + room]), self.limits.bytes - self._bytes, "right"))
            if fitting == 0 and len(self._open):
                yield self.close()
                continue
            last = at + max(1, fitting)
            self._begin()
            try:
                self._open.extend(batch.restrict(batch.ids[at:last].tolist()))
            except LimitError:
                # Together with the open batch there are too many label paths for one batch.
                if not len(self._open):
                    raise
                yield self.close()
                continue
            self._bytes += int(sizes[at:last].sum())
            at = last
            if self.due:
                yield self.close()

    def _fits(self, documents: int, size: int) -> bool:
        return len(self._open) + documents <= self.limits.documents and self._bytes + size <= self.limits.bytes

    def _begin(self) -> None:
        if not len(self._open):
            self._since = self._clock()

    def _read(self, documents: list[Readable], first: int, errors: dict[int, PathcastError]) -> Iterator[RoXSum]:
        self._begin()
        try:
            refused = self._open.add_many(documents)
        except LimitError as error:
            # Together with the open batch there are too many label paths for one batch: separate batches may do.
            if len(self._open):
                yield self.close()
                yield from self._read(documents, first, errors)
            elif len(documents) > 1:
                for place, document in enumerate(documents, first):
                    yield from self._read([document], place, errors)
            else:
                self.close()
                errors[first] = error
            return
        errors.update((first + place, error) for place, error in refused.items())
        self._bytes += sum(_size(document) for place, document in enumerate(documents) if place not in refused)
        if self.due:
            yield self.close()


class Forwarding:
    """Encodes one message for each target."""

    def __init__(self, level: int) -> None:
        self.level = level

    def forward(self, batch: RoXSum, found: dict[Target, BitMap]) -> list[Message]:
        """One message for each target that gets documents."""
        messages = encode_by_target(batch, found, level=self.level)
        return [Message(target, data, len(found[target])) for target, data in messages.items()]


class Broker:
    """Receives documents and messages, matches them in batches, and returns one message per target and batch.

    `level` is zstd's. `trusted` accepts the summaries in other brokers' messages unchecked (`RoXSum.decode`).

    >>> broker = pathcast.roxsum.Broker()
    >>> profile = broker.subscribe("east", "//title")
    >>> broker.receive(["<bib><title/></bib>", "<bib/>"]).errors
    {}
    >>> [(message.target, message.documents) for message in broker.flush()]
    [('east', 1)]
    """

    def __init__(
        self,
        targets: Targets | None = None,
        *,
        limits: BatchLimits | None = None,
        namespaces: Namespaces = None,
        level: int = 3,
        document_limits: Limits | None = None,
        entities: Entities = "refuse",
        message_limits: MessageLimits | None = None,
        trusted: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        for name, given, kind in (
            ("targets", targets, Targets),
            ("limits", limits, BatchLimits),
            ("message_limits", message_limits, MessageLimits),
        ):
            if given is not None and not isinstance(given, kind):
                raise TypeError(f"{name} must be {kind.__name__}(…) or None, got {given!r:.80}")
        compressor_of(level)
        self.targets = Targets(namespaces=namespaces) if targets is None else targets
        self.receiving = Receiving(
            limits or BatchLimits(),
            clock,
            document_limits=document_limits,
            entities=entities,
            message_limits=message_limits,
            trusted=trusted,
        )
        self.forwarding = Forwarding(level)
        self._counts = dict.fromkeys(
            ("batches", "documents", "refused", "unmatched", "messages", "documents sent", "bytes sent"), 0
        )

    # Profiles.

    def subscribe(self, target: Target, xpath: str) -> int:
        """Add a profile of a target; return the profile's id."""
        return self.targets.add(target, xpath)

    def unsubscribe(self, profile: int) -> None:
        """Remove a profile; `KeyError` when there is none with this id."""
        self.targets.remove(profile)

    # Documents and messages.

    def receive(self, documents: Iterable[Readable]) -> Received:
        """Receive documents of clients; unreadable ones are rejected individually."""
        if isinstance(documents, str | bytes | bytearray | memoryview):
            raise TypeError(
                f"receive takes a list of documents, got a single {type(documents).__name__}; put it into a list"
            )
        received = Received()
        for batch in self.receiving.documents(documents, received.errors):
            received.messages += self._send(batch)
        self._counts["refused"] += len(received.errors)
        received.messages += self.poll()
        return received

    def receive_message(self, data: bytes | bytearray | memoryview) -> Received:
        """Receive a message of another broker; `MessageError`, without any change, when it cannot be read."""
        received = Received()
        for batch in self.receiving.message(data):
            received.messages += self._send(batch)
        received.messages += self.poll()
        return received

    def poll(self) -> list[Message]:
        """The messages of a batch whose first document has waited long enough; none otherwise."""
        return self.flush() if self.receiving.due else []

    def flush(self) -> list[Message]:
        """The messages of the open batch, however few documents it has."""
        return self._send(self.receiving.close()) if self.receiving.waiting else []

    def statistics(self) -> dict[str, int]:
        """Counts so far."""
        return {**self._counts, "waiting": self.receiving.waiting, "profiles": len(self.targets.subscriptions)}

    def _send(self, batch: RoXSum) -> list[Message]:
        filtering = Filtering(batch, self.targets.matcher)
        found = filtering.documents(self.targets)
        messages = self.forwarding.forward(batch, found)
        matched = BitMap.union(BitMap(), *found.values())
        counts = self._counts
        counts["batches"] += 1
        counts["documents"] += len(batch)
        counts["refused"] += len(filtering.errors)
        counts["unmatched"] += len(batch) - len(matched) - len(filtering.errors)
        counts["messages"] += len(messages)
        counts["documents sent"] += sum(message.documents for message in messages)
        counts["bytes sent"] += sum(len(message.data) for message in messages)
        return messages


def document_targets(found: dict[Target, BitMap]) -> dict[int, list[Target]]:
    """The paper's table from documents to their targets: the inverse of the table from targets to documents."""
    targets: dict[int, list[Target]] = {}
    for target, documents in found.items():
        for document in documents:
            targets.setdefault(document, []).append(target)
    return targets


def _size(document: Readable) -> int:
    """The estimated size of a document before it is read."""
    if not isinstance(document, os.PathLike):
        return len(document)
    try:
        return Path(document).stat().st_size
    except OSError:
        return 0  # reading the document will report the error
