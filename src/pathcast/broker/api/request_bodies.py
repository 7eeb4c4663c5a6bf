"""Bodies of requests: read up to a limit, decoded into a declared type."""

from typing import Any, Final

from msgspec import DecodeError, ValidationError, json
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from .distinct_keys import DuplicateKeyError, check_distinct_keys
from .problems import ProblemError

# JSON bodies other than documents: a subscription has an expression of at most 64 KiB, and namespaces.
JSON_BYTES: Final = 1 << 20


async def body_of(request: Request, limit: int) -> bytes:
    """The body of a request, if it has at most `limit` bytes; otherwise it is not read to its end."""
    check_declared_size(request, limit)
    chunks: list[bytes] = []
    size = 0
    try:
        async for chunk in request.stream():
            size += len(chunk)
            if size > limit:
                raise too_large(limit)
            chunks.append(chunk)
    except ClientDisconnect:
        # Nobody reads this answer: the client has gone, or was too slow.
        raise ProblemError(408, "the client disconnected before the end of its body; send the request again") from None
    return b"".join(chunks)


def check_declared_size(request: Request, limit: int) -> None:
    """`ProblemError` if a request says that its body has more than `limit` bytes."""
    declared = request.headers.get("content-length", "")
    if declared.isascii() and declared.isdigit() and int(declared) > limit:
        raise too_large(limit)


def too_large(limit: int) -> ProblemError:
    """The problem with a body of more than `limit` bytes.

    The connection stays open: closing it while the client sends would reset it, and the client might lose the answer.
    What the client still sends is dropped, for a limited time (slow_client_limits.py).
    """
    return ProblemError(413, f"the body has more than {limit:,} bytes; send less in one request")


def decoded(body: bytes, kind: Any, what: str, *, distinct: bool = True) -> Any:
    """A JSON body as a value of a type. `distinct`: no object may have a key more than once."""
    try:
        found = json.decode(body, type=kind)
        if distinct:
            check_distinct_keys(body)
    except DuplicateKeyError as error:
        raise ProblemError(400, f"{what} has the key {error.key[:80]!r} more than once; send it once") from None
    except (DecodeError, ValidationError, UnicodeDecodeError) as error:
        raise ProblemError(400, f"{what} is malformed: {error}; GET /openapi.json describes the format") from None
    except RecursionError:
        raise ProblemError(400, f"{what} is nested too deeply to read; reduce the nesting") from None
    return found


def whole_number(request: Request, name: str, default: int, most: int) -> int:
    """A parameter of the query that is a number from 0 to `most`."""
    text = request.query_params.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 20 and int(text) <= most):
        raise ProblemError(400, f"{name} must be a number from 0 to {most:,}, got {text!r}")
    return int(text)


def answer(content: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """A JSON answer."""
    return Response(json.encode(content), status, headers, "application/json")
