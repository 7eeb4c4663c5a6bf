"""What subscribers receive over HTTP equals what the matcher says, document by document.

Subscriptions come, change and go while documents are published. A version of a subscription matches the documents
between its first sequence (`valid_from`) and the sequence that ends it; streams, subscriber streams, links, pulls and
documents read one by one must all agree with the plain definition.
"""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from .broker_world import matches
from .served_broker import Events, Served, served

FEEDS = ("news", "trades", "sport")
BATCH = {"content-type": "application/cloudevents-batch+json"}
NAMES = "abcd"


class Life(NamedTuple):
    """A version of a subscription: a pattern on some feeds (all, if none), for the documents begin <= N < end."""

    xpath: str
    feeds: list[str]
    begin: int
    end: int | None = None


class Document(NamedTuple):
    """A document that was accepted."""

    sequence: int
    feed: str
    body: str


class Desk:
    """A client that publishes and subscribes at random, and keeps what it was answered."""

    def __init__(self, server: Served, seed: int) -> None:
        self.server = server
        self.random = random.Random(seed)
        self.documents: list[Document] = []
        self.lives: dict[str, list[Life]] = {}
        self.ended: set[str] = set()

    def expected(self, id: str, after: int = 0) -> list[int]:
        """The sequences that a subscription gets, by the plain definition."""
        return [
            each.sequence
            for each in self.documents
            if each.sequence > after
            and any(
                life.begin <= each.sequence
                and (life.end is None or each.sequence < life.end)
                and (not life.feeds or each.feed in life.feeds)
                and matches(life.xpath, each.body)
                for life in self.lives[id]
            )
        ]

    def publish(self, feed: str, *bodies: str) -> None:
        """One document, or a batch of events."""
        http = self.server.http
        if len(bodies) == 1:
            sequences = [http.post(f"/v1/feeds/{feed}/documents", content=bodies[0]).json()["sequence"]]
        else:
            events = [{"id": f"{feed}-{len(self.documents)}-{at}", "data": each} for at, each in enumerate(bodies)]
            answer = http.post(f"/v1/feeds/{feed}/documents", content=json.dumps(events), headers=BATCH)
            sequences = [each["sequence"] for each in answer.json()["results"]]
        self.documents += [Document(at, feed, body) for at, body in zip(sequences, bodies, strict=True)]

    def put(self, id: str, xpath: str | None = None) -> None:
        """Create a subscription, or change it; `xpath` instead of a random pattern."""
        xpath, feeds = xpath or self.pattern(), self.random.sample(FEEDS, self.random.choice([0, 1, 1, 2]))
        body: dict[str, Any] = {"xpath": xpath, "feeds": feeds, "subscriber": id[0]}
        if id not in self.lives and self.documents and self.random.random() < 0.3:
            body["config"] = {"from": self.random.choice(self.documents).sequence}
        answer = self.server.http.put(f"/v1/subscriptions/{id}", json=body)
        assert answer.status_code in (200, 201), answer.text
        begin = answer.json()["valid_from"]
        lives = self.lives.setdefault(id, [])
        if lives:
            lives[-1] = lives[-1]._replace(end=begin)
        lives.append(Life(xpath, feeds, begin))

    def delete(self, id: str) -> None:
        """End a subscription."""
        answer = self.server.http.delete(f"/v1/subscriptions/{id}").json()
        self.lives[id][-1] = self.lives[id][-1]._replace(end=answer["ended"])
        self.ended.add(id)

    def element(self, depth: int) -> str:
        """A random document."""
        name, draw = self.random.choice(NAMES), self.random.random
        value = f" k='{self.random.randrange(3)}'" if draw() < 0.4 else ""
        inner = "".join(self.element(depth + 1) for _ in range(self.random.randrange(3))) if depth < 4 else ""
        text = self.random.choice(["", "x", "7"])
        return f"<{name}{value}>{text}{inner}</{name}>"

    def pattern(self) -> str:
        """A random pattern; few enough that subscriptions share some."""
        step = self._step
        one, two = self.random.choice(NAMES), self.random.choice(NAMES)
        patterns = [
            f"//{one}",
            f"/{one}{step()}",
            f"//{one}{step()}[@k='{self.random.randrange(3)}']",
            f"//{one}[{two}]{step()}",
            f"//{one}[text() = 'x']",
            f"//*[@k]/{one}",
        ]
        return self.random.choice(patterns)

    def _step(self) -> str:
        axis, name = self.random.choice(["/", "//"]), self.random.choice([*NAMES, "*"])
        return f"{axis}{name}"


def next_documents(events: Events, wanted: list[int]) -> list[dict[str, Any]]:
    """As many documents of a stream as are wanted, or fewer if a heartbeat says that there are no others."""
    found: list[dict[str, Any]] = []
    while len(found) < len(wanted):
        event = events.next()
        if event.get("event") == "document":
            found.append(json.loads(event["data"]))
        elif "event" in event or int(event["id"]) >= wanted[-1]:
            break
    return found


def streamed(server: Served, path: str, wanted: list[int], after: int = 0) -> list[dict[str, Any]]:
    """As many documents of a stream after a position as are wanted; their sequences must be those wanted."""
    events = Events(server, path, after)
    found = next_documents(events, wanted)
    events.close()
    assert [each["sequence"] for each in found] == wanted
    return found


def pulled(server: Served, id: str, size: Callable[[], int]) -> list[dict[str, Any]]:
    """All deliveries of a subscription, pulled and acknowledged some at a time."""
    found: list[dict[str, Any]] = []
    while step := server.http.post(f"/v1/subscriptions/{id}:pull?limit={size()}").json()["deliveries"]:
        found += step
        sequences = {"sequences": [each["sequence"] for each in step]}
        server.http.post(f"/v1/subscriptions/{id}:ack", json=sequences).raise_for_status()
    return found


@pytest.mark.parametrize("seed", [1, 2])
def test_every_way_of_receiving_agrees_with_the_matcher(
    tmp_path: Path, request: pytest.FixtureRequest, seed: int
) -> None:
    steps = 2_000 if request.config.getoption("--long") else 120
    with served(tmp_path) as server:
        desk = Desk(server, seed)
        live = {id: Events(server, f"/v1/subscriptions/{id}/events", 0) for id in _begun(desk)}
        for _ in range(steps):
            action = desk.random.random()
            ids = sorted(desk.lives.keys() - desk.ended)
            if action < 0.7 or not ids:
                bodies = [desk.element(0) for _ in range(desk.random.choice([1, 1, 3, 20]))]
                desk.publish(desk.random.choice(FEEDS), *bodies)
            elif action < 0.8:
                desk.put(f"{desk.random.choice('uv')}{len(desk.lives)}")
            elif action < 0.92:
                desk.put(desk.random.choice(ids))
            elif (id := desk.random.choice(ids)) not in live:
                desk.delete(id)
        # Everybody wants the last documents: one document too many would come before them.
        for id in sorted(desk.lives.keys() - desk.ended):
            desk.put(id, "/end")
        for feed in FEEDS:
            desk.publish(feed, "<end/>")
        for id, events in live.items():
            wanted = desk.expected(id)
            assert len(wanted) > 3, "this subscription proves nothing"
            assert [each["sequence"] for each in next_documents(events, wanted)] == wanted
            events.close()
        body_of = {each.sequence: each.body for each in desk.documents}
        last = max(body_of)
        for id in sorted(desk.lives.keys() - desk.ended):
            wanted = desk.expected(id)
            links = streamed(server, f"/v1/subscriptions/{id}/events?bodies=links", wanted)
            assert [each["link"] for each in links] == [f"/v1/documents/{sequence}" for sequence in wanted]
            cut = desk.random.randrange(last)
            streamed(server, f"/v1/subscriptions/{id}/events", desk.expected(id, cut), cut)
            found = pulled(server, id, lambda: desk.random.choice([1, 7, 200]))
            assert [(each["sequence"], each["body"]) for each in found] == [(at, body_of[at]) for at in wanted]
        for id in desk.ended:
            assert server.http.get(f"/v1/subscriptions/{id}/events").status_code == 404
        for subscriber in "uv":
            ids = [id for id in sorted(desk.lives.keys() - desk.ended) if id[0] == subscriber]
            expected: dict[int, list[str]] = {}
            for id in ids:
                for sequence in desk.expected(id):
                    expected.setdefault(sequence, []).append(id)
            events_of = streamed(server, f"/v1/subscribers/{subscriber}/events", sorted(expected))
            assert {each["sequence"]: each["subscriptions"] for each in events_of} == expected
        for sequence in desk.random.sample(sorted(body_of), 20):
            assert server.http.get(f"/v1/documents/{sequence}").text == body_of[sequence]


def _begun(desk: Desk) -> list[str]:
    """The subscriptions whose streams are open all the time."""
    ids = ["u0", "v1", "u2"]
    for id in ids:
        desk.put(id)
    return ids
