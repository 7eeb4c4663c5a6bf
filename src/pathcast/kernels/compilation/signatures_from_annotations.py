"""Signatures: derive the signature of a kernel from its annotations.

    class Elements(NamedTuple):              @kernel
        names: Int32s                        def walk(elements: Elements, first: int, found: Writable[Int32s]) -> int:
        parents: Int32s                          ... elements.parents[first] ...

Arrays that belong together are passed as a plain `NamedTuple`. Inside kernels and parts it is passed by value, so LLVM
sees the same values as if each field were a parameter. A named tuple that a kernel creates itself
(`Span(first, count)`) is an ordinary Numba tuple. `argument_unboxing.py` converts arguments of calls from Python.

    int, float, bool, None        int64, float64, boolean, void; np.uint64 and the like stand for themselves
    Int32s, Matrix[Int32s], …     C-contiguous arrays that the kernel only reads (`array_types.py`)
    Writable[Int32s], …           C-contiguous arrays that the kernel may write to
    a NamedTuple, tuple[…]        of these
"""

from collections.abc import Callable, Iterable
from types import NoneType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import numpy as np
from numba import types
from numba.np.numpy_support import from_dtype

from ..array_types import Dimensions, WritableMark
from .argument_unboxing import ArrayArgument, Group

_NUMBERS = {int: types.int64, bool: types.boolean, float: types.float64, NoneType: types.void}


def signature_of(function: Callable[..., Any]) -> Any:
    """The signature that a function's annotations declare."""
    hints = get_type_hints(function, include_extras=True)
    code = function.__code__
    names = code.co_varnames[: code.co_argcount]
    if missing := [name for name in (*names, "return") if name not in hints]:
        raise TypeError(
            f"kernel {function.__qualname__}() lacks annotations for {', '.join(missing)}; add the annotations"
        )
    return argument_type(hints["return"])(*(argument_type(hints[name]) for name in names))


def argument_type(annotation: Any) -> Any:
    """Numba's type for an annotation."""
    if annotation in _NUMBERS:
        return _NUMBERS[annotation]
    marks: list[Any] = []
    if get_origin(annotation) is Annotated:
        annotation, *marks = get_args(annotation)
    origin = get_origin(annotation)
    if origin is np.ndarray:
        return _array_type(annotation, marks)
    if origin is tuple:
        return _tuple_of(map(argument_type, get_args(annotation)))
    if isinstance(annotation, type) and issubclass(annotation, np.generic):
        return from_dtype(np.dtype(annotation))
    if isinstance(annotation, type) and issubclass(annotation, tuple) and hasattr(annotation, "_fields"):
        hints = get_type_hints(annotation, include_extras=True)
        return Group(annotation, [argument_type(hints[name]) for name in annotation._fields])
    raise TypeError(f"a kernel argument cannot be {annotation!r}; use a number, an array type or a NamedTuple of these")


def _array_type(annotation: Any, marks: list[Any]) -> ArrayArgument:
    (element,) = get_args(get_args(annotation)[1])
    ndim = next((mark.count for mark in marks if isinstance(mark, Dimensions)), 1)
    return ArrayArgument(from_dtype(np.dtype(element)), ndim, WritableMark in marks)


def _tuple_of(kinds: Iterable[Any]) -> Any:
    return types.Tuple(list(kinds))  # type: ignore[no-untyped-call]


def checked(kind: Any) -> Any:
    """The checked form of a Numba type, for the signature of a kernel: its arrays are checked on entry."""
    if type(kind) is types.Array:
        return ArrayArgument(kind.dtype, kind.ndim, kind.mutable)
    if isinstance(kind, types.BaseAnonymousTuple):
        return _tuple_of(map(checked, kind.types))  # type: ignore[attr-defined]
    return kind
