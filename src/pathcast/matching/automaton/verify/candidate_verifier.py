"""The verifier: which of a document's candidates really match.

A pattern is its longest path, step by step (`programs`), and the conditions at its steps
(`shared_pattern_conditions.py`), which all patterns share; a kernel evaluates it (`candidate_verifier_kernels.py`).
Patterns that joins decide are hardly ever candidates: their programs are built only when a document needs them
(`add_later`), and are kept in a verifier of their own.

Invariant: results depend on the document and the pattern alone; candidates only determine what is evaluated.
Cost: at 100,000 patterns some 0.1 to 0.2 µs per candidate with one or two values or up to three nested paths, most of
it waiting for memory.
"""

import threading
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from pathcast.documents import DocumentBatch
from pathcast.kernels import AnyArray, Bools, Int32s, Int64s
from pathcast.patterns import Pattern
from pathcast.store import offsets_of

from ...arrays.growing_array import Growing
from ...arrays.ragged_arrays import gathered, part_of
from ...engine_contract import Costs
from ...table.pattern_table import PatternTable
from ...tuning import Tuning
from .candidate_verifier_kernels import (
    BYTES,
    COSTS,
    M_COLUMNS,
    MOST_ASKS,
    NOTHING,
    P_ASKS,
    P_COLUMNS,
    P_NAME,
    P_STEP,
    TRIES,
    Candidates,
    Programs,
    VerifyScratch,
    verify,
)
from .element_set_kernels import T_COUNTS, T_STAMP, ElementSets
from .shared_pattern_conditions import Conditions
from .value_condition_kernels import (
    H_ROWS,
    H_STAMPS,
    K_COLUMNS,
    L_ROWS,
    V_ROWS,
    ConditionTable,
    Occurrences,
    PathRoom,
    ValueMemo,
)

_CONDITIONS = "conditions_"
_NONE = np.zeros(0, dtype=np.int32)
# In place of the number of a pattern whose program was not needed yet.
_UNMADE = -1
# The number of set operations that are cached.
_RESULTS = 1 << 12


class _Scratch(threading.local):
    """Buffers of a verification; one set per thread."""

    def __init__(self, tuning: Tuning) -> None:
        self._tuning = tuning
        self.buffers = VerifyScratch(
            sets=ElementSets(
                state=np.zeros(T_COUNTS, dtype=np.int64),
                bits=np.zeros(tuning.element_sets, dtype=np.uint64),
                slots=np.zeros(2 * tuning.element_sets, dtype=np.int64),
            ),
            results=np.zeros((_RESULTS, 2), dtype=np.int64),
            occurrences=_occurrences(0, 0),
            memo=_memo(0),
            room=PathRoom(np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.uint8)),
            known=np.zeros((0, K_COLUMNS), dtype=np.int32),
            levels=np.zeros((0, M_COLUMNS), dtype=np.int32),
            pending=np.zeros((2, tuning.nested_conditions), dtype=np.int32),
        )

    def fit(self, programs: "Patterns", width: int, names: int, rows: int, text: int) -> VerifyScratch:
        """Buffers with enough room; stamps are kept, or restart with unstamped buffers."""
        buffers, tuning = self.buffers, self._tuning
        sets, occurrences, memo, room = buffers.sets, buffers.occurrences, buffers.memo, buffers.room
        if sets.state[T_STAMP] > tuning.last_stamp:
            stamped = (
                sets.state,
                sets.slots,
                buffers.results,
                occurrences.stamps,
                memo.hash_stamps,
                memo.number_stamps,
            )
            for stamps in (buffers.known, *stamped):
                stamps.fill(0)
        if len(buffers.known) < len(programs.conditions.rows):
            known = np.zeros((len(programs.conditions.rows), K_COLUMNS), dtype=np.int32)
            self.buffers = self.buffers._replace(known=known)
        words = min(tuning.element_sets * width, max(tuning.element_set_words, 16 * width))
        if len(sets.bits) < words:
            self.buffers = self.buffers._replace(sets=sets._replace(bits=np.zeros(words, dtype=np.uint64)))
        if occurrences.heads.shape[1] < names or occurrences.lists.shape[1] < rows:
            larger = _occurrences(max(2 * names, occurrences.heads.shape[1]), max(2 * rows, occurrences.lists.shape[1]))
            self.buffers = self.buffers._replace(occurrences=larger)
        if memo.hashes.shape[1] < rows:
            self.buffers = self.buffers._replace(memo=_memo(2 * rows))
        if len(room.sets) < 2 * width or len(room.joined) < text:
            path_sets = np.zeros(max(4 * width, len(room.sets)), dtype=np.uint64)
            joined = np.zeros(max(2 * text, len(room.joined)), dtype=np.uint8)
            self.buffers = self.buffers._replace(room=PathRoom(path_sets, joined))
        if len(buffers.levels) != programs.levels:
            levels = np.zeros((programs.levels, M_COLUMNS), dtype=np.int32)
            self.buffers = self.buffers._replace(levels=levels)
        return self.buffers

    def enlarge(self) -> VerifyScratch:
        """More room for sets, and for nested conditions."""
        sets, pending = self.buffers.sets, self.buffers.pending
        sets = sets._replace(
            bits=np.zeros(2 * len(sets.bits), dtype=np.uint64), slots=np.zeros(2 * len(sets.slots), dtype=np.int64)
        )
        pending = np.zeros((2, 2 * pending.shape[1]), dtype=np.int32)
        self.buffers = self.buffers._replace(sets=sets, pending=pending)
        return self.buffers


def _occurrences(names: int, rows: int) -> Occurrences:
    return Occurrences(
        heads=np.zeros((H_ROWS, names), dtype=np.int32),
        stamps=np.zeros((H_STAMPS, names), dtype=np.int64),
        lists=np.zeros((L_ROWS, rows), dtype=np.int32),
    )


def _memo(rows: int) -> ValueMemo:
    return ValueMemo(
        hashes=np.zeros((V_ROWS, rows), dtype=np.uint64),
        numbers=np.zeros((V_ROWS, rows), dtype=np.float64),
        hash_stamps=np.zeros((V_ROWS, rows), dtype=np.int64),
        number_stamps=np.zeros((V_ROWS, rows), dtype=np.int64),
    )


class Patterns(NamedTuple):
    """Patterns as the kernel reads them: the steps of each, at most `levels` per pattern, and its entry."""

    conditions: ConditionTable
    programs: Programs
    entries: Int32s
    levels: int


class Verifier:
    """Tree patterns of a table, numbered in order of arrival."""

    def __init__(
        self, table: PatternTable, entries: Iterable[int] = (), pattern_of: Callable[[int], Pattern] | None = None
    ) -> None:
        """`pattern_of`: the tree of an entry, if it is not that of the table."""
        self.table = table
        self._pattern_of = pattern_of or table.trees.__getitem__
        self._conditions = Conditions(table.names)
        self._entries, self._programs = Growing(np.int32), Growing(np.int32)
        self._begin = Growing(np.int64, [0])
        self._costs = Growing(np.int64, width=COSTS)
        self._levels = 0
        self._is_later = Growing(np.bool_)
        self._later: Verifier | None = None  # for the patterns whose programs are built on demand:
        self._later_numbers = _NONE
        self._lock = threading.Lock()
        self._scratch = _Scratch(table.tuning)
        for entry in entries:
            self.add(entry)

    def __len__(self) -> int:
        return self._entries.size

    def add(self, entry: int) -> None:
        """Add the pattern of an entry."""
        program = self._conditions.add(self._pattern_of(entry))
        self._programs.extend(np.array(program, dtype=np.int32))
        self._begin.append(self._programs.size)
        self._entries.append(entry)
        self._is_later.append(False)
        self._levels = max(self._levels, len(program) // P_COLUMNS)

    def add_later(self, entries: list[int]) -> None:
        """Add the patterns of entries; their programs are built on demand."""
        self._begin.extend(np.full(len(entries), self._programs.size, dtype=np.int64))
        self._entries.extend(np.array(entries, dtype=np.int32))
        self._is_later.extend(np.ones(len(entries), dtype=np.bool_))

    # As arrays: on disk, and from other processes.

    def saved(self) -> dict[str, AnyArray]:
        """The patterns as arrays; `restore` reads them, `merge` merges them."""
        return {
            "entries": self._entries.view,
            "programs": self._programs.view,
            "begin": self._begin.view,
            "is_later": self._is_later.view,
            **{_CONDITIONS + name: column for name, column in self._conditions.saved().items()},
        }

    @classmethod
    def restore(
        cls, table: PatternTable, arrays: dict[str, AnyArray], pattern_of: Callable[[int], Pattern] | None = None
    ) -> "Verifier":
        """The verifier that was saved as `arrays`, on the same memory until it changes."""
        verifier = cls(table, pattern_of=pattern_of)
        verifier._conditions = Conditions.restore(table.names, part_of(arrays, _CONDITIONS))
        verifier._entries, verifier._programs = Growing.over(arrays["entries"]), Growing.over(arrays["programs"])
        verifier._begin, verifier._is_later = Growing.over(arrays["begin"]), Growing.over(arrays["is_later"])
        verifier._levels = _longest(arrays["begin"])
        return verifier

    def merge(self, arrays: dict[str, AnyArray], chosen: Int64s, entries: Int32s, names: Int32s) -> None:
        """Merge some patterns of another verifier, with these entries in ours; `names` translates its names."""
        begin, theirs = gathered(arrays["begin"], arrays["programs"], chosen)
        conditions = self._conditions.merge(part_of(arrays, _CONDITIONS), names, steps_in(theirs))
        self._begin.extend(begin[1:] + self._programs.size)
        self._programs.extend(renumbered(theirs, conditions, names))
        self._levels = max(self._levels, _longest(begin))
        self._entries.extend(entries)
        self._is_later.extend(np.asarray(arrays["is_later"])[chosen])

    @property
    def entries(self) -> Int32s:
        """The entry of each pattern."""
        return self._entries.view

    def programs(self) -> Patterns:
        """The patterns as of now, for `verify`; earlier results stay valid."""
        conditions = self._conditions.arrays()
        if self._costs.size < len(self):
            self._costs.extend(np.zeros((len(self) - self._costs.size, COSTS), dtype=np.int64))
        programs = Programs(self._programs.room, self._begin.room, self._costs.room)
        return Patterns(conditions, programs, self._entries.room, self._levels)

    def costs(self) -> Costs:
        """The cost so far of the patterns that were verified."""
        found, later = self._costs.view, self._later
        tried = np.flatnonzero(found[:, TRIES])
        own = Costs(self._entries.view[tried], found[tried, TRIES], found[tried, BYTES])
        return own if later is None else Costs.of([own, later.costs()])

    def verify(
        self,
        batch: DocumentBatch,
        offsets: Int64s,
        candidates: Int32s,
        programs: Patterns | None = None,
        translation: Int32s | None = None,
    ) -> Bools:
        """Which candidates (numbers of patterns; those of document `i` are `offsets[i] : offsets[i + 1]`) match.

        Pass `programs` if patterns may be added at the same time, and `translation` if it is known.
        """
        answers = np.zeros(len(candidates), dtype=np.bool_)
        if not len(candidates):
            return answers
        if translation is None:
            translation = self.table.translation(batch)
        later = self._is_later.room[candidates]
        if not later.all():
            self._by_kernel(programs or self.programs(), batch, translation, offsets, candidates, answers)
        if later.any():
            counts = offsets_of(later)[offsets].astype(np.int64)
            answers[later] = self._verify_later(batch, counts, candidates[later], translation)
        return answers

    def _verify_later(self, batch: DocumentBatch, offsets: Int64s, candidates: Int32s, translation: Int32s) -> Bools:
        """As `verify`, for patterns whose programs are built on demand."""
        with self._lock:
            if self._later is None:
                self._later = Verifier(self.table, pattern_of=self._pattern_of)
            if len(self._later_numbers) < len(self):
                numbers = np.full(len(self) + (len(self) >> 1), _UNMADE, dtype=np.int32)
                numbers[: len(self._later_numbers)] = self._later_numbers
                self._later_numbers = numbers
            later, numbers, entries = self._later, self._later_numbers, self._entries.room
            for pattern in np.unique(candidates[numbers[candidates] == _UNMADE]).tolist():
                later.add(int(entries[pattern]))
                numbers[pattern] = len(later) - 1
            own, programs = numbers[candidates], later.programs()
        return later.verify(batch, offsets, own, programs, translation)

    def _by_kernel(
        self,
        programs: Patterns,
        batch: DocumentBatch,
        translation: Int32s,
        offsets: Int64s,
        candidates: Int32s,
        answers: Bools,
    ) -> None:
        largest = batch.largest()
        rows, text = max(largest[:3]), largest.size + len(batch.arena)
        scratch, done = self._scratch, 0
        buffers = scratch.fit(programs, largest.elements + 63 >> 6, len(self.table.names), rows, text)
        tried = Candidates(offsets, candidates, answers)
        while True:
            done = verify(
                batch.elements, batch.values, translation, programs.conditions, programs.programs, tried, buffers, done
            )
            if done == len(candidates):
                return
            buffers = scratch.enlarge()


def steps_in(programs: Int32s) -> Int32s:
    """The conditions that are the steps of programs; their parts include what the steps demand."""
    steps = programs.reshape(-1, P_COLUMNS)[:, P_STEP]
    # Steps with several conditions have negative numbers for all but the last.
    return np.where(steps < 0, (NOTHING - 1 - steps) // MOST_ASKS, steps)


def renumbered(programs: Int32s, conditions: Int32s, names: Int32s) -> Int32s:
    """Programs of another verifier, with its conditions and names translated."""
    found = programs.reshape(-1, P_COLUMNS).copy()
    steps, named, asks = (found[:, column] for column in (P_STEP, P_NAME, P_ASKS))
    several, k = steps < 0, (NOTHING - 1 - steps) % MOST_ASKS
    own = conditions[steps_in(programs)]
    found[:, P_STEP] = np.where(several, NOTHING - 1 - k - MOST_ASKS * own, own)
    known, one_by_one, asked = named >= 0, asks < NOTHING, asks > NOTHING
    named[known] = 2 * names[named[known] >> 1] + (named[known] & 1)
    asks[one_by_one] = NOTHING - 1 - conditions[NOTHING - 1 - asks[one_by_one]]
    asks[asked] = conditions[asks[asked]]
    return found.ravel()


def _longest(begin: AnyArray) -> int:
    """The number of steps of the longest program."""
    return int(np.diff(begin).max(initial=0)) // P_COLUMNS
