"""Reading: bytes, text or a file to a `DocumentBatch`.

`bytes` are XML in the encoding that they declare. A `str` is XML too, its declared encoding is ignored, and its UTF-8
bytes count as the original. A path is a file that holds XML, compressed where its name ends in `.gz`.

Invariant: with `errors="return"` every input has its place in the batch, in order, even if it cannot be read.
"""

import os
import zlib
from collections.abc import Iterable
from typing import Literal

from pathcast.errors import DocumentError, PathcastError

from .document_batch import Document, DocumentBatch
from .document_files import read_file
from .document_limits import Limits
from .expanded_name_table import Names
from .expat_reader import Entities

Readable = bytes | bytearray | memoryview | str | os.PathLike[str]

# Indices in a batch are 32 bits wide.
_BATCH_BYTES = (1 << 31) - 1


def read(
    document: Readable,
    *,
    names: Names | None = None,
    limits: Limits | None = None,
    entities: Entities = "refuse",
) -> Document:
    """Read one document; raise `DocumentError` or `LimitError` when it cannot be read.

    >>> pathcast.documents.read("<a>It <b>rained</b>.</a>").string_value(0)
    'It rained.'
    """
    return read_batch([document], names=names, limits=limits, entities=entities)[0]


def read_batch(
    documents: Iterable[Readable],
    *,
    names: Names | None = None,
    limits: Limits | None = None,
    entities: Entities = "refuse",
    errors: Literal["raise", "return"] = "raise",
) -> DocumentBatch:
    """Read documents into one batch.

    With `errors="return"` an unreadable document stays in the batch without elements; its error is in `batch.errors`.

    >>> batch = pathcast.documents.read_batch(["<a><b/></a>", "<a>"], errors="return")
    >>> len(batch), batch.parent.tolist(), sorted(batch.errors)
    (2, [-1, 0], [1])
    """
    if errors not in ("raise", "return"):
        raise ValueError(f"errors must be 'raise' or 'return', got {errors!r}")
    if isinstance(documents, str | bytes | bytearray | memoryview):
        raise TypeError(f"read_batch() takes a list of documents, got a single {type(documents).__name__}; use read()")
    batch = Reader(Names() if names is None else names, Limits.given(limits), entities).read(documents)
    if errors == "raise" and batch.errors:
        raise batch.errors[min(batch.errors)]
    return batch


class Reader:
    """Reads documents repeatedly with the same names, limits and treatment of entities.

    The documents of a batch have at most `batch_bytes` in total; a document beyond that gets an error.
    """

    def __init__(self, names: Names, limits: Limits, entities: Entities, *, batch_bytes: int = _BATCH_BYTES) -> None:
        if entities not in (known := ("refuse", "expand")):
            raise ValueError(f"entities must be {' or '.join(map(repr, known))}, got {entities!r}")
        if not isinstance(limits, Limits):
            raise TypeError(f"limits must be Limits(…), got {limits!r}")
        from .scanner.scanner import Scanner

        self.limits = limits
        self.entities = entities
        self._batch_bytes = batch_bytes
        self.scanner = Scanner(names, limits, entities)

    def read(self, documents: Iterable[Readable], *, borrowed: bool = False) -> DocumentBatch:
        """Documents as a batch, unreadable ones in their places; a `borrowed` batch is valid until the next read."""
        documents = list(documents)
        plain = [document for document in documents if type(document) is bytes]
        if len(plain) == len(documents):  # without a call per document
            sizes = list(map(len, plain))
            if max(sizes, default=0) <= self.limits.size and sum(sizes) <= self._batch_bytes:
                return self.scanner.read(plain, borrowed=borrowed)
        contents: list[bytes] = []
        encodings: dict[int, str] = {}
        failed: dict[int, PathcastError] = {}
        size = 0
        for index, document in enumerate(documents):
            data = b""
            try:
                data, encoding = content(document, self.limits)
                if size + len(data) > self._batch_bytes:
                    raise DocumentError(
                        f"the batch has more than {self._batch_bytes:,} bytes; read the documents in smaller batches"
                    )
                size += len(data)
                if encoding is not None:
                    encodings[index] = encoding
            except PathcastError as error:
                failed[index] = error
                data = b""
            contents.append(data)
        return self.scanner.read(contents, encodings=encodings, failed=failed, borrowed=borrowed)

    def read_one(self, document: Readable) -> DocumentBatch:
        """One document as a batch that is valid until the next read; as `read`, but faster if it is small."""
        try:
            data, encoding = content(document, self.limits)
        except PathcastError:
            return self.read([document], borrowed=True)
        small = self.scanner.read_small(data)
        if small is not None:
            return small
        return self.scanner.read([data], encodings={} if encoding is None else {0: encoding}, borrowed=True)


def content(document: Readable, limits: Limits) -> tuple[bytes, str | None]:
    """The document's bytes, and the encoding that overrides the declared one."""
    if isinstance(document, bytes):
        if len(document) > limits.size:
            raise limits.exceeded("size", f"the document has {len(document):,} bytes")
        return document, None
    if isinstance(document, str):
        text = document.lstrip("\ufeff \t\r\n")
        if text and not text.startswith("<"):
            raise DocumentError(
                "the text does not begin with '<'; a str must be XML (pass a pathlib.Path to read a file)",
                line=1,
                column=1,
            )
        try:
            return content(document.encode(), limits)[0], "utf-8"
        except UnicodeEncodeError as error:
            raise DocumentError(f"the text has a lone surrogate at character {error.start}; remove it") from None
    if isinstance(document, bytearray | memoryview):
        return content(bytes(document), limits)
    if isinstance(document, os.PathLike):
        return _file_content(document, limits), None
    raise TypeError(f"a document must be bytes, str or a path, got {type(document).__name__}")


def _file_content(path: os.PathLike[str], limits: Limits) -> bytes:
    name = os.fspath(path)
    try:
        data = read_file(path, limits.size + 1)
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        renamed = "compress the document again, or rename the file if it is not gzip"
        advice = renamed if reason is error else "check the path and its permissions"
        raise DocumentError(f"cannot read the file {name!r}: {reason}; {advice}") from None
    except ValueError:  # a NUL character, or a character that the file system's encoding lacks
        raise DocumentError(
            f"cannot read the file {name!r}: the name contains a NUL or an invalid character; give another path"
        ) from None
    if len(data) > limits.size:
        raise limits.exceeded("size", f"the file {name!r} has too many bytes")
    return data
