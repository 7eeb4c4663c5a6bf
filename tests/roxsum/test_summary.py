"""The summary: one node per label path, extents on the leaves of each document, and the documents unchanged."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pathcast
from pathcast import DocumentError
from pathcast.documents import read, read_batch
from pathcast.roxsum import RoXSum
from pathcast.roxsum.token_table_kernels import RAW_TEXT
from tests.roxsum.drawn import ODD, collections, data_of, documents, often, summary_of

BIBLIOGRAPHY = (
    "<bib><book><title/><author/></book></bib>",
    "<bib><book><title><subtitle/></title></book></bib>",
    "<bib><article><title/><author/></article></bib>",
    "<bib><article><author/></article></bib>",
)


def test_one_node_per_label_path_and_extents_on_leaves_only() -> None:
    batch = RoXSum.build(BIBLIOGRAPHY)
    assert batch.summary() == {
        ("bib",): [],
        ("bib", "book"): [],
        ("bib", "book", "title"): [0],
        ("bib", "book", "author"): [0],
        ("bib", "book", "title", "subtitle"): [1],
        ("bib", "article"): [],
        ("bib", "article", "title"): [2],
        ("bib", "article", "author"): [2, 3],
    }


def test_the_room_is_reached_from_the_public_face() -> None:
    assert pathcast.roxsum.RoXSum is RoXSum
    assert "roxsum" in dir(pathcast)


@pytest.mark.slow
@often
@given(collections)
def test_a_summary_is_what_the_definition_says(given_documents: list[bytes | str]) -> None:
    batch = RoXSum.build(given_documents)
    assert batch.summary() == summary_of(dict(enumerate(given_documents)))


@pytest.mark.slow
@often
@given(collections)
def test_every_document_comes_back_byte_for_byte(given_documents: list[bytes | str]) -> None:
    assert RoXSum.build(given_documents).documents() == [data_of(document) for document in given_documents]


def test_odd_spellings_are_cut_except_those_that_cannot_be() -> None:
    batch = RoXSum.build([*ODD, b"<!DOCTYPE a [<!ATTLIST a x CDATA 'd'>]><a/>"])
    assert batch.documents()[: len(ODD)] == [data_of(document) for document in ODD]
    contents = batch.contents
    raw = [k for k in range(len(batch)) if contents.tokens[contents.token_begin[k]] <= RAW_TEXT]
    assert raw == [4, 6, 12, 13]  # other encodings, a token of 5,000 bytes, an internal subset


@pytest.mark.slow
@often
@given(collections)
def test_building_is_adding_one_by_one(given_documents: list[bytes | str]) -> None:
    built, added = RoXSum.build(given_documents), RoXSum()
    assert [added.add(document) for document in given_documents] == list(range(len(given_documents)))
    assert added.summary() == built.summary()
    assert added.documents() == built.documents()
    assert list(added) == list(built)


@pytest.mark.slow
@often
@given(collections, st.data())
def test_what_is_removed_leaves_no_trace_and_its_id_is_not_given_again(
    given_documents: list[bytes | str], data: st.DataObject
) -> None:
    batch = RoXSum.build(given_documents)
    if data.draw(st.booleans()):
        batch.summary()  # existing extents are updated, others are computed
    gone = data.draw(st.sets(st.sampled_from(range(len(given_documents))))) if given_documents else set()
    for number in gone:
        batch.remove(number)
    kept = {number: document for number, document in enumerate(given_documents) if number not in gone}
    assert batch.summary() == summary_of(kept)
    assert batch.documents() == [data_of(document) for document in kept.values()]
    assert batch.add("<new/>") == len(given_documents)
    assert batch.document(len(given_documents)) == b"<new/>"


def test_a_batch_that_lost_most_of_its_documents_gives_their_memory_back() -> None:
    batch = RoXSum.build([f"<a><n{number}>{number}</n{number}></a>" for number in range(200)])
    for number in range(190):
        batch.remove(number)
    assert len(batch.contents) < 60 and len(batch.paths) < 60 and len(batch.skeletons) < 200
    assert batch.document(195) == b"<a><n195>195</n195></a>"
    assert batch.summary() == summary_of({n: f"<a><n{n}>{n}</n{n}></a>" for n in range(190, 200)})


def test_documents_come_as_bytes_text_files_or_read_already(tmp_path) -> None:
    file = tmp_path / "a.xml"
    file.write_bytes(b"<a>file</a>")
    inputs = [b"<a>bytes</a>", "<a>text</a>", file, read("<a>read</a>"), bytearray(b"<a/>")]
    batch = RoXSum.build(inputs)
    assert batch.documents() == [b"<a>bytes</a>", b"<a>text</a>", b"<a>file</a>", b"<a>read</a>", b"<a/>"]
    assert batch.add(read("<b/>")) == 5
    again = RoXSum.build(read_batch([b"<a/>", b"<b/>"]))
    assert again.documents() == [b"<a/>", b"<b/>"]


def test_an_unreadable_document_is_an_error_or_a_gap() -> None:
    inputs = [b"<a/>", b"<a>", b"<b/>"]
    with pytest.raises(DocumentError):
        RoXSum.build(inputs)
    batch = RoXSum.build(inputs, errors="return")
    assert list(batch) == [0, 2] and batch.documents() == [b"<a/>", b"<b/>"]
    assert isinstance(batch.errors[1], DocumentError)
    assert batch.add(b"<c/>") == 3
    with pytest.raises(DocumentError):
        batch.add(b"<c>")
    assert list(batch) == [0, 2, 3]
    with pytest.raises(ValueError, match="errors must be 'raise' or 'return', got 'ignore'"):
        RoXSum.build([], errors="ignore")  # type: ignore[arg-type]


def test_a_document_that_is_not_there_is_a_key_error() -> None:
    batch = RoXSum.build(["<a/>"])
    for ask in (batch.document, batch.remove, lambda number: batch.restrict([number])):
        with pytest.raises(KeyError, match="unknown document id 7"):
            ask(7)
    assert 0 in batch and 7 not in batch and "0" not in batch


@pytest.mark.slow
@often
@given(collections, st.data())
def test_a_part_has_just_its_documents(given_documents: list[bytes | str], data: st.DataObject) -> None:
    batch = RoXSum.build(given_documents)
    ids = data.draw(st.sets(st.sampled_from(range(len(given_documents))))) if given_documents else set()
    part = batch.restrict(ids)
    assert part.summary() == summary_of({number: given_documents[number] for number in ids})
    assert part.documents() == [data_of(given_documents[number]) for number in sorted(ids)]
    assert part.size == sum(len(data_of(given_documents[number])) for number in ids)


@pytest.mark.slow
@often
@given(documents)
def test_many_label_paths_and_tokens_make_tables_grow(document: bytes | str) -> None:
    wide = "<a>" + "".join(f"<n{k} x{k}='{k}'>{k}</n{k}>" for k in range(700)) + "</a>"
    batch = RoXSum.build([document, wide, document, wide])
    assert batch.documents() == [data_of(each) for each in (document, wide, document, wide)]
    assert batch.summary()["a", "n699"][-2:] == [1, 3]


def test_one_document_is_not_taken_for_several_and_targets_are_a_mapping() -> None:
    with pytest.raises(TypeError, match="build takes a list of documents"):
        RoXSum.build("<a/>")
    with pytest.raises(TypeError, match="targets must be a mapping"):
        RoXSum.build(["<a/>"]).split(["//a"])  # type: ignore[arg-type]


def test_documents_that_are_read_in_several_groups_are_one_batch(tmp_path: Path) -> None:
    large = [f"<a n='{number}'><b>{'x' * 900_000}</b></a>".encode() for number in range(8)]
    batch = RoXSum.build(large[:5])
    batch.add_many([*large[5:], b"<a><c/></a>"])
    (tmp_path / "one.xml").write_bytes(b"<d/>")
    assert batch.add_many([tmp_path / "one.xml", b"<broken", "<e/>"]).keys() == {1}
    batch.add(b"<f/>")
    assert batch.documents() == [*large, b"<a><c/></a>", b"<d/>", b"<e/>", b"<f/>"]
    assert batch.summary()["a", "b"] == list(range(8)) and batch.summary()[("f",)] == [11]
    assert len(batch.contents) == 12 + 1
