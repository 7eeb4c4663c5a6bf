"""The quick way from a structure annotation to matches: no document is parsed, and no element arrays are made.

For a table of plain paths, what a document matches is what its distinct label paths satisfy, and a label path satisfies
the same in every document: it is asked of the engine once (`PathMatching`) and remembered by its number in the link's
dictionary. A document then costs a look at each of its numbers and a mark for each entry.

Invariant: as `StructureDecoder.decode` and `match_batch` together, refusals included, for tables without predicates.
What is remembered is forgotten when the table has grown, or the dictionary was begun anew.
Cost: some 10 µs a document of a hundred elements, most of it for checking the message.
Not done: patterns with predicates; a table that has some is matched on element arrays.
"""

import numpy as np

from ..errors import LimitError
from ..matching.contract import Engine, Entries, PathMatching
from .link_dictionary import Learnt
from .matching_kernels import C_ENTRIES, C_MISSING, C_ROWS, UNKNOWN, match_elements
from .structure_decoder import StructureDecoder
from .structure_kernels import S_ROWS
from .structure_wire import Refused


class StructureMatcher:
    """Matches from the annotations of one link, by one engine."""

    def __init__(self, decoder: StructureDecoder, engine: Engine) -> None:
        self.decoder, self.engine = decoder, engine
        self._counts, self._state = np.zeros(C_ROWS, np.int64), np.zeros(S_ROWS, np.int64)
        self._forget(None)

    @staticmethod
    def takes(engine: Engine) -> bool:
        """Whether an engine and its patterns are fit for the quick way."""
        return isinstance(engine, PathMatching) and not len(engine.table.trees)

    def match(self, structure: bytes, document: bytes) -> Entries | Refused:
        """The entries that a document matches, ascending; or why it must be parsed."""
        message = self.decoder.taken_in(structure, document)
        if isinstance(message, Refused):
            return message
        learnt = message.learnt
        assert learnt is not None
        if learnt is not self._learnt or len(self.engine.table) != self._entries:
            self._forget(learnt)
        self._make_room(learnt, message.elements)
        data = np.frombuffer(structure, np.uint8)
        while True:
            why = match_elements(
                data, message.begin, len(structure), message.elements, message.paths, learnt.parent, learnt.depth,
                self._begin, self._count, self._memo, self._seen, self._stack, self._missing, self._out,
                self._marks, self._summary, self._counts, self._state,
            )  # fmt: skip
            if why:
                return self.decoder.refused(why)
            if not self._counts[C_MISSING]:
                return self._with_always(self._out[: self._counts[C_ENTRIES]].copy())
            try:
                self._ask(learnt, self._missing[: self._counts[C_MISSING]].tolist())
            except LimitError as error:
                return Refused(error.reason)

    def _with_always(self, entries: Entries) -> Entries:
        return entries if not len(self._always) else np.union1d(entries, self._always).astype(np.int32)

    def _forget(self, learnt: Learnt | None) -> None:
        """Begin anew, for the entries that there are by now."""
        self._learnt, self._entries = learnt, len(self.engine.table)
        self._begin, self._count = np.zeros(0, np.int64), np.zeros(0, np.int32)
        self._seen = np.zeros(0, np.int64)
        self._memo, self._filled = np.empty(1 << 12, np.int32), 0
        words = (self._entries + 63) // 64 + 1
        self._marks, self._summary = np.zeros(words, np.uint64), np.zeros((words + 63) // 64 + 1, np.uint64)
        self._out = np.empty(self._entries + 8, np.int32)
        self._stack, self._missing = np.zeros(64, np.int32), np.zeros(0, np.int32)
        self._always = np.zeros(0, np.int32)
        if learnt is not None:
            assert isinstance(self.engine, PathMatching)
            self.engine.refresh()
            self._always = self.engine.match_paths([()])[1]

    def _make_room(self, learnt: Learnt, elements: int) -> None:
        paths = len(learnt.parent)
        if len(self._begin) < paths:
            more = paths - len(self._begin)
            self._begin = np.concatenate([self._begin, np.zeros(more, np.int64)])
            self._count = np.concatenate([self._count, np.full(more, UNKNOWN, np.int32)])
            self._seen = np.concatenate([self._seen, np.zeros(more, np.int64)])
        if len(self._missing) < elements:
            self._missing = np.zeros(2 * elements, np.int32)
        if len(self._stack) < learnt.deepest + 2:
            self._stack = np.zeros(2 * learnt.deepest + 2, np.int32)

    def _ask(self, learnt: Learnt, paths: list[int]) -> None:
        """Ask the engine what label paths satisfy, and remember it."""
        assert isinstance(self.engine, PathMatching)
        offsets, entries = self.engine.match_paths([learnt.labels(path) for path in paths])
        if self._filled + len(entries) > len(self._memo):
            larger = np.empty(2 * (self._filled + len(entries)), np.int32)
            larger[: self._filled] = self._memo[: self._filled]
            self._memo = larger
        self._memo[self._filled : self._filled + len(entries)] = entries
        self._begin[paths] = self._filled + offsets[:-1]
        self._count[paths] = np.diff(offsets)
        self._filled += len(entries)
