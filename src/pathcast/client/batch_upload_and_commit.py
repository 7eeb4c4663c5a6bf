"""Batches: documents that are uploaded in pieces, and published together by one commit.

    documents ──upload──▶ ids of uploads ──commit(source, batch)──▶ all documents are in the log, or none

Invariant: a commit may be sent again; the broker publishes a batch once per token, source and batch. An upload that was
sent twice, since its answer was lost, is one too many, which no commit names; it expires.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final
from urllib.parse import quote

from msgspec import Struct, json

from pathcast.documents import Readable

from .calls import JSON, Answer, Call
from .document_publishing import encoded
from .results import Committed, NewDocument

# How long the broker may take to publish a large batch, beside the usual time.
_COMMIT_SECONDS: Final = 240.0


class _Uploaded(Struct):
    upload: str


class _Committed(Struct):
    sequence: int
    documents: int
    duplicates: int
    kept: int
    repeated: bool

    def result(self) -> Committed:
        return Committed(self.sequence, self.documents, self.duplicates, self.kept, self.repeated)


def upload(documents: Iterable[NewDocument]) -> Call[str]:
    """Upload documents that a batch will have."""
    content = json.encode([_outgoing(each) for each in documents])
    return Call("POST", "/v1/uploads", lambda answer: answer.decoded(_Uploaded).upload, content, JSON)


def commit(uploads: Sequence[str], batch: str, source: str, *, keep_invalid: bool) -> Call[Committed]:
    """Publish uploads as a batch."""
    content = {"uploads": list(uploads), "batch": batch, "source": source}
    if keep_invalid:
        content["invalid"] = "keep"
    return Call(
        "POST",
        "/v1/uploads:commit",
        lambda answer: answer.decoded(_Committed).result(),
        json.encode(content),
        JSON,
        wait=_COMMIT_SECONDS,
    )


def discard(upload: str) -> Call[None]:
    """Delete an upload; nothing happens if there is none."""

    def read(answer: Answer) -> None:
        if answer.status not in {204, 404}:
            raise answer.error()

    return Call("DELETE", f"/v1/uploads/{quote(upload, safe='')}", read)


def _outgoing(document: NewDocument) -> dict[str, Any]:
    found: dict[str, Any] = {"feed": document.feed}
    if document.id is not None:
        found["id"] = document.id
    if document.headers:
        found["headers"] = dict(document.headers)
    body = _bytes(document.body)
    try:
        return {**found, "data": body.decode()}
    except UnicodeDecodeError:
        return {**found, "data_base64": body}


def _bytes(body: Readable) -> bytes:
    return body if isinstance(body, bytes) else encoded(body)
