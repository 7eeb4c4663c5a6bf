"""Restarts from a snapshot: the same answers as without it, whatever happened to the log or to the snapshot."""

import logging
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from msgspec import msgpack

from pathcast.broker import Broker, Publication
from pathcast.broker.restart import renew, restored
from pathcast.broker.restart_snapshot import RestartSnapshot, Restored
from pathcast.broker_log import BrokerState, DocumentRecord, ExpiryRecord, FeedRecord, TenantRecord, meta_of
from pathcast.log import Log, SqliteLog

from ..log.places import folder_in_memory
from .broker_world import TENANT, broker_in, delivered, published, subscription

_XPATHS = ["//a", "//b", "/r/a", "//a[@x = '1']", "//r[not(b)]", "//r[b]/a"]
_DOCUMENTS = ["<a/>", "<b/>", "<r><a x='1'/></r>", "<r><b/><a/></r>", "<r/>", "<c/>"]
_IDS = ["s", "t", "u", "v"]
_FEEDS: list[tuple[str, ...]] = [(), ("news",), ("trades",), ("news", "trades")]

# What a history does: a name, and what it needs.
_put = st.tuples(
    st.just("put"),
    st.sampled_from(_IDS),
    st.sampled_from(_XPATHS),
    st.sampled_from(_FEEDS),
    st.sampled_from(["ada", "bob"]),
)
_steps = st.one_of(
    _put,
    _put,
    st.tuples(st.just("end"), st.sampled_from(_IDS)),
    st.tuples(st.just("publish"), st.sampled_from(["news", "trades", "new"]), st.sampled_from(_DOCUMENTS)),
    st.tuples(st.just("publish"), st.sampled_from(["news", "trades", "new"]), st.sampled_from(_DOCUMENTS)),
    st.tuples(st.just("acknowledge"), st.sampled_from(_IDS)),
    st.tuples(st.just("bury"), st.sampled_from(_IDS)),
    st.tuples(st.just("guard"), st.sampled_from([None, "//a", "//r"])),
    st.tuples(st.just("feed"), st.sampled_from(["news", "trades"]), st.sampled_from([1, 1_000])),
    st.tuples(st.just("remove feed"), st.sampled_from(["news", "trades"])),
    st.tuples(st.just("expire"), st.sampled_from(["news", "trades"])),
    st.tuples(st.just("trim")),
    st.tuples(st.just("snapshot")),
)


def _small(folder: Path, compiled: int) -> RestartSnapshot:
    """A snapshot that is written whenever anything changed."""
    return RestartSnapshot(folder, few=0, compiled=compiled)


def _do(broker: Broker, step: tuple[Any, ...]) -> None:
    match step:
        case "put", id, xpath, feeds, subscriber:
            broker.subscribe(subscription(id, xpath, feeds, subscriber=subscriber)).result()
        case "end", id:
            broker.unsubscribe(TENANT, id).result()
        case "publish", feed, document:
            broker.publish(feed, [Publication(document.encode(), f"{document}{broker.log.head % 3}")]).result()
        case "acknowledge", id if (TENANT, id) in broker.state.subscriptions:
            pulled = [each.entry.sequence for each in broker.pull(TENANT, id, 2).deliveries]
            broker.acknowledge(TENANT, id, pulled[-1:])[0].result()
        case "bury", id if (TENANT, id) in broker.state.subscriptions:
            broker.give_back(TENANT, id, [each.entry.sequence for each in broker.pull(TENANT, id, 2).deliveries])
            broker.bury(TENANT, id, 1).result()
        case "guard", xpath:
            broker.change([TenantRecord(TENANT, xpath, xpath)]).result()
        case "feed", name, depth:
            broker.change([FeedRecord(name, {"depth": depth})]).result()
        case "remove feed", name:
            broker.change([FeedRecord(name, removed=True), ExpiryRecord(name)]).result()
        case "expire", name:
            broker.change([ExpiryRecord(name)]).result()
        case ("trim",):
            broker.trim(broker.log.head)


def content_of(state: BrokerState, log: Log | None = None) -> dict[str, Any]:
    """All that a state says, in one order, but for versions of subscriptions without a document in the log."""
    first = 1 if log is None else log.first
    lags = sorted(state.subscriptions.settled())
    assert lags == sorted(each.cursor.settled for each in state.subscriptions.values() if each.cursor is not None)
    state.forget_before(first)
    found: dict[str, Any] = msgpack.decode(state.checkpoint())
    found["subscriptions"].sort(key=lambda each: each["versions"][-1]["record"]["id"])
    for each in found["subscriptions"]:  # a cursor that nothing has moved is not in the log
        each["cursor"] = each["cursor"] or [each["begin"] - 1, []]
        if log is not None:
            each["versions"] = [version for version in each["versions"] if _is_needed(version, log)]
    for name in ("ada", "bob", None):
        found[f"ids of {name}"] = state.directory.after(TENANT, "", 99, name), state.directory.count(TENANT, name)
    found["ids behind"] = state.directory.after(TENANT, "s", 1)
    found["tenants"] = state.directory.tenants()
    found["keys"] = sorted(state.subscriptions), len(state.subscriptions)
    found["everywhere"] = sorted(each.record.id for each in state.subscriptions.everywhere())
    found["head"], found["usage"] = state.head, state.usage_of(TENANT)
    return found


def _is_needed(version: dict[str, Any], log: Log) -> bool:
    """Whether a version is in force, or the log has a document from its time."""
    if version["end"] is None:
        return True
    entries = log.read(max(log.first, version["begin"]), version["end"], kinds=("document",), bodies=False)
    records = [meta for each in entries if isinstance(meta := meta_of(each), DocumentRecord)]
    feeds = version["record"].get("feeds")
    return any(each.error is None and each.feed in (feeds or (each.feed,)) for each in records)


def _uses(restored: Restored) -> dict[str, dict[str, int]]:
    """How many subscriptions use a pattern. A guard's pattern stays in the index, however often it was set."""
    state, indexes = restored
    for index in indexes.values():
        for text, number, _ in index.patterns():
            found = index.pattern(text)
            assert found is not None
            assert (found.number, found.rebuilt) == (number, True)
        assert len(index) == len(list(index.patterns()))
    guards = {*state.guard_patterns(), "//a", "//r"}
    named = {name for each in state.subscriptions.values() for name in each.record.feeds}
    assert set(indexes) == named | state.feeds.keys()
    return {
        name: {text: uses for text, _, uses in index.patterns() if text not in guards}
        for name, index in indexes.items()
    }


def _answers(broker: Broker) -> dict[str, Any]:
    """What subscribers get, and what they can ask for."""
    broker.rebuild.wait()
    first = broker.log.first - 1
    ids = sorted(id for _, id in broker.state.subscriptions)
    deliveries = {id: delivered(broker, id, first) for id in ids}
    scanned = {id: broker.deliveries(broker.state.subscriptions[TENANT, id], first, 9).sequences for id in ids}
    cursors = {id: broker.state.subscriptions[TENANT, id].present_cursor() for id in ids}
    return {"deliveries": deliveries, "first of them": scanned, "cursors": cursors}


@contextmanager
def _log_in(folder: Path, *, read_only: bool = False) -> Iterator[SqliteLog]:
    with closing(SqliteLog(folder, segment_bytes=400, read_only=read_only)) as log:
        yield log


_BEGIN = [("publish", "news", "<a/>"), ("publish", "trades", "<b/>"), ("put", "s", "//b", (), "ada")]


@settings(
    max_examples=40, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.explicit, Phase.generate]
)
@given(
    st.lists(_steps, max_size=15), st.lists(_steps, max_size=15), st.lists(_steps, max_size=8), st.sampled_from([1, 3])
)
def test_a_restart_from_a_snapshot_is_one_from_the_log(
    before: list[tuple[Any, ...]], between: list[tuple[Any, ...]], after: list[tuple[Any, ...]], compiled: int
) -> None:
    """Whatever was done before the snapshot, between it and the restart, and after the restart."""
    with folder_in_memory() as root:
        with broker_in_small_segments(root / "log") as broker:
            for step in [*_BEGIN, *before, ("snapshot",), *between]:
                if step == ("snapshot",):
                    with _log_in(root / "log", read_only=True) as log:
                        renew(_small(root / "snapshot", compiled), log)
                _do(broker, step)
            shutil.copytree(root / "log", root / "with", ignore=shutil.ignore_patterns("*-shm"))
        shutil.copytree(root / "with", root / "without")
        for name in ("with", "without"):  # the state alone, then brokers that continue
            shutil.copytree(root / name, root / f"{name} again")
        with _log_in(root / "with again") as one, _log_in(root / "without again") as other:
            here, there = restored(one, _small(root / "snapshot", compiled)), restored(other)
            assert content_of(here.state, one) == content_of(there.state, other)
            assert _uses(here) == _uses(there)
        with (
            broker_in_small_segments(root / "with", _small(root / "snapshot", compiled)) as fast,
            broker_in_small_segments(root / "without") as slow,
        ):
            assert _answers(fast) == _answers(slow)
            for step in after:
                _do(fast, step)
                _do(slow, step)
            assert _answers(fast) == _answers(slow)
            assert content_of(fast.state, fast.log) == content_of(slow.state, slow.log)
        # The snapshot that `close` wrote, of rows that were opened and rows that never were.
        with _log_in(root / "with") as one, _log_in(root / "without") as other:
            here, there = restored(one, _small(root / "snapshot", compiled)), restored(other)
            assert here.state.since_snapshot == (0, 0)
            assert content_of(here.state, one) == content_of(there.state, other)
            assert _uses(here) == _uses(there)


@contextmanager
def broker_in_small_segments(folder: Path, snapshot: RestartSnapshot | None = None) -> Iterator[Broker]:
    """A broker whose log can be trimmed after a few records."""
    with closing(Broker(SqliteLog(folder, segment_bytes=400), snapshot=snapshot, clock=lambda: 0.0)) as broker:
        yield broker


def _with_snapshot(folder: Path) -> RestartSnapshot:
    """A log with four subscriptions and a document, and its snapshot, which `close` writes."""
    snapshot = _small(folder / "snapshot", 1)
    with broker_in(folder / "log", snapshot=snapshot) as broker:
        for id, xpath in zip(_IDS, _XPATHS, strict=False):
            broker.subscribe(subscription(id, xpath)).result()
        published(broker, "news", "<a/>")
    return snapshot


def _starts_without(folder: Path, snapshot: RestartSnapshot, caplog: pytest.LogCaptureFixture, reason: str) -> None:
    """The broker starts all the same, without the snapshot, and one line says why."""
    caplog.clear()
    with caplog.at_level(logging.WARNING), reading(folder / "log") as log:
        assert snapshot.opened(log) is None
    assert len(caplog.messages) == 1
    assert reason in caplog.text
    with broker_in(folder / "log", snapshot=snapshot) as broker:
        assert sorted(id for _, id in broker.state.subscriptions) == _IDS
        assert delivered(broker, "s", broker.log.first - 1)


@contextmanager
def reading(folder: Path) -> Iterator[SqliteLog]:
    with closing(SqliteLog(folder, read_only=True)) as log:
        yield log


def test_a_restart_reads_the_snapshot_and_only_the_records_after_it(tmp_path: Path) -> None:
    snapshot = _with_snapshot(tmp_path)
    with broker_in(tmp_path / "log", snapshot=snapshot) as broker:
        assert broker.state.since_snapshot == (0, 0)
        broker.subscribe(subscription("w", "//w")).result()
        assert broker.state.since_snapshot == (1, 1)
        published(broker, "news", "<w/>", "<a/>")
        assert len(delivered(broker, "w")) == 1
        assert len(delivered(broker, "s")) == 2


def test_a_guard_that_was_set_after_the_snapshot_hides_documents(tmp_path: Path) -> None:
    """Also with the index of documents that were published before it was set."""
    snapshot = _with_snapshot(tmp_path)
    with broker_in(tmp_path / "log") as broker:
        broker.change([TenantRecord(TENANT, "//hidden", "//hidden")]).result()
    with broker_in(tmp_path / "log", snapshot=snapshot) as broker:
        assert broker.state.since_snapshot == (1, 1)
        assert all(index.pattern("//hidden") is not None for index in broker.indexes.values())
        published(broker, "news", "<a/>")
        [shown] = published(broker, "news", "<a><hidden/></a>")
        assert delivered(broker, "s") == [6, shown]


def test_without_a_snapshot_nothing_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    snapshot = _with_snapshot(tmp_path)
    shutil.rmtree(snapshot.folder)
    with reading(tmp_path / "log") as log:
        assert snapshot.opened(log) is None
    assert not caplog.messages


def test_few_changes_are_read_again_rather_than_saved(tmp_path: Path) -> None:
    snapshot = RestartSnapshot(tmp_path / "snapshot", few=3)
    for id in "st":
        with broker_in(tmp_path / "log", snapshot=snapshot) as broker:
            broker.subscribe(subscription(id, "//a")).result()
        assert not snapshot.folder.exists()
    with broker_in(tmp_path / "log", snapshot=snapshot) as broker:
        broker.subscribe(subscription("u", "//a")).result()
    assert snapshot.folder.exists()


def test_a_snapshot_of_another_log_is_not_used(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Not even if both logs have as many records: a backup that was restored has a past of its own."""
    snapshot = _with_snapshot(tmp_path)
    shutil.rmtree(tmp_path / "log")
    with broker_in(tmp_path / "log") as broker:
        for id, xpath in zip(_IDS, reversed(_XPATHS), strict=False):
            broker.subscribe(subscription(id, xpath)).result()
        published(broker, "news", "<a/>", "<r><b/><a/></r>")
    _starts_without(tmp_path, snapshot, caplog, "differs from the last record of the snapshot")


def test_a_snapshot_that_is_ahead_of_the_log_is_not_used(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with broker_in(tmp_path / "log") as broker:
        for id, xpath in zip(_IDS, _XPATHS, strict=False):
            broker.subscribe(subscription(id, xpath)).result()
        published(broker, "news", "<a/>")
    shutil.copytree(tmp_path / "log", tmp_path / "backup")
    snapshot = _small(tmp_path / "snapshot", 1)
    with broker_in(tmp_path / "log", snapshot=snapshot) as broker:
        broker.unsubscribe(TENANT, "s").result()
    shutil.rmtree(tmp_path / "log")
    (tmp_path / "backup").rename(tmp_path / "log")
    _starts_without(tmp_path, snapshot, caplog, "which the log does not have")


def test_a_snapshot_before_the_first_record_is_not_used(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    snapshot = _with_snapshot(tmp_path)
    with broker_in_small_segments(tmp_path / "log") as broker:
        for _ in range(20):
            published(broker, "news", "<a/>")
        assert broker.trim(broker.log.head) > 8
        published(broker, "news", "<a/>")
    _starts_without(tmp_path, snapshot, caplog, "which the log does not have")


@pytest.mark.parametrize(("name", "value"), [("FORMAT", 0), ("SEMANTICS", 99)])
def test_a_snapshot_of_another_version_is_not_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, name: str, value: int
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(f"pathcast.broker.restart_snapshot.{name}", value)
        snapshot = _with_snapshot(tmp_path)
    _starts_without(tmp_path, snapshot, caplog, f"its {name.lower()} is {value}")


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_size)


def _flipped(content: bytes, at: int) -> bytes:
    return content[:at] + bytes([content[at] ^ 0x41]) + content[at + 1 :]


_DAMAGES: list[Callable[[bytes, int], bytes]] = [
    _flipped,
    lambda content, at: content[:at],
    lambda content, at: content[:at] + b"\0" + content[at:],
    lambda content, at: content[:at] + content[at + 1 :],
]


def test_no_damaged_byte_changes_an_answer(tmp_path: Path) -> None:
    """A changed, missing or additional byte, anywhere: the snapshot is rejected."""
    snapshot, random = _with_snapshot(tmp_path), Random(1)
    with reading(tmp_path / "log") as log:
        expected = content_of(restored(log).state)
        for path in _files(snapshot.folder):
            content = path.read_bytes()
            damages = [(at, damage) for at in {0, len(content) - 1} for damage in _DAMAGES]
            damages += [(random.randrange(len(content)), random.choice(_DAMAGES)) for _ in range(3)]
            for at, damage in damages:
                path.write_bytes(damage(content, at))
                assert snapshot.opened(log) is None, f"{path.name} is not covered at {at}"
            path.write_bytes(content)
        found = snapshot.opened(log)
        assert found is not None
        assert content_of(found.state) == expected


def test_a_file_that_is_missing_is_a_refusal(tmp_path: Path) -> None:
    snapshot = _with_snapshot(tmp_path)
    with reading(tmp_path / "log") as log:
        for path in _files(snapshot.folder):
            content = path.read_bytes()
            path.unlink()
            assert snapshot.opened(log) is None
            path.write_bytes(content)
        assert snapshot.opened(log) is not None
