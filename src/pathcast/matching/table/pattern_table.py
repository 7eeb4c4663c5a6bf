"""The table of distinct patterns: equal subscriptions share an entry, and engines see only entries.

Plain paths are stored in a trie (`path_trie.py`), other patterns as trees (`tree_pattern_texts.py`). Two expressions
with the same normal form share an entry: `a/b`, `//a/b` and `.//a/./b` are one.

Invariant: an entry's number never changes and always means the same pattern. An entry without subscriptions stays,
unused; engines may report it, which has no effect. When most entries are unused, another table replaces this one
(`compacted`).
Cost: about 1 µs to enter a plain path among many, some 15 µs to enter a pattern with two predicates.
"""

import weakref
from array import array
from copy import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pathcast.documents import DocumentBatch, Names, local_part
from pathcast.errors import LimitError, PatternError
from pathcast.kernels import AnyArray, Bools, Int32s
from pathcast.patterns import Namespaces, Pattern, names_of, parse
from pathcast.patterns.parsing import PathEncoder, Steps, path_text, pattern_of
from pathcast.store import Texts, pack

from ..arrays.ragged_arrays import part_of
from ..tuning import Tuning
from .path_trie import Trie
from .path_trie_kernels import NONE
from .tree_pattern_texts import Trees

if TYPE_CHECKING:
    from ..evaluation import OpaquePatterns

_TRIE, _TREES = "trie_", "trees_"


@dataclass(slots=True)
class EnteredPatterns:
    """The result of entering a list of expressions.

    `entries` of the valid ones in order, `good` their indices, `texts` the expressions (by index among the valid ones)
    that differ from their entry's text, `bad` the errors of the others, each with its index.
    """

    entries: Int32s
    good: range | list[int]
    texts: dict[int, str] = field(default_factory=dict)
    bad: list[PatternError | LimitError] = field(default_factory=list)


class MergedNumbers(NamedTuple):
    """The result of merging another table into this one, which had `first` entries before.

    For each of its names, trie nodes and entries the number in this one.
    """

    first: int
    names: Int32s
    nodes: Int32s
    entries: Int32s


class PatternTable:
    """Distinct patterns, numbered from 0."""

    def __init__(self, namespaces: Namespaces, max_steps: int, tuning: Tuning | None = None) -> None:
        self.namespaces = namespaces
        self.max_steps = max_steps
        self.tuning = tuning or Tuning()
        self.names = Names()
        self.encoder = PathEncoder(self.names, namespaces, max_steps=max_steps)
        self.trie = Trie()
        self.trees = Trees(namespaces)
        self._nodes = array("i")  # the trie node of each entry, NONE for a tree
        self._entered: dict[str, int] = {}
        self._mentioned: set[str] = set()  # by trees, as tests of nodes
        self.unused = 0  # entries without a subscription
        self._origin: tuple[weakref.ref[PatternTable], Int32s] | None = None
        self._opaque: OpaquePatterns | None = None

    def __len__(self) -> int:
        return len(self._nodes)

    @property
    def opaque(self) -> "OpaquePatterns | None":
        """The evaluation of the opaque patterns; None if there are none."""
        entries = self.trees.opaque
        if not entries:
            return None
        if self._opaque is None or self._opaque.entries is not entries:
            from ..evaluation import OpaquePatterns

            self._opaque = OpaquePatterns(self.namespaces, entries, self.trees.counted, self.trees.__getitem__)
        return self._opaque

    def enter(self, expressions: list[str], *, collect: bool = False) -> EnteredPatterns:
        """The entries of expressions, created where necessary; the first invalid one raises unless `collect`."""
        steps = array("i")
        lengths = array("i")
        trees: list[tuple[int, Pattern]] = []
        texts: dict[int, str] = {}
        bad: list[PatternError | LimitError] = []
        encode = self.encoder.encode
        failed: dict[str, PatternError | LimitError] = {}  # a file may repeat one that is slow to reject
        for index, expression in enumerate(expressions):
            place = index - len(bad)
            if failed and expression in failed:
                error = copy(failed[expression])
                error.index = index
                bad.append(error)
                continue
            path = encode(expression)
            if path is None:
                try:
                    pattern = parse(expression, self.namespaces, max_steps=self.max_steps)
                except (PatternError, LimitError) as error:
                    error.index = index
                    if not collect:
                        raise
                    bad.append(error.with_traceback(None))  # a traceback would keep tokens and parser alive
                    failed[expression] = error
                    continue
                texts[place] = expression
                path = self.encoder.steps_of(pattern)
                if path is None:
                    trees.append((place, pattern))
                    continue
            elif not _is_printed(expression):
                texts[place] = expression
            steps.extend(path)
            lengths.append(len(path))
        entries = self.number(np.array(steps, dtype=np.int32), np.array(lengths, dtype=np.int32), trees)
        wrong = {error.index for error in bad}
        good = [index for index in range(len(expressions)) if index not in wrong] if bad else range(len(expressions))
        return EnteredPatterns(entries, good, texts, bad)

    def enter_one(self, expression: str) -> tuple[int, str | None]:
        """The entry of one expression, created if necessary; and the expression if it differs from the entry's text.

        Cost: a few µs for a plain path, or for another pattern that was recently entered.
        """
        entry = self._entered.get(expression)
        if entry is not None:
            return entry, expression
        steps = self.encoder.encode(expression)
        text = None if steps is not None and _is_printed(expression) else expression
        if steps is None:
            try:
                pattern = parse(expression, self.namespaces, max_steps=self.max_steps)
            except (PatternError, LimitError) as error:
                error.index = 0
                raise
            steps = self.encoder.steps_of(pattern)
            if steps is None:
                entry = self._tree_entry(pattern)
                if len(self._entered) >= self.tuning.remembered_expressions:
                    self._entered.clear()
                self._entered[expression] = entry
                return entry, text
        fresh = len(self._nodes)
        node, entry = self.trie.enter_one(steps, fresh)
        if entry == fresh:
            self._nodes.append(node)
        return entry, text

    def released(self, entry: int) -> None:
        """The last subscription of an entry is gone. Called by the subscriptions, one change at a time."""
        self.unused += 1

    def taken(self, entry: int) -> None:
        """A released entry has a subscription again. Called by the subscriptions, one change at a time."""
        self.unused -= 1

    @property
    def is_wasteful(self) -> bool:
        """Whether most entries, and not just a few, are unused."""
        return self.unused > self.tuning.unused_entries and 2 * self.unused > len(self)

    def compacted(self, used: Bools) -> tuple["PatternTable", Int32s]:
        """A table with the used entries, and the new number of each entry (-1: none).

        Names usually stay, since readers use them and engines have learnt with them; but if very many names occur in no
        entry, the table gets its own names, and learning starts again.
        """
        table, moved = self._with_same_names(used)
        if len(self.names) <= self.tuning.names:
            return table, moved
        other, entries = table._with_own_names()
        if 2 * len(other.names) > len(self.names):
            return table, moved
        return other, np.append(entries, np.int32(NONE))[moved]  # the last one is for unused entries

    def _with_own_names(self) -> tuple["PatternTable", Int32s]:
        """A table of the same patterns, with only the names that they use, and its number for each entry."""
        table = PatternTable(self.namespaces, self.max_steps, self.tuning)
        steps, lengths = array("i"), array("i")
        trees: list[tuple[int, Pattern]] = []
        for entry in range(len(self)):
            pattern = self.pattern(entry)
            path = table.encoder.steps_of(pattern)
            if path is None:
                trees.append((entry, pattern))
            else:
                steps.extend(path)
                lengths.append(len(path))
        return table, table.number(np.array(steps, dtype=np.int32), np.array(lengths, dtype=np.int32), trees)

    def _with_same_names(self, used: Bools) -> tuple["PatternTable", Int32s]:
        table = PatternTable(self.namespaces, self.max_steps, self.tuning)
        table.names, table.encoder = self.names, self.encoder
        moved = np.where(used, np.cumsum(used) - 1, NONE).astype(np.int32)
        nodes = np.array(self._nodes, dtype=np.int32)
        plain = np.flatnonzero(used & (nodes != NONE))
        ends = table.trie.insert(*self.trie.paths(nodes[plain]))
        table.trie.give(ends, moved[plain])
        numbered = np.full(int(np.count_nonzero(used)), NONE, dtype=np.int32)
        numbered[moved[plain]] = ends
        table._nodes.frombytes(numbered.tobytes())
        table.trees = self.trees.selected(moved)
        table._origin = weakref.ref(self), moved
        return table, moved

    def entries_of(self, other: "PatternTable") -> Int32s | None:
        """The entry here of each entry of another table, -1 for none; None unless this table was made from it."""
        return None if self._origin is None or self._origin[0]() is not other else self._origin[1]

    def number(self, steps: Int32s, lengths: Int32s, trees: list[tuple[int, Pattern]]) -> Int32s:
        """Entries of paths and trees, created where necessary; trees have given places, paths fill the others."""
        paths = self._path_entries(self.trie.insert(steps, lengths))
        if not trees:
            return paths
        places = [place for place, _ in trees]
        entries = np.empty(len(paths) + len(trees), dtype=np.int32)
        plain = np.ones(len(entries), dtype=np.bool_)
        plain[places] = False
        entries[plain] = paths
        entries[places] = [self._tree_entry(pattern) for _, pattern in trees]
        return entries

    def _path_entries(self, ends: Int32s) -> Int32s:
        """The entries of paths that end in these nodes, created where necessary."""
        before = len(self)
        paths, after = self.trie.number(ends, before)
        if after > before:
            fresh = np.full(after - before, NONE, dtype=np.int32)
            is_fresh = paths >= before
            fresh[paths[is_fresh] - before] = ends[is_fresh]
            self._nodes.frombytes(fresh.tobytes())
        return paths

    def _tree_entry(self, pattern: Pattern) -> int:
        entry = self.trees.find(pattern)
        if entry is None:
            entry = len(self)
            counted = set[str]() if pattern.counted is None else Pattern(pattern.counted).tests
            if tests := (pattern.tests | counted) - self._mentioned:
                self._mentioned |= tests
                for name in sorted(names_of(tests)):
                    self.names.add(name)
            self.trees.add(entry, pattern)
            self._nodes.append(NONE)
        return entry

    def steps(self, entry: int) -> Steps | None:
        """The steps of an entry that is a plain path; None for any other entry."""
        node = self._nodes[entry]
        return None if node == NONE else self.trie.path(node)

    def nodes(self, first: int, end: int) -> Int32s:
        """The trie nodes of the entries from `first` to `end`, `NONE` for entries that are not plain paths."""
        return np.array(self._nodes[first:end], dtype=np.int32)

    def pattern(self, entry: int) -> Pattern:
        """The tree pattern of an entry."""
        steps = self.steps(entry)
        return self.trees[entry] if steps is None else pattern_of(steps, self.names)

    def text(self, entry: int) -> str:
        """An entry as XPath, in normal form."""
        steps = self.steps(entry)
        return self.trees.text(entry) if steps is None else path_text(steps, self.names)

    def translation(self, batch: DocumentBatch) -> Int32s:
        """For each name id of the batch its id in `names`, -1 for a name that no subscription mentions."""
        if self.namespaces != "ignore":
            return batch.translation(self.names)
        found = (self.names.get(local_part(batch.name_of(number))) for number in range(batch.name_count))
        return np.array([-1 if number is None else number for number in found], dtype=np.int32)

    @property
    def bytes(self) -> int:
        """The memory of the plain paths."""
        trie = self.trie
        return 4 * len(self._nodes) + sum(column.nbytes for column in (trie.slots, trie.parent, trie.step, trie.entry))

    # As arrays: on disk, and from other processes.

    def arrays(self) -> dict[str, AnyArray]:
        """The table as arrays; `restore` reads them, `merge` merges them."""
        names, name_offsets = pack(self.names)
        arrays: dict[str, AnyArray] = {"names": names, "name_offsets": name_offsets}
        arrays["nodes"] = np.array(self._nodes, dtype=np.int32)
        arrays |= {_TRIE + name: column for name, column in self.trie.arrays().items()}
        return arrays | {_TREES + name: column for name, column in self.trees.arrays().items()}

    @classmethod
    def restore(
        cls, namespaces: Namespaces, max_steps: int, arrays: dict[str, AnyArray], tuning: Tuning | None = None
    ) -> "PatternTable":
        """The table that was saved as `arrays`."""
        table = cls(namespaces, max_steps, tuning)
        for name in Texts(arrays["names"], arrays["name_offsets"]):
            table.names.add(name)
        table._nodes.frombytes(arrays["nodes"].view(np.uint8).data)
        table.trie = Trie.restore(part_of(arrays, _TRIE))
        table.trees = Trees.restore(namespaces, part_of(arrays, _TREES))
        return table

    def merge(self, arrays: dict[str, AnyArray]) -> MergedNumbers:
        """Merge the entries of another table, with the same namespaces, whose patterns all have one text.

        Cost: less than 1 µs per entry, without creating objects.
        """
        first = len(self)
        names = np.array([self.names.add(name) for name in Texts(arrays["names"], arrays["name_offsets"])], np.int32)
        trie, trees = part_of(arrays, _TRIE), part_of(arrays, _TREES)
        nodes = self.trie.merge(np.asarray(trie["parent"]), np.asarray(trie["step"]), names)
        ends = np.asarray(arrays["nodes"])
        plain = np.flatnonzero(ends != NONE)
        entries = np.empty(len(ends), dtype=np.int32)
        entries[plain] = self._path_entries(nodes[ends[plain]])
        entries[trees["entries"]] = found = self.trees.merge(trees, len(self))
        fresh = int(found.max(initial=-1)) + 1 - len(self)
        if fresh > 0:
            self._nodes.frombytes(np.full(fresh, NONE, dtype=np.int32).tobytes())
        return MergedNumbers(first, names, nodes, entries)


def _is_printed(path: str) -> bool:
    """Whether a plain path is written as the table would print it."""
    return path[0] == "/" and ":" not in path and "//*" not in path
