"""The patterns that are no plain paths, by entry; those of a snapshot are parsed when they are looked at."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from ..patterns import Namespaces, Pattern
from ..patterns.parse import parse_printed
from ..store.texts import Texts, pack


class Trees:
    """A growing mapping from entries to tree patterns and back."""

    def __init__(self, namespaces: Namespaces) -> None:
        self._namespaces = namespaces
        self._entries = np.empty(0, dtype=np.int32)  # of the snapshot, ascending
        self._texts = Texts()
        self._patterns: dict[int, Pattern] = {}
        self._numbers: dict[Pattern, int] | None = {}

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __iter__(self) -> Iterator[int]:
        """All entries that are trees, ascending."""
        yield from self._entries.tolist()
        yield from (entry for entry in self._patterns if not self._is_packed(entry))

    def _is_packed(self, entry: int) -> bool:
        at = int(np.searchsorted(self._entries, entry))
        return at < len(self._entries) and int(self._entries[at]) == entry

    def __getitem__(self, entry: int) -> Pattern:
        pattern = self._patterns.get(entry)
        if pattern is None:
            text = self._texts[int(np.searchsorted(self._entries, entry))]
            pattern = parse_printed(text, self._namespaces)
            self._patterns[entry] = pattern
        return pattern

    def find(self, pattern: Pattern) -> int | None:
        """The entry of a pattern, or None."""
        if self._numbers is None:
            self._numbers = {self[entry]: entry for entry in self}
        return self._numbers.get(pattern)

    def add(self, entry: int, pattern: Pattern) -> None:
        """Enter a pattern that `find` does not know."""
        self._patterns[entry] = pattern
        if self._numbers is not None:
            self._numbers[pattern] = entry

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The trees as arrays; `restore` takes them back."""
        entries = list(self)
        texts, offsets = pack(str(self[entry]) for entry in entries)
        return {"entries": np.array(entries, dtype=np.int32), "texts": texts, "offsets": offsets}

    @classmethod
    def restore(cls, namespaces: Namespaces, arrays: dict[str, npt.NDArray[Any]]) -> "Trees":
        """The trees that `arrays` was taken of."""
        trees = cls(namespaces)
        trees._entries = np.asarray(arrays["entries"])
        trees._texts = Texts(arrays["texts"], arrays["offsets"])
        trees._numbers = None
        return trees
