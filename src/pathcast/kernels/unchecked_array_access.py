"""Unchecked access: items at places that are known not to be negative, and eight bytes as a word.

A place before 0 counts from the end of an array, so `array[k]` costs three instructions more than the access itself,
unless LLVM can see that `k` is not negative: a fifth of the time of a loop that does little else. The place must exist:
`NUMBA_BOUNDSCHECK` does not see these accesses.
"""

from typing import Any

from .instruction_decorator import instruction


@instruction
def item(typing: Any, data: Any, place: Any) -> Any:
    """`item(array, k)`: the element at `k` of an array of one dimension."""
    from numba import types

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        return builder.load(builder.gep(array.data, [arguments[1]]))

    return data.dtype(data, types.int64), generate


@instruction
def set_item(typing: Any, data: Any, place: Any, value: Any) -> Any:
    """`set_item(array, k, value)`: make `value` the element at `k` of an array of one dimension."""
    from numba import types

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        builder.store(arguments[2], builder.gep(array.data, [arguments[1]]))
        return context.get_dummy_value()

    return types.void(data, types.int64, data.dtype), generate


@instruction
def word(typing: Any, data: Any, place: Any) -> Any:
    """`word(data, p)`: the eight bytes from `p` on as one little-endian number. The bytes must exist."""
    from llvmlite import ir
    from numba import types

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        address = builder.gep(array.data, [arguments[1]])
        kind = ir.IntType(64)
        return builder.load(builder.bitcast(address, kind.as_pointer()), align=1)

    return types.uint64(data, types.int64), generate
