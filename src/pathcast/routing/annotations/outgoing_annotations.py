"""Outgoing annotations: pass a router's results on to one neighbour (§4, §5.3 of the paper).

After the whole document was read, everything is known: the neighbour's aggregates that match and that do not, the data
patterns that occur, with their last places, and that do not. When a copy leaves earlier, negative annotations can only
be derived from incoming ones (§5.3): aggregates of the neighbour that an annotation has shown to fail, and data
patterns that contain an absent one; positive annotations are derived from incoming ones and from the part read so far.

Invariant: every annotation follows from the part that was read or from trusted annotations.
Cost: look-ups per distinct label path of the document, and a bit per aggregate.
"""

from dataclasses import replace

import numpy as np

from pathcast.documents import DocumentBatch

from ..forwarding_policy import Policy
from ..router import Router
from ..table.ruled_out_entries_and_targets_kernels import pick
from .aggregate_wildcard_binder import fitting
from .data_pattern_occurrences import SeenPaths
from .document_annotations import Annotations, Bound, LastPlaces, Mask
from .incoming_annotations import AnnotationFacts

# Annotations of one kind take at most this part of the document's bytes plus this number of bytes.
SHARE, LEAST = 0.03, 64


class Reading:
    """The part of a document that a router has read: its first `read` elements; label paths if needed."""

    def __init__(self, batch: DocumentBatch, read: int, router: Router, policy: Policy) -> None:
        self.batch, self.read = batch, read
        self.is_complete = read >= len(batch.name)
        self.seen: SeenPaths | None = None
        if self.is_complete and ("d" in policy.positive or "d" in policy.negative):
            self.seen = router.labels.seen(batch)


class AnnotationMaker:
    """Makes the annotations of one document at one router."""

    def __init__(self, router: Router, policy: Policy, taken: AnnotationFacts, size: int) -> None:
        self.router, self.policy, self.taken = router, policy, taken
        self.room = max(LEAST, int(SHARE * size))

    def late(self, neighbour: str, reading: Reading, matched: Mask) -> Annotations:
        """For a copy that leaves after the whole document was read."""
        policy, received = self.policy, self.router.received[neighbour]
        holding, some = self._picked(matched, neighbour)
        absent = None
        if "d" in policy.negative and reading.seen is not None:
            absent = ~received.data.occurring(self.router.labels, reading.seen)
        return Annotations(
            received.version,
            self._bindings(neighbour, reading, holding),
            self._last_places(neighbour, reading.seen),
            ~holding if "s" in policy.negative else None,
            absent,
            holding=holding if some and "s" in policy.positive else None,
        )

    def early(self, neighbour: str, reading: Reading, matched: Mask) -> Annotations:
        """For a copy that leaves before the end of a document, with the matches so far."""
        passed_on = self.at_once(neighbour)
        if not self.policy.tells:
            return passed_on
        holding, some = self._picked(matched | self.taken.known, neighbour)
        return replace(
            passed_on,
            bindings=passed_on.bindings or self._bindings(neighbour, reading, holding),
            last_places=self._last_places(neighbour, reading.seen),
            holding=holding if some and "s" in self.policy.positive else None,
        )

    def at_once(self, neighbour: str) -> Annotations:
        """For a copy that leaves before the document was read: derived from incoming annotations."""
        policy, received, taken = self.policy, self.router.received[neighbour], self.taken
        if taken.made is None:
            return Annotations(received.version)
        failed = absent = holding = None
        if "s" in policy.negative:
            failing, some = taken.covered_by_failed(self.router.entries_of(neighbour))
            failed = failing if some else None
        if "d" in policy.negative and taken.absent is not None:
            absent = received.data.inherited(taken.absent, taken.made.data)
            absent = absent if absent.any() else None
        if "s" in policy.positive:
            holding, some = self._picked(taken.known, neighbour)
            holding = holding if some else None
        return Annotations(
            received.version, bindings=self.passed_on(neighbour), failed=failed, absent=absent, holding=holding
        )

    def _picked(self, mask: Mask, neighbour: str) -> tuple[Mask, int]:
        """The values of a mask of entries for a neighbour's aggregates; and how many are true."""
        entries = self.router.entries_of(neighbour)
        picked = np.empty(len(entries), dtype=np.bool_)
        return picked, pick(entries, mask, picked)

    def _bindings(self, neighbour: str, reading: Reading, holding: Mask) -> tuple[Bound, ...]:
        """The most beneficial bindings that fit (§4.1)."""
        if "s" not in self.policy.positive:
            return ()
        return self.router.binder(neighbour).bind(reading.batch, reading.read, holding, self.room)

    def passed_on(self, neighbour: str) -> tuple[Bound, ...]:
        """Bindings of the neighbour's aggregates that follow from incoming bindings."""
        made = self.taken.made
        if "s" not in self.policy.positive or made is None or not self.taken.proofs:
            return ()
        binder = self.router.binder(neighbour)
        numbers = self.router.numbers_of(neighbour)
        found: dict[Bound, None] = {}
        for bound, entries in self.taken.proofs:
            found.update(dict.fromkeys(binder.following(made, bound, entries, numbers)))
        return fitting(found, self.room)

    def _last_places(self, neighbour: str, seen: SeenPaths | None) -> LastPlaces | None:
        """The most beneficial last places: those that are early and rule out many entries (§4.2)."""
        if "d" not in self.policy.positive or seen is None:
            return None
        received = self.router.received[neighbour]
        places = received.data.last_places(self.router.labels, seen)
        occurring = np.flatnonzero(places)
        benefit = received.frequencies[occurring] / places[occurring]
        best = np.sort(occurring[np.argsort(-benefit, kind="stable")[: self.room // 3]])
        return LastPlaces(best, places[best]) if len(best) else None


def mask_of(entries: "np.typing.NDArray[np.int32]", count: int) -> Mask:
    """Entries as a mask."""
    mask = np.zeros(count, dtype=np.bool_)
    mask[entries] = True
    return mask
