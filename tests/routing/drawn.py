"""Random overlays for tests: any topology, subscriptions over the whole fragment, and the results of a flat matcher."""

from dataclasses import dataclass
from random import Random

import pathcast
from pathcast import Matcher
from pathcast.patterns import Namespaces
from pathcast.routing import Overlay, Report
from pathcast.transmission import Topology
from tests import oracle
from tests.generators import NAMESPACES, expression, random_document, random_pattern, varied

Who = tuple[str, str]
"""A subscriber and the router where it subscribed."""


@dataclass
class World:
    """An overlay, documents to publish, and one matcher over all subscriptions."""

    overlay: Overlay
    subscriptions: dict[int, tuple[str, str, str]]
    """Router, XPath and subscriber, by the overlay's id."""
    documents: list[bytes]
    namespaces: Namespaces
    _flat: tuple[set[int], Matcher, dict[int, Who]] | None = None

    def flat(self, document: bytes) -> set[Who]:
        """The expected recipients of a document, by one matcher that is rebuilt when subscriptions have changed."""
        if self._flat is None or self._flat[0] != self.subscriptions.keys():
            flat = pathcast.Subscriptions(namespaces=self.namespaces)
            who = {flat.add(xpath): (subscriber, router) for router, xpath, subscriber in self.subscriptions.values()}
            self._flat = set(self.subscriptions), flat.compile(), who
        _, matcher, who = self._flat
        return {who[id] for id in matcher.match(document).ids}


def delivered(report: Report) -> set[Who]:
    """The recipients of a document; none may get it twice at one router."""
    who = [(each.subscriber, each.router) for each in report.deliveries]
    assert len(who) == len(set(who))
    return set(who)


def topology_of(random: Random) -> Topology:
    kind = random.choice(("tree", "chain", "star", "random", "one"))
    count = random.randint(2, 9)
    if kind == "tree":
        return Topology.tree(levels=random.randint(2, 4), fanout=random.randint(1, 2))
    if kind == "chain":
        return Topology.chain(count)
    if kind == "star":
        return Topology.star(count)
    if kind == "random":
        return Topology.random(count + 3, seed=random.randrange(1000))
    return Topology.chain(1)


def world_of(seed: int) -> World:
    """A random world: half have patterns over the whole fragment, half short paths and twigs over few names."""
    random = Random(seed)
    return whole_world(random) if seed % 2 else plain_world(random)


def whole_world(random: Random) -> World:
    namespaces: Namespaces = "ignore" if random.random() < 0.3 else NAMESPACES
    bases = [random_document(random, size=15) for _ in range(3)]
    drawn = [varied(random, base) for base in bases for _ in range(3)]
    documents = [document.data for document in drawn if not document.prolog]
    trees = [oracle.read(document) for document in documents]
    if not trees:
        return plain_world(random)
    expressions = [
        expression(random_pattern(random, random.choice(trees).getroot()), random) for _ in range(random.randint(3, 30))
    ]
    return _world(random, expressions, documents, namespaces)


NAMES = "abcd"


def plain_world(random: Random) -> World:
    documents = [b"<a>%s</a>" % plain_document(random, 4).encode() for _ in range(4)]
    return _world(random, [plain_pattern(random) for _ in range(random.randint(3, 40))], documents, None)


def plain_document(random: Random, depth: int) -> str:
    if not depth:
        return ""
    names = (random.choice(NAMES) for _ in range(random.randint(0, 3)))
    return "".join(f"<{name}>{plain_document(random, depth - 1)}</{name}>" for name in names)


def plain_pattern(random: Random, depth: int = 4) -> str:
    """A path over few names with wildcards, one in three with branches, some under `or` and `not`."""
    steps = []
    for index in range(random.randint(1, depth)):
        axis = "//" if random.random() < 0.25 else "/"
        name = "*" if random.random() < 0.2 else "a" if index == 0 and axis == "/" else random.choice(NAMES)
        branch = ""
        if random.random() < 0.15 and depth > 1:
            inner = plain_pattern(random, depth - 2 or 1).lstrip("/")
            other = random.choice(NAMES)
            branch = random.choice((f"[{inner}]", f"[{inner}]", f"[{inner} or {other}]", f"[not({inner})]"))
        steps.append(axis + name + branch)
    return "".join(steps)


def _world(random: Random, expressions: list[str], documents: list[bytes], namespaces: Namespaces) -> World:
    overlay = Overlay(topology_of(random), namespaces=namespaces)
    subscriptions = {}
    for xpath in expressions:
        router, subscriber = random.choice(overlay.routers), random.choice(("ada", "bob", "cy", "dan"))
        subscriptions[overlay.subscribe(router, xpath, subscriber)] = router, xpath, subscriber
    return World(overlay, subscriptions, documents, namespaces)
