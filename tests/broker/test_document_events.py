"""Events of documents: encoded once, the same for every reader, in bounded memory."""

import json

from hypothesis import given
from hypothesis import strategies as st

from pathcast.broker.api.document_events import DocumentEvents, shown_document
from pathcast.broker_log import DocumentRecord
from pathcast.log import LogEntry

BODIES = st.binary(max_size=40) | st.text(max_size=40).map(str.encode)
IDS = st.none() | st.lists(st.text(max_size=5), max_size=3)


def document(sequence: int, body: bytes) -> tuple[LogEntry, DocumentRecord]:
    """A document of a log."""
    record = DocumentRecord("news", "ada", None, "application/xml", {}, None)
    return LogEntry(sequence, 1_500_000, "document", b"", body), record


@given(
    bodies=st.lists(BODIES, min_size=1, max_size=5),
    asked=st.lists(st.tuples(st.integers(0, 4), IDS, st.booleans()), max_size=12),
    capacity=st.integers(0, 2_000),
)
def test_an_event_is_its_document_whoever_asked_before(
    bodies: list[bytes], asked: list[tuple[int, list[str] | None, bool]], capacity: int
) -> None:
    events = DocumentEvents(capacity)
    for place, ids, inline in asked:
        entry, record = document(place + 1, bodies[place % len(bodies)])
        event = events.event(entry, record, ids, inline=inline)
        head, name, data, end, last = event.decode().split("\n")
        assert (head, name, end, last) == (f"id: {place + 1}", "event: document", "", "")
        expected = json.loads(json.dumps(shown_document(entry, record, inline=inline), default=_base64))
        assert json.loads(data.removeprefix("data: ")) == (
            expected if ids is None else {**expected, "subscriptions": ids}
        )
        assert events.bytes <= capacity


def _base64(body: bytes) -> str:
    import base64

    return base64.b64encode(body).decode()


def test_events_leave_in_the_order_in_which_they_came() -> None:
    events = DocumentEvents(100_000)
    for sequence in range(1, 1_000):
        events.event(*document(sequence, b"x" * 5_000), None, inline=True)
    assert 80_000 < events.bytes <= 100_000


def test_a_large_event_is_not_kept() -> None:
    events = DocumentEvents(100_000)
    events.event(*document(1, b"<a/>"), None, inline=True)
    before = events.bytes
    events.event(*document(2, b"x" * 50_000), None, inline=True)
    assert events.bytes == before
