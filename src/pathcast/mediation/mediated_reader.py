"""Reads documents with a mapping, or with a reference to one, as documents of the global schema.

For code that works on element arrays, such as a router: it receives a rewritten batch like any other, and forwards the
original message.

Invariant: a message that names an unknown mapping, or a mapping that differs from the stored one of that name and
version, is a `MappingError`; a document is never read by a mapping that it was not written for.
Cost: reading and rewriting; tables are made once per mapping, and cached for a limited number of mappings.
"""

from typing import TYPE_CHECKING, NamedTuple

from pathcast.documents import DocumentBatch, Entities, Limits, Names, Reader
from pathcast.errors import MappingError

from .mappings.document_with_mapping_message import Envelope, unpack
from .mappings.schema_mapping import Mapping
from .rewriting.element_array_rewriter import EventRewriter

if TYPE_CHECKING:
    from .mediator import Mediator

_KEPT = 256


class _Tables(NamedTuple):
    reader: Reader
    rewriter: EventRewriter


class MediatedReader:
    """Reads messages; `mediator` has the mappings that references name, if there are any."""

    def __init__(
        self, mediator: "Mediator | None" = None, limits: Limits | None = None, entities: Entities = "refuse"
    ) -> None:
        self.mediator = mediator
        self.limits, self.entities = Limits.given(limits), entities
        self._known: dict[bytes, _Tables] = {}

    def read(self, message: bytes, *, text: bool = False) -> DocumentBatch:
        """The document of a message in the global schema, as a batch of one; `text`: UTF-8 whatever it declares."""
        envelope = unpack(message)
        tables = self._tables(self._mapping(envelope))
        batch = tables.reader.scanner.read([envelope.document], encodings={0: "utf-8"} if text else {})
        return tables.rewriter.rewrite(batch).batch

    def _mapping(self, envelope: Envelope) -> Mapping:
        if envelope.mapping is not None:
            return envelope.mapping
        if self.mediator is None:
            raise MappingError(
                f"the document needs the mapping of schema '{envelope.name}', version {envelope.version}; pass a "
                "mediator that has this mapping as mediator=…"
            )
        held = self.mediator.mapping(envelope.name, envelope.version)
        envelope.check(held)
        return held

    def _tables(self, mapping: Mapping) -> _Tables:
        key = mapping.fingerprint
        found = self._known.pop(key, None)
        if found is None:
            names = Names()
            found = _Tables(Reader(names, self.limits, self.entities), EventRewriter(mapping.plan, names))
        self._known[key] = found
        while len(self._known) > _KEPT:
            del self._known[next(iter(self._known))]
        return found
