"""Advertisements: what a router tells a neighbour of all that is wanted on its side of their link.

The sender of an advertisement is the *downstream* router of the link: documents come to it from whoever received the
advertisement. What travels are aggregated subscriptions and the information derived for annotations (§4): which
aggregates are simple and what has to be bound in them, and data patterns with their frequencies. Their numbers, and the
advertisement's version, are what annotations refer to.

What the sender keeps are the tables of §5: the entries behind each aggregate (T_agg), those behind each simple one with
their bindings (T_sagg), and those that contain each data pattern (T_pat).

Invariant: whatever matches an entry of the sender that somebody else than the receiver wants matches an aggregate that
covers it. An entry contains a data pattern only by parts that it demands in every case.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ..patterns import Pattern
from .annotations import Bound, Mask
from .labels import DataPatterns

Int32s = npt.NDArray[np.int32]


class Behind:
    """For each number (of an aggregate, of a data pattern) the entries that stand behind it."""

    def __init__(self, entries: Iterable[Sequence[int] | Int32s]) -> None:
        columns = [np.asarray(each, dtype=np.int32).reshape(-1) for each in entries]
        self._offsets = np.cumsum([0, *map(len, columns)])
        self._entries = np.concatenate(columns) if columns else np.zeros(0, dtype=np.int32)
        self._numbers = np.repeat(np.arange(len(columns)), np.diff(self._offsets))

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def entries_of(self, numbers: Mask) -> Int32s:
        """The entries behind all numbers that the mask marks."""
        return self._entries[numbers[self._numbers]]

    def entries_at(self, number: int) -> Int32s:
        """The entries behind one number."""
        return self._entries[self._offsets[number] : self._offsets[number + 1]]

    def moved(self, to: Int32s) -> "Behind":
        """The same with other numbers for entries, -1 for those that are gone."""
        moved = (to[self.entries_at(number)] for number in range(len(self)))
        return Behind(entries[entries >= 0] for entries in moved)


@dataclass(frozen=True, slots=True, eq=False)
class Advertisement:
    """What `downstream` told `upstream`."""

    upstream: str
    downstream: str
    version: int
    aggregates: tuple[Pattern, ...]
    covered: Behind
    data: DataPatterns
    frequencies: Int32s
    containing: Behind
    expiring: Behind

    def known(self, bound: Bound) -> Int32s:
        """The sender's entries that match a document in which an aggregate is bound so."""
        return np.zeros(0, dtype=np.int32)

    def moved(self, to: Int32s) -> "Advertisement":
        """The same for a table in which entries have other numbers."""
        return replace(
            self,
            covered=self.covered.moved(to),
            containing=self.containing.moved(to),
            expiring=self.expiring.moved(to),
        )
