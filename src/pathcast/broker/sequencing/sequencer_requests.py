"""What the sequencer is asked for: publications, batches, subscription changes, acknowledgements.

A request is checked by the thread that makes it, as far as that needs no state. The sequencer then asks for its records
(`records`), appends the records of the whole batch, applies them, and completes the request's future (`complete`).
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Final, NamedTuple, Protocol

from pathcast.broker_log import (
    CursorRecord,
    DeadLetter,
    DeadLetterReplayRecord,
    Failure,
    Meta,
    SavedBatch,
    StandingSubscription,
    SubscriptionCursor,
    changes_settings,
)
from pathcast.errors import PathcastError

# How much of a batch is read and matched at a time: the element arrays of its documents are in memory.
_PIECE_DOCUMENTS: Final = 512
_PIECE_BYTES: Final = 4 << 20


class Publication(NamedTuple):
    """A document to publish."""

    body: bytes
    id: str | None = None
    media_type: str = "application/xml"
    attributes: dict[str, str] | None = None


class Accepted(NamedTuple):
    """A document is in the log at this sequence. `error` if it cannot be read and was kept as a dead letter."""

    sequence: int
    duplicate: bool = False
    error: Failure | None = None


class Rejected(NamedTuple):
    """A document is not in the log, since it cannot be read."""

    error: PathcastError


class Committed(NamedTuple):
    """A batch is in the log. `repeated`: an earlier commit published it, and this one nothing."""

    batch: SavedBatch
    repeated: bool = False


class NotCommitted(NamedTuple):
    """A batch is not in the log: `rejected` of its documents cannot be read, the first at `place` of a feed's."""

    feed: str
    place: int
    error: PathcastError
    rejected: int


class Outcome(Protocol):
    """Where the sequencer leaves a result: a `Future`, or what an event loop awaits (api/event_loop_completions.py)."""

    def done(self) -> bool:
        """Whether there is a result."""

    def set_running_or_notify_cancel(self) -> bool:
        """Whether somebody still waits for the result."""

    def set_result(self, result: Any, /) -> None:
        """Leave the result."""

    def set_exception(self, error: BaseException, /) -> None:
        """Leave an error."""


class PublishRequest:
    """Documents for one feed, each accepted or rejected on its own."""

    def __init__(
        self,
        feed: str,
        publisher: str,
        documents: Sequence[Publication],
        future: Outcome,
        *,
        keep_invalid: bool,
        schema: str | None = None,
        tenant: str | None = None,
    ) -> None:
        self.feed = feed
        self.tenant = tenant
        self.publisher = publisher
        self.documents = documents
        self.keep_invalid = keep_invalid
        self.schema = schema
        self.submitted = time.perf_counter()
        self.future = future

    def pieces(self) -> Iterator[tuple[int, "PublishRequest"]]:
        """The request in pieces that are read and matched one by one, each with the place of its first document."""
        begin = 0
        while begin < len(self.documents):
            end, size = begin + 1, len(self.documents[begin].body)
            while end < min(len(self.documents), begin + _PIECE_DOCUMENTS):
                size += len(self.documents[end].body)
                if size > _PIECE_BYTES:
                    break
                end += 1
            yield (
                begin,
                PublishRequest(
                    self.feed,
                    self.publisher,
                    self.documents[begin:end],
                    self.future,
                    keep_invalid=self.keep_invalid,
                    schema=self.schema,
                    tenant=self.tenant,
                ),
            )
            begin = end


class CommitRequest:
    """The documents of a batch, published all or none, and once per publisher and batch.

    The result is a `Committed` or a `NotCommitted`.
    """

    def __init__(
        self,
        publisher: str,
        batch: str,
        documents: Mapping[str, Sequence[Publication]],
        *,
        keep_invalid: bool,
        tenant: str | None = None,
    ) -> None:
        """`documents`: by feed."""
        self.publisher = publisher
        self.batch = batch
        self.future: Future[Committed | NotCommitted] = Future()
        self.publications = [
            PublishRequest(feed, publisher, each, self.future, keep_invalid=keep_invalid, tenant=tenant)
            for feed, each in documents.items()
        ]


class ChangeRequest:
    """A record that changes the state: a subscription or a feed. The result is its sequence."""

    def __init__(self, metas: Sequence[Meta]) -> None:
        self.metas = metas
        self.future: Future[int] = Future()


class Passed(NamedTuple):
    """All deliveries after `position` up to `reached` are acknowledged, if the cursor is still there."""

    cursor: SubscriptionCursor
    position: int
    reached: int


class AcknowledgeRequest:
    """Deliveries of a subscription that its subscriber has dealt with. The result is the head of the log after it."""

    def __init__(self, standing: StandingSubscription, sequences: Sequence[int], passed: Passed | None = None) -> None:
        """`passed`: once these are acknowledged. They are not of another subscription that gets the same id."""
        self.key = standing.record.tenant, standing.record.id
        self.created = standing.created
        self.sequences = sequences
        self.passed = passed
        self.future: Future[int] = Future()


class DeadLetterRequest:
    """Deliveries of a subscription to give up. The result is the head of the log after it."""

    def __init__(self, tenant: str, id: str, letters: Sequence[DeadLetter]) -> None:
        self.key = tenant, id
        self.letters = letters
        self.future: Future[int] = Future()


class TaskRequest:
    """Work that must not overlap with a batch, such as trimming the log. The result is what the work returns."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self.work = work
        self.future: Future[Any] = Future()


Request = PublishRequest | CommitRequest | ChangeRequest | AcknowledgeRequest | DeadLetterRequest | TaskRequest


def weight(request: Request) -> tuple[int, int]:
    """The documents and bytes of a request."""
    if isinstance(request, CommitRequest):
        weights = [weight(each) for each in request.publications]
        return sum(count for count, _ in weights), sum(size for _, size in weights)
    if isinstance(request, PublishRequest):
        return len(request.documents), sum(len(document.body) for document in request.documents)
    return (len(request.metas), 0) if isinstance(request, ChangeRequest) else (1, 0)


def parts(batch: list[Request]) -> Iterator[list[Request]]:
    """A batch of requests, cut so that a change of settings, a replay, or a publisher's batch is alone.

    The cursor's record that an acknowledgement becomes has the whole cursor, so a replay must be applied before it.
    """
    part: list[Request] = []
    for request in batch:
        if isinstance(request, CommitRequest) or (
            isinstance(request, ChangeRequest) and any(map(_is_alone, request.metas))
        ):
            if part:
                yield part
                part = []
            yield [request]
        else:
            part.append(request)
    if part:
        yield part


def _is_alone(meta: Meta) -> bool:
    return changes_settings(meta) or replays(meta)


def replays(meta: Meta) -> bool:
    """Whether a record makes deliveries due again."""
    return isinstance(meta, DeadLetterReplayRecord) or (isinstance(meta, CursorRecord) and meta.replay)


def complete(request: Request, result: Any) -> None:
    """Complete a request, unless its caller has cancelled it."""
    if request.future.set_running_or_notify_cancel():
        request.future.set_result(result)


def fail(request: Request, error: BaseException) -> None:
    """Fail a request, unless its caller has cancelled it."""
    if not request.future.done() and request.future.set_running_or_notify_cancel():
        request.future.set_exception(error)
