"""The documents of a part as element arrays, whichever way they come to a worker.

A stage before it in the same worker passes the `DocumentBatch` on; one in another worker has sent structures; otherwise
the documents are parsed here.

Invariant: a batch is good until the next part is read.
"""

from pathcast.documents import DocumentBatch, Entities, Limits, Names, Reader, unpack

from .document_columns import Part


class PartReader:
    """Reads the documents of parts, one part after the other, with one table of names."""

    def __init__(self, limits: Limits, entities: Entities = "refuse", names: Names | None = None) -> None:
        self._names = Names() if names is None else names
        self._reader = Reader(self._names, limits, entities)

    def read(self, part: Part) -> DocumentBatch:
        """The documents of a part; those that can't be read have an error."""
        if part.documents is not None:
            return part.documents
        if part.structures is not None:
            return unpack(*part.structures, part.data, part.offsets, self._names, part.failed)
        encodings = dict.fromkeys(range(part.end - part.begin), "utf-8") if part.text else None
        return self._reader.scanner.read_data(
            part.data, part.offsets, encodings=encodings, failed=part.failed, borrowed=True
        )
