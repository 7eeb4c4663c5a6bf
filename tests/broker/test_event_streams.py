"""What a stream of events carries beside documents: heartbeats from which a reader resumes, and gaps."""

import asyncio
import json
import random
from collections.abc import AsyncIterator, Hashable, Iterable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager
from pathlib import Path

import pytest

from pathcast.broker import Broker
from pathcast.broker.api.delivery_wakeups import Wakeups
from pathcast.broker.api.document_events import DocumentEvents
from pathcast.broker.api.endpoints import events_api
from pathcast.broker.api.endpoints.events_api import HEARTBEAT_SECONDS, EventStream
from pathcast.broker_log import StandingSubscription
from pathcast.log import SqliteLog

from .broker_world import TENANT, broker_in, matches, published, subscription
from .served_broker import Events, Served, served

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "broker.md"
LARGE = f"<a>{'x' * 20_000}</a>"


@asynccontextmanager
async def stream_of(
    broker: Broker, *, woken: bool = True, registered: list[int] | None = None
) -> AsyncIterator[AsyncIterator[bytes]]:
    """The events of subscription `s` from now on, with a heartbeat every few milliseconds.

    `registered` gets an item whenever the stream registers.
    """
    wakeups = Wakeups(asyncio.get_running_loop())
    register = wakeups.registered

    def noted(keys: Iterable[Hashable]) -> AbstractContextManager[asyncio.Event]:
        if registered is not None:
            registered.append(len(registered))
        return register(keys)

    wakeups.registered = noted  # type: ignore[method-assign,assignment]
    end = broker.listen(wakeups.processed) if woken else None
    standing = broker.state.subscriptions[TENANT, "s"]
    stream = EventStream(
        broker, wakeups, lambda: [("s", standing)], [("subscription", TENANT, "s")], broker.matched_to, DocumentEvents()
    )
    assert stream.heartbeat_seconds == HEARTBEAT_SECONDS
    stream.heartbeat_seconds = 0.02
    yield stream.events(None, inline=True, named=False)
    if end is not None:
        end()


def beat(position: int) -> bytes:
    return b"id: %d\n: heartbeat\n\n" % position


def test_heartbeats_carry_the_position_up_to_which_nothing_was_missed(tmp_path: Path) -> None:
    async def read(broker: Broker) -> None:
        async with stream_of(broker) as events:
            begin = broker.matched_to
            assert await anext(events) == beat(begin)
            assert await anext(events) == beat(begin)
            *_, head = published(broker, "news", "<b/>", "<b/>", "<b/>")
            while (event := await anext(events)) != beat(head):
                assert event == beat(begin)
            (sequence,) = published(broker, "news", "<a/>")
            while not (event := await anext(events)).startswith(b"id: %d\nevent: document" % sequence):
                assert event == beat(head)
            assert await anext(events) == beat(sequence)

    with broker_in(tmp_path) as broker:
        broker.subscribe(subscription("s", "//a")).result()
        asyncio.run(read(broker))


def test_a_heartbeat_does_not_pass_a_document_that_was_not_written_yet(tmp_path: Path) -> None:
    """The document is published when the time of the heartbeat comes: here, nothing but a heartbeat finds it."""

    async def read(broker: Broker) -> None:
        async with stream_of(broker, woken=False) as events:
            begin = broker.matched_to
            assert await anext(events) == beat(begin)
            waiting = asyncio.ensure_future(anext(events))
            await asyncio.sleep(0)  # it searches, finds nothing, and waits
            (sequence,) = published(broker, "news", "<a/>")
            assert await waiting == beat(begin)
            assert (await anext(events)).startswith(b"id: %d\nevent: document" % sequence)

    with broker_in(tmp_path) as broker:
        broker.subscribe(subscription("s", "//a")).result()
        asyncio.run(read(broker))


def test_a_stream_registers_once_for_many_batches(tmp_path: Path) -> None:
    """A subscriber may have very many subscriptions, and each is registered."""

    async def read(broker: Broker, registered: list[int]) -> None:
        async with stream_of(broker, registered=registered) as events:
            await anext(events)
            for _ in range(20):
                (sequence,) = published(broker, "news", "<a/>")
                while not (event := await anext(events)).startswith(b"id: %d\nevent: document" % sequence):
                    assert event.endswith(b": heartbeat\n\n")

    with broker_in(tmp_path) as broker:
        broker.subscribe(subscription("s", "//a")).result()
        published(broker, "news", "<b/>")  # the feed is known
        registered: list[int] = []
        asyncio.run(read(broker, registered))
    assert len(registered) == 1


@pytest.mark.parametrize("seed", range(3))
def test_a_stream_has_every_delivery_while_subscriptions_change_and_feeds_come(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    documents: dict[int, tuple[str, str]] = {}  # by sequence: feed, body
    spans: list[tuple[str, tuple[str, ...], int, int]] = []  # pattern, feeds, from, to before

    def work(broker: Broker) -> int:
        open_: dict[str, tuple[str, tuple[str, ...], int]] = {}
        for _ in range(200):
            id, name, feed = f"s{draw.randrange(6)}", draw.choice("abc"), draw.choice(["news", "trades", "late"])
            if draw.random() < 0.7:
                (sequence,) = published(broker, feed, f"<{name}/>")
                documents[sequence] = feed, f"<{name}/>"
                continue
            feeds = draw.choice([(), (feed,)])
            at = broker.subscribe(subscription(id, f"//{name}", feeds)).result()
            if id in open_:
                spans.append((*open_[id], at))
            open_[id] = f"//{name}", feeds, at
        spans.extend((*each, 1 << 62) for each in open_.values())
        broker.subscribe(subscription("last", "//last")).result()
        (end,) = published(broker, "news", "<last/>")
        return end

    async def read(broker: Broker) -> list[int]:
        wakeups = Wakeups(asyncio.get_running_loop())
        broker.listen(wakeups.processed)
        state = broker.state

        def standing() -> list[tuple[str, StandingSubscription]]:
            found = [(id, state.subscriptions.get((TENANT, id))) for id in state.directory.all_of(TENANT, "ada")]
            return [(id, each) for id, each in found if each is not None]

        stream = EventStream(broker, wakeups, standing, [("subscriber", TENANT, "ada")], 0, DocumentEvents())
        stream.heartbeat_seconds = 0.5
        working = asyncio.get_running_loop().run_in_executor(None, work, broker)
        found: list[int] = []
        async for event in stream.events(None, inline=True, named=True):
            of_documents = [each for each in event.split(b"\n\n") if b"event: document" in each]
            found += [int(each.split(b"\n")[0].removeprefix(b"id: ")) for each in of_documents]
            if working.done() and found and found[-1] == await working:
                return found
        raise AssertionError("the stream ended")

    with broker_in(tmp_path) as broker:
        received = asyncio.run(read(broker))
    wanted = [
        sequence
        for sequence, (feed, body) in documents.items()
        if any(
            begin <= sequence < end and (not feeds or feed in feeds) and matches(pattern, body)
            for pattern, feeds, begin, end in spans
        )
    ]
    assert received[:-1] == wanted


@pytest.mark.parametrize("body", [{"xpath": "//a"}, {"xpath": "//a", "feeds": ["again"]}])
def test_a_feed_that_was_deleted_and_came_again_wakes_its_readers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: dict[str, object]
) -> None:
    monkeypatch.setattr(events_api, "HEARTBEAT_SECONDS", 3_600.0)  # nothing else wakes them
    with served(tmp_path) as broker:
        for number in range(2):
            broker.http.put(f"/v1/subscriptions/{number}", json={"xpath": f"//b{number}"}).raise_for_status()
        broker.http.put("/v1/subscriptions/s", json=body).raise_for_status()
        events = Events(broker, "/v1/subscriptions/s/events")
        events.next()
        for number in range(3):
            published = broker.http.post("/v1/feeds/again/documents", content="<a/>").json()["sequence"]
            assert events.next_of_kind("document")["id"] == str(published)
            if number < 2:
                broker.http.delete("/v1/feeds/again").raise_for_status()
                # The feed's patterns are numbered again: that of the reader has another number.
                broker.http.delete(f"/v1/subscriptions/{number}").raise_for_status()
        events.close()


def test_heartbeats_come_as_often_as_the_guide_states() -> None:
    assert f"at least every {HEARTBEAT_SECONDS:.0f} seconds" in " ".join(GUIDE.read_text(encoding="utf-8").split())


@pytest.fixture
def trimmed(tmp_path: Path) -> Iterator[tuple[Served, list[int]]]:
    """A broker of which the first documents were trimmed, and the sequences of all of them."""
    broker = Broker(SqliteLog(tmp_path, segment_bytes=1 << 16))
    with served(tmp_path, broker=broker) as found:
        found.http.put("/v1/subscriptions/s", json={"xpath": "//a", "config": {"from": 1}}).raise_for_status()
        sequences = [sequence for _ in range(20) for sequence in published(broker, "news", LARGE)]
        broker.trim(sequences[12])
        assert sequences[0] < broker.log.first <= sequences[12]
        assert broker.log.first in sequences
        yield found, sequences


@pytest.mark.parametrize("path", ["/v1/subscriptions/s/events", "/v1/subscribers/local/events"])
@pytest.mark.parametrize("place", [0, 3])
def test_a_gap_has_exactly_what_was_trimmed_and_the_next_event_is_the_first_that_is_left(
    trimmed: tuple[Served, list[int]], path: str, place: int
) -> None:
    broker, sequences = trimmed
    events = Events(broker, path, after=sequences[place])
    gap = events.next_of_kind("gap")
    first = broker.broker.log.first
    assert json.loads(gap["data"]) == {"from": sequences[place] + 1, "to": first - 1, "reason": "trimmed"}
    left = [int(events.next_of_kind("document")["id"]) for sequence in sequences if sequence >= first]
    assert left == [sequence for sequence in sequences if sequence >= first]
    events.close()


def test_there_is_no_gap_right_before_the_first_that_is_left(trimmed: tuple[Served, list[int]]) -> None:
    broker, _ = trimmed
    first = broker.broker.log.first
    events = Events(broker, "/v1/subscriptions/s/events", after=first - 1)
    assert events.next() == {"id": str(first - 1), "comment": "heartbeat"}
    assert int(events.next()["id"]) == first
    events.close()
