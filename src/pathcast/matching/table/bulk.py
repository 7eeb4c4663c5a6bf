"""Many objects that stay, and the collector of cyclic garbage.

It looks at all young objects whenever some hundred more have been made than freed, and at all objects whenever those
have grown by a quarter, while everybody waits. Of patterns there are hundreds of thousands, each some ten objects, and
there are no cycles in them: a node is made after what it holds, and never changes. So the collector can find nothing
there. It rests while many are made in a row (half of the time would be its own), and those that stay are left out of
its lists, as Python itself does with tuples of plain values; they are freed as always when nobody refers to them.

Cost: some 3 µs to leave out a pattern. To look at 150,000 patterns took the collector seconds, each time.
"""

import ctypes
import gc
from collections.abc import Iterator
from contextlib import contextmanager

from pathcast.patterns.tree_pattern import AllOf, AnyOf, First, Node, Pattern, conditions_in

_leave_out = ctypes.pythonapi.PyObject_GC_UnTrack
_leave_out.argtypes, _leave_out.restype = [ctypes.py_object], None


@contextmanager
def collector_resting() -> Iterator[None]:
    """While the block runs, cyclic garbage is not looked for; what is no longer referred to is freed as always."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def leave_out(pattern: Pattern) -> None:
    """Leave a pattern that stays, and all that it is made of, out of the collector's lists."""
    _leave_out(pattern)
    for part in conditions_in(pattern.root) if pattern.root is not None else ():
        _leave_out(part)
        if isinstance(part, (Node, AllOf, AnyOf)):
            _leave_out(part.conditions)
        elif isinstance(part, First):
            _leave_out(part.steps)
