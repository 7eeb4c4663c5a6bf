"""Splitting files into documents: what an entry gets from its file, which mistakes it survives, and what it costs."""

import gzip
import io
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pathcast import DocumentError, LimitError, Limits, PatternError, split_documents
from pathcast.documents import Entry, read, read_batch


def documents(file: bytes | str, path: str = "/f/e", **options: object) -> list[bytes]:
    return [entry.document for entry in split_documents(file, path, **options)]  # type: ignore[arg-type]


def returned(file: bytes, path: str = "/f/e", **options: object) -> list[Entry]:
    return list(split_documents(file, path, errors="return", **options))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("file", "path", "expected"),
    [
        ("<f><e/><x><e/></x><e a='>'>1</e></f>", "/f/e", ["<e/>", "<e a='>'>1</e>"]),
        ("<f><e><e>inner</e></e></f>", "/f/e", ["<e><e>inner</e></e>"]),
        ("<f><g><e>1</e></g><h><e>2</e></h><g><e>3</e></g></f>", "/f/g/e", ["<e>1</e>", "<e>3</e>"]),
        ("<f><g><e>1</e></g><h><e>2</e></h></f>", "/f/*/e", ["<e>1</e>", "<e>2</e>"]),
        ("<?xml version='1.0'?><!-- c --><f>all</f><!-- c -->", "/f", ["<f>all</f>"]),
        ("<f>text<!-- <e> --><?p <e> ?><![CDATA[<e>]]><e/></f>", "/f/e", ["<e/>"]),
        ("<f><e><!-- </e> --><![CDATA[</e>]]></e></f>", "/*/e", ["<e><!-- </e> --><![CDATA[</e>]]></e>"]),
        ("<f><e><?p </e> ?></e></f>", "/f/*", ["<e><?p </e> ?></e>"]),
        ("<f/>", "/f/e", []),
        ("<f></f>", "/f/e", []),
    ],
)  # fmt: skip
def test_a_path_selects_entries(file: str, path: str, expected: list[str]) -> None:
    assert documents(file, path) == [each.encode() for each in expected]


def test_an_entry_has_its_number_and_offset() -> None:
    file = "\ufeff<f>é<x/><e/>  <e>1</e></f>".encode()
    found = list(split_documents(file, "/f/e"))
    assert [entry.number for entry in found] == [1, 2]
    assert [file[entry.offset :][:3] for entry in found] == [b"<e/", b"<e>"]


def test_namespaces_in_scope_are_added_unless_the_entry_replaces_them() -> None:
    file = "<f xmlns='u' xmlns:p='v' xmlns:q='w'><g xmlns:q='z' xmlns=''><e xmlns:p='own'><q:x/></e><e/></g></f>"
    found = documents(file, "/n:f/g/e", namespaces={"n": "u"})
    assert found == [b"<e xmlns:q=\"z\" xmlns:p='own'><q:x/></e>", b'<e xmlns:p="v" xmlns:q="z"/>']
    assert read(found[0]).name(1) == "{z}x"


def test_a_name_without_a_prefix_is_in_no_namespace() -> None:
    file = b"<f xmlns='u'><e/></f>"
    with pytest.raises(DocumentError, match=r"root element is \{u\}f, which /f/e does not select; .* Q\{u\}f"):
        documents(file)
    assert documents(file, "/Q{u}f/Q{u}e") == documents(file, "/f/e", namespaces="ignore") == [b'<e xmlns="u"/>']


def test_special_characters_of_inherited_values_are_escaped() -> None:
    file = "<f xmlns:p='a&amp;\"&#9;&lt;' xml:lang='&#10;&#13; x&gt;'><e/></f>"
    assert documents(file) == [b'<e xmlns:p="a&amp;&quot;&#9;&lt;" xml:lang="&#10;&#13; x>"/>']


def test_language_space_and_base_are_those_of_the_nearest_element() -> None:
    group = "<g xml:lang='fr' xml:space='preserve'><e xml:base='own'/></g>"
    file = f"<f xml:lang='en' xml:base='http://x/' xml:id='no'>{group}</f>"
    assert documents(file, "/f/g/e") == [b'<e xml:lang="fr" xml:space="preserve" xml:base=\'own\'/>']


def test_an_internal_subset_goes_with_each_entry() -> None:
    subset = "[<!ENTITY n 'v'><!ATTLIST e d CDATA 'w'>]"
    file = f"<!DOCTYPE f SYSTEM 'f.dtd' {subset}><f><e>&n;</e></f>"
    (found,) = documents(file, entities="expand")
    assert found == f"<!DOCTYPE e SYSTEM 'f.dtd' {subset}><e>&n;</e>".encode()
    entry = read(found, entities="expand")
    assert (entry.string_value(0), entry.attributes(0)) == ("v", {"d": "w"})


def test_entities_are_refused_once_for_the_file() -> None:
    (entry,) = returned(b"<!DOCTYPE f [<!ENTITY n 'v'>]><f><e/><e/></f>")
    assert "declares the entity 'n'" in str(entry.error)


def test_a_document_type_without_a_subset_is_left_out() -> None:
    assert documents('<!DOCTYPE f PUBLIC "-//NLM//DTD" "http://x/f.dtd"><f><e/></f>') == [b"<e/>"]


def test_a_large_document_type_is_rejected() -> None:
    file = b"<!DOCTYPE f [<!-- %s -->]><f><e/></f>" % (b"x" * 70_000)
    with pytest.raises(LimitError, match="the document type has more than 65,536 bytes"):
        documents(file)


@pytest.mark.parametrize("codec", ["utf-16", "utf-16-be", "latin-1", "cp1252", "utf-32", "shift_jis", "cp037"])
def test_a_file_in_another_encoding_gives_entries_in_utf8(codec: str) -> None:
    letter = "é" if codec in ("latin-1", "cp1252", "cp037", "utf-16") else "語"
    name = {"utf-16-be": "UTF-16"}.get(codec, codec)
    mark = "\ufeff" if codec == "utf-16-be" else ""
    letter = letter.encode(codec, "ignore").decode(codec) or "x"
    data = f"{mark}<?xml version='1.0' encoding='{name}'?><f><e>{letter}</e></f>".encode(codec)
    assert documents(data) == [f"<e>{letter}</e>".encode()]


def test_a_byte_that_the_encoding_lacks_ends_the_file_there() -> None:
    data = b"<?xml version='1.0' encoding='cp1252'?><f><e>1</e><e>\x81</e><e>3</e></f>"
    first, last = returned(data)
    assert (first.document, first.error) == (b"<e>1</e>", None)
    assert last.number == 2
    assert "offset 54 are not valid in cp1252" in str(last.error)


# Mistakes.


@pytest.mark.parametrize(
    "inside",
    ["&unknown;", "<b a='1' a='2'/>", "<u:b/>", "<b><c></b></c>", "\x01", "&", "]]>", "<b a=1></b>", "<b xmlns:x=''/>",
     "<?xml again?>", "<b\\></b>"],
)  # fmt: skip
def test_a_mistake_that_leaves_the_tags_alone_is_one_bad_document(inside: str) -> None:
    file = f"<f><e>1</e><e>{inside}</e><e>3</e></f>"
    found = documents(file)
    assert found == [b"<e>1</e>", f"<e>{inside}</e>".encode(), b"<e>3</e>"]
    assert sorted(read_batch(found, errors="return").errors) == [1]


@pytest.mark.parametrize("tag", ["<u:e>", "<e a='1' a='2'>", "<e a=1>", "<e xmlns:p=''>", "<e &x;>"])
def test_a_mistake_in_its_start_tag_is_the_entry_s_own(tag: str) -> None:
    name = tag[1:-1].partition(" ")[0]
    found = documents(f"<f xmlns:o='v'><e/>{tag}</{name}><e/></f>")
    assert len(found) == 3
    assert sorted(read_batch(found, errors="return").errors) == [1]


@pytest.mark.parametrize(
    ("inside", "reason"),
    [
        ("a < b", "does not begin a tag"),
        ("<!x>", "does not begin a tag"),
        ("<b <c/>", "a tag contains '<'"),
        ("<b a='<'/>", "a tag contains '<'"),
        ("</b <", "a tag contains '<'"),
        ("<!-- -- -->", "a comment contains '--'"),
        ("</b>", "</b> closes <e>"),
        ("<b>", "</f> closes <e>"),
        ("<!-- ", "a comment contains '--'"),
        ("<![CDATA[", "ends before the end of its root element"),
        ("<b a='", "a tag contains '<'"),
    ],
)
def test_a_mistake_that_hides_a_tag_ends_the_file(inside: str, reason: str) -> None:
    first, last = returned(f"<f><e>1</e><e>2{inside}</e><e>3</e><!-- c --></f>".encode())
    assert first.document == b"<e>1</e>"
    assert last.number == 2
    assert last.document.startswith(b"<e>2")
    assert reason in str(last.error)


@pytest.mark.parametrize(
    ("file", "entries", "reason"),
    [
        ("", 0, "no root element"),
        ("  <!-- -->", 0, "no root element"),
        ("<x/>", 0, "root element is x"),
        ("<f><e/>", 1, "ends before the end of its root element"),
        ("<f><e/></f><f/>", 1, "second root element"),
        ("<f><e/></f>x", 1, "outside the root"),
        ("x<f/>", 0, "outside the root"),
        ("<f><e/></g>", 1, "</g> closes <f>"),
        ("<f><e/></f></f>", 1, "outside the root"),
        ("<f u:a=''><e/></f>", 0, "undeclared prefix"),
        ("<?xml version='1.1'?><f><e/></f>", 0, "XML 1.1"),
        ("<?xml version='1.0' encoding='utf-7'?><f><e/></f>", 0, "'utf-7' is not supported"),
        ("<!DOCTYPE f><!DOCTYPE f><f><e/></f>", 0, "second document type"),
        ("<!DOCTYPE f [<f><e/></f>", 0, "the document type does not end"),
        ("<f/><!DOCTYPE f>", 0, "does not begin a tag"),
    ],
)
def test_a_mistake_outside_entries_ends_the_file(file: str, entries: int, reason: str) -> None:
    found = returned(file.encode())
    assert [entry.error is None for entry in found] == [True] * entries + [False]
    assert reason in str(found[-1].error)
    assert (found[-1].document, found[-1].number) == (b"", entries + 1)


def test_an_entry_over_the_limit_is_not_kept_and_the_file_goes_on() -> None:
    large = b"<e>" + b"<b x='1'/>" * 30_000 + b"</e>"
    file = b"<f><e>1</e>" + large + b"<e>3</e></f>"
    found = returned(file, limits=Limits(size=100_000))
    assert [entry.document for entry in found] == [b"<e>1</e>", b"", b"<e>3</e>"]
    assert isinstance(found[1].error, LimitError)
    assert "300,007 bytes; the limit is 100,000" in found[1].error.reason
    assert found[2].offset == file.index(b"<e>3")
    with pytest.raises(LimitError) as raised:
        documents(file, limits=Limits(size=100_000))
    assert raised.value.index == 1


def test_elements_around_an_entry_do_not_count_for_its_limits() -> None:
    file = "<a xmlns:p='u'>" + "<a>" * 5 + "<e><p:x/></e>" + "</a>" * 6
    assert documents(file, "/a/a/a/a/a/a/e", limits=Limits(depth=2)) == [b'<e xmlns:p="u"><p:x/></e>']


def test_what_entries_repeat_is_limited_by_the_size_of_the_file() -> None:
    spaces = " ".join(f"xmlns:p{number}='{'u' * 1000}'" for number in range(100))
    *entries, last = returned(f"<f {spaces}>{'<e/>' * 1000}</f>".encode())
    assert 9 < len(entries) == last.number - 1 < 30
    assert isinstance(last.error, LimitError)
    assert "gives the entries many times the bytes of the file; the limit is 20" in last.error.reason
    assert len(returned(f"<f {spaces}>{'<e/>' * 1000}</f>".encode(), limits=Limits(amplification=1000))) == 1000


def test_a_tag_without_an_end_is_rejected_at_the_limit() -> None:
    def pieces() -> Iterator[bytes]:
        yield b"<f><e "
        while True:
            yield b"x" * 100_000

    (entry,) = split_documents(pieces(), "/f/e", errors="return", limits=Limits(size=1_000_000))
    assert "a tag has at least " in str(entry.error)


# What is given.


def test_a_file_may_be_bytes_text_a_path_an_open_file_or_pieces(tmp_path: Path) -> None:
    data = b"<f><e>1</e><e>2</e></f>"
    plain, packed = tmp_path / "f.xml", tmp_path / "f.xml.gz"
    plain.write_bytes(data)
    packed.write_bytes(gzip.compress(data))
    given: list[Any] = [
        data,
        bytearray(data),
        memoryview(data),
        data.decode(),
        plain,
        packed,
        io.BytesIO(data),
        [data[:7], data[7:]],
    ]
    assert [[entry.document for entry in split_documents(each, "/f/e")] for each in given] == [
        [b"<e>1</e>", b"<e>2</e>"]
    ] * len(given)


def test_text_is_read_whatever_encoding_it_declares() -> None:
    assert documents("<?xml version='1.0' encoding='latin-1'?><f><e>é</e></f>") == ["<e>é</e>".encode()]


def test_a_file_that_cannot_be_read_to_its_end_gives_what_was_read(tmp_path: Path) -> None:
    whole = gzip.compress(b"<f>" + b"<e/>" * 100_000 + b"</f>")
    (tmp_path / "f.xml.gz").write_bytes(whole[:-20])
    *entries, last = split_documents(tmp_path / "f.xml.gz", "/f/e", errors="return")
    assert all(entry.document == b"<e/>" for entry in entries)
    assert "cannot read the file" in str(last.error)
    (missing,) = split_documents(tmp_path / "none.xml", "/f/e", errors="return")
    assert "No such file" in str(missing.error)


def test_wrong_arguments_are_errors_at_once() -> None:
    with pytest.raises(PatternError):
        split_documents(b"<f/>", "f")
    with pytest.raises(ValueError, match="errors must be"):
        split_documents(b"<f/>", "/f", errors="ignore")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="got int"):
        split_documents(5, "/f")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="piece of a file must be bytes, got str"):
        list(split_documents(["<f/>"], "/f"))  # type: ignore[list-item]


def test_entries_come_before_the_file_ends() -> None:
    def pieces() -> Iterator[bytes]:
        yield b"<f>" + b"<e>1</e>" * 50_000
        raise AssertionError("read too far")

    assert next(split_documents(pieces(), "/f/e")).document == b"<e>1</e>"


MEASURED = """
import resource, sys
from pathcast import Limits, split_documents
def pieces():
    yield b"<f>" + b" " * 100_000
    for _ in range(int(sys.argv[1])):
        yield b"<e><t>" + b"word " * 10_000 + b"</t></e>\\n<!-- " + b"c" * 10_000 + b" -->"
        yield b"<x>" + b"skipped" * 10_000 + b"</x>"
    yield b"</f>"
count = sum(1 for entry in split_documents(pieces(), "/f/e", errors="return", limits=Limits(size=1_000_000)))
print(count, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def test_memory_does_not_grow_with_the_file() -> None:
    def peak(count: int) -> int:
        ran = subprocess.run([sys.executable, "-c", MEASURED, str(count)], capture_output=True, check=True)
        entries, kilobytes = map(int, ran.stdout.split())
        assert entries == count
        return kilobytes

    small, large = peak(8), peak(4_000)
    assert large - small < 8_000  # kilobytes, for a file of 520 MB
