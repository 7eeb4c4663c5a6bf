# mypy: allow-untyped-calls, allow-untyped-decorators
"""Argument unboxing: convert the arguments of a kernel to native values when Python calls the kernel.

Numba's dispatcher determines the type of every argument on every call, to choose among compiled versions; for a named
tuple it does so in Python. A kernel has one version. So calls go straight to its machine code, which checks each
argument: a named tuple by its class, an array by its dtype, dimensions, contiguity and (where the kernel writes)
writability. Numbers convert as by `int()`, `float()` and `bool()`.

Invariant: an array reaches the kernel only if it fits its declaration. The quick check reads three fields of NumPy's
`PyArrayObject`; if it fails, `argument_checks.py` decides. If NumPy ever moved these fields, calls would become
slower but not wrong, because the quick check would not find the address of the dtype.
Cost: 0.1 µs per call and 8 ns per array; the dispatcher takes 30 ns per array, and 80 ns if the array is read-only.
Python needs about 15 ns per field to make a named tuple, so the named tuples of long-lived arrays are kept.
Not done: structrefs (they need Numba's reference counting); descriptors packed ahead of the call (they save 8 ns per
array, and need a class of their own that knows when an array is replaced).
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import NativeValue, models, register_model, unbox
from numba.np.numpy_support import as_dtype

from .argument_checks import reference_to, require_array, require_group
from .machine_code import REFERRED

# NumPy's flags of an array.
_CONTIGUOUS, _ALIGNED, _WRITEABLE = 0x1, 0x100, 0x400
# Fields of PyArrayObject: reference count, class, data, dimensions, shape, strides, base, dtype, flags.
_CLASS, _NDIM, _DTYPE, _FLAGS = 1, 3, 7, 8


class ArrayArgument(types.Array):
    """The type of a C-contiguous array that is checked on entry to a kernel."""

    def __init__(self, dtype: Any, ndim: int, writable: bool) -> None:
        name = f"{'writable ' * writable}argument({dtype}, {ndim}d)"
        super().__init__(dtype, ndim, "C", readonly=not writable, name=name)

    @property
    def flags(self) -> int:
        """NumPy's flags that the array must have."""
        return _CONTIGUOUS | _ALIGNED | (_WRITEABLE if self.mutable else 0)


class Group(types.NamedTuple):
    """The type of a named tuple that is checked on entry to a kernel."""

    def __init__(self, group: type[Any], fields: list[Any]) -> None:
        super().__init__(fields, group)
        self.name = f"{group.__module__}.{self.name}"


register_model(ArrayArgument)(models.ArrayModel)
register_model(Group)(models.TupleModel)


@unbox(ArrayArgument)
def _unbox_array(kind: ArrayArgument, value: Any, c: Any) -> NativeValue:
    builder = c.builder
    native = cgutils.alloca_once(builder, c.context.get_value_type(kind))
    failed = _take_array(kind, value, native, "the argument", c)
    return NativeValue(builder.load(native), is_error=failed)


@unbox(Group)
def _unbox_group(kind: Group, value: Any, c: Any) -> NativeValue:
    builder, group = c.builder, kind.instance_class
    native = cgutils.alloca_once(builder, c.context.get_value_type(kind))
    failed = cgutils.alloca_once(builder, cgutils.bool_t)
    builder.store(cgutils.true_bit, failed)
    end = builder.append_basic_block("group.end")
    of_class = builder.icmp_unsigned("==", _field(builder, value, _CLASS), _constant(c, group))
    fits = cgutils.alloca_once(builder, cgutils.bool_t)
    builder.store(of_class, fits)
    with builder.if_then(of_class, likely=True):
        size = c.pyapi.tuple_size(value)
        builder.store(builder.icmp_unsigned("==", size, size.type(len(kind))), fits)
    with builder.if_then(builder.not_(builder.load(fits)), likely=False):
        _leave_if(builder, _refuses(c, require_group, value, group, "the argument"), end)
    for index, (name, field) in enumerate(zip(group._fields, kind.types, strict=True)):
        item = c.pyapi.tuple_getitem(value, index)
        place = cgutils.gep_inbounds(builder, native, 0, index)
        if isinstance(field, ArrayArgument):
            _leave_if(builder, _take_array(field, item, place, f"{group.__qualname__}.{name}", c), end)
        else:
            found = c.unbox(field, item)
            _leave_if(builder, found.is_error, end)
            builder.store(found.value, place)
    builder.store(cgutils.false_bit, failed)
    builder.branch(end)
    builder.position_at_end(end)
    return NativeValue(builder.load(native), is_error=builder.load(failed))


def _leave_if(builder: Any, condition: Any, end: Any) -> None:
    going_on = builder.append_basic_block("argument.goes_on")
    builder.cbranch(condition, end, going_on)
    builder.position_at_end(going_on)


def _take_array(kind: ArrayArgument, value: Any, native: Any, place: str, c: Any) -> Any:
    """Fill in the native form of an array; return whether this failed. One function per array type, for small code."""
    builder, module = c.builder, c.builder.module
    label = c.context.insert_const_string(module, place)
    name = f"pathcast.take.{kind}"
    function = module.globals.get(name)
    if function is None:
        form = ir.FunctionType(cgutils.bool_t, [value.type, native.type, label.type])
        function = ir.Function(module, form, name)
        function.linkage = "internal"
        function.attributes.add("noinline")
        inside = ir.IRBuilder(function.append_basic_block())
        within = c._replace(builder=inside, pyapi=c.context.get_python_api(inside))
        _take_array_body(kind, within, *function.args)
    return builder.call(function, [value, native, label])


def _take_array_body(kind: ArrayArgument, c: Any, value: Any, native: Any, label: Any) -> None:
    builder, dtype = c.builder, as_dtype(kind.dtype)
    fits = cgutils.alloca_once_value(builder, cgutils.false_bit)
    is_array = builder.icmp_unsigned("==", _field(builder, value, _CLASS), _constant(c, np.ndarray))
    with builder.if_then(is_array, likely=True):
        of_dtype = builder.icmp_unsigned("==", _field(builder, value, _DTYPE), _constant(c, dtype))
        ndim, flags = _field(builder, value, _NDIM), _field(builder, value, _FLAGS)
        of_ndim = builder.icmp_unsigned("==", ndim, ndim.type(kind.ndim))
        wanted = flags.type(kind.flags)
        has_flags = builder.icmp_unsigned("==", builder.and_(flags, wanted), wanted)
        builder.store(builder.and_(builder.and_(of_dtype, of_ndim), has_flags), fits)
    with builder.if_then(builder.not_(builder.load(fits)), likely=False):
        refused = _refuses(c, require_array, value, (dtype, kind.ndim, kind.mutable), label)
        with builder.if_then(refused):
            builder.ret(cgutils.true_bit)
    # As Numba converts arrays without reference counting, but in place: a copy would double the cost.
    status = c.pyapi.numba_array_adaptor(value, builder.bitcast(native, c.pyapi.voidptr))
    builder.ret(cgutils.is_not_null(builder, status))


def _field(builder: Any, value: Any, index: int) -> Any:
    """A field of a Python object that may be an array; every object has the first two fields."""
    pointer, number = value.type, ir.IntType(32)
    layout = ir.LiteralStructType(
        [ir.IntType(64), pointer, pointer, number, pointer, pointer, pointer, pointer, number]
    )
    address = builder.bitcast(value, layout.as_pointer())
    return builder.load(cgutils.gep_inbounds(builder, address, 0, index))


def _constant(c: Any, value: Any) -> Any:
    """A Python object that the kernel keeps, looked up when it is first needed."""
    builder = c.builder
    name = f"pathcast.object.{reference_to(value)}"
    place = builder.module.globals.get(name)
    if place is None:
        place = ir.GlobalVariable(builder.module, c.pyapi.pyobj, name)
        place.linkage, place.initializer = "internal", c.pyapi.pyobj(None)
    with builder.if_then(cgutils.is_null(builder, builder.load(place)), likely=False):
        builder.store(_object(c, value), place)
    return builder.load(place)


def _object(c: Any, value: Any) -> Any:
    """A reference to a Python object; `machine_code.py` defines the function that looks it up."""
    kind = ir.FunctionType(c.pyapi.pyobj, (c.pyapi.voidptr,))
    look_up = cgutils.get_or_insert_function(c.builder.module, kind, REFERRED)
    return c.builder.call(look_up, (c.context.insert_const_string(c.builder.module, reference_to(value)),))


def _refuses(c: Any, check: Callable[[Any, Any, str], None], value: Any, wanted: Any, place: Any) -> Any:
    """Check a value with a Python function; return whether the function raised."""
    label = c.context.insert_const_string(c.builder.module, place) if isinstance(place, str) else place
    function, kind = (_object(c, each) for each in (check, wanted))
    text = c.pyapi.string_from_string(label)
    answer = c.pyapi.call_function_objargs(function, (value, kind, text))
    for each in (function, kind, text, answer):
        c.pyapi.decref(each)
    return cgutils.is_null(c.builder, answer)
