"""Making annotations: what a router passes on of what it worked out, for one neighbour (§4, §5.3 of the paper).

After all of a document was read, everything is known: the neighbour's aggregates that match and that don't, the data
patterns that occur, where for the last time, and that don't. When a copy leaves earlier, negative annotations can only
be derived from those that came (§5.3): aggregates of the neighbour that an annotation has shown to fail, data
patterns that contain one that is absent; and bindings from what has been read.

Invariant: nothing is said that does not follow from what was read or from annotations that were believed.
Cost: look-ups for each distinct label path of the document, and a bit an aggregate.
"""

import numpy as np

from ..documents import DocumentBatch
from .annotations import Annotations, LastPlace, Mask
from .labels import SeenPaths
from .policy import Policy
from .router import Router
from .taking import Taken

# Annotations of one kind take no more than this part of the document's bytes, and these bytes.
SHARE, LEAST = 0.03, 64


class Making:
    """Makes the annotations of one document at one router."""

    def __init__(self, router: Router, sender: str | None, policy: Policy, taken: Taken, size: int) -> None:
        self.router, self.sender, self.policy, self.taken = router, sender, policy, taken
        self.room = max(LEAST, int(SHARE * size))

    def see(self, batch: DocumentBatch, read: int) -> SeenPaths | None:
        """The label paths among the first `read` elements, if the policy has a use for them."""
        if not set("sd").intersection(self.policy.positive) and "d" not in self.policy.negative:
            return None
        paths = self.router.labels.paths_of(batch)
        return None if paths is None else SeenPaths(batch, paths, read)

    def late(self, neighbour: str, seen: SeenPaths | None, matched: Mask) -> Annotations:
        """For a copy that leaves when all was read."""
        policy, received = self.policy, self.router.received[neighbour]
        failed = ~matched[self.router.entries_of(neighbour)] if "s" in policy.negative else None
        absent = None
        if "d" in policy.negative and seen is not None:
            absent = ~received.data.occurring(self.router.labels, seen)
        return Annotations(received.version, (), self._last_places(neighbour, seen), failed, absent)

    def early(self, neighbour: str, seen: SeenPaths | None, *, complete: bool) -> Annotations:
        """For a copy that leaves before; `complete`: by chance all was read."""
        policy, received, taken = self.policy, self.router.received[neighbour], self.taken
        failed = absent = None
        if "s" in policy.negative:
            failed = taken.failed[self.router.entries_of(neighbour)]
        if "d" in policy.negative and taken.absent is not None and self.sender is not None:
            absent = received.data.inherited(taken.absent, self.router.made[self.sender].data)
        places = self._last_places(neighbour, seen) if complete else ()
        return Annotations(
            received.version,
            (),
            places,
            failed if failed is not None and failed.any() else None,
            absent if absent is not None and absent.any() else None,
        )

    def _last_places(self, neighbour: str, seen: SeenPaths | None) -> tuple[LastPlace, ...]:
        """The most beneficial last places: those that come early and spare many entries (§4.2)."""
        if "d" not in self.policy.positive or seen is None:
            return ()
        received = self.router.received[neighbour]
        places = received.data.last_places(self.router.labels, seen)
        benefit = {number: received.frequencies[number] / place for number, place in places.items()}
        best = sorted(places, key=lambda number: (-benefit[number], number))
        return tuple(LastPlace(number, places[number]) for number in sorted(best[: self.room // 3]))


def mask_of(entries: "np.typing.NDArray[np.int32]", count: int) -> Mask:
    """Entries as a mask."""
    mask = np.zeros(count, dtype=np.bool_)
    mask[entries] = True
    return mask
