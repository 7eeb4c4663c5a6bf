"""Calls of a broker as values, without a network: what is sent, and how its answer is read.

    Call ──▶ a transport sends it ──▶ Answer ──▶ call.read(answer) ──▶ result, or BrokerError

Both clients are loops around calls. `subscription_calls.py`, `delivery_calls.py`, `dead_letters.py`,
`explanation_pages.py` and `document_publishing.py` make them.

Invariant: every call may be sent again. Publications carry ids, which the broker deduplicates.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Generic, TypeVar
from urllib.parse import quote, urlsplit

from msgspec import DecodeError, ValidationError, json

from pathcast.errors import PathcastError

from .broker_errors import BrokerError, UnreachableError

T = TypeVar("T")
W = TypeVar("W")

# Statuses of a broker, or of a proxy before it, that is expected to answer soon.
_TEMPORARY: Final = frozenset({429, 502, 503, 504})
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
            raise BrokerError(
                f"the answer is not from a Pathcast broker: {error}; check the address", status=self.status
            ) from None


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
    reason = (
        detail
        if isinstance(detail, str)
        else (
            f"the server answered with status {status} without a reason; check that the address belongs to a "
            "Pathcast broker"
        )
    )
    line, column = (value if isinstance(value := problem.get(key), int) else None for key in ("line", "column"))
    return BrokerError(reason, line=line, column=column, status=status, problem=dict(problem))


def unreachable(url: str, error: Exception) -> UnreachableError:
    """The error for a connection that failed."""
    return UnreachableError(
        f"cannot reach the broker at {url}: {str(error) or type(error).__name__}; check the address, and "
        "that the broker is running"
    )


def checked_url(url: str) -> str:
    """A broker's address without a slash at its end; `PathcastError` for anything else."""
    try:
        parts = urlsplit(url)
        good = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:
        good = False
    if not good or parts.query or parts.fragment:
        raise PathcastError(f"{url!r} is not a broker address; give an address such as http://127.0.0.1:8080")
    return url.rstrip("/")


def headers_of(token: str | None) -> dict[str, str]:
    """Headers of every call."""
    return {} if token is None else {"authorization": f"Bearer {token}"}


def path_of(id: str, verb: str = "") -> str:
    """The path of a subscription, or of something about it."""
    return f"/v1/subscriptions/{quote(id, safe='')}{verb}"


def begin_of(start: int | str | datetime) -> int | str:
    """The first document to deliver, as the broker reads it."""
    return start.astimezone(UTC).isoformat() if isinstance(start, datetime) else start
