"""Reading documents: accepted documents, rejected ones with reasons, and the arrays."""

import gzip
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pathcast import DocumentError, LimitError, Subscriptions
from pathcast.documents import Limits, Names, read, read_batch
from pathcast.documents.expat_reader import BatchBuilder

SMALL = b'<a x="1"><b>hi</b><c/></a>'


def test_element_arrays_are_as_the_picture_shows() -> None:
    batch = read(SMALL).batch
    assert [batch.name_of(name) for name in batch.name] == ["a", "b", "c"]
    assert batch.parent.tolist() == [-1, 0, 0]
    assert batch.depth.tolist() == [1, 2, 2]
    assert batch.end.tolist() == [3, 2, 3]
    assert batch.position.tolist() == [0, 9, 18]


def test_indices_count_in_the_batch_and_views_count_in_the_document() -> None:
    batch = read_batch([SMALL, b"<r><s><t/></s></r>"])
    assert batch.offsets.tolist() == [0, 3, 6]
    assert batch.parent.tolist() == [-1, 0, 0, -1, 3, 4]
    assert batch.end.tolist() == [3, 2, 3, 6, 6, 6]
    second = batch[1]
    assert [second.parent(element) for element in range(3)] == [-1, 0, 1]
    assert [second.end(element) for element in range(3)] == [3, 3, 3]
    assert second.path(2) == "/r/s/t"


def test_text_nodes_are_split_by_comments_and_instructions_only() -> None:
    document = read("<a>x<![CDATA[<y>]]>&amp;&#65;<!-- -->z<?p?>w<b/>v\r\nu</a>")
    assert document.text_nodes(0) == ["x<y>&A", "z", "w", "v\nu"]
    assert document.string_value(0) == "x<y>&Azwv\nu"


def test_the_text_of_an_element_excludes_what_follows_it() -> None:
    document = read("<a><b>in</b>after<c>x</c></a>")
    assert document.string_value(1) == "in"
    assert document.text_nodes(0) == ["after"]


def test_attribute_values_are_normalised() -> None:
    document = read(b'<a t="1&#9;2\t3\n4&lt;" u="&#xe9;"/>')
    assert document.attributes(0) == {"t": "1\t2 3 4<", "u": "é"}


def test_attributes_declared_in_the_document_get_their_defaults_and_types() -> None:
    document = read(b'<!DOCTYPE a [<!ATTLIST a k CDATA "d" n NMTOKENS #IMPLIED>]><a n=" x  y "/>')
    assert document.attributes(0) == {"n": "x y", "k": "d"}


def test_names_are_expanded_by_namespace() -> None:
    document = read(b'<p:a xmlns:p="u" xmlns="v" p:x="1" y="2" xml:lang="en"><b/></p:a>')
    assert [document.name(0), document.name(1)] == ["{u}a", "{v}b"]
    assert document.attributes(0) == {
        "{u}x": "1",
        "y": "2",
        "{http://www.w3.org/XML/1998/namespace}lang": "en",
    }


def test_known_names_keep_their_ids_and_new_ones_follow() -> None:
    names = Names(["c", "a"])
    batch = read_batch([SMALL], names=names)
    assert batch.name.tolist() == [1, 3, 0]
    assert list(batch.own_names) == ["x", "b"]
    assert len(names) == 2, "reading adds nothing to the table it was given"


def test_names_added_after_the_start_are_still_the_batchs_own() -> None:
    names = Names(["a"])
    batch = read_batch([b"<a><b/></a>"], names=names)
    names.add("zzz")
    assert batch.name_of(int(batch.name[1])) == "b"
    assert batch.translation(names).tolist() == [0, -1]
    names.add("b")
    assert batch.translation(names).tolist() == [0, 2]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-le", "utf-16-be", "iso-8859-1", "us-ascii"])
def test_supported_encodings_give_the_same_values(encoding: str) -> None:
    text = "é" if encoding != "us-ascii" else "e"
    declared = {"utf-16-le": "UTF-16", "utf-16-be": "UTF-16"}.get(encoding, encoding)
    bom = {"utf-16-le": "\ufeff", "utf-16-be": "\ufeff"}.get(encoding, "")
    data = f'{bom}<?xml version="1.0" encoding="{declared}"?>\n<a k="{text}">{text}<b/></a>'.encode(encoding)
    document = read(data)
    assert document.string_value(0) == text
    assert document.attributes(0) == {"k": text}
    assert document.data == data
    assert document.location(1) == (2, 11)


def test_a_str_ignores_its_declared_encoding() -> None:
    assert read('<?xml version="1.0" encoding="utf-16"?><a>é</a>').string_value(0) == "é"


REFUSED = {
    "no bytes": (b"", "the document is empty; it must have a root element", 1, 1),
    "white space only": (b" \n ", "the document is empty; it must have a root element", 2, 2),
    "cut off": (b"<a>\n<b>", "no element found: the document ends inside <b>, opened in line 2", 2, 4),
    "crossed tags": (b"<a>\n<b></a>", "mismatched tag: <b> was opened in line 2 and is not closed yet", 2, 6),
    "two roots": (b"<a/><b/>", "junk after document element", 1, 5),
    "attribute twice": (b"<a x='1' x='2'/>", "duplicate attribute", 1, 10),
    "attribute twice by namespace": (b"<a xmlns:p='u' xmlns:q='u' p:x='' q:x=''/>", "duplicate attribute", 1, 1),
    "unbound prefix": (
        b"<p:a/>",
        "unbound prefix: <p:a> uses the undeclared prefix 'p:'; declare it with xmlns:p='…'",
        1,
        1,
    ),
    "unbound prefix of an attribute": (
        b"<a xmlns:p='u'>\n<b p:x='' q:y=''/></a>",
        "unbound prefix: the attribute q:y uses the undeclared prefix 'q:'; declare it with xmlns:q='…'",
        2,
        1,
    ),
    "prefix that is no longer declared": (
        b"<a><p:b xmlns:p='u' xml:lang='en'><p:c/></p:b><p:d/></a>",
        "unbound prefix: <p:d> uses the undeclared prefix 'p:'; declare it with xmlns:p='…'",
        1,
        47,
    ),
    "unbound prefix in UTF-16": (
        "\ufeff<a>é\n<p:b/></a>".encode("utf-16-le"),
        "unbound prefix: <p:b> uses the undeclared prefix 'p:'; declare it with xmlns:p='…'",
        2,
        1,
    ),
    "unbound prefix of many characters": (
        b"<" + b"p" * 1000 + b":a/>",
        (
            f"unbound prefix: <{'p' * 100}> uses the undeclared prefix '{'p' * 100}:'; "
            f"declare it with xmlns:{'p' * 100}='…'"
        ),
        1,
        1,
    ),
    "undeclared entity": (
        b"<a>&nbsp;</a>",
        "undefined entity '&nbsp;'; write the character itself or its number, such as &#160;",
        1,
        4,
    ),
    "undeclared entity with an endless name": (b"<a>&" + b"x" * 200 + b";</a>", "undefined entity", 1, 4),
    "compressed": (
        gzip.compress(b"<a/>"),
        "the document is compressed with gzip; decompress it, or give a file whose name ends in .gz",
        1,
        1,
    ),
    "undeclared entity with a DTD elsewhere": (
        b'<!DOCTYPE a SYSTEM "x.dtd"><a>&x;</a>',
        "the document refers to the undeclared entity '&x;'; declare it in the DOCTYPE, or write its text",
        1,
        31,
    ),
    "entity declaration": (
        b"<!DOCTYPE a [<!ENTITY x 'y'>]><a>&x;</a>",
        "the DOCTYPE declares the entity 'x', which is rejected (entities='expand' allows internal entities)",
        1,
        25,
    ),
    "external entity": (
        b"<!DOCTYPE a [<!ENTITY x SYSTEM 'file:///etc/passwd'>]><a>&x;</a>",
        (
            "the DOCTYPE declares the entity 'x', which is rejected "
            "(external entities are never read; remove the declaration)"
        ),
        1,
        52,
    ),
    "XML 1.1": (b"<?xml version='1.1'?><a/>", "XML 1.1 is not supported; use XML 1.0", 1, 1),
    "another encoding": (
        b"<?xml version='1.0' encoding='klingon'?><a/>",
        "encoding 'klingon' is not supported; convert the document to UTF-8",
        1,
        1,
    ),
    "not UTF-8": (b"<a>\xff</a>", "not well-formed (invalid token)", 1, 4),
    "control character": (b"<a>\x01</a>", "not well-formed (invalid token)", 1, 4),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_document_is_refused_with_reason_and_place(case: str) -> None:
    data, reason, line, column = REFUSED[case]
    with pytest.raises(DocumentError) as caught:
        read(data)
    assert (caught.value.reason, caught.value.line, caught.value.column) == (reason, line, column)


def test_internal_entities_expand_on_request() -> None:
    data = b"<!DOCTYPE a [<!ENTITY x 'y<b/>z'>]><a k='&#38;'>1&x;2</a>"
    document = read(data, entities="expand")
    assert document.string_value(0) == "1yz2" and document.name(1) == "b"
    assert document.text_nodes(0) == ["1y", "z2"]


@pytest.mark.parametrize(
    "data",
    [
        b"<!DOCTYPE a [<!ENTITY x SYSTEM 'file:///etc/passwd'>]><a>&x;</a>",
        b"<!DOCTYPE a [<!ENTITY % x SYSTEM 'file:///etc/passwd'>%x;]><a/>",
    ],
)
def test_external_entities_are_never_read(data: bytes) -> None:
    with pytest.raises(DocumentError, match="never read|not read"):
        read(data, entities="expand")


@pytest.mark.slow
@pytest.mark.parametrize("text", [b"x" * 1000, b"", b"<b/>"])
def test_entities_that_explode_are_stopped(text: bytes) -> None:
    nested = b"".join(b'<!ENTITY %c "%s">' % (98 + i, b"&%c;" % (97 + i) * 10) for i in range(9))
    data = b'<!DOCTYPE a [<!ENTITY a "' + text + b'">' + nested + b"]><a>&j;</a>"
    with pytest.raises(LimitError):
        read(data, entities="expand")


def test_many_moderate_entities_stop_at_the_amplification_limit() -> None:
    data = b'<!DOCTYPE a [<!ENTITY a "' + b"x" * 50_000 + b'">]><a>' + b"&a;" * 60 + b"</a>"
    assert len(read(data, entities="expand", limits=Limits(amplification=100)).string_value(0)) == 3_000_000
    with pytest.raises(LimitError, match=r"Limits\(amplification=…\)"):
        read(data, entities="expand")


LIMITS = {
    "depth": (Limits(depth=3), b"<a><a><a/></a></a>", b"<a><a><a><a/></a></a></a>"),
    "size": (Limits(size=10), b"<a>345</a>", b"<a>3456</a>"),
    "attributes": (Limits(attributes=2), b"<a b='' c=''/>", b"<a b='' c='' d=''/>"),
    "names": (Limits(names=3), b"<a b='' c=''><b/><a/></a>", b"<a b='' c=''><b/><d/></a>"),
    "name_length": (Limits(name_length=4), b"<abcd/>", b"<abcde/>"),
}

PREFIXES = {
    "in one tag": "<a {}/>",
    "in tags of their own": "<a>{}</a>",
    "used": "<a>{}</a>",
    "with a document type": "<!DOCTYPE a [<!ELEMENT a ANY>]><a>{}</a>",
    "nested": "<a>{}",
}


@pytest.mark.parametrize("where", PREFIXES)
def test_prefixes_count_as_names(where: str) -> None:
    def document(count: int) -> str:
        declared = [f"xmlns:p{number}='u'" for number in range(count)]
        if where == "in one tag":
            return PREFIXES[where].format(" ".join(declared))
        if where == "nested":
            return PREFIXES[where].format("".join(f"<b {each}>" for each in declared) + "</b>" * count + "</a>")
        tag = "p{0}:b" if where == "used" else "b"
        return PREFIXES[where].format(
            "".join(f"<{tag.format(at)} xmlns='' {each}/>" * 3 for at, each in enumerate(declared))
        )

    names = 1 if where == "in one tag" else 2
    limits = Limits(names=100)
    assert len(read(document(100 - names), limits=limits)) > 0
    with pytest.raises(LimitError, match=r"more than 100 different names and prefixes.*Limits\(names=…\)"):
        read(document(101 - names), limits=limits)


def test_a_prefix_that_is_declared_again_and_again_counts_once() -> None:
    record = "<r xmlns:a='u' xmlns='v' xmlns:b='w'><b:c xmlns:d='x'/></r>"
    document = f"<a>{record * 1000}</a>"
    assert len(read(document, limits=Limits(names=6))) == 2001
    with pytest.raises(LimitError, match="prefixes"):
        read(document, limits=Limits(names=5))


@pytest.mark.parametrize("kind", ["<!DOCTYPE r [<!ELEMENT r ANY>]>", ""], ids=["with a document type", "plain"])
def test_a_name_may_be_written_with_a_few_prefixes_only(kind: str) -> None:
    """Expat keeps each spelling of a name."""
    limits = Limits(names=200)
    declared = " ".join(f"xmlns:p{number}='u'" for number in range(100))

    def document(count: int) -> str:
        tags = (f"<p{number % 100}:n{number // 100}/>" for number in range(count))
        return f"{kind}<r {declared}>{''.join(tags)}</r>"

    assert len(read(document(799), limits=limits)) == 800
    with pytest.raises(LimitError, match=r"more than 800 different pairs of prefix and name.*Limits\(names=…\)"):
        read(document(800), limits=limits)


def test_a_tag_with_too_many_prefixes_is_refused_before_its_end() -> None:
    """Expat passes on a tag as a whole, and would take all its declarations into memory first."""
    document = b"<a %b" % b"".join(b" xmlns:p%d='u'" % number for number in range(400_000))
    with pytest.raises(LimitError, match="prefixes"):
        read(document)


@pytest.mark.slow
def test_entities_that_hold_elements_stop_at_the_amplification_limit() -> None:
    document = f"<!DOCTYPE a [<!ENTITY e '{'<b/>' * 1000}'>]><a>{{}}</a>"
    assert len(read(document.format("&e;" * 9), entities="expand")) == 9001
    with pytest.raises(LimitError, match=r"Limits\(amplification=…\)"):
        read(document.format("&e;" * 300), entities="expand")


@pytest.mark.parametrize(("prefix", "count"), [("xmlns:p{}", 400), ("p{}", 400), ("xmlns", 1)])
def test_defaults_of_a_document_type_stop_at_the_amplification_limit(prefix: str, count: int) -> None:
    """Each element has them all, though it is four bytes of the document."""
    defaults = " ".join(f"{prefix.format(number)} CDATA '{'u' * (4000 // count)}'" for number in range(count))
    document = f"<!DOCTYPE r [<!ATTLIST a {defaults}>]><r>{{}}</r>"
    assert len(read(document.format("<a/>" * 100))) == 101
    with pytest.raises(LimitError, match=r"Limits\(amplification=…\)"):
        read(document.format("<a/>" * 500))


@pytest.mark.parametrize("limit", LIMITS)
def test_a_limit_allows_its_value_and_refuses_one_more(limit: str) -> None:
    limits, allowed, refused = LIMITS[limit]
    assert len(read(allowed, limits=limits)) > 0
    with pytest.raises(LimitError, match=rf"Limits\({limit}=…\)"):
        read(refused, limits=limits)


def test_hostile_sizes_are_refused_by_default_within_bounds() -> None:
    with pytest.raises(LimitError, match="depth"):
        read(b"<a>" * 1_000_000)
    with pytest.raises(LimitError, match="name_length"):
        read(b"<" + b"n" * 1_000_000 + b"/>")
    with pytest.raises(LimitError, match="attributes"):
        read(b"<a " + b" ".join(b"k%d=''" % k for k in range(100_000)) + b"/>")


NAMESPACE = "u" * 100_000
NAMESPACED = " ".join(f"p:k{number}=''" for number in range(4_000))


@pytest.mark.parametrize(
    "document",
    [
        f"<a xmlns:p='{NAMESPACE}' {NAMESPACED}/>",
        f"<a><b xmlns:p='{NAMESPACE}'/></a>",
        f"<!DOCTYPE a [<!ATTLIST a xmlns:p CDATA '{NAMESPACE}'>]><a {NAMESPACED}/>",
        f"<a xmlns:p='{NAMESPACE}' {NAMESPACED}/>".encode("utf-16"),
    ],
    ids=["attributes", "unused", "default", "utf-16"],
)
def test_a_namespace_of_any_length_is_not_spelled_out_for_every_attribute(
    document: str | bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BatchBuilder, "number", lambda *_: pytest.fail("names were spelled out"))
    with pytest.raises(LimitError, match=r"namespace has 100,000 characters.*Limits\(name_length=…\)"):
        read(document)


def test_a_namespace_may_be_as_long_as_a_name() -> None:
    document = f"<a xmlns='{NAMESPACE}'><b/><!--'--></a>"
    assert read(document, limits=Limits(name_length=100_000)).name(1) == f"{{{NAMESPACE}}}b"
    assert read(f"<a xmlns:p='u'>{'p' * 20_000}<p:b/></a>").name(1) == "{u}b"


def test_an_unreadable_document_keeps_its_place_and_harms_no_other() -> None:
    batch = read_batch([SMALL, b"<a>text<b>", SMALL], errors="return")
    assert len(batch) == 3 and list(batch.errors) == [1]
    assert len(batch[1]) == 0 and batch[1].data == b"<a>text<b>"
    alone = read(SMALL).batch
    np.testing.assert_array_equal(batch.name, np.concatenate([alone.name, alone.name]))
    assert batch[2].string_value(1) == "hi" and batch[2].attributes(0) == {"x": "1"}
    assert isinstance(batch[1].error, DocumentError) and batch[2].error is None


def test_a_document_alone_is_the_document_read_alone() -> None:
    batch = read_batch([b"<x>0</x>", SMALL, b"<q>bad", SMALL], errors="return")
    for index in (0, 1, 3):
        alone, again = batch[index].alone(), read(batch[index].data).batch
        for column in (
            "parent",
            "depth",
            "end",
            "position",
            "attribute_begin",
            "text_begin",
            "text_end",
            "text_parent",
        ):
            np.testing.assert_array_equal(getattr(alone, column), getattr(again, column), err_msg=column)
        assert [alone.name_of(name) for name in alone.name] == [again.name_of(name) for name in again.name]
        assert alone[0].string_value(0) == again[0].string_value(0)
        assert alone[0].attributes(0) == again[0].attributes(0)
        assert alone[0].data == again[0].data
    assert isinstance(batch[2].alone().errors[0], DocumentError)


def test_a_path_is_read_and_a_missing_one_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "a.xml"
    file.write_bytes(SMALL)
    assert len(read(file)) == 3
    with pytest.raises(DocumentError, match="No such file"):
        read(tmp_path / "b.xml")
    with pytest.raises(LimitError, match="size"):
        read(file, limits=Limits(size=5))


def test_a_str_that_is_no_xml_gets_a_hint() -> None:
    with pytest.raises(DocumentError, match=r"pass a pathlib\.Path"):
        read("news.xml")
    with pytest.raises(DocumentError, match="surrogate"):
        read("<a>\ud800</a>")


@pytest.mark.parametrize("wrong", [{"errors": "ignore"}, {"entities": "yes"}])
def test_misspelt_options_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must be"):
        read_batch([SMALL], **wrong)
    with pytest.raises(LimitError, match="at least 1"):
        Limits(depth=0)
    with pytest.raises(TypeError, match="got int"):
        read(5)  # type: ignore[arg-type]


def test_one_document_is_not_taken_for_several_and_limits_are_limits() -> None:
    with pytest.raises(TypeError, match=r"read_batch\(\) takes a list of documents, got a single \w+; use read\(\)"):
        read_batch("<a/>")
    with pytest.raises(TypeError, match=r"limits must be Limits\(…\) or None, got 5"):
        read("<a/>", limits=5)  # type: ignore[arg-type]


def test_a_str_without_text_is_an_empty_document() -> None:
    with pytest.raises(DocumentError, match="the document is empty"):
        read("")


@pytest.mark.parametrize("name", ["a\0b", "\0", "\ud800", "x\udcff\ud800"])
def test_a_path_that_no_file_can_have_is_an_unreadable_document(name: str) -> None:
    matcher = Subscriptions().compile()
    with pytest.raises(
        DocumentError,
        match="cannot read the file '.*': the name contains a NUL or an invalid character; give another path",
    ) as caught:
        matcher.match(Path(name))
    caught.value.reason.encode()  # the name is spelled out where it can't be printed
    before, refused, after = matcher.match_many([b"<a/>", Path(name), b"<b/>"], errors="return")
    assert isinstance(refused, DocumentError)
    assert not isinstance(before, DocumentError)
    assert not isinstance(after, DocumentError)


def test_an_entry_of_a_folder_listed_as_bytes_is_a_path(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_bytes(b"<a/>")
    (tmp_path / "b.xml.gz").write_bytes(gzip.compress(b"<b/>"))
    (tmp_path / "c.xml").mkdir()
    with os.scandir(os.fsencode(tmp_path)) as entries:
        given: list[Any] = sorted(entries, key=lambda entry: entry.name)
        batch = read_batch(given, errors="return")
    assert [len(document) for document in batch] == [1, 1, 0] and list(batch.errors) == [2]
