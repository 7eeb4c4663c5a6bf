"""The broker: all input leaves in one message per target, within the limits of a batch."""

from pathlib import Path
from typing import Any

import pytest

from pathcast import DocumentError, LimitError, MessageError, PatternError
from pathcast.roxsum import BatchLimits, Broker, Message, RoXSum, Targets


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def delivered(messages: list[Message]) -> dict[object, list[bytes]]:
    """All documents by target, in the order in which they were sent."""
    found: dict[object, list[bytes]] = {}
    for message in messages:
        batch = RoXSum.decode(message.data)
        assert len(batch) == message.documents
        found.setdefault(message.target, []).extend(batch.documents())
    return found


def broker(**settings: Any) -> Broker:
    made = Broker(Targets({"east": ["/a"], "west": ["//b", "/c[@x = 1]"]}), **settings)
    made.subscribe("nobody", "/z")
    return made


def test_one_message_per_target_with_just_its_documents() -> None:
    one = broker()
    assert one.receive([b"<a/>", b"<a><b/></a>", "<c x='1'/>", "<c x='2'/>"]).messages == []
    messages = one.flush()
    assert delivered(messages) == {"east": [b"<a/>", b"<a><b/></a>"], "west": [b"<a><b/></a>", b"<c x='1'/>"]}
    assert one.flush() == []
    counts = one.statistics()
    assert (counts["batches"], counts["documents"], counts["unmatched"], counts["waiting"]) == (1, 4, 1, 0)
    assert (counts["messages"], counts["documents sent"], counts["profiles"]) == (2, 4, 4)
    assert counts["bytes sent"] == sum(len(message.data) for message in messages)


def test_documents_and_messages_of_other_brokers_share_a_batch() -> None:
    first, second = Broker(Targets({"next": ["//a", "/c"]})), broker()
    first.receive([b"<a><b/></a>", b"<c x='1'/>", b"<d/>"])
    (message,) = first.flush()
    second.receive([b"<a/>"])
    second.receive_message(message.data)
    second.receive_message(RoXSum.build(["<b/>"]).encode())
    messages = second.flush()
    assert len(messages) == 2
    assert delivered(messages) == {
        "east": [b"<a/>", b"<a><b/></a>"],
        "west": [b"<a><b/></a>", b"<c x='1'/>", b"<b/>"],
    }


def test_a_batch_is_closed_when_it_has_its_documents() -> None:
    one = broker(limits=BatchLimits(documents=3, seconds=1e9))
    received = one.receive([b"<a n='%d'/>" % number for number in range(8)])
    assert [message.documents for message in received.messages] == [3, 3]
    assert delivered(received.messages)["east"] == [b"<a n='%d'/>" % number for number in range(6)]
    assert one.statistics()["waiting"] == 2
    more = one.receive_message(RoXSum.build([b"<a m='%d'/>" % number for number in range(5)]).encode())
    assert [message.documents for message in more.messages] == [3, 3]
    assert delivered(one.flush()) == {"east": [b"<a m='4'/>"]}


def test_a_batch_is_closed_before_it_has_too_many_bytes() -> None:
    one = broker(limits=BatchLimits(bytes=100, seconds=1e9))
    documents = [b"<a>%s</a>" % (b"x" * length) for length in (30, 30, 50, 500, 10)]
    received = one.receive(documents)
    assert [RoXSum.decode(message.data).documents() for message in received.messages] == [
        documents[:2],
        documents[2:3],
        documents[3:4],
    ]
    assert delivered(one.flush()) == {"east": documents[4:]}
    again = one.receive_message(RoXSum.build(documents).encode())
    assert [message.documents for message in again.messages + one.flush()] == [2, 1, 1, 1]


def test_a_batch_is_closed_when_its_first_document_has_waited() -> None:
    clock = Clock()
    one = broker(limits=BatchLimits(seconds=5), clock=clock)
    assert one.poll() == []
    one.receive([b"<a/>"])
    clock.now = 4.0
    one.receive([b"<a>2</a>"])
    assert one.poll() == []
    clock.now = 5.0
    assert delivered(one.poll()) == {"east": [b"<a/>", b"<a>2</a>"]}
    one.receive([b"<a/>"])
    clock.now = 11.0
    assert len(one.receive([b"<b/>"]).messages) == 2


def test_what_can_not_be_read_is_refused_alone(tmp_path: Path) -> None:
    one = broker()
    received = one.receive([b"<a>", b"<a/>", "no xml", tmp_path / "nowhere.xml", b"<b/>"])
    assert sorted(received.errors) == [0, 2, 3]
    assert all(isinstance(error, DocumentError) for error in received.errors.values())
    assert delivered(one.flush()) == {"east": [b"<a/>"], "west": [b"<b/>"]}
    assert one.statistics()["refused"] == 3
    with pytest.raises(TypeError, match="a list of documents"):
        one.receive(b"<a/>")  # type: ignore[arg-type]


def test_a_damaged_message_changes_nothing() -> None:
    one = broker()
    one.receive([b"<a/>"])
    with pytest.raises(MessageError):
        one.receive_message(RoXSum.build(["<b/>"]).encode()[:-1])
    assert delivered(one.flush()) == {"east": [b"<a/>"]}


def test_documents_with_too_many_label_paths_together_go_apart() -> None:
    one = broker(limits=BatchLimits(label_paths=10))
    wide = [b"<a>" + b"".join(b"<n%d_%d/>" % (k, n) for n in range(7)) + b"</a>" for k in range(3)]
    too_wide = b"<a>" + b"".join(b"<m%d/>" % n for n in range(20)) + b"</a>"
    received = one.receive([*wide, too_wide, b"<a/>"])
    assert list(received.errors) == [3] and isinstance(received.errors[3], LimitError)
    assert delivered(received.messages + one.flush()) == {"east": [*wide, b"<a/>"]}


def test_profiles_come_and_go() -> None:
    one = Broker()
    profile = one.subscribe("east", "/a")
    one.receive([b"<a/>"])
    one.unsubscribe(profile)
    assert one.flush() == []
    with pytest.raises(KeyError):
        one.unsubscribe(profile)
    with pytest.raises(PatternError):
        one.subscribe("east", "/a[")
    with pytest.raises(LimitError, match=r"BatchLimits\(documents=…\) must be a number above 0, got 0"):
        BatchLimits(documents=0)
