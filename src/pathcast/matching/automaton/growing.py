"""Growing arrays: one column that is appended to, in doubling steps."""

from typing import Any

import numpy as np
import numpy.typing as npt


class Growing:
    """An array with room at its end; `view` is what has been appended so far."""

    def __init__(self, kind: type[np.generic], values: list[int] | None = None) -> None:
        self._array: npt.NDArray[Any] = np.zeros(1024, dtype=kind)
        self.size = 0
        if values:
            self.extend(np.array(values, dtype=kind))

    def extend(self, values: npt.NDArray[Any]) -> None:
        """Append values."""
        if not len(values):
            return
        end = self.size + len(values)
        if end > len(self._array):
            larger = np.zeros(max(end, 2 * len(self._array)), dtype=self._array.dtype)
            larger[: self.size] = self._array[: self.size]
            self._array = larger
        self._array[self.size : end] = values
        self.size = end

    @classmethod
    def over(cls, array: npt.NDArray[Any]) -> "Growing":
        """A column that begins with an array, which is copied when something is appended."""
        column = cls(array.dtype.type)
        column._array, column.size = np.asarray(array), len(array)
        return column

    def append(self, value: float) -> None:
        """Append one value."""
        self.extend(np.array([value], dtype=self._array.dtype))

    @property
    def room(self) -> npt.NDArray[Any]:
        """The array with what may be appended yet: for kernels, which know how far it is filled."""
        return self._array

    @property
    def view(self) -> npt.NDArray[Any]:
        return self._array[: self.size]
