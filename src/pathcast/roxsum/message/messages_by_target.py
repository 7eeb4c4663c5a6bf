"""Messages by target: one message for each target of a batch, documents with the same targets encoded once.

    documents of each target ──partition──▶ atoms ──encode once──▶ shared segments ──copied──▶ messages of their targets
                                              └─ small, or of one target ──▶ one more segment of each target alone

An *atom* is all documents of a batch that have the same set of targets. The segment of an atom holds the names, tags
and values of the atom's documents alone, and all of these documents go to each receiver of the segment: no message
holds a name that its own documents lack. (A receiver can see which of its documents have the same targets.)

A shared segment repeats in each message the tables that the target's other segments also have, and costs some time
however small it is. So atoms that save little are encoded with the target's other documents.

Invariant: a message holds exactly the documents of its target.
Cost: some 10 operations per document and target; encoding for each atom, or for each target's small ones; copying.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pathcast.kernels import Int64s

from ..summary_matching import numbers_of
from .batch_encoder import encode_segment
from .message_format import Segment, pack

if TYPE_CHECKING:
    from pyroaring import BitMap

    from ..summary import RoXSum

# Sharing an atom is worth its own segment from this number of encodings of a document that it saves.
SAVED_DOCUMENTS = 512


class Atom(NamedTuple):
    """The places of documents that have the same targets, ascending, and the numbers of these targets."""

    places: Int64s
    targets: list[int]

    @property
    def saved(self) -> int:
        """How many encodings of a document sharing the atom saves."""
        return len(self.places) * (len(self.targets) - 1)


def encode_by_target(
    batch: "RoXSum", found: "Mapping[Any, BitMap]", *, level: int, saved: int = SAVED_DOCUMENTS
) -> dict[Any, bytes]:
    """The message of each target that gets documents; `saved` as for `divided`."""
    wanted = {target: documents for target, documents in found.items() if documents}
    members = [np.searchsorted(batch.ids, numbers_of(documents)) for documents in wanted.values()]
    atoms = partition(len(batch), members)
    batch.contents.expect(sum(len(atom.places) for atom in atoms))
    shared, own = divided(atoms, saved)
    segments: list[list[Segment]] = [[] for _ in wanted]
    for atom in shared:
        segment = encode_segment(batch.at_places(atom.places), level=level)
        for target in atom.targets:
            segments[target].append(segment)
    for target, places in own.items():
        segments[target].append(encode_segment(batch.at_places(places), level=level))
    return {target: pack(batch.next_id, those) for target, those in zip(wanted, segments, strict=True)}


def partition(count: int, members: Sequence[Int64s]) -> list[Atom]:
    """The atoms of the places below `count`, of which each target has some; a place of no target is in no atom.

    Part 0 has the places of no target so far. Each target splits each part into the places that it has, as a new part,
    and the others; except for part 0, a part that it has whole stays.
    """
    part = np.zeros(count, dtype=np.int64)
    sizes = np.array([count], dtype=np.int64)
    for places in members:
        hits = np.bincount(part[places], minlength=len(sizes))
        splits = (hits > 0) & (hits < sizes)
        splits[0] = hits[0] > 0
        new_part = np.arange(len(sizes))
        new_part[splits] = len(sizes) + np.arange(np.count_nonzero(splits))
        part[places] = new_part[part[places]]
        sizes = np.append(sizes - hits * splits, hits[splits])
    order = np.argsort(part, kind="stable")
    edges = np.cumsum(sizes).tolist()
    atoms = [Atom(order[first:last], []) for first, last in pairwise(edges)]
    for target, places in enumerate(members):
        for number in np.flatnonzero(np.bincount(part[places], minlength=len(sizes))).tolist():
            atoms[number - 1].targets.append(target)
    return atoms


def divided(atoms: Sequence[Atom], saved: int) -> tuple[list[Atom], dict[int, Int64s]]:
    """The atoms with segments of their own, and the places of all others by target, ascending.

    An atom of several targets has its own segment if that saves `saved` encodings of a document. So have the small
    atoms if they are fewer than their targets, because then their segments are fewer than with one for each target.
    """
    shared = [atom for atom in atoms if len(atom.targets) > 1 and atom.saved >= saved]
    small = [atom for atom in atoms if len(atom.targets) > 1 and atom.saved < saved]
    if len(small) < len({target for atom in small for target in atom.targets}):
        shared, small = shared + small, []
    own: dict[int, list[Int64s]] = {}
    for atom in [*small, *(atom for atom in atoms if len(atom.targets) == 1)]:
        for target in atom.targets:
            own.setdefault(target, []).append(atom.places)
    return shared, {target: np.sort(np.concatenate(places)) for target, places in own.items()}
