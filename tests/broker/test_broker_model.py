"""Random histories of a broker, compared with a small model, on both kinds of log.

The model knows which documents were published, which versions of subscriptions and which guards were in force, and what
was acknowledged. From that follows all that a broker may deliver: what a stream reads is computed again for each check,
and a pull must return the next of it, and nothing that is on a lease or acknowledged.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from itertools import chain, count, repeat
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from pathcast.broker import Accepted, Publication, Rejected
from pathcast.broker_log import CursorRecord, TenantRecord
from pathcast.log import TrimmedError

from ..log.nats_servers import NatsServer
from ..log.places import folder_in_memory
from .broker_world import TENANT, matches, subscription
from .model_places import JetStreamPlace, Place, SqlitePlace
from .settable_clock import SettableClock

_XPATHS = ["//a", "//b", "/r/a", "//a[@x = '1']", "//r[not(b)]"]
_DOCUMENTS = ["<a/>", "<b/>", "<r><a x='1'/></r>", "<r><b/><a/></r>", "<r/>", f"<a>{'long ' * 60}</a>"]
_BROKEN = "<a>"
_NAMES = ["s", "t", "u"]
_FEEDS = ["news", "trades"]
_LEASE = 10.0
_MANY = 1_000


class Document(NamedTuple):
    feed: str
    xml: str


class Version(NamedTuple):
    begin: int
    end: int | None
    xpath: str
    feeds: tuple[str, ...]


class Subscriber:
    """What the model knows of one subscription."""

    def __init__(self, version: Version) -> None:
        self.versions = [version]
        self.acknowledged: set[int] = set()
        self.missed: set[int] = set()  # reported as a gap; a gap need not be reported again
        self.leases: dict[int, float] = {}
        self.due: set[int] = set()  # handed out before and given back, or their lease ran out
        self.attempts: dict[int, int] = {}
        self.fetched = version.begin - 1

    def crash(self) -> None:
        """Leases and attempts are not durable."""
        self.leases, self.due, self.attempts = {}, set(), {}
        self.fetched = self.versions[0].begin - 1


class History(RuleBasedStateMachine):
    """A broker and the model."""

    new_place: Callable[[], Place]

    @initialize()
    def create(self) -> None:
        self.place = self.new_place()
        self.clock = SettableClock()
        self.broker = self.place.start(self.clock)
        self.documents: dict[int, Document] = {}
        self.published: dict[str, int] = {}
        self.subscribers: dict[str, Subscriber] = {}
        self.guards: list[tuple[int, str | None]] = []
        self.waiting: list[Callable[[], None]] = []
        for name, xpath in zip(_NAMES, _XPATHS, strict=False):
            self.subscribe(name, xpath, (), None, gather=True)
        self.settle()

    # What the model says.

    def deliveries(self, subscriber: Subscriber) -> Iterator[int]:
        for sequence, document in self.documents.items():
            hidden = [guard for begin, guard in self.guards if begin <= sequence][-1:]
            if hidden and hidden[0] is not None and not matches(hidden[0], document.xml):
                continue
            if any(
                each.begin <= sequence < (each.end or sequence + 1)
                and (not each.feeds or document.feed in each.feeds)
                and matches(each.xpath, document.xml)
                for each in subscriber.versions
            ):
                yield sequence

    def left(self, subscriber: Subscriber) -> list[int]:
        """The deliveries whose documents are still in the log."""
        return [each for each in self.deliveries(subscriber) if each >= self.broker.log.first]

    # Requests: sent at once, or gathered so that the broker may carry them out as one batch.

    def send(self, future: Future[Any], check: Callable[[Any], None], *, gather: bool) -> None:
        self.waiting.append(lambda: check(future.result(60)))
        if not gather:
            self.settle()

    def settle(self) -> None:
        waiting, self.waiting = self.waiting, []
        for check in waiting:
            check()

    @rule(
        feed=st.sampled_from(_FEEDS),
        documents=st.lists(st.sampled_from([*_DOCUMENTS, _BROKEN]), min_size=1, max_size=4),
        id=st.sampled_from([None, None, "1", "2"]),
        keep_invalid=st.booleans(),
        gather=st.booleans(),
    )
    def publish(self, feed: str, documents: list[str], id: str | None, *, keep_invalid: bool, gather: bool) -> None:
        publications = [Publication(each.encode(), id) for each in documents]

        def check(results: list[Accepted | Rejected]) -> None:
            for xml, result in zip(documents, results, strict=True):
                earlier = None if id is None else self.published.get(id)
                if isinstance(result, Rejected):
                    assert xml == _BROKEN
                    assert not keep_invalid
                elif result.duplicate:
                    assert result.sequence == earlier
                else:
                    # Whatever was trimmed may be forgotten.
                    assert earlier is None or earlier < self.broker.log.first
                    assert result.sequence > max(self.documents, default=0)
                    assert (result.error is not None) == (xml == _BROKEN)
                    if id is not None:
                        self.published[id] = result.sequence
                    if xml != _BROKEN:
                        self.documents[result.sequence] = Document(feed, xml)

        self.send(self.broker.publish(feed, publications, keep_invalid=keep_invalid), check, gather=gather)

    @rule(
        name=st.sampled_from(_NAMES),
        xpath=st.sampled_from(_XPATHS),
        feeds=st.sampled_from([(), ("news",), ("news", "trades")]),
        back=st.sampled_from([None, None, 0, 5, 50]),
        documents=st.lists(st.sampled_from(_DOCUMENTS), max_size=2),
        gather=st.booleans(),
    )
    def replace(
        self,
        name: str,
        xpath: str,
        feeds: tuple[str, ...],
        back: int | None,
        documents: list[str],
        *,
        gather: bool,
    ) -> None:
        """Publish the last documents of a version, and begin the next one."""
        if documents:
            self.publish("news", documents, None, keep_invalid=False, gather=True)
        self.subscribe(name, xpath, feeds, back, gather=gather)

    @rule(
        name=st.sampled_from(_NAMES),
        steps=st.lists(st.sampled_from([*_DOCUMENTS, *_XPATHS, *_XPATHS]), min_size=4, max_size=12),
        feeds=st.sampled_from([(), ("news",), ("trades",)]),
    )
    def replace_often(self, name: str, steps: list[str], feeds: tuple[str, ...]) -> None:
        """Many changes of one subscription at once, some of them with documents in between."""
        for step in steps:
            if step in _DOCUMENTS:
                self.publish("news", [step], None, keep_invalid=False, gather=True)
            else:
                self.subscribe(name, step, feeds, None, gather=True)

    def subscribe(self, name: str, xpath: str, feeds: tuple[str, ...], back: int | None, *, gather: bool) -> None:
        wanted = None if back is None else max(self.broker.log.first, self.broker.log.head + 1 - back)

        def check(sequence: int) -> None:
            found = self.subscribers.get(name)
            if found is None:
                begin = sequence if wanted is None else wanted
                self.subscribers[name] = Subscriber(Version(begin, None, xpath, feeds))
            else:
                begin = sequence if wanted is None else max(wanted, sequence)
                found.versions[-1] = found.versions[-1]._replace(end=sequence)
                found.versions.append(Version(begin, None, xpath, feeds))

        self.send(self.broker.subscribe(subscription(name, xpath, feeds, wanted)), check, gather=gather)

    @precondition(lambda self: self.subscribers)
    @rule(data=st.data(), gather=st.booleans())
    def unsubscribe(self, data: st.DataObject, *, gather: bool) -> None:
        name = data.draw(st.sampled_from(sorted(self.subscribers)))

        def check(_: int) -> None:
            self.subscribers.pop(name, None)

        self.send(self.broker.unsubscribe(TENANT, name), check, gather=gather)

    @rule(xpath=st.sampled_from([None, "//a", "//r"]), gather=st.booleans())
    def guard(self, xpath: str | None, *, gather: bool) -> None:
        def check(sequence: int) -> None:
            self.guards.append((sequence, xpath))

        self.send(self.broker.change([TenantRecord(TENANT, xpath, xpath)]), check, gather=gather)

    @precondition(lambda self: self.subscribers)
    @rule(data=st.data(), share=st.sampled_from([1, 2, 3]), gather=st.booleans())
    def acknowledge(self, data: st.DataObject, share: int, *, gather: bool) -> None:
        self.settle()
        if not self.subscribers:
            return
        name = data.draw(st.sampled_from(sorted(self.subscribers)))
        wanted = [*list(self.subscribers[name].leases)[::share], *data.draw(st.lists(st.integers(1, 30), max_size=2))]
        self.acknowledged(name, wanted, gather=gather)

    def acknowledged(self, name: str, wanted: list[int], *, gather: bool) -> None:
        subscriber = self.subscribers[name]
        future, unknown = self.broker.acknowledge(TENANT, name, wanted)
        deliveries = set(self.left(subscriber)) | subscriber.leases.keys() | subscriber.due
        assert not deliveries & set(unknown)
        done = deliveries.intersection(wanted)

        def check(_: int) -> None:
            subscriber.acknowledged |= done
            for sequence in done:
                subscriber.leases.pop(sequence, None)
                subscriber.due.discard(sequence)

        self.send(future, check, gather=gather)

    @precondition(lambda self: self.subscribers)
    @rule(data=st.data(), share=st.sampled_from([1, 2]))
    def give_back(self, data: st.DataObject, share: int) -> None:
        self.settle()
        if not self.subscribers:
            return
        name = data.draw(st.sampled_from(sorted(self.subscribers)))
        subscriber = self.subscribers[name]
        self.expire(subscriber)
        returned = list(subscriber.leases)[::share]
        assert self.broker.give_back(TENANT, name, [*returned, 1_000_000]) == [1_000_000]
        for sequence in returned:
            del subscriber.leases[sequence]
            subscriber.due.add(sequence)

    @precondition(lambda self: self.subscribers)
    @rule(data=st.data(), back=st.integers(0, 20))
    def replay(self, data: st.DataObject, back: int) -> None:
        self.settle()
        if not self.subscribers:
            return
        name = data.draw(st.sampled_from(sorted(self.subscribers)))
        floor = max(self.broker.log.first - 1, self.broker.matched_to - back)
        self.broker.change([CursorRecord(TENANT, name, floor, replay=True)]).result(60)
        subscriber = self.subscribers[name]
        subscriber.crash()
        subscriber.fetched = floor
        subscriber.acknowledged = {each for each in self.deliveries(subscriber) if each <= floor}

    @rule(seconds=st.sampled_from([1.0, _LEASE / 2, _LEASE]))
    def wait(self, seconds: float) -> None:
        self.clock.now += seconds

    @rule(back=st.integers(0, 20))
    def trim(self, back: int) -> None:
        self.settle()
        wanted = max(1, self.broker.log.head + 1 - back)
        before = self.broker.log.first
        first = self.broker.trim(wanted)
        assert first == self.broker.log.first
        assert before <= first <= max(wanted, before)

    @rule()
    def look(self) -> None:
        self.settle()
        self.place.look(self.broker)

    @rule()
    def snapshot(self) -> None:
        self.settle()
        self.place.snapshot()

    @rule()
    def restart(self) -> None:
        self.settle()
        self.broker = self.place.restart(self.broker)
        self.begin_anew()

    @rule()
    def crash(self) -> None:
        self.settle()
        self.broker = self.place.crash(self.broker)
        self.begin_anew()

    def begin_anew(self) -> None:
        for subscriber in self.subscribers.values():
            subscriber.crash()
        assert {id for _, id in self.broker.state.subscriptions} == set(self.subscribers)

    # Checks.

    @precondition(lambda self: self.subscribers)
    @rule(data=st.data(), position=st.integers(0, 60), step=st.integers(1, 5))
    def read(self, data: st.DataObject, position: int, step: int) -> None:
        self.settle()
        if not self.subscribers:
            return
        name = data.draw(st.sampled_from(sorted(self.subscribers)))
        self.read_where_versions_end(name)
        self.read_after(name, position, step)

    def read_where_versions_end(self, name: str) -> None:
        """Read from one before the last document that each earlier version may have, one by one around its end."""
        for end in {version.end for version in self.subscribers[name].versions if version.end is not None}:
            self.read_after(name, end - 2, 1, 1, 1, _MANY)

    def read_after(self, name: str, position: int, *steps: int) -> None:
        """Read all deliveries after a position, at most as many at a time as each step says; the last is repeated."""
        standing = self.broker.state.subscriptions[TENANT, name]
        position = max(position, self.broker.log.first - 1)
        found: list[int] = []
        at, sizes = position, chain(steps, repeat(steps[-1]))
        while at < self.broker.matched_to:
            step = next(sizes)
            more = self.broker.deliveries(standing, at, step)
            assert len(more.sequences) <= step
            assert more.searched_to > at
            found += more.sequences
            at = more.searched_to
        assert found == [each for each in self.left(self.subscribers[name]) if each > position]

    @precondition(lambda self: self.broker.log.first > 2)
    @rule(name=st.sampled_from(_NAMES))
    def read_what_was_trimmed(self, name: str) -> None:
        self.settle()
        standing = self.broker.state.subscriptions.get((TENANT, name))
        first = self.broker.log.first
        if standing is not None and standing.begin < first <= self.broker.matched_to:
            with pytest.raises(TrimmedError):
                self.broker.deliveries(standing, 0, 1)

    def expire(self, subscriber: Subscriber) -> None:
        for sequence, expires in list(subscriber.leases.items()):
            if expires <= self.clock.now:
                del subscriber.leases[sequence]
                subscriber.due.add(sequence)

    @precondition(lambda self: self.subscribers)
    @rule(
        data=st.data(),
        documents=st.lists(st.sampled_from(_DOCUMENTS), max_size=6),
        limit=st.integers(1, 6),
        in_flight=st.sampled_from([3, _MANY, _MANY]),
        share=st.sampled_from([None, 1, 2, 3]),
    )
    def pull(self, data: st.DataObject, documents: list[str], limit: int, in_flight: int, share: int | None) -> None:
        """Publish, pull, and acknowledge a share of what is out."""
        if documents:
            self.publish("news", documents, None, keep_invalid=False, gather=True)
        self.settle()
        if not self.subscribers:
            return
        name = data.draw(st.sampled_from(sorted(self.subscribers)))
        self.pulled(name, limit, in_flight)
        if share is not None:
            self.acknowledged(name, list(self.subscribers[name].leases)[::share], gather=True)

    def pulled(self, name: str, limit: int, in_flight: int) -> int:
        """Pull, compare with what the model allows; returns how many deliveries came."""
        subscriber = self.subscribers[name]
        first = self.broker.log.first
        # The oldest that may come for the first time; what is out or due and was trimmed does not come again.
        unseen = [each for each in self.deliveries(subscriber) if each > subscriber.fetched]
        pulled = self.broker.pull(TENANT, name, limit, lease_seconds=_LEASE, in_flight=in_flight)
        self.expire(subscriber)
        settled = subscriber.acknowledged | subscriber.missed
        lost = [each for each in unseen if each < first and each not in settled]
        if pulled.gap is not None:
            assert pulled.gap.begin < pulled.gap.end <= first
            subscriber.missed.update(range(pulled.gap.begin, pulled.gap.end))
        elif in_flight == _MANY and len(pulled.deliveries) < limit:
            assert not lost
        # Documents that were trimmed meanwhile may still be in memory.
        died = {each for each in subscriber.due if each < first}
        subscriber.due -= died
        came = [each.entry.sequence for each in pulled.deliveries]
        assert len(came) <= limit
        assert len(set(came)) == len(came)
        assert not subscriber.acknowledged & set(came)
        assert not subscriber.leases.keys() & set(came)
        again = [each for each in came if each in subscriber.due]
        new = [each for each in came if each not in subscriber.due | died]
        expected = [each for each in unseen if each >= first and each not in subscriber.acknowledged]
        assert new == expected[: len(new)]
        if in_flight == _MANY and not died:  # what died may have taken places
            assert len(again) == min(limit, len(subscriber.due))
            assert len(new) == min(limit - len(again), len(expected))
        for each in pulled.deliveries:
            sequence = each.entry.sequence
            assert each.entry.body.decode() == self.documents[sequence].xml
            assert each.document.feed == self.documents[sequence].feed
            assert each.attempt == subscriber.attempts.get(sequence, 0) + 1
            subscriber.attempts[sequence] = each.attempt
            subscriber.leases[sequence] = self.clock.now + _LEASE
        subscriber.due -= set(came)
        if new:
            subscriber.fetched = new[-1]
        return len(came)

    @invariant()
    def nothing_has_failed(self) -> None:
        assert self.broker.failure is None

    def teardown(self) -> None:
        if hasattr(self, "broker"):
            try:
                self.settle()
                for name in self.subscribers:
                    self.read_where_versions_end(name)
                # Whatever was not acknowledged comes; whatever was does not.
                self.clock.now += _LEASE
                for name in self.subscribers:
                    while self.pulled(name, 6, _MANY):
                        pass
            finally:
                self.place.end(self.broker)


def run(new_place: Callable[[], Place], examples: int, *, long: bool) -> None:
    """A fixed choice of histories; with `long`, many random ones."""
    machine = type("HistoryHere", (History,), {"new_place": staticmethod(new_place)})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            derandomize=not long,
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_a_broker_on_sqlite_does_what_the_model_says(request: pytest.FixtureRequest) -> None:
    long = bool(request.config.getoption("--long"))
    with folder_in_memory() as folder:
        numbers = count()
        run(lambda: SqlitePlace(folder / str(next(numbers))), 2_000 if long else 40, long=long)


@pytest.mark.slow
def test_a_broker_on_jetstream_does_what_the_model_says(
    nats_server: NatsServer, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    long = bool(request.config.getoption("--long"))
    numbers = count()

    def place() -> JetStreamPlace:
        name = f"model{next(numbers)}"
        return JetStreamPlace(nats_server.url, name, tmp_path / name)

    run(place, 500 if long else 10, long=long)
