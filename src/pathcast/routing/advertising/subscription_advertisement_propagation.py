"""Advertisement updates: keep every router's advertisements consistent with the subscriptions.

Documents that are published at a router flow away from it, so along each link of the tree the router that is further
away advertises to the nearer one, the leaves first. The advertisement over a link depends only on the sender's side of
the link, not on where documents are published; it is made when a source first needs it.

Invariant: after `follow(source)` every advertisement on the way of documents from `source` covers all subscriptions on
its side. Versions count the advertisements of a router to a neighbour, from 1.
"""

from collections.abc import Mapping

from pathcast.transmission import Topology

from ..router import Router
from .subscription_advertisement_composition import compose


class Advertising:
    """Makes advertisements and sends them."""

    def __init__(self, topology: Topology, routers: Mapping[str, Router]) -> None:
        self.topology = topology
        self.routers = routers
        self.keep = 1.0
        self._stale: set[tuple[str, str]] = {
            (topology.name(other), name) for name in routers for other in topology.neighbours(name)
        }
        self._all = frozenset(self._stale)
        self._anew: set[tuple[str, str]] = set()

    def changed(self, router: str) -> None:
        """Record that subscriptions at a router have changed, so that advertisements of them are updated."""
        waiting: list[tuple[str, str | None]] = [(router, None)]
        while waiting:
            name, came_from = waiting.pop()
            for other in self.topology.neighbours(name):
                if other != came_from and (other, name) not in self._stale:
                    self._stale.add((other, name))
                    waiting.append((other, name))

    def advertise(self, keep: float, source: str) -> None:
        """Make all advertisements from scratch, with this part of the steps."""
        self.keep = keep
        self._stale, self._anew = set(self._all), set(self._all)
        self.follow(source)

    def follow(self, source: str) -> None:
        """Update the advertisements on the way of documents from `source`, from the leaves up."""
        if not self._stale:
            return
        rooted = self.topology.rooted(source)
        names = self.topology.nodes
        for number in rooted.order[::-1].tolist():
            if number == rooted.root:
                continue
            upstream, downstream = names[rooted.parent[number]], names[number]
            if (upstream, downstream) in self._stale:
                self._stale.discard((upstream, downstream))
                self._advertise(self.routers[downstream], self.routers[upstream])

    def _advertise(self, downstream: Router, upstream: Router) -> None:
        pair = (upstream.name, downstream.name)
        made = compose(downstream, upstream.name, self.keep, anew=pair in self._anew)
        self._anew.discard(pair)
        downstream.made[upstream.name] = made
        upstream.receive(made)
