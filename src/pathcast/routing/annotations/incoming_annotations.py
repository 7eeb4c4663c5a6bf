"""Incoming annotations: reuse the work of the router before (§5.1 of the paper, steps 1–3).

    PS   bindings that fit an entry       its targets get the document at once          (T_sagg)
         aggregates that match            and so do those of the entries that they imply
    NS   aggregates that do not match     entries that they cover need no matching      (T_agg)
    ND   data patterns that do not occur  entries that contain them need no matching    (T_pat)
    PD   last places of data patterns     passed to the engine                          (step 4)

PS comes first, so that targets that are known to want the document do not wait for the rest. The failed entries of a
neighbour are computed before its copy leaves; the other failed entries before matching.

Trust depends on the link: on an untrusted link, negative annotations and last places are ignored, and positive ones
send the document early to other routers, which match it anyway, but never to a subscriber.

Invariant: an entry that `AnnotationFacts` reports as failed does not match the document, and an entry that it reports
as known does, if the sender is honest and its annotations refer to the advertisement `made`; others are ignored.
"""

from dataclasses import dataclass, field

import numpy as np

from pathcast.kernels import Int32s

from ..advertising.subscription_advertisement import Advertisement
from ..table.routing_table import View
from .document_annotations import Annotations, Bound, Mask

_NOBODY = np.zeros(0, dtype=np.int32)


@dataclass(slots=True, eq=False)
class AnnotationFacts:
    """Facts from annotations: targets that want the document, entries that are known to match, and entries that fail.

    `proofs` are bindings with the entries that they prove to match; `refused` is the reason for ignoring annotations.
    The `believed` annotations, with the advertisement that they refer to, rule out entries.
    """

    view: View
    wanting: Mask
    known: Mask
    believed: Annotations = field(default_factory=Annotations)
    made: Advertisement | None = None
    proofs: list[tuple[Bound, Int32s]] = field(default_factory=list)
    refused: str | None = None

    @property
    def absent(self) -> Mask | None:
        """The data patterns of `made` that do not occur."""
        return self.believed.absent

    def covered_by_failed(self, entries: Int32s) -> tuple[Mask, int]:
        """Which of these entries fail because an aggregate over them does, and how many; these are passed on (§5.3)."""
        covered = np.zeros(len(entries), dtype=np.bool_)
        if self.made is None or self.believed.failed is None:
            return covered, 0
        return covered, self.made.covered.mark(self.believed.failed, entries, self.view.idle, covered)

    def failing(self, entries: Int32s) -> tuple[Mask, dict[str, int]]:
        """Which of these entries fail; and how many by kind of annotation, each entry counted for its first kind."""
        failing, covered = self.covered_by_failed(entries)
        skipped = {} if self.believed.failed is None else {"-s": covered}
        if self.made is not None and self.believed.absent is not None:
            skipped["-d"] = self.made.containing.mark(self.believed.absent, entries, self.view.idle, failing)
        return failing, skipped

    def expiry(self) -> Int32s | None:
        """For each entry the number of start tags that must be read for it; None if nothing is known."""
        last = self.believed.last_places
        if last is None or self.made is None:
            return None
        expiry = np.full(len(self.known), np.iinfo(np.int32).max, dtype=np.int32)
        self.made.expiring.expire(*last, expiry)
        return expiry


def take(annotations: Annotations, made: Advertisement | None, view: View, *, trusted: bool) -> AnnotationFacts:
    """The facts in annotations for a router that made this advertisement to their sender; nothing is ruled out yet."""
    taken = AnnotationFacts(view, view.nobody(), np.zeros(len(view.group), dtype=np.bool_))
    if not annotations:
        return taken
    taken.refused = _refusal(annotations, made)
    if taken.refused or made is None:
        return taken
    proofs = [(bound, made.known.entries(bound)) for bound in annotations.bindings]
    holding = _NOBODY if annotations.holding is None else made.known.holding(annotations.holding)
    if proofs or len(holding):
        known = np.concatenate([holding, *[entries for _, entries in proofs]]) if proofs else holding
        taken.wanting = view.targets_of(known)
        if trusted and view.routers:  # which get annotations derived from it
            taken.known[known] = True
    if not trusted:
        taken.wanting[view.routers :] = False
        taken.refused = "the link is untrusted, so no subscriptions were skipped"
        return taken
    taken.proofs, taken.believed, taken.made = proofs, annotations, made
    return taken


def _refusal(annotations: Annotations, made: Advertisement | None) -> str | None:
    """The reason why annotations cannot belong to this advertisement; None if they can."""
    if made is None:
        return "the annotations are ignored: this router has sent no advertisement to the sender"
    if annotations.version != made.version:
        return (
            f"the annotations are ignored: they were made for version {annotations.version} of the "
            f"advertisement, but the current version is {made.version}"
        )
    aggregates, patterns = len(made.aggregates), len(made.data)
    for bits in (annotations.failed, annotations.holding):
        if bits is not None and len(bits) != aggregates:
            return (
                f"the annotations are ignored: they have {len(bits):,} bits, but {aggregates:,} aggregates are "
                "advertised"
            )
    if annotations.absent is not None and len(annotations.absent) != patterns:
        count = len(annotations.absent)
        return f"the annotations are ignored: they have {count:,} bits, but {patterns:,} data patterns are advertised"
    largest = max((bound.aggregate for bound in annotations.bindings), default=-1)
    if largest >= aggregates:
        return f"the annotations are ignored: unknown aggregate {largest:,}; only {aggregates:,} are advertised"
    if annotations.last_places is not None and (largest := int(annotations.last_places.patterns.max())) >= patterns:
        return f"the annotations are ignored: unknown data pattern {largest:,}; only {patterns:,} are advertised"
    return None
