"""Bit instructions: two operations on 64-bit words that Python lacks."""

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic


@intrinsic
def _lowest_bit(typing: Any, value: Any) -> Any:
    """`lowest_bit(x)`: the index of the lowest set bit of a 64-bit number; 64 if none is set."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), generate


@intrinsic
def _bit_count(typing: Any, value: Any) -> Any:
    """`bit_count(x)`: the number of set bits of a 64-bit number."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), generate


# Inside kernels, both take one argument: the number.
lowest_bit: Any = _lowest_bit
bit_count: Any = _bit_count
