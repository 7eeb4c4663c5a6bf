"""Linking: what is optimised together, and how often.

Numba optimises every function together with all that it calls, again and again on the way up, and makes machine code of
it each time: a part at the bottom of five is optimised five times, although it only ever runs as a piece of the kernel
at the top. Here parts and rare functions are lowered and simplified by themselves and no more. A kernel is optimised
once, with all of them inside it. What stays *apart* is optimised once for all kernels, and joins a kernel after that;
then calls drop the words that no function reads, which is most of a named tuple's.

Invariant: a kernel's module ends up with everything that it calls, so that it can be kept on disk by itself. Machine
code is made of kernels alone: nothing else can be called from Python.
Cost: each line is optimised once a kernel that it stands in, or once if it stays apart; that is where most time goes.

Private parts of Numba (tests/kernels/test_numba_internals.py names each one that a new version changes):

    JITCodeLibrary    its subclasses override `finalize`, `codegen` and `get_pointer_to_function`. They use the modules
                      `_final_module` and `_get_module_for_linking()`, the callees `_linking_libraries`, and the steps
                      of Numba's own `finalize`, in Numba's order
    Compiler          its subclasses pass such a library where Numba would make one

Numba has no public way to choose what is optimised together. Without this file, `kernel_compiler.py` would leave out
`pipeline_class`: kernels give the same results and need no other change, but compile for longer. The 27 kernels of
joins took 15 to 18 s of processor time with it and 19 s without.
"""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import llvmlite.binding as llvm
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.compiler_lock import require_global_compiler_lock

L = TypeVar("L", bound=JITCodeLibrary)


class _NoEngine:
    """Stands for the engine where nothing is made to run: there is no place for a function's environment."""

    def set_env(self, name: str, environment: Any) -> None:
        """Kernels do without those of their parts, as they do when they are loaded from disk."""


class _Library(JITCodeLibrary):
    """The code of one function, and what it calls."""

    def _optimise(self) -> list["ApartLibrary"]:
        """Take in and optimise what stands inside; what stays apart is returned."""
        called = _callers_first(self._linking_libraries, _inside)
        self._take_in(library for library in called if not isinstance(library, ApartLibrary))
        self._optimize_final_module()  # type: ignore[no-untyped-call]
        return [library for library in called if isinstance(library, ApartLibrary)]

    def _take_in(self, libraries: Iterable[JITCodeLibrary]) -> None:
        for library in libraries:
            self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)  # type: ignore[no-untyped-call]


class PartLibrary(_Library):
    """A function that stands in others: simplified by itself, never run by itself."""

    @property
    def codegen(self) -> Any:
        return _NoEngine() if self._finalized else self._codegen

    def get_pointer_to_function(self, name: str) -> int:
        """None: there is no machine code."""
        self._ensure_finalized()  # type: ignore[no-untyped-call]
        return 0

    def finalize(self) -> None:
        self._raise_if_finalized()  # type: ignore[no-untyped-call]
        self._finalized = True


class ApartLibrary(PartLibrary):
    """A function that is called: optimised by itself, never run by itself. `calls`: what stays apart from it, too."""

    calls: list["ApartLibrary"]

    def finalize(self) -> None:
        require_global_compiler_lock()  # type: ignore[no-untyped-call]
        self.calls = self._optimise()
        super().finalize()


class KernelLibrary(_Library):
    """A kernel: complete, and made to run."""

    def finalize(self) -> None:
        require_global_compiler_lock()  # type: ignore[no-untyped-call]
        self._codegen._check_llvm_bugs()  # type: ignore[no-untyped-call]
        self._raise_if_finalized()  # type: ignore[no-untyped-call]
        outside = _callers_first(self._optimise(), lambda library: library.calls)
        self._take_in(outside)
        _drop_unused_arguments(self._final_module)
        self._final_module.verify()
        self._finalize_final_module()  # type: ignore[no-untyped-call]


def _drop_unused_arguments(module: llvm.ModuleRef) -> None:
    """Let functions that stay apart take only the words that they use: of most arrays the address alone.

    Numba passes all of a group's arrays, each with its sizes and strides. Once a module is complete, nobody else calls
    its functions, and LLVM may change how they are called.
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
    """What is still to be taken in with a library."""
    unfinished = isinstance(library, PartLibrary) and not isinstance(library, ApartLibrary)
    return library._linking_libraries if unfinished else []


def _callers_first(libraries: Iterable[L], called: Callable[[L], Iterable[L]]) -> list[L]:
    """These and all that they call, each before what it calls: the linker takes in what is missing, and no more."""
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
                library.enable_object_caching()
            super().__init__(typing, target, library, *rest)  # type: ignore[no-untyped-call]

    return Pipeline


PartCompiler, ApartCompiler, KernelCompiler = map(_compiler, (PartLibrary, ApartLibrary, KernelLibrary))
