"""Private parts of Numba that this package uses: when Numba changes one, a test names the part and its purpose."""

import ast
import inspect
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numba
import pytest
from numba.core import codegen, compiler, compiler_lock, options, registry

import pathcast.kernels

FOLDER = Path(pathcast.kernels.__file__).parent / "compilation"


class Part(NamedTuple):
    """A part of Numba: its owner, its name, how it is called (None: not called), and its purpose."""

    owner: Any
    name: str
    parameters: tuple[str, ...] | None
    use: str


def library():
    """An empty library, as Numba creates it for a function."""
    return codegen.JITCodeLibrary(registry.cpu_target.target_context.codegen(), "test")


def dispatcher():
    return numba.jit(lambda: 0)


def helpers():
    """Numba's functions in C."""
    return SimpleNamespace(**vars(numba._helperlib)["c_helpers"])


PARTS = [
    # kernel_linking.py: subclasses of the library of a function.
    Part(codegen, "JITCodeLibrary", ("codegen", "name"), "kernel_linking.py derives its three libraries from it"),
    Part(library, "_codegen", None, "kernel_linking.py: PartLibrary.codegen returns it until finalized"),
    Part(library, "_finalized", None, "kernel_linking.py: PartLibrary.finalize sets it, without making machine code"),
    Part(library, "_final_module", None, "kernel_linking.py links the modules of parts into it"),
    Part(library, "_linking_libraries", None, "kernel_linking.py follows it to all that a kernel calls"),
    Part(library, "_reload_init", None, "kernel_linking.py hands it from parts to the kernel, as Numba does"),
    Part(library, "_get_module_for_linking", (), "kernel_linking.py links what it returns, as Numba does"),
    Part(library, "_optimize_final_module", (), "kernel_linking.py optimises a kernel once, with its parts inside"),
    Part(library, "_ensure_finalized", (), "kernel_linking.py: PartLibrary.get_pointer_to_function"),
    Part(library, "_raise_if_finalized", (), "kernel_linking.py: all three libraries"),
    Part(library, "finalize", (), "kernel_linking.py overrides it: it decides what is optimised, and when"),
    Part(library, "get_pointer_to_function", ("name",), "kernel_linking.py overrides it: a part has no machine code"),
    Part(lambda: library()._codegen, "_tm", None, "kernel_linking.py makes object code of a kernel with it"),
    Part(library, "codegen", None, "kernel_linking.py overrides it: a part has no engine for its environment"),
    Part(lambda: library().codegen, "_check_llvm_bugs", (), "kernel_linking.py calls it before a kernel, like Numba"),
    Part(lambda: library().codegen, "set_env", ("env_name", "env"), "kernel_linking.py: _NoEngine stands in for it"),
    Part(lambda: library()._final_module, "link_in", ("other", "preserve"), "kernel_linking.py links modules with it"),
    Part(lambda: library()._final_module, "verify", (), "kernel_linking.py verifies a kernel with it, as Numba does"),
    Part(
        compiler, "Compiler", ("typingctx", "targetctx", "library", "args", "return_type", "flags", "locals"),
        "kernel_linking.py gives it a library of its own kind as the third argument",
    ),
    Part(compiler_lock, "require_global_compiler_lock", (), "kernel_linking.py asserts that one thread compiles"),
    # machine_code.py: what the code of kernels calls.
    Part(numba, "_helperlib", None, "machine_code.py loads it, for what kernels call"),
    Part(helpers, "adapt_ndarray", None, "kernels call it for arrays"),
    # numba_compilation.py: options and methods of a dispatcher.
    *(
        Part(options.DefaultOptions, name, None, f"numba_compilation.py passes {name} to numba.jit: {use}")
        for name, use in [
            ("_nrt", "no counting of references"), ("no_cpython_wrapper", "parts are not called from Python"),
            ("no_cfunc_wrapper", "nothing is called from C"), ("forceinline", "parts stand in the kernel"),
            ("nogil", "kernels release the GIL"), ("error_model", "NumPy's rules for division"),
        ]
    ),
    Part(dispatcher, "add_overload", ("cres",), "numba_compilation.py keeps functions without an entry point there"),
    Part(dispatcher, "overloads", None, "numba_compilation.py keeps functions there"),
    Part(dispatcher, "compile", ("sig",), "numba_compilation.py compiles a kernel with it"),
]  # fmt: skip


def problem(part):
    """The problem with a part of Numba, for the person who updates Numba; None if there is none."""
    named = f"Numba {numba.__version__}"
    owner = part.owner() if inspect.isfunction(part.owner) else part.owner
    where = f"{getattr(owner, '__name__', type(owner).__name__)}.{part.name}"
    found = getattr(owner, part.name, problem)
    if found is problem:
        return f"{named} has no {where}; {part.use}"
    if part.parameters is not None:
        parameters = tuple(inspect.signature(found).parameters) if callable(found) else None
        if parameters != part.parameters:
            return f"{named}: {where} takes {parameters}, not {part.parameters}; {part.use}"
    return None


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
def test_numba_has_what_kernels_are_built_on(part):
    assert problem(part) is None, problem(part)


def calls(function):
    """The calls of a method, in order, except dumps that an environment variable enables."""
    (tree,) = ast.parse(inspect.cleandoc("\n" + inspect.getsource(function))).body
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    texts = [ast.unparse(node.func) for node in sorted(found, key=lambda node: (node.lineno, node.col_offset))]
    return [text for text in texts if text not in ("dump", "self.get_llvm_str", "set", "seen.add")]


def test_numba_finalizes_a_library_in_the_steps_that_linking_repeats():
    steps = [
        "require_global_compiler_lock", "self._codegen._check_llvm_bugs", "self._raise_if_finalized",
        "self._reload_init.update", "self._final_module.link_in", "library._get_module_for_linking",
        "self._optimize_final_module", "self._final_module.verify", "self._finalize_final_module",
    ]  # fmt: skip
    found = calls(codegen.JITCodeLibrary.finalize)
    assert found == steps, (
        f"Numba {numba.__version__}: JITCodeLibrary.finalize calls {found}, not {steps}; kernel_linking.py: "
        "KernelLibrary.finalize takes the same steps in this order, with its own choice of what is linked before and "
        "after the optimiser runs, and makes object code instead of the last step"
    )


def test_numba_asks_the_engine_of_a_library_for_the_places_of_environments_only():
    """`_NoEngine` supports only `set_env`."""
    for function in (compiler.CompileResult._rebuild, registry.cpu_target.target_context.get_executable):
        wanted = [text for text in calls(function) if text.startswith("library.codegen.")]
        assert wanted == ["library.codegen.set_env"], (
            f"Numba {numba.__version__}: {function.__qualname__} calls {wanted}; "
            "kernel_linking.py: _NoEngine has only set_env"
        )


def used(path):
    """Private names that a source reads from objects of other modules."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    attributes = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr[:1] == "_"]
    own = {
        node.attr for node in attributes if isinstance(node.ctx, ast.Store) and ast.unparse(node.value) == "self"
    }  # fmt: skip
    own |= {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    return {node.attr for node in attributes if node.attr[:2] != "__"} - own


@pytest.mark.parametrize("name", ["kernel_linking.py", "machine_code.py", "numba_compilation.py"])
def test_the_list_above_has_all_that_is_used(name):
    assert used(FOLDER / name) <= {part.name for part in PARTS}


def test_a_change_is_named_with_the_version_and_what_needs_it(monkeypatch):
    parts = {part.name: part for part in PARTS}
    monkeypatch.setattr(numba, "__version__", "0.99")
    monkeypatch.delattr(codegen.CPUCodeLibrary, "_optimize_final_module")
    gone = problem(parts["_optimize_final_module"])
    assert gone.startswith(
        "Numba 0.99 has no JITCodeLibrary._optimize_final_module; kernel_linking.py optimises a kernel once"
    )
    monkeypatch.setattr(codegen.CPUCodeLibrary, "finalize", lambda self, more: None)
    other = problem(parts["finalize"])
    assert other.startswith(
        "Numba 0.99: JITCodeLibrary.finalize takes ('more',), not (); kernel_linking.py overrides it"
    )
