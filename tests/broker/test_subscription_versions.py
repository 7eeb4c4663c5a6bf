"""Versions of a subscription: none that a document may need is forgotten, however often the subscription changes."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathcast.broker import Accepted, Broker, Publication
from pathcast.broker.deliveries.delivery_search import SEARCHES
from pathcast.broker.restart_snapshot import RestartSnapshot
from pathcast.broker_log import BrokerState, DocumentRecord, Failure, Meta, SubscriptionRecord
from pathcast.log import JetStreamLog, Log, SqliteLog

from ..log.nats_servers import NatsServer
from .broker_world import delivered, subscription

# More than fit in any round bound.
MANY = 1_100


def changed_often(broker: Broker, times: int = MANY) -> list[int]:
    """Change a subscription again and again, each time with a document that only this version matches."""
    results = []
    for number in range(times):
        broker.subscribe(subscription("s", f"//v{number}"))
        results.append(broker.publish("news", [Publication(b"<v%d/>" % number)]))
    sequences = [each.sequence for result in results for each in result.result() if isinstance(each, Accepted)]
    assert len(sequences) == times
    return sequences


def check(log: Log, expected: list[int], snapshot: RestartSnapshot | None = None) -> None:
    broker = Broker(log, snapshot=snapshot)
    try:
        came = []
        while some := [each.entry.sequence for each in broker.pull("test", "s", 1_000, in_flight=65_536).deliveries]:
            came += some
        assert came == expected
    finally:
        broker.close()


def test_a_subscription_with_many_versions_gets_all_documents_after_every_kind_of_restart(tmp_path: Path) -> None:
    snapshot = RestartSnapshot(tmp_path / "snapshot", few=1)
    broker = Broker(SqliteLog(tmp_path / "log"), snapshot=snapshot)
    try:
        expected = changed_often(broker)
        assert delivered(broker, "s", step=100) == expected
    finally:
        broker.close()
    assert snapshot.folder.exists()
    check(SqliteLog(tmp_path / "log"), expected, snapshot)
    check(SqliteLog(tmp_path / "log"), expected)  # from the checkpoint
    for each in (tmp_path / "log").glob("checkpoint-*"):
        each.unlink()
    check(SqliteLog(tmp_path / "log"), expected)  # from the records


@pytest.mark.slow
def test_a_subscription_with_many_versions_gets_all_documents_on_jetstream(nats_server: NatsServer) -> None:
    """As many as a search goes through at a time, and more; each costs reads of the log."""
    broker = Broker(JetStreamLog.open(nats_server.url, "many-versions"))
    try:
        expected = changed_often(broker, 10 * SEARCHES)
    finally:
        broker.close()
    check(JetStreamLog.open(nats_server.url, "many-versions"), expected)


def put(pattern: str, feeds: tuple[str, ...], begin: int | None) -> SubscriptionRecord:
    return SubscriptionRecord("test", "s", "ada", pattern, pattern, {}, feeds, None, {}, begin)


CHANGES = st.builds(
    put,
    st.sampled_from(["//a", "//b"]),
    st.sampled_from([(), ("news",), ("news", "trades")]),
    st.sampled_from([None, None, 1, 5, 40]),
)
DOCUMENTS = st.builds(
    DocumentRecord,
    feed=st.sampled_from(["news", "trades"]),
    error=st.sampled_from([None, None, None, Failure("broken")]),
)
RESTARTS = st.sampled_from(["checkpoint", "snapshot"])


@settings(max_examples=300)
@given(steps=st.lists(CHANGES | DOCUMENTS | RESTARTS, max_size=60), skipped=st.integers(0, 60))
def test_versions_are_kept_exactly_as_long_as_a_document_may_need_them(steps: list[Meta | str], skipped: int) -> None:
    """`skipped`: documents up to this sequence are not applied, as after a restart."""
    state, sequence = BrokerState(), 0
    versions: list[tuple[int, int | None, SubscriptionRecord]] = []
    documents: dict[int, str] = {}
    restarted = False
    for step in steps:
        if step == "checkpoint":
            state, restarted = BrokerState.restored(state.head, state.checkpoint()), True
        elif step == "snapshot":
            state, restarted = BrokerState.opened(state.head, state.arrays()), True
        elif isinstance(step, DocumentRecord):
            sequence += 1
            if step.error is None:
                documents[sequence] = step.feed
            if sequence <= skipped:
                restarted = True
            else:
                state.apply(sequence, step)
        elif isinstance(step, SubscriptionRecord):
            sequence += 1
            if not versions:
                versions.append((step.begin or sequence, None, step))
            elif (versions[-1][2].pattern, versions[-1][2].feeds) != (step.pattern, step.feeds):
                versions[-1] = (versions[-1][0], sequence, versions[-1][2])
                versions.append((max(step.begin or 0, sequence), None, step))
            is_current, expected = state.head == sequence - 1, state.earlier_versions(step)
            state.apply(sequence, step)
            assert not is_current or len(state.subscriptions["test", "s"].versions) == expected + 1
    if not versions:
        return
    kept = state.subscriptions["test", "s"].versions
    needed = [
        (begin, end)
        for begin, end, record in versions
        if end is None
        or any(begin <= each < end and feed in (record.feeds or (feed,)) for each, feed in documents.items())
    ]
    found = [(each.begin, each.end) for each in kept]
    assert [each for each in found if each in needed] == needed
    if not restarted:
        assert found == needed
