"""Making many objects that stay: meanwhile the collector of cyclic garbage rests.

It looks at all young objects whenever some hundred more have been made than freed, and at all objects whenever those
have grown by a quarter. Patterns have no cycles, and hundreds of thousands of them are made in a row: looking at them
again and again takes half as long as making them.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


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
