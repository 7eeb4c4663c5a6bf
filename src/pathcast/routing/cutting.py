"""Documents cut short: what a router has read of one when it forwards it early.

    <a><b>x</b><c><d/></c></a>   after 3 start tags:   <a><b>x</b><c></c></a>

The cut is just before the next start tag; elements that are open there are closed. The result is well-formed, has the
same namespaces and is read as the whole would be, up to there.

Cost: the depth of the document. Where bytes are no superset of ASCII (UTF-16), the whole document stands for its part.
"""

import re

from ..documents import Document

_NAME = re.compile(rb"<([^\s/>]+)")
_ASCII = frozenset({"utf-8", "us-ascii", "ascii", "iso-8859-1", "latin-1", "windows-1252"})


def cut(document: Document, place: int) -> bytes:
    """The document up to its start tag number `place` (from 1), closed."""
    data = document.data
    encoding = document.batch.encodings.get(document.index, "utf-8")
    if place >= len(document) or encoding.lower() not in _ASCII:
        return data
    batch, first = document.batch, document.first
    begin = int(batch.position[first + place])
    closing = []
    element = document.parent(place)
    while element >= 0:
        found = _NAME.match(data, int(batch.position[first + element]))
        if found is None:
            return data
        closing.append(b"</" + found[1] + b">")
        element = document.parent(element)
    return data[:begin] + b"".join(closing)
