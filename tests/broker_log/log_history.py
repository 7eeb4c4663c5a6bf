"""A broker with a random history, and what a reader that is never behind is delivered."""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pathcast.broker import Broker, Publication
from pathcast.broker_log import ExpiryRecord, FeedMediator, FeedRecord, SubscriptionRecord, TenantRecord
from pathcast.log import SqliteLog
from pathcast.patterns import parse

FEEDS = ("news", "mail", "shop")
NAMES = "abcd"
# Tenant and id of a subscription, the sequence of the document, the subscriber.
Delivery = tuple[str, str, int, str]


def _mapping(name: str, local: str) -> str:
    return (
        f'name = "{name}"\nschema = """\na\n  {local}* @k\n"""\n\n'
        f'[[operators]]\noperator = "rename"\nnode = "a/{local}"\nname = "b"\n'
    )


MEDIATORS = (
    None,
    FeedMediator("a\n  b* @k", {"one": _mapping("one", "c")}),
    FeedMediator("a\n  b* @k", {"one": _mapping("one", "d"), "two": _mapping("two", "c")}),
)


class History:
    """Publishes and subscribes at random; `settle` returns what was delivered since the last time.

    `matching`: who matches documents, by turns. `work` does what the broker leaves to others.
    """

    def __init__(
        self,
        broker: Broker,
        seed: int,
        matching: tuple[str, ...] = ("broker",),
        work: Callable[[Broker], object] = lambda _: None,
    ) -> None:
        self.broker = broker
        self._matching = matching
        self._work = work
        self.random = random.Random(seed)
        self._positions: dict[tuple[str, str], int] = {}
        self._found: list[Delivery] = []

    def act(self) -> bool:
        """Do something; False if the deliveries so far must be settled first, since it takes some back."""
        if self.random.random() < 0.15:
            if self.owes:
                return False
            self.retract()
        else:
            self.add()
        return True

    def add(self) -> None:
        """Do something that takes no delivery back."""
        deeds = {self._publish: 12, self._put: 8, self._again: 2, self._feed: 1}
        self.random.choices(list(deeds), list(deeds.values()))[0]()

    def retract(self) -> None:
        """Do something that may take deliveries back which have not been read."""
        self.random.choice((self._end, self._end, self._guard, self._expire))()

    @property
    def owes(self) -> bool:
        """Whether there may be deliveries that were not settled."""
        return min(self._positions.values(), default=self.broker.log.head) < self.broker.log.head

    def settle(self) -> set[Delivery]:
        """Read what every subscription has got."""
        for key in self._positions:
            self._catch_up(key)
        found, self._found = self._found, []
        assert len(set(found)) == len(found)
        return set(found)

    def _catch_up(self, key: tuple[str, str]) -> None:
        self._read(key)
        while self._positions[key] < self.broker.log.head:
            self._work(self.broker)
            self._read(key)

    def _read(self, key: tuple[str, str]) -> None:
        standing = self.broker.state.subscriptions[key]
        head, position = self.broker.matched_to, self._positions[key]
        while position < head:
            found = self.broker.deliveries(standing, position, 5)
            self._found += [(*key, sequence, standing.record.subscriber) for sequence in found.sequences]
            position = found.searched_to
            if found.waits:
                break
        self._positions[key] = position

    def _publish(self) -> None:
        feed = self.random.choice(FEEDS)
        documents = [Publication(self._element(0).encode()) for _ in range(self.random.randrange(1, 5))]
        mediator = self.broker.state.mediator_of(feed)
        schema = None if mediator is None else self.random.choice(sorted(mediator.mappings))
        if self.random.random() < 0.1:
            documents.append(Publication(b"<broken"))
        self.broker.publish(feed, documents, keep_invalid=True, schema=schema).result()

    def _put(self) -> None:
        tenant, id = self.random.choice(("one", "two")), self.random.choice("stuvwxyz")
        known = self.broker.state.subscriptions.get((tenant, id))
        begin = self.random.randrange(1, self.broker.log.head + 2) if self.random.random() < 0.4 else None
        feeds = tuple(self.random.sample(FEEDS, self.random.choice([0, 1, 1, 2])))
        pattern, subscriber = str(parse(self._pattern())), "ada" if known is None else known.record.subscriber
        self.broker.subscribe(
            SubscriptionRecord(tenant, id, subscriber, pattern, pattern, {}, feeds, begin=begin)
        ).result()
        standing = self.broker.state.subscriptions[tenant, id]
        self._positions.setdefault((tenant, id), standing.begin - 1)

    def _again(self) -> None:
        """The same definition, perhaps for another subscriber."""
        for key in self.random.sample(sorted(self._positions), min(1, len(self._positions))):
            self._catch_up(key)
            record = self.broker.state.subscriptions[key].record
            subscriber = self.random.choice(("ada", "bob"))
            again = SubscriptionRecord(*key, subscriber, record.pattern, record.pattern, {}, record.feeds)
            self.broker.subscribe(again).result()

    def _end(self) -> None:
        for key in self.random.sample(sorted(self._positions), min(1, len(self._positions))):
            del self._positions[key]
            self.broker.unsubscribe(*key).result()

    def _guard(self) -> None:
        pattern = self.random.choice([None, "//a", "//*[@k]"])
        begin = self.random.randrange(1, self.broker.log.head + 2) if self.random.random() < 0.3 else None
        self.broker.change([TenantRecord("two", pattern, pattern, begin=begin)]).result()

    def _expire(self) -> None:
        before = self.random.randrange(1, self.broker.log.head + 2)
        self.broker.change([ExpiryRecord(self.random.choice(FEEDS), before)]).result()

    def _feed(self) -> None:
        limits = self.random.choice([{}, {"depth": 3}])
        by = self.random.choice(self._matching)
        if by != self.broker.state.feeds.get("news", FeedRecord("news")).matching:
            self.broker.change([FeedRecord("news", matching=by)]).result()
        by, mediator = self.random.choice(self._matching), self.random.choice(MEDIATORS)
        self.broker.change([FeedRecord("shop", limits, mediator=mediator, matching=by)]).result()

    def _element(self, depth: int) -> str:
        name = "a" if depth == 0 else self.random.choice(NAMES)
        value = f" k='{self.random.randrange(3)}'" if self.random.random() < 0.4 else ""
        inner = "".join(self._element(depth + 1) for _ in range(self.random.randrange(3))) if depth < 4 else ""
        return f"<{name}{value}>{inner}</{name}>"

    def _pattern(self) -> str:
        one, two = self.random.choice(NAMES), self.random.choice(NAMES)
        number = self.random.randrange(3)
        return self.random.choice([f"//{one}", f"/a/{one}", f"//{one}[@k='{number}']", f"//{one}[{two}]", "//*[@k]/b"])


@contextmanager
def history_in(folder: Path, seed: int) -> Iterator[History]:
    """A random history over a new log in a folder."""
    broker = Broker(SqliteLog(folder, segment_bytes=1 << 14))
    try:
        yield History(broker, seed)
    finally:
        broker.close()
