"""The decorator of instructions: operations that kernels use and that Python lacks, written in LLVM's terms.

`@instruction` marks a function that returns a signature and a generator of code, as Numba's `intrinsic` takes it. The
intrinsic is made when a kernel is compiled (`compilation/numba_compilation.py`): a process that only loads kernels
does not import Numba.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any


class Instruction:
    """An operation for kernels; Python cannot call it."""

    def __init__(self, typed: Callable[..., Any]) -> None:
        self.typed = typed
        self.__doc__ = typed.__doc__

    @cached_property
    def intrinsic(self) -> Any:
        """Numba's intrinsic."""
        from numba.extending import intrinsic

        return intrinsic(self.typed)


def instruction(typed: Callable[..., Any]) -> Any:
    """Inside kernels, the result takes the arguments of `typed` after the first; `Any`, because Python calls none."""
    return Instruction(typed)
