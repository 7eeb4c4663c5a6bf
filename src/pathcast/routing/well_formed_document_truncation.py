"""Truncated documents: the part that a router has read when it forwards a document early.

    <a><b>x</b><c><d/></c></a>   after 3 start tags:   <a><b>x</b><c></c></a>

The cut is just before the next start tag; open elements are closed there. The result is well-formed, has the same
namespaces and is read as the whole document would be, up to the cut.

Cost: the depth of the document. A document that cannot be encoded again in its own encoding is not cut: the whole
document is used.
"""

import re

from pathcast.documents import Document

_NAME = re.compile(rb"<([^\s/>]+)")


def cut(document: Document, place: int) -> bytes:
    """The document up to its start tag number `place` (from 1), closed."""
    if place >= len(document):
        return document.data
    data, encoding = document.utf8, document.batch.encodings.get(document.index)
    batch, first = document.batch, document.first
    begin = int(batch.position[first + place])
    closing = []
    element = document.parent(place)
    while element >= 0:
        found = _NAME.match(data, int(batch.position[first + element]))
        if found is None:
            return document.data
        closing.append(b"</" + found[1] + b">")
        element = document.parent(element)
    part = data[:begin] + b"".join(closing)
    try:
        return part if encoding is None else part.decode().encode(encoding)
    except UnicodeEncodeError:
        return document.data
