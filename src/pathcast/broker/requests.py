"""What the sequencer is asked for: publications, subscription changes, acknowledgements.

A request is checked by the thread that makes it, as far as that needs no state. The sequencer then asks for its records
(`records`), appends the records of the whole batch, applies them, and completes the request's future (`complete`).
"""

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple

from pathcast.broker_log import CursorRecord, DeadLetter, DeadLetterReplayRecord, Failure, Meta, changes_settings
from pathcast.errors import PathcastError


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


class PublishRequest:
    """Documents for one feed, each accepted or rejected on its own."""

    def __init__(self, feed: str, publisher: str, documents: Sequence[Publication], *, keep_invalid: bool) -> None:
        self.feed = feed
        self.publisher = publisher
        self.documents = documents
        self.keep_invalid = keep_invalid
        self.submitted = time.perf_counter()
        self.future: Future[list[Accepted | Rejected]] = Future()


class ChangeRequest:
    """A record that changes the state: a subscription or a feed. The result is its sequence."""

    def __init__(self, metas: Sequence[Meta]) -> None:
        self.metas = metas
        self.future: Future[int] = Future()


class AcknowledgeRequest:
    """Deliveries of a subscription that its subscriber has dealt with. The result is the head of the log after it."""

    def __init__(self, tenant: str, id: str, sequences: Sequence[int]) -> None:
        self.key = tenant, id
        self.sequences = sequences
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


Request = PublishRequest | ChangeRequest | AcknowledgeRequest | DeadLetterRequest | TaskRequest


def weight(request: Request) -> tuple[int, int]:
    """The documents and bytes of a request."""
    if isinstance(request, PublishRequest):
        return len(request.documents), sum(len(document.body) for document in request.documents)
    return (len(request.metas), 0) if isinstance(request, ChangeRequest) else (1, 0)


def parts(batch: list[Request]) -> Iterator[list[Request]]:
    """A batch of requests, cut so that a change of settings, or a replay, is alone.

    The cursor's record that an acknowledgement becomes has the whole cursor, so a replay must be applied before it.
    """
    part: list[Request] = []
    for request in batch:
        if isinstance(request, ChangeRequest) and any(map(_is_alone, request.metas)):
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
