"""Structure annotations, for documents that have one."""

from pathcast.documents import Document, DocumentBatch
from pathcast.routing.structure.structure_encoder import StructureCoder, StructureDecoder


def annotation(coder: StructureCoder, document: Document) -> bytes:
    """The annotation of a document that can be annotated."""
    found = coder.encode(document)
    assert found is not None
    return found


def arrival(decoder: StructureDecoder, message: bytes, data: bytes) -> DocumentBatch:
    """The batch from an annotation that must not be rejected."""
    found = decoder.decode(message, data)
    assert isinstance(found, DocumentBatch), found
    return found
