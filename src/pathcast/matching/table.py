"""The table of distinct patterns: equal subscriptions are one entry, and engines see entries only.

A plain path is kept as its steps (`patterns/linear.py`) in one flat array, any other pattern as a tree. Two expressions with
the same normal form share an entry: `a/b`, `//a/b` and `.//a/./b` are one.

Invariant: an entry's number never changes and always means the same pattern. An entry that no subscription uses any more
stays, unused; engines may report it, and nothing comes of it.
Cost: about 1.5 µs to enter a plain path, some 100 µs to enter another one.
"""

from array import array
from typing import Any

import numpy as np
import numpy.typing as npt

from ..documents import DocumentBatch, Names
from ..documents.names import local_part
from ..patterns import Namespaces, Pattern, parse
from ..patterns.parse import parse_printed
from ..patterns.linear import PathEncoder, Steps, path_text, pattern_of
from ..store.texts import pack, unpack


class PatternTable:
    """Distinct patterns, numbered from 0."""

    def __init__(self, namespaces: Namespaces, max_steps: int) -> None:
        self.namespaces = namespaces
        self.max_steps = max_steps
        self.names = Names()
        self.encoder = PathEncoder(self.names, namespaces, max_steps=max_steps)
        self._entries: dict[Steps | Pattern, int] = {}
        self._steps = array("i")
        self._offsets = array("q", [0])
        self._trees: dict[int, Pattern] = {}

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def enter(self, expression: str) -> tuple[int, bool]:
        """The entry of an expression, made now if need be, and whether the entry's own text differs from it."""
        steps = self.encoder.encode(expression)
        if steps is not None:
            entry = self._entries.get(steps)
            if entry is None:
                entry = self._add(steps)
            return entry, expression[0] != "/" or ":" in expression or "//*" in expression
        pattern = parse(expression, self.namespaces, max_steps=self.max_steps)
        return self.enter_pattern(pattern), True

    def enter_pattern(self, pattern: Pattern) -> int:
        """The entry of a pattern, made now if need be."""
        steps = self.encoder.steps_of(pattern)
        key = pattern if steps is None else steps
        entry = self._entries.get(key)
        return self._add(key) if entry is None else entry

    def _add(self, key: Steps | Pattern) -> int:
        entry = len(self)
        if isinstance(key, Pattern):
            for name in sorted(key.names):
                self.names.add(name)
            self._trees[entry] = key
        else:
            self._steps.extend(key)
        self._offsets.append(len(self._steps))
        self._entries[key] = entry
        return entry

    def steps(self, entry: int) -> Steps | None:
        """The steps of an entry that is a plain path; None for another one."""
        if entry in self._trees:
            return None
        return tuple(self._steps[self._offsets[entry] : self._offsets[entry + 1]])

    def pattern(self, entry: int) -> Pattern:
        """The tree pattern of an entry."""
        steps = self.steps(entry)
        return self._trees[entry] if steps is None else pattern_of(steps, self.names)

    def text(self, entry: int) -> str:
        """An entry as XPath, in normal form."""
        steps = self.steps(entry)
        return str(self._trees[entry]) if steps is None else path_text(steps, self.names)

    def translation(self, batch: DocumentBatch) -> npt.NDArray[np.int32]:
        """For each name id of the batch its id in `names`, -1 for a name that no subscription mentions."""
        if self.namespaces != "ignore":
            return batch.translation(self.names)
        found = (self.names.get(local_part(batch.name_of(number))) for number in range(batch.name_count))
        return np.array([-1 if number is None else number for number in found], dtype=np.int32)

    # On disk.

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The table as arrays; `restore` takes them back."""
        names, name_offsets = pack(self.names)
        trees, tree_offsets = pack(map(str, self._trees.values()))
        return {
            "steps": np.array(self._steps, dtype=np.int32),
            "step_offsets": np.array(self._offsets, dtype=np.int64),
            "names": names,
            "name_offsets": name_offsets,
            "trees": trees,
            "tree_offsets": tree_offsets,
            "tree_entries": np.fromiter(self._trees, dtype=np.int32, count=len(self._trees)),
        }

    @classmethod
    def restore(cls, namespaces: Namespaces, max_steps: int, arrays: dict[str, npt.NDArray[Any]]) -> "PatternTable":
        """The table that `arrays` was taken of."""
        table = cls(namespaces, max_steps)
        for name in unpack(arrays["names"], arrays["name_offsets"]):
            table.names.add(name)
        trees = unpack(arrays["trees"], arrays["tree_offsets"])
        at = dict(zip(arrays["tree_entries"].tolist(), trees, strict=True))
        steps = arrays["steps"].tolist()
        offsets = arrays["step_offsets"].tolist()
        for entry, (begin, end) in enumerate(zip(offsets, offsets[1:], strict=False)):
            tree = at.get(entry)
            table._add(tuple(steps[begin:end]) if tree is None else parse_printed(tree))
        return table
