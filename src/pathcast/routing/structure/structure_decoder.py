"""The receiving end of structure annotations: bytes to element arrays, or a rejection. See structure_encoder.py.

Every count in a message is checked against the lengths of the message and the document before anything is allocated, so
that the cost of a message is bounded by its bytes; and every number is checked before use
(`pathcast.documents.structure`).

Invariant: a rejected message changes nothing except, perhaps, the dictionary, and that only to definitions that its
digest confirms.
"""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np

from pathcast.documents import DocumentBatch, Limits, Names
from pathcast.documents.structure import R_ROWS, Decoding, PathTable, batch_of, reason
from pathcast.errors import MessageError
from pathcast.kernels import Int64s

from ..table.needed_document_values import Needs
from .link_path_dictionary import NAMES, PATHS, ReceivedPaths, UndefinedError
from .structure_annotation_frame import Header, Refused, read_header
from .structure_matcher_kernels import Message

# The least number of bytes of an element in its document (`<a/>`), and of an attribute or text in its message.
_ELEMENT_BYTES, _VALUE_BYTES = 4, 3


class Taken(NamedTuple):
    """A message whose label paths are known, and its numbers of attributes and texts."""

    learnt: ReceivedPaths | None
    message: Message
    attributes: int
    texts: int


_NOTHING = Taken(None, Message(0, 0, 0, 0), 0, 0)


class StructureDecoder:
    """The receiving end of a link: annotations to element arrays.

    `needs` are the receiver's own; `names` is the table of names for batches (that of the engine's patterns).
    """

    def __init__(
        self, needs: Needs, names: Names, limits: Limits | None = None, *, paths: int = PATHS, most_names: int = NAMES
    ) -> None:
        self.needs = needs
        self.limits = Limits.given(limits)
        self._paths, self._most_names = paths, most_names
        self._learnt: ReceivedPaths | None = None
        self._naming = _Naming(names, needs)
        self._decoding = Decoding(positions=False)

    def forget(self) -> None:
        """Lose the dictionary, as after a restart of the router."""
        self._learnt = None

    @property
    def known(self) -> int:
        """The number of label paths in the dictionary."""
        return 0 if self._learnt is None else len(self._learnt)

    def decode(self, structure: bytes, document: bytes) -> DocumentBatch | Refused:
        """The element arrays of a document from its annotation, or the reason why the document must be parsed."""
        message = self.taken_in(structure, document)
        return message if isinstance(message, Refused) else self.batch_of(structure, document, message)

    def batch_of(self, structure: bytes, document: bytes, message: Taken) -> DocumentBatch | Refused:
        """The element arrays of a document whose annotation was checked by `taken_in`."""
        batch, why = self._batch([structure], [document], [message])
        return self.refused(int(why[0])) if why[0] else batch

    def decode_many(
        self, structures: Sequence[bytes], documents: Sequence[bytes]
    ) -> tuple[DocumentBatch, dict[int, Refused]]:
        """Several documents as one batch, and those that must be parsed: these have an error and no elements."""
        refused: dict[int, Refused] = {}
        messages: list[Taken] = []
        for number, (structure, document) in enumerate(zip(structures, documents, strict=True)):
            message = self.taken_in(structure, document)
            if isinstance(message, Refused):
                refused[number], message = message, _NOTHING
            messages.append(message)
        batch, why = self._batch(structures, documents, messages)
        if why.any():
            for number in np.flatnonzero(why).tolist():
                refused[number], messages[number] = self.refused(int(why[number])), _NOTHING
            batch, _ = self._batch(structures, documents, messages)
        for number, refusal in refused.items():
            batch.errors[number] = MessageError(refusal.reason)
        return batch, refused

    # Messages.

    def refused(self, why: int) -> Refused:
        """The rejection of a message that a kernel could not read."""
        return self._refused(reason(why))

    def _refused(self, why: str, *, resend: bool = False) -> Refused:
        epoch, known = (0, 0) if self._learnt is None else (self._learnt.epoch, len(self._learnt))
        return Refused(
            f"the structure annotation cannot be used: {why}; the document must be parsed", epoch, known, resend
        )

    def taken_in(self, structure: bytes, document: bytes) -> Taken | Refused:
        """Check a message and store its definitions."""
        header = read_header(structure)
        if isinstance(header, str):
            return self._refused(header)
        if header.needs != self.needs.version:
            return self._refused("it was made for another version of this router's subscriptions")
        if header.length != len(document):
            return self._refused(
                f"it was made for a document of {header.length:,} bytes, but this document has {len(document):,}"
            )
        left = len(structure) - header.body
        least = header.elements + _VALUE_BYTES * (header.attributes + header.texts)
        if least > left or _ELEMENT_BYTES * header.elements > header.length or not header.elements:
            return self._refused("the counts of elements and values do not fit the length")
        learnt = self._learnt_for(header, structure)
        if isinstance(learnt, Refused):
            return learnt
        message = Message(header.body, len(structure), header.elements, header.first + header.defined)
        return Taken(learnt, message, header.attributes, header.texts)

    def _learnt_for(self, header: Header, structure: bytes) -> ReceivedPaths | Refused:
        """The dictionary that a message refers to, with the message's definitions."""
        learnt = self._learnt
        if learnt is None or learnt.epoch != header.epoch:
            learnt = None
            if header.first:
                reason = "the structure annotation cannot be used: this router has not received its label paths"
                return Refused(f"{reason}; the document must be parsed", header.epoch, 0, resend=True)
        elif header.first > len(learnt):
            return self._refused("an earlier message with label paths is missing", resend=True)
        # A message that defines from the first path on may begin a new dictionary, even with the epoch of an old one.
        fresh = [] if header.first else [ReceivedPaths(header.epoch, self._paths, self._most_names, self.limits.depth)]
        why = ""
        for each in [learnt, *fresh] if learnt is not None else fresh:
            try:
                each.learn(structure, header.definitions, header.body, header.first, header.defined, header.digest)
            except UndefinedError as error:
                why = str(error)
            else:
                self._learnt = each
                return each
        if learnt is not None:
            self._learnt = None
        return Refused(
            f"the structure annotation cannot be used: {why}; the document must be parsed", header.epoch, 0, resend=True
        )

    # Batches.

    def _batch(
        self, structures: Sequence[bytes], documents: Sequence[bytes], messages: list[Taken]
    ) -> tuple[DocumentBatch, Int64s]:
        """The messages as one batch, and the reasons for unreadable ones; the batch is valid only if there are none."""
        known, own_names = self._naming.current([taken.learnt for taken in messages if taken.learnt is not None])
        attribute_ids = self._naming.attribute_ids
        rows, data_offsets, counts = _rows(structures, documents, messages, len(attribute_ids))
        structure = np.frombuffer(structures[0] if len(structures) == 1 else b"".join(structures), np.uint8)
        data = np.frombuffer(documents[0] if len(documents) == 1 else b"".join(documents), np.uint8)
        decoded = self._decoding.arrays(*counts)
        why = np.zeros(len(messages), np.int64)
        for learnt, some in _runs(messages):
            if learnt is not None:
                paths = self._naming.paths(learnt)
                self._decoding.decode(structure, rows, some, paths, learnt.deepest, attribute_ids, decoded, why)
        names = self._naming.names, known, own_names
        return batch_of(decoded, rows, (data, data_offsets), structure, names, {}), why


class _Naming:
    """The ids of names in batches: those of a table, and after them the names that it lacks."""

    def __init__(self, names: Names, needs: Needs) -> None:
        self.names = names
        self._needs = needs
        self._known = -1
        self._own: dict[str, int] = {}
        self._listed: list[str] = []
        self._paths: dict[ReceivedPaths, PathTable] = {}
        self.attribute_ids = np.zeros(0, np.int32)

    def current(self, learnts: Iterable[ReceivedPaths]) -> tuple[int, list[str]]:
        """The number of names of the table in use, and the other names; these determine the ids of dictionary names."""
        wanted = dict.fromkeys(learnts)
        if self._known != len(self.names) or len(self._own) > NAMES:
            self._known, self._own, self._listed, self._paths = len(self.names), {}, [], {}
            self.attribute_ids = np.array([self._id(name) for name in self._needs.attribute_names], np.int32)
        elif len(self._paths) > len(wanted) + 1:
            self._paths = {learnt: paths for learnt, paths in self._paths.items() if learnt in wanted}
        for learnt in wanted:
            paths = self._paths.get(learnt)
            if paths is None or len(paths.names) < len(learnt):
                of_name = np.array([self._id(name) for name in learnt.names], np.int32)
                self._paths[learnt] = PathTable(learnt.parent, of_name[learnt.name[: len(learnt)]], learnt.depth)
        if len(self._listed) < len(self._own):
            self._listed = list(self._own)
        return self._known, self._listed

    def paths(self, learnt: ReceivedPaths) -> PathTable:
        """The label paths of a dictionary, with the ids of their last names."""
        return self._paths[learnt]

    def _id(self, name: str) -> int:
        found = self.names.get(name)
        if found is not None and found < self._known:
            return found
        return self._known + self._own.setdefault(name, len(self._own))


def _runs(messages: list[Taken]) -> list[tuple[ReceivedPaths | None, range]]:
    """Runs of consecutive messages with the same dictionary."""
    if len(messages) == 1:
        return [(messages[0].learnt, range(1))]
    runs, first = [], 0
    for learnt, run in groupby(messages, key=lambda message: message.learnt):
        some = range(first, first + sum(1 for _ in run))
        runs.append((learnt, some))
        first = some.stop
    return runs


def _rows(
    structures: Sequence[bytes], documents: Sequence[bytes], messages: list[Taken], names: int
) -> tuple[Int64s, Int64s, tuple[int, int, int]]:
    """The decoder's input per message, the offsets of documents; total elements, attributes and texts."""
    rows: list[int] = []
    places = [0]
    at = elements = attributes = texts = 0
    for structure, document, taken in zip(structures, documents, messages, strict=True):
        end = at + len(structure)
        message = taken.message
        begin, paths = at + message.begin, message.known
        rows += begin, end, places[-1], len(document), 0, paths, 0, names, elements, attributes, texts
        at = end
        places.append(places[-1] + len(document))
        elements += message.elements
        attributes += taken.attributes
        texts += taken.texts
    rows += at, at, places[-1], 0, 0, 0, 0, 0, elements, attributes, texts
    return np.array(rows, np.int64).reshape(-1, R_ROWS), np.array(places, np.int64), (elements, attributes, texts)
