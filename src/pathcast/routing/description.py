"""An overlay as a description: its topology and subscriptions, to be built again in another process.

Routing tables, engines and the ends of links are not part of it: they follow from the rest, and whoever runs routers
builds them.

Invariant: `overlay()` delivers every document to whom the described one delivers it. With the same aggregation, of the
same subscriptions in the same order, routers advertise the same and annotations have the same bytes.
Cost: to describe, a look at each subscription; to build, what subscribing and advertising cost.
"""

from dataclasses import dataclass

from ..documents import Limits
from ..patterns import Namespaces, Pattern
from ..transmission import Topology
from .overlay import Overlay


@dataclass(frozen=True, slots=True)
class OverlayDescription:
    """What an overlay is made of; `subscriptions` are router, pattern and subscriber."""

    topology: Topology
    namespaces: Namespaces
    limits: Limits
    untrusted: tuple[tuple[str, str], ...]
    keep: float
    subscriptions: tuple[tuple[str, Pattern, str], ...]

    @classmethod
    def of(cls, overlay: Overlay) -> "OverlayDescription":
        """The description of an overlay as it is now."""
        routers = [overlay.router(name) for name in overlay.routers]
        found = sorted(
            (id, router.name, router.table.patterns.pattern(subscription.entry), subscription.target.name)
            for router in routers
            for id, subscription in router.subscriptions.items()
        )
        untrusted = tuple((sender, router.name) for router in routers for sender in sorted(router.untrusted))
        return cls(
            overlay.topology, overlay.namespaces, overlay.limits, untrusted, overlay.keep,
            tuple((router, pattern, subscriber) for _, router, pattern, subscriber in found),
        )  # fmt: skip

    def overlay(self) -> Overlay:
        """The overlay, with its advertisements."""
        made = Overlay(self.topology, namespaces=self.namespaces, limits=self.limits, untrusted=self.untrusted)
        made.subscribe_patterns(self.subscriptions)
        made.advertise(self.keep)
        return made
