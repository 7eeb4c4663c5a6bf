"""Linking: a kernel's module contains the functions that it calls, and calls pass only the arguments that they use."""

import re
from pathlib import Path

import pytest

from tests.kernels.tiny import Tiny

APART = """
from tiny.kernels import apart, kernel, part, rare


@apart
def lowest(number):
    return number + 1


@apart
def lower(number):
    return lowest(number) * 2


@rare
def upper(number):
    return lower(number) + lowest(number)


@part
def top(number):
    return upper(number) + lower(number)


@kernel("int64(int64)")
def both(number):
    return top(number) + lowest(number)
"""


@pytest.mark.slow
def test_functions_that_stay_apart_come_along_however_deep_they_lie(tmp_path: Path) -> None:
    tiny = Tiny.make(tmp_path)
    (tiny.folder / "tiny" / "apart_kernels.py").write_text(APART)
    number = 5
    wanted = 2 * (number + 1) + (number + 1) + 2 * (number + 1) + (number + 1)
    for _ in range(2):  # compiled, then loaded
        assert tiny.run(f"from tiny.apart_kernels import both; print(both({number}))") == str(wanted)


GROUPED = """
from typing import NamedTuple

from tiny.kernels import Int32s, Matrix, apart, kernel


class Nodes(NamedTuple):
    names: Int32s
    parents: Int32s
    places: Matrix[Int32s]


@apart
def parent_of(nodes, node, unused):
    return nodes.parents[node]


@kernel
def two_parents(nodes: Nodes, node: int) -> int:
    return parent_of(nodes, node, node) + parent_of(nodes, node - 1, node)
"""
CALL = """
import numpy as np
from tiny.grouped_kernels import Nodes, two_parents

numbers = np.array([0, 0, 1], dtype=np.int32)
print(two_parents(Nodes(numbers, numbers, numbers.reshape(1, 3)), 2))
"""
SHOW = """
from tiny.grouped_kernels import two_parents
from tiny.kernels.compilation.numba_compilation import llvm_code_of
print(llvm_code_of(two_parents))
"""


@pytest.mark.slow
def test_a_call_passes_no_word_that_the_called_function_does_not_use(tmp_path: Path) -> None:
    tiny = Tiny.make(tmp_path)
    (tiny.folder / "tiny" / "grouped_kernels.py").write_text(GROUPED)
    code = tiny.run(SHOW)  # compiled
    (parameters,) = re.findall(r"^define [^\n]*parent_of[^\n(]*\(([^\n]*)\)[^\n]*\{$", code, re.MULTILINE)
    # Pointer to the result, pointer to the array's data, its length (for negative indexes), and the index.
    assert parameters.count("%") <= 4
    assert tiny.run(CALL) == "1"  # loaded
