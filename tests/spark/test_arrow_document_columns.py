"""Columns of documents as bytes and back: for every layout of Arrow, each row has the result of `match`."""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pytest

import pathcast
from pathcast import Limits
from pathcast.spark.matching import arrow_document_columns as columns
from pathcast.spark.matching import match_documents as matching
from pathcast.spark.matching.arrow_document_columns import Part, parts_of_files, parts_of_values
from tests.documents.declared import declared

DOCUMENTS = [
    "<news lang='en'><title>Rain</title><p/></news>",
    None,
    "<news><title>Sün</title></news>",
    "<news>",
    "",
    "<?xml version='1.0' encoding='iso-8859-1'?><news><title>Sün</title></news>",
    "<?xml version='1.0' encoding='utf-16'?><p/>",
    "\ufeff<p/>",
    "no markup",
    "<other/>",
    None,
    "<p/>",
]
By = Literal["id", "subscriber"]
BYTES = [None if text is None else text.encode() for text in DOCUMENTS]


@pytest.fixture(scope="module")
def matcher() -> pathcast.Matcher:
    subscriptions = pathcast.Subscriptions()
    subscriptions.add("/news/title", subscriber="ada")
    subscriptions.add("//p", subscriber="bob")
    subscriptions.add("/news[@lang='en']", subscriber="ada")
    subscriptions.add("//title[.='Sün']", subscriber="cyd")
    return subscriptions.compile()


def matched(
    column: pa.Array, matcher: pathcast.Matcher, by: By = "id", parts: Iterable[Part] | None = None
) -> list[tuple[Any, Any]]:
    batch = pa.record_batch({"xml": column})
    rows = []
    for part in parts_of_values(column) if parts is None else parts:
        out = matching.add_matches(batch.slice(part.begin, part.end - part.begin), part, matcher, by)
        out.validate(full=True)
        found = out.column(1).to_pylist()
        rows += [(row, error and error["reason"]) for row, error in zip(found, out.column(2).to_pylist(), strict=True)]
    return rows


def expected(documents: Sequence[str | bytes | None], matcher: pathcast.Matcher, by: By = "id") -> list[Any]:
    answers: list[Any] = []
    for document in documents:
        try:
            matches = matcher.match(document) if document is not None else None
        except pathcast.PathcastError:
            matches = None
        if matches is None:
            answers.append(None)
        else:
            answers.append(matches.ids.tolist() if by == "id" else matches.subscribers)
    return answers


KINDS: dict[str, tuple[Sequence[str | bytes | None], pa.DataType]] = {
    "binary": (BYTES, pa.binary()),
    "large_binary": (BYTES, pa.large_binary()),
    "binary_view": (BYTES, pa.binary_view()),
    "string": (DOCUMENTS, pa.string()),
    "large_string": (DOCUMENTS, pa.large_string()),
    "string_view": (DOCUMENTS, pa.string_view()),
}


@pytest.mark.parametrize("by", ["id", "subscriber"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_column_gives_what_each_document_gives(kind, by, matcher):
    documents, arrow = KINDS[kind]
    rows = matched(pa.array(documents, arrow), matcher, by)
    assert [row for row, _ in rows] == expected(documents, matcher, by)
    assert all((row is None) == (reason is not None) for row, reason in rows)


def test_a_declared_encoding_counts_in_bytes_and_not_in_text(matcher):
    declared = "<?xml version='1.0' encoding='iso-8859-1'?><title>Sün</title>"
    texts = matched(pa.array([declared, declared]), matcher)
    data = matched(pa.array([declared.encode(), declared.encode("iso-8859-1")]), matcher)
    assert [row for row, _ in texts] == [[4], [4]]
    assert [row for row, _ in data] == [[], [4]]


def test_documents_that_declare_any_encoding_are_matched_or_have_an_error(matcher):
    documents = list(declared())[::7]
    rows = matched(pa.array(documents), matcher)
    assert [row for row, _ in rows] == expected(documents, matcher)
    assert not [reason for _, reason in rows if reason and "please report this bug" in reason]


@pytest.mark.parametrize("path", ["a\0b", "file:///a\0b", "file://[", "http://[x/a.xml", "file:///%00"])
def test_a_path_that_no_file_can_have_is_an_error_in_its_place(path):
    (part,) = parts_of_files(pa.array([path, None]), Limits())
    assert sorted(part.failed) == [0, 1]
    assert "cannot read" in part.failed[0].reason


@pytest.mark.parametrize("kind", KINDS)
def test_slices_and_dictionaries_are_what_they_show(kind, matcher):
    documents, arrow = KINDS[kind]
    column = pa.array(documents, arrow)
    for begin, end in ((0, 0), (1, 2), (3, 9), (5, len(documents))):
        rows = matched(column.slice(begin, end - begin), matcher)
        assert [row for row, _ in rows] == expected(documents[begin:end], matcher)
    if "view" not in kind:
        rows = matched(column.dictionary_encode(), matcher)
        assert [row for row, _ in rows] == expected(documents, matcher)


def test_a_null_with_bytes_behind_it_is_no_document(matcher):
    data = b"<p/><p/><p/>"
    valid = pa.array([True, False, True]).buffers()[1]
    offsets = pa.py_buffer(np.array([0, 4, 8, 12], dtype=np.int32))
    column = pa.Array.from_buffers(pa.binary(), 3, [valid, offsets, pa.py_buffer(data)], null_count=1)
    rows = matched(column, matcher)
    assert [row for row, _ in rows] == [[2], None, [2]]
    assert "null" in rows[1][1]


def test_a_long_column_comes_in_parts_that_hold_each_row_once(matcher):
    cut = partial(parts_of_values, part_bytes=100, part_rows=3)
    documents = [*BYTES, b"<p>" + b" " * 1000 + b"</p>", None, *BYTES]
    column = pa.array(documents)
    parts = [(part.begin, part.end) for part in cut(column)]
    assert [row for begin, end in parts for row in range(begin, end)] == list(range(len(documents)))
    assert len(parts) > 8
    assert [row for row, _ in matched(column, matcher, parts=cut(column))] == expected(documents, matcher)


def test_nothing_gives_nothing(matcher):
    assert matched(pa.array([], pa.binary()), matcher) == []
    assert [row for row, _ in matched(pa.array([None, None], pa.string()), matcher)] == [None, None]


def test_a_document_that_breaks_the_matcher_is_an_error_in_its_place(monkeypatch, matcher):
    honest = matcher.match_data

    def broken(data, *arguments, **more):
        if b"poison" in data.tobytes():
            raise IndexError("out of reach")
        return honest(data, *arguments, **more)

    monkeypatch.setattr(matcher, "match_data", broken)
    documents = [b"<p/>", None, b"<poison/>", b"<news>", b"<p/>", b"<poison/>", b"<news><title/></news>"]
    rows = matched(pa.array(documents), matcher)
    assert [row for row, _ in rows] == [[2], None, None, None, [2], None, [1]]
    assert "IndexError: out of reach" in rows[2][1]
    assert "null" in rows[1][1]
    rows = matched(pa.array(documents), matcher, "subscriber")
    assert [row for row, _ in rows] == [["bob"], None, None, None, ["bob"], None, ["ada"]]


def test_more_matches_than_arrow_can_hold_are_refused():
    offsets = np.array([0, 1 << 31], dtype=np.int64)
    with pytest.raises(pathcast.PipelineError, match="maxRecordsPerBatch"):
        columns.lists(pa.list_(pa.int32()), offsets, pa.array([], pa.int32()), {})


def test_files_are_read_by_path_and_address(tmp_path):
    (tmp_path / "a b%20.xml").write_bytes(b"<p/>")
    (tmp_path / "a b.xml").write_bytes(b"<q/>")
    (tmp_path / "large.xml").write_bytes(b"<p>" + b" " * 100 + b"</p>")
    addresses = [
        str(tmp_path / "a b.xml"),
        f"file:{tmp_path}/a b.xml",
        f"file://{tmp_path}/a%20b.xml",
        f"file://localhost{tmp_path}/a b%20.xml",
        str(tmp_path / "none.xml"),
        None,
        "s3://bucket/a.xml",
        str(tmp_path / "large.xml"),
        str(tmp_path),
    ]
    found: list[Any] = []
    for part in parts_of_files(pa.array(addresses), Limits(size=50), part_rows=2):
        assert part.begin == len(found)
        for row in range(part.end - part.begin):
            data = part.data[part.offsets[row] : part.offsets[row + 1]].tobytes()
            found.append(part.failed[row].reason if row in part.failed else data)
    assert found[:4] == [b"<q/>", b"<q/>", b"<q/>", b"<p/>"]
    for reason, word in zip(found[4:], ["No such file", "null", "binaryFile", "size=", "directory"], strict=True):
        assert word in reason
