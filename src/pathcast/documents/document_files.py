"""Files of documents: the bytes of one, compressed or not, and the files of a folder.

A name that ends in `.gz` means gzip. Limits apply to the decompressed bytes: decompression stops one byte after the
limit, so a small file cannot fill the memory.

Invariant: `content_bound` is at least the size of the result of `read_file`, unless the file grows meanwhile.
Cost: a folder is listed once; none of its files is opened.
"""

import gzip
import os
from collections import Counter
from dataclasses import dataclass, field
from io import BufferedReader
from pathlib import Path

ENDINGS = (".xml", ".xml.gz")
"""The names of a folder's documents end in one of these, in any case."""

_COMPRESSED = ".gz"
_DEFLATE_RATIO = 1032  # no stream of deflate expands further


def is_compressed(path: str | os.PathLike[str]) -> bool:
    """Whether the file is compressed, judged by its name."""
    return os.fsdecode(path).lower().endswith(_COMPRESSED)


def open_file(path: str | os.PathLike[str]) -> gzip.GzipFile | BufferedReader:
    """An open file whose bytes are decompressed where they are compressed."""
    return gzip.open(path, "rb") if is_compressed(path) else open(path, "rb")


def read_file(path: str | os.PathLike[str], most: int) -> bytes:
    """The first `most` bytes of a file, decompressed; `OSError`, `EOFError` or `zlib.error` when it cannot be read."""
    with open_file(path) as file:
        return file.read(most)


def content_bound(path: str | os.PathLike[str], most: int) -> int:
    """A bound on the size of the result of `read_file`; 0 for a file that cannot be read."""
    try:
        size = Path(os.fsdecode(path)).stat().st_size
    except (OSError, ValueError, TypeError):
        return 0
    return min(most, size * _DEFLATE_RATIO if is_compressed(path) else size)


@dataclass(frozen=True, slots=True)
class Folder:
    """The content of a folder and its subfolders.

    documents: the files that end in `ENDINGS`, sorted. others: how many files have which other ending. unreadable: why
    subfolders could not be listed. Hidden files and folders (`.name`) count as `others["hidden"]` only.
    """

    documents: list[Path] = field(default_factory=list)
    others: Counter[str] = field(default_factory=Counter)
    unreadable: list[OSError] = field(default_factory=list)


def list_folder(folder: str | os.PathLike[str]) -> Folder:
    """The documents of a folder and its subfolders. Links to folders are followed; no folder is listed twice."""
    found, seen = Folder(), set()
    for place, folders, files in os.walk(folder, onerror=found.unreadable.append, followlinks=True):
        real = os.path.realpath(place)
        folders[:] = () if real in seen else sorted(_visible(folders, found.others))
        if real in seen:
            continue
        seen.add(real)
        for name in _visible(files, found.others):
            path = Path(place, name)
            if not name.lower().endswith(ENDINGS):
                found.others[f"*{path.suffix}" if path.suffix else "without an ending"] += 1
            elif path.is_file() or not path.exists():  # a pipe would block; a broken link is an unreadable document
                found.documents.append(path)
    found.documents.sort()
    return found


def _visible(names: list[str], others: Counter[str]) -> list[str]:
    visible = [name for name in names if not name.startswith(".")]
    if len(visible) < len(names):
        others["hidden"] += len(names) - len(visible)
    return visible
