"""Batches: documents that are uploaded in pieces and published together, all or none, once per batch.

    POST   /v1/uploads           documents ──▶ an upload, durable, published to nobody
    POST   /v1/uploads:commit    uploads, source, batch ──▶ all their documents are in the log, or none
    DELETE /v1/uploads/{upload}  an upload that nobody will commit; others expire

A commit is one append to the log. Its batch is remembered with it (broker_log/committed_batch_deduplication.py), so a
commit may be sent again: the answer is that of the first, with `repeated`, and nothing more is published.
"""

import asyncio
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from msgspec import UNSET, Struct, UnsetType, field
from starlette.requests import Request
from starlette.responses import Response

from pathcast.errors import LimitError, PathcastError

from ...sequencing.sequencer_requests import Committed, NotCommitted, Publication
from ...tokens.scopes import is_name
from ...uploads.upload_store import BusyUploadError, UnknownUploadError, Upload, UploadStore
from ..openapi import Answer, Content, describes
from ..problems import ProblemError, problem_of
from ..request_bodies import JSON_BYTES, answer, body_of, decoded
from ..request_context import access_of, broker_of, quotas_of, result_of, uploads_of
from ..sender_access_rights import Access

if TYPE_CHECKING:
    from ...uploads.upload_settings import UploadsSection

# Per upload, so that its description is small.
_FEEDS: Final = 1_000
_UPLOADS: Final = 10_000
_NAME_LENGTH: Final = 256
_HEADERS_LENGTH: Final = 16 << 10


class UploadedDocument(Struct, forbid_unknown_fields=True):
    """A document to publish to a feed: text in `data`, or bytes in `data_base64`. `id` is the publisher's, if any.

    headers: attributes as of a CloudEvent; `content-type` is the media type, `pathcast-schema` the document's schema.
    """

    feed: str
    data: str | UnsetType = UNSET
    data_base64: bytes | UnsetType = UNSET
    id: str | None = None
    headers: dict[str, str] = field(default_factory=dict)

    def problem(self) -> str | None:
        """Why the document cannot be published, whatever it contains; None if it can."""
        if not is_name(self.feed):
            return f"invalid feed {self.feed[:140]!r}; use 1 to 128 letters, digits or _ . ~ @ -"
        if isinstance(self.data, str) == isinstance(self.data_base64, bytes):
            both = isinstance(self.data, str)
            return (
                f"the document has {'both' if both else 'neither'} data {'and' if both else 'nor'} data_base64; "
                "send one of them"
            )
        if self.id is not None and not 0 < len(self.id) <= _NAME_LENGTH:
            return f"the id has {len(self.id)} characters; give 1 to {_NAME_LENGTH}, or omit it"
        length = sum(len(name) + len(value) for name, value in self.headers.items())
        if length > _HEADERS_LENGTH:
            return f"the headers have {length:,} characters; give at most {_HEADERS_LENGTH:,}"
        if "" in self.headers:
            return "a header has an empty name; give each header a name"
        return None

    def publication(self) -> Publication:
        """The document as it is published."""
        attributes = {name.lower(): value for name, value in self.headers.items()}
        media_type = attributes.pop("content-type", "") or "application/xml"
        schema = attributes.pop("pathcast-schema", None)
        if schema is not None:
            attributes.setdefault("dataschema", schema)
        body = self.data.encode("utf-8", "surrogatepass") if isinstance(self.data, str) else self.data_base64
        assert isinstance(body, bytes)
        return Publication(body, self.id, media_type, attributes)


class Uploaded(Struct):
    """An upload is durable; it waits `expires_in` seconds for the commit of its batch."""

    upload: str
    documents: int
    expires_in: float


class BatchCommit(Struct, forbid_unknown_fields=True):
    """Publish uploads as a batch. A batch is known by the token, `source` and `batch`, and is published once.

    invalid: `reject` publishes nothing if a document cannot be read; `keep` makes dead letters of such documents.
    """

    uploads: list[str]
    batch: str
    source: str = ""
    invalid: Literal["reject", "keep"] = "reject"

    def check(self) -> None:
        """`ProblemError` unless the names and numbers are acceptable."""
        if not 0 < len(self.batch) <= _NAME_LENGTH or len(self.source) > _NAME_LENGTH:
            raise ProblemError(
                422,
                f"batch must have 1 to {_NAME_LENGTH} characters and source at most {_NAME_LENGTH}, got "
                f"{len(self.batch)} and {len(self.source)}",
            )
        if len(self.uploads) > _UPLOADS or len(set(self.uploads)) < len(self.uploads):
            raise ProblemError(
                422, f"a batch must have at most {_UPLOADS:,} uploads, each once, got {len(self.uploads):,}"
            )


class CommittedBatch(Struct):
    """A batch is in the log, durably; `sequence` is that of its record, right after its documents.

    documents: how many the log has got; duplicates: how many it had already, under their ids; kept: how many of
    `documents` are dead letters; repeated: an earlier commit published the batch, and this one nothing.
    """

    sequence: int
    documents: int
    duplicates: int
    kept: int
    repeated: bool


class _Batch(NamedTuple):
    """The documents of a batch by feed, and where each came from: its upload and its place there."""

    documents: dict[str, list[Publication]]
    origins: dict[str, list[tuple[str, int]]]


_EXAMPLE: Final = [{"feed": "news", "data": "<nitf><title>Rain</title></nitf>", "id": "story-9"}]


@describes(
    "documents",
    scope="publish:{feed}",
    body=Content(list[UploadedDocument], example=_EXAMPLE),
    responses={201: Answer(Uploaded, "Durable, and published to nobody yet.")},
    errors=(422, 429, 507),
)
async def post_upload(request: Request) -> Response:
    """POST /v1/uploads: upload documents that are published later, as part of a batch."""
    access, (uploads, settings), quotas = access_of(request), uploads_of(request), quotas_of(request)
    quotas.check_rate(access.tenant)
    body = await body_of(request, settings.batch)
    documents = await asyncio.to_thread(_checked, body, settings)
    feeds = dict.fromkeys(each.feed for each in documents)
    if len(feeds) > _FEEDS:
        raise ProblemError(422, f"the upload has documents of {len(feeds):,} feeds; send at most {_FEEDS:,} per upload")
    for feed in feeds:
        access.check_publish(feed)
    quotas.publish(access.tenant, len(body))
    try:
        id = await asyncio.to_thread(uploads.put, access.tenant, access.name, feeds, len(documents), body)
    except LimitError as error:
        raise ProblemError(429, error.reason, headers={"retry-after": "10"}) from None
    return answer(Uploaded(id, len(documents), settings.expire), 201)


def _checked(body: bytes, settings: "UploadsSection") -> list[UploadedDocument]:
    """The documents of an upload, if each can be published; what they contain is checked when they are committed."""
    documents: list[UploadedDocument] = decoded(body, list[UploadedDocument], "the upload", distinct=False)
    if not documents:
        raise ProblemError(422, "the upload has no documents; send at least one")
    if len(documents) > settings.documents:
        raise _too_many("documents", len(documents), settings.documents)
    for place, document in enumerate(documents):
        if (reason := document.problem()) is not None:
            raise ProblemError(422, f"document {place}: {reason}", more={"document": place})
    return documents


@describes(
    "documents",
    scope="publish:{feed}",
    body=Content(
        BatchCommit, example={"uploads": ["664e7a4ee5264f13acac6671fc3a845f"], "source": "nightly", "batch": "17"}
    ),
    responses={200: Answer(CommittedBatch, "All documents are in the log.")},
    errors={
        404: "An upload is unknown, and the batch was not committed before; nothing was published.",
        422: "A document cannot be read: `detail` names it. Nothing was published.",
        429: "More than a quota allows; try again after `Retry-After` seconds.",
        507: "The disk is full.",
    },
)
async def commit_uploads(request: Request) -> Response:
    """POST /v1/uploads:commit: publish the documents of uploads as a batch, all or none, once per batch.

    A batch that was committed before is answered as then, and publishes nothing: of each source, the last 256 batches
    are known, for the 1,024 sources of a tenant that committed last.
    """
    access, broker, (uploads, _) = access_of(request), broker_of(request), uploads_of(request)
    wanted: BatchCommit = decoded(await body_of(request, JSON_BYTES), BatchCommit, "the commit")
    wanted.check()
    publisher = f"{access.tenant}/{access.name}/{wanted.source}"
    if (earlier := broker.state.batches.find(publisher, wanted.batch)) is not None:
        result: Committed | NotCommitted = Committed(earlier, repeated=True)
    else:
        result = await _committed(request, access, publisher, wanted)
    await asyncio.to_thread(uploads.remove, wanted.uploads, access.tenant, access.name)
    assert isinstance(result, Committed)
    sequence, record = result.batch
    return answer(CommittedBatch(sequence, record.documents, record.duplicates, record.kept, result.repeated))


async def _committed(request: Request, access: Access, publisher: str, wanted: BatchCommit) -> Committed:
    """Publish a batch that was not committed yet."""
    broker, (uploads, settings), quotas = broker_of(request), uploads_of(request), quotas_of(request)
    try:
        taken = await asyncio.to_thread(uploads.take, wanted.uploads, access.tenant, access.name)
    except UnknownUploadError as error:
        raise ProblemError(404, error.reason) from None
    except BusyUploadError as error:
        raise ProblemError(503, error.reason, headers={"retry-after": "1"}) from None
    admitted: list[str] = []
    try:
        _check_size(taken, settings)
        for feed in dict.fromkeys(feed for upload in taken for feed in upload.feeds):
            access.check_publish(feed)
            quotas.admit_feed(access.tenant, feed)
            admitted.append(feed)
        async with request.app.state.committing:  # one batch at a time is in memory
            batch = await asyncio.to_thread(_batch, uploads, wanted.uploads)
            future = broker.commit(
                publisher,
                wanted.batch,
                batch.documents,
                keep_invalid=wanted.invalid == "keep",
                tenant=access.tenant,
            )
            result = await result_of(request, future)
    finally:
        for feed in admitted:
            quotas.settle_feed(access.tenant, feed)
        uploads.give_back(wanted.uploads)
    if isinstance(result, NotCommitted):
        raise _not_committed(result, batch)
    return result


def _check_size(taken: list[Upload], settings: "UploadsSection") -> None:
    if (size := sum(each.size for each in taken)) > settings.batch:
        raise _too_many("bytes", size, settings.batch)
    if (count := sum(each.documents for each in taken)) > settings.documents:
        raise _too_many("documents", count, settings.documents)


def _too_many(what: str, given: int, most: int) -> ProblemError:
    return ProblemError(
        422,
        f"the batch has {given:,} {what}; at most {most:,} are allowed; publish smaller batches, or raise "
        f"uploads.{'batch' if what == 'bytes' else 'documents'} in the broker's file",
    )


def _batch(uploads: UploadStore, ids: list[str]) -> _Batch:
    """The documents of uploads, in the order of the uploads."""
    batch = _Batch({}, {})
    for id in ids:
        try:
            body = uploads.read(id)
        except PathcastError as error:
            raise ProblemError(404, error.reason) from None
        for place, document in enumerate(decoded(body, list[UploadedDocument], "the upload", distinct=False)):
            batch.documents.setdefault(document.feed, []).append(document.publication())
            batch.origins.setdefault(document.feed, []).append((id, place))
    return batch


def _not_committed(result: NotCommitted, batch: _Batch) -> ProblemError:
    upload, place = batch.origins[result.feed][result.place]
    id = batch.documents[result.feed][result.place].id
    problem = problem_of(result.error)
    named = "" if id is None else f" (id {id!r})"
    others = "" if result.rejected == 1 else f", as {result.rejected - 1:,} others"
    return ProblemError(
        422,
        f"nothing was published: document {place}{named} of upload {upload!r} for feed {result.feed!r} cannot be "
        f"read{others}: {problem.reason}; correct it, or commit the batch with invalid=keep",
        more={**problem.more, "upload": upload, "document": place},
    )


@describes("documents", scope="publish:{feed}", responses={204: Answer()}, errors=(404,))
async def delete_upload(request: Request) -> Response:
    """DELETE /v1/uploads/{upload}: delete an upload that no batch will have."""
    access, (uploads, _) = access_of(request), uploads_of(request)
    id = request.path_params["upload"]
    if not await asyncio.to_thread(uploads.remove, [id], access.tenant, access.name):
        raise ProblemError(
            404,
            f"unknown upload {id[:64]!r}: it has expired, was committed or deleted, or belongs to another token; check "
            "the id and the token",
        )
    return Response(status_code=204)
