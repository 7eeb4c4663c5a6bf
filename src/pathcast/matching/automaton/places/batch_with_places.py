"""A batch with other attributes than another, in buffers that stay: it costs next to nothing to make.

Invariant: valid until the buffers are written again, or the given batch ends.
"""

from collections.abc import Sequence
from typing import Any

from pathcast.documents import BatchMaxima, DocumentBatch, Names
from pathcast.documents.document_batch_layout_kernels import Attributes, Content, Values
from pathcast.kernels import Int32s, Int64s

from .element_place_kernels import AttributeRoom


class BatchWithPlaces(DocumentBatch):
    """A batch with other attributes; whatever else is asked of it is asked of the given batch."""

    __slots__ = ("_given", "_more_names", "_room", "_written")

    _given: DocumentBatch
    _more_names: list[str]
    _room: AttributeRoom
    _written: int

    def __init__(self, given: DocumentBatch, more_names: list[str], room: AttributeRoom, content: Content) -> None:
        """`more_names` follow the names of the given batch."""
        attributes = Attributes(room.begins, room.names, room.starts, room.lengths)
        write = object.__setattr__  # the class is frozen
        write(self, "_given", given)
        write(self, "_more_names", more_names)
        write(self, "_room", room)
        write(self, "_written", room.begins.item(given.element_count))
        write(self, "_elements", given.elements)
        write(self, "_values", Values(attributes, given.values.texts, content))
        write(self, "arena", content.arena)
        write(self, "offsets", given.offsets)

    def __getattr__(self, name: str) -> Any:
        """A field that was not set: that of the given batch."""
        return getattr(self._given, name)

    @property
    def attribute_begin(self) -> Int32s:
        return self._room.begins[: self._given.element_count + 1]

    @property
    def attribute_name(self) -> Int32s:
        return self._room.names[: self._written]

    @property
    def attribute_start(self) -> Int64s:
        return self._room.starts[: self._written]

    @property
    def attribute_length(self) -> Int32s:
        return self._room.lengths[: self._written]

    @property
    def element_count(self) -> int:
        return self._given.element_count

    @property
    def name_count(self) -> int:
        return self._given.name_count + len(self._more_names)

    @property
    def own_names(self) -> Sequence[str]:
        return [*self._given.own_names, *self._more_names]

    def largest(self) -> BatchMaxima:
        if len(self) == 1:
            return self._given.largest()._replace(attributes=self._written)
        return DocumentBatch.largest(self)

    def translation(self, names: Names, *, add: bool = False) -> Int32s:
        if not self._more_names:
            return self._given.translation(names, add=add)
        return DocumentBatch.translation(self, names, add=add)
