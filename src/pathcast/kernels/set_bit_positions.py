"""Positions of set bits: write them sixteen at a time where the processor can compress vectors.

AVX-512 moves the chosen lanes of a vector together in one instruction; taking the lowest bit again and again needs
three instructions per bit and mispredicts the end. Kernels ask `can_compress()`, which is a constant when they are
compiled, and otherwise take the lowest bits themselves. The cache of kernels tells processors apart.
"""

from typing import Any

from .instruction_decorator import instruction

# `compress_positions` may write this many entries beyond the last one.
BEYOND = 16
_QUARTER = 16
_FEATURE, _FUNCTION = "+avx512f", "llvm.x86.avx512.mask.compress.v16i32"


def _has_instruction(context: Any) -> bool:
    """Whether code is generated for a processor with the instruction."""
    _, _, features = context.codegen().magic_tuple()
    return _FEATURE in features.split(",")


@instruction
def can_compress(typing: Any) -> Any:
    """`can_compress()`: whether `compress_positions` may be called."""
    from llvmlite import ir
    from numba import types

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return ir.Constant(ir.IntType(1), _has_instruction(context))

    return types.boolean(), generate


@instruction
def compress_positions(typing: Any, out: Any, place: Any, bits: Any, base: Any) -> Any:
    """`compress_positions(out, place, bits, base)`: write `base` + the position of each set bit; the next place.

    `out` is an array of 32 bits, `bits` has 64.
    """
    from llvmlite import ir
    from numba import types

    integer, long = ir.IntType(32), ir.IntType(64)
    lanes, chosen = ir.VectorType(integer, _QUARTER), ir.VectorType(ir.IntType(1), _QUARTER)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        _, place, bits, base = arguments
        if not _has_instruction(context):
            return place  # never called
        function = builder.module.globals.get(_FUNCTION)
        if function is None:
            function = ir.Function(builder.module, ir.FunctionType(lanes, [lanes, lanes, chosen]), _FUNCTION)
        undefined, first = ir.Constant(lanes, ir.Undefined), ir.Constant(integer, 0)
        bases = builder.insert_element(undefined, builder.trunc(base, integer), first)
        bases = builder.shuffle_vector(bases, undefined, ir.Constant(ir.VectorType(integer, _QUARTER), [0] * _QUARTER))
        for begin in range(0, 64, _QUARTER):
            quarter = builder.trunc(builder.lshr(bits, ir.Constant(long, begin)), ir.IntType(_QUARTER))
            positions = builder.add(bases, ir.Constant(lanes, list(range(begin, begin + _QUARTER))))
            none = ir.Constant(lanes, [0] * _QUARTER)
            together = builder.call(function, [positions, none, builder.bitcast(quarter, chosen)])
            address = builder.bitcast(builder.gep(array.data, [place]), lanes.as_pointer())
            builder.store(together, address, align=4)
            place = builder.add(place, builder.zext(builder.ctpop(quarter), long))
        return place

    return types.int64(out, types.int64, types.uint64, types.int64), generate
