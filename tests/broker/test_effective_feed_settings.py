"""Settings that are records of the log: each document keeps the outcome that the settings at its place gave it."""

import random
from collections.abc import Sequence
from dataclasses import asdict, fields
from itertools import islice, product
from pathlib import Path

import pytest

from pathcast.broker import Accepted, Broker, BrokerSettings, Publication, Rejected, add_token
from pathcast.broker.api.endpoints.feeds_api import FeedLimits
from pathcast.broker.settings.broker_sections import TokensSection
from pathcast.broker_log import ORIGINAL_LIMITS, SEMANTICS, BrokerState, FeedRecord, SettingsRecord, log_record, meta_of
from pathcast.documents import Limits
from pathcast.log import LogError, LogFullError, LogRecord, SqliteLog

from .broker_world import broker_in, delivered, published, subscription
from .served_broker import served


def nested(depth: int) -> str:
    return "<a>" * depth + "</a>" * depth


def outcomes(broker: Broker, feed: str, documents: list[str], *, keep: bool = False) -> list[bool]:
    """Whether each document was accepted without an error."""
    results = broker.publish(feed, [Publication(each.encode()) for each in documents], keep_invalid=keep).result()
    return [isinstance(each, Accepted) and each.error is None for each in results]


def set_limits(broker: Broker, feed: str, **limits: int) -> None:
    broker.change([FeedRecord(feed, limits)]).result()


def test_a_feeds_limits_replace_those_of_all_feeds_one_by_one(tmp_path: Path) -> None:
    with broker_in(tmp_path, limits=Limits(depth=3, attributes=1)) as broker:
        set_limits(broker, "deep", depth=5)
        documents = [nested(4), "<a x='1' y='2'/>"]
        assert outcomes(broker, "deep", documents) == [True, False]
        assert outcomes(broker, "flat", documents) == [False, False]
        set_limits(broker, "deep")
        assert outcomes(broker, "deep", documents) == [False, False]


def test_limits_take_effect_where_they_stand_among_requests_that_arrive_together(tmp_path: Path) -> None:
    with broker_in(tmp_path) as broker:
        futures = []
        for number in range(40):
            broker.change([FeedRecord("news", {"depth": 1 + number % 2})])
            futures.append(broker.publish("news", [Publication(b"<a><b/></a>")]))
        accepted = [isinstance(future.result()[0], Accepted) for future in futures]
        assert accepted == [number % 2 == 1 for number in range(40)]


@pytest.mark.parametrize("seed", range(4))
def test_a_document_keeps_its_outcome_whatever_the_limits_become(tmp_path: Path, seed: int) -> None:
    """Random limits of a feed and of all feeds, documents, restarts and searches against the plain definition."""
    random_ = random.Random(seed)
    expected: list[int] = []
    general, own = 4, dict[str, int]()
    for round_ in range(4):
        with broker_in(tmp_path, limits=Limits(depth=general)) as broker:
            broker.subscribe(subscription(f"s{round_}", "//a", begin=1)).result()
            for _ in range(25):
                feed = random_.choice(["f0", "f1", "f2"])
                if random_.random() < 0.3 and feed != "f2":
                    own[feed] = random_.randrange(1, 8)
                    set_limits(broker, feed, depth=own[feed])
                    continue
                depths = [random_.randrange(1, 8) for _ in range(random_.randrange(1, 4))]
                keep = random_.random() < 0.5
                head = broker.log.head if feed in broker.state.feeds else broker.log.head + 1
                good = outcomes(broker, feed, [nested(depth) for depth in depths], keep=keep)
                assert good == [depth <= own.get(feed, general) for depth in depths]
                kept = [is_good for is_good in good if is_good or keep]
                expected += [head + place for place, is_good in enumerate(kept, 1) if is_good]
            for id in range(round_ + 1):
                assert delivered(broker, f"s{id}") == expected
            broker.rebuild.wait()
            assert delivered(broker, "s0", step=1) == expected
        general = random_.randrange(1, 8)


def test_a_document_that_costs_too_much_to_match_is_rejected_and_says_so(tmp_path: Path) -> None:
    costly = nested(60)
    xpaths = ["//" + "//".join(names) for names in islice(product("abcdef", repeat=6), 3_000)]  # //a//a//a//a//a//a …
    with broker_in(tmp_path, limits=Limits(work=50)) as broker:
        broker.change([subscription(f"s{number}", xpath) for number, xpath in enumerate(xpaths)]).result()
        (rejected,) = broker.publish("news", [Publication(costly.encode())]).result()
        assert isinstance(rejected, Rejected)
        assert "work" in rejected.error.reason
        (letter,) = broker.publish("news", [Publication(costly.encode())], keep_invalid=True).result()
        assert isinstance(letter, Accepted)
        assert letter.error is not None
    with broker_in(tmp_path) as broker:
        (accepted,) = published(broker, "news", costly)
        assert delivered(broker, "s0") == [accepted]
    with broker_in(tmp_path, limits=Limits(work=50)) as broker:
        broker.rebuild.wait()
        assert delivered(broker, "s0") == [accepted]
        broker.subscribe(subscription("later", "//a//a//a//a//a", begin=1)).result()
        assert delivered(broker, "later") == [accepted]


def test_the_limits_of_all_feeds_are_recorded_when_they_change(tmp_path: Path) -> None:
    assert asdict(Limits()) == ORIGINAL_LIMITS, "add a settings record for logs that have none"
    for limits, head in [(None, 0), (Limits(depth=7), 1), (Limits(depth=7), 1), (Limits(), 2)]:
        with broker_in(tmp_path, limits=limits) as broker:
            assert broker.log.head == head
    log = SqliteLog(tmp_path)
    records = [meta_of(entry) for entry in log.read(1)]
    log.close()
    assert records == [
        SettingsRecord({**ORIGINAL_LIMITS, "depth": 7}, SEMANTICS),
        SettingsRecord(ORIGINAL_LIMITS, SEMANTICS),
    ]


def test_settings_survive_a_checkpoint() -> None:
    state = BrokerState()
    state.apply(1, SettingsRecord({**ORIGINAL_LIMITS, "depth": 7}, SEMANTICS))
    state.apply(2, FeedRecord("news", {"size": 5}))
    restored = BrokerState.restored(2, state.checkpoint())
    assert restored.limits_of("news") == Limits(depth=7, size=5)
    assert restored.limits_of("other") == Limits(depth=7)


def test_a_log_of_a_later_meaning_of_matching_is_rejected(tmp_path: Path) -> None:
    log = SqliteLog(tmp_path)
    log.append([log_record(SettingsRecord(ORIGINAL_LIMITS, SEMANTICS + 1))])
    with pytest.raises(LogError, match="update Pathcast"):
        Broker(log)
    log.close()


class FullLog(SqliteLog):
    """A log whose disk is full at times."""

    full = False

    def append(self, records: Sequence[LogRecord]) -> int:
        if self.full:
            raise LogFullError("no space left")
        return super().append(records)


def test_a_batch_that_finds_the_disk_full_leaves_no_trace(tmp_path: Path) -> None:
    log = FullLog(tmp_path)
    broker = Broker(log)
    published(broker, "news", "<a/>")
    log.full = True
    subscribed, sent = broker.subscribe(subscription("s", "//a")), broker.publish("more", [Publication(b"<a/>")])
    with pytest.raises(LogFullError):
        subscribed.result()
    with pytest.raises(LogFullError):
        sent.result()
    assert broker.indexes["news"].pattern("//a") is None
    assert not broker.state.subscriptions
    log.full = False
    (missed,) = published(broker, "news", "<a/>")
    broker.subscribe(subscription("s", "//a")).result()
    (last,) = published(broker, "news", "<a/>")
    assert delivered(broker, "s") == [last]
    assert delivered(broker, "s", missed - 1) == [last]
    broker.close()


def test_administrators_set_the_limits_of_a_feed_over_http(tmp_path: Path) -> None:
    assert {field.name for field in fields(Limits)} - {"evaluation"} == set(FeedLimits.__struct_fields__)
    file = tmp_path / "tokens.json"
    operator = {"authorization": f"Bearer {add_token(file, 'operators', 'root', ['*'])[0]}"}
    reader = {"authorization": f"Bearer {add_token(file, 'desk', 'ada', ['read:*', 'publish:*'])[0]}"}
    settings = BrokerSettings(tokens=TokensSection(file=str(file)), limits=Limits(size=50))
    with served(tmp_path / "log", settings) as server:
        http = server.http
        assert http.put("/v1/feeds/news", json={}, headers=reader).status_code == 403
        assert http.get("/v1/feeds/news", headers=reader).status_code == 403
        assert http.get("/v1/feeds/news", headers=operator).status_code == 404
        created = http.put("/v1/feeds/news", json={"limits": {"depth": 2, "size": 40}}, headers=operator)
        assert created.status_code == 201
        assert created.json()["limits"] == {"depth": 2, "size": 40}
        assert created.json()["limits_in_force"] == {**ORIGINAL_LIMITS, "depth": 2, "size": 40}
        assert http.get("/v1/feeds/news", headers=operator).json() == created.json()
        documents = [nested(2), nested(3), f"<a>{'x' * 60}</a>"]  # only the last has too many bytes
        sent = [http.post("/v1/feeds/news/documents", content=each, headers=reader) for each in documents]
        assert [each.status_code for each in sent] == [202, 422, 413]
        for limits, status in [({}, 413), ({"size": 200}, 202)]:
            assert http.put("/v1/feeds/news", json={"limits": limits}, headers=operator).status_code == 200
            again = http.post("/v1/feeds/news/documents", content=documents[2], headers=reader)
            assert again.status_code == status
        for wrong in [
            '{"limits": {"evaluation": 9}}',
            '{"limits": {"depth": 0}}',
            '{"limits": {"a": 1}}',
            '{"limit": {}}',
            '{"limits": {"size": 1e9}}',
        ]:
            answer = http.put("/v1/feeds/news", content=wrong, headers=operator)
            assert answer.status_code == 400, answer.text
