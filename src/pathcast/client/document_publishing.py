"""A publication: documents as calls, a single one raw, many as CloudEvents in batches.

    documents ──▶ bytes, ids ──▶ calls ──▶ their answers fill `results`, in the order of the documents

Invariant: a document's id is chosen before it is first sent, so sending it again publishes nothing twice.
Cost: documents are read when their batch is sent; at most one batch of them is in memory.
"""

import uuid
from collections.abc import Iterable, Iterator, Sequence
from os import PathLike
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from msgspec import json

from pathcast.documents import UTF_8, Limits, Readable, codec_of, content, declared_encoding
from pathcast.errors import DocumentError, PathcastError

from .broker_errors import BrokerError
from .calls import Answer, Call, broker_error
from .results import Published

# The broker takes 1,024 events and 64 MiB per batch. Base64 makes a third more, escapes up to six times as many.
EVENTS: Final = 512
BYTES: Final = 8 << 20

_BATCH: Final = {"content-type": "application/cloudevents-batch+json"}


class _Outgoing(NamedTuple):
    place: int
    id: str
    body: bytes


class Publication:
    """Documents on their way to a feed. `results` has a result or an error for each that was dealt with."""

    def __init__(
        self,
        feed: str,
        documents: Readable | Iterable[Readable],
        ids: str | Sequence[str] | None,
        *,
        keep_invalid: bool,
        schema: str | None = None,
    ) -> None:
        self.is_single = isinstance(documents, bytes | bytearray | memoryview | str | PathLike)
        self._documents: list[Readable] = [documents] if self.is_single else list(documents)  # type: ignore[arg-type,list-item]
        chosen = (
            [uuid.uuid4().hex for _ in self._documents] if ids is None else [ids] if isinstance(ids, str) else list(ids)
        )
        if len(chosen) != len(self._documents):
            raise ValueError(
                f"id must contain one id per document, got {len(chosen)} ids for {len(self._documents)} documents"
            )
        for id in chosen:
            if not (id and id.isascii() and id.isprintable() and id == id.strip()):
                raise ValueError(f"id must be printable ASCII without leading or trailing spaces, got {id!r}")
        self._ids = chosen
        self._path = f"/v1/feeds/{quote(feed, safe='')}/documents"
        self._query = {"invalid": "keep"} if keep_invalid else {}
        if schema is not None:
            self._query["schema"] = schema
        self.results: list[Published | PathcastError] = []
        self._found: dict[int, Published | PathcastError] = {}

    def calls(self) -> Iterator[Call[None]]:
        """The calls that publish the documents; each is to be made before the next is asked for."""
        batch: list[_Outgoing] = []
        size = 0
        for index, document in enumerate(self._documents):
            try:
                body = encoded(document)
            except PathcastError as error:
                self._set(index, error)
                continue
            if batch and (len(batch) == EVENTS or size + len(body) > BYTES):
                yield self._call(batch)
                batch, size = [], 0
            batch.append(_Outgoing(index, self._ids[index], body))
            size += len(body)
        if batch:
            yield self._call(batch)
        self.results = [self._found[index] for index in range(len(self._documents))]

    def result(self) -> Published | list[Published]:
        """The published documents; raises the first error."""
        good: list[Published] = []
        for result in self.results:
            if isinstance(result, PathcastError):
                raise result
            good.append(result)
        return good[0] if self.is_single else good

    def _set(self, index: int, result: Published | PathcastError) -> None:
        if isinstance(result, PathcastError) and not self.is_single:
            result.index = index
        self._found[index] = result

    def _call(self, batch: list[_Outgoing]) -> Call[None]:
        if len(batch) == 1:
            (one,) = batch
            headers = {"content-type": "application/xml", "ce-id": one.id}
            return Call("POST", self._path, lambda answer: self._read_one(one, answer), one.body, headers, self._query)
        events = json.encode([_event(each) for each in batch])
        return Call("POST", self._path, lambda answer: self._read_batch(batch, answer), events, _BATCH, self._query)

    def _read_one(self, one: _Outgoing, answer: Answer) -> None:
        # The broker answers with a problem of the document (413, 422), or of the whole publication.
        if answer.status in {413, 422}:
            self._set(one.place, answer.error())
        else:
            self._set(one.place, _result(one.id, answer.decoded(dict[str, Any]), answer.status))

    def _read_batch(self, batch: list[_Outgoing], answer: Answer) -> None:
        is_answer = answer.status in {202, 422} and answer.headers.get("content-type") == "application/json"
        content = Answer(202, {}, answer.content).decoded(dict[str, Any]) if is_answer else {}
        results = content.get("results", ())
        if len(results) != len(batch):
            raise answer.error()
        for one, result in zip(batch, results, strict=True):
            self._set(one.place, _result(one.id, result, answer.status))


def _event(one: _Outgoing) -> dict[str, Any]:
    event = {"specversion": "1.0", "id": one.id, "type": "document", "datacontenttype": "application/xml"}
    try:
        return {**event, "data": one.body.decode()}
    except UnicodeDecodeError:
        return {**event, "data_base64": one.body}


def _result(id: str, result: dict[str, Any], status: int) -> Published | BrokerError:
    error = result.get("error")
    if "sequence" not in result:
        return broker_error(error or {}, (error or {}).get("status", status))
    failure = None if error is None else str(broker_error({**error, "detail": error.get("reason")}, 422))
    return Published(result["sequence"], id, result.get("duplicate", False), failure)


def encoded(document: Readable) -> bytes:
    """The bytes of a document, in the encoding that it declares."""
    body, override = content(document, Limits())
    declared = None if override is None else declared_encoding(body)
    if declared is None or (codec := codec_of(declared)) in {None, UTF_8}:
        return body
    try:
        return body.decode().encode(codec or UTF_8)
    except UnicodeEncodeError as error:
        raise DocumentError(
            f"the text declares encoding {declared!r}, which lacks the character {body.decode()[error.start]!r} at "
            f"position {error.start}; declare UTF-8"
        ) from None
