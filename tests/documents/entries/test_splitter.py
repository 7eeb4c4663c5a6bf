"""The splitter against its plain twin and against lxml, on files cut anywhere."""

import re
from collections.abc import Iterable
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from pathcast import Limits
from pathcast.documents import Entry, Splitter, parse_entry_path, read
from tests.documents.entries import plain_splitter
from tests.documents.mutations import ATTRIBUTES, CONTENT, TOKENS
from tests.oracle import read as read_by_lxml

INHERITED = [f"{{http://www.w3.org/XML/1998/namespace}}{each}" for each in ("lang", "space", "base")]
PATHS = ("/feed/entry", "/feed/*", "/feed/g/entry", "/*/*/*", "/feed")


def split(file: bytes, path: str, cuts: Iterable[int] = (), **options: object) -> list[Entry]:
    """The entries of a file in pieces, each scanned on its own."""
    places = sorted({0, len(file), *(cut % (len(file) + 1) for cut in cuts)})
    splitter = Splitter(parse_entry_path(path, "ignore"), Limits(), piece=1, **options)  # type: ignore[arg-type]
    found = [entry for a, b in pairwise(places) for entry in splitter.feed(file[a:b])]
    return found + splitter.finish()


# Files that are well-formed: entries and other elements, with all that may stand between them.

NAMES = ("entry", "g", "p:entry", "q:g", "x")
texts = st.sampled_from(
    ["", "x", "\n  ", "a > b", "&amp;", "]]", "é漢😀", "'\"", "&#62;", "<![CDATA[</entry>]]>", "x" * 70]
)
between = st.sampled_from(
    ["", "\n", "<!-- <entry> -->", "<?p <entry> ?>", "<!---->", "text &lt;", "<![CDATA[<entry>]]>"]
)
attributes = st.lists(
    st.sampled_from(
        ["a='1'", 'b="x>y/>"', "c='it&quot;s'", "xml:lang='en'", "xml:base='b/'", "xml:space='preserve'", "p:d='5'",
         "xmlns='urn:d'", "xmlns=''", "xmlns:p='urn:p2'", "xmlns:r='urn:r&amp;x'", 'e="/"']
    ),
    unique_by=lambda each: each.partition("=")[0],
    max_size=4,
)  # fmt: skip


@st.composite
def elements(draw: st.DrawFn, depth: int) -> str:
    name = draw(st.sampled_from(NAMES))
    tag = " ".join([name, *draw(attributes)])
    inside = ""
    if depth:
        for _ in range(draw(st.integers(0, 4))):
            inside += draw(between) + draw(texts) + draw(elements(depth - 1))
    inside += draw(texts) + draw(between)
    space = draw(st.sampled_from(["", "", " ", "\n"]))
    return f"<{tag}{space}/>" if not inside else f"<{tag}{space}>{inside}</{name}{space}>"


@st.composite
def files(draw: st.DrawFn) -> str:
    doctype = draw(
        st.sampled_from(
            ["", "", "<!DOCTYPE feed>", "<!DOCTYPE feed SYSTEM 'f.dtd'>",
             "<!DOCTYPE feed [<!-- ' ]> --><!ENTITY e '<b>]></b>'><!ATTLIST entry k CDATA '' xmlns:r CDATA 'urn:s'>]>",
             '<!DOCTYPE feed [<!ATTLIST feed xmlns:s CDATA #FIXED "urn:s" xml:lang CDATA "fr">]>']
        )
    )  # fmt: skip
    feed = " ".join(["feed xmlns:p='urn:p' xmlns:q='urn:q'", *(each for each in draw(attributes) if "s:p" not in each)])
    inside = "".join(draw(between) + draw(elements(2)) for _ in range(draw(st.integers(0, 5))))
    comments = draw(st.sampled_from(["", "<!-- <feed> -->\n", "<?p?>"]))
    return f"{comments}{doctype}<{feed}>{inside}{draw(between)}</feed>{comments}"


def selected(tree: etree._ElementTree, path: str) -> list[etree._Element]:
    """The elements that a path of local names selects."""
    steps = path.split("/")[1:]
    here = [tree.getroot()] if steps[0] in ("*", etree.QName(tree.getroot()).localname) else []
    for step in steps[1:]:
        children = (child for each in here for child in each if isinstance(child.tag, str))
        here = [child for child in children if step in ("*", etree.QName(child).localname)]
    return here


def canonical(element: etree._Element) -> tuple[bytes, dict[str | None, str]]:
    """An element as inclusive Canonical XML has it: its canonical form, and the namespaces in scope."""
    scope = {prefix: uri for prefix, uri in element.nsmap.items() if uri}
    return etree.tostring(element, method="c14n", exclusive=True, with_tail=False), scope


def expected(tree: etree._ElementTree, path: str) -> list[tuple[bytes, dict[str | None, str]]]:
    elements = selected(tree, path)
    inherited = [
        {
            key: above.attrib[key]
            for above in [*element.iterancestors()][::-1]
            for key in INHERITED
            if key in above.attrib
        }
        for element in elements
    ]
    for element, values in zip(elements, inherited, strict=True):
        for key, value in values.items():
            if element.get(key) is None:
                element.set(key, value)
    return [canonical(element) for element in elements]


ENCODINGS = {"": "utf-8", "UTF-8": "utf-8-sig", "UTF-16": "utf-16", "utf-16le": "utf-16-le", "windows-1252": "cp1252"}


@pytest.mark.parametrize("path", PATHS)
@given(file=files(), cuts=st.lists(st.integers(0, 1 << 20), max_size=12), encoding=st.sampled_from(sorted(ENCODINGS)))
@settings(max_examples=60)
def test_entries_are_the_elements_that_lxml_selects(path: str, file: str, cuts: list[int], encoding: str) -> None:
    if encoding:
        file = f"<?xml version='1.0' encoding='{encoding}'?>{file}"
    codec = ENCODINGS[encoding]
    data = (("\ufeff" if encoding == "utf-16le" else "") + file).encode(codec, "xmlcharrefreplace")
    entries = split(data, path, cuts, entities="expand")
    tree = read_by_lxml(data)
    if not selected(tree, path) and path != "/feed":
        assert entries == []
        return
    assert [entry.error for entry in entries] == [None] * len(entries)
    assert [canonical(read_by_lxml(entry.document).getroot()) for entry in entries] == expected(tree, path)
    assert [entry.number for entry in entries] == list(range(1, len(entries) + 1))
    form = data.decode(codec.removesuffix("-sig")).encode()
    if codec == "utf-16":
        form = b"\xef\xbb\xbf" + form
    for entry in entries:
        assert form[entry.offset : entry.offset + 1] == b"<"
        assert read(entry.document, entities="expand").name(0).endswith(("entry", "g", "x", "feed"))


# Files with mistakes.


def entry(random: Random) -> bytes:
    attributes = b"".join(random.choices(ATTRIBUTES, k=random.randrange(3)))
    return b"<entry%s>%s</entry>" % (attributes, b"".join(random.choices(CONTENT, k=3)))


def nearly_right(random: Random) -> bytes:
    """A file with entries, then bytes flipped, cut, doubled and put in."""
    others = [b"<g><entry/><x/></g>", b"<g>", b"</g>", b"<entry/>", *CONTENT]
    inside = [random.choice(others) if random.random() < 0.3 else entry(random) for _ in range(random.randrange(6))]
    file = bytearray(random.choice([b"", b"\xef\xbb\xbf", b"<?xml version='1.0'?>\n", b"<!DOCTYPE feed [<!-- ' -->]>"]))
    file += b"<feed>" + b"".join(inside) + b"</feed>\n"
    for _ in range(random.choice([0, 0, 1, 1, 2, 3])):
        at, kind = random.randrange(len(file) + 1), random.randrange(4)
        if kind == 0:
            file[at:at] = random.choice(TOKENS)
        elif kind == 1:
            del file[at : at + random.randrange(1, 9)]
        elif kind == 2:
            file[at : at + 1] = bytes([random.randrange(256)])
        else:
            end = random.randrange(len(file) + 1)
            file[at:at] = file[end : end + random.randrange(20)]
    return bytes(file)


def is_declared_otherwise(file: bytes) -> bool:
    """Whether the file may be in another encoding than UTF-8, which the plain splitter does not read."""
    return b"\0" in file[:4] or file[:2] in (b"\xff\xfe", b"\xfe\xff") or b"encoding" in file


@pytest.mark.parametrize("seed", range(8))
def test_the_plain_splitter_finds_the_same_entries(seed: int) -> None:
    random = Random(seed)
    ended = 0
    for _ in range(300):
        file, path = nearly_right(random), random.choice(PATHS)
        if is_declared_otherwise(file):
            continue
        cuts = (
            [random.randrange(len(file) + 1) for _ in range(random.randrange(8))]
            if random.random() < 0.8
            else range(len(file))
        )
        found = split(file, path, cuts)
        plain = plain_splitter.split(file, path.split("/")[1:])
        assert [entry.error is None for entry in found] == [part.whole for part in plain], file
        for entry, part in zip(found, plain, strict=True):
            raw = b"" if part.begin is None else file[part.begin : part.stop]
            assert part.begin in (None, entry.offset), file
            assert entry.document.endswith(re.sub(rb"<[^\s/>]*", b"", raw, count=1)), file
        ended += bool(plain) and not plain[-1].whole
    assert 40 < ended < 260
