"""Packed documents: element arrays as bytes per document, and back, whatever happens to the bytes."""

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathcast.documents import Names
from pathcast.documents.structure.packed_documents import pack, unpack
from pathcast.workloads import generate_documents, news_schema
from tests.documents.equivalence import by_scanner, differences
from tests.generators.documents import random_document

ODD = [
    b"<a x='1 &amp; 2' y=''>t<b>&#233;</b><![CDATA[<c>]]>u</a>",
    "<?xml version='1.0' encoding='UTF-16'?><é à='ü'>ö<b/></é>".encode("utf-16"),
    b"<a",
    b"<n:a xmlns:n='urn:n' n:x='1'><n:b/>&lt;</n:a>",
    b"<a/>",
]


def drawn(seed, count=8):
    random = Random(seed)
    return [str(random_document(random)).encode() for _ in range(count)]


def again(batch, names=None, *, change=None):
    packed, edges = pack(batch)
    if change is not None:
        packed = packed.copy()
        change(packed)
    return unpack(packed, edges, batch.data, batch.data_offsets, Names() if names is None else names, batch.errors)


def other(one, another):
    """The differences of two batches, without encodings, which are not packed."""
    return [each for each in differences(one, another) if not each.startswith("encodings")]


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.booleans())
def test_what_is_unpacked_says_what_was_packed(seed, some):
    names = Names(["b", "zz", "x"] if some else [])
    batch = by_scanner([*drawn(seed), *ODD], names=names)
    assert other(batch, again(batch, names)) == []


def test_names_are_found_in_another_table():
    batch = by_scanner(ODD, names=Names(["a", "b"]))
    found = again(batch, Names(["x", "b", "{urn:n}b"]))
    for one, another in zip(batch, found, strict=True):
        assert [one.path(element) for element in range(len(one))] == [another.path(each) for each in range(len(one))]
        assert [one.attributes(each) for each in range(len(one))] == [another.attributes(e) for e in range(len(one))]


def test_documents_that_were_not_read_are_nothing():
    packed, edges = pack(by_scanner([b"<a", b"<b/>"]))
    assert edges.tolist() == [0, 0, len(packed)]


def test_a_batch_without_documents_is_nothing():
    batch = by_scanner([])
    assert len(again(batch)) == 0


def test_a_document_comes_alone_out_of_a_batch():
    batch = by_scanner(ODD)
    packed, edges = pack(batch)
    for number in (0, 1, 3, 4):
        alone = by_scanner([ODD[number]])
        begin, end = edges[number : number + 2]
        found = unpack(packed[begin:end], np.array([0, end - begin]), alone.data, alone.data_offsets, Names())
        assert other(alone, found) == []


def test_what_belongs_to_another_document_is_an_error_in_its_place():
    batch = by_scanner([b"<a><b>a long text that lies within</b></a>", b"<a/>", b"<c/>"])
    packed, edges = pack(batch)
    turned = np.concatenate([packed[edges[1] : edges[2]], packed[: edges[1]], packed[edges[2] :]])
    places = np.array([0, edges[2] - edges[1], edges[2], edges[3]])
    found = unpack(turned, places, batch.data, batch.data_offsets, Names())
    assert list(found.errors) == [0, 1]
    assert all("its length differs" in error.reason for error in found.errors.values())
    assert [len(document) for document in found] == [0, 0, 1]


def test_structures_are_smaller_than_their_documents():
    documents = list(generate_documents(news_schema(), 40, seed=3))
    batch = by_scanner([str(document).encode() for document in documents])
    packed, _ = pack(batch)
    assert 2 * len(packed) < len(batch.data)


def test_a_structure_of_another_form_is_refused_with_advice():
    batch = by_scanner([b"<a/>", b"<b/>"])

    def outdate(packed):
        packed[0] = 1

    found = again(batch, change=outdate)
    assert list(found.errors) == [0]
    assert "unknown format; parse the document again" in found.errors[0].reason
    assert found[1].name(0) == "b"


@pytest.mark.parametrize("place", range(2, 7))
def test_counts_beyond_the_bytes_are_refused_before_anything_is_allocated(place):
    batch = by_scanner([b"<a/>"])
    packed, _ = pack(batch)
    huge = np.concatenate([packed[:place], np.array([255] * 5 + [127], np.uint8), packed[place + 1 :]])
    found = unpack(huge, np.array([0, len(huge)]), batch.data, batch.data_offsets, Names())
    assert "is damaged: truncated" in found.errors[0].reason


@pytest.mark.parametrize("seed", range(60))
def test_damaged_bytes_are_refused_or_lead_nowhere_else(seed):
    random = Random(seed)
    batch = by_scanner([*drawn(seed, 3), *ODD])

    def damage(packed):
        for _ in range(random.choice([1, 1, 3])):
            packed[random.randrange(len(packed))] = random.choice([0, 1, 127, 128, 255])

    found = again(batch, change=damage)
    count = len(found.name)
    assert ((found.end > np.arange(count)) & (found.end <= count)).all()
    assert ((found.parent >= -1) & (found.parent < np.arange(count))).all()
    assert (found.text_begin <= found.text_end).all()
    assert (found.text_end <= len(found.text_start)).all()
    assert found.name.max(initial=0) < found.name_count
    for starts, lengths in ((found.attribute_start, found.attribute_length), (found.text_start, found.text_length)):
        assert (lengths >= 0).all()
        inside = starts >= 0
        assert (starts[inside] + lengths[inside] <= len(found.data)).all()
        assert (-1 - starts[~inside] + lengths[~inside] <= len(found.arena)).all()


def test_bytes_that_are_too_few_are_refused():
    batch = by_scanner(ODD)
    packed, edges = pack(batch)
    for cut in range(int(edges[1])):
        found = unpack(packed[:cut], np.array([0, cut]), batch.data, batch.data_offsets[:2], Names())
        assert list(found.errors) == [0]
