"""Prefetching: fetch memory that will be needed soon while the processor does other work.

The cost of a look-up in a large table is mostly memory latency, about 100 ns for a few instructions. A caller that
knows its next look-ups prefetches their places a few steps ahead.
"""

from typing import Any

from .instruction_decorator import instruction

_FUNCTION = "llvm.prefetch.p0i8"


@instruction
def prefetch(typing: Any, data: Any, place: Any) -> Any:
    """`prefetch(data, k)`: fetch element `k` of an array into the cache, without reading it."""
    from llvmlite import ir
    from numba import types

    byte, word = ir.IntType(8), ir.IntType(32)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        address = builder.bitcast(builder.gep(array.data, [arguments[1]]), byte.as_pointer())
        function = builder.module.globals.get(_FUNCTION)
        if function is None:
            kinds = [byte.as_pointer(), word, word, word]
            function = ir.Function(builder.module, ir.FunctionType(ir.VoidType(), kinds), _FUNCTION)
        # Read access, all cache levels, data cache.
        builder.call(function, [address, *(ir.Constant(word, value) for value in (0, 3, 1))])
        return context.get_dummy_value()

    return types.void(data, types.int64), generate
