"""Documents beyond a feed's retention are never delivered again: live, after a restart, in replays, to slow readers."""

from contextlib import closing
from pathlib import Path

import pytest

from pathcast.broker import Broker, BrokerSettings, add_token
from pathcast.broker.retention import Retention
from pathcast.broker.settings.broker_sections import TokensSection
from pathcast.broker_log import BrokerState, ExpiryRecord, FeedRecord, TenantRecord
from pathcast.log import TrimmedError
from pathcast.patterns import parse

from .broker_world import TENANT, broker_in, delivered, published, subscription
from .served_broker import Events, served


def retained(broker: Broker, seconds: float = 0.0) -> int:
    """Carry retention out as if it were `seconds` later than the last document."""
    last = next(iter(broker.log.read(broker.matched_to))).time / 1_000_000
    with closing(Retention(broker, every=3600, clock=lambda: last + seconds)) as retention:
        return retention.trim()


def test_expired_documents_are_delivered_by_no_search_and_stay_expired_after_restarts(tmp_path: Path) -> None:
    with broker_in(tmp_path) as broker:
        broker.subscribe(subscription("both", "//a", ("news", "sports"))).result()
        news = published(broker, "news", "<a/>", "<a/>", "<a/>")
        sports = published(broker, "sports", "<a/>", "<a/>")
        late = published(broker, "news", "<a/>")
        broker.change([ExpiryRecord("news", news[2])]).result()
        broker.subscribe(subscription("again", "//*", begin=1)).result()  # reads the log
        kept = [news[2], *sports, *late]
        assert delivered(broker, "both") == delivered(broker, "again") == kept
        assert delivered(broker, "both", step=1) == delivered(broker, "again", step=1) == kept
    for _ in range(2):  # from records, then from a checkpoint
        with broker_in(tmp_path) as broker:
            assert delivered(broker, "both") == delivered(broker, "again") == kept
            broker.rebuild.wait()
            assert delivered(broker, "both") == delivered(broker, "again") == kept


def test_an_expiry_never_moves_back_and_never_beyond_its_own_place() -> None:
    state = BrokerState()
    for sequence, before, expected in ((5, 3, 3), (6, 2, 3), (7, None, 7), (8, 100, 8)):
        state.apply(sequence, ExpiryRecord("news", before))
        assert state.expired == {"news": expected}
    restored = BrokerState.restored(8, state.checkpoint())
    assert restored.expired == {"news": 8}
    restored.forget_before(7)
    assert restored.expired == {"news": 8}
    restored.forget_before(8)
    assert restored.expired == {}


def test_a_feed_keeps_its_age_and_the_log_is_trimmed_where_no_feed_keeps_anything(tmp_path: Path) -> None:
    with broker_in(tmp_path) as broker:
        broker.subscribe(subscription("s", "//a")).result()
        broker.change([FeedRecord("news", keep_seconds=3600)]).result()
        (other,) = published(broker, "sports", "<a/>")
        news = [each for _ in range(20) for each in published(broker, "news", *[f"<a>{'x' * 1000}</a>"] * 10)]
        assert retained(broker, 3599) == 1
        assert delivered(broker, "s") == [other, *news]
        assert retained(broker, 3601) == 1  # sports keeps its document
        assert delivered(broker, "s") == [other]
        head = broker.log.head
        broker.change([FeedRecord("sports", keep_seconds=60)]).result()
        published(broker, "news", "<a/>")
        assert 1 < retained(broker, 3601) <= head + 2
        assert broker.state.expired.keys() == {"news", "sports"}
        before = broker.log.head
        retained(broker, 3601)
        assert broker.log.head == before  # nothing to expire, nothing to write


def test_a_feed_keeps_at_least_its_bytes_and_little_more(tmp_path: Path) -> None:
    size = len("<a></a>") + 993
    with broker_in(tmp_path) as broker:
        broker.subscribe(subscription("s", "//a")).result()
        broker.change([FeedRecord("news", keep_bytes=64 * size)]).result()
        for rounds in range(3):
            for _ in range(20):
                published(broker, "news", *[f"<a>{'x' * 993}</a>"] * 10)
            retained(broker)
            kept = delivered(broker, "s", max(0, broker.log.first - 1))
            assert len(kept) == 64, rounds
    with broker_in(tmp_path) as broker:
        retained(broker)
        assert len(delivered(broker, "s", max(0, broker.log.first - 1))) == 64


def test_the_log_keeps_the_newest_segments_that_have_the_bytes(tmp_path: Path) -> None:
    with broker_in(tmp_path) as broker:
        for _ in range(20):
            published(broker, "news", *[f"<a>{'x' * 1000}</a>"] * 10)
        total = sum(file.stat().st_size for file in tmp_path.rglob("*") if file.is_file())
        with closing(Retention(broker, None, 10 * total, every=3600)) as retention:
            assert retention.trim() == 1
        with closing(Retention(broker, None, 100_000, every=3600)) as retention:
            assert 1 < retention.trim() < broker.log.head - 50


def test_a_delivery_on_a_lease_is_not_repeated_once_it_expired(tmp_path: Path) -> None:
    now = 0.0
    with broker_in(tmp_path, clock=lambda: now) as broker:
        broker.subscribe(subscription("s", "//a")).result()
        news, (other,) = published(broker, "news", "<a/>", "<a/>"), published(broker, "sports", "<a/>")
        assert len(broker.pull(TENANT, "s", 10, lease_seconds=10).deliveries) == 3
        broker.change([ExpiryRecord("news", news[1])]).result()
        now = 20.0
        pulled = broker.pull(TENANT, "s", 10, lease_seconds=10)
        assert sorted(each.entry.sequence for each in pulled.deliveries) == [news[1], other]
        assert pulled.gap is not None
        assert (pulled.gap.begin, pulled.gap.end, pulled.gap.reason) == (news[0], news[1], "expired")
        broker.acknowledge(TENANT, "s", [news[1], other])[0].result()
        assert broker.state.subscriptions[TENANT, "s"].own_cursor().floor >= other  # nothing holds it back


def test_readers_see_a_gap_and_the_documents_of_other_feeds_in_it(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        client = server.http
        client.put("/v1/subscriptions/one", json={"xpath": "//a", "feeds": ["news"]}).raise_for_status()
        client.put("/v1/subscriptions/all", json={"xpath": "//a"}).raise_for_status()
        sent = [
            client.post(f"/v1/feeds/{feed}/documents", content="<a/>").json()["sequence"]
            for feed in ("news", "sports", "news")
        ]
        server.broker.change([ExpiryRecord("news", sent[2])]).result()
        for id, expected in (("one", sent[2:]), ("all", sent[1:])):
            gap = {"to": sent[2] - 1, "reason": "expired", "feed": "news"}
            begin = server.broker.state.subscriptions["default", id].begin
            events = Events(server, f"/v1/subscriptions/{id}/events", after=0)
            shown = events.next_of_kind("gap")
            assert shown["data"] == str({"from": begin, **gap}).replace("'", '"').replace(", ", ",").replace(": ", ":")
            assert [int(events.next_of_kind("document")["id"]) for _ in expected] == expected
            events.close()
            pulled = client.post(f"/v1/subscriptions/{id}:pull").json()
            assert pulled["gap"] == {"from": begin, **gap}
            assert [each["sequence"] for each in pulled["deliveries"]] == expected
            assert "gap" not in client.post(f"/v1/subscriptions/{id}:pull").json()
        assert client.get(f"/v1/documents/{sent[0]}").status_code == 410
        assert client.post(f"/v1/explain?sequence={sent[0]}").status_code == 410
        assert client.get(f"/v1/documents/{sent[1]}").status_code == 200


def test_a_deleted_feed_has_no_documents_and_no_settings_and_can_come_back(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        client = server.http
        client.put("/v1/subscriptions/s", json={"xpath": "//a", "config": {"from": 1}}).raise_for_status()
        wanted = {"limits": {"depth": 1}, "retention": {"age": 60, "bytes": 1000}}
        shown = client.put("/v1/feeds/news", json=wanted).json()
        assert (shown["retention"], shown["expired_before"]) == ({"age": 60, "bytes": 1000}, 0)
        old = client.post("/v1/feeds/news/documents", content="<a/>").json()["sequence"]
        ended = client.delete("/v1/feeds/news").json()
        assert ended["ended"] > old
        assert client.delete("/v1/feeds/news").status_code == client.get("/v1/feeds/news").status_code == 404
        assert client.get("/v1/feeds").json() == {"feeds": []}
    with served(tmp_path) as server:
        client = server.http
        server.broker.rebuild.wait()
        assert server.broker.rebuild.done
        assert client.post("/v1/subscriptions/s:pull").json()["deliveries"] == []
        new = client.post("/v1/feeds/news/documents", content="<a><a/></a>").json()["sequence"]
        assert [each["sequence"] for each in client.post("/v1/subscriptions/s:pull").json()["deliveries"]] == [new]
        assert client.get("/v1/feeds/news").json()["retention"] == {"age": None, "bytes": None}
        for wrong in ({"age": 0}, {"bytes": 0}, {"days": 1}):
            assert client.put("/v1/feeds/news", json={"retention": wrong}).status_code == 400


def test_only_administrators_delete_feeds_and_masked_documents_do_not_show_that_they_expired(tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    operator = {"authorization": f"Bearer {add_token(file, 'operators', 'root', ['*'])[0]}"}
    reader = {"authorization": f"Bearer {add_token(file, 'desk', 'ada', ['read:*'])[0]}"}
    with served(tmp_path / "log", BrokerSettings(tokens=TokensSection(file=str(file)))) as server:
        sequence = server.http.post("/v1/feeds/news/documents", content="<a/>", headers=operator).json()["sequence"]
        server.broker.change([TenantRecord("desk", "//b", str(parse("//b")), begin=1)]).result()
        assert server.http.delete("/v1/feeds/news", headers=reader).status_code == 403
        assert server.http.delete("/v1/feeds/news", headers=operator).status_code == 200
        assert server.http.get(f"/v1/documents/{sequence}", headers=reader).status_code == 404
        assert server.http.get(f"/v1/documents/{sequence}", headers=operator).status_code == 410


def test_an_expired_document_is_named_with_the_first_that_is_kept(tmp_path: Path) -> None:
    with broker_in(tmp_path) as broker:
        one, two = published(broker, "news", "<a/>", "<a/>")
        broker.change([ExpiryRecord("news", two)]).result()
        broker.check_not_expired("news", two)
        with pytest.raises(TrimmedError, match=f"document {one} has expired by the retention of feed 'news'") as caught:
            broker.check_not_expired("news", one)
        assert caught.value.first == two
