"""Text arrays: a list of strings as UTF-8 bytes and offsets, as a snapshot stores it.

`Texts` decodes on access: opening a million strings costs nothing, and reading one decodes only that one.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import overload

import numpy as np

from pathcast.errors import SnapshotError
from pathcast.kernels import Int64s, UInt8s

from .list_offsets import offsets_of


def pack(texts: Iterable[str]) -> tuple[UInt8s, Int64s]:
    """Bytes and offsets of the texts."""
    encoded = [text.encode() for text in texts]
    offsets = offsets_of([len(text) for text in encoded])
    return np.frombuffer(b"".join(encoded), dtype=np.uint8), offsets


def check_pieces(data: UInt8s, offsets: Int64s, count: int, what: str) -> None:
    """Raise `SnapshotError` unless these are the bytes and offsets of `count` texts; `what` names the texts."""
    if data.dtype != np.uint8 or data.ndim != 1 or offsets.dtype != np.int64 or offsets.shape != (count + 1,):
        raise SnapshotError(
            f"the snapshot is damaged: {what} must be {count:,} byte strings, got {data.dtype} of shape "
            f"{data.shape} with offsets of shape {offsets.shape}; write the snapshot again"
        )
    if offsets[0] != 0 or offsets[-1] != len(data) or bool((offsets[1:] < offsets[:-1]).any()):
        raise SnapshotError(
            f"the snapshot is damaged: the offsets of {what} do not ascend from 0 to {len(data):,}; write the "
            "snapshot again"
        )


def _decoded(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise SnapshotError("the snapshot is damaged: a text is not UTF-8; write the snapshot again") from None


class Texts(Sequence[str]):
    """A list of strings that can grow; its first part may be in a snapshot."""

    def __init__(self, data: UInt8s | None = None, offsets: Int64s | None = None) -> None:
        self._data = np.empty(0, dtype=np.uint8) if data is None else data
        self._offsets = np.zeros(1, dtype=np.int64) if offsets is None else offsets
        self._packed = len(self._offsets) - 1
        self._added: list[str] = []

    def __len__(self) -> int:
        return self._packed + len(self._added)

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> list[str]: ...

    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(f"text index {index} is out of range; there are {len(self)} texts, numbered from 0")
        index %= len(self)
        if index >= self._packed:
            return self._added[index - self._packed]
        return _decoded(self._data[self._offsets[index] : self._offsets[index + 1]].tobytes())

    def __iter__(self) -> Iterator[str]:
        whole = self._data.tobytes()
        edges = self._offsets.tolist()
        for begin, end in pairwise(edges):
            yield _decoded(whole[begin:end])
        yield from self._added

    def lies_as(self, other: "Texts") -> bool:
        """Whether both refer to the same part of the same bytes, so that their texts need not be compared."""
        here, there = self._offsets, other._offsets
        return (
            self._data is other._data
            and not self._added
            and not other._added
            and len(here) == len(there)
            and here[0] == there[0]
            and here[-1] == there[-1]
        )

    def append(self, text: str) -> None:
        """Append a text."""
        self._added.append(text)
