"""Results of clients: immutable values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from pathcast.documents import Readable


@dataclass(frozen=True, slots=True)
class Published:
    """A document is in the broker's log, durably, at `sequence`.

    duplicate: the log already had it, with the same id. error: the reason why a stored document cannot be read.
    """

    sequence: int
    id: str
    duplicate: bool = False
    error: str | None = None


@dataclass(frozen=True, slots=True)
class NewDocument:
    """A document to upload: bytes, text or a path. headers: attributes of its CloudEvent, and `content-type`."""

    feed: str
    body: Readable
    id: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Committed:
    """A batch is in the broker's log, durably; `sequence` is that of its record, right after its documents.

    duplicates: how many were in the log already, under their ids, and are not among `documents`. kept: how many of
    `documents` cannot be read. repeated: an earlier commit published the batch, and this one nothing.
    """

    sequence: int
    documents: int
    duplicates: int
    kept: int
    repeated: bool


@dataclass(frozen=True, slots=True)
class Subscription:
    """A standing subscription. It matches documents from the sequence `valid_from` on, of `feeds` or of all feeds.

    sink: the URL that deliveries are sent to, None if they are pulled or read as events.
    """

    id: str
    subscriber: str
    xpath: str
    namespaces: Mapping[str, str]
    feeds: tuple[str, ...]
    valid_from: int
    created: int
    config: Mapping[str, Any] = field(default_factory=dict)
    sink: str | None = None


@dataclass(frozen=True, slots=True)
class Delivery:
    """A document that a subscription matched.

    body: the bytes as they were published, None if they were not asked for. id, attributes: the publisher's.
    error: why the document cannot be read. attempt: how often a pull has delivered it.
    """

    sequence: int
    feed: str
    time: datetime
    body: bytes | None
    media_type: str = "application/xml"
    id: str | None = None
    attributes: Mapping[str, str] = field(default_factory=dict)
    error: str | None = None
    attempt: int = 1


@dataclass(frozen=True, slots=True)
class Explained:
    """Whether a subscription gets a document, and why.

    reason: `matched`, `interval`, `feed`, `guard`, `unreadable` or `pattern`; detail: the reason in a sentence. pattern
    and steps: the normal form and its findings, if one subscription was asked for.
    """

    id: str
    subscriber: str
    matches: bool
    reason: str
    detail: str = ""
    pattern: str = ""
    steps: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Gap:
    """Documents from `begin` to `end` (both inclusive) that can no longer be delivered, or are unknown to the broker.

    reason: `trimmed`, `expired` (only those of `feed`) or `unknown`.
    """

    begin: int
    end: int
    reason: str
    feed: str | None = None


@dataclass(frozen=True, slots=True)
class Pulled:
    """Deliveries on leases, and the gap before them, if there is one."""

    deliveries: tuple[Delivery, ...]
    gap: Gap | None = None


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A delivery that was given up after some attempts. reason: `max_deliver`, or `trimmed` with its document."""

    sequence: int
    attempts: int
    reason: str


@dataclass(frozen=True, slots=True)
class Revived:
    """The number of dead letters that are due again (`replayed`), and of dead letters with trimmed documents."""

    replayed: int
    trimmed: int


@dataclass(frozen=True, slots=True)
class Status:
    """Where a subscription is: everything up to `cursor` is acknowledged, the log ends at `head`.

    dead_letters: how many are `kept`, and how many there were in `total`. last_delivery, last_error: as the broker
    noted them since it started. sink: how webhooks are going, if there are any: `url`, why it is `disabled`, `failures`
    in a row, `last_error`, and seconds until the next attempt (`next_attempt_in`).
    """

    id: str
    cursor: int
    head: int
    lag: int
    out: int
    acknowledged_out_of_order: int
    dead_letters: Mapping[str, int] = field(default_factory=dict)
    last_delivery: Mapping[str, Any] | None = None
    last_error: Mapping[str, Any] | None = None
    sink: Mapping[str, Any] | None = None
