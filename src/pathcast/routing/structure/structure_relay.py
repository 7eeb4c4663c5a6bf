"""Relay a structure annotation: from the numbers of one link's dictionary to those of another's.

A router that received a document's structure relays it without the document's elements: every label path has a number
on either link. The values are copied if both neighbours need the same values, and omitted if the next one needs none;
otherwise the annotation is made from the elements (`structure_encoder.py`).

Invariant: a relayed annotation decodes to the same elements as decoding and encoding again would give.
Cost: about 10 µs per document, most of it for the message around it; a label path that is new on the next link costs
about 10 µs once.
"""

import numpy as np

from pathcast.documents.structure import AT, S_ROWS
from pathcast.errors import LimitError
from pathcast.kernels import UInt8s
from pathcast.store import grown

from .link_path_dictionary import ReceivedPaths
from .structure_annotation_frame import Refused
from .structure_decoder import StructureDecoder, Taken
from .structure_encoder import StructureCoder
from .structure_matcher_kernels import (
    C_ENTRIES,
    C_MISSING,
    C_ROWS,
    UNKNOWN,
    Message,
    Relayed,
    relay_elements,
)


class StructureRelay:
    """Relays annotations from one link to another."""

    def __init__(self, decoder: StructureDecoder, coder: StructureCoder) -> None:
        self.decoder, self.coder = decoder, coder
        self._counts, self._state = np.zeros(C_ROWS, np.int64), np.zeros(S_ROWS, np.int64)
        self._out = np.empty(1 << 12, np.uint8)
        self._forget(None)

    def pass_on(self, structure: bytes, document: bytes) -> bytes | None:
        """The annotation for the next link, sent after `left`; None if it must be made from the elements."""
        message = self.decoder.taken_in(structure, document)
        return None if isinstance(message, Refused) else self.pass_on_taken(structure, document, message)

    def pass_on_taken(self, structure: bytes, document: bytes, message: Taken) -> bytes | None:
        """As `pass_on`, for a checked annotation."""
        needs, wanted = self.decoder.needs, self.coder.needs
        if message.learnt is None or (wanted and wanted.version != needs.version):
            return None
        if message.learnt is not self._learnt or self.coder.sent is not self._sent:
            self._forget(message.learnt)
        if not self._numbered(message.learnt, message.message, np.frombuffer(structure, np.uint8)):
            return None
        body = self._out[: self._counts[C_ENTRIES]].tobytes()
        if not wanted:
            return self.coder.message(body, len(document), message.message.elements, 0, 0)
        values = structure[int(self._state[AT]) :]
        counts = message.message.elements, message.attributes, message.texts
        return self.coder.message(body + values, len(document), *counts)

    def _numbered(self, learnt: ReceivedPaths, message: Message, data: UInt8s) -> bool:
        """Write the elements with the next link's numbers; False if a label path has none."""
        self._make_room(learnt, message.elements)
        while True:
            why = relay_elements(
                data,
                message,
                learnt.parent,
                learnt.depth,
                self._relayed,
                self._stack,
                self._missing,
                self._out,
                self._counts,
                self._state,
            )
            if why:
                return False
            if not self._counts[C_MISSING]:
                return True
            try:
                for path in self._missing[: self._counts[C_MISSING]].tolist():
                    self._number(learnt, path)
            except LimitError:
                return False

    def _number(self, learnt: ReceivedPaths, path: int) -> int:
        """The number of a label path on the next link."""
        waiting = [path]
        while (above := int(learnt.parent[waiting[-1]])) >= 0 and self._relayed.numbers[above] == UNKNOWN:
            waiting.append(above)
        for each in reversed(waiting):
            above = int(learnt.parent[each])
            parent = -1 if above < 0 else int(self._relayed.numbers[above])
            self._relayed.numbers[each] = self._sent.child(parent, learnt.names[int(learnt.name[each])])
        return int(self._relayed.numbers[path])

    def _forget(self, learnt: ReceivedPaths | None) -> None:
        self._learnt, self._sent = learnt, self.coder.sent
        self._relayed = Relayed(np.zeros(0, np.int32), np.zeros(0, np.int64))
        self._stack, self._missing = np.zeros(64, np.int32), np.zeros(0, np.int32)

    def _make_room(self, learnt: ReceivedPaths, elements: int) -> None:
        numbers, stamps = self._relayed
        if len(numbers) < (known := len(learnt.parent)):
            self._relayed = Relayed(grown(numbers, known, UNKNOWN), grown(stamps, known))
        if len(self._missing) < elements:
            self._missing = np.zeros(2 * elements, np.int32)
        if len(self._out) < 5 * elements:
            self._out = np.empty(10 * elements, np.uint8)
        if len(self._stack) < learnt.deepest + 2:
            self._stack = np.zeros(2 * learnt.deepest + 2, np.int32)
