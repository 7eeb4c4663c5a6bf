"""Fields of CSV files: of any length, since what a subscription may hold is checked with the other rules, row by row.

Python's `csv` rejects a file for one field above 131,072 characters. That limit is the process's, so it is raised while
a file is read, and restored.

Invariant: one file is read at a time, so that two cannot restore the limit in the wrong order.
"""

import csv
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

_reading = Lock()


@contextmanager
def fields_of_any_length() -> Iterator[None]:
    """Let `csv` read long fields."""
    with _reading:
        before = csv.field_size_limit(sys.maxsize)
        try:
            yield
        finally:
            csv.field_size_limit(before)
