"""Compilation with Numba: the machine code of a kernel, and of the functions inside it.

Only a process that compiles imports this file: kernels on disk are loaded without Numba (`machine_code.py`). What
kernel sources define (`kernel_compiler.py`, `instruction_decorator.py`) becomes an object of Numba when a kernel
refers to it.

Cost: a second or more per kernel; most of it is spent in Numba's analysis and in LLVM's optimiser.
"""

import gc
from functools import cache
from typing import Any

import numba
from numba import types
from numba.core.registry import cpu_target
from numba.extending import typeof_impl

from ..instruction_decorator import Instruction
from .kernel_compiler import Function, Kernel, KernelFunction, LazyKernel
from .kernel_linking import ApartCompiler, KernelCompiler, PartCompiler
from .machine_code import MachineCode
from .signatures_from_annotations import checked, signature_of

# With `_nrt`, Numba counts references to every array at every branch, atomically, which takes much of a kernel's
# time. Kernels allocate nothing, and their callers hold the arrays.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "nopython": True, "_nrt": False}
_KERNEL: dict[str, Any] = {**_OPTIONS, "no_cfunc_wrapper": True}
_CALLED: dict[str, Any] = {**_KERNEL, "no_cpython_wrapper": True}
_LINKAGE: dict[str, dict[str, Any]] = {
    "part": {"forceinline": True, "pipeline_class": PartCompiler},
    "rare": {"pipeline_class": PartCompiler},
    "apart": {"pipeline_class": ApartCompiler},
}


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


def machine_code_of(signature: str | None, function: Function, brief: bool) -> MachineCode:
    """Compile a kernel."""
    collecting = gc.isenabled()
    gc.disable()  # Numba makes a million objects per kernel, all of which it keeps until the end
    try:
        compiled = _compile(signature, function, brief)
    finally:
        if collecting:
            gc.enable()
    if compiled.environment.consts:
        raise TypeError(
            f"kernel {function.__qualname__}() keeps Python objects: {compiled.environment.consts}; use only numbers, "
            "arrays and NamedTuples in it"
        )
    library, names = compiled.library, compiled.fndesc
    return MachineCode(names.llvm_cpython_wrapper_name, names.env_name, library.needs, library.code)


def llvm_code_of(kernel: Kernel) -> str:
    """A kernel in LLVM's language, for those who want to read what it became."""
    code: str = _compile(kernel.signature, kernel.py_func, kernel.brief).library.get_llvm_str()
    return code


def _compile(signature: str | None, function: Function, brief: bool) -> Any:
    options = {**_KERNEL, "nogil": not brief}
    dispatcher = _without_entry_point(numba.jit(**options, pipeline_class=KernelCompiler)(function))
    dispatcher.compile(_signature(signature, function))
    (compiled,) = dispatcher.overloads.values()
    return compiled


def _signature(text: str | None, function: Function) -> Any:
    if text is None:
        return signature_of(function)
    given = eval(text, {"__builtins__": {}}, _NAMES)  # noqa: S307 - our own text
    return given.return_type(*map(checked, given.args))


@cache
def _dispatcher(called: KernelFunction) -> Any:
    return _without_entry_point(numba.jit(**_CALLED, **_LINKAGE[called.linkage])(called.py_func))


def _without_entry_point(dispatcher: Any) -> Any:
    """Keep what is compiled for other kernels alone: Numba loads no machine code, so Python cannot call it."""

    def add_overload(result: Any) -> None:
        dispatcher.overloads[tuple(result.signature.args)] = result

    dispatcher.add_overload = add_overload
    return dispatcher


# What Numba finds under a name in the source of a kernel.


@typeof_impl.register(KernelFunction)
def _type_of_function(called: KernelFunction, context: Any) -> types.Dispatcher:
    return types.Dispatcher(_dispatcher(called))


@typeof_impl.register(Kernel)
@typeof_impl.register(LazyKernel)
def _type_of_kernel(kernel: Kernel | LazyKernel, context: Any) -> types.Dispatcher:
    return types.Dispatcher(_dispatcher(kernel.inside))


@typeof_impl.register(Instruction)
def _type_of_instruction(instruction: Instruction, context: Any) -> Any:
    intrinsic, typing = instruction.intrinsic, cpu_target.typing_context
    typing.refresh()  # finds an intrinsic that was just made
    return typing.resolve_value_type(intrinsic)
