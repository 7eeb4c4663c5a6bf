"""Decoding structures into one batch, whether their label paths come from a link's dictionary or from themselves.

`rows` has, per structure, the places of its bytes, its document and its part of the arrays (`R_…` in
`element_decoder_kernels.py`).

Invariant: a structure that is rejected has a reason in `why`; the batch must then be decoded again without it.
"""

from collections.abc import Sequence

import numpy as np

from pathcast.errors import PathcastError
from pathcast.kernels import Int32s, Int64s

from ..document_batch import Bytes, DocumentBatch
from ..expanded_name_table import Names
from . import element_decoder_kernels as kernels
from . import header_and_dictionary_decoder_kernels as header
from .varint_kernels import S_ROWS

_REASONS = {
    header.CUT: "truncated",
    header.NO_PATH: "an element has an undefined label path",
    header.NO_PARENT: "an element, attribute, text or label path has no parent",
    header.NO_PLACE: "a value is outside the document",
    header.NO_NAME: "an attribute or label path has no name",
    header.REST: "bytes follow the end",
    header.TOO_DEEP: "elements are nested too deeply",
    header.OTHER_FORM: "unknown format",
    header.OTHER_DOCUMENT: "its length differs from the document's",
    header.EXCESS: "it has more names than its header states",
}
_SMALLEST_STACK = 64


def reason(why: int) -> str:
    """Why a kernel rejected a structure, in words."""
    return _REASONS[why]


class Decoding:
    """Decodes structures; keeps its scratch arrays from one batch to the next."""

    def __init__(self, *, positions: bool) -> None:
        self.positions = positions
        self.state = np.zeros(S_ROWS, np.int64)
        self._scratch = kernels.Scratch(np.zeros((2, _SMALLEST_STACK), np.int32), self.state)

    @staticmethod
    def arrays(elements: int, attributes: int, texts: int) -> kernels.Decoded:
        """Arrays for a batch, to be filled."""
        table = np.empty((kernels.E_ROWS, elements), np.int32)
        begins = np.empty(elements + 1, np.int32)
        begins[elements] = attributes
        return kernels.Decoded(
            table,
            begins,
            np.empty((kernels.V_ROWS, attributes), np.int32),
            np.empty(attributes, np.int64),
            np.empty((kernels.V_ROWS, texts), np.int32),
            np.empty(texts, np.int64),
        )

    def decode(
        self,
        structures: Bytes,
        rows: Int64s,
        some: range,
        paths: kernels.PathTable,
        deepest: int,
        attribute_names: Int32s,
        decoded: kernels.Decoded,
        why: Int64s,
    ) -> int:
        """Decode some structures, whose label paths have at most `deepest` names; return how many were rejected."""
        if self._scratch.stack.shape[1] < deepest + 2:
            self._scratch = self._scratch._replace(stack=np.zeros((2, 2 * deepest + 2), np.int32))
        return kernels.decode_structures(
            structures,
            rows,
            some.start,
            some.stop,
            paths,
            attribute_names,
            self.positions,
            decoded,
            self._scratch,
            why,
        )


def batch_of(
    decoded: kernels.Decoded,
    rows: Int64s,
    documents: tuple[Bytes, Int64s],
    structures: Bytes,
    names: tuple[Names, int, Sequence[str]],
    errors: dict[int, PathcastError],
) -> DocumentBatch:
    """The batch of decoded structures; `documents` are bytes and edges, `names` known ones and the batch's own."""
    data, data_offsets = documents
    known, known_count, own_names = names
    name, parent, depth, end, position, text_begin, text_end = decoded.elements
    attribute_name, attribute_length = decoded.attributes
    text_parent, text_length = decoded.texts
    return DocumentBatch(
        data,
        data_offsets,
        np.ascontiguousarray(rows[:, header.R_ELEMENTS]),
        name,
        parent,
        depth,
        end,
        position,
        decoded.attribute_begins,
        attribute_name,
        decoded.attribute_starts,
        attribute_length,
        text_begin,
        text_end,
        text_parent,
        decoded.text_starts,
        text_length,
        structures,
        known,
        known_count,
        own_names,
        {},
        errors,
    )
