"""Structure annotations (`+t`): a document's label paths, so that the next router matches without parsing.

    sending end                                                                  receiving end
    element arrays ──label paths──▶ numbers, values that are needed ──bytes──▶ element arrays ──▶ any engine
                       │ new ones                                    │ definitions
                       ▼                                             ▼
                  link dictionary (Sent)  ─ ─ ─ the same ─ ─ ─  link dictionary (ReceivedPaths)

An extension of the paper (Chan, Ni: Efficient XML Data Dissemination with Piggybacking, SIGMOD 2007): the next router
reuses the results of a router. An element is the number of its label path, in document order; paths determine depths,
and so the tree. A value is a place in the document, which is sent along, or bytes if the document does not contain the
value literally. Only values that the needs (`needed_document_values.py`) name are included.

Invariant: on the decoded elements every engine returns the same results as on the parsed document, for all patterns
within the needs. An annotation that cannot be decoded is `Refused`, with the information that the sender needs to
recover; the receiver parses instead.
Cost: a document of a hundred elements takes about 20 µs to decode alone, about 2 µs in a batch, and about 200 bytes.
Not done: documents of 2 GB and more, and those with more label paths than a dictionary holds; `encode` returns None.
"""

import os

import numpy as np

from pathcast.documents import Document, DocumentBatch, Names
from pathcast.documents.structure import NO_ROOM, TEXTS, VALUES, RequestedValues, Span, encode_document
from pathcast.kernels import Int32s

from ..table.needed_document_values import ANY, Needs
from .link_path_dictionary import NAMES, PATHS, Sent
from .structure_annotation_frame import Header, Refused, read_signal, write
from .structure_decoder import StructureDecoder

__all__ = ["Needs", "Refused", "StructureCoder", "StructureDecoder"]

_LARGEST = (1 << 31) - 1


class StructureCoder:
    """The sending end of a link: documents to annotations.

    `needs` are the receiver's. `epoch` identifies the dictionary; the default is random.
    """

    def __init__(self, needs: Needs, *, epoch: int | None = None, paths: int = PATHS, names: int = NAMES) -> None:
        self.needs = needs
        self._paths, self._names = paths, names
        self._out = np.empty(1 << 12, np.uint8)
        self._counts = np.zeros(2, np.int64)
        self.restarts = -1
        self._begin(epoch)

    def _begin(self, epoch: int | None = None) -> None:
        """Begin a dictionary."""
        drawn = int.from_bytes(os.urandom(4), "little") if epoch is None else epoch & 0xFFFFFFFF
        self._sent = Sent(drawn, self._paths, self._names)
        self._requests = _Requests(self.needs, self._sent.labels.names)
        self._told = 0
        self.restarts += 1

    @property
    def known(self) -> int:
        """The number of label paths in the dictionary."""
        return len(self._sent)

    @property
    def sent(self) -> Sent:
        """The current dictionary; it is replaced when it is full."""
        return self._sent

    def encode(self, document: Document, *, leaves: bool = True) -> bytes | None:
        """The annotation of a parsed document; None if it cannot be annotated.

        Its definitions count as sent, unless it `leaves` only later (`left`) or never.
        """
        batch = document.batch
        if document.error is not None or len(batch.data) > _LARGEST:
            return None
        begin, end = batch.offsets[document.index : document.index + 2].tolist()
        place, stop = batch.data_offsets[document.index : document.index + 2].tolist()
        numbered = self._number(batch, begin, end)
        if numbered is None:
            self._begin((self._sent.epoch + 1) & 0xFFFFFFFF)
            numbered = self._number(batch, begin, end)
            if numbered is None:
                self._begin((self._sent.epoch + 1) & 0xFFFFFFFF)
                return None
        paths, translate = numbered
        size = self._write(batch, Span(begin, end, place), paths, translate)
        attributes, texts = self._counts.tolist()
        body = self._out[:size].tobytes()
        written = self.message(body, stop - place, end - begin, attributes, texts)
        if leaves:
            self.left()
        return written

    def message(self, body: bytes, length: int, elements: int, attributes: int, texts: int) -> bytes:
        """An annotation of encoded elements and values, with the definitions that it needs."""
        sent, told = self._sent, self._told
        definitions = sent.definitions(told) if told < len(sent) else b""
        counts = length, elements, attributes, texts
        header = Header(sent.epoch, told, len(sent) - told, sent.digests[-1], self.needs.version, *counts, 0, 0)
        return write(header, definitions, body)

    def left(self) -> None:
        """Record that the last annotation has left: its definitions count as sent."""
        self._told = len(self._sent)

    def hear(self, signal: bytes) -> None:
        """Process the signal of a receiver that rejected an annotation: define again from its last known path.

        A malformed signal is treated as that of a receiver with an empty dictionary.
        """
        epoch, known = read_signal(signal) or (-1, 0)
        self._told = min(self._told, known) if epoch == self._sent.epoch else 0

    def _number(self, batch: DocumentBatch, begin: int, end: int) -> tuple[Int32s, Int32s] | None:
        translate = self._sent.translation(batch)
        names, parents = batch.name, batch.parent
        if end - begin < len(names):
            names, parents = names[begin:end], parents[begin:end]
        paths = self._sent.number(names, parents, translate, begin)
        return None if paths is None else (paths, translate)

    def _write(self, batch: DocumentBatch, span: Span, paths: Int32s, translate: Int32s) -> int:
        requested = self._requests.follow()
        wanted = np.empty(span.end - span.begin, np.uint8)
        while True:
            size = encode_document(
                span, batch.elements, batch.values, paths, translate, requested, wanted, self._out, self._counts
            )
            if size != NO_ROOM:
                return size
            self._out = np.empty(4 * len(self._out), np.uint8)


class _Requests:
    """The needs by the numbers of a dictionary's names, for look-ups by the kernel."""

    def __init__(self, needs: Needs, names: Names) -> None:
        self._needs, self._names = needs, names
        number_of = {name: number for number, name in enumerate(needs.attribute_names)}
        self._number_of = number_of
        self._codes_of: dict[str, list[int]] = {}
        everywhere = np.zeros(len(number_of), np.bool_)
        for element, name in sorted(needs.attributes):
            if element == ANY:
                everywhere[number_of[name]] = True
            else:
                self._codes_of.setdefault(element, []).append(number_of[name])
        self._all = self._bits(ANY)
        self._requested = RequestedValues(
            np.zeros(0, np.uint8), np.zeros(0, np.int32), everywhere, np.zeros(0, np.int64)
        )

    def _bits(self, element: str) -> int:
        return TEXTS * (element in self._needs.texts) | VALUES * (element in self._needs.values)

    def follow(self) -> RequestedValues:
        """The requests, extended to the current names of the dictionary."""
        before = len(self._requested.flags)
        if before == len(self._names):
            return self._requested
        flags, codes, _, pairs = self._requested
        spelled = [self._needs.spelled(self._names[number]) for number in range(before, len(self._names))]
        new_flags = np.array([self._bits(name) | self._all for name in spelled], np.uint8)
        new_codes = np.array([self._number_of.get(name, -1) for name in spelled], np.int32)
        more = [
            number << 32 | code for number, name in enumerate(spelled, before) for code in self._codes_of.get(name, ())
        ]
        self._requested = self._requested._replace(
            flags=np.append(flags, new_flags),
            codes=np.append(codes, new_codes),
            pairs=np.append(pairs, np.array(sorted(more), np.int64)),
        )
        return self._requested
