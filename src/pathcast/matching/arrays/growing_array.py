"""Growing arrays: one column that is appended to, in steps that grow with it.

A column may begin with an array that is only mapped: it is copied when something is appended. Whoever holds the array
of an earlier moment goes on to see what it had then.
"""

import numpy as np

from pathcast.kernels import AnyArray

_FIRST = 1024


class Growing:
    """An array with room at its end; `view` is what has been appended so far. `width`: of rows with so many places."""

    def __init__(self, kind: type[np.generic], values: list[int] | None = None, *, width: int | None = None) -> None:
        self._array: AnyArray = np.zeros(_FIRST if width is None else (_FIRST, width), dtype=kind)
        self.size = 0
        if values:
            self.extend(np.array(values, dtype=kind))

    def extend(self, values: AnyArray) -> None:
        """Append values."""
        if len(values):
            end = self.size + len(values)
            self.make_room(len(values))
            self._array[self.size : end] = values
            self.size = end

    def make_room(self, count: int) -> None:
        """Make room for so many more: now `room` can be written to that far."""
        end = self.size + count
        if end > len(self._array) or not self._array.flags.writeable:
            # Half as much again, and of long columns a quarter: they are appended to bit by bit.
            more = end >> 1 if end < 1 << 20 else end >> 2
            larger = np.zeros((max(_FIRST, end + more), *self._array.shape[1:]), dtype=self._array.dtype)
            larger[: self.size] = self._array[: self.size]
            self._array = larger

    @classmethod
    def over(cls, array: AnyArray) -> "Growing":
        """A column that begins with an array, which is copied when something is appended."""
        column = cls.__new__(cls)
        column._array, column.size = np.asarray(array), len(array)
        return column

    def append(self, value: float) -> None:
        """Append one value."""
        self.make_room(1)
        self._array[self.size] = value
        self.size += 1

    @property
    def room(self) -> AnyArray:
        """The array with what may be appended yet: for kernels, which know how far it is filled."""
        return self._array

    @property
    def view(self) -> AnyArray:
        return self._array[: self.size]
