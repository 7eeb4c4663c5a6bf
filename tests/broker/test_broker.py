"""The broker without its network: what is published, who gets it, and what survives a restart."""

import random
import threading
from contextlib import closing
from pathlib import Path

import pytest
from msgspec import structs

from pathcast.broker import Accepted, Broker, Publication, Rejected
from pathcast.broker.retention import Retention
from pathcast.broker.sequencing.sequencer_requests import TaskRequest
from pathcast.log import SqliteLog, TrimmedError

from .broker_world import TENANT, broker_in, delivered, matches, published, subscription


def test_a_subscription_gets_the_documents_published_after_it_that_match(tmp_path: Path) -> None:
    with broker_in(tmp_path) as broker:
        published(broker, "news", "<a/>")
        broker.subscribe(subscription("s", "//a")).result()
        (second, _) = published(broker, "news", "<a/>", "<b/>")
        assert delivered(broker, "s") == [second]


def test_an_unreadable_document_is_rejected_alone_and_takes_no_sequence(tmp_path: Path) -> None:
    with broker_in(tmp_path) as broker:
        documents = [Publication(b"<a/>"), Publication(b"<a>"), Publication(b"<a/>")]
        first, wrong, last = broker.publish("news", documents).result()
        assert isinstance(wrong, Rejected)
        assert (wrong.error.line, wrong.error.column) == (1, 4)
        assert isinstance(first, Accepted)
        assert isinstance(last, Accepted)
        assert last.sequence == first.sequence + 1 == broker.log.head


def test_an_unreadable_document_that_is_kept_is_in_the_log_and_matches_nothing(tmp_path: Path) -> None:
    with broker_in(tmp_path) as broker:
        broker.subscribe(subscription("s", "//*")).result()
        (kept,) = broker.publish("news", [Publication(b"<a>")], keep_invalid=True).result()
        assert isinstance(kept, Accepted)
        assert kept.error is not None
        ((entry, document),) = broker.recent.entries([kept.sequence])
        assert entry.body == b"<a>"
        assert document.error == kept.error
        assert delivered(broker, "s") == []


def test_a_publication_sent_again_gets_the_first_ones_sequence(tmp_path: Path) -> None:
    with broker_in(tmp_path) as broker:
        again = [Publication(b"<a/>", id="1"), Publication(b"<a/>", id="1"), Publication(b"<a/>", id="2")]
        results = broker.publish("news", again, publisher="p").result()
        assert [(r.sequence, r.duplicate) for r in results if isinstance(r, Accepted)] == [
            (2, False),
            (2, True),
            (3, False),
        ]
        (other,) = broker.publish("news", again[:1], publisher="q").result()
        assert other == Accepted(4)
    with broker_in(tmp_path) as broker:
        (after_restart,) = broker.publish("news", again[:1], publisher="p").result()
        assert after_restart == Accepted(2, duplicate=True)


def test_a_rejected_document_may_be_corrected_and_sent_with_the_same_id(tmp_path: Path) -> None:
    with broker_in(tmp_path) as broker:
        (wrong,) = broker.publish("news", [Publication(b"<a>", id="1")]).result()
        (right,) = broker.publish("news", [Publication(b"<a/>", id="1")]).result()
        assert isinstance(wrong, Rejected)
        assert right == Accepted(2)


def test_a_subscription_from_the_past_gets_what_it_would_have_got(tmp_path: Path) -> None:
    with broker_in(tmp_path) as broker:
        sequences = published(broker, "news", *["<a/>", "<b/>"] * 20)
        broker.subscribe(subscription("all", "//a", begin=1)).result()
        broker.subscribe(subscription("some", "//a", begin=sequences[10])).result()
        sequences += published(broker, "news", "<a/>")
        assert delivered(broker, "all") == sequences[::2]
        assert delivered(broker, "some") == sequences[10::2]


def test_a_changed_subscription_keeps_what_it_matched_before(tmp_path: Path) -> None:
    with broker_in(tmp_path) as broker:
        broker.subscribe(subscription("s", "//a")).result()
        first = published(broker, "news", "<a/>", "<b/>")
        broker.subscribe(subscription("s", "//b")).result()
        second = published(broker, "news", "<a/>", "<b/>")
        assert delivered(broker, "s") == [first[0], second[1]]
        assert broker.state.subscriptions[TENANT, "s"].current.ordinal == 1


def test_the_last_document_of_a_version_comes_from_whatever_position_a_reader_resumes(tmp_path: Path) -> None:
    with broker_in(tmp_path) as broker:
        broker.subscribe(subscription("s", "//a")).result()
        before, last = published(broker, "news", "<a/>", "<a/>")
        changed = broker.subscribe(subscription("s", "//b")).result()
        (after,) = published(broker, "news", "<b/>")
        standing = broker.state.subscriptions[TENANT, "s"]
        assert changed == last + 1
        for position in range(before - 1, after + 1):
            expected = [each for each in (before, last, after) if each > position]
            assert broker.deliveries(standing, position, 10).sequences == expected, position


def test_a_deleted_and_recreated_subscription_starts_afresh(tmp_path: Path) -> None:
    with broker_in(tmp_path) as broker:
        broker.subscribe(subscription("s", "//a")).result()
        published(broker, "news", "<a/>")
        broker.unsubscribe(TENANT, "s").result()
        published(broker, "news", "<a/>")
        broker.subscribe(subscription("s", "//a")).result()
        (last,) = published(broker, "news", "<a/>")
        assert delivered(broker, "s") == [last]
        assert broker.state.subscriptions[TENANT, "s"].current.ordinal == 1


def test_ordinals_are_in_the_order_of_the_log_and_never_used_again(tmp_path: Path) -> None:
    ordinals: list[int] = []
    for _ in range(3):  # each with a checkpoint at its end
        with broker_in(tmp_path) as broker:
            for id, xpath in (("s", "//a"), ("t", "//a"), ("s", "//b")):
                broker.subscribe(subscription(id, xpath)).result()
                ordinals.append(broker.state.subscriptions[TENANT, id].current.ordinal)
            broker.unsubscribe(TENANT, "t").result()
    assert ordinals == sorted(set(ordinals))


def test_a_subscription_that_is_put_again_and_again_keeps_what_it_matched(tmp_path: Path) -> None:
    """As a program does that makes sure of its subscription whenever it starts, while nobody reads."""
    record = subscription("s", "//a")
    with broker_in(tmp_path) as broker:
        broker.subscribe(record).result()
        sequences = published(broker, "news", "<a/>", "<b/>", "<a/>")
        broker.change([structs.replace(record, config={"in_flight": each}) for each in range(1, 1_500)]).result()
        sequences += published(broker, "news", "<a/>")
        wanted = [each for each in sequences if each != sequences[1]]
        assert delivered(broker, "s") == wanted
        standing = broker.state.subscriptions[TENANT, "s"]
        assert (len(standing.versions), standing.record.config) == (1, {"in_flight": 1_499})
    with broker_in(tmp_path) as broker:
        assert delivered(broker, "s") == wanted


def test_a_subscription_gets_documents_of_its_feeds_only_and_of_all_if_it_names_none(tmp_path: Path) -> None:
    with broker_in(tmp_path) as broker:
        broker.subscribe(subscription("one", "//a", ("news",))).result()
        broker.subscribe(subscription("all", "//a")).result()
        (news,) = published(broker, "news", "<a/>")
        (trades,) = published(broker, "trades", "<a/>")
        assert delivered(broker, "one") == [news]
        assert delivered(broker, "all") == [news, trades]
    with broker_in(tmp_path) as broker:
        assert delivered(broker, "one") == [news]
        assert delivered(broker, "all") == [news, trades]


def test_a_version_ends_where_the_next_begins_within_one_batch(tmp_path: Path) -> None:
    """Requests that are processed as one batch take effect in their order."""
    with broker_in(tmp_path) as broker:
        futures = []
        for _ in range(30):
            futures.append(broker.subscribe(subscription("s", "//a")))
            futures.append(broker.publish("news", [Publication(b"<a/>")]))  # type: ignore[arg-type]
            futures.append(broker.unsubscribe(TENANT, "s"))
            futures.append(broker.publish("news", [Publication(b"<a/>")]))  # type: ignore[arg-type]
        broker.subscribe(subscription("s", "//a")).result()
        (last,) = published(broker, "news", "<a/>")
        assert all(future.result() for future in futures)
        assert delivered(broker, "s") == [last]


@pytest.mark.parametrize("seed", range(3))
def test_each_subscription_gets_exactly_what_the_matcher_says(tmp_path: Path, seed: int) -> None:
    """Random documents, subscriptions, changes and restarts against the plain definition."""
    random_ = random.Random(seed)
    xpaths = ["//a", "//b", "/r/a", "//a[@x = '1']", "//a[b]", "//*[@x]", "//c//a", "//r[not(b)]"]
    expected: dict[str, list[int]] = {}
    current: dict[str, tuple[str, tuple[str, ...]]] = {}
    for _ in range(3):
        with broker_in(tmp_path) as broker:
            for _ in range(60):
                id = f"s{random_.randrange(8)}"
                kind = random_.random()
                if kind < 0.3:
                    xpath, feeds = random_.choice(xpaths), random_.choice([(), ("f0",), ("f0", "f1")])
                    broker.subscribe(subscription(id, xpath, feeds)).result()
                    expected.setdefault(id, [])
                    current[id] = xpath, feeds
                elif kind < 0.4 and id in current:
                    broker.unsubscribe(TENANT, id).result()
                    del current[id], expected[id]
                else:
                    feed = f"f{random_.randrange(3)}"
                    documents = [_document(random_) for _ in range(random_.randrange(1, 5))]
                    for sequence, document in zip(published(broker, feed, *documents), documents, strict=True):
                        for each, (xpath, feeds) in current.items():
                            if (not feeds or feed in feeds) and matches(xpath, document):
                                expected[each].append(sequence)
            assert {id: delivered(broker, id) for id in current} == expected


def _document(random_: random.Random) -> str:
    def element(depth: int) -> str:
        name, attribute = random_.choice("abc"), random_.choice(["", " x='1'", " x='2'"])
        children = "".join(element(depth + 1) for _ in range(random_.randrange(3))) if depth < 3 else ""
        return f"<{name}{attribute}>{children}</{name}>"

    return f"<r>{element(0)}{element(1)}</r>"


def test_what_was_pulled_and_acknowledged_never_comes_again(tmp_path: Path) -> None:
    with broker_in(tmp_path) as broker:
        broker.subscribe(subscription("s", "//a")).result()
        sequences = published(broker, "news", *["<a/>"] * 5)
        pulled = broker.pull(TENANT, "s", 3, lease_seconds=60, in_flight=10)
        assert [each.entry.sequence for each in pulled.deliveries] == sequences[:3]
        future, unknown = broker.acknowledge(TENANT, "s", [sequences[0], sequences[2], 10_000])
        future.result()
        assert unknown == [10_000]
    with broker_in(tmp_path) as broker:
        pulled = broker.pull(TENANT, "s", 10, lease_seconds=60, in_flight=10)
        assert [each.entry.sequence for each in pulled.deliveries] == [sequences[1], *sequences[3:]]


def test_a_lease_that_runs_out_is_handed_out_again_with_a_higher_attempt(tmp_path: Path) -> None:
    now = [0.0]
    with broker_in(tmp_path, clock=lambda: now[0]) as broker:
        broker.subscribe(subscription("s", "//a")).result()
        (sequence,) = published(broker, "news", "<a/>")
        for attempt in (1, 2, 3):
            (delivery,) = broker.pull(TENANT, "s", 10, lease_seconds=5, in_flight=10).deliveries
            assert (delivery.entry.sequence, delivery.attempt) == (sequence, attempt)
            assert broker.pull(TENANT, "s", 10, lease_seconds=5, in_flight=10).deliveries == []
            now[0] += 5


def test_what_is_given_back_comes_again_after_its_delay(tmp_path: Path) -> None:
    now = [0.0]
    with broker_in(tmp_path, clock=lambda: now[0]) as broker:
        broker.subscribe(subscription("s", "//a")).result()
        sequences = published(broker, "news", "<a/>", "<a/>")
        broker.pull(TENANT, "s", 10, lease_seconds=60, in_flight=10)
        assert broker.give_back(TENANT, "s", [sequences[1], 99], delay=10) == [99]
        assert broker.pull(TENANT, "s", 10, lease_seconds=60, in_flight=10).deliveries == []
        now[0] = 10
        (delivery,) = broker.pull(TENANT, "s", 10, lease_seconds=60, in_flight=10).deliveries
        assert (delivery.entry.sequence, delivery.attempt) == (sequences[1], 2)


def test_what_comes_again_comes_after_what_was_handed_out_meanwhile(tmp_path: Path) -> None:
    now = [0.0]
    with broker_in(tmp_path, clock=lambda: now[0]) as broker:

        def pull(limit: int) -> list[tuple[int, int]]:
            found = broker.pull(TENANT, "s", limit, lease_seconds=60, in_flight=10).deliveries
            return [(sequences.index(each.entry.sequence), each.attempt) for each in found]

        broker.subscribe(subscription("s", "//a")).result()
        sequences = published(broker, "news", *["<a/>"] * 6)
        assert pull(3) == [(0, 1), (1, 1), (2, 1)]
        broker.give_back(TENANT, "s", [sequences[2]])
        broker.give_back(TENANT, "s", [sequences[0]], delay=10)
        # What is due comes with what is new, in the order of the log; what is delayed holds nothing back.
        assert pull(2) == [(2, 2), (3, 1)]
        now[0] = 10
        assert pull(10) == [(0, 2), (4, 1), (5, 1)]


def test_with_one_delivery_in_flight_the_order_holds_whatever_is_given_back(tmp_path: Path) -> None:
    now = [0.0]
    with broker_in(tmp_path, clock=lambda: now[0]) as broker:
        broker.subscribe(subscription("s", "//a")).result()
        sequences = published(broker, "news", *["<a/>"] * 3)
        handed_out = []
        for step in range(12):
            for each in broker.pull(TENANT, "s", 10, lease_seconds=5, in_flight=1).deliveries:
                handed_out.append((sequences.index(each.entry.sequence), each.attempt))
                if each.attempt == 1:
                    broker.give_back(TENANT, "s", [each.entry.sequence], delay=3)
                elif each.attempt == 3:
                    broker.acknowledge(TENANT, "s", [each.entry.sequence])[0].result()
            now[0] += 3 * (step % 2)  # attempt 2 ends with its lease
        order = [place for place, _ in handed_out]
        assert order == sorted(order)
        assert handed_out[:4] == [(0, 1), (0, 2), (0, 3), (1, 1)]


def test_no_more_than_in_flight_deliveries_are_out(tmp_path: Path) -> None:
    with broker_in(tmp_path) as broker:
        broker.subscribe(subscription("s", "//a")).result()
        sequences = published(broker, "news", *["<a/>"] * 10)
        first = broker.pull(TENANT, "s", 10, lease_seconds=60, in_flight=4)
        assert [each.entry.sequence for each in first.deliveries] == sequences[:4]
        assert broker.pull(TENANT, "s", 10, lease_seconds=60, in_flight=4).deliveries == []
        broker.acknowledge(TENANT, "s", sequences[1:3])[0].result()
        # 1 and 2 are acknowledged out of order: they count until 0 is acknowledged, too.
        assert broker.pull(TENANT, "s", 10, lease_seconds=60, in_flight=4).deliveries == []
        broker.acknowledge(TENANT, "s", sequences[:1])[0].result()
        second = broker.pull(TENANT, "s", 10, lease_seconds=60, in_flight=4)
        assert [each.entry.sequence for each in second.deliveries] == sequences[4:7]


def test_an_acknowledgement_of_a_delivery_that_was_not_fetched_leaves_those_before_it(tmp_path: Path) -> None:
    """A subscriber may acknowledge after a restart what it pulled before it."""
    with broker_in(tmp_path) as broker:
        broker.subscribe(subscription("s", "//a")).result()
        sequences = published(broker, "news", "<a/>", "<a/>", "<a/>")
        broker.acknowledge(TENANT, "s", [sequences[1]])[0].result()
        pulled = broker.pull(TENANT, "s", 10, lease_seconds=60, in_flight=10)
        assert [each.entry.sequence for each in pulled.deliveries] == [sequences[0], sequences[2]]


def test_trimmed_documents_are_a_gap_for_a_pull_and_an_error_for_a_search(tmp_path: Path) -> None:
    with broker_in(tmp_path) as broker:
        broker.subscribe(subscription("s", "//a")).result()
        sequences: list[int] = []
        for _ in range(20):
            sequences += published(broker, "news", *[f"<a>{'x' * 1000}</a>"] * 10)
        first = broker.trim(150)
        assert 1 < first <= 150 < broker.log.head
        with pytest.raises(TrimmedError):
            broker.deliveries(broker.state.subscriptions[TENANT, "s"], 0, 10)
        assert delivered(broker, "s", first - 1) == [sequence for sequence in sequences if sequence >= first]
        pulled = broker.pull(TENANT, "s", 1, lease_seconds=60, in_flight=10)
        assert pulled.gap is not None
        assert pulled.gap.end == first == pulled.deliveries[0].entry.sequence
    with broker_in(tmp_path) as broker:
        assert broker.log.first == first
        assert delivered(broker, "s", first - 1) == [sequence for sequence in sequences if sequence >= first]


def test_documents_that_a_former_version_matched_are_a_gap_once_they_are_trimmed(tmp_path: Path) -> None:
    with broker_in(tmp_path) as broker:
        broker.subscribe(subscription("s", "//a")).result()
        sequences = []
        for _ in range(20):
            sequences += published(broker, "news", *[f"<a>{'x' * 1000}</a>"] * 10)
        broker.subscribe(subscription("s", "//b")).result()
        first = broker.trim(broker.log.head + 1)
        assert first > 100
        (last,) = published(broker, "news", "<b/>")
    with broker_in(tmp_path) as broker:
        pulled = broker.pull(TENANT, "s", 1_000)
        assert pulled.gap is not None
        assert pulled.gap.begin == 1
        assert pulled.gap.end == broker.log.first
        left = [each for each in sequences if each >= first]
        assert [each.entry.sequence for each in pulled.deliveries] == [*left, last]


def test_one_checkpoint_serves_until_records_after_it_are_trimmed(tmp_path: Path) -> None:
    with broker_in(tmp_path) as broker:
        broker.subscribe(subscription("s", "//a")).result()
        written = []
        for begin, added in ((20, 0), (60, 100), (101, 0), (102, 0), (103, 0), (150, 0)):
            for _ in range(max(added, 100 - broker.log.head)):
                published(broker, "news", f"<a>{'x' * 4_000}</a>")
            broker.trim(begin)
            checkpoint = broker.log.checkpoint()
            assert checkpoint is not None
            written.append(checkpoint.sequence)
        assert written == [101, 101, 101, 101, 201, 201]
        assert 60 < broker.log.first <= 150
        left = delivered(broker, "s", broker.log.first - 1)
    for each in tmp_path.glob("checkpoint-*"):
        assert each.name == f"checkpoint-{201:020d}.bin"
    with broker_in(tmp_path) as broker:
        assert delivered(broker, "s", broker.log.first - 1) == left


def test_retention_trims_what_is_too_old_and_nothing_else(tmp_path: Path) -> None:
    with broker_in(tmp_path) as broker:
        broker.subscribe(subscription("s", "//a")).result()
        for _ in range(20):
            published(broker, "news", *[f"<a>{'x' * 1000}</a>"] * 10)
        published_at = broker.recent.entries([broker.log.head])[0][0].time / 1_000_000
        with closing(Retention(broker, 3600, every=3600, clock=lambda: published_at)) as retention:
            assert retention.trim() == 1
        with closing(Retention(broker, 3600, every=3600, clock=lambda: published_at + 3601)) as retention:
            assert 1 < retention.trim() <= broker.log.head
        (last,) = published(broker, "news", "<a/>")
        assert delivered(broker, "s", last - 1) == [last]


def test_closing_carries_out_what_was_asked_for_and_writes_a_checkpoint(tmp_path: Path) -> None:
    broker = Broker(SqliteLog(tmp_path))
    waiting = threading.Event()
    broker._sequencer.submit(TaskRequest(lambda: waiting.wait(60)))
    futures = [broker.publish("news", [Publication(b"<a/>")]) for _ in range(50)]
    ending = threading.Thread(target=broker.close)
    ending.start()
    while not broker._sequencer._stopped:
        pass  # the end is queued behind the publications
    waiting.set()
    ending.join()
    accepted = [each for future in futures for each in future.result(0) if isinstance(each, Accepted)]
    assert len(accepted) == 50
    with closing(SqliteLog(tmp_path)) as log:
        assert {each.sequence for each in accepted} <= {entry.sequence for entry in log.read(1)}
        checkpoint = log.checkpoint()
        assert checkpoint is not None
        assert checkpoint.sequence == log.head


def test_requests_after_closing_are_rejected(tmp_path: Path) -> None:
    broker = Broker(SqliteLog(tmp_path))
    broker.close()
    with pytest.raises(Exception, match="is stopping"):
        broker.publish("news", [Publication(b"<a/>")])
