"""A checkpoint in pieces is the state as of its sequence, whatever is applied while it is packed."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import msgpack

from pathcast.broker_log import (
    BrokerState,
    CheckpointPacking,
    CursorRecord,
    DeadLetter,
    DeadLetterRecord,
    DeadLetterReplayRecord,
    DocumentRecord,
    FeedRecord,
    Meta,
    SinkDisabledRecord,
    SubscriptionRecord,
    TenantRecord,
    UnsubscriptionRecord,
)

_SINK = "https://example.org/"
_IDS = st.sampled_from("stuvwxyz")


def _subscription(id: str, xpath: str) -> SubscriptionRecord:
    return SubscriptionRecord("t", id, "ada", xpath, xpath, sink=_SINK)


_RECORDS: st.SearchStrategy[Meta] = st.one_of(
    st.builds(_subscription, _IDS, st.sampled_from(["//a", "//b"])),
    st.builds(_subscription, _IDS, st.sampled_from(["//a", "//b"])),
    st.builds(lambda id: UnsubscriptionRecord("t", id), _IDS),
    st.builds(lambda id, floor: CursorRecord("t", id, floor, (floor + 2,)), _IDS, st.integers(0, 9)),
    st.builds(lambda id: DeadLetterRecord("t", id, (DeadLetter(3, 5, "attempts"),)), _IDS),
    st.builds(lambda id: DeadLetterReplayRecord("t", id, (3,)), _IDS),
    st.builds(lambda id: SinkDisabledRecord("t", id, _SINK, "410"), _IDS),
    st.just(DocumentRecord("news")),
    st.just(FeedRecord("news", {"depth": 7})),
    st.just(TenantRecord("t", "//a", "//a")),
)


def _content(data: bytes) -> dict[str, Any]:
    """What a checkpoint says, with subscriptions by id."""
    found: dict[str, Any] = msgpack.decode(data)
    by_id = {each["versions"][-1]["record"]["id"]: each for each in found.pop("subscriptions")}
    return {**found, "by id": by_id}


def _applied(state: BrokerState, records: list[Meta]) -> None:
    for record in records:
        state.apply(state.head + 1, record)


def _reopened(state: BrokerState) -> BrokerState:
    """The same state from a snapshot, so that subscriptions are rows until somebody asks for them."""
    return BrokerState.opened(state.head, state.arrays())


@given(
    before=st.lists(_RECORDS, max_size=20),
    between=st.lists(st.lists(_RECORDS, max_size=3), max_size=9),
    most=st.integers(1, 3),
)
@pytest.mark.parametrize("from_snapshot", [False, True])
def test_records_that_are_applied_meanwhile_do_not_show(
    before: list[Meta], between: list[list[Meta]], most: int, *, from_snapshot: bool
) -> None:
    state = BrokerState()
    _applied(state, before)
    if from_snapshot:
        state = _reopened(state)
        _applied(state, before[:3])  # some rows are objects by now
    expected, head = _content(state.checkpoint()), state.head
    packing = state.begin_packing()
    while packing.left or between:
        _applied(state, between.pop() if between else [])
        left = packing.left
        packing.pack(most)
        assert packing.left == max(0, left - most)
    assert packing.sequence == head
    assert _content(b"".join(packing.pieces())) == expected


@given(st.lists(_RECORDS, max_size=20))
def test_a_restored_checkpoint_says_the_same(records: list[Meta]) -> None:
    state = BrokerState()
    _applied(state, records)
    restored = BrokerState.restored(state.head, state.checkpoint())
    assert _content(restored.checkpoint()) == _content(state.checkpoint())
    for each in (state, restored, _reopened(state)):
        each.forget_before(state.head + 1)
        assert not each.subscriptions.with_earlier_versions()


def test_packing_holds_nothing_once_its_pieces_are_taken() -> None:
    state = BrokerState()
    _applied(state, [_subscription("s", "//a")])
    packing = state.begin_packing()
    packing.pack()
    assert b"//a" in b"".join(packing.pieces())
    _applied(state, [_subscription("s", "//b")])
    assert isinstance(packing, CheckpointPacking)
    assert b"//" not in b"".join(packing.pieces())
