"""Subscribers: their names, and the numbers that stand for them.

A number keeps its name until names without subscriptions are dropped, which creates another list of names; holders of
the old list continue with the old numbers.
"""

import numpy as np

from pathcast.kernels import Int32s
from pathcast.store import Texts

NOBODY = -1


class Owners:
    """A growing list of names, with the number of each."""

    def __init__(self, names: Texts | None = None) -> None:
        self.names = Texts() if names is None else names
        self._numbers: dict[str, int] | None = {} if names is None else None  # a snapshot is indexed on demand

    def number(self, name: str | None) -> int:
        """The number of a name, assigned now if it has none; NOBODY for None."""
        if name is None:
            return NOBODY
        if self._numbers is None:
            self._numbers = {known: owner for owner, known in enumerate(self.names)}
        owner = self._numbers.setdefault(name, len(self.names))
        if owner == len(self.names):
            self.names.append(name)
        return owner

    def name(self, owner: int) -> str | None:
        """The name of a number."""
        return None if owner == NOBODY else self.names[owner]

    def drop_unused(self, owners: Int32s, at_least: int) -> Int32s | None:
        """Drop all names except those of these owners, if most are unused; return the new number of each old one.

        Fewer names than `at_least` are all kept.
        """
        if len(self.names) < at_least:
            return None
        used = np.zeros(len(self.names), dtype=np.bool_)
        used[owners[owners >= 0]] = True
        if 2 * np.count_nonzero(used) > len(used):
            return None
        kept = Texts()
        for owner in np.flatnonzero(used).tolist():
            kept.append(self.names[owner])
        self.names, self._numbers = kept, None
        return (np.cumsum(used) - 1).astype(np.int32)
