"""A small document alone is the batch that the scanner makes of it, whatever was read before."""

import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pathcast.documents import DocumentBatch, Limits, Names, Readable, Reader
from pathcast.documents.scanner.character_kernels import PADDING
from pathcast.documents.scanner.name_table import OWN_NAMES
from pathcast.documents.scanner.scanner import Scanner
from pathcast.documents.scanner.small_document import SMALL, SmallDocument
from tests.documents.equivalence import by_expat, differences
from tests.documents.mutations import mutations
from tests.documents.test_scanner_fuzz import TIGHT, settings


def _read(reader: Reader, document: Readable) -> DocumentBatch:
    """The document, compared with what a batch of it has."""
    small, batch = reader.read_one(document), reader.read([document])
    assert differences(small, batch) == [], document
    assert small.largest() == batch.largest()
    translated, other = (each.translation(reader.scanner.names) for each in (small, batch))
    assert translated[: len(other)].tolist() == other.tolist()
    return small


def _agree(small: Iterable[Any], batch: Iterable[Any], lengths: tuple[int, ...]) -> None:
    for ours, theirs, length in zip(small, batch, lengths, strict=True):
        assert len(theirs) == length
        assert ours[:length].tolist() == theirs.tolist()


@pytest.mark.parametrize("seed", range(6))
def test_a_small_document_has_the_columns_of_a_batch(seed: int) -> None:
    names, limits, entities = settings(seed)
    reader = Reader(names, limits, entities)
    small = [isinstance(_read(reader, document), SmallDocument) for document in mutations(seed, 200)]
    assert any(small), "otherwise batches would be compared with batches"
    assert not all(small)


def test_kernels_get_the_elements_and_values_of_a_batch() -> None:
    reader = Reader(Names(["a", "b"]), Limits(), "refuse")
    for document in (b"<a x='1' y='&amp;'>t<b>u</b>&lt;</a>", b"<c><a/></c>", b"<b z='3'>v</b>"):
        small, batch = reader.read_one(document), reader.read([document])
        assert isinstance(small, SmallDocument)
        counts = batch.largest()
        attributes, texts = counts.attributes, counts.texts
        _agree(small.elements, batch.elements, (2, *[counts.elements] * 4))
        _agree(small.values.attributes, batch.values.attributes, (counts.elements + 1, *[attributes] * 3))
        _agree(small.values.texts, batch.values.texts, (*[counts.elements] * 2, *[texts] * 3))
        for ours, theirs in zip(small.values.content, batch.values.content, strict=True):
            assert ours[: len(theirs)].tobytes() == theirs.tobytes()


def test_what_a_longer_document_left_behind_is_not_read() -> None:
    reader = Reader(Names(), Limits(), "refuse")
    long = b"<a b='1'>" + b"<c d='2'>x</c>" * 50 + b"</a>"
    for cut in range(1, len(long)):
        assert _read(reader, long).name.size == 51
        assert 0 in _read(reader, long[:cut]).errors


def test_documents_of_any_kind_are_read_alone(tmp_path: Path) -> None:
    (tmp_path / "d.xml").write_bytes(b"<a>x</a>")
    reader = Reader(Names(["a"]), Limits(), "refuse")
    kinds: list[Readable] = [
        b"<a>x</a>",
        bytearray(b"<a>x</a>"),
        "<a>\u00e9</a>",
        tmp_path / "d.xml",
        "x",
        tmp_path / "no",
    ]
    kinds += ["<?xml version='1.0' encoding='latin-1'?><a>\u00e9</a>", "<a/>".encode("utf-16"), b"", b"<a>"]
    assert [0 in _read(reader, kind).errors for kind in kinds] == [0, 0, 0, 0, 1, 1, 0, 0, 1, 1]


@pytest.mark.parametrize("size", [SMALL - 1, SMALL, SMALL + 1, 3 * SMALL])
def test_documents_up_to_a_size_are_small(size: int) -> None:
    reader = Reader(Names(["a"]), Limits(), "refuse")
    for inside in (b"x", b"<b/>", b"<b c=''/>", b"<!---->x"):
        document = b"<a>" + (inside * size)[: (size - 7) // len(inside) * len(inside)] + b"</a>"
        document += b" " * (size - len(document))
        assert isinstance(_read(reader, document), SmallDocument) == (size <= SMALL)


def test_limits_hold_for_a_document_alone() -> None:
    reader = Reader(Names(), TIGHT, "refuse")
    for document in (
        b"<a>" * 5,
        b"<a b='' c='' d='' e=''/>",
        b"<abcdefghi/>",
        b"<a><b/><c/><d/><e/></a>",
        b"<a>" + b" " * 300,
    ):
        assert 0 in _read(reader, document).errors
    assert not _read(reader, b"<a b='' c='' d=''/>").errors


def test_names_that_join_the_table_are_known_to_the_next_document() -> None:
    names = Names(["a"])
    reader = Reader(names, Limits(), "refuse")
    for number in range(OWN_NAMES + 500):
        document = b"<a n%d=''><m%d/></a>" % (number, number)
        batch = reader.read_one(document)
        if number % 97 == 0:
            assert differences(batch, by_expat([document], names=names)) == []
        if number % 701 == 0:
            names.add(f"m{number + 1}")
            names.add(f"m{number}")


def test_a_batch_between_two_documents_changes_neither() -> None:
    reader = Reader(Names(["a"]), Limits(), "refuse")
    for size in (1, 100, 10_000):
        _read(reader, b"<a><b/></a>")
        documents = [b"<a>%b</a>" % (b"<c d='e'>f</c>" * size)] * 3
        batch = reader.read(documents, borrowed=True)
        assert differences(batch, by_expat(documents, names=reader.scanner.names)) == []


def test_a_table_of_names_that_began_anew_has_no_names_of_before() -> None:
    reader = Reader(Names(["a"]), Limits(), "refuse")
    for number in range(3):
        _read(reader, b"<a><b/><c/></a>")
        many = b"<a>%b</a>" % b"".join(b"<n%d m%d=''/>" % (n, n) for n in range(OWN_NAMES))
        assert len(reader.read([many]).own_names) >= 2 * OWN_NAMES
        if number:
            reader.read([b"<a><e/></a>"])
        if number == 2:
            reader.scanner.names.add("f")
        assert list(_read(reader, b"<a><c/><b/></a>").own_names)[-2:] == ["c", "b"]


def test_an_error_of_one_document_is_not_that_of_the_next() -> None:
    reader = Reader(Names(), Limits(), "refuse")
    reader.read_one(b"<a/>").errors[0] = Limits().exceeded("work", "too much")  # as an engine does
    assert not reader.read_one(b"<a/>").errors


def test_threads_read_documents_into_memory_of_their_own() -> None:
    scanner = Scanner(Names(["a"]), Limits(), "refuse")
    wrong: list[int] = []
    start = threading.Barrier(2)

    def read(text: bytes) -> None:
        start.wait()
        for _ in range(2000):
            batch = scanner.read_small(b"<a>%b</a>" % text)
            if batch is None or batch.string_value(0) != text:
                wrong.append(1)

    threads = [threading.Thread(target=read, args=(text,)) for text in (b"x" * 30, b"yy")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_bytes_after_the_document_are_zero() -> None:
    """Every loop of the kernel ends there."""
    scanner = Scanner(Names(), Limits(), "refuse")
    for length in (SMALL - 20, 50, 7):
        batch = scanner.read_small(b"<a>" + b"x" * (length - 7) + b"</a>")
        assert batch is not None
        assert not np.any(batch.values.content.data[length : length + PADDING])
        assert not np.any(batch.values.content.data[-PADDING:])
