"""Byte vectors: classify 16 or 64 bytes at a time, in LLVM's terms so that every processor gets its own instructions.

A scan byte by byte costs a misprediction wherever a name or value ends, which is every few bytes.
`leading(f)` makes an intrinsic `n = count(data, p)`: the number of leading bytes that belong to a class, among the
sixteen bytes from `p` on. `matching(f)` makes an intrinsic `bits = find(data, p)`: a 64-bit number whose bit `k` says
whether byte `p + k` belongs. The bytes must exist.
"""

from collections.abc import Callable
from typing import Any

from .instruction_decorator import instruction

WIDTH, BLOCK = 16, 64


class Bytes:
    """16 or 64 bytes inside a function that is being generated; comparisons return masks."""

    def __init__(self, builder: Any, value: Any) -> None:
        self.builder = builder
        self.value = value

    def _splat(self, code: int) -> Any:
        from llvmlite import ir

        return ir.Constant(self.value.type, [code & 0xFF] * self.value.type.count)

    def equal(self, code: int) -> Any:
        return self.builder.icmp_unsigned("==", self.value, self._splat(code))

    def between(self, low: int, high: int) -> Any:
        """Low <= byte <= high."""
        moved = self.builder.sub(self.value, self._splat(low))
        return self.builder.icmp_unsigned("<=", moved, self._splat(high - low))

    def with_bits(self, bits: int) -> "Bytes":
        return Bytes(self.builder, self.builder.or_(self.value, self._splat(bits)))

    def either(self, *masks: Any) -> Any:
        result = masks[0]
        for mask in masks[1:]:
            result = self.builder.or_(result, mask)
        return result


def _mask(belongs: Callable[[Bytes], Any], width: int, builder: Any, array: Any, place: Any) -> Any:
    """A number with a bit for each of the `width` bytes of an array from `place` on: whether it belongs."""
    from llvmlite import ir

    address = builder.bitcast(builder.gep(array.data, [place]), ir.VectorType(ir.IntType(8), width).as_pointer())
    loaded = Bytes(builder, builder.load(address, align=1))
    return builder.bitcast(belongs(loaded), ir.IntType(width))


def leading(belongs: Callable[[Bytes], Any]) -> Any:
    """An intrinsic that counts the leading bytes that belong, among the next sixteen."""

    @instruction
    def count(typing: Any, data: Any, place: Any) -> Any:
        from llvmlite import ir
        from numba import types

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            array = context.make_array(signature.args[0])(context, builder, arguments[0])
            outside = builder.not_(_mask(belongs, WIDTH, builder, array, arguments[1]))
            # The seventeenth bit makes the count of an empty mask defined: sixteen.
            wide = builder.or_(builder.zext(outside, ir.IntType(32)), ir.Constant(ir.IntType(32), 1 << WIDTH))
            first = builder.cttz(wide, ir.Constant(ir.IntType(1), 1))
            return builder.zext(first, ir.IntType(64))

        return types.int64(data, types.int64), generate

    return count


def matching(belongs: Callable[[Bytes], Any]) -> Any:
    """An intrinsic that returns a bit for each of the next 64 bytes: whether it belongs. The first is the lowest."""

    @instruction
    def find(typing: Any, data: Any, place: Any) -> Any:
        from numba import types

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            array = context.make_array(signature.args[0])(context, builder, arguments[0])
            return _mask(belongs, BLOCK, builder, array, arguments[1])

        return types.uint64(data, types.int64), generate

    return find
