"""Properties of a batch as a whole."""

from itertools import chain, combinations

from pathcast.documents import Document, read_batch
from pathcast.documents.document_batch import BatchMaxima

DOCUMENTS = [
    b"<a><b/><b/><c/></a>",
    b"<a x='1' y='2' z='3'/>",
    b"<a>one<b>two</b>three<b>four</b></a>",
    b"<!-- long, and nothing in it -->" + 100 * b" " + b"<a/>",
    b"<broken",
]


def counted(document: Document) -> BatchMaxima:
    elements = range(len(document))
    attributes = sum(len(document.attributes(element)) for element in elements)
    texts = sum(len(document.text_nodes(element)) for element in elements)
    return BatchMaxima(len(document), attributes, texts, len(document.data))


def test_the_largest_document_is_found_for_each_kind() -> None:
    assert counted(read_batch(DOCUMENTS[2:3])[0]) == (3, 0, 4, 36)
    for chosen in chain.from_iterable(combinations(DOCUMENTS, count) for count in range(6)):
        batch = read_batch(chosen, errors="return")
        assert batch.largest() == tuple(
            max((counted(document)[kind] for document in batch), default=0) for kind in range(4)
        )
