"""Compiling: `@kernel` makes machine code of a function for one signature, `@part` a piece that kernels call.

A signature is a string: `int64(ro_i4[::1], i8[::1], i4[:, ::1])`. `ro_` arrays are only read, and take read-only
arrays such as memory-mapped ones; each combination of array kinds would otherwise be compiled again. Kernels release
the GIL, do not allocate per element, and use NumPy's rules for division.

Cost: compiled code loads in some 6 ms; compiling takes a second or more, once per source (see `cache.py`).
"""

import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numba
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from .cache import KernelCache

# Kernels are typed by their signatures and arrays, not by annotations.
Function = Callable[..., Any]

# With `_nrt` Numba counts references to every array at every branch, atomically, which is a good part of a kernel's
# time. Kernels allocate nothing, and their callers hold the arrays.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "nopython": True, "_nrt": False}


class _ReadOnly:
    """`ro_i4[::1]`: an array type that is only read."""

    def __init__(self, element: Any) -> None:
        self.element = element

    def __getitem__(self, layout: Any) -> Any:
        return self.element[layout].copy(readonly=True)


_ELEMENTS = {
    "i1": types.int8,
    "i4": types.int32,
    "i8": types.int64,
    "u1": types.uint8,
    "u4": types.uint32,
    "u8": types.uint64,
    "f8": types.float64,
    "b1": types.boolean,
}
_NAMES: dict[str, Any] = {
    **_ELEMENTS,
    **{f"ro_{name}": _ReadOnly(element) for name, element in _ELEMENTS.items()},
    "int32": types.int32,
    "int64": types.int64,
    "uint64": types.uint64,
    "float64": types.float64,
    "boolean": types.boolean,
    "void": types.void,
    "Tuple": types.Tuple,
}


def kernel(signature: str, *, late: bool = False) -> Callable[[Function], Function]:
    """Compile the function for `signature` now, or load what was compiled before.

    `late`: not before it is first called. For kernels that few need, so that others do not wait for them; a call costs
    some 0.2 µs more.
    """
    if late:
        return lambda function: _Late(signature, function)

    def compiled(function: Function) -> Function:
        dispatcher: Any = numba.jit(**_OPTIONS)(function)
        dispatcher._cache = KernelCache(function)  # type: ignore[no-untyped-call]
        fresh = not dispatcher._cache.holds_anything()
        if fresh:
            _announce()
        start = time.perf_counter()
        dispatcher.compile(eval(signature, {"__builtins__": {}}, _NAMES))  # noqa: S307 - our own text
        dispatcher.disable_compile()
        if fresh:
            COMPILED[f"{function.__module__}.{function.__qualname__}"] = time.perf_counter() - start
        return dispatcher  # type: ignore[no-any-return]

    return compiled


class _Late:
    """A kernel that is compiled when it is first called."""

    def __init__(self, signature: str, function: Function) -> None:
        self.__doc__, self.__name__, self.__module__ = function.__doc__, function.__name__, function.__module__
        self.py_func = function
        self._signature = signature
        self._compiled: Function | None = None
        self._lock = threading.Lock()

    def ready(self) -> Function:
        """The kernel, compiled by now."""
        with self._lock:
            if self._compiled is None:
                self._compiled = kernel(self._signature)(self.py_func)
            return self._compiled

    def __call__(self, *arguments: Any) -> Any:
        return (self._compiled or self.ready())(*arguments)


def part(function: Function) -> Function:
    """A piece of kernels on their hot path: its code stands in the kernel itself.

    An array that is passed to a function costs seven words on the stack, more than many a part's own work.
    """
    return numba.jit(**_OPTIONS, forceinline=True)(function)  # type: ignore[no-any-return]


def rare(function: Function) -> Function:
    """A piece of kernels off their hot path: compiled once, called, so that kernels stay small and compile fast."""
    return numba.jit(**_OPTIONS)(function)  # type: ignore[no-any-return]


@intrinsic
def _word(typing: Any, data: Any, place: Any) -> Any:
    """`word(data, p)`: the eight bytes from `p` on as one number, the first the lowest. They must exist."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        address = builder.gep(array.data, [arguments[1]])
        kind = ir.IntType(64)
        return builder.load(builder.bitcast(address, kind.as_pointer()), align=1)

    return types.uint64(data, types.int64), generate


# Inside kernels it takes data and place alone.
word: Any = _word


# Seconds that this process spent compiling, by kernel.
COMPILED: dict[str, float] = {}


def _announce() -> None:
    if not COMPILED and sys.stderr.isatty():
        print("Pathcast compiles its kernels (once, less than half a minute) …", file=sys.stderr, flush=True)  # noqa: T201
