"""The fast path from a structure annotation to matches: without parsing, and without element arrays.

A label path satisfies the same patterns in every document: an engine computes them once (`PathMatching`), and they are
cached by the path's number in the link's dictionary. For plain paths this suffices: a document satisfies what its
distinct label paths satisfy. Trees are decomposed into plain paths (`tree_pattern_decomposition.py`). A tree whose
paths all occur matches if the paths must meet; otherwise it is embedded in the elements' numbers. A tree with
conditions on values is evaluated on element arrays, which are made only then; if there are many of these, the engine
evaluates them.

Invariant: the results, including rejections, are those of `StructureDecoder.decode` and `match_batch` together. The
cache is cleared when the dictionary restarts or the table has grown; a large table is decomposed again only after some
documents, which are matched on element arrays in the meantime.
Cost: about 10 µs per document of a hundred elements, most of it for checking the message; for each tree whose paths all
occur some nanoseconds, about 0.3 µs if it is embedded in the elements, more if it has conditions on values.
"""

from functools import cache

import numpy as np

from pathcast.documents import local_part
from pathcast.documents.structure import S_ROWS
from pathcast.errors import LimitError
from pathcast.kernels import Int32s, Int64s
from pathcast.matching import Engine, Entries, PathMatching
from pathcast.matching.automaton.verify import Verifier
from pathcast.store import grown

from ..annotations.aggregate_wildcard_binder_kernels import H_ROWS, Search
from .link_path_dictionary import ReceivedPaths
from .structure_annotation_frame import Refused
from .structure_decoder import StructureDecoder, Taken
from .structure_matcher_kernels import (
    C_ENTRIES,
    C_LAID,
    C_MISSING,
    C_OPEN,
    C_ROWS,
    UNKNOWN,
    Answer,
    LinkPaths,
    Occurring,
    Opened,
    PathMemo,
    match_elements,
)
from .tree_pattern_decomposition import StructureTrees

MOST_KEPT = 1 << 14  # elements for which memory is kept between documents
PATIENCE = 8  # trees per document that the engine matches before a grown table is decomposed again
FEW = 64  # trees that are evaluated one by one; for more, the engine, which looks up values, is faster
STRAIGHT = 15  # documents that go directly to the engine after one that had more
_LAST_STAMP = 1 << 30
_SMALLEST_STACK = 64
_NONE, _NO_STAMPS = np.zeros(0, np.int32), np.zeros(0, np.int64)


@cache
def _takes(engine: type) -> bool:
    """Whether engines of a class are supported; cached, since `isinstance` would take longer than matching."""
    return issubclass(engine, PathMatching)


class StructureMatcher:
    """Matches from the annotations of one link, with one engine; up to `few` trees are evaluated one by one."""

    def __init__(self, decoder: StructureDecoder, engine: Engine, *, few: int = FEW) -> None:
        self.decoder, self.engine, self._few = decoder, engine, few
        self._counts, self._state = np.zeros(C_ROWS, np.int64), np.zeros(S_ROWS, np.int64)
        self._entries = -1
        self._waited = self._straight = 0  # documents since the table has grown; documents left for the engine alone
        self._forget(None)

    @staticmethod
    def takes(engine: Engine) -> bool:
        """Whether an engine supports the fast path."""
        return _takes(type(engine))

    def match(self, structure: bytes, document: bytes) -> Entries | Refused:
        """The entries that a document matches, in no particular order; or the reason why it must be parsed."""
        message = self.decoder.taken_in(structure, document)
        return message if isinstance(message, Refused) else self.match_taken(structure, document, message)

    def match_taken(self, structure: bytes, document: bytes, message: Taken) -> Entries | Refused:
        """As `match`, for a checked annotation."""
        learnt = message.learnt
        assert learnt is not None
        grown = len(self.engine.table) != self._entries
        if self._straight or (grown and self._waited * PATIENCE < len(self._trees.entries)):
            self._waited += grown
            if self._straight:
                self._straight -= 1
            return self._by_elements(structure, document, message)
        if learnt is not self._learnt or len(self.engine.table) != self._entries:
            self._forget(learnt)
        self._make_room(learnt, message.message.elements)
        try:
            why = self._by_numbers(structure, message, learnt)
        except LimitError as error:
            return Refused(error.reason)
        if why:
            return self.decoder.refused(why)
        entries = self._answer.entries[: self._counts[C_ENTRIES]].copy()
        entries = entries if not len(self._always) else np.union1d(entries, self._always).astype(np.int32)
        waiting = self._answer.handed_on[: self._counts[C_OPEN]]
        if len(waiting) or len(self._trees.always):
            return self._with_values(entries, np.append(waiting, self._trees.always), structure, document, message)
        return entries

    def _by_elements(self, structure: bytes, document: bytes, message: Taken) -> Entries | Refused:
        self.engine.refresh()
        batch = self.decoder.batch_of(structure, document, message)
        return batch if isinstance(batch, Refused) else self.engine.match_batch(batch)[1]

    def _by_numbers(self, structure: bytes, message: Taken, learnt: ReceivedPaths) -> int:
        """Match from the numbers of label paths; return 0 or the reason for a failure."""
        data = np.frombuffer(structure, np.uint8)
        numbers = self._counts, self._state
        while True:
            link = LinkPaths(learnt.parent, learnt.depth, self._symbols)
            why = match_elements(
                data,
                message.message,
                link,
                self._memo,
                self._trees.forest,
                self._occurring,
                self._opened,
                self._search,
                self._answer,
                numbers,
            )
            if why or not self._counts[C_MISSING]:
                return why
            self._ask(learnt, self._answer.missing[: self._counts[C_MISSING]].tolist())

    def _with_values(
        self, entries: Entries, trees: Int32s, structure: bytes, document: bytes, message: Taken
    ) -> Entries | Refused:
        """The entries, including those of trees that hold on the elements with their values."""
        batch = self.decoder.batch_of(structure, document, message)
        if isinstance(batch, Refused):
            return batch
        if len(trees) > self._few:
            self._straight = STRAIGHT
            return self.engine.match_batch(batch)[1]
        for tree in trees.tolist():
            if tree not in self._verified:
                self._verified[tree] = len(self._verified)
                self._verifier.add(int(self._trees.entries[tree]))
        candidates = np.array([self._verified[tree] for tree in trees.tolist()], np.int32)
        holding = self._verifier.verify(batch, np.array([0, len(candidates)], np.int64), candidates)
        return np.sort(np.append(entries, self._trees.entries[trees[holding]]))

    # The cache.

    def _forget(self, learnt: ReceivedPaths | None) -> None:
        """Clear the cache, for the current entries."""
        table = self.engine.table
        if self._entries != len(table):
            self._entries, self._waited, self._straight = len(table), 0, 0
            self._trees = StructureTrees(table)
            self._verifier, self._verified = Verifier(table), dict[int, int]()
            words = (self._entries + 63) // 64 + 1
            self._answer = Answer(
                np.empty(self._entries + 8, np.int32),
                np.empty(len(self._trees.entries), np.int32),
                _NONE,
                np.zeros(words, np.uint64),
                np.zeros((words + 63) // 64 + 1, np.uint64),
            )
            parts = self._trees.count
            self._occurring = Occurring(_NO_STAMPS, _NONE, _NONE, np.zeros(parts, np.int64), np.zeros(parts, np.int32))
            self._opened = Opened(
                np.zeros(_SMALLEST_STACK, np.int32), np.zeros(_SMALLEST_STACK, np.int32), _NONE, _NONE
            )
            self._search = Search(np.full(len(self._trees.names), -1, np.int32), _NONE, np.zeros((1, 1, 0), np.int32))
            self._room_for(0)
        self._learnt = learnt
        self._symbols = _NONE
        self._occurring = self._occurring._replace(stamps=_NO_STAMPS, numbers=_NONE)
        self._entries_found, self._parts_found = _Found(), _Found()
        self._remember(_NO_STAMPS, _NONE, _NO_STAMPS, _NONE)
        self._always = np.zeros(0, np.int32)
        if learnt is not None:
            assert isinstance(self.engine, PathMatching)
            self.engine.refresh()
            self._always = self.engine.match_paths([()])[1]

    def _remember(self, begins: Int64s, counts: Int32s, part_begins: Int64s, part_counts: Int32s) -> None:
        entries, parts = self._entries_found.entries, self._parts_found.entries
        self._memo = PathMemo(begins, counts, entries, part_begins, part_counts, parts)

    def _make_room(self, learnt: ReceivedPaths, elements: int) -> None:
        memo, occurring = self._memo, self._occurring
        if len(memo.begins) < (known := len(learnt.parent)):
            self._remember(
                grown(memo.begins, known),
                grown(memo.counts, known, UNKNOWN),
                grown(memo.part_begins, known),
                grown(memo.part_counts, known, UNKNOWN),
            )
            self._symbols = grown(self._symbols, known, UNKNOWN)
            self._occurring = occurring._replace(
                stamps=grown(occurring.stamps, known), numbers=grown(occurring.numbers, known, UNKNOWN)
            )
        room = len(self._opened.parents)
        if room < elements or self._counts[C_LAID] > _LAST_STAMP:
            self._room_for(2 * elements)
        elif room > 2 * MOST_KEPT > 4 * elements:
            self._room_for(MOST_KEPT)
        if len(self._opened.paths) < learnt.deepest + 2:
            paths, opened = np.zeros((2, 2 * learnt.deepest + 2), np.int32)
            self._opened = self._opened._replace(paths=paths, elements=opened)

    def _room_for(self, elements: int) -> None:
        self._counts[C_LAID] = 0
        distinct, parents, symbols, following = np.zeros((4, elements), np.int32)
        held = np.zeros((H_ROWS, self._trees.longest, elements), np.int32)
        missing = np.zeros(max(elements, self._trees.count), np.int32)
        self._occurring = self._occurring._replace(distinct=distinct)
        self._opened = self._opened._replace(parents=parents, symbols=symbols)
        self._search = self._search._replace(following=following, held=held)
        self._answer = self._answer._replace(missing=missing)

    def _ask(self, learnt: ReceivedPaths, paths: list[int]) -> None:
        """Compute with the engines what label paths satisfy, and cache it."""
        assert isinstance(self.engine, PathMatching)
        labels = [learnt.labels(path) for path in paths]
        local = self.engine.table.namespaces == "ignore"
        known = self._trees.names
        self._symbols[paths] = [known.get(local_part(each[-1]) if local else each[-1], -1) for each in labels]
        memo = self._memo
        memo.part_begins[paths], memo.part_counts[paths] = self._parts_found.add(*self._trees.parts.match_paths(labels))
        memo.begins[paths], memo.counts[paths] = self._entries_found.add(*self.engine.match_paths(labels))
        self._remember(memo.begins, memo.counts, memo.part_begins, memo.part_counts)


class _Found:
    """The entries that label paths satisfy, concatenated."""

    def __init__(self) -> None:
        self.entries, self._filled = np.empty(1 << 10, np.int32), 0

    def add(self, offsets: Int64s, entries: Entries) -> tuple[Int64s, Int32s]:
        """Add entries; return where each list begins, and its length."""
        filled, end = self._filled, self._filled + len(entries)
        if end > len(self.entries):
            self.entries = np.append(self.entries, np.empty(end, np.int32))
        self.entries[filled:end] = entries
        self._filled = end
        return filled + offsets[:-1], np.diff(offsets).astype(np.int32)
