"""Texts in arrays: a list of strings as UTF-8 bytes and offsets, the way a snapshot holds it."""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt


def pack(texts: Iterable[str]) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Bytes and offsets of the texts."""
    encoded = [text.encode() for text in texts]
    offsets = np.zeros(len(encoded) + 1, dtype=np.int64)
    np.cumsum([len(text) for text in encoded], out=offsets[1:])
    return np.frombuffer(b"".join(encoded), dtype=np.uint8), offsets


def unpack(data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64]) -> list[str]:
    """The texts again."""
    whole = data.tobytes()
    edges = offsets.tolist()
    return [whole[begin:end].decode() for begin, end in zip(edges, edges[1:], strict=False)]
