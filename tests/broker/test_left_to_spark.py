"""Matching that the broker leaves to Spark: the same deliveries, none lost and none twice, whenever matches come."""

import random
from pathlib import Path

import numpy as np
import pytest

from pathcast.broker import Broker
from pathcast.broker.deliveries.computed_matches import ComputedMatches, Range, RangeError
from pathcast.broker.left_to_spark import take_histories, work_of
from pathcast.broker_log import BrokerState, ExpiryRecord, FeedRecord
from pathcast.log import SqliteLog

from ..broker_log.log_history import History
from ..broker_log.test_match_logged_documents import Follower
from .broker_world import TENANT, broker_in, published, subscription
from .served_broker import Events, Served, served
from .spark_stand_in import matches_of, work_once


@pytest.mark.parametrize("seed", range(6))
def test_switching_loses_and_repeats_nothing(tmp_path: Path, seed: int) -> None:
    """Feeds go from broker to Spark and back; Spark is late, answers in parts and twice; the broker restarts."""
    draw = random.Random(seed)
    waited = 0

    def work(broker: Broker) -> None:
        nonlocal waited
        waited += work_once(broker, draw)

    def opened() -> Broker:
        return Broker(SqliteLog(tmp_path, segment_bytes=1 << 14), backfill=draw.choice([None, 0, 5]))

    history = History(opened(), seed, ("broker", "spark"), work)
    try:
        follower = Follower(history.broker.log, seed)
        total = settled = 0
        while settled < 30:
            if draw.random() < 0.02:
                history.broker.close()
                history.broker = opened()
                follower.log = history.broker.log
            if history.act() and draw.random() < 0.9:
                continue
            expected = history.settle()
            assert follower.step(history.broker.log.head) == expected
            total += len(expected)
            settled += 1
        assert total > 20
        assert waited > 10
    finally:
        history.broker.close()


def spark_feed(broker: Broker) -> None:
    broker.change([FeedRecord("news", matching="spark")]).result()


def test_a_reader_waits_until_spark_has_matched(tmp_path: Path) -> None:
    with broker_in(tmp_path) as broker:
        spark_feed(broker)
        broker.subscribe(subscription("s", "//a")).result()
        first = published(broker, "news", "<a/>", "<b/>")
        assert broker.pull(TENANT, "s", 9).deliveries == []
        # An acknowledgement of a document is checked against the document itself.
        assert broker.acknowledge(TENANT, "s", [first[0], first[1]])[1] == [first[1]]
        (work,) = work_of(broker).ranges
        assert (work.feed, work.to) == ("news", broker.log.head)
        other = published(broker, "mail", "<a/>")
        assert broker.pull(TENANT, "s", 9).deliveries == []  # in the order of the log
        work_once(broker)
        assert [each.entry.sequence for each in broker.pull(TENANT, "s", 9).deliveries] == other
        assert work_of(broker).ranges == []


def test_documents_of_other_feeds_are_no_work(tmp_path: Path) -> None:
    with broker_in(tmp_path) as broker:
        spark_feed(broker)
        published(broker, "news", "<a/>")
        work_once(broker)
        published(broker, "mail", "<a/>")
        assert work_of(broker).ranges == []
        broker.subscribe(subscription("s", "//a", ("news",))).result()
        published(broker, "mail", "<a/>")
        assert broker.deliveries(broker.state.subscriptions[TENANT, "s"], 0, 9).searched_to == broker.log.head


def test_unreadable_documents_are_still_rejected(tmp_path: Path) -> None:
    with broker_in(tmp_path) as broker:
        spark_feed(broker)
        with pytest.raises(AssertionError):
            published(broker, "news", "<a/>", "<broken")


def test_after_a_restart_spark_matches_again(tmp_path: Path) -> None:
    with broker_in(tmp_path) as broker:
        spark_feed(broker)
        broker.subscribe(subscription("s", "//a")).result()
        first = published(broker, "news", "<a/>")
        work_once(broker)
        state = BrokerState.restored(broker.state.head, broker.state.checkpoint())
        assert state.spark == broker.state.spark == {"news": ((1, None),)}
    with broker_in(tmp_path) as broker:
        broker.rebuild.wait()
        assert broker.pull(TENANT, "s", 9).deliveries == []
        later = published(broker, "news", "<a/>")
        assert [each.feed for each in work_of(broker).ranges] == ["news", "news"]
        work_once(broker)
        assert [each.entry.sequence for each in broker.pull(TENANT, "s", 9).deliveries] == first + later


def test_trimmed_and_expired_documents_are_not_waited_for(tmp_path: Path) -> None:
    with broker_in(tmp_path) as broker:
        spark_feed(broker)
        broker.subscribe(subscription("s", "//a")).result()
        sequences = [published(broker, "news", "<a/>" + " " * 70_000)[0] for _ in range(6)]
        first = broker.trim(sequences[2])
        assert first > sequences[0]
        broker.change([ExpiryRecord("news", sequences[4])]).result()
        (work,) = work_of(broker).ranges
        assert work.begin == sequences[4]
        work_once(broker)
        standing = broker.state.subscriptions[TENANT, "s"]
        assert broker.deliveries(standing, first, 9).sequences == sequences[4:]


def test_a_long_history_waits_for_spark_and_a_short_one_does_not(tmp_path: Path) -> None:
    with broker_in(tmp_path, backfill=2) as broker:
        old = published(broker, "news", *["<a/>", "<b/>"] * 3)
        for id, pattern, begin in (("long", "//a", old[0]), ("short", "//b", old[-1])):
            broker.subscribe(subscription(id, pattern, ("news",), begin)).result()
        new = published(broker, "news", "<a/>", "<b/>")
        assert broker.pull(TENANT, "long", 9).deliveries == []
        assert [each.entry.sequence for each in broker.pull(TENANT, "short", 9).deliveries] == [old[-1], new[1]]
        (history,) = work_of(broker).histories
        assert (history.feed, history.pattern, history.begin) == ("news", "//a", old[0])
        # From the end backwards: after each part, the rest is waited for.
        for begin in (old[3], old[0]):
            assert broker.pull(TENANT, "long", 9).deliveries == []
            to = work_of(broker).histories[0].to
            found = matches_of(broker, "news", begin, to, ["//a"])
            assert [take_histories(broker, "news", begin, to, found).result() for _ in range(2)] == [1, 0]
        assert [each.entry.sequence for each in broker.pull(TENANT, "long", 9).deliveries] == [*old[::2], new[0]]
        assert work_of(broker).histories == []


def test_a_range_that_does_not_follow_is_refused() -> None:
    computed, bounds = ComputedMatches(), Range(1, 100)
    computed.begin_at(50, ((10, None),))
    computed.leave(((10, None),), 90)
    assert computed.ranges(1, 99) == [(50, 100), (10, 50)]
    with pytest.raises(RangeError, match="begins at 60, but documents from 50 on"):
        computed.cover(60, 70, bounds, [])
    with pytest.raises(RangeError, match="may end before 50 at most"):
        computed.cover(10, 51, bounds, [])
    with pytest.raises(RangeError, match="may end before 100 at most"):
        computed.cover(50, 101, bounds, [])
    known = np.array([5, 12, 30])
    assert computed.cover(1, 31, bounds, [(7, known)]).sequences.tolist() == [12, 30]  # 5 is the broker's own
    assert computed.cover(1, 40, bounds, [(7, np.array([12, 30, 35]))]).sequences.tolist() == [35]
    assert computed.after(7, 0, 9) == [12, 30, 35]
    assert computed.among(7, np.array([12, 13, 35])).tolist() == [True, False, True]
    assert (computed.pending(1, 100), computed.pending(45, 100), computed.pending(91, 100)) == (40, 45, 100)


def test_waiting_streams_and_pulls_wake_when_matches_come(tmp_path: Path) -> None:
    with served(tmp_path, broker=Broker(SqliteLog(tmp_path / "log"), backfill=0)) as server:
        http = server.http
        (old,) = published(server.broker, "news", "<a/>")
        assert http.put("/v1/feeds/news", json={"matching": "spark"}).json()["matching"] == "spark"
        _put(server, "s", old)
        events = Events(server, "/v1/subscriptions/s/events", 0)
        new = http.post("/v1/feeds/news/documents", content="<a/>").json()["sequence"]
        while not (work := http.get("/v1/matching").json())["histories"]:
            pass
        patterns = http.get("/v1/matching/patterns?feed=news").json()["patterns"]
        assert patterns == ["//a"]
        history, (part,) = work["histories"][0], http.get("/v1/matching").json()["ranges"]
        answer = http.put("/v1/matching/ranges", json=_body(part, {"//a": [new], "//gone": [new]}))
        assert answer.json() == {"taken": 1}
        answer = http.put("/v1/matching/histories", json=_body(history, {"//a": [old]}))
        assert answer.json() == {"taken": 1}
        found: list[int] = []
        while len(found) < 2:
            event = events.next()
            if event.get("event") == "document":
                found.append(int(event["id"]))
        assert found == [old, new]
        events.close()


@pytest.mark.parametrize(
    ("body", "status", "reason"),
    [
        ({"from": 2, "to": 1}, 422, "the range is 2 to 1"),
        ({"from": 1, "to": 99}, 422, "the last record"),
        ({"from": 1, "to": 1, "matches": {"//a": [2]}}, 422, "have sequences outside of 1 to 1"),
        ({"from": 3, "to": 3}, 409, "documents from 2 on are not matched"),
        ({"from": 2, "to": 3, "feed": "none"}, 409, "unknown feed 'none'"),
    ],
)
def test_matches_that_cannot_be_taken_are_refused(
    tmp_path: Path, body: dict[str, object], status: int, reason: str
) -> None:
    with served(tmp_path) as server:
        server.http.put("/v1/feeds/news", json={"matching": "spark"}).raise_for_status()
        begin = server.broker.log.head
        published(server.broker, "news", "<a/>", "<a/>")
        sent = {"feed": "news", "matches": {}, **body}
        shift = begin - 1
        sent |= {"from": sent["from"] + shift, "to": sent["to"] + shift} if status == 409 else {}  # type: ignore[operator]
        answer = server.http.put("/v1/matching/ranges", json=sent)
        assert answer.status_code == status, answer.text


def _put(server: Served, id: str, begin: int) -> None:
    body = {"xpath": "//a", "feeds": ["news"], "config": {"from": begin}}
    server.http.put(f"/v1/subscriptions/{id}", json=body).raise_for_status()


def _body(work: dict[str, object], matches: dict[str, list[int]]) -> dict[str, object]:
    return {"feed": work["feed"], "from": work["from"], "to": work["to"], "matches": matches}
