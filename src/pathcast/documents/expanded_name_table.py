"""Names: the expanded names of elements and attributes, and their ids.

A name is written `local`, or `{uri}local` when it is in a namespace, so that each name has one string. A `Names` table
only grows: an id permanently refers to the same name, and arrays of ids never need rewriting.

Reading a document never adds to the given table. A name that the table lacks gets the id `known + k`, `k` its index in
the batch's own list, so that hostile documents full of new names cost only the memory of their batch.
"""

import weakref
from collections.abc import Iterable, Iterator
from threading import Lock

import numpy as np

from pathcast.kernels import Int32s

XML_NAMESPACE = "http://www.w3.org/XML/1998/namespace"


class Names:
    """An append-only table of names; safe to read from any thread while another one adds."""

    __slots__ = ("__weakref__", "_ids", "_lock", "_names", "_onto")

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._names: list[str] = []
        self._ids: dict[str, int] = {}
        self._lock = Lock()
        self._onto: tuple[weakref.ref[Names], int, Int32s] | None = None
        for name in names:
            self.add(name)

    def add(self, name: str) -> int:
        """The id of `name`, assigned if it had none."""
        found = self._ids.get(name)
        if found is not None:
            return found
        with self._lock:
            found = self._ids.get(name)
            if found is None:
                found = len(self._names)
                self._names.append(name)
                self._ids[name] = found
            return found

    def get(self, name: str) -> int | None:
        """The id of `name`, or None when the table lacks it."""
        return self._ids.get(name)

    def onto(self, names: "Names") -> Int32s:
        """For each id, its id in another table, -1 where that lacks the name; cached for the last table."""
        size, known = len(names), self._onto
        if known is None or known[0]() is not names or known[1] != size or len(known[2]) != len(self):
            found = (names.get(name) for name in list(self._names))
            numbers = np.array([-1 if number is None else number for number in found], dtype=np.int32)
            numbers.flags.writeable = False
            self._onto = known = weakref.ref(names), size, numbers
        return known[2]

    def __getitem__(self, number: int) -> str:
        return self._names[number]

    def __contains__(self, name: object) -> bool:
        return name in self._ids

    def __len__(self) -> int:
        return len(self._names)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __getstate__(self) -> list[str]:
        return list(self._names)

    def __setstate__(self, names: list[str]) -> None:
        self.__init__(names)  # type: ignore[misc]


def expanded(uri: str | None, local: str) -> str:
    """The one spelling of a name: `local`, or `{uri}local`."""
    return f"{{{uri}}}{local}" if uri else local


def local_part(name: str) -> str:
    """The name without its namespace."""
    return name.rpartition("}")[2]
