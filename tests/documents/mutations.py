"""Documents that are nearly right: valid ones with bytes flipped, cut, spliced, doubled and put in; and random bytes.

Seeds are hand-written documents that use all parts of XML that the scanner reads itself, random ones, generated news
and (where they are at hand) NITF documents. Everything follows from one number.
"""

import functools
import os
import tarfile
from collections.abc import Callable
from pathlib import Path
from random import Random

from pathcast.workloads import generate_documents, news_schema
from tests.generators import random_document

HAND_WRITTEN = (
    b"<a/>",
    b"<a></a>",
    b"<a>text</a>",
    b"<a b='1' c=\"2\"/>",
    b"<a b=\"it's\" c='\"'>x > y ]] z</a>",
    b"<a ><b\t/><c\n></c ></a\r\n>",
    b"<a>&lt;&gt;&amp;&apos;&quot;&#65;&#x42;&#x10FFFF;&#xD7FF;</a>",
    b"<a b='&lt;&#9;&#10;&#xD; \t\n\r\nx'>\r\n\r \rx</a>",
    b"<a>x<![CDATA[<y>&amp;]]>]]<![CDATA[]]>z<![CDATA[]]]]><![CDATA[>\r\n]]></a>",
    b"<a><!-- c --><?p i?>t<!---->u<?q?>v<?r ?></a><!-- after --><?s?>\n",
    b"<?xml version='1.0' encoding=\"UTF-8\" standalone='yes' ?>\r\n<a/>",
    b'\xef\xbb\xbf<?xml version="1.0"?><!-- x --><a/>',
    b"<!DOCTYPE a><a/>",
    b"<!DOCTYPE a SYSTEM 'a.dtd'><a/>",
    b"<!DOCTYPE a PUBLIC \"-//A//B C//EN\" 'http://x/a.dtd' >\n<?p?><a/>",
    b"<!DOCTYPE a [<!ENTITY e 'x'><!ATTLIST a d CDATA 'y'>]><a>&e;</a>",
    b"<a xmlns='urn:u'><b xmlns=''><c/></b></a>",
    b"<p:a xmlns:p='urn:u' p:x='1' x='2'><p:b xmlns:p='urn:v' p:y='3'/><p:c/></p:a>",
    b"<a xmlns:p='u' xmlns:q='u' p:x='1' q:y='2' xml:lang='en' xml:space='preserve'/>",
    b"<q:a q:b='1' xmlns:q='u' xmlns='v'><c q:d=''/></q:a>",
    "<a é='x'>é漢😀\u0085\u2028</a>".encode(),
    "<a b='é漢😀'>é<b/>漢<b/>😀</a>".encode(),
    b"<a.b-c_d1><_a/><A:b xmlns:A='x'/></a.b-c_d1>",
    b"<abcdefg><abcdefgh><abcdefghi/></abcdefgh></abcdefg>",
    b"<abcdefghijklmno><abcdefghijklmnop><abcdefghijklmnopq/></abcdefghijklmnop></abcdefghijklmno>",
    b"<r><x a='1'>one</x><x a='2'>two<y>three</y>four</x><z/></r>",
    b"<a><a><a><a><a><a><a><a/></a></a></a></a></a></a></a>",
    b"<a a0='' a1='' a2='' a3='' a4='' a5='' a6='' a7='' a8='' a9=''/>",
    b"<a%b b%b='%b'>%b</a%b>" % (b"a" * 23, b"b" * 23, b"c" * 33, b"d" * 23, b"a" * 23),
)
TOKENS = (
    b"<", b">", b"/", b"=", b"'", b'"', b"&", b";", b":", b"!", b"?", b"-", b"]", b"[", b"#", b"x", b" ", b"\t", b"\r",
    b"\n", b"\r\n", b"\0", b"\x01", b"\x1f", b"\x7f", b"\x80", b"\xc0\x80", b"\xc1\xbf", b"\xc2\x80", b"\xc3\xa9",
    b"\xc3", b"\xe0\x9f\xbf", b"\xe0\xa0\x80", b"\xed\x9f\xbf", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\xef\xbf\xbd",
    b"\xef\xbf\xbe", b"\xef\xbf\xbf", b"\xf0\x8f\xbf\xbf", b"\xf0\x90\x80\x80", b"\xf0\x9f\x98\x80",
    b"\xf4\x8f\xbf\xbf", b"\xf4\x90\x80\x80", b"\xf5\x80\x80\x80", b"\xff\xfe", b"\xfe\xff", b"\xe2\x80", b"\xf0\x9f",
    b"<a>", b"</a>", b"<a/>", b"</a >", b"<b", b"/>", b"</", b"<p:a", b"</p:a>", b"a:b", b":a", b"a:", b"a:b:c",
    b"<!--", b"-->", b"--", b"--->", b"<!-- x -->", b"<![CDATA[", b"]]>", b"]]", b"<![CDATA[]]>", b"<![CDATA[x]]>",
    b"<?", b"?>", b"<?p?>", b"<?xml", b"<?xml?>", b"<?XmL x?>", b"<?xml version='1.0'?>", b"<?xml-p x?>", b"<?p:q?>",
    b" version='1.1'", b" encoding='utf-8'", b" encoding='UTF-16'", b" encoding='iso-8859-1'", b" standalone='no'",
    b"<!DOCTYPE", b"<!DOCTYPE a>", b"<!DOCTYPE a []>", b" SYSTEM 's'", b" PUBLIC 'p' 's'", b"<!ELEMENT a ANY>", b"[",
    b"]>", b"&lt;", b"&gt;", b"&amp;", b"&apos;", b"&quot;", b"&unknown;", b"&lt", b"&#", b"&#x", b"&#60;", b"&#x3c;",
    b"&#0;", b"&#9;", b"&#13;", b"&#31;", b"&#32;", b"&#xD800;", b"&#xDFFF;", b"&#xE000;", b"&#xFFFD;", b"&#xFFFE;",
    b"&#x10FFFF;", b"&#x110000;", b"&#99999999999999999999;", b"&#X41;", b"&#x00041;", b" b='1'", b' b="2"', b" a='",
    b"b=", b" b = '3' ", b" xmlns='u'", b" xmlns=''", b" xmlns:p='u'", b" xmlns:q='u'", b" xmlns:p=''",
    b" xmlns:xml='x'", b" xmlns:xmlns='x'", b" xmlns:xmlq='x'", b" xmlns='http://www.w3.org/2000/xmlns/'",
    b" xmlns:x='http://www.w3.org/XML/1998/namespace'", b" xmlns:xml='http://www.w3.org/XML/1998/namespace'",
    b" p:b='1'", b" q:b='2'", b" xml:b='3'", b"xmlns", b"xml", b"p:", b"aaaaaaaaaaaaaaaa", b"aaaaaaa",
    b"                ",
)  # fmt: skip

# Typical content between two tags, and inside one.
CONTENT = (
    b"x", b" ", b"\r", b"\r\n", b"]", b"]]", b">", b"'", b'"', b"\xc3\xa9", b"\xf0\x9f\x98\x80", b"\xef\xbf\xbd",
    b"\x7f", b"<a/>", b"<a></a>", b"<a>x</a>", b"<b c='1'>x</b>", b"<!-- - -->", b"<!---->", b"<?p?>", b"<?p ??>",
    b"<![CDATA[]]>", b"<![CDATA[x]]>", b"<![CDATA[\r]]>", b"<![CDATA[]]]]>", b"<![CDATA[<&>]]>", b"&lt;", b"&amp;",
    b"&quot;", b"&#13;", b"&#x10ffff;", b"&#0065;", b"<p:a xmlns:p='u'/>", b"<a xmlns='v'><b/></a>", b"<xml:a/>",
    b"0123456789abcdef", b"=" * 17,
)  # fmt: skip
ATTRIBUTES = (
    b" b='1'", b' c="2"', b" d = '3'", b"\re\n=\t'4'\r\n", b" f=''", b" g='a>b'", b" h=\"it's\"", b" i='&lt;&#60;'",
    b" j='\t\r\n'", b" k='\xc3\xa9'", b" xml:lang='en'", b" xmlns='u'", b" xmlns=''", b" xmlns:p='u'", b" xmlns:q='v'",
    b" p:l='5'", b" xmlns:p='u' p:m='6'", b" xmlns:p='&#117;'", b" n='0123456789abcdef0123456789abcdef'", b" " * 17,
)  # fmt: skip


def seeds(family: str) -> tuple[bytes, ...]:
    """Valid documents of one family: written, drawn, news or nitf."""
    return _FAMILIES[family]()


@functools.cache
def _drawn() -> tuple[bytes, ...]:
    random = Random(1)
    return tuple(random_document(random, size=8).data for _ in range(200))


@functools.cache
def _news() -> tuple[bytes, ...]:
    return tuple(sorted(generate_documents(news_schema(), 60, seed=1), key=len)[:40])


@functools.cache
def _nitf() -> tuple[bytes, ...]:
    beside = Path(__file__).resolve().parents[3] / "shared" / "data"
    folders = [Path(os.environ["PATHCAST_DATA"])] if "PATHCAST_DATA" in os.environ else []
    for folder in (*folders, beside):
        path = folder / "nitf" / "documents.tgz"
        if path.is_file():
            with tarfile.open(path) as archive:
                files = [archive.extractfile(member) for member in archive if member.name.endswith(".xml")]
                contents = [file.read() for file in files if file is not None]
            return tuple(sorted(contents, key=len)[:40])
    return _news()


_FAMILIES: dict[str, Callable[[], tuple[bytes, ...]]] = {
    "written": lambda: HAND_WRITTEN,
    "drawn": _drawn,
    "news": _news,
    "nitf": _nitf,
}


def mutations(seed: int, count: int) -> list[bytes]:
    """Mutated documents, and some of random bytes; the same ones for the same seed."""
    random = Random(seed)
    return [_mutated(random) for _ in range(count)]


def _mutated(random: Random) -> bytes:
    family = random.choices(("written", "drawn", "news", "nitf", ""), (60, 28, 3, 3, 6))[0]
    if not family:
        return _random_bytes(random)
    data = random.choice(seeds(family))
    for _ in range(random.choice((0, 1, 1, 1, 2, 2, 3, 5))):
        data = random.choice(_CHANGES)(random, data, random.choice(seeds(family)))
    return data


def _random_bytes(random: Random) -> bytes:
    form = random.random()
    if form < 0.3:
        return random.randbytes(random.randint(0, 40))
    if form < 0.6:
        return bytes(random.choices(b"<>/='\" &;!-[]?ab:x\r\n\t\0\x80\xc3\xa9", k=random.randint(0, 40)))
    return b"<a>" * (form < 0.8) + b"".join(random.choices(TOKENS, k=random.randint(0, 8))) + b"</a>" * (form < 0.8)


def _range(random: Random, data: bytes) -> tuple[int, int]:
    begin = random.randint(0, len(data))
    return begin, min(len(data), begin + random.choice((1, 1, 2, 3, 5, 8, 16, 40)))


def _flip(random: Random, data: bytes, _: bytes) -> bytes:
    if not data:
        return data
    at = random.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << random.randrange(8)]) + data[at + 1 :]


def _replace(random: Random, data: bytes, _: bytes) -> bytes:
    begin, end = _range(random, data)
    return data[:begin] + random.choice(TOKENS) + data[end:]


def _cut(random: Random, data: bytes, _: bytes) -> bytes:
    begin, end = _range(random, data)
    return data[:begin] + data[end:]


def _truncate(random: Random, data: bytes, _: bytes) -> bytes:
    at = random.randint(0, len(data))
    return data[:at] if random.random() < 0.7 else data[at:]


def _splice(random: Random, data: bytes, other: bytes) -> bytes:
    at = random.randint(0, len(data))
    return data[:at] + other[min(len(other), at) if random.random() < 0.5 else random.randint(0, len(other)) :]


def _double(random: Random, data: bytes, _: bytes) -> bytes:
    begin, end = _range(random, data)
    return data[:end] + data[begin:end] * random.choice((1, 1, 2, 20)) + data[end:]


def _insert(random: Random, data: bytes, _: bytes) -> bytes:
    at = random.randint(0, len(data))
    return data[:at] + random.choice(TOKENS) + data[at:]


def _insert_between_tags(random: Random, data: bytes, _: bytes) -> bytes:
    places = [index for index, byte in enumerate(data) if byte in b"<>/= '\""]
    if not places:
        return data
    at = random.choice(places) + random.randint(0, 1)
    return data[:at] + random.choice(TOKENS) + data[at:]


def _insert_content(random: Random, data: bytes, _: bytes) -> bytes:
    places = [index for index, byte in enumerate(data) if byte == ord("<")]
    if not places:
        return data
    at = random.choice(places)
    return data[:at] + random.choice(CONTENT) + data[at:]


def _insert_attribute(random: Random, data: bytes, _: bytes) -> bytes:
    places = [index for index, byte in enumerate(data) if byte in b" />"]
    if not places:
        return data
    at = random.choice(places)
    return data[:at] + random.choice(ATTRIBUTES) + data[at:]


def _exchange(random: Random, data: bytes, _: bytes) -> bytes:
    places = sorted(random.randint(0, len(data)) for _ in range(4))
    a, b, c, d = places
    return data[:a] + data[c:d] + data[b:c] + data[a:b] + data[d:]


_CHANGES = (
    _flip, _flip, _replace, _replace, _cut, _cut, _truncate, _splice, _double, _insert, _insert,
    _insert_between_tags, _insert_between_tags, _exchange,
    _insert_content, _insert_content, _insert_content, _insert_attribute, _insert_attribute, _insert_attribute,
)  # fmt: skip
