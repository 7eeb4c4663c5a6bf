"""Linking: which functions are optimised together, and how often.

Numba optimises every function together with all functions that it calls, at every level of the call tree, and generates
machine code each time: a part below four others is optimised five times, although it only runs inlined in the kernel
at the top. Here parts and rare functions are only lowered and simplified. A kernel is optimised once, with all of them
inlined. An *apart* function is optimised once for all kernels, and linked into a kernel after that; then arguments
that no function reads are dropped from calls, which are most of the words of a named tuple.

Invariant: the module of a kernel contains everything that the kernel calls, so it can be stored on disk by itself.
Machine code is generated for kernels only, and loaded by `machine_code.py`, not by Numba.
Cost: each line is optimised once per kernel that contains it, or once if it is apart; most compile time is spent here.

Private parts of Numba (tests/kernels/test_numba_internals.py names each one that a new version changes):

    JITCodeLibrary    its subclasses override `finalize`, `codegen` and `get_pointer_to_function`. They use the modules
                      `_final_module` and `_get_module_for_linking()`, the callees `_linking_libraries`, and the steps
                      of Numba's own `finalize`, in Numba's order
    Compiler          its subclasses pass such a library where Numba would create one

Numba has no public way to choose which functions are optimised together. Without this file, `kernel_compiler.py` would
omit `pipeline_class`: kernels return the same results and need no other change, but take longer to compile. The 27
kernels of joins took 15 to 18 s of processor time with this file and 19 s without.
"""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import llvmlite.binding as llvm
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.compiler_lock import require_global_compiler_lock

from .gil_release import RELEASING

L = TypeVar("L", bound=JITCodeLibrary)


class _NoEngine:
    """Replaces the engine for functions without machine code, which have no place for an environment."""

    def set_env(self, name: str, environment: Any) -> None:
        """Do nothing: kernels do not need the environments of their parts, nor do kernels loaded from disk."""


class _Library(JITCodeLibrary):
    """The code of one function and of the functions that it calls."""

    def _optimise(self) -> list["ApartLibrary"]:
        """Link in and optimise the inlined functions; return the libraries of the apart functions."""
        called = _callers_first(self._linking_libraries, _inside)
        self._take_in(library for library in called if not isinstance(library, ApartLibrary))
        self._optimize_final_module()  # type: ignore[no-untyped-call]
        return [library for library in called if isinstance(library, ApartLibrary)]

    def _take_in(self, libraries: Iterable[JITCodeLibrary]) -> None:
        for library in libraries:
            self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)  # type: ignore[no-untyped-call]


class PartLibrary(_Library):
    """A function that is inlined into others: simplified by itself, never run by itself."""

    @property
    def codegen(self) -> Any:
        return _NoEngine() if self._finalized else self._codegen

    def get_pointer_to_function(self, name: str) -> int:
        """Always zero: there is no machine code."""
        self._ensure_finalized()  # type: ignore[no-untyped-call]
        return 0

    def finalize(self) -> None:
        self._raise_if_finalized()  # type: ignore[no-untyped-call]
        self._finalized = True


class ApartLibrary(PartLibrary):
    """A function that is called: optimised by itself, never run by itself. `calls`: other apart functions."""

    calls: list["ApartLibrary"]

    def finalize(self) -> None:
        require_global_compiler_lock()  # type: ignore[no-untyped-call]
        self.calls = self._optimise()
        super().finalize()


class KernelLibrary(PartLibrary):
    """A kernel: a complete module, and its object code (`code`), which Numba does not load."""

    code: bytes

    def finalize(self) -> None:
        require_global_compiler_lock()  # type: ignore[no-untyped-call]
        self._codegen._check_llvm_bugs()  # type: ignore[no-untyped-call]
        outside = _callers_first(self._optimise(), lambda library: library.calls)
        self._take_in(outside)
        _drop_unused_arguments(self._final_module)
        for function in self._final_module.functions:
            if function.is_declaration and function.name in RELEASING:
                function.name = RELEASING[function.name]
        self._final_module.verify()
        self.code = self._codegen._tm.emit_object(self._final_module)
        super().finalize()

    @property
    def needs(self) -> list[str]:
        """The names that the code refers to and does not define."""
        named = (*self._final_module.functions, *self._final_module.global_variables)
        return [each.name for each in named if each.is_declaration and not each.name.startswith("llvm.")]


def _drop_unused_arguments(module: llvm.ModuleRef) -> None:
    """Let apart functions take only the words that they use: the address alone for most arrays.

    Numba passes all arrays of a group, each with its sizes and strides. Once a module is complete, no other module
    calls its functions, so LLVM may change their calling convention.
    """
    for function in module.functions:
        if not function.is_declaration and function.linkage == llvm.Linkage.linkonce_odr:
            function.linkage = llvm.Linkage.internal
    passes = llvm.create_new_module_pass_manager()
    passes.add_dead_arg_elimination_pass()
    passes.add_aggressive_dce_pass()
    machine = llvm.Target.from_default_triple().create_target_machine()
    passes.run(module, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options()))


def _inside(library: JITCodeLibrary) -> list[JITCodeLibrary]:
    """The libraries that must still be linked in with a library."""
    unfinished = isinstance(library, PartLibrary) and not isinstance(library, ApartLibrary)
    return library._linking_libraries if unfinished else []


def _callers_first(libraries: Iterable[L], called: Callable[[L], Iterable[L]]) -> list[L]:
    """The libraries and all that they call, callers first: the linker only links functions that are still missing."""
    finished: dict[L, None] = {}

    def visit(library: L) -> None:
        if library not in finished:
            for each in called(library):
                visit(each)
            finished[library] = None

    for library in libraries:
        visit(library)
    return list(reversed(finished))


def _compiler(kind: type[_Library]) -> type[Compiler]:
    class Pipeline(Compiler):
        def __init__(self, typing: Any, target: Any, library: Any, *rest: Any) -> None:
            if library is None:
                library = kind(target.codegen(), "pathcast")
            super().__init__(typing, target, library, *rest)  # type: ignore[no-untyped-call]

    return Pipeline


PartCompiler, ApartCompiler, KernelCompiler = map(_compiler, (PartLibrary, ApartLibrary, KernelLibrary))
