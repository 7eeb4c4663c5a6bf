"""A text lookup: distinct texts in a snapshot, found by content.

    texts    bytes and offsets (text_arrays.py), in the order that their owner gives them
    hashes   the CRC-32 of each text, ascending; `places` has the text of each

Invariant: `find` returns the number of an equal text, or -1: texts are compared, so equal hashes only cost time.
Cost: opening it is free; a search takes 1 to 2 µs, and no memory of the process's own.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from zlib import crc32

import numpy as np

from pathcast.kernels import AnyArray

from .text_arrays import Texts, pack


class TextLookup:
    """Finds the number of a text.

    >>> from pathcast.store import TextLookup
    >>> lookup = TextLookup(TextLookup.arrays(["//a", "//b"]))
    >>> lookup.find("//b"), lookup.find("//c"), lookup[0]
    (1, -1, '//a')
    """

    def __init__(self, arrays: Mapping[str, AnyArray]) -> None:
        """`arrays`: what `arrays` returned, as they are or from a snapshot."""
        texts, offsets = arrays["texts"], arrays["offsets"]
        self.texts = Texts(texts, offsets)
        # Items of memory views are Python's own numbers, which those of arrays are not.
        self._data, self._offsets = texts.data, offsets.data
        self._hashes, self._places = arrays["hashes"].data, arrays["places"].data

    @staticmethod
    def arrays(texts: Sequence[str]) -> dict[str, AnyArray]:
        """Distinct texts, ready to be searched, as arrays."""
        data, offsets = pack(texts)
        hashes = np.array([crc32(text.encode()) for text in texts], dtype=np.uint32)
        order = np.argsort(hashes, kind="stable")
        return {"texts": data, "offsets": offsets, "hashes": hashes[order], "places": order.astype(np.int32)}

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __getitem__(self, number: int) -> str:
        return self.texts[number]

    def find(self, text: str) -> int:
        """The number of a text; -1 if it is not among the texts."""
        wanted = text.encode()
        hash_ = crc32(wanted)
        hashes, offsets = self._hashes, self._offsets
        at = bisect_left(hashes, hash_)
        while at < len(hashes) and hashes[at] == hash_:
            place = self._places[at]
            if self._data[offsets[place] : offsets[place + 1]] == wanted:
                return int(place)
            at += 1
        return -1
