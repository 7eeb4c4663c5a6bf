"""Insertion: put documents that another reader read at their places in a batch."""

from collections.abc import Sequence

import numpy as np

from pathcast.kernels import AnyArray, Int32s, Int64s
from pathcast.store import offsets_of

from .document_batch import DocumentBatch


def splice(batch: DocumentBatch, places: list[int], others: DocumentBatch) -> DocumentBatch:
    """`batch` with document `places[k]`, which is empty there, replaced by document `k` of `others`.

    Both were read with the same known names.
    """
    assert batch.known_count == others.known_count
    own: Sequence[str] = batch.own_names
    renamed = np.arange(others.name_count, dtype=np.int32)
    if others.own_names:
        own = tuple(dict.fromkeys((*batch.own_names, *others.own_names)))
        ids = {name: batch.known_count + number for number, name in enumerate(own)}
        renamed[others.known_count :] = [ids[name] for name in others.own_names]
    lengths = np.diff(batch.offsets)
    lengths[places] = np.diff(others.offsets)
    offsets = offsets_of(lengths)
    rows = _Rows(batch, places, others)
    arena_shift = len(batch.arena)

    def starts(column: str, parts: "_Parts") -> Int64s:
        # The expat reader writes all values to its arena, which follows the scanner's.
        theirs = getattr(others, column) - arena_shift
        return parts.joined(getattr(batch, column), theirs)

    elements, attributes, texts = rows.elements, rows.attributes, rows.texts
    return DocumentBatch(
        data=batch.data,
        data_offsets=batch.data_offsets,
        offsets=offsets,
        name=elements.joined(batch.name, renamed[others.name]),
        parent=np.maximum(elements.moved(batch.parent, others.parent, elements), -1),
        depth=elements.joined(batch.depth, others.depth),
        end=elements.moved(batch.end, others.end, elements),
        position=elements.joined(batch.position, others.position),
        attribute_begin=np.append(
            elements.moved(batch.attribute_begin[:-1], others.attribute_begin[:-1], attributes),
            np.int32(len(batch.attribute_name) + len(others.attribute_name)),
        ),
        attribute_name=attributes.joined(batch.attribute_name, renamed[others.attribute_name]),
        attribute_start=starts("attribute_start", attributes),
        attribute_length=attributes.joined(batch.attribute_length, others.attribute_length),
        text_begin=elements.moved(batch.text_begin, others.text_begin, texts),
        text_end=elements.moved(batch.text_end, others.text_end, texts),
        text_parent=texts.moved(batch.text_parent, others.text_parent, elements),
        text_start=starts("text_start", texts),
        text_length=texts.joined(batch.text_length, others.text_length),
        arena=np.concatenate([batch.arena, others.arena]),
        known=batch.known,
        known_count=batch.known_count,
        own_names=own,
        encodings={places[number]: codec for number, codec in others.encodings.items()},
        errors={places[number]: error for number, error in others.errors.items()},
    )


class _Parts:
    """One table of the two batches, cut at the documents' edges and joined in the documents' order."""

    def __init__(self, mine: Int64s, theirs: Int64s, places: list[int]) -> None:
        self.cuts: list[tuple[bool, int, int]] = []
        self.shifts: list[int] = []
        mine_at, theirs_at, out = 0, 0, 0
        for number, place in enumerate(places):
            edge = int(mine[place])
            for is_other, begin, end in ((False, mine_at, edge), (True, theirs_at, int(theirs[number + 1]))):
                self.cuts.append((is_other, begin, end))
                self.shifts.append(out - begin)
                out += end - begin
            mine_at, theirs_at = edge, int(theirs[number + 1])
        self.cuts.append((False, mine_at, int(mine[-1])))
        self.shifts.append(out - mine_at)

    def joined(self, mine: AnyArray, theirs: AnyArray) -> AnyArray:
        """A column of this table."""
        return np.concatenate([(theirs if is_other else mine)[begin:end] for is_other, begin, end in self.cuts])

    def moved(self, mine: Int32s, theirs: Int32s, to: "_Parts") -> Int32s:
        """A column of this table that holds indices into table `to`; -1 stays below zero."""
        pieces = []
        for (is_other, begin, end), shift in zip(self.cuts, to.shifts, strict=True):
            piece = (theirs if is_other else mine)[begin:end]
            pieces.append(np.where(piece < 0, piece, piece + np.int32(shift)))
        return np.concatenate(pieces)


class _Rows:
    """The three tables of two batches."""

    def __init__(self, batch: DocumentBatch, places: list[int], others: DocumentBatch) -> None:
        self.elements = _Parts(batch.offsets, others.offsets, places)
        self.attributes = _Parts(
            batch.attribute_begin.astype(np.int64)[batch.offsets],
            others.attribute_begin.astype(np.int64)[others.offsets],
            places,
        )
        self.texts = _Parts(_text_edges(batch), _text_edges(others), places)


def _text_edges(batch: DocumentBatch) -> Int64s:
    """Where each document's text nodes begin."""
    begins = np.append(batch.text_begin, np.int32(len(batch.text_start))).astype(np.int64)
    return begins[batch.offsets]
