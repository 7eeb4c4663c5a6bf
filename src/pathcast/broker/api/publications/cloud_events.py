"""CloudEvents in the body of a publication: one, or a batch in which each is accepted or rejected on its own."""

import base64
import binascii
from collections.abc import Sequence
from typing import Final

from msgspec import UNSET, MsgspecError, Struct, UnsetType, json

from ...sequencing.sequencer_requests import Publication
from ..problems import ProblemError
from ..request_bodies import decoded
from .json_list_items import items

# Events per request: one request must not occupy the sequencer for long.
EVENTS: Final = 1_024
# Events up to which a batch is decoded at once: decoding millions would take seconds. Each has a brace, and more bytes.
_DECODED: Final = 1 << 16
_EVENT_BYTES: Final = len('{"id":""},')


class CloudEvent(Struct, gc=False):
    """A CloudEvent in JSON, with the attributes that matter here; extensions are ignored."""

    id: str
    source: str = ""
    type: str = ""
    subject: str = ""
    traceparent: str = ""
    datacontenttype: str = "application/xml"
    dataschema: str = ""
    data: str | UnsetType = UNSET
    data_base64: str | UnsetType = UNSET

    def publication(self) -> Publication:
        """The document of the event."""
        if not self.id:
            raise ProblemError(400, "an event has an empty id, so it would be a duplicate; give each event its own id")
        if isinstance(self.data, str) == isinstance(self.data_base64, str):
            raise ProblemError(
                400,
                f"event {self.id!r} has {'both' if isinstance(self.data, str) else 'neither'} data (a string) "
                f"{'and' if isinstance(self.data, str) else 'nor'} data_base64; send one of them",
            )
        if isinstance(self.data, str):
            body = self.data.encode("utf-8", "surrogatepass")
        else:
            try:
                body = base64.b64decode(str(self.data_base64), validate=True)
            except binascii.Error as error:
                raise ProblemError(
                    400, f"data_base64 of event {self.id!r} is not Base64: {error}; encode the document in Base64"
                ) from None
        given = {"source": self.source} if self.source else {}
        if self.type:
            given["type"] = self.type
        if self.subject:
            given["subject"] = self.subject
        if self.traceparent:
            given["traceparent"] = self.traceparent
        if self.dataschema:
            given["dataschema"] = self.dataschema
        return Publication(body, self.id, self.datacontenttype, given)


# An event of a batch, or why it is none.
Event = CloudEvent | ProblemError
_decoder: Final = json.Decoder(list[CloudEvent])


def events_of(body: bytes) -> Sequence[Event]:
    """The events of a batch; in place of one that is no CloudEvent, what is wrong with it."""
    if len(body) <= _EVENT_BYTES * _DECODED or body.count(b"{") <= _DECODED:
        try:
            whole = _decoder.decode(body)
        except (MsgspecError, UnicodeDecodeError, RecursionError):
            pass  # it is decoded again, event by event
        else:
            _check_count(len(whole))
            return whole
    events: list[Event] = []
    try:
        for item in items(body):
            _check_count(len(events) + 1)
            events.append(_event(item))
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise ProblemError(
            400, f"the batch of CloudEvents is malformed: {reason}; GET /openapi.json describes the format"
        ) from None
    return events


def _check_count(events: int) -> None:
    if events > EVENTS:
        raise ProblemError(413, f"the batch has more than {EVENTS:,} events; send at most {EVENTS:,} per request")


def _event(text: bytes) -> Event:
    try:
        event: CloudEvent = decoded(text, CloudEvent, "the event", distinct=False)
    except ProblemError as error:
        return error
    return event
