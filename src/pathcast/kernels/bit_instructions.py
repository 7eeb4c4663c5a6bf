"""Bit instructions: two operations on 64-bit words that Python lacks."""

from typing import Any

from .instruction_decorator import instruction


@instruction
def lowest_bit(typing: Any, value: Any) -> Any:
    """`lowest_bit(x)`: the index of the lowest set bit of a 64-bit number; 64 if none is set."""
    from llvmlite import ir
    from numba import types

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), generate


@instruction
def bit_count(typing: Any, value: Any) -> Any:
    """`bit_count(x)`: the number of set bits of a 64-bit number."""
    from numba import types

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), generate
