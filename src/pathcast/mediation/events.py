"""Rewriting between reader and engine (NDDR, §3.1): element arrays of local documents become those of global ones.

The paper rewrites events and keeps cached trees of what an operator has to hold back. Here the reader's events are
arrays, and so are the engine's: nothing is parsed again, no bytes are written, and values stay places in the original
bytes. What a stream would have had to hold back is counted (`Rewritten.held`).

Invariant: engines answer on what this gives as they do on the document that `static.py` gives. A document of another
schema, or one that would become too large, has an error of its own; the others are unaffected.
Cost: two walks of some dozens of ns an element; memory for all elements of a batch once more.
"""

from collections.abc import Mapping as Table
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..documents import DocumentBatch
from ..documents.batch import Int32s, Int64s
from ..documents.names import Names
from ..errors import LimitError, MappingError, PathcastError
from . import emit_kernels as written_rows
from .emit_kernels import ELEMENT_ROWS, emit
from .plan import Plan
from .rewrite_kernels import (
    C_ATTRIBUTES,
    C_ELEMENTS,
    C_PEAK,
    C_TEXTS,
    C_THINGS,
    COUNTS,
    FRAME,
    FULL,
    NONE,
    O_KIND,
    O_SOURCE,
    OUT_ROWS,
    TEXT,
    TOO_LARGE,
    TOO_MANY_ROOTS,
    link,
    place_elements,
)
from .static import LIMIT
from .tables import Tables, tables_of


class Rewritten(NamedTuple):
    """A rewritten batch, and the most elements that a stream over any of its documents would have held back."""

    batch: DocumentBatch
    held: int


@dataclass(slots=True)
class _Room:
    """Buffers of `link`, larger when they were too small."""

    things: Int32s
    frames: Int32s
    tails: Int32s
    slots: Int32s
    hold: Int32s

    @classmethod
    def of(cls, things: int, depth: int) -> "_Room":
        return cls(
            np.empty((OUT_ROWS, things), dtype=np.int32),
            np.empty((depth, FRAME), dtype=np.int32),
            np.empty((3, depth), dtype=np.int32),
            np.empty((3, 4 * depth), dtype=np.int32),
            np.empty(4 * depth, dtype=np.int32),
        )

    def doubled(self) -> "_Room":
        """Twice the room, with the things that were linked."""
        more = self.of(2 * self.things.shape[1], 2 * len(self.frames))
        more.things[:, : self.things.shape[1]] = self.things
        return more


class EventRewriter:
    """Rewrites batches by one plan. `names` is the table that the batches were read with, or another."""

    def __init__(self, plan: Plan, names: Names, *, limit: int = LIMIT) -> None:
        self.plan = plan
        self.names = names
        self.limit = limit
        self.tables: Tables = tables_of(plan, names)

    def rewrite(self, batch: DocumentBatch) -> Rewritten:
        """The documents in the global schema; names are those of `names`, then the batch's own."""
        if batch.known is not self.names:
            raise ValueError("the batch was read with another table of names")
        tables = self.tables
        nodes = np.empty(len(batch.name), dtype=np.int32)
        small = tables.small if len(tables.small) <= batch.known_count else tables.small[: batch.known_count]
        place_elements(batch.offsets, batch.name, batch.parent, small, tables.child, tables.root, nodes)
        errors: dict[int, PathcastError] = dict(batch.errors)
        tops, room, counts = self._link(batch, nodes, errors)
        return Rewritten(self._emit(batch, nodes, tops, room, counts, errors), int(counts[C_PEAK]))

    def _link(
        self, batch: DocumentBatch, nodes: Int32s, errors: dict[int, PathcastError]
    ) -> tuple[list[int], _Room, Int64s]:
        """The list of each document, `NONE` for those in `errors`."""
        tables = self.tables
        room = _Room.of(2 * (len(batch.name) + len(batch.text_start)) + 1024, 64 + 2 * int(batch.depth.max(initial=0)))
        counts = np.zeros(COUNTS, dtype=np.int64)
        tops: list[int] = []
        for index in range(len(batch)):
            tops.append(NONE)
            if index in errors:
                continue
            root = int(batch.offsets[index])
            if nodes[root] == NONE:
                found, expected = batch.name_of(int(batch.name[root])), self.plan.tree.root.name
                errors[index] = MappingError(f"the document's root is '{found}'; the schema's is '{expected}'")
                continue
            before = counts.copy()
            while True:
                done = link(
                    root, nodes, batch.name, batch.end, batch.attribute_begin, batch.attribute_name, batch.text_begin,
                    batch.text_end, batch.text_parent, tables.nodes, tables.attributes, tables.paths, self.limit,
                    room.things, room.frames, room.tails, room.slots, room.hold, counts,
                )  # fmt: skip
                if done != FULL:
                    break
                room = room.doubled()
                counts[:] = before
            if done in (TOO_LARGE, TOO_MANY_ROOTS):
                counts[:] = before
                errors[index] = self._refusal(done)
            else:
                tops[-1] = int(before[C_THINGS])
        return tops, room, counts

    def _refusal(self, done: int) -> PathcastError:
        if done == TOO_LARGE:
            return LimitError(f"the rewritten document has more than {self.limit:,} elements; raise limit=…")
        name = self.plan.nodes[self.plan.tree.root.name].exchange
        return MappingError(f"the document has several elements '{name}' in its root; each would become a root")

    def _emit(
        self,
        batch: DocumentBatch,
        nodes: Int32s,
        tops: list[int],
        room: _Room,
        counts: Int64s,
        errors: Table[int, PathcastError],
    ) -> DocumentBatch:
        tables = self.tables
        elements = np.empty((ELEMENT_ROWS, int(counts[C_ELEMENTS])), dtype=np.int32)
        attribute_name = np.empty(int(counts[C_ATTRIBUTES]), dtype=np.int32)
        attribute_start, attribute_length = np.empty(len(attribute_name), dtype=np.int64), np.empty_like(attribute_name)
        text_parent = np.empty(int(counts[C_TEXTS]), dtype=np.int32)
        text_start, text_length = np.empty(len(text_parent), dtype=np.int64), np.empty_like(text_parent)
        things = room.things[:, : int(counts[C_THINGS])]
        linked = things[O_SOURCE, things[O_KIND] == TEXT]
        copied = np.empty(int(batch.text_length[linked].sum(dtype=np.int64)), dtype=np.uint8)
        stack = np.empty(int(counts[C_THINGS]) + 1, dtype=np.int32)
        written = np.zeros(4, dtype=np.int64)
        offsets = np.zeros(len(batch) + 1, dtype=np.int64)
        for index, top in enumerate(tops):
            if top != NONE:
                emit(
                    top, room.things, nodes, tables.nodes, tables.attributes, batch.position, batch.attribute_begin,
                    batch.attribute_name, batch.attribute_start, batch.attribute_length, batch.text_start,
                    batch.text_length, batch.data, batch.arena, stack, elements, attribute_name, attribute_start,
                    attribute_length, text_parent, text_start, text_length, copied, written,
                )  # fmt: skip
            offsets[index + 1] = written[written_rows.W_ELEMENTS]
        kept = int(written[written_rows.W_ATTRIBUTES])
        texts = int(written[written_rows.W_TEXTS])
        begin = np.append(elements[written_rows.E_ATTRIBUTES], np.int32(kept))
        return DocumentBatch(
            data=batch.data,
            data_offsets=batch.data_offsets,
            offsets=offsets,
            name=elements[written_rows.E_NAME],
            parent=elements[written_rows.E_PARENT],
            depth=elements[written_rows.E_DEPTH],
            end=elements[written_rows.E_END],
            position=elements[written_rows.E_POSITION],
            attribute_begin=begin,
            attribute_name=attribute_name[:kept],
            attribute_start=attribute_start[:kept],
            attribute_length=attribute_length[:kept],
            text_begin=elements[written_rows.E_TEXT],
            text_end=elements[written_rows.E_TEXT_END],
            text_parent=text_parent[:texts],
            text_start=text_start[:texts],
            text_length=text_length[:texts],
            arena=np.concatenate([batch.arena, copied[: int(written[written_rows.W_BYTES])]]),
            known=batch.known,
            known_count=batch.known_count,
            own_names=batch.own_names,
            encodings=batch.encodings,
            errors=dict(errors),
        )
