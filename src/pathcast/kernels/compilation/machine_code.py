"""Machine code: compiled kernels as bytes, and how a process runs them without importing Numba.

Importing Numba takes longer than everything else that opens an index. A process needs Numba only to compile. The object
code of a kernel is complete but for functions of Python, of the C library and a few of Numba's in C, so LLVM alone,
which takes a tenth of the time, links it into the process and returns the address of its entry point.

Invariant: code is linked only if all that it needs exists; LLVM would end the process otherwise.
Cost: half a millisecond per kernel; some 0.1 s for the first one, in which LLVM is loaded.
"""

import ctypes
import hashlib
import json
import sys
import threading
from collections.abc import Callable
from functools import cache
from importlib.machinery import ExtensionFileLoader, PathFinder
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any, NamedTuple

from .argument_checks import referred
from .gil_release import RELEASE_CODE, RELEASING

# What the code of kernels calls to get the Python objects that it refers to: see `argument_unboxing.py`.
REFERRED = "pathcast_referred"
_ARGUMENTS_AND_KEYWORDS = 3  # METH_VARARGS | METH_KEYWORDS
_NUMBA, _HELPERS = "numba", "numba._helperlib"


class MachineCode(NamedTuple):
    """The object code of a kernel, the names of its entry point and environment, and the names that it needs."""

    entry: str
    environment: str
    needs: list[str]
    code: bytes

    def to_bytes(self) -> bytes:
        """As stored: a line of names, and the code."""
        return json.dumps([self.entry, self.environment, self.needs]).encode() + b"\n" + self.code

    @classmethod
    def from_bytes(cls, data: bytes) -> "MachineCode":
        names, _, code = data.partition(b"\n")
        entry, environment, needs = json.loads(names)
        return cls(entry, environment, needs, code)


class _Method(ctypes.Structure):
    """Python's `PyMethodDef`."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


# A function object of our own: the one in `ctypes.pythonapi` is shared by everybody who sets its types.
_new_function = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.POINTER(_Method), ctypes.c_void_p, ctypes.c_void_p)(
    ("PyCFunction_NewEx", ctypes.pythonapi)
)


def _look_up(text: bytes) -> Any:
    return referred(text.decode())


_referred = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_char_p)(_look_up)


class _Linker:
    """LLVM's engine for object code; one per process, which lives as long as the process.

    A thread may still run a kernel while Python shuts down.
    """

    def __init__(self) -> None:
        from llvmlite import binding as llvm

        self._llvm = llvm
        self._lock = threading.Lock()
        # Code raises an error without an environment; that of a kernel is empty.
        self._environment = ctypes.create_string_buffer(256)
        self._kept: list[_Method] = []
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        llvm.add_symbol(REFERRED, ctypes.cast(_referred, ctypes.c_void_p).value)
        for name, address in _numba_helpers().c_helpers.items():
            if llvm.address_of_symbol(f"numba_{name}") is None:
                llvm.add_symbol(f"numba_{name}", address)
        target = llvm.Target.from_triple(llvm.get_process_triple())
        machine = target.create_target_machine(codemodel="jitdefault", jit=True)
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(RELEASE_CODE), machine)
        for name in RELEASING.values():
            llvm.add_symbol(name, self._engine.get_function_address(name))
        for each in (self, _referred):
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(each))

    def function(self, code: MachineCode, name: str) -> Callable[..., Any]:
        """A Python function that runs the code."""
        missing = [each for each in code.needs if self._llvm.address_of_symbol(each) is None]
        if missing:
            raise ImportError(
                f"the machine code of kernel {name}() needs {', '.join(missing)}, which this version of Numba "
                "lacks; install the version of Numba that pathcast requires"
            )
        with self._lock:
            self._engine.add_object_file(self._llvm.ObjectFileRef.from_data(code.code))
            self._engine.finalize_object()
            place = self._engine.get_global_value_address(code.environment)
            ctypes.c_void_p.from_address(place).value = ctypes.addressof(self._environment)
            address = self._engine.get_function_address(code.entry)
            method = _Method(name.encode(), address, _ARGUMENTS_AND_KEYWORDS, None)
            self._kept.append(method)
        function: Callable[..., Any] = _new_function(method, None, None)
        return function


@cache
def linker() -> _Linker:
    """The linker of this process."""
    return _Linker()


@cache
def processor() -> str:
    """A hash of the processor's name and features: machine code fits one type of processor."""
    from llvmlite import binding as llvm

    features = llvm.get_host_cpu_features().flatten()
    return hashlib.sha256(f"{llvm.get_host_cpu_name()} {features}".encode()).hexdigest()[:10]


def _numba_helpers() -> ModuleType:
    """Numba's functions in C, without the rest of Numba unless that is already imported."""
    if _NUMBA in sys.modules:
        from numba import _helperlib

        return _helperlib
    package = find_spec(_NUMBA)
    folders = None if package is None else package.submodule_search_locations
    found = PathFinder.find_spec(_HELPERS, folders)
    if found is None or not isinstance(found.loader, ExtensionFileLoader):
        raise ImportError("Numba or its extension modules are missing; run: pip install --force-reinstall numba")
    helpers = module_from_spec(found)
    found.loader.exec_module(helpers)
    sys.modules.pop(_HELPERS, None)  # a later import of Numba finds it by itself
    return helpers
