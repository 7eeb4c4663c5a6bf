"""The scanner with a guard after every array: a read or write beyond one ends the process.

    python -m tests.documents.guarded FIRST LAST     scan rounds of mutations; "N of M right" when all went well
    python -m tests.documents.guarded unpadded       scan data without padding: the guard must notice
    python -m tests.documents.guarded cramped        scan with too little room, under NUMBA_BOUNDSCHECK=1

Arrays lie at the very end of memory whose next page may not be touched. Numba's own checks (NUMBA_BOUNDSCHECK=1) see
plain indexing only; the guard sees loads of eight and sixteen bytes, too.
"""

import ctypes
import mmap
import sys
from typing import Any

import numpy as np
import numpy.typing as npt

from pathcast.documents import Limits, Names
from pathcast.documents.expanded_name_table_kernels import NameIndex
from pathcast.documents.scanner import scanner_buffers as room
from pathcast.documents.scanner.character_kernels import PADDING
from pathcast.documents.scanner.name_table import NameTable
from pathcast.documents.scanner.scanner import Scanner
from pathcast.documents.scanner.scanner_array_layout_kernels import ScanRows, ScanScratch
from tests.documents.equivalence import by_expat, differences
from tests.documents.mutations import mutations
from tests.documents.rules import PASSED_ON, READ, WRONG

_LIBRARY = ctypes.CDLL(None, use_errno=True)
_LIBRARY.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_PAGE = mmap.PAGESIZE


def guarded(values: Any) -> npt.NDArray[Any]:
    """A copy of an array that ends where memory may not be touched."""
    pages = -(-values.nbytes // _PAGE)
    memory = mmap.mmap(-1, (pages + 1) * _PAGE)
    whole = np.frombuffer(memory, dtype=np.uint8)
    if _LIBRARY.mprotect(whole.ctypes.data + pages * _PAGE, _PAGE, 0) != 0:
        raise OSError(ctypes.get_errno(), "mprotect")
    copy: npt.NDArray[Any] = whole[pages * _PAGE - values.nbytes : pages * _PAGE].view(values.dtype)
    copy = copy.reshape(values.shape)
    copy[...] = values
    return copy


class GuardedRows(room.Rows):
    """Room for what a scan writes, each array with its guard."""

    def __init__(self, tags: int, equals: int, size: int) -> None:
        super().__init__(tags, equals, size)
        self.arrays = ScanRows(*map(guarded, self.arrays))


class GuardedNames(NameTable):
    """The table of names, each array with its guard."""

    def _make_room(self, *arguments: Any) -> None:
        super()._make_room(*arguments)
        self.index = NameIndex(*map(guarded, self.index))


def guarded_scanner(names: Names, limits: Limits) -> Scanner:
    room.Rows = GuardedRows  # type: ignore[misc]
    vars(room)["NameTable"] = GuardedNames
    scanner = Scanner(names, limits, "refuse")
    scanner.read([b"<a/>"])
    buffers = scanner._buffers
    buffers.scratch, buffers.most = ScanScratch(*map(guarded, buffers.scratch)), guarded(buffers.most)
    return scanner


def scan(scanner: Scanner, documents: list[bytes]) -> int:
    """Read documents, compare them with what expat gives, and count those without an error."""
    data = guarded(np.frombuffer(b"".join(documents) + bytes(PADDING), dtype=np.uint8))
    offsets = guarded(np.cumsum([0, *map(len, documents)]))
    batch = scanner.read_data(data, offsets)
    found = differences(batch, by_expat(documents, names=scanner.names, limits=scanner.limits))
    if len(documents) == 1:
        small = scanner.read_small(documents[0])
        found += differences(small, scanner.read(documents)) if small is not None else []
    if found:
        raise AssertionError(f"{documents!r}: {found}")
    return len(documents) - len(batch.errors)


def scan_rounds(first: int, last: int) -> None:
    settings = (
        (Names(), Limits()),
        (Names(["a", "b", "{u}b", "abcdefghijklmnopq", "x" * 4000]), Limits(depth=4, attributes=3, name_length=30)),
    )
    right = total = 0
    for names, limits in settings:
        scanner = guarded_scanner(names, limits)
        rules = [each for group in (READ, PASSED_ON, WRONG) for rule in group.values() for each in rule]
        short = [each for each in rules if len(each) < 60]
        right += scan(scanner, [b"<a>%b</a>" % b"".join(b"<n%d m%d=''/>" % (n, n) for n in range(9000))])
        for round_number in range(first, last):
            documents = mutations(round_number, 400) + short[round_number % 7 :: 7]
            # Alone, so that each meets the end of the data; cut, so that it meets it anywhere.
            batches = [[each] for each in documents]
            batches += [[each[: len(each) * cut // 8]] for each in documents[::4] for cut in range(1, 8)]
            batches += [documents[index : index + 50] for index in range(0, len(documents), 50)]
            right += sum(scan(scanner, batch) for batch in batches)
            total += sum(map(len, batches))
    print(f"{right} of {total} right")  # noqa: T201


def scan_without_padding() -> None:
    scanner = guarded_scanner(Names(), Limits())
    data = guarded(np.frombuffer(b"<a>text</a>\0", dtype=np.uint8))
    scanner._read(data, np.array([0, len(data) - 1]), {}, {}, borrowed=False)


def scan_in_too_little_room() -> None:
    class Cramped(room.Rows):
        def __init__(self, tags: int, equals: int, size: int) -> None:
            super().__init__(1, equals, size)

    room.Rows = Cramped  # type: ignore[misc]
    Scanner(Names(), Limits(), "refuse").read([b"<a><b/><b/><b/></a>"])


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["unpadded"]:
            scan_without_padding()
        case ["cramped"]:
            scan_in_too_little_room()
        case [first, last]:
            scan_rounds(int(first), int(last))
