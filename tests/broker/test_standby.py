"""Two brokers on one log: one is active, the other takes over; nothing acknowledged is lost or comes again."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import httpx
import pytest

import pathcast
from pathcast.broker import Accepted, Broker, Publication, read_settings
from pathcast.broker.restart import restored
from pathcast.broker.standby import Standby
from pathcast.broker_log import SubscriptionRecord
from pathcast.client import Client, Delivery
from pathcast.errors import PathcastError
from pathcast.log import FencedError, JetStreamLog, LogError, LogLease, LogRecord

from ..log.nats_servers import NatsServer
from .broker_process import BrokerProcess
from .settable_clock import SettableClock
from .test_jetstream_broker import settings_file

LEASE = 2.0
# Seconds that only a broken broker takes.
PATIENCE = 60


class Publisher(threading.Thread):
    """Publishes documents one by one until `finish` is set, through take-overs."""

    def __init__(self, client: Client) -> None:
        super().__init__(daemon=True)
        self.client = client
        self.accepted: dict[int, bytes] = {}
        self.finish = threading.Event()
        self.progress = threading.Condition()
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            while not self.finish.wait(0.005):  # all that is published is also read at the end
                body = b"<d n='%d'/>" % len(self.accepted)
                published = self.client.publish("f", body)
                with self.progress:
                    self.accepted[published.sequence] = body
                    self.progress.notify_all()
        except BaseException as error:  # noqa: BLE001 - the test reports it
            self.error = error
            with self.progress:
                self.progress.notify_all()

    def wait_for_more(self, count: int = 20) -> None:
        """Wait until this many more documents were accepted."""
        with self.progress:
            goal = len(self.accepted) + count
            assert self.progress.wait_for(lambda: len(self.accepted) >= goal or self.error, PATIENCE)
        assert self.error is None, self.error


@pytest.mark.slow
def test_a_standby_takes_over_and_nothing_is_lost_or_comes_again(tmp_path: Path, nats_server: NatsServer) -> None:
    settings = settings_file(tmp_path, nats_server.url, "standby", f"lease_time = {LEASE}\n")
    with ExitStack() as stack:
        a = stack.enter_context(BrokerProcess(tmp_path / "a", settings=settings))
        b = BrokerProcess(tmp_path / "b", settings=settings)
        stack.push(b.__exit__)
        b.start("standing by ")
        both = f"{a.address},{b.address}"
        client, publishing = (stack.enter_context(pathcast.connect(both, patience=60)) for _ in range(2))
        client.subscribe("s", "//d", in_flight=60_000, ack_wait=600)
        events = client.events("s", after=0)
        stack.callback(events.close)
        publisher = Publisher(publishing)
        publisher.start()
        stack.callback(publisher.finish.set)
        acknowledged = set[int]()

        def acknowledge_some() -> None:
            publisher.wait_for_more()
            pulled = [each.sequence for each in client.pull("s", limit=10).deliveries]
            assert pulled
            assert not acknowledged & set(pulled)
            client.acknowledge("s", pulled)
            acknowledged.update(pulled)

        acknowledge_some()
        answer = httpx.get(f"{b.address}/v1/subscriptions/s")
        assert (answer.status_code, answer.json()["active"]) == (503, a.address)
        assert answer.headers["retry-after"] == "1"
        assert httpx.get(f"{b.address}/readyz").status_code == 503
        assert httpx.get(f"{b.address}/healthz").status_code == 200

        # The active one stands still for longer than its lease: what it is asked meanwhile, it must not do later.
        a.pause()
        late = LateRequests(a.address, acknowledged)
        wait_until_ready(b)
        a.resume()
        assert a.wait() != 0
        assert "no longer active" in a.errors()
        late.check()
        acknowledge_some()
        assert client.url == b.address

        # The active one is killed in the midst of work.
        a.start("standing by ")
        acknowledge_some()
        b.kill()
        acknowledge_some()
        assert client.url == a.address

        publisher.finish.set()
        publisher.join()
        assert publisher.error is None
        accepted = publisher.accepted
        read = [next(events) for _ in accepted]
        assert [(each.sequence, each.body) for each in read if isinstance(each, Delivery)] == sorted(accepted.items())
        rest = list[int]()
        while pulled := [each.sequence for each in client.pull("s", limit=1_000).deliveries]:
            rest += pulled
        assert rest == sorted(accepted.keys() - acknowledged)
        events.close()
        assert a.stop() == 0, a.errors()


@pytest.mark.slow
def test_a_standby_that_has_followed_takes_over_at_once_when_the_active_one_stops(
    tmp_path: Path, nats_server: NatsServer
) -> None:
    settings = read_settings(settings_file(tmp_path, nats_server.url, "stops", "lease_time = 3_600\n"))
    active, follower = Standby(settings, "http://one"), Standby(settings, "http://two")
    assert active.take()
    broker = active.broker()
    active.watch(broker, lambda: None)
    broker.subscribe(SubscriptionRecord("default", "s", "s", expression="//d", pattern="//d")).result()
    broker.publish("f", [Publication(b"<d/>", "id")]).result()
    taken = threading.Event()
    end = follower.stand_by(taken.set)
    wait_for(
        lambda: follower._restored is not None and follower._restored.state.head == broker.state.head,
        "the standby to follow",
    )
    assert not taken.is_set()
    assert follower.holder == "http://one"
    broker.close()
    active.close()
    assert taken.wait(60)
    end()
    assert follower.is_active
    successor = follower.broker()
    follower.watch(successor, lambda: None)
    (again,) = successor.publish("f", [Publication(b"<d/>", "id")]).result()
    assert isinstance(again, Accepted)
    assert again.duplicate
    assert [each.entry.body for each in successor.pull("default", "s", 10).deliveries] == [b"<d/>"]
    assert follower.is_valid()
    successor.close()
    follower.close()


@pytest.mark.slow
def test_a_broker_whose_log_another_one_opened_stops(tmp_path: Path, nats_server: NatsServer) -> None:
    settings = read_settings(settings_file(tmp_path, nats_server.url, "opened", "lease_time = 3_600\n"))
    with closing(Standby(settings, "http://one")) as active:
        assert active.take()
        with closing(active.broker()) as broker:
            ended = threading.Event()
            active.watch(broker, ended.set)
            with closing(settings.opened_log()):
                future = broker.publish("f", [Publication(b"<d/>")])
                with pytest.raises(PathcastError, match="has taken over"):
                    future.result()
            assert ended.wait(60)
            assert not active.is_valid()
            assert "no longer active" in str(active.problem)


def wait_for(condition: Callable[[], bool], what: str) -> None:
    """Wait until a condition holds, within a time that only a broken broker takes."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"waited {PATIENCE} seconds for {what}"
        time.sleep(0.02)


def wait_until_ready(broker: BrokerProcess) -> None:
    """Wait until it is active. A broker that takes over closes the connections of its time as a standby."""

    def is_ready() -> bool:
        with suppress(httpx.TransportError):
            return httpx.get(f"{broker.address}/readyz", timeout=PATIENCE).status_code == 200
        return False

    wait_for(is_ready, f"{broker.address} to be active")


class LateRequests:
    """Requests to a broker that stands still: a publication, a pull and an acknowledgement."""

    def __init__(self, address: str, acknowledged: set[int]) -> None:
        self._statuses: dict[str, int] = {}
        calls: dict[str, Callable[[], httpx.Response]] = {
            "publish": lambda: httpx.post(f"{address}/v1/feeds/late/documents", content="<d late='1'/>", timeout=60),
            "pull": lambda: httpx.post(f"{address}/v1/subscriptions/s:pull", timeout=60),
            "acknowledge": lambda: httpx.post(
                f"{address}/v1/subscriptions/s:ack", json={"sequences": [max(acknowledged) + 1]}, timeout=60
            ),
        }
        self._threads = [threading.Thread(target=self._ask, args=each, daemon=True) for each in calls.items()]
        for thread in self._threads:
            thread.start()

    def _ask(self, name: str, call: Callable[[], httpx.Response]) -> None:
        try:
            self._statuses[name] = call().status_code
        except httpx.TransportError:
            self._statuses[name] = 503

    def check(self) -> None:
        """All were rejected."""
        for thread in self._threads:
            thread.join(PATIENCE + 10)
        assert self._statuses == {"publish": 503, "pull": 503, "acknowledge": 503}


@pytest.fixture
def clock() -> SettableClock:
    return SettableClock()


@pytest.fixture
def leases(nats_server: NatsServer, clock: SettableClock, request: pytest.FixtureRequest) -> Iterator[list[LogLease]]:
    """The same lease, as two processes see it."""
    name = request.node.name
    both = [
        LogLease.open([nats_server.url], name, f"http://{each}", seconds=10, clock=clock) for each in ("one", "two")
    ]
    yield both
    for lease in both:
        lease.close()


@pytest.mark.slow
def test_a_lease_passes_on_when_it_was_not_renewed_in_time(leases: list[LogLease], clock: SettableClock) -> None:
    one, two = leases
    assert one.take()
    assert not two.take()
    assert two.holder == "http://one"
    clock.now = 9
    one.renew()
    assert not two.take()
    clock.now = 18.9
    assert one.is_valid
    assert not two.take()
    clock.now = 19
    assert not one.is_valid
    assert two.take()
    assert two.is_valid
    with pytest.raises(FencedError, match="http://two"):
        one.renew()
    assert not one.take()


@pytest.mark.slow
def test_a_lease_that_is_released_is_free_at_once(leases: list[LogLease]) -> None:
    one, two = leases
    assert one.take()
    assert not two.take()
    one.release()
    assert not one.is_valid
    assert two.take()
    assert not one.take()


@pytest.mark.slow
def test_while_nobody_answers_no_lease_runs_out(
    leases: list[LogLease], clock: SettableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = leases
    assert one.take()
    assert not two.take()

    def no_answer(*_: object) -> None:
        raise LogError("no answer")

    with monkeypatch.context() as patch:
        patch.setattr(two._stream, "last", no_answer)
        with pytest.raises(LogError, match="no answer"):
            two.take()
    clock.now = 11
    assert not two.take()
    one.renew()
    assert one.is_valid


@pytest.mark.slow
def test_a_log_that_is_followed_shows_what_another_process_writes(nats_server: NatsServer) -> None:
    with (
        closing(JetStreamLog.open(nats_server.url, "followed")) as owner,
        closing(JetStreamLog.follow(nats_server.url, "followed")) as follower,
    ):
        for number in range(10):
            owner.append([LogRecord("k", b"%d" % number)])
        assert follower.refresh() == 10
        with pytest.raises(LogError, match="follows the log and does not own it"):
            follower.append([LogRecord("k", b"x")])
        owner.write_checkpoint(8, b"state")
        owner.trim(8)
        owner.append([LogRecord("k", b"10")])
        assert follower.refresh() == 11
        assert (follower.first, [each.meta for each in follower.read(8)]) == (owner.first, [b"7", b"8", b"9", b"10"])
        follower.take_over()
        assert follower.append([LogRecord("k", b"11")]) == 12
        with pytest.raises(FencedError):
            owner.append([LogRecord("k", b"x")])


@pytest.mark.slow
def test_a_state_that_fell_behind_a_trim_begins_at_the_checkpoint(tmp_path: Path, nats_server: NatsServer) -> None:
    settings = read_settings(settings_file(tmp_path, nats_server.url, "behind"))
    with closing(settings.jetstream.followed()) as follower:
        behind = restored(follower)
        broker = Broker(settings.opened_log())
        for number in range(5):
            broker.publish("f", [Publication(b"<d/>", f"{number}")]).result()
        broker.trim(4)
        follower.refresh()
        assert follower.first > 1
        caught_up = restored(follower, before=behind).state
        assert (caught_up.head, list(caught_up.feeds)) == (follower.head, ["f"])
        broker.close()
