"""The reference engine behind the engine contract: every pattern, one by one, on every document.

Cost: as many embeddings as there are distinct patterns, some 10 µs each and up. For tests, small sets, and as the
standard for the other engines.
"""

from typing import ClassVar, Self

import numpy as np

from pathcast.documents import DocumentBatch, Limits
from pathcast.kernels import AnyArray
from pathcast.patterns import Pattern

from ..engine_contract import Entries, Mask, Offsets
from ..evaluation import decided
from ..table.pattern_table import PatternTable
from .pattern_embedding import Embedding


class ReferenceEngine:
    """Tries every pattern on every document."""

    name: ClassVar[str] = "reference"

    def __init__(self, table: PatternTable) -> None:
        self.table = table
        self.limits = Limits()
        self.patterns: list[Pattern] = []
        self._embeddings = 0
        self.refresh()

    @classmethod
    def build(cls, table: PatternTable) -> Self:
        return cls(table)

    @classmethod
    def restore(cls, table: PatternTable, arrays: dict[str, AnyArray]) -> Self:
        return cls(table)

    def arrays(self) -> dict[str, AnyArray]:
        return {}

    def refresh(self) -> None:
        self.patterns.extend(map(self.table.pattern, range(len(self.patterns), len(self.table))))

    def match_batch(self, batch: DocumentBatch) -> tuple[Offsets, Entries]:
        return self.match_except(batch, np.zeros(len(self.patterns), dtype=np.bool_))

    def match_except(self, batch: DocumentBatch, skip: Mask) -> tuple[Offsets, Entries]:
        """As `match_batch`, without the entries that `skip` marks."""
        names = self.table.names
        numbers = self.table.translation(batch).tolist()
        asked = np.flatnonzero(~skip).tolist()
        offsets = np.zeros(len(batch) + 1, dtype=np.int64)
        found: list[int] = []
        for index, document in enumerate(batch):
            if document.error is None:
                embedding = Embedding(document, lambda name, wanted: numbers[name] == names.get(wanted))
                found.extend(entry for entry in asked if embedding.matches(self.patterns[entry]))
                self._embeddings += len(asked)
            offsets[index + 1] = len(found)
        return decided(self, batch, (offsets, np.array(found, dtype=np.int32)))

    def statistics(self) -> dict[str, int | float]:
        return {"embeddings": self._embeddings}
