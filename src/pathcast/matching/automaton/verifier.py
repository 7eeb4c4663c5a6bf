"""The verifier: which of a document's candidates really match.

Patterns are compiled into one table of conditions (`conditions.py`) and evaluated by a kernel (`verify_kernels.py`);
the few that the kernel does not take go to the reference embedding.

Invariant: answers depend on the document and the pattern alone; candidates only decide what is looked at.
"""

import threading
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...documents import DocumentBatch
from ..growing import Growing
from ..reference.embedding import Embedding
from ..spans import gathered, part_of
from ..table import PatternTable
from .conditions import ConditionArrays, Conditions, Unsupported
from .verify_kernels import K_COLUMNS, verify

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
AnyArray = npt.NDArray[Any]

_CONDITIONS = "conditions_"
# Words of bit sets that one task may need; a large document with many candidates is several tasks.
_TASK_WORDS = 1 << 22


class _Scratch(threading.local):
    """Buffers of a verification; one set a thread."""

    def __init__(self) -> None:
        self.state = np.zeros(1, dtype=np.int64)
        self.known = np.zeros((0, K_COLUMNS), dtype=np.int64)
        self.bits = np.zeros(0, dtype=np.uint64)
        self.width = np.zeros(0, dtype=np.uint64)
        self.heads = np.zeros((2, 0), dtype=np.int32)
        self.head_stamps = np.zeros((2, 0), dtype=np.int64)
        self.lists = np.zeros((3, 0), dtype=np.int32)
        self.hashes = np.zeros((2, 0), dtype=np.uint64)
        self.numbers = np.zeros((2, 0), dtype=np.float64)
        self.value_stamps = np.zeros((4, 0), dtype=np.int64)
        self.joined = np.zeros(0, dtype=np.uint8)

    def fit(self, conditions: int, words: int, width: int, names: int, rows: int, text: int) -> None:
        """Make room; stamps are kept or begin again with room that is all unstamped."""
        if len(self.known) < conditions:
            self.known = np.zeros((2 * conditions, K_COLUMNS), dtype=np.int64)
        if len(self.bits) < words:
            self.bits = np.zeros(2 * words, dtype=np.uint64)
        if len(self.width) < width:
            self.width = np.zeros(2 * width, dtype=np.uint64)
        if self.heads.shape[1] < names:
            self.heads = np.zeros((2, 2 * names), dtype=np.int32)
            self.head_stamps = np.zeros((2, 2 * names), dtype=np.int64)
        if self.lists.shape[1] < rows:
            self.lists = np.zeros((3, 2 * rows), dtype=np.int32)
            self.hashes = np.zeros((2, 2 * rows), dtype=np.uint64)
            self.numbers = np.zeros((2, 2 * rows), dtype=np.float64)
            self.value_stamps = np.zeros((4, 2 * rows), dtype=np.int64)
        if len(self.joined) < text:
            self.joined = np.zeros(2 * text, dtype=np.uint8)


class Programs(NamedTuple):
    """Patterns as the kernel takes them: of each its conditions, parts first, the root's, and its entry."""

    conditions: ConditionArrays
    programs: Int32s
    begin: Int64s
    roots: Int32s
    entries: Int32s


class Verifier:
    """Tree patterns of a table, numbered as they come."""

    def __init__(self, table: PatternTable, entries: Iterable[int] = ()) -> None:
        self.table = table
        self._conditions = Conditions(table.names)
        self._entries, self._roots, self._programs = Growing(np.int32), Growing(np.int32), Growing(np.int32)
        self._begin = Growing(np.int64, [0])
        self._slow: set[int] = set()
        self._scratch = _Scratch()
        for entry in entries:
            self.add(entry)

    def __len__(self) -> int:
        return self._entries.size

    def add(self, entry: int) -> None:
        """Take up the pattern of an entry."""
        try:
            program, root = self._conditions.add(self.table.trees[entry])
        except Unsupported:
            self._slow.add(len(self))
            program, root = [], 0
        self._programs.extend(np.array(program, dtype=np.int32))
        self._begin.append(self._programs.size)
        self._roots.append(root)
        self._entries.append(entry)

    # As arrays: on disk, and from other processes.

    def saved(self) -> dict[str, AnyArray]:
        """The patterns as arrays; `restore` takes them back, `merge` takes them over."""
        return {
            "entries": self._entries.view,
            "programs": self._programs.view,
            "begin": self._begin.view,
            "roots": self._roots.view,
            "slow": np.array(sorted(self._slow), dtype=np.int32),
            **{_CONDITIONS + name: column for name, column in self._conditions.saved().items()},
        }

    @classmethod
    def restore(cls, table: PatternTable, arrays: dict[str, AnyArray]) -> "Verifier":
        """The verifier that `arrays` was taken of, on the same memory until it changes."""
        verifier = cls(table)
        verifier._conditions = Conditions.restore(table.names, part_of(arrays, _CONDITIONS))
        verifier._entries, verifier._programs = Growing.over(arrays["entries"]), Growing.over(arrays["programs"])
        verifier._begin, verifier._roots = Growing.over(arrays["begin"]), Growing.over(arrays["roots"])
        verifier._slow = set(arrays["slow"].tolist())
        return verifier

    def merge(self, arrays: dict[str, AnyArray], chosen: Int64s, entries: Int32s, names: Int32s) -> None:
        """Take over some patterns of another verifier; they have these entries here, and its names are `names` here."""
        conditions = self._conditions.merge(part_of(arrays, _CONDITIONS), names)
        slow = np.isin(chosen, arrays["slow"])
        self._slow.update((len(self) + np.flatnonzero(slow)).tolist())
        begin, programs = gathered(arrays["begin"], arrays["programs"], chosen)
        self._begin.extend(begin[1:] + self._programs.size)
        self._programs.extend(conditions[programs])
        roots = np.asarray(arrays["roots"])[chosen]
        self._roots.extend(np.where(slow, 0, conditions[np.where(slow, 0, roots)]) if len(conditions) else roots)
        self._entries.extend(entries)

    @property
    def entries(self) -> Int32s:
        """The entry of each pattern."""
        return self._entries.view

    def programs(self) -> Programs:
        """The patterns as of now, for `verify`; what earlier ones show stays as it is."""
        return Programs(
            self._conditions.arrays(), self._programs.room, self._begin.room, self._roots.room, self._entries.room
        )

    @property
    def slow(self) -> int:
        """How many patterns go to the reference embedding."""
        return len(self._slow)

    def verify(
        self,
        batch: DocumentBatch,
        offsets: Int64s,
        candidates: Int32s,
        programs: Programs | None = None,
        translation: Int32s | None = None,
    ) -> npt.NDArray[np.bool_]:
        """Which candidates (numbers of patterns; those of document `i` are `offsets[i] : offsets[i + 1]`) match.

        `programs` is given where patterns may be added at the same time, `translation` where it is known.
        """
        answers = np.zeros(len(candidates), dtype=np.bool_)
        if translation is None:
            translation = self.table.translation(batch)
        self._by_kernel(programs or self.programs(), batch, translation, offsets, candidates, answers)
        if self._slow:
            self._by_embedding(batch, translation, offsets, candidates, answers)
        return answers

    def _by_kernel(
        self,
        programs: Programs,
        batch: DocumentBatch,
        translation: Int32s,
        offsets: Int64s,
        candidates: Int32s,
        answers: npt.NDArray[np.bool_],
    ) -> None:
        counts = np.diff(batch.offsets)
        attributes = np.diff(batch.attribute_begin.astype(np.int64)[batch.offsets])
        sizes = 2 * (programs.begin[candidates + 1] - programs.begin[candidates])
        documents, begin, words = _tasks(offsets, sizes, counts + 63 >> 6)
        scratch = self._scratch
        longest = int(counts.max(initial=0))
        text = int(np.diff(batch.data_offsets).max(initial=0)) + len(batch.arena)
        readable = np.flatnonzero(counts)
        firsts = batch.offsets[:-1][readable]
        texts = batch.text_end[firsts] - batch.text_begin[firsts]
        rows = max(longest, int(attributes.max(initial=0)), int(texts.max(initial=0)))
        scratch.fit(len(programs.conditions.rows), words, longest + 63 >> 6, len(self.table.names), rows, text)
        verify(
            batch.offsets, batch.name, batch.parent, batch.end,
            batch.attribute_begin, batch.attribute_name, batch.attribute_start, batch.attribute_length,
            batch.text_begin, batch.text_end, batch.text_parent, batch.text_start,
            batch.text_length, batch.data, batch.arena, translation,
            *programs.conditions, programs.programs, programs.begin, programs.roots,
            documents, begin, candidates, answers,
            scratch.state, scratch.known, scratch.bits, scratch.width,
            scratch.heads, scratch.head_stamps, scratch.lists, scratch.joined,
            scratch.hashes, scratch.numbers, scratch.value_stamps,
        )  # fmt: skip

    def _by_embedding(
        self,
        batch: DocumentBatch,
        translation: Int32s,
        offsets: Int64s,
        candidates: Int32s,
        answers: npt.NDArray[np.bool_],
    ) -> None:
        names, entries = self.table.names, self._entries.room
        numbers = translation.tolist()
        for index in range(len(batch)):
            places = [
                place for place in range(*offsets[index : index + 2].tolist()) if int(candidates[place]) in self._slow
            ]
            if places:
                embedding = Embedding(batch[index], lambda name, wanted: numbers[name] == names.get(wanted))
                for place in places:
                    answers[place] = embedding.matches(self.table.trees[int(entries[candidates[place]])])


def _tasks(offsets: Int64s, sizes: Int64s, widths: Int64s) -> tuple[Int64s, Int64s, int]:
    """Documents and where each task's candidates begin, and the words that the largest task needs."""
    documents: list[int] = []
    begin: list[int] = []
    most = 0
    totals = np.concatenate([[0], np.cumsum(sizes)])
    for document in np.flatnonzero(np.diff(offsets)).tolist():
        first, end = offsets[document : document + 2].tolist()
        width = int(widths[document])
        while first < end:
            room = totals[first] + max(1, _TASK_WORDS // max(1, width))
            last = min(end, max(first + 1, int(np.searchsorted(totals, room, side="right")) - 1))
            documents.append(document)
            begin.append(first)
            most = max(most, int(totals[last] - totals[first]) * width)
            first = last
    return np.array(documents, dtype=np.int64), np.array([*begin, int(offsets[-1])], dtype=np.int64), most
