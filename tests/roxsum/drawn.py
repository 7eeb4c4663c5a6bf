"""Documents for these tests: any readable ones, in any spelling; and a plain model of a summary."""

from collections import defaultdict
from random import Random

from hypothesis import settings
from hypothesis import strategies as st

from pathcast.documents import read_batch
from tests.generators import random_document

ODD = (
    b'<a x="1">\n  <b>hi</b></a>',
    b"<?xml version='1.0' standalone='yes' ?>\n<!-- c --><a  y = 'q' x=\"2\"\n>t <b>z</b> tail&amp; </a>\n",
    b"<a>s<![CDATA[x<y]]><?pi  data?>t<!-- c -->u</a>",
    b'<n:a xmlns:n="u" n:x="1"><b xmlns="v"/><n:b xmlns:n="w" x=""/></n:a>',
    '<?xml version="1.0" encoding="ISO-8859-1"?><a>é</a>'.encode("latin-1"),
    '<?xml version="1.0" encoding="ISO-8859-1"?><a>é</a>',
    "<?xml version='1.0'?><a>é</a>".encode("utf-16"),
    b"<a/>",
    b"<a><b></b><b/><b >x</b ></a  ><!-- end --><?done?>",
    b'<!DOCTYPE a SYSTEM "x>y"><a/>',
    b"\xef\xbb\xbf<a> x </a>",
    b"<a>]] &gt; &#65; <b>\r\n</b>\r</a>",
    b"<a><!----><![CDATA[]]><?p?>" + b" " * 5000 + b"</a>",
)
"""Spellings that a careless writer would lose."""


def document_of(seed: int) -> bytes:
    """A random document that can be read without expanding entities."""
    random = Random(seed)
    while True:
        document = random_document(random, size=12)
        if not document.prolog:
            return document.data


often = settings(deadline=None, max_examples=60)
documents = st.one_of(st.integers(0, 400).map(document_of), st.sampled_from(ODD))
collections = st.lists(documents, max_size=12)


def data_of(document: bytes | str) -> bytes:
    return document.encode() if isinstance(document, str) else document


def summary_of(documents: dict[int, bytes | str]) -> dict[tuple[str, ...], list[int]]:
    """The definition: a node for every label path, its documents those with an element there that has no children."""
    found: dict[tuple[str, ...], set[int]] = defaultdict(set)
    for number, data in documents.items():
        document = read_batch([data])[0]
        for element in range(len(document)):
            path = tuple(document.name(step) for step in _ancestors(document, element))
            ends = document.end(element) == element + 1
            found[path] |= {number} if ends else set()
    return {path: sorted(ids) for path, ids in found.items()}


def _ancestors(document, element):
    steps = []
    while element >= 0:
        steps.append(element)
        element = document.parent(element)
    return reversed(steps)
