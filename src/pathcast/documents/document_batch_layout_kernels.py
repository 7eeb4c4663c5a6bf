"""The arrays of a document batch, as kernels read them; `document_batch.py` explains them.

A document's elements are `offsets[i] : offsets[i + 1]`. An element's attributes are `begins[e] : begins[e + 1]` of
`Attributes`, the text nodes inside it `begins[e] : ends[e]` of `Texts`. A value is a start and a length: it lies in
the content's `data`, or, if its start is below 0, in its `arena` from `-1 - start` on.
"""

from typing import NamedTuple

from pathcast.kernels import Int32s, Int64s, UInt8s


class Elements(NamedTuple):
    """The elements of a batch, in document order."""

    offsets: Int64s
    names: Int32s
    parents: Int32s
    depths: Int32s
    ends: Int32s


class Attributes(NamedTuple):
    """The attributes of a batch, in document order, and where those of each element begin."""

    begins: Int32s
    names: Int32s
    starts: Int64s
    lengths: Int32s


class Texts(NamedTuple):
    """The text nodes of a batch, in document order, and where those inside each element begin and end."""

    begins: Int32s
    ends: Int32s
    parents: Int32s
    starts: Int64s
    lengths: Int32s


class Content(NamedTuple):
    """The bytes that values lie in."""

    data: UInt8s
    arena: UInt8s


class Values(NamedTuple):
    """All values of a batch."""

    attributes: Attributes
    texts: Texts
    content: Content
