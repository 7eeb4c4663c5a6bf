"""A broker that is killed again and again, at random moments, with publishers and subscribers at work.

Nothing that was acknowledged to a publisher is lost, nothing is delivered twice on a stream, nothing that a subscriber
acknowledged comes again, and order holds.
"""

import json
import random
import threading
import time
from pathlib import Path

import httpx
import pytest

from .broker_process import BrokerProcess

_BATCH = {"content-type": "application/cloudevents-batch+json"}
# What a client of a broker that is killed runs into.
_CUT = (httpx.TransportError, httpx.StreamError)


class Client(threading.Thread):
    """A client that carries on through restarts until it may finish."""

    def __init__(self, address: str) -> None:
        super().__init__(daemon=True)
        self.address = address
        self.finish = threading.Event()
        self.error: BaseException | None = None

    def run(self) -> None:
        with httpx.Client(base_url=self.address, timeout=60) as http:
            while not self.done():
                try:
                    self.work(http)
                except httpx.TimeoutException as error:
                    self.error = error  # a killed broker cuts connections; one that does not answer is broken
                    return
                except _CUT:
                    time.sleep(0.1)
                except BaseException as error:  # noqa: BLE001 - the test reports it
                    self.error = error
                    return

    def done(self) -> bool:
        raise NotImplementedError

    def work(self, http: httpx.Client) -> None:
        raise NotImplementedError


class Publisher(Client):
    """Publishes documents, each until it is acknowledged."""

    def __init__(self, address: str, name: str) -> None:
        super().__init__(address)
        self.source = name
        self.random = random.Random(name)
        self.accepted: dict[str, int] = {}  # id of a document: its sequence
        self.next = 0
        self.waiting: list[str] = []

    def done(self) -> bool:
        return self.finish.is_set() and not self.waiting

    def work(self, http: httpx.Client) -> None:
        while not self.done():
            if not self.waiting:
                count = self.random.choice([1, 1, 5, 40])
                self.waiting = [f"{self.source}-{number}" for number in range(self.next, self.next + count)]
                self.next += count
            events = [{"id": id, "source": self.source, "data": document(id)} for id in self.waiting]
            answer = http.post("/v1/feeds/kill/documents", content=json.dumps(events), headers=_BATCH)
            if answer.status_code == 503:
                continue
            assert answer.status_code == 202, answer.text
            for id, result in zip(self.waiting, answer.json()["results"], strict=True):
                self.accepted[id] = result["sequence"]
            self.waiting = []


class Reader(Client):
    """Reads a stream of events, and resumes after the last one."""

    def __init__(self, address: str, path: str) -> None:
        super().__init__(address)
        self.path = path
        self.received: list[tuple[int, str]] = []
        self.position = 0
        self.until: int | None = None

    def done(self) -> bool:
        return self.until is not None and self.position >= self.until

    def work(self, http: httpx.Client) -> None:
        headers = {"last-event-id": str(self.position)}
        with http.stream("GET", self.path, headers=headers) as stream:
            event: dict[str, str] = {}
            for line in stream.iter_lines():
                name, _, value = line.partition(":")
                event[name] = value.removeprefix(" ")
                if not line:
                    assert event.get("event") != "gap", event
                    if event.get("event") == "document":
                        self.received.append((int(event["id"]), json.loads(event["data"])["body"]))
                    self.position = int(event["id"])
                    event = {}
                    if self.done():
                        return


class Puller(Client):
    """Pulls and acknowledges; notes what comes again although its acknowledgement was answered.

    An acknowledgement without an answer is sent again: it may have been carried out, and then nothing reminds of it.
    """

    def __init__(self, address: str) -> None:
        super().__init__(address)
        self.random = random.Random(1)
        self.acknowledged: dict[int, str] = {}
        self.again: list[int] = []
        self.unanswered: dict[int, str] = {}
        self.empty = 0  # answers without a delivery since the last one with a delivery

    def done(self) -> bool:
        return self.finish.is_set()

    def work(self, http: httpx.Client) -> None:
        while not self.done():
            if self.unanswered:
                self.acknowledge(http)
                continue
            answer = http.post("/v1/subscriptions/pulled:pull?limit=50&wait=1")
            if answer.status_code == 503:
                continue
            assert answer.status_code == 200, answer.text
            deliveries = {each["sequence"]: each["body"] for each in answer.json()["deliveries"]}
            self.empty = 0 if deliveries else self.empty + 1
            self.again += [sequence for sequence in deliveries if sequence in self.acknowledged]
            self.unanswered = {each: body for each, body in deliveries.items() if self.random.random() < 0.8}
            other = [sequence for sequence in deliveries if sequence not in self.unanswered]
            http.post("/v1/subscriptions/pulled:nack", json={"sequences": other})

    def acknowledge(self, http: httpx.Client) -> None:
        answer = http.post("/v1/subscriptions/pulled:ack", json={"sequences": list(self.unanswered)})
        assert answer.status_code in (200, 503), answer.text
        if answer.status_code == 200:
            self.acknowledged |= self.unanswered
            self.unanswered = {}


def document(id: str) -> str:
    """A document; every third has what the puller wants."""
    return f"<d id='{id}' k='{int(id.rpartition('-')[2]) % 3}'/>"


@pytest.mark.slow
def test_a_killed_broker_loses_and_repeats_nothing(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    kills = 100 if request.config.getoption("--long") else 5
    moments = random.Random(kills)
    with BrokerProcess(tmp_path / "data") as broker:
        with httpx.Client(base_url=broker.address, timeout=60) as http:
            http.put("/v1/subscriptions/all", json={"xpath": "//d"}).raise_for_status()
            http.put(
                "/v1/subscriptions/pulled", json={"xpath": "//d[@k = '1']", "config": {"ack_wait": 2}}
            ).raise_for_status()
        publishers = [Publisher(broker.address, name) for name in ("p", "q")]
        reader = Reader(broker.address, "/v1/subscriptions/all/events")
        puller = Puller(broker.address)
        clients: list[Client] = [*publishers, reader, puller]
        for client in clients:
            client.start()
        for _ in range(kills):
            # In the midst of work: a random number of documents after the last start, and a random moment more.
            goal = sum(len(each.accepted) for each in publishers) + moments.randrange(1, 300)
            while sum(len(each.accepted) for each in publishers) < goal and not any(each.error for each in clients):
                time.sleep(0.005)
            time.sleep(moments.uniform(0, 0.1))
            broker.kill()
            broker.start()
        for publisher in publishers:
            publisher.finish.set()
            publisher.join()
        accepted = {sequence: document(id) for each in publishers for id, sequence in each.accepted.items()}
        reader.until = max(accepted)
        reader.join(timeout=120)
        wanted = {sequence for sequence, body in accepted.items() if "k='1'" in body}
        # A lease lasts two seconds: after many answers without a delivery, no other will come.
        while puller.error is None and puller.empty < 30 and not wanted <= puller.acknowledged.keys():
            time.sleep(0.05)
        puller.finish.set()
        puller.join()
        if any(client.error for client in clients):
            pytest.fail(f"{[client.error for client in clients]}\n{broker.stacks()}")
        assert broker.stop() == 0, broker.errors()
    assert len(accepted) > kills
    assert reader.received == sorted(accepted.items())
    assert puller.acknowledged == {sequence: accepted[sequence] for sequence in wanted}
    assert puller.again == []
