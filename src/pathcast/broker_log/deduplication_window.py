"""Deduplication: a publication that is sent again gets the sequence of the first.

A publication is known by its publisher and the id that the publisher gave it. The window is the last `size` records of
the log: it is counted in records, not in time, so the answer depends on the log alone and survives a restart and a
clock that jumps. A publication without an id is never a duplicate.

Cost: a dictionary entry per publication with an id in the window, some 200 bytes.
"""

from collections import deque
from typing import Final

SIZE: Final = 131_072


class DeduplicationWindow:
    """The publications of the last `size` records."""

    def __init__(self, size: int = SIZE) -> None:
        self.size = size
        self._sequences: dict[tuple[str, str], int] = {}
        self._order: deque[tuple[int, tuple[str, str]]] = deque()

    def add(self, publisher: str, id: str, sequence: int) -> None:
        """A publication was appended."""
        self._sequences[publisher, id] = sequence
        self._order.append((sequence, (publisher, id)))

    def find(self, publisher: str, id: str, head: int) -> int | None:
        """The sequence of a publication among the last `size` records of a log that ends with `head`."""
        self.drop_before(head - self.size + 1)
        return self._sequences.get((publisher, id))

    def drop_before(self, begin: int) -> None:
        """Forget the publications before a sequence."""
        while self._order and self._order[0][0] < begin:
            sequence, key = self._order.popleft()
            if self._sequences.get(key) == sequence:
                del self._sequences[key]

    def entries(self) -> list[tuple[str, str, int]]:
        """Publisher, id and sequence of each publication, in order; `add` reads them again."""
        return [(publisher, id, sequence) for sequence, (publisher, id) in list(self._order)]

    def __len__(self) -> int:
        return len(self._sequences)
