"""Compiler: `@kernel` compiles a function for one signature; `@part` marks a function that kernels call.

A signature is a string: `int64(ro_i4[::1], i8[::1], i4[:, ::1])`. The kernel only reads `ro_` arrays, so it also
accepts read-only arrays such as memory-mapped ones; otherwise each combination would need its own version. Kernels
release the GIL (except brief ones), do not allocate per element, and use NumPy's rules for division.

Cost: compiled code loads in about 6 ms; compiling takes a second or more, once per source (see `kernel_cache.py`).
"""

import sys
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial, update_wrapper
from typing import Any, TypeVar, overload

import numba
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, typeof_impl

from .kernel_cache import KernelCache
from .kernel_inlining import ApartCompiler, KernelCompiler, PartCompiler
from .kernel_signatures import checked, signature_of

# Kernels are typed by their signatures and arrays, not by annotations.
Function = Callable[..., Any]
F = TypeVar("F", bound=Function)

# With `_nrt`, Numba counts references to every array at every branch, atomically, which takes much of a kernel's
# time. Kernels allocate nothing, and their callers hold the arrays.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "nopython": True, "_nrt": False}
_KERNEL: dict[str, Any] = {**_OPTIONS, "no_cfunc_wrapper": True}
_CALLED: dict[str, Any] = {**_KERNEL, "no_cpython_wrapper": True}


class _ReadOnly:
    """`ro_i4[::1]`: the type of an array that the kernel only reads."""

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


@overload
def kernel(function: F, /) -> F: ...
@overload
def kernel(*, late: bool = ..., brief: bool = ...) -> Callable[[F], F]: ...
@overload
def kernel(signature: str, /, *, late: bool = ..., brief: bool = ...) -> Callable[[Function], Function]: ...
def kernel(given: Any = None, /, *, late: bool = False, brief: bool = False) -> Any:
    """Compile the function for the given signature, or for the signature of its annotations; or load it from the cache.

    `late`: compile on the first call. For kernels that are rarely needed; a call costs about 0.2 µs more.
    `brief`: keep the GIL. For kernels that run for a microsecond: when another thread waits for the GIL, handing it
    over and back takes longer than the kernel.
    """
    if callable(given):
        return kernel(late=late, brief=brief)(given)
    if late or ALL_LATE:
        return lambda function: LazyKernel(given, function, brief=brief)
    return lambda function: _compiled(given, function, brief)


def _compiled(signature: str | None, function: Function, brief: bool) -> Function:
    options = {**_KERNEL, "nogil": not brief}
    dispatcher: Any = numba.jit(**options, pipeline_class=KernelCompiler)(function)
    dispatcher._cache = cache = KernelCache(function)  # type: ignore[no-untyped-call]
    fresh = not cache.holds_anything()
    if fresh:
        _announce()
    with cache.alone() if fresh else nullcontext():
        fresh = fresh and not cache.holds_anything()
        start = time.perf_counter()
        dispatcher.compile(_signature(signature, function))
        if fresh:
            COMPILED[f"{function.__module__}.{function.__qualname__}"] = time.perf_counter() - start
    dispatcher.disable_compile()
    (compiled,) = dispatcher.overloads.values()
    return Kernel(compiled.entry_point, dispatcher)


def _signature(text: str | None, function: Function) -> Any:
    if text is None:
        return signature_of(function)
    given = eval(text, {"__builtins__": {}}, _NAMES)  # noqa: S307 - our own text
    return given.return_type(*map(checked, given.args))


class Kernel(partial[Any]):
    """A compiled kernel: a call runs its machine code, which checks the arguments (`kernel_signatures.py`).

    `py_func` is the function in plain Python, `targetoptions` the options of the compilation.
    """

    dispatcher: Any
    py_func: Function
    targetoptions: dict[str, Any]

    def __new__(cls, entry_point: Function, dispatcher: Any) -> "Kernel":
        self = super().__new__(cls, entry_point)
        update_wrapper(self, dispatcher.py_func)
        self.dispatcher, self.py_func, self.targetoptions = dispatcher, dispatcher.py_func, dispatcher.targetoptions
        return self


@typeof_impl.register(Kernel)
def _type_of_kernel(kernel: Kernel, context: Any) -> types.Dispatcher:
    """Kernels may call kernels."""
    return types.Dispatcher(kernel.dispatcher)


class LazyKernel:
    """A kernel that is compiled on its first call."""

    def __init__(self, signature: str | None, function: Function, *, brief: bool = False) -> None:
        self.__doc__, self.__name__, self.__module__ = function.__doc__, function.__name__, function.__module__
        self.py_func = function
        self._signature, self._brief = signature, brief
        self._compiled: Function | None = None
        self._lock = threading.Lock()

    def ready(self) -> Function:
        """The compiled kernel; compile it if necessary."""
        with self._lock:
            if self._compiled is None:
                self._compiled = _compiled(self._signature, self.py_func, self._brief)
            return self._compiled

    def __call__(self, *arguments: Any) -> Any:
        return (self._compiled or self.ready())(*arguments)


def part(function: Function) -> Function:
    """A function on the hot path of kernels: always inlined.

    An array that is passed to a function costs seven words on the stack, often more than the function's own work.
    """
    return _for_kernels(numba.jit(**_CALLED, forceinline=True, pipeline_class=PartCompiler)(function))


def rare(function: Function) -> Function:
    """A function off the hot path of kernels: LLVM decides where to inline it and where to call it."""
    return _for_kernels(numba.jit(**_CALLED, pipeline_class=PartCompiler)(function))


def apart(function: Function) -> Function:
    """A function that kernels rarely need: optimised once and called, so that kernels stay small."""
    return _for_kernels(numba.jit(**_CALLED, pipeline_class=ApartCompiler)(function))


def _for_kernels(dispatcher: Any) -> Function:
    """Reject calls from Python: there is no machine code for them."""

    def refuse(*arguments: Any, **more: Any) -> None:
        name = dispatcher.__name__
        raise TypeError(f"{name}() can only be called by kernels; in Python, call {name}.py_func()")

    def add_overload(result: Any) -> None:
        dispatcher.overloads[tuple(result.signature.args)] = result

    dispatcher._compile_for_args, dispatcher.add_overload = refuse, add_overload
    return dispatcher  # type: ignore[no-any-return]


@intrinsic
def _word(typing: Any, data: Any, place: Any) -> Any:
    """`word(data, p)`: the eight bytes from `p` on as one little-endian number. The bytes must exist."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        address = builder.gep(array.data, [arguments[1]])
        kind = ir.IntType(64)
        return builder.load(builder.bitcast(address, kind.as_pointer()), align=1)

    return types.uint64(data, types.int64), generate


# Inside kernels, it takes two arguments: data and place.
word: Any = _word


# Whether all kernels are compiled on their first call rather than on import: see `ahead_of_time.py`.
ALL_LATE = False
# Seconds that this process spent compiling, by kernel.
COMPILED: dict[str, float] = {}


def _announce() -> None:
    if not COMPILED and sys.stderr.isatty():
        print("Pathcast is compiling its kernels (once, less than 30 s) …", file=sys.stderr, flush=True)  # noqa: T201
