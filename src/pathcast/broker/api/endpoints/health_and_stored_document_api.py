"""What operators and readers of documents ask: a document, health and readiness."""

import asyncio
import re
from typing import Final

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from pathcast.log import LogError, TrimmedError

from ..openapi import Answer, Content, describes
from ..problems import ProblemError
from ..request_context import access_of, broker_of

_MEDIA_TYPE: Final = re.compile(r"[A-Za-z0-9!#$&^_.+-]{1,127}/[A-Za-z0-9!#$&^_.+-]{1,127}")


_TEXT: Final = Content(str, "text/plain")


@describes(
    "documents",
    scope="read:{feed}",
    responses={200: Answer(Content(None, "*/*"), "The document.", {"pathcast-feed": "The feed of the document."})},
    errors={404: "No such document, or the token may not read it.", 410: ""},
)
async def get_document(request: Request) -> Response:
    """GET /v1/documents/{sequence}: read a document, byte by byte as it was published."""
    text = request.path_params["sequence"]
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise ProblemError(404, f"{text[:40]!r} is not a sequence; documents have paths such as /v1/documents/4711")
    sequence, broker = int(text), broker_of(request)
    try:
        ((entry, document),) = await asyncio.to_thread(broker.recent.entries, [sequence])
    except TrimmedError:
        raise
    except LogError:
        raise not_a_document(sequence) from None
    access = access_of(request)
    may_read = access.read is None or document.feed in access.read
    if not (may_read and await asyncio.to_thread(broker.is_visible, access.tenant, document.feed, sequence)):
        # The same answer, so that nobody learns which feeds there are.
        raise not_a_document(sequence)
    broker.check_not_expired(document.feed, sequence)
    # A document is shown as data, never run: browsers must not render it.
    headers = {"x-content-type-options": "nosniff", "content-disposition": "attachment", "pathcast-feed": document.feed}
    # A CloudEvent names its media type in JSON: any text.
    media_type = document.media_type if _MEDIA_TYPE.fullmatch(document.media_type) else "application/octet-stream"
    return Response(entry.body, 200, headers, media_type)


def not_a_document(sequence: int) -> ProblemError:
    """The answer for a record that is no document, and for a document that the sender may not read."""
    return ProblemError(
        404, f"record {sequence} is not a document that this token may read; give the sequence of another document"
    )


@describes("operation", responses={200: _TEXT, 503: Answer(_TEXT, "The broker has stopped.")})
async def health(request: Request) -> Response:
    """GET /healthz: 200 while the process can do its work; 503 means restart it.

    Anyone may ask, so the answer does not say why; the server's log does.
    """
    failed = broker_of(request).failure is not None
    return PlainTextResponse("the broker has stopped; restart it\n", 503) if failed else PlainTextResponse("ok\n")


@describes("operation", responses={200: _TEXT, 503: Answer(_TEXT, "Send requests elsewhere.")})
async def ready(request: Request) -> Response:
    """GET /readyz: 200 while requests are welcome."""
    return await health(request)
