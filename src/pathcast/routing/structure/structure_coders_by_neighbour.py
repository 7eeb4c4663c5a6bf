"""A router's ends of its links, for structure annotations (`structure_encoder.py`).

A coder per neighbour that documents go to, with the needs that the neighbour advertised; a decoder per neighbour that
documents come from, with the needs that were advertised to it. When needs change, an end starts again.

Invariant: a decoded annotation has all values that the router's own table needs; otherwise it is rejected. Soft state:
`forget` only costs some parsing.
"""

from collections.abc import Iterable
from typing import NamedTuple

from pathcast.documents import Document, DocumentBatch, Limits
from pathcast.matching import Engine, Entries
from pathcast.matching.table import PatternTable

from ..table.needed_document_values import Needs, TableNeeds
from .structure_decoder import Taken
from .structure_encoder import Refused, StructureCoder, StructureDecoder
from .structure_matcher import StructureMatcher
from .structure_relay import StructureRelay


class ReceivedStructure(NamedTuple):
    """A checked annotation, with its document."""

    sender: str
    decoder: StructureDecoder
    structure: bytes
    document: bytes
    message: Taken


class Structures:
    """The ends of one router's links."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._coders: dict[str, StructureCoder] = {}
        self._decoders: dict[str, tuple[PatternTable, StructureDecoder]] = {}
        self._matchers: dict[str, StructureMatcher] = {}
        self._relays: dict[tuple[str, str], StructureRelay] = {}
        self._own: TableNeeds | None = None
        self._within: Needs | None = None  # the last own needs that lay within the advertised needs
        self._told: Needs | None = None

    def needs(self, table: PatternTable, others: Iterable[Needs]) -> Needs:
        """The needs of the router: those of its own patterns and of its neighbours (`others`)."""
        needs = self._own_needs(table)
        for other in others:
            needs |= other
        return needs

    def encode(self, neighbour: str, needs: Needs, document: Document) -> bytes | None:
        """The annotation of a copy for a neighbour with these needs; it counts as sent after `left`."""
        return self._coder(neighbour, needs).encode(document, leaves=False)

    def left(self, neighbour: str) -> None:
        """Record that the last copy for a neighbour has left."""
        self._coders[neighbour].left()

    def take_in(
        self, sender: str, needs: Needs, table: PatternTable, structure: bytes, data: bytes
    ) -> "ReceivedStructure | Refused":
        """Check the annotation of a document; `needs` were advertised to the sender."""
        decoder = self._decoder(sender, needs, table)
        if isinstance(decoder, Refused):
            return decoder
        message = decoder.taken_in(structure, data)
        return message if isinstance(message, Refused) else ReceivedStructure(sender, decoder, structure, data, message)

    @staticmethod
    def decode(came: "ReceivedStructure") -> DocumentBatch | Refused:
        """The element arrays of a document from its annotation."""
        return came.decoder.batch_of(came.structure, came.document, came.message)

    def match(self, came: "ReceivedStructure", engine: Engine) -> Entries | Refused:
        """The entries that a document with an annotation matches, for engines that `StructureMatcher` supports."""
        matcher = self._matchers.get(came.sender)
        if matcher is None or matcher.decoder is not came.decoder or matcher.engine is not engine:
            matcher = self._matchers[came.sender] = StructureMatcher(came.decoder, engine)
        return matcher.match_taken(came.structure, came.document, came.message)

    def pass_on(self, came: "ReceivedStructure", neighbour: str, needs: Needs) -> bytes | None:
        """The annotation for a neighbour with these needs, from the incoming one; None if elements are needed."""
        coder = self._coder(neighbour, needs)
        relay = self._relays.get((came.sender, neighbour))
        if relay is None or relay.decoder is not came.decoder or relay.coder is not coder:
            relay = self._relays[came.sender, neighbour] = StructureRelay(came.decoder, coder)
        return relay.pass_on_taken(came.structure, came.document, came.message)

    def _decoder(self, sender: str, needs: Needs, table: PatternTable) -> StructureDecoder | Refused:
        own = self._own_needs(table)
        if self._within is not own or self._told is not needs:
            if (own | needs) != needs:
                reason = "the structure annotation cannot be used: it lacks values that current subscriptions need"
                return Refused(f"{reason}; the document must be parsed")
            self._within, self._told = own, needs
        of_table, decoder = self._decoders.get(sender, (None, None))
        if decoder is None or of_table is not table or (decoder.needs is not needs and decoder.needs != needs):
            decoder = StructureDecoder(needs, table.names, self.limits)
            self._decoders[sender] = (table, decoder)
        return decoder

    def hear(self, neighbour: str, signal: bytes) -> None:
        """Process the signal of a neighbour that rejected an annotation."""
        if neighbour in self._coders:
            self._coders[neighbour].hear(signal)

    def forget(self) -> None:
        """Lose all state, as after a restart of the router."""
        for ends in (self._coders, self._decoders, self._matchers, self._relays):
            ends.clear()

    def _coder(self, neighbour: str, needs: Needs) -> StructureCoder:
        coder = self._coders.get(neighbour)
        if coder is None or (coder.needs is not needs and coder.needs != needs):
            coder = self._coders[neighbour] = StructureCoder(needs)
        return coder

    def _own_needs(self, table: PatternTable) -> Needs:
        if self._own is None or self._own.table is not table:
            self._own = TableNeeds(table)
        return self._own.current()
