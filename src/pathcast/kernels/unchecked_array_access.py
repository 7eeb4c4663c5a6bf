"""Unchecked items: read and write an array at a place that is known not to be negative.

A place before 0 counts from the end of an array, so `array[k]` costs three instructions more than the access itself,
unless LLVM can see that `k` is not negative: a fifth of the time of a loop that does little else. The place must exist:
`NUMBA_BOUNDSCHECK` does not see these accesses.
"""

from typing import Any

from numba import types
from numba.extending import intrinsic


@intrinsic
def _item(typing: Any, data: Any, place: Any) -> Any:
    """`item(array, k)`: the element at `k` of an array of one dimension."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        return builder.load(builder.gep(array.data, [arguments[1]]))

    return data.dtype(data, types.int64), generate


@intrinsic
def _set_item(typing: Any, data: Any, place: Any, value: Any) -> Any:
    """`set_item(array, k, value)`: make `value` the element at `k` of an array of one dimension."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        builder.store(arguments[2], builder.gep(array.data, [arguments[1]]))
        return context.get_dummy_value()

    return types.void(data, types.int64, data.dtype), generate


# Inside kernels, they take an array and a place, and the second one a value.
item: Any = _item
set_item: Any = _set_item
