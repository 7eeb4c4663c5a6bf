"""The broker's protocol without a network: requests as values, answers and event streams as bytes to read.

    Call ──▶ a transport sends it ──▶ Answer ──▶ call.read(answer) ──▶ result, or BrokerError

Both clients are loops around this file.

Invariant: every call may be sent again. Publications carry ids, which the broker deduplicates.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Generic, TypeVar
from urllib.parse import quote, urlsplit

from msgspec import DecodeError, Struct, ValidationError, json
from msgspec import field as wire_field

from pathcast.errors import PathcastError

from .broker_errors import BrokerError, UnreachableError
from .results import Delivery, Gap, Pulled, Status, Subscription

T = TypeVar("T")
W = TypeVar("W")

# Statuses of a broker, or of a proxy before it, that is expected to answer soon.
_TEMPORARY: Final = frozenset({429, 502, 503, 504})
_PAGE: Final = 1_000
JSON: Final = {"content-type": "application/json"}


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a call; names of headers in lower case. `attempt`: how often the call was sent, from 1."""

    status: int
    headers: Mapping[str, str]
    content: bytes
    attempt: int = 1

    @property
    def is_temporary(self) -> bool:
        """Whether the same call may succeed later."""
        return self.status in _TEMPORARY

    @property
    def retry_after(self) -> float:
        """Seconds to wait at least."""
        text = self.headers.get("retry-after", "")
        return float(text) if text.isascii() and text.isdigit() and len(text) < 6 else 0.0

    def error(self) -> BrokerError:
        """The problem that the broker reports."""
        try:
            problem = json.decode(self.content, type=dict[str, Any])
        except (DecodeError, ValidationError, UnicodeDecodeError):
            problem = {}
        return broker_error(problem, self.status)

    def decoded(self, kind: type[W]) -> W:
        """The content of a successful answer."""
        if not 200 <= self.status < 300:
            raise self.error()
        try:
            return json.decode(self.content, type=kind)
        except (DecodeError, ValidationError, UnicodeDecodeError) as error:
            raise BrokerError(f"unexpected answer, is this a broker? {error}", status=self.status) from None


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """A request, and how to read its answer. `wait`: how long the broker may take beside the usual time."""

    method: str
    path: str
    read: Callable[[Answer], T]
    content: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    wait: float = 0.0


def broker_error(problem: Mapping[str, Any], status: int) -> BrokerError:
    """The error that a problem describes."""
    detail = problem.get("detail")
    reason = detail if isinstance(detail, str) else f"the server answered with status {status} and no reason"
    line, column = (value if isinstance(value := problem.get(key), int) else None for key in ("line", "column"))
    return BrokerError(reason, line=line, column=column, status=status, problem=dict(problem))


def unreachable(url: str, error: Exception) -> UnreachableError:
    """The error for a connection that failed."""
    return UnreachableError(f"cannot reach the broker at {url}: {str(error) or type(error).__name__}")


def checked_url(url: str) -> str:
    """A broker's address without a slash at its end; `PathcastError` for anything else."""
    try:
        parts = urlsplit(url)
        good = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:
        good = False
    if not good or parts.query or parts.fragment:
        raise PathcastError(f"{url!r} is not the address of a broker; give one such as http://127.0.0.1:8080")
    return url.rstrip("/")


def headers_of(token: str | None) -> dict[str, str]:
    """Headers of every call."""
    return {} if token is None else {"authorization": f"Bearer {token}"}


# Subscriptions.


class _XPath(Struct):
    expression: str
    namespaces: dict[str, str] = {}


class _Filter(Struct):
    xpath: _XPath


class _Subscription(Struct):
    id: str
    subscriber: str
    feeds: tuple[str, ...]
    filters: tuple[_Filter, ...]
    valid_from: int
    created: int
    config: dict[str, Any] = {}
    sink: str | None = None

    def result(self) -> Subscription:
        xpath = self.filters[0].xpath
        return Subscription(
            self.id, self.subscriber, xpath.expression, xpath.namespaces, self.feeds, self.valid_from, self.created,
            self.config, self.sink,
        )  # fmt: skip


class _Page(Struct):
    subscriptions: list[_Subscription]
    next: str | None = None


def path_of(id: str, verb: str = "") -> str:
    """The path of a subscription, or of something about it."""
    return f"/v1/subscriptions/{quote(id, safe='')}{verb}"


def _filters(xpath: str, namespaces: Mapping[str, str] | None) -> dict[str, Any]:
    return {"filters": [{"xpath": {"expression": xpath, "namespaces": dict(namespaces or {})}}]}


def subscribe(
    id: str,
    xpath: str,
    feeds: Iterable[str] | str,
    namespaces: Mapping[str, str] | None,
    start: int | str | datetime,
    subscriber: str | None,
    sink: str | None,
    config: Mapping[str, float | None],
) -> Call[Subscription]:
    """Create or change a subscription."""
    begin = _begin(start)
    definition: dict[str, Any] = _filters(xpath, namespaces)
    definition["feeds"] = [feeds] if isinstance(feeds, str) else list(feeds)
    definition["config"] = {"from": begin, **{key: value for key, value in config.items() if value is not None}}
    if subscriber is not None:
        definition["subscriber"] = subscriber
    if sink is not None:
        definition["sink"] = sink
    return Call(
        "PUT", path_of(id), lambda answer: answer.decoded(_Subscription).result(), json.encode(definition), JSON
    )


def subscription(id: str) -> Call[Subscription]:
    """Read a subscription."""
    return Call("GET", path_of(id), lambda answer: answer.decoded(_Subscription).result())


def secret(id: str) -> Call[str]:
    """Read what the webhooks of a subscription are signed with."""
    return Call("GET", path_of(id, "/secret"), lambda answer: answer.decoded(dict[str, str])["secret"])


def unsubscribe(id: str) -> Call[None]:
    """End a subscription."""

    def read(answer: Answer) -> None:
        # An earlier attempt may have ended the subscription without its answer coming through.
        if answer.status != 404 or answer.attempt == 1:
            answer.decoded(dict)

    return Call("DELETE", path_of(id), read)


def subscriptions(after: str, subscriber: str | None) -> Call[tuple[list[Subscription], str | None]]:
    """A page of subscriptions, and where the next begins."""

    def read(answer: Answer) -> tuple[list[Subscription], str | None]:
        page = answer.decoded(_Page)
        return [each.result() for each in page.subscriptions], page.next

    query = {"limit": str(_PAGE), "after": after}
    if subscriber is not None:
        query["subscriber"] = subscriber
    return Call("GET", "/v1/subscriptions", read, query=query)


def check(xpath: str, namespaces: Mapping[str, str] | None) -> Call[str]:
    """Parse an expression without saving it."""

    def read(answer: Answer) -> str:
        return answer.decoded(dict[str, str])["normal_form"]

    return Call("POST", "/v1/subscriptions:check", read, json.encode(_filters(xpath, namespaces)), JSON)


# Deliveries on request.


class _Failure(Struct):
    reason: str
    line: int | None = None
    column: int | None = None


class _Gap(Struct):
    begin: int = wire_field(name="from")
    end: int = wire_field(name="to")
    reason: str
    feed: str | None = None

    def result(self) -> Gap:
        return Gap(self.begin, self.end, self.reason, self.feed)


class _Delivery(Struct):
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
    deliveries: list[_Delivery]
    gap: _Gap | None = None


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


def _begin(start: int | str | datetime) -> int | str:
    """The first document to deliver, as the broker reads it."""
    return start.astimezone(UTC).isoformat() if isinstance(start, datetime) else start


def replay(id: str, start: int | str | datetime) -> Call[Status]:
    """Move a cursor."""
    content = json.encode({"from": _begin(start)})
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


# Event streams.


class EventReader:
    """Reads the frames of an event stream, through any number of connections.

    Invariant: `position` is the last event that was returned, or a later place up to which there is none. A frame
    counts when it is complete, so a connection that breaks within a frame loses nothing.
    Lines end at LF or CR LF only: documents may hold other characters that Unicode calls line ends.
    """

    def __init__(self, id: str, after: int | None, *, bodies: bool) -> None:
        self.path = path_of(id, "/events")
        self.query = {} if bodies else {"bodies": "links"}
        self.position = after
        self.ended = False
        self.is_open = False  # whether a connection has ever shown that the subscription exists
        self._buffer = bytearray()
        self._searched = 0
        self._fields: dict[bytes, bytes] = {}

    def headers(self) -> dict[str, str]:
        """Headers of the next connection, which begins after the position."""
        self._buffer, self._searched, self._fields = bytearray(), 0, {}
        found = {"accept": "text/event-stream", "cache-control": "no-store"}
        return found if self.position is None else {**found, "last-event-id": str(self.position)}

    def read(self, chunk: bytes) -> Iterator[Delivery | Gap]:
        """The events that a chunk of bytes completes."""
        self._buffer += chunk
        begin = 0
        while (end := self._buffer.find(b"\n", max(begin, self._searched))) >= 0:
            line = bytes(self._buffer[begin:end]).removesuffix(b"\r")
            begin = end + 1
            if line:
                name, _, value = line.partition(b":")
                self._fields[name] = value.removeprefix(b" ")
            elif (event := self._event()) is not None:
                yield event
        del self._buffer[:begin]
        self._searched = len(self._buffer)

    def _event(self) -> Delivery | Gap | None:
        """The event of a complete frame; None for a heartbeat, or an event that was returned before."""
        fields, self._fields = self._fields, {}
        self.is_open = True
        kind, data = fields.get(b"event", b""), fields.get(b"data", b"{}")
        if kind == b"document":
            delivery = _of_frame(data, _Delivery).result()
            if self.position is not None and delivery.sequence <= self.position:
                return None
            self.position = delivery.sequence
            return delivery
        if kind == b"gap":
            gap = _of_frame(data, _Gap).result()
            # What the broker does not know is behind its head; the stream continues from there.
            if gap.reason != "expired":  # other feeds may have documents in the gap
                self.position = gap.begin - 1 if gap.reason == "unknown" else gap.end
            return gap
        if kind == b"end":
            self.ended = True
        elif (place := fields.get(b"id", b"")).isdigit():
            self.position = max(int(place), self.position or 0)
        return None

    def rejected(self, answer: Answer) -> None:
        """The broker rejected a connection: raises the error, unless the subscription has ended meanwhile."""
        if answer.status == 404 and self.is_open:
            self.ended = True
        elif not answer.is_temporary:
            raise answer.error()


def _of_frame(data: bytes, kind: type[W]) -> W:
    try:
        return json.decode(data, type=kind)
    except (DecodeError, ValidationError) as error:
        raise BrokerError(f"unexpected event, is this a broker? {error}") from None
