"""Taking annotations in: what a router need not work out, since the one before it did (§5.1 of the paper, steps 1–3).

    PS   bindings that fit an entry       its targets get the document at once
    NS   aggregates that don't match      what they cover need not be matched           (T_agg)
    ND   data patterns that don't occur   what contains them need not be matched        (T_pat)
    PD   last places of data patterns     handed on to the engine                       (step 4)

Annotations are believed as far as the link is: over an untrusted one, negative ones and last places are not looked at,
and bindings send the document early to other routers, which match it anyway, but never to a subscriber.

Invariant: what a `Taken` marks as failed does not match the document, if the sender is honest and its annotations refer
to the advertisement that `made` is; others are not looked at.
"""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from .advertisement import Advertisement, Behind
from .annotations import Annotations, Bound, Mask
from .table import View

Int32s = npt.NDArray[np.int32]


@dataclass(slots=True, eq=False)
class Taken:
    """What annotations told: entries that fail (and how many by each kind), targets that want the document.

    `proofs` are bindings with the entries that they show to match, `absent` the data patterns of `made` that don't
    occur, `expiry` the places after which entries need not be looked for, `refused` why annotations were not looked at.
    """

    failed: Mask
    wanting: Mask
    proofs: list[tuple[Bound, Int32s]] = field(default_factory=list)
    absent: Mask | None = None
    expiry: Int32s | None = None
    skipped: dict[str, int] = field(default_factory=dict)
    refused: str | None = None


def take(annotations: Annotations, made: Advertisement | None, view: View, *, trusted: bool) -> Taken:
    """What annotations tell a router that made this advertisement to their sender."""
    taken = Taken(np.zeros(len(view.group), dtype=np.bool_), view.nobody())
    if not annotations:
        return taken
    taken.refused = _refusal(annotations, made)
    if taken.refused or made is None:
        return taken
    proofs = [(bound, made.known.entries(bound)) for bound in annotations.bindings]
    if proofs:
        taken.wanting = view.targets_of(*[entries for _, entries in proofs])
    if not trusted:
        taken.wanting[view.routers :] = False
        taken.refused = "the link is untrusted: nothing was skipped"
        return taken
    taken.proofs = proofs
    if annotations.failed is not None:
        _skip(taken, "-s", made.covered, annotations.failed, view)
    if annotations.absent is not None:
        _skip(taken, "-d", made.containing, annotations.absent, view)
        taken.absent = annotations.absent
    if annotations.last_places is not None:
        taken.expiry = _expiry(annotations, made, len(view.group))
    return taken


def _refusal(annotations: Annotations, made: Advertisement | None) -> str | None:
    """Why annotations can't be about this advertisement; None when they can."""
    if made is None:
        return "annotations from a router that nothing was advertised to"
    if annotations.version != made.version:
        return f"annotations refer to version {annotations.version} of the advertisement, now {made.version}"
    aggregates, patterns = len(made.aggregates), len(made.data)
    if annotations.failed is not None and len(annotations.failed) != aggregates:
        return f"{len(annotations.failed):,} bits for {aggregates:,} aggregates"
    if annotations.absent is not None and len(annotations.absent) != patterns:
        return f"{len(annotations.absent):,} bits for {patterns:,} data patterns"
    if max((bound.aggregate for bound in annotations.bindings), default=-1) >= aggregates:
        return "a binding of an aggregate that there is not"
    if annotations.last_places is not None and annotations.last_places.patterns.max() >= patterns:
        return "a last place of a data pattern that there is not"
    return None


def _skip(taken: Taken, kind: str, behind: Behind, numbers: Mask, view: View) -> None:
    taken.skipped[kind] = behind.mark(numbers, view.idle, taken.failed)


def _expiry(annotations: Annotations, made: Advertisement, count: int) -> Int32s:
    """For each entry how many start tags need be read for it."""
    expiry = np.full(count, np.iinfo(np.int32).max, dtype=np.int32)
    assert annotations.last_places is not None
    made.expiring.expire(*annotations.last_places, expiry)
    return expiry
