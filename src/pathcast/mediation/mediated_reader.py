"""Reading documents that travel with their mapping, or with a reference to one, as documents of the global schema.

For whoever works on element arrays, such as a router: what it gets is a batch like any other, rewritten; what it passes
on is the message as it came.

Invariant: a message that names a mapping that is not held, or another one than is held under that name and version, is
a `MappingError`; never is a document read by a mapping that it was not written for.
Cost: reading and rewriting; tables are made once for each mapping, and kept for so many.
"""

from typing import TYPE_CHECKING, NamedTuple

from pathcast.documents import DocumentBatch, Entities, Limits, Names, Reader
from pathcast.errors import MappingError

from .mappings.mapping_messages import Envelope, unpack
from .mappings.schema_mapping import Mapping
from .rewriting.event_rewriter import EventRewriter

if TYPE_CHECKING:
    from .mediator import Mediator

_KEPT = 256


class _Tables(NamedTuple):
    reader: Reader
    rewriter: EventRewriter


class MediatedReader:
    """Reads messages; `mediator` has the mappings that references are about, if there are any."""

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
            raise MappingError(f"the document needs the mapping of schema '{envelope.name}', but there is no mediator")
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
