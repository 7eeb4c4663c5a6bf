"""The documents of a part as element arrays, whatever their form in the worker.

An earlier stage in the same worker passes on a `DocumentBatch`; one in another worker has sent structures; otherwise
the documents are parsed here.

Invariant: a batch is valid until the next part is read.
"""

from pathcast.documents import DocumentBatch, Entities, Limits, Names, Reader, unpack

from .arrow_document_columns import Part


class PartReader:
    """Reads the documents of successive parts with one table of names."""

    def __init__(self, limits: Limits, entities: Entities = "refuse", names: Names | None = None) -> None:
        self._names = Names() if names is None else names
        self._reader = Reader(self._names, limits, entities)

    def read(self, part: Part) -> DocumentBatch:
        """The documents of a part; unreadable ones have an error."""
        if part.documents is not None:
            return part.documents
        if part.structures is not None:
            return unpack(*part.structures, part.data, part.offsets, self._names, part.failed)
        encodings = dict.fromkeys(range(part.end - part.begin), "utf-8") if part.text else None
        return self._reader.scanner.read_data(
            part.data, part.offsets, encodings=encodings, failed=part.failed, borrowed=True
        )
