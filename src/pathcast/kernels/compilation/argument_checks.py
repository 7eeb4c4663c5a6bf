"""Argument checks in Python: what a kernel's quick check of an argument did not recognise.

The machine code of kernels refers to these functions by name (`argument_unboxing.py`), so this file imports no Numba.
"""

import json
from importlib import import_module
from operator import attrgetter
from typing import Any

import numpy as np


def require_array(value: Any, kind: tuple[np.dtype[Any], int, bool], place: str) -> None:
    """Raise `TypeError` unless the value is an array of this dtype, number of dimensions and writability."""
    dtype, ndim, writable = kind
    wanted = f"{place} must be a {'writable ' * writable}C-contiguous {ndim}-dimensional array of {dtype}"
    if not isinstance(value, np.ndarray):
        raise TypeError(f"{wanted}, got {type(value).__name__}")
    flags = value.flags
    if (value.dtype, value.ndim) != (dtype, ndim) or not value.dtype.isnative:
        raise TypeError(f"{wanted}, got {value.ndim}-dimensional {value.dtype}")
    if not flags.c_contiguous or not flags.aligned:
        raise TypeError(f"{wanted}, got a strided or unaligned view")
    if writable and not flags.writeable:
        raise TypeError(f"{wanted}, got a read-only array")


def require_group(value: Any, group: type[Any], place: str) -> None:
    """Raise `TypeError` unless the value is this named tuple."""
    if not isinstance(value, group) or len(value) != len(group._fields):
        raise TypeError(
            f"{place} must be {group.__qualname__} with {len(group._fields)} fields, got {type(value).__name__}"
        )


def reference_to(value: Any) -> str:
    """A text for a Python object that machine code refers to; `referred` returns the object.

    Functions and classes have their names, dtypes and what `require_array` wants of an array have their parts.
    """
    if isinstance(value, np.dtype):
        return json.dumps(["dtype", value.char])
    if isinstance(value, tuple):
        dtype, ndim, writable = value
        return json.dumps(["array", dtype.char, ndim, writable])
    return json.dumps(["name", value.__module__, value.__qualname__])


def referred(text: str) -> Any:
    """The object that a reference stands for; a dtype is the object that NumPy's arrays share."""
    kind, first, *more = json.loads(text)
    if kind == "dtype":
        return np.dtype(first)
    if kind == "array":
        return np.dtype(first), *more
    return attrgetter(*more)(import_module(first))
