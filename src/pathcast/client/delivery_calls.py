"""Calls about deliveries on request: pull, acknowledge, give back, replay; the status, and single documents."""

from collections.abc import Iterable
from datetime import UTC, datetime

from msgspec import Struct, field, json

from pathcast.errors import PathcastError

from .calls import JSON, Answer, Call, begin_of, path_of
from .results import Delivery, Gap, Pulled, Status


class _Failure(Struct):
    reason: str
    line: int | None = None
    column: int | None = None


class WireGap(Struct):
    """A gap as the broker sends it."""

    begin: int = field(name="from")
    end: int = field(name="to")
    reason: str
    feed: str | None = None

    def result(self) -> Gap:
        return Gap(self.begin, self.end, self.reason, self.feed)


class WireDelivery(Struct):
    """A delivery as the broker sends it: the body is text, or Base64."""

    sequence: int
    feed: str
    time: float
    media_type: str
    id: str | None = None
    attributes: dict[str, str] = {}
    error: _Failure | None = None
    body: str | None = None
    body_base64: bytes | None = None
    attempt: int = 1

    def result(self) -> Delivery:
        body = self.body_base64 if self.body is None else self.body.encode()
        time = datetime.fromtimestamp(self.time, UTC)
        error = None if self.error is None else failure_text(self.error)
        return Delivery(
            self.sequence, self.feed, time, body, self.media_type, self.id, self.attributes, error, self.attempt
        )


def failure_text(failure: _Failure) -> str:
    """Why a document cannot be read, with the position."""
    return str(PathcastError(failure.reason, line=failure.line, column=failure.column))


class _Pulled(Struct):
    deliveries: list[WireDelivery]
    gap: WireGap | None = None


def pull(id: str, limit: int, wait: float) -> Call[Pulled]:
    """Lease deliveries; the broker waits up to `wait` seconds for the first."""

    def read(answer: Answer) -> Pulled:
        pulled = answer.decoded(_Pulled)
        return Pulled(
            tuple(each.result() for each in pulled.deliveries), None if pulled.gap is None else pulled.gap.result()
        )

    query = {"limit": str(limit), "wait": str(round(wait))}
    return Call("POST", path_of(id, ":pull"), read, query=query, wait=wait)


def acknowledge(id: str, deliveries: Iterable[Delivery | int]) -> Call[None]:
    """Acknowledge deliveries."""
    content = json.encode({"sequences": _sequences(deliveries)})
    return Call("POST", path_of(id, ":ack"), lambda answer: _none(answer.decoded(dict)), content, JSON)


def give_back(id: str, deliveries: Iterable[Delivery | int], delay: float) -> Call[None]:
    """End leases without acknowledging."""
    content = json.encode({"sequences": _sequences(deliveries), "delay": delay})
    return Call("POST", path_of(id, ":nack"), lambda answer: _none(answer.decoded(dict)), content, JSON)


def replay(id: str, start: int | str | datetime) -> Call[Status]:
    """Move a cursor."""
    content = json.encode({"from": begin_of(start)})
    return Call("POST", path_of(id, ":replay"), lambda answer: answer.decoded(Status), content, JSON)


def status(id: str) -> Call[Status]:
    """Where a subscription is."""
    return Call("GET", path_of(id, "/status"), lambda answer: answer.decoded(Status))


def document(sequence: int) -> Call[bytes]:
    """The bytes of a document."""

    def read(answer: Answer) -> bytes:
        if answer.status != 200:
            raise answer.error()
        return answer.content

    return Call("GET", f"/v1/documents/{sequence}", read)


def _sequences(deliveries: Iterable[Delivery | int]) -> list[int]:
    return [each.sequence if isinstance(each, Delivery) else each for each in deliveries]


def _none(_: object) -> None:
    return None
