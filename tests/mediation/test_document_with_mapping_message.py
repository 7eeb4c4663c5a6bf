"""A document is sent with its mapping or with a reference to it, and is never matched with another mapping."""

import hashlib
import hmac
import re
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pathcast
from pathcast.errors import MappingError, MessageError
from pathcast.mediation import Mediator, Rename
from pathcast.mediation.mappings.document_with_mapping_message import LIMIT, pack, unpack
from tests.mediation.test_operator_derivation import DOCUMENT, GLOBAL, LOCAL, SAME


@pytest.fixture(scope="module")
def mediator() -> Mediator:
    made = Mediator(GLOBAL)
    made.register("u", LOCAL, correspondence=SAME)
    return made


def subscriptions() -> pathcast.Subscriptions:
    made = pathcast.Subscriptions()
    made.add("//instructor/assistant")
    return made


@pytest.mark.parametrize("with_mapping", [True, False])
def test_a_message_comes_back_as_it_was(mediator: Mediator, with_mapping: bool) -> None:
    document = DOCUMENT.encode()
    envelope = unpack(mediator.pack(document, "u", with_mapping=with_mapping))
    assert (envelope.name, envelope.version, envelope.document) == ("u", 1, document)
    assert envelope.mapping == (mediator.mapping("u") if with_mapping else None)


def test_a_reference_is_small_and_a_mapping_not_large(mediator: Mediator) -> None:
    assert len(mediator.pack(b"", "u", with_mapping=False)) < 50
    assert len(mediator.pack(b"", "u")) < 1500


def test_a_router_that_holds_nothing_matches_what_comes_with_its_mapping(mediator: Mediator) -> None:
    router = Mediator(GLOBAL).compile(subscriptions())
    matches, document = router.match_message(mediator.pack(DOCUMENT.encode(), "u"))
    assert (matches.ids.tolist(), document) == ([1], DOCUMENT.encode())
    with pytest.raises(MappingError, match="schema 'u' is not registered"):
        router.match_message(mediator.pack(DOCUMENT.encode(), "u", with_mapping=False))


def test_a_router_with_another_or_no_such_version_refuses_the_document(mediator: Mediator) -> None:
    message = mediator.pack(DOCUMENT.encode(), "u", with_mapping=False)
    assert mediator.compile(subscriptions()).match_message(message)[0].ids.tolist() == [1]
    other = Mediator(GLOBAL)
    other.register("u", LOCAL, correspondence={**SAME, "university/course/room": "university/course/schedule"})
    with pytest.raises(MappingError, match="mapping of schema 'u', version 1, differs from the sender's"):
        other.compile(subscriptions()).match_message(message)
    newer = mediator.mapping("u").edited([Rename("university", "u")])
    with pytest.raises(MappingError, match="has no version 2 \\(known versions: 1\\);"):
        mediator.compile(subscriptions()).match_message(pack(DOCUMENT.encode(), newer, with_mapping=False))


def test_a_signature_over_the_original_holds_where_the_document_is_delivered(mediator: Mediator) -> None:
    document = DOCUMENT.replace("<course", "<!-- as it was -->\r\n<course").encode()
    signature = hmac.new(b"key", document, hashlib.sha256).digest()
    matches, delivered = mediator.compile(subscriptions()).match_message(mediator.pack(document, "u"))
    assert matches.ids.tolist() == [1]
    assert hmac.compare_digest(hmac.new(b"key", delivered, hashlib.sha256).digest(), signature)


@given(data=st.data())
def test_messages_that_are_cut_off_or_changed_are_refused(mediator: Mediator, data: st.DataObject) -> None:
    message = mediator.pack(b"<a/>", "u", with_mapping=data.draw(st.booleans()))
    with pytest.raises(MessageError):
        unpack(message[: data.draw(st.integers(0, len(message) - 1))])
    at, bit = data.draw(st.integers(0, len(message) - 1)), data.draw(st.integers(0, 7))
    with pytest.raises(MessageError):
        unpack(message[:at] + bytes([message[at] ^ 1 << bit]) + message[at + 1 :])


def sealed(body: bytes) -> bytes:
    """A message that a sender who knows the form could forge."""
    return b"PCmd" + zlib.crc32(body).to_bytes(4, "big") + body


@given(st.binary(max_size=200))
def test_other_bytes_are_refused(data: bytes) -> None:
    for message in (
        data,
        b"PCmd" + data,
        sealed(b"\1\1" + data),
        sealed(b"\1\1\1x\1" + bytes(16) + data),
    ):
        with pytest.raises(MessageError):
            unpack(message)


def test_a_mapping_that_unpacks_to_very_much_is_refused(mediator: Mediator) -> None:
    body = mediator.pack(b"", "u", with_mapping=False)[8:]
    bomb = zlib.compress(b"#" * (LIMIT + 10), 9)
    length = bytes([len(bomb) & 127 | 128, len(bomb) >> 7 & 127])
    with pytest.raises(MessageError, match=re.escape(f"more than {LIMIT:,} bytes")):
        unpack(sealed(body[:1] + b"\1" + body[2:] + length + bomb))


def test_a_mapping_that_is_not_the_one_named_is_refused(mediator: Mediator) -> None:
    body = mediator.pack(b"<a/>", "u")[8:]
    assert unpack(sealed(body)).name == "u"
    with pytest.raises(MessageError, match="but its mapping is a different one"):
        unpack(sealed(body[:3] + b"v" + body[4:]))
