"""Rewriting inside the engine (IDDR, §3.2): XTrie runs over a document as if it were rewritten.

Neither a rewritten document nor its arrays are made: `virtual_rewriting_walk_kernels.py` yields the tags of the
rewritten document, in its own order, and `rewriting_xtrie_engine_kernels.py` runs XTrie's tables over them. A subtree
that an exchange repeats is walked once.

Patterns that XTrie leaves to the verifier, and tests of values that rewriting changes (the text of an element whose
content moved or that was an attribute; renamed attributes), are decided on the rewritten arrays, for the documents and
patterns that need it; `statistics()` counts them.

Invariant: matches and errors are those of the rewritten document.
Cost: some 10 ns per element more than a run of XTrie over the rewritten document; a repeated subtree costs nothing.
"""

from typing import NamedTuple

import numpy as np

from pathcast.documents import DocumentBatch
from pathcast.errors import PathcastError
from pathcast.kernels import Int32s, Int64s
from pathcast.literature.streaming import Arrays, DelegatedPatterns
from pathcast.literature.streaming.match_recording_kernels import GATED, SKIPPING, STREAM, WHY, WRITTEN
from pathcast.literature.xtrie import RunInputs, XTrieEngine
from pathcast.literature.xtrie.table_and_stack_layout_kernels import UNDECIDED
from pathcast.matching import Entries, Offsets

from .element_array_rewriter import EventRewriter
from .rewriting_xtrie_engine_kernels import FEW_FRAMES, MediatedSource, Walk, run_mediated
from .schema_node_lookup_kernels import place_elements
from .virtual_rewriting_walk_kernels import ROW, WALK, WalkedDocuments, WalkRoom


class EngineMatches(NamedTuple):
    """The entries of each document, and the errors of documents that cannot be rewritten."""

    offsets: Offsets
    entries: Entries
    errors: dict[int, PathcastError]


class _Frames:
    """Buffers of a walk."""

    def __init__(self, depth: int = 64) -> None:
        self.depth = depth
        room = WalkRoom(
            frames=np.zeros((4 * depth, ROW), dtype=np.int32),
            tails=np.zeros((3, depth), dtype=np.int32),
            slots=np.zeros(4 * depth, dtype=np.int32),
            hold=np.zeros(4 * depth, dtype=np.int32),
            kept=np.zeros((2, 16 * depth), dtype=np.int64),
        )
        self.walk = Walk(room, np.zeros(WALK, dtype=np.int64))


class MediatedEngine:
    """Runs one XTrie over documents of many mappings."""

    def __init__(self, engine: XTrieEngine) -> None:
        self.engine = engine
        self.documents = 0  # documents for which some test was decided on rewritten arrays
        self._frames = _Frames()
        self._late: tuple[Arrays, DelegatedPatterns, Int32s] | None = None
        self._gate_stamps: Int64s = np.zeros(0, dtype=np.int64)

    def match(self, batch: DocumentBatch, rewriter: EventRewriter) -> EngineMatches:
        """The entries that each document matches in the global schema."""
        nodes, tables = np.empty(len(batch.name), dtype=np.int32), rewriter.tables
        is_split = place_elements(batch.elements, batch.values.texts, tables.schema(batch.known_count), nodes)
        # What are two text nodes here may be one in the rewritten document; moves across levels need its arrays.
        if is_split or tables.moves:
            self.documents += len(batch)
            rewritten = rewriter.rewrite(batch).batch
            return EngineMatches(*self.engine.match_batch(rewritten), rewritten.errors)
        with self.engine.lent(batch) as lent:
            return self._match(batch, nodes, rewriter, lent)

    def _match(self, batch: DocumentBatch, nodes: Int32s, rewriter: EventRewriter, lent: RunInputs) -> EngineMatches:
        scratch, delegated = lent.scratch, len(lent.tables["delegated"])
        scratch.state[[WRITTEN, GATED, STREAM, SKIPPING]] = 0
        scratch.state[UNDECIDED] = delegated
        if len(self._gate_stamps) < delegated + lent.entries:
            self._gate_stamps = np.zeros(delegated + lent.entries, dtype=np.int64)
        offsets, gate_offsets = np.zeros((2, len(batch) + 1), dtype=np.int64)
        refusals = np.zeros(len(batch), dtype=np.int32)
        source, wanted = _source(batch, nodes, rewriter), scratch.wanted(np.zeros(0, dtype=np.int32))
        done = 0
        while done < len(batch):
            answers = scratch.answers(offsets, gate_offsets)._replace(gate_stamps=self._gate_stamps)
            done = run_mediated(
                done,
                source,
                lent.tested,
                self._frames.walk,
                lent.kernel_tables,
                scratch.stacks,
                wanted,
                answers,
                scratch.state,
                refusals,
            )
            why = int(scratch.state[WHY])
            if why == FEW_FRAMES:
                self._frames = _Frames(2 * self._frames.depth)
            else:
                scratch.grow(why)
        entries = scratch.out[: offsets[-1]].copy()
        errors = {**batch.errors}
        for index in np.flatnonzero(refusals).tolist():
            errors.setdefault(index, rewriter.refusal(batch, index, int(refusals[index])))
        if gate_offsets[-1]:
            gates = scratch.gates[: gate_offsets[-1]]
            offsets, entries = self._with_late(batch, rewriter, lent, offsets, entries, gate_offsets, gates)
        return EngineMatches(offsets, entries, errors)

    def _with_late(
        self,
        batch: DocumentBatch,
        rewriter: EventRewriter,
        lent: RunInputs,
        offsets: Offsets,
        entries: Entries,
        gate_offsets: Offsets,
        gates: Int32s,
    ) -> tuple[Offsets, Entries]:
        """With the patterns behind gates that hold on the rewritten arrays."""
        late, numbers = self._verifying(lent.tables)
        delegated, scratch = lent.tables["delegated"], lent.scratch
        is_delegated = gates < len(delegated)
        waiting = np.where(is_delegated, 0, gates - len(delegated))
        waiting[is_delegated] = delegated[gates[is_delegated]]
        self.documents += int(np.count_nonzero(np.diff(gate_offsets)))
        rewritten = rewriter.rewrite(batch).batch
        found = np.searchsorted(numbers, waiting).astype(np.int32)
        return late.add(rewritten, offsets, entries, gate_offsets, found, None, scratch.marks, scratch.summary)

    def _verifying(self, tables: Arrays) -> tuple[DelegatedPatterns, Int32s]:
        """The verifier of all patterns with predicates, as of the engine's tables."""
        if self._late is None or self._late[0] is not tables:
            numbers = np.array(sorted(self.engine.table.trees), dtype=np.int32)
            self._late = tables, DelegatedPatterns(self.engine.table, numbers), numbers
        return self._late[1], self._late[2]


def _source(batch: DocumentBatch, nodes: Int32s, rewriter: EventRewriter) -> MediatedSource:
    """The documents, given their elements' schema nodes, and the mapping."""
    tables = rewriter.tables
    documents = WalkedDocuments(nodes, batch.end, batch.attribute_begin, batch.attribute_name, batch.name, batch.depth)
    return MediatedSource(batch.offsets, documents, tables.plan, tables.most, rewriter.limit)
