"""Encodings: a document is read as its UTF-8 form is, and keeps its bytes; unsafe encodings are rejected by name."""

import codecs
import unicodedata

import pytest
from lxml import etree

from pathcast import DocumentError, LimitError, Limits, Subscriptions
from pathcast.documents import Document, read
from pathcast.documents.character_encodings import _CODECS, codec_of
from pathcast.routing.well_formed_document_truncation import cut
from tests.documents.declared import KNOWN

# Text in ISO-2022-KR begins with an escape sequence, so that no declaration can; Python's encoders of two others write
# spaces as bytes that are not ASCII.
WRITABLE = sorted(_CODECS - {"iso2022_kr", "mac_arabic", "mac_farsi"})


def characters(codec: str) -> str:
    """Some characters of an encoding beyond ASCII, letters first."""
    found = []
    for point in (*range(0xA0, 0x600), *range(0x3041, 0x3090), *range(0x4E00, 0x4E80), *map(ord, "가나다라마바사€")):
        try:
            if chr(point).encode(codec).decode(codec) == chr(point):
                found.append(chr(point))
        except UnicodeError:
            continue
    letters = [each for each in found if unicodedata.category(each) in ("Ll", "Lu", "Lo")]
    return "".join([*letters[:40], *found[-20:]])


def written(codec: str, name: str) -> tuple[str, bytes]:
    words = characters(codec)
    letter = next((each for each in words if "À" <= each <= "ÿ" and each not in "×÷"), "e")
    text = f"<?xml version='1.0' encoding='{name}'?>\n<r {letter}='{words}'>x{words}\n<b{letter}/>{words}</r>"
    return text, text.encode(codec)


def content(document: Document) -> list[object]:
    return [
        (document.name(n), document.attributes(n), document.text_nodes(n), document.location(n), document.path(n))
        for n in range(len(document))
    ]


@pytest.mark.slow
@pytest.mark.parametrize("codec", WRITABLE)
def test_a_document_is_read_as_its_utf8_form_is(codec: str) -> None:
    text, data = written(codec, codec)
    document = read(data)
    assert content(document) == content(read(text))
    assert document.data == data
    assert document.utf8.removeprefix("\ufeff".encode()) == text.encode()


@pytest.mark.parametrize(
    ("codec", "name"),
    [
        ("cp1252", "windows-1252"), ("iso8859_15", "ISO-8859-15"), ("koi8_r", "KOI8-R"), ("shift_jis", "Shift_JIS"),
        ("euc_jp", "EUC-JP"), ("gb18030", "GB18030"), ("big5", "Big5"), ("euc_kr", "EUC-KR"),
        ("iso2022_jp", "ISO-2022-JP"), ("utf_16", "UTF-16"), ("utf_32", "UTF-32"),
        ("latin_1", "latin1"), ("ascii", "ascii"), ("utf_8", "utf8"),
        ("cp1251", "windows-1251"), ("iso8859_7", "ISO-8859-7"),
    ],
)  # fmt: skip
def test_a_document_is_read_as_libxml2_reads_it(codec: str, name: str) -> None:
    _, data = written(codec, name)
    tree, document = etree.fromstring(data), read(data)
    assert [element.tag for element in tree.iter()] == [document.name(n) for n in range(len(document))]
    assert dict(tree.attrib) == document.attributes(0)
    assert "".join(tree.itertext()) == document.string_value(0)


@pytest.mark.parametrize(
    "name", ["utf8", "UTF8", "latin1", "Latin-1", "l1", "ascii", "ASCII", "cp1252", "ISO-10646-UCS-2"]
)
def test_an_alias_names_the_encoding(name: str) -> None:
    data = f"<?xml version='1.0' encoding='{name}'?><a>e</a>".encode("utf-16" if "UCS" in name else "ascii")
    assert read(data).string_value(0) == "e"


def test_the_list_of_encodings_is_what_python_knows_but_for_stated_exceptions() -> None:
    texts = set()
    for name in KNOWN:
        try:
            info = codecs.lookup(name)
        except LookupError:
            continue
        texts |= {info.name} if info._is_text_encoding else set()
    left_out = {
        "utf-7",
        "utf-8-sig",
        "idna",
        "punycode",
        "unicode-escape",
        "raw-unicode-escape",
        "charmap",
        "undefined",
    }
    assert {codecs.lookup(codec).name for codec in _CODECS} == texts - left_out


@pytest.mark.parametrize(
    "name",
    ["utf-7", "UTF7", "unicode-1-1-utf-7", "idna", "punycode", "unicode_escape", "undefined", "zlib", "hex", "rot13"],
)
def test_what_is_no_safe_encoding_of_text_is_refused_by_name(name: str) -> None:
    assert codec_of(name) is None
    with pytest.raises(DocumentError, match=f"encoding '{name}' is not supported; convert the document to UTF-8"):
        read(f"<?xml version='1.0' encoding='{name}'?><a/>".encode())


def test_utf7_can_not_hide_markup() -> None:
    with pytest.raises(DocumentError, match="encoding 'utf-7' is not supported"):
        read(b"<?xml version='1.0' encoding='utf-7'?><a>+ADw-secret/+AD4-</a>")


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("declared", ["", "<?xml version='1.0' encoding='UTF-32'?>"])
@pytest.mark.parametrize("codec", ["utf-32-le", "utf-32-be"])
def test_utf32_is_detected_by_its_first_bytes(mark: str, declared: str, codec: str) -> None:
    assert read(f"{mark}{declared}<a>é😀</a>".encode(codec)).string_value(0) == "é😀"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (
            b"<?xml version='1.0' encoding='utf-16'?><a/>",
            "the document declares encoding 'utf-16', but its bytes are in utf-8; correct the declaration",
        ),
        (
            b"<?xml version='1.0' encoding='cp037'?><a/>",
            "the document declares encoding 'cp037', but its bytes are in utf-8; correct the declaration",
        ),
        (
            "<?xml version='1.0' encoding='cp1252'?><a/>".encode("utf-16"),
            "the document declares encoding 'cp1252', but its bytes are in utf-16-le; correct the declaration",
        ),
        (
            "<?xml version='1.0' encoding='utf-16be'?><a/>".encode("utf-16-le"),
            "the document declares encoding 'utf-16be', but its bytes are in utf-16-le; correct the declaration",
        ),
        (
            b"\xef\xbb\xbf<?xml version='1.0' encoding='cp1252'?><a/>",
            "the byte order mark means UTF-8, but the document declares encoding 'cp1252'; declare UTF-8",
        ),
        (
            "<?xml version='1.0'?><a/>".encode("cp037"),
            "the document is in EBCDIC but declares no encoding; add encoding='…' to its declaration",
        ),
    ],
)
def test_bytes_that_contradict_the_declaration_are_refused(data: bytes, reason: str) -> None:
    with pytest.raises(DocumentError) as caught:
        read(data)
    assert caught.value.reason == reason


@pytest.mark.parametrize(
    ("name", "bad", "what"),
    [
        ("windows-1252", b"\x81", "byte 0x81 at offset 52 is not valid in cp1252"),
        ("us-ascii", b"\xe9", "byte 0xe9 at offset 52 is not valid in ascii"),
        ("shift_jis", b"\x83<", "byte 0x83 at offset 52 is not valid in shift_jis"),
    ],
)
def test_a_byte_that_the_encoding_lacks_is_refused_with_its_offset(name: str, bad: bytes, what: str) -> None:
    declaration = f"<?xml version='1.0' encoding='{name}'?>".encode()
    with pytest.raises(DocumentError) as caught:
        read(declaration + b" " * (49 - len(declaration)) + b"<a>" + bad + b"</a>")
    assert caught.value.reason.startswith(what)


def test_the_size_limit_holds_for_the_utf8_form_too() -> None:
    data = b"<?xml version='1.0' encoding='windows-1252'?><a>" + b"\x80" * 1000 + b"</a>"
    assert len(read(data, limits=Limits(size=3100)).string_value(0)) == 1000
    with pytest.raises(
        LimitError, match=r"3,\d+ bytes in UTF-8; the limit is 1,100 \(raise the limit with Limits\(size=…\)\)"
    ):
        read(data, limits=Limits(size=1100))


def test_a_str_that_holds_nul_characters_is_not_taken_for_another_encoding() -> None:
    with pytest.raises(DocumentError, match="not well-formed"):
        read("<\0a\0/\0>\0")


@pytest.mark.parametrize("codec", ["cp1252", "shift_jis", "utf_16", "iso2022_jp", "cp037"])
def test_a_document_is_cut_within_its_encoding(codec: str) -> None:
    words = characters(codec)[:10]
    text = f"<?xml version='1.0' encoding='{codec}'?><a>{words}<b>{words}<c/></b></a>"
    document = read(text.encode(codec))
    part = read(cut(document, 2))
    assert [part.name(n) for n in range(len(part))] == ["a", "b"]
    assert part.string_value(0) == words + words


def test_values_in_other_encodings_match_and_are_explained() -> None:
    subscriptions = Subscriptions()
    subscriptions.add_many(["//名[. = '東京']", "//b[@x = '€']"])
    matcher = subscriptions.compile()
    documents = [
        "<?xml version='1.0' encoding='Shift_JIS'?><a><名>東京</名></a>".encode("shift_jis"),
        "<?xml version='1.0' encoding='windows-1252'?>\n<a>é<b x='€'/></a>".encode("cp1252"),
        "<a><b x='€'/></a>".encode(),
    ]
    assert [each.ids.tolist() for each in matcher.match_many(documents)] == [[1], [2], [2]]
    assert "line 2, column 5" in str(matcher.explain(documents[1], 2))
