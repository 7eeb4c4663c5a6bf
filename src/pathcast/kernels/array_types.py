"""Array types: one name for each kind of array, for annotations of Python code and of kernels alike.

To a type checker `Int32s` is `NDArray[np.int32]`. As an annotation in a kernel
(`compilation/signatures_from_annotations.py`) it stands for a C-contiguous array of one dimension that the kernel only
reads. `Matrix[Int32s]` has two dimensions, `Cube[Int32s]` three; the kernel may write to `Writable[Int32s]` and
`Writable[Matrix[Int32s]]`. Outside kernels these marks have no effect.
"""

from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

import numpy as np
import numpy.typing as npt

A = TypeVar("A")


@dataclass(frozen=True)
class Dimensions:
    """The number of dimensions of an array, if not one."""

    count: int


class WritableMark:
    """The kernel may write to the array."""


Int8s = npt.NDArray[np.int8]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
UInt8s = npt.NDArray[np.uint8]
UInt32s = npt.NDArray[np.uint32]
UInt64s = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
AnyArray = npt.NDArray[Any]

Matrix = Annotated[A, Dimensions(2)]
Cube = Annotated[A, Dimensions(3)]
Writable = Annotated[A, WritableMark]
