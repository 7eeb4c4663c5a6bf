"""Where a stream of events continues after a connection was lost."""

from pathcast.client.event_reader import EventReader
from pathcast.client.results import Delivery


def document(sequence: int) -> bytes:
    data = b'{"sequence": %d, "feed": "f", "time": 1, "media_type": "application/xml", "body": "<a/>"}' % sequence
    return b"id: %d\nevent: document\ndata: %s\n\n" % (sequence, data)


def heartbeat(position: int) -> bytes:
    return b"id: %d\n: heartbeat\n\n" % position


def gap(begin: int, end: int, reason: str) -> bytes:
    return b'event: gap\ndata: {"from": %d, "to": %d, "reason": "%s"}\n\n' % (begin, end, reason.encode())


def test_an_event_that_was_returned_does_not_come_again() -> None:
    reader = EventReader("s", 4, bodies=True)
    found = reader.read(document(4) + document(5) + document(5) + document(6))
    assert [each.sequence for each in found if isinstance(each, Delivery)] == [5, 6]


def test_a_heartbeat_moves_the_position_and_never_back() -> None:
    reader = EventReader("s", 4, bodies=True)
    for position, expected in ((9, 9), (3, 9), (10, 10)):
        assert list(reader.read(heartbeat(position))) == []
        assert reader.headers()["last-event-id"] == str(expected)


def test_the_stream_continues_after_a_gap_or_where_the_log_ends() -> None:
    for reason, expected in (("trimmed", 8), ("unknown", 2), ("expired", 5)):
        reader = EventReader("s", 5, bodies=True)
        assert len(list(reader.read(gap(3, 8, reason)))) == 1
        assert reader.position == expected
