"""Entries of a file, a stream: `split_documents`, and the pieces of what it may be given.

Invariant: a file is read one piece at a time, and none of it before the first entry is asked for.
"""

import os
import zlib
from collections.abc import Iterable, Iterator
from typing import IO, Literal

from pathcast.errors import DocumentError

from ..document_files import open_file
from ..document_limits import Limits
from ..expat_reader import Entities
from .entry_path import EntryPath, Namespaces, parse_entry_path
from .splitter import Entry, Splitter
from .utf8_stream import Piece

Splittable = bytes | bytearray | memoryview | str | os.PathLike[str] | IO[bytes] | Iterable[bytes]

_PIECE = 1 << 20


def split_documents(
    file: Splittable,
    path: str,
    *,
    namespaces: Namespaces = None,
    limits: Limits | None = None,
    entities: Entities = "refuse",
    errors: Literal["raise", "return"] = "raise",
) -> Iterator[Entry]:
    """The entries of a file, in order, each as a document of its own; the file is read as entries are asked for.

    The file is XML as bytes or text, a path (`.gz` is decompressed), an open binary file, or an iterable of its pieces.
    The path selects entries by child steps from the root: `/feed/entry`, `/a:feed/*`, `/*/Q{urn:x}row`.

    With `errors="return"` an entry that has no document because of its size, and the end of a file that cannot be read
    further, are entries with an `error`. Other mistakes inside an entry are found when its document is read.

    >>> feed = "<feed xmlns:x='urn:x'><entry>1</entry><entry><x:b/></entry></feed>"
    >>> [entry.document for entry in pathcast.split_documents(feed, "/feed/entry")]
    [b'<entry xmlns:x="urn:x">1</entry>', b'<entry xmlns:x="urn:x"><x:b/></entry>']
    """
    if errors not in ("raise", "return"):
        raise ValueError(f"errors must be 'raise' or 'return', got {errors!r}")
    found = entries_of(file, parse_entry_path(path, namespaces), limits=Limits.given(limits), entities=entities)
    return found if errors == "return" else _raising(found)


def entries_of(file: Splittable, path: EntryPath, *, limits: Limits, entities: Entities = "refuse") -> Iterator[Entry]:
    """As `split_documents` with `errors="return"`, for a path that has been parsed."""
    splitter = Splitter(path, limits, entities, encoding="utf-8" if isinstance(file, str) else None)
    return _entries(_pieces(file), splitter)


def _entries(pieces: Iterator[Piece], splitter: Splitter) -> Iterator[Entry]:
    while not splitter.done:
        try:
            piece = next(pieces, None)
        except DocumentError as error:
            yield from splitter.fail(error)
            return
        yield from splitter.finish() if piece is None else splitter.feed(piece)


def _raising(entries: Iterator[Entry]) -> Iterator[Entry]:
    for entry in entries:
        if entry.error is not None:
            entry.error.index = entry.number - 1
            raise entry.error
        yield entry


def _pieces(file: Splittable) -> Iterator[Piece]:
    if isinstance(file, str):
        try:
            file = file.encode()
        except UnicodeEncodeError as error:
            reason = f"the text has a lone surrogate at character {error.start}; remove it"
            return _failing(DocumentError(reason))
    if isinstance(file, bytes | bytearray | memoryview):
        view = memoryview(file).cast("B")
        return (view[at : at + _PIECE] for at in range(0, len(view), _PIECE))
    if isinstance(file, os.PathLike):
        return _file_pieces(file)
    if hasattr(file, "read"):
        return iter(lambda: file.read(_PIECE), b"")
    if isinstance(file, Iterable):
        return _checked(file)
    raise TypeError(
        f"a file must be bytes, str, a path, an open file or an iterable of bytes, got {type(file).__name__}"
    )


def _checked(pieces: Iterable[bytes]) -> Iterator[bytes]:
    for piece in pieces:
        if not isinstance(piece, bytes | bytearray | memoryview):
            raise TypeError(f"a piece of a file must be bytes, got {type(piece).__name__}")
        yield bytes(piece)


def _failing(error: DocumentError) -> Iterator[bytes]:
    raise error
    yield b""


def _file_pieces(path: os.PathLike[str]) -> Iterator[bytes]:
    name = os.fspath(path)
    try:
        with open_file(path) as file:
            while piece := file.read(_PIECE):
                yield piece
    except (OSError, EOFError, zlib.error, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise DocumentError(
            f"cannot read the file {name!r}: {reason}; check the path, and that the file is complete"
        ) from None
