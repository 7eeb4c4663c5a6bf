"""Names made to collide: different, but with one hash in the scanner's name tables, all 64 bits of it.

The hash of a name of sixteen bytes is a mixture of `first · A ^ second · B` alone, so for any second half there is a
first half that gives a chosen number; one in some 60,000 consists of letters and digits.
"""

import functools

import numpy as np

from pathcast.documents.scanner.character_kernels import MIX_C
from pathcast.kernels.hash_table_kernels import MIX_A

_NAME_BYTES = np.frombuffer(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.", dtype=np.uint8)


@functools.cache
def colliding_names(count: int) -> list[str]:
    """`count` names with the same hash."""
    random = np.random.default_rng(1)
    inverse = np.uint64(pow(int(MIX_A), -1, 1 << 64))
    is_letter = np.zeros(256, dtype=np.bool_)
    is_letter[_NAME_BYTES] = True
    found: list[str] = []
    while len(found) < count:
        second = random.choice(_NAME_BYTES, size=(1 << 20, 8)).view(np.uint64).ravel()
        first = (np.uint64(0x123456789ABCDEF1) ^ second * MIX_C) * inverse ^ np.uint64(16)
        halves = first.view(np.uint8).reshape(-1, 8)
        good = is_letter[halves].all(axis=1) & (halves[:, 0] >= ord("A"))
        pairs = np.stack([first[good], second[good]], axis=1)
        found += [pair.tobytes().decode() for pair in pairs]
    return found[:count]


def crowding_names(slots: int, count: int) -> list[str]:
    """Names that fill this many consecutive slots of a table."""
    random = np.random.default_rng(2)
    halves = random.choice(_NAME_BYTES[:52], size=(16 * slots, 16)).view(np.uint64)
    hashed = (halves[:, 0] ^ np.uint64(16)) * MIX_A ^ halves[:, 1] * MIX_C
    hashed = (hashed ^ hashed >> np.uint64(29)) * MIX_A
    wanted = (hashed ^ hashed >> np.uint64(32)) & np.uint64(slots - 1)
    _, chosen = np.unique(wanted, return_index=True)
    return [halves[index].tobytes().decode() for index in chosen[:count]]
