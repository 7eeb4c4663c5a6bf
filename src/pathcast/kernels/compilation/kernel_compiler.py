"""Compiler: `@kernel` compiles a function for one signature; `@part` marks a function that kernels call.

A signature is a string: `int64(ro_i4[::1], i8[::1], i4[:, ::1])`. The kernel only reads `ro_` arrays, so it also
accepts read-only arrays such as memory-mapped ones; otherwise each combination would need its own version. Kernels
release the GIL (except brief ones), do not allocate per element, and use NumPy's rules for division.

Invariant: no process imports Numba to run kernels: the compiled kernels are on disk (`machine_code.py`), or a process
that only compiles makes them (`compiler_process.py`).
Cost: compiled code loads in half a millisecond; compiling takes a second or more, once per source (`kernel_cache.py`).
"""

import sys
import threading
import time
from collections.abc import Callable
from functools import partial, update_wrapper
from typing import Any, Literal, TypeVar, overload

from .kernel_cache import KernelFile
from .machine_code import MachineCode, linker

# Kernels are typed by their signatures and arrays, not by annotations.
Function = Callable[..., Any]
F = TypeVar("F", bound=Function)


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
    return lambda function: _loaded(given, function, brief)


def _loaded(signature: str | None, function: Function, brief: bool) -> "Kernel":
    file = KernelFile(function)
    code = file.load()
    if code is None:
        with file.alone():
            code = file.load()  # another process may have compiled it meanwhile
            if code is None:
                code = _compiled(signature, function, brief)
                file.save(code)
    return Kernel(linker().function(code, function.__name__), signature, function, brief)


def _compiled(signature: str | None, function: Function, brief: bool) -> MachineCode:
    if not COMPILED and sys.stderr.isatty():
        print("Pathcast is compiling its kernels (once, less than 30 s) …", file=sys.stderr, flush=True)  # noqa: T201
    start = time.perf_counter()
    code = (None if ALL_LATE else _compiled_elsewhere(function)) or _compiled_here(signature, function, brief)
    COMPILED[f"{function.__module__}.{function.__qualname__}"] = time.perf_counter() - start
    return code


def _compiled_elsewhere(function: Function) -> MachineCode | None:
    from .compiler_process import code_of

    return code_of(function)


def _compiled_here(signature: str | None, function: Function, brief: bool) -> MachineCode:
    from .numba_compilation import machine_code_of

    return machine_code_of(signature, function, brief)


class KernelFunction:
    """A function that only kernels call; `linkage` says how it becomes a part of theirs (`numba_compilation.py`)."""

    __name__: str

    def __init__(self, function: Function, linkage: Literal["part", "rare", "apart"]) -> None:
        update_wrapper(self, function)
        self.py_func, self.linkage = function, linkage

    def __call__(self, *arguments: Any, **more: Any) -> Any:
        """Reject calls from Python: there is no machine code for them."""
        name = self.__name__
        raise TypeError(f"{name}() can only be called by kernels; in Python, call {name}.py_func()")


class Kernel(partial[Any]):
    """A compiled kernel: a call runs its machine code, which checks the arguments (`argument_unboxing.py`).

    `py_func` is the function in plain Python, `inside` the same function as other kernels call it.
    """

    signature: str | None
    py_func: Function
    inside: KernelFunction
    brief: bool

    def __new__(cls, entry_point: Function, signature: str | None, function: Function, brief: bool) -> "Kernel":
        self = super().__new__(cls, entry_point)
        update_wrapper(self, function)
        self.signature, self.py_func, self.brief = signature, function, brief
        self.inside = KernelFunction(function, "rare")
        return self


class LazyKernel:
    """A kernel that is compiled on its first call."""

    def __init__(self, signature: str | None, function: Function, *, brief: bool = False) -> None:
        self.__doc__, self.__name__, self.__module__ = function.__doc__, function.__name__, function.__module__
        self.py_func = function
        self.inside = KernelFunction(function, "rare")
        self._signature, self._brief = signature, brief
        self._loaded: Kernel | None = None
        self._lock = threading.Lock()

    def ready(self) -> Kernel:
        """The compiled kernel; compile it if necessary."""
        with self._lock:
            if self._loaded is None:
                self._loaded = _loaded(self._signature, self.py_func, self._brief)
            return self._loaded

    def compiled(self) -> MachineCode:
        """The machine code, compiled by this process."""
        return _compiled_here(self._signature, self.py_func, self._brief)

    def __call__(self, *arguments: Any) -> Any:
        return (self._loaded or self.ready())(*arguments)


def part(function: Function) -> Function:
    """A function on the hot path of kernels: always inlined.

    An array that is passed to a function costs seven words on the stack, often more than the function's own work.
    """
    return KernelFunction(function, "part")


def rare(function: Function) -> Function:
    """A function off the hot path of kernels: LLVM decides where to inline it and where to call it."""
    return KernelFunction(function, "rare")


def apart(function: Function) -> Function:
    """A function that kernels rarely need: optimised once and called, so that kernels stay small."""
    return KernelFunction(function, "apart")


# Whether this process only compiles: kernels are compiled on request rather than on import, and by this process.
ALL_LATE = False
# Seconds that this process spent compiling, by kernel.
COMPILED: dict[str, float] = {}
