"""The position of a document's first match, set by an element that every subscription requires.

§6.1 of papers/000: a unique element `<test>` is inserted into each document, and a predicate that requires it is added
to each subscription, so that nothing can match before `<test>` has been read. Its place is a fraction f of the
document: before the start tag that follows a share f of the others, or, for f = 1, at the end of the root element.

Also the documents of that evaluation: of about a given size, or one large document.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from pathcast.documents import read_batch
from pathcast.documents.schema.document_schema import Schema
from pathcast.workloads import DocumentOptions
from pathcast.workloads.document_generator import generate_documents
from pathcast.workloads.value_pools import TextStyle

MARK = "test"
_FIRST_STEP = re.compile(r"/[^/\[]+")


def steered_documents(documents: Iterable[bytes], fraction: float) -> Iterator[bytes]:
    """The documents, each with a `<test/>` after this fraction of its start tags."""
    if not 0.0 <= fraction <= 1.0:
        raise ValueError(f"fraction must be from 0 to 1, got {fraction}")
    for document in documents:
        batch = read_batch([document])
        elements = len(batch.name)
        before = max(1, round(fraction * elements))
        if before < elements:
            place = int(batch.position[before])
            yield b"%b<%b/>%b" % (document[:place], MARK.encode(), document[place:])
        else:
            yield _appended(document, f"<{MARK}/>".encode())


def steered_subscriptions(subscriptions: Iterable[str]) -> Iterator[str]:
    """The subscriptions, each with the predicate on the root element: `/a[.//test]/b`, `/*[.//test]//b`.

    Aggregation generalises patterns from their ends, so it keeps a predicate on the root, and the first match stays at
    `<test>`; a stream knows that the predicate holds as soon as it has read `<test>`.
    """
    return map(_steered, subscriptions)


def _steered(subscription: str) -> str:
    absolute = subscription if subscription.startswith("/") else f"//{subscription}"
    if absolute.startswith("//"):
        return f"/*[.//{MARK}]{absolute}"
    first = _FIRST_STEP.match(absolute)
    assert first is not None
    return f"{first[0]}[.//{MARK}]{absolute[first.end() :]}"


def documents_of_size(
    schema: Schema,
    count: int,
    elements: int,
    *,
    seed: int = 0,
    text: TextStyle = "words",
    max_levels: int = 6,
    max_repeats: int = 3,
    tries: int = 30,
) -> list[bytes]:
    """Documents of about this many elements: the nearest of `tries` times as many generated ones."""
    drawn = list(
        generate_documents(
            schema, tries * count, DocumentOptions(max_levels=max_levels, max_repeats=max_repeats), seed=seed, text=text
        )
    )
    sizes = np.diff(read_batch(drawn).offsets)
    nearest = np.argsort(np.abs(sizes - elements), kind="stable")[:count]
    return [drawn[number] for number in np.sort(nearest)]


def joined_document(documents: Sequence[bytes]) -> bytes:
    """One document with the content of all, which have the same root element; its attributes are those of the first.

    For large documents of a schema whose root may have any, or nearly any, number of entries.
    """
    if not documents:
        raise ValueError("documents must not be empty; give at least one to join")
    first, *others = documents
    inside = b"".join(_inside(document) for document in others)
    return _appended(first, inside)


def _appended(document: bytes, content: bytes) -> bytes:
    """A document with more content at the end of its root element."""
    end = document.rindex(b"</") if document.rstrip().endswith(b">") and b"</" in document else -1
    batch = read_batch([document])
    name = batch.name_of(int(batch.name[0])).encode()
    closing = b"</" + name
    if end >= 0 and document[end:].startswith(closing):
        return document[:end] + content + document[end:]
    open_end = document.rindex(b"/>")
    return b"%b>%b</%b>%b" % (document[:open_end].rstrip(), content, name, document[open_end + 2 :])


def _inside(document: bytes) -> bytes:
    """The content of the root element."""
    batch = read_batch([document])
    if len(batch.name) < 2:
        return b""
    return document[int(batch.position[1]) : document.rindex(b"</")]
