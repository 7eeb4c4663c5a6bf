"""Growing arrays: a column that is appended to, with capacity that grows in proportion.

A column may start as a mapped array, which is copied on the first append. An array taken earlier keeps showing the
values of that moment.
"""

import numpy as np

from pathcast.kernels import AnyArray

_FIRST = 1024


class Growing:
    """An array with spare capacity; `view` is what has been appended so far. `width`: the length of each row."""

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
        """Reserve capacity for `count` more values, which can then be written to `room`."""
        end = self.size + count
        if end > len(self._array) or not self._array.flags.writeable:
            # Grow by half, or by a quarter for long columns, which are appended to in small steps.
            more = end >> 1 if end < 1 << 20 else end >> 2
            larger = np.zeros((max(_FIRST, end + more), *self._array.shape[1:]), dtype=self._array.dtype)
            larger[: self.size] = self._array[: self.size]
            self._array = larger

    @classmethod
    def over(cls, array: AnyArray) -> "Growing":
        """A column that starts with an array, which is copied on the first append."""
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
        """The array with its spare capacity: for kernels, which know how far it is filled."""
        return self._array

    @property
    def view(self) -> AnyArray:
        return self._array[: self.size]
