"""Signatures from annotations, and the arguments that kernels accept from Python."""

import importlib
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest
from numba import types

from pathcast.kernels import Cube, Floats, Int32s, Int64s, Matrix, UInt64s, Writable
from pathcast.kernels.compilation.argument_checks import require_array
from pathcast.kernels.compilation.signatures_from_annotations import argument_type, signature_of
from tests.kernels.tiny import Tiny

GROUPED = """
from typing import NamedTuple

from .kernels import Int32s, Int64s, Matrix, UInt64s, Writable, kernel, part


class Nodes(NamedTuple):
    names: Int32s
    parents: Int32s


class Tree(NamedTuple):
    nodes: Nodes
    marks: Writable[Matrix[UInt64s]]
    limit: int


class Span(NamedTuple):
    begin: int
    end: int


@part
def parents_in(nodes, span):
    total = 0
    for node in range(span.begin, span.end):
        total += nodes.parents[node]
    return total


@kernel
def measure(tree: Tree, found: Writable[Int64s], scale: float, doubled: bool) -> int:
    \"\"\"The parents of the nodes below the limit, added up.\"\"\"
    total = parents_in(tree.nodes, Span(0, tree.limit))
    tree.marks[1, 0] += total
    found[0] = total * scale
    return total * (1 + doubled)


@kernel
def first(nodes: Nodes) -> int:
    return nodes.names[0] + nodes.parents[0]


@kernel("int64(ro_i4[::1])")
def second(values):
    return values[1]
"""


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Tiny:
    made = Tiny.make(tmp_path_factory.mktemp("grouped"))
    (made.folder / "tiny" / "grouped_kernels.py").write_text(GROUPED)
    return made


@pytest.fixture(scope="module")
def grouped(tiny: Tiny) -> Iterator[ModuleType]:
    """The kernels of `GROUPED`, compiled in this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(tiny.folder))
        patch.setenv("PATHCAST_CACHE", str(tiny.cache))
        yield importlib.import_module("tiny.grouped_kernels")
        for name in [name for name in sys.modules if name.partition(".")[0] == "tiny"]:
            del sys.modules[name]


INTS = np.arange(6, dtype=np.int32)


def fixed(array: Any) -> Any:
    """A read-only copy."""
    copy = array.copy()
    copy.flags.writeable = False
    return copy


def marks() -> UInt64s:
    return np.zeros((2, 1), dtype=np.uint64)


# Signatures.


class Pair(NamedTuple):
    left: Int32s
    right: Writable[Cube[UInt64s]]


@pytest.mark.parametrize(
    ("annotation", "dtype", "ndim", "writable"),
    [
        (Int32s, types.int32, 1, False),
        (Matrix[Floats], types.float64, 2, False),
        (Writable[Int64s], types.int64, 1, True),
        (Writable[Matrix[Int32s]], types.int32, 2, True),
        (Cube[Writable[UInt64s]], types.uint64, 3, True),
    ],
)
def test_an_array_type_says_what_a_kernel_takes(annotation: Any, dtype: Any, ndim: int, writable: bool) -> None:
    found = argument_type(annotation)
    assert (found.dtype, found.ndim, found.layout, found.mutable) == (dtype, ndim, "C", writable)


def test_a_signature_is_read_off_the_annotations() -> None:
    def function(pair: Pair, count: int, share: float, kept: bool, key: np.uint64) -> tuple[int, float]:
        raise NotImplementedError

    signature = signature_of(function)
    assert signature.return_type == types.Tuple([types.int64, types.float64])
    assert signature.args[1:] == (types.int64, types.float64, types.boolean, types.uint64)
    assert signature.args[0].fields == ("left", "right")
    assert [each.mutable for each in signature.args[0].types] == [False, True]


def test_a_function_without_annotations_is_rejected_by_name() -> None:
    def function(some: int, other) -> int:
        raise NotImplementedError

    with pytest.raises(TypeError, match=r"kernel .*function\(\) lacks annotations for other; add the annotations$"):
        signature_of(function)


def test_an_annotation_that_kernels_do_not_take_is_rejected() -> None:
    with pytest.raises(TypeError, match="a kernel argument cannot be <class 'dict'>"):
        argument_type(dict)


# Calls.


def test_fields_travel_by_name_through_kernels_and_parts(grouped: ModuleType) -> None:
    tree = grouped.Tree(grouped.Nodes(INTS, INTS), marks(), 4)
    found = np.zeros(1, dtype=np.int64)
    assert grouped.measure(tree, found, 2.5, True) == 12
    assert found[0] == 15
    assert tree.marks.tolist() == [[0], [6]]


def test_the_plain_twin_takes_the_same_objects(grouped: ModuleType) -> None:
    nodes = grouped.Nodes(INTS + 3, INTS)
    assert grouped.first(nodes) == grouped.first.py_func(nodes) == 3


def test_a_kernel_looks_like_its_function(grouped: ModuleType) -> None:
    assert grouped.measure.__name__ == "measure"
    assert grouped.measure.__doc__ == "The parents of the nodes below the limit, added up."


@pytest.mark.parametrize(
    "array",
    [INTS, fixed(INTS), INTS[1:5], np.arange(3, dtype=np.intc).astype("i4", copy=True), INTS[:0]],
    ids=["writable", "read-only", "part", "copy", "empty"],
)
def test_the_quick_check_recognises_ordinary_arrays(
    grouped: ModuleType, monkeypatch: pytest.MonkeyPatch, array: Int32s
) -> None:
    """Otherwise the layout of NumPy's arrays differs from what `argument_unboxing.py` expects, and calls are slow."""

    def slow(*arguments: Any) -> None:
        raise AssertionError("decided in Python")

    monkeypatch.setattr(sys.modules["tiny.kernels.compilation.argument_checks"], "require_array", slow)
    grouped.first(grouped.Nodes(np.append(array, array).astype(np.int32), INTS))
    grouped.first(grouped.Nodes(INTS, array if len(array) else INTS))


def test_equal_dtypes_and_mapped_files_are_accepted(grouped: ModuleType, tmp_path: Any) -> None:
    np.save(tmp_path / "ints.npy", INTS)
    mapped = np.load(tmp_path / "ints.npy", mmap_mode="r")
    equal = INTS.astype(np.dtype("i4", metadata={"own": 1}))
    assert equal.dtype is not INTS.dtype
    assert [grouped.second(each) for each in (mapped, equal)] == [1, 1]


WRONG: dict[str, tuple[Any, str]] = {
    "dtype": (INTS.astype(np.float32), "1-dimensional float32"),
    "signedness": (INTS.astype(np.uint32), "1-dimensional uint32"),
    "byte order": (INTS.astype(">i4"), "1-dimensional >i4"),
    "dimensions": (INTS.reshape(2, 3), "2-dimensional int32"),
    "strides": (INTS[::2], "a strided or unaligned view"),
    "alignment": (np.zeros(13, dtype=np.uint8)[1:].view(np.int32), "a strided or unaligned view"),
    "list": ([1, 2], "list"),
    "nothing": (None, "NoneType"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_an_array_of_another_kind_is_rejected_with_its_field(grouped: ModuleType, wrong: str) -> None:
    array, got = WRONG[wrong]
    with pytest.raises(TypeError) as error:
        grouped.first(grouped.Nodes(INTS, array))
    wanted = "Nodes.parents must be a C-contiguous 1-dimensional array of int32"
    assert str(error.value) == f"{wanted}, got {got}"
    with pytest.raises(TypeError, match="the argument must be a C-contiguous 1-dimensional array of int32"):
        grouped.second(array)


def test_the_first_wrong_field_is_reported(grouped: ModuleType) -> None:
    with pytest.raises(TypeError, match=r"^Nodes\.names must be"):
        grouped.first(grouped.Nodes(None, None))


@pytest.mark.parametrize("inside", ["a field", "a parameter"])
def test_a_read_only_array_is_never_written_to(grouped: ModuleType, inside: str) -> None:
    found = np.zeros(1, dtype=np.int64)
    tree = grouped.Tree(grouped.Nodes(INTS, INTS), marks(), 4)
    if inside == "a field":
        tree = tree._replace(marks=fixed(tree.marks))
    else:
        found = fixed(found)
    with pytest.raises(TypeError, match=r"must be a writable C-contiguous .* got a read-only array"):
        grouped.measure(tree, found, 1.0, False)


@pytest.mark.parametrize(
    "other",
    [
        lambda grouped: (INTS, INTS),
        lambda grouped: grouped.Span(1, 2),
        lambda grouped: tuple.__new__(grouped.Nodes, ()),
        lambda grouped: INTS,
        lambda grouped: None,
    ],
    ids=["tuple", "another named tuple", "too short", "array", "none"],
)
def test_another_object_in_the_place_of_a_named_tuple_is_rejected(
    grouped: ModuleType, other: Callable[[ModuleType], Any]
) -> None:
    with pytest.raises(TypeError, match="the argument must be Nodes with 2 fields, got "):
        grouped.first(other(grouped))


def test_a_kernel_takes_exactly_its_arguments(grouped: ModuleType) -> None:
    with pytest.raises(TypeError, match="first expected 1 argument, got 2"):
        grouped.first(grouped.Nodes(INTS, INTS), 1)
    with pytest.raises(TypeError, match="first expected 1 argument, got 0"):
        grouped.first()


def test_a_rejected_call_keeps_no_reference(grouped: ModuleType) -> None:
    wrong = INTS.astype(np.float64)
    nodes = grouped.Nodes(INTS, wrong)
    before = sys.getrefcount(wrong), sys.getrefcount(nodes)
    for _ in range(100):
        with pytest.raises(TypeError):
            grouped.first(nodes)
    assert (sys.getrefcount(wrong), sys.getrefcount(nodes)) == before


@pytest.mark.slow
def test_another_process_loads_what_was_compiled(grouped: ModuleType, tiny: Tiny) -> None:
    code = (
        "import numpy as np\nfrom tiny.grouped_kernels import Nodes, first\n"
        "from tiny.kernels.compilation.kernel_compiler import COMPILED\n"
        "print(first(Nodes(*np.ones((2, 1), dtype=np.int32))), *COMPILED)"
    )
    assert tiny.run(code) == "2"


def test_an_array_that_fits_is_not_rejected_in_python_either() -> None:
    require_array(INTS, (INTS.dtype, 1, True), "it")
    require_array(fixed(INTS), (INTS.dtype, 1, False), "it")
