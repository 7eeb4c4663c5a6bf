"""The YFilter engine behind the engine contract.

    table's trie ┐
    queries.py ──┴─▶ network.py ──▶ run_kernels.py ──▶ entries, ascending
    (trees, decomposed)               │ gates of what is not taken
                                      ▼
                                the default engine's verifier

Invariant: the network is that of the table as of the last `refresh`; a run changes nothing but its buffers, hence one
at a time.
Cost: a search for each active state and element; it grows with the number of paths that a document keeps alive.
"""

import threading
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from ...documents import Document, DocumentBatch
from ..automaton.verifier import Verifier
from ..contract import Entries, Mask, Offsets, StreamMatches
from ..expansion_kernels import merge_entries
from ..table import PatternTable
from .network import Arrays, build_network
from .queries import Queries
from .run_kernels import (
    DONE,
    GATED,
    JOINED,
    READ,
    SKIPPING,
    STREAM,
    TRIED,
    VISITS,
    WAITING,
    WHY,
    WRITTEN,
    run,
)
from .scratch import Scratch, packed

_NO_LINKS = np.zeros(0, dtype=np.int32)


class YFilterEngine:
    """All paths in one shared automaton; selections and joins postponed until paths have matched."""

    name: ClassVar[str] = "yfilter"

    def __init__(self, table: PatternTable, network: Arrays | None = None) -> None:
        self.table = table
        self._queries: Queries | None = None
        self._taken = 0
        self._delegated_documents = 0
        self._scratch = Scratch()
        self._running = threading.Lock()
        self._take(network or self._build())

    @classmethod
    def build(cls, table: PatternTable) -> Self:
        return cls(table)

    @classmethod
    def restore(cls, table: PatternTable, arrays: Arrays) -> Self:
        return cls(table, dict(arrays))

    def arrays(self) -> Arrays:
        """The network and the tables of its queries."""
        return self._network

    def refresh(self) -> None:
        """Take up new patterns: queries are added to those that were decomposed before, the network is built anew."""
        with self._running:
            if len(self.table) != self._entry_count:
                self._take(self._build())

    def _build(self) -> Arrays:
        table = self.table
        if self._queries is None:
            self._queries, self._taken = Queries(table.encoder), 0
        for entry in table.trees:
            if entry >= self._taken:
                self._queries.add(entry, table.trees[entry])
        self._taken = len(table)
        return build_network(table.trie, self._queries) | self._queries.arrays()

    def _take(self, network: Arrays) -> None:
        self._network = network
        self._entry_count = len(self.table)
        self._delegated = Verifier(self.table, network["delegated"].tolist())
        self._scratch.forget()

    def match_batch(self, batch: DocumentBatch) -> tuple[Offsets, Entries]:
        with self._running:
            return self._match(batch, None)

    def match_except(self, batch: DocumentBatch, skip: Mask) -> tuple[Offsets, Entries]:
        """As `match_batch`, without the entries that `skip` marks: nothing is tried, joined or verified for them."""
        with self._running:
            return self._match(batch, skip)

    def match_until(self, batch: DocumentBatch, skip: Mask, expiry: Entries) -> tuple[Offsets, Entries]:
        """As `match_except`; an entry is looked for no longer than `expiry` start tags say."""
        with self._running:
            return self._match(batch, skip, np.ascontiguousarray(expiry[: self._entry_count], dtype=np.int32))

    def _match(self, batch: DocumentBatch, skip: Mask | None, expiry: Entries = _NO_LINKS) -> tuple[Offsets, Entries]:
        scratch = self._scratch
        scratch.fit(self._network, batch, self._entry_count)
        scratch.state[[WRITTEN, GATED, STREAM]] = 0
        scratch.state[SKIPPING] = skip is not None
        if skip is not None:
            scratch.skips = packed(skip, self._entry_count)
        offsets, gate_offsets = np.zeros((2, len(batch) + 1), dtype=np.int64)
        done = 0
        while done < len(batch):
            done = self._run(batch, done, _NO_LINKS, offsets, gate_offsets, expiry)
            scratch.grow(int(scratch.state[WHY]))
        entries = scratch.out[: offsets[-1]].copy()
        if gate_offsets[-1]:
            return self._add_delegated(batch, offsets, entries, gate_offsets, skip)
        return offsets, entries

    def match_stream(
        self, document: Document, *, skip: Mask | None = None, link: Entries | None = None
    ) -> StreamMatches:
        """See `Streaming`. Tests of text are certain at their element's end; what is delegated, at the document's."""
        with self._running:
            return self._match_stream(document, skip, link)

    def _match_stream(self, document: Document, skip: Mask | None, link: Entries | None) -> StreamMatches:
        batch, scratch = document.alone(), self._scratch
        scratch.fit(self._network, batch, self._entry_count)
        scratch.fit_stream(self._entry_count, link)
        hidden = np.zeros(self._entry_count, dtype=np.bool_) if skip is None else skip[: self._entry_count]
        scratch.skips = packed(hidden, self._entry_count)
        links = _NO_LINKS if link is None else np.ascontiguousarray(link, dtype=np.int32)
        waiting = _waited_for(links, hidden) if link is not None else 0
        offsets, gate_offsets = np.zeros((2, 2), dtype=np.int64)
        while True:
            scratch.state[[WRITTEN, GATED]] = 0
            scratch.state[[STREAM, SKIPPING]] = 1, skip is not None
            scratch.state[WAITING] = waiting
            self._run(batch, 0, links, offsets, gate_offsets)
            if scratch.state[WHY] == DONE:
                break
            scratch.grow(int(scratch.state[WHY]))
        written, read = int(scratch.state[WRITTEN]), int(scratch.state[READ])
        entries, positions = scratch.out[:written].copy(), scratch.out_times[:written].copy()
        if scratch.state[GATED] and read == len(document):
            more = self._delegated_of(batch, gate_offsets, skip)
            entries = np.append(entries, more)
            positions = np.append(positions, np.full(len(more), read, dtype=np.int32))
        order = np.argsort(entries)
        return StreamMatches(entries[order], positions[order], read)

    def _run(
        self,
        batch: DocumentBatch,
        first: int,
        link: npt.NDArray[np.int32],
        offsets: Offsets,
        gate_offsets: Offsets,
        expiry: npt.NDArray[np.int32] = _NO_LINKS,
    ) -> int:
        it, scratch = self._network, self._scratch
        return run(  # type: ignore[no-any-return]
            batch.offsets, batch.name, batch.parent, batch.depth, batch.end, first,
            batch.attribute_begin, batch.attribute_name, batch.attribute_start, batch.attribute_length,
            batch.text_begin, batch.text_end, batch.text_parent, batch.text_start, batch.text_length,
            batch.data, batch.arena, self.table.translation(batch),
            it["states"], it["state_symbol"], it["task_begin"], it["task_kind"], it["task_number"],
            it["selection_rows"], it["limits"], it["literals"], it["parts"], it["selects"],
            it["steps"], it["query_begin"], it["query_entry"],
            it["nodes"], it["join_begin"], it["join_entry"], it["join_paths"], it["join_late"], it["path_join"],
            scratch.state, scratch.active, scratch.levels, scratch.deep_stamps, scratch.places, scratch.times,
            scratch.marks, scratch.summary, scratch.skips,
            scratch.log, scratch.path_stamps, scratch.join_counts, scratch.join_stamps, scratch.ready,
            scratch.serial, scratch.node_lists, scratch.element_marks, scratch.pool, scratch.joined,
            scratch.gate_stamps, link, scratch.link_stamps, expiry,
            offsets, scratch.out, scratch.out_times, scratch.pending, gate_offsets, scratch.gates,
        )  # fmt: skip

    def _add_delegated(
        self, batch: DocumentBatch, offsets: Offsets, entries: Entries, gate_offsets: Offsets, skip: Mask | None
    ) -> tuple[Offsets, Entries]:
        """Add the delegated patterns that hold."""
        scratch = self._scratch
        candidates = scratch.gates[: gate_offsets[-1]]
        more = self._delegated.entries[candidates]
        holding = self._delegated.verify(batch, gate_offsets, candidates)
        if skip is not None:
            holding &= ~skip[more]
        self._delegated_documents += int(np.count_nonzero(np.diff(gate_offsets)))
        out = np.empty(len(entries) + len(more) + 8, dtype=np.int32)
        out_offsets = np.zeros(len(offsets), dtype=np.int64)
        merge_entries(
            offsets, entries, gate_offsets, more, holding, scratch.marks, scratch.summary, out_offsets, out
        )  # fmt: skip
        return out_offsets, out[: out_offsets[-1]]

    def _delegated_of(self, batch: DocumentBatch, gate_offsets: Offsets, skip: Mask | None) -> Entries:
        nothing = np.zeros(0, dtype=np.int32)
        _, found = self._add_delegated(batch, np.zeros(2, dtype=np.int64), nothing, gate_offsets, skip)
        return found

    def statistics(self) -> dict[str, int | float]:
        it, state = self._network, self._scratch.state
        return {
            "states": len(it["states"]),
            "network bytes": sum(array.nbytes for array in it.values()),
            "active states visited": int(state[VISITS]),
            "selections tried": int(state[TRIED]),
            "joins": int(state[JOINED]),
            "delegated patterns": len(it["delegated"]),
            "delegated documents": self._delegated_documents,
        }


def _waited_for(links: Entries, hidden: Mask) -> int:
    """How many links have an entry that is not skipped."""
    asked = links[(links >= 0) & ~hidden]
    waiting = np.zeros(int(asked.max(initial=-1)) + 1, dtype=np.bool_)
    waiting[asked] = True
    return int(np.count_nonzero(waiting))
