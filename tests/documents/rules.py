"""The rules of XML as documents for the scanner, valid and invalid.

`READ` documents are valid, and the scanner's kernel reads them alone; `PASSED_ON` are valid, but not worth a fast path;
`WRONG` are rejected.
"""

from collections.abc import Iterator

_LONG = b"0123456789abcdefghijklmnopqrstuvwxyz"
_CODES = (
    0x00, 0x01, 0x08, 0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x0E, 0x1F, 0x20, 0x7F, 0x80, 0x85, 0xFF, 0x100, 0x7FF, 0x800,
    0xFFF, 0x1000, 0xD7FF, 0xD800, 0xDBFF, 0xDC00, 0xDFFF, 0xE000, 0xFFFD, 0xFFFE, 0xFFFF, 0x10000, 0x1FFFE, 0x1FFFF,
    0xFFFFF, 0x100000, 0x10FFFD, 0x10FFFE, 0x10FFFF, 0x110000, 1 << 31, 1 << 32, (1 << 32) + 65, (1 << 64) + 65,
)  # fmt: skip


def is_character(code: int) -> bool:
    """XML's own rule (production 2)."""
    return code in {0x9, 0xA, 0xD} or 0x20 <= code < 0xD800 or 0xE000 <= code < 0xFFFE or 0x10000 <= code < 0x110000


def references(right: bool) -> Iterator[bytes]:
    """Every boundary of the character classes, decimal and hexadecimal, in text and in a value."""
    for code in _CODES:
        if is_character(code) == right:
            for form in (f"&#{code};", f"&#x{code:x};", f"&#x{code:X};", f"&#000{code};", f"&#x000{code:x};"):
                yield f"<a b='x{form}y'>x{form}y</a>".encode()
                yield f"<a b='{form}'>{form}</a>".encode()


def encoded(code: int, length: int) -> bytes:
    """A number in the pattern of UTF-8 with this many bytes, valid or not."""
    tail = [0x80 | code >> 6 * k & 0x3F for k in reversed(range(length - 1))]
    return bytes([(0xFF00 >> length & 0xFF) | code >> 6 * (length - 1), *tail])


def characters(right: bool) -> Iterator[bytes]:
    """Boundaries of UTF-8 as bytes: shortest forms of characters are right, all others wrong."""
    for code in _CODES[12:38]:
        needed = 2 + (code >= 0x800) + (code >= 0x10000)
        for length in range(needed, 5):
            if (is_character(code) and length == needed) == right:
                yield from placed(encoded(code, length))
    if not right:
        for end, length in ((0x80, 2), (0x800, 3), (0x10000, 4)):
            yield from placed(encoded(end - 1, length))
            yield from (each for cut in range(1, length) for each in placed(encoded(end, length)[:cut]))
        for lead in (0x80, 0xBF, 0xC0, 0xC1, 0xF5, 0xF8, 0xFC, 0xFE, 0xFF):
            yield from placed(bytes([lead]))
            yield from placed(bytes([lead, 0x80, 0x80, 0x80]))


def placed(written: bytes) -> Iterator[bytes]:
    """Some bytes wherever a character may stand."""
    yield b"<a>%b</a>" % written
    yield b"<a>text before%btext after</a>" % written
    yield b"<a>&lt;%b&lt;</a>" % written
    yield b"<a b='%b'/>" % written
    yield b"<a b='&lt;%b'/>" % written
    yield b"<a><![CDATA[%b]]></a>" % written
    yield b"<a><!--%b--></a>" % written
    yield b"<a><?p %b?></a>" % written


READ: dict[str, list[bytes]] = {
    "elements": [
        b"<a/>", b"<a />", b"<a\t\r\n/>", b"<a></a>", b"<a ></a >", b"<a></a\n\t\r >", b" \r\n\t<a/> \r\n\t",
        b"<a><b/><b></b><c><d/></c></a>", b"<_/>", b"<a-/>", b"<a.1_-/>", b"<A><a/></A>",
        b"<a>" * 1000 + b"</a>" * 1000,
    ],
    "names of many lengths": [
        b"<%b><%b%b=''/></%b  >" % (name, name, b" " + name, name)
        for name in (b"n" * length for length in range(1, 41))
    ] + [b"<a%b><a%b/></a%b>" % (_LONG[:n], _LONG[:n] + b"x", _LONG[:n]) for n in range(36)],
    "attributes": [
        b"<a b=''/>", b'<a b=""/>', b"<a b='c' />", b"<a b\t=\n'c'\r/>", b"<a b='\"' c=\"'\"/>",
        b"<a b='a>b/>' c='/'/>", b"<a b='%b' c='%b'/>" % (_LONG, _LONG),
        b"<a%b/>" % b"".join(b" a%d='%d'" % (n, n) for n in range(300)), b"<a b='\x7f'/>",
        b"<a b='%b\"%b'/>" % (b"x" * 15, b"y" * 16), b"<a a='1' A='2'/>",
    ],
    "attribute values are normalised": [
        b"<a b=' x  y '/>", b"<a b='\tx\ny\rz\r\nw\n\rv'/>", b"<a b='&#9;&#10;&#13;&#32;'/>", b"<a b='\r\n\r\n'/>",
        b"<a b='&lt;&gt;&amp;&apos;&quot;'/>", b"<a b='\"&#34;&#39;\"'/>", b"<a b='\r'/>", b"<a b='x\r'/>",
        b"<a b='%b&amp;%b'/>" % (_LONG, _LONG), b"<a b='&amp;' c='&lt;' d='x'/>",
    ],
    "text": [
        b"<a>x</a>", b"<a> </a>", b"<a>x<b/>y<b/>z</a>", b"<a><b>x</b></a>", b"<a>]</a>", b"<a>]]</a>", b"<a>]]]</a>",
        b"<a>]x]>]] ></a>", b"<a>]]&gt;</a>", b"<a>]]&#62;</a>", b"<a>x>y\"'=z</a>", b"<a>\x7f</a>", b"<a>&amp;</a>",
        b"<a>&amp;&lt;</a>", b"<a>x&amp;y</a>", b"<a>&amp;<b/>&lt;</a>", b"<a>%b</a>" % (b"x" * 100), b"<a>\t\n</a>",
        b"<a>]]<!---->></a>", b"<a>]]<?p?>></a>", "<a>é]é]]é</a>".encode(),
    ],
    "line ends": [
        b"<a>\r</a>", b"<a>\r\n</a>", b"<a>\n\r</a>", b"<a>\r\r\n\n</a>", b"<a>x\ry\r\nz\nw</a>",
        b"<a>&#13;\n&#13;&#10;</a>", b"<a>x\r<b/>\r</a>", b"\r\n<a\r/>\r", b"<a><!--\r--><?p \r\n?></a>",
        b"<a>\r&#10;</a>",
    ],
    "CDATA": [
        b"<a><![CDATA[]]></a>", b"<a><![CDATA[x]]></a>", b"<a>x<![CDATA[]]>y</a>", b"<a><![CDATA[]]>x</a>",
        b"<a>x<![CDATA[y]]>z</a>", b"<a><![CDATA[x]]><![CDATA[y]]></a>", b"<a><![CDATA[x]]><b/><![CDATA[y]]></a>",
        b"<a><![CDATA[<b>&amp;</b>]]></a>", b"<a><![CDATA[]]]></a>", b"<a><![CDATA[]]]]></a>",
        b"<a><![CDATA[]]]]]></a>", b"<a><![CDATA[]>]] >]]></a>", b"<a><![CDATA[\r]]></a>", b"<a><![CDATA[\r\n]]></a>",
        b"<a><![CDATA[x\r\ny\rz]]></a>", b"<a>x<![CDATA[\r]]>\r\ny</a>", b"<a>&amp;<![CDATA[&amp;]]>&amp;</a>",
        b"<a><![CDATA[]]><![CDATA[]]></a>", b"<a><![CDATA[x]]><!----><![CDATA[y]]></a>", b"<a><![CDATA[[CDATA[]]></a>",
        b"<a>]]<![CDATA[>]]></a>", b"<a>x<![CDATA[y]]>&#13;<![CDATA[]]>\r<b/>z</a>",
        "<a>é<![CDATA[é\r]]>é</a>".encode(), b"<a><![CDATA[\t\n\x7f]]></a>",
    ],
    "comments": [
        b"<!----><a/>", b"<a/><!-- x -->", b"<a><!--x--></a>", b"<a>x<!---->y</a>", b"<a>x<!----><!---->y</a>",
        b"<a><!--->--></a>", b"<a><!-->--></a>", b"<a><!-- - - --></a>", b"<a><!--<b>&amp;]]>--></a>",
        b"<!--\n--><!----><a/>", b"<a><!--\t\r\n\x7f--></a>",
    ],
    "processing instructions": [
        b"<?p?><a/>", b"<a/><?p?>", b"<a><?p x y?></a>", b"<a>x<?p?>y</a>", b"<a><?p ?></a>", b"<a><?p ??></a>",
        b"<a><?p ? >?></a>", b"<?xml-stylesheet href='x'?><a/>", b"<?xmlx?><a/>", b"<?xm?><a/>",
        b"<a><?p <b>&amp;?></a>", b"<?p\r\n?><a/>", b"<?ymm?><a/>", b"<a><?p \t\r\n\x7f?></a>",
    ],
    "the XML declaration": [
        b"<?xml version='1.0'?><a/>", b'<?xml version="1.0"?><a/>', b"<?xml\tversion\r=\n'1.0'\t?><a/>",
        b"<?xml version='1.0' encoding='utf-8'?><a/>", b"<?xml version='1.0' encoding='UTF-8' ?><a/>",
        b"<?xml version='1.0' encoding='Utf-8' standalone='yes'?><a/>", b"<?xml version='1.0' standalone='no'?><a/>",
        b"<?xml version='1.0' standalone = \"yes\" ?>\n<a/>", b"<?xml version='1.0' encoding='UTF8'?><a/>",
    ],
    "the byte-order mark": [
        b"\xef\xbb\xbf<a/>", b"\xef\xbb\xbf<?xml version='1.0'?><a/>", b"\xef\xbb\xbf \n<a><b/></a>",
        b"\xef\xbb\xbf<!DOCTYPE a><a/>", "<a>\ufeff</a>".encode(),
        b"\xef\xbb\xbf<?xml version='1.0' encoding='utf-8'?><a/>",
    ],
    "DOCTYPE": [
        b"<!DOCTYPE a><a/>", b"<!DOCTYPE a ><a/>", b"<!DOCTYPE b><a/>", b"<!DOCTYPE a SYSTEM 'x'><a/>",
        b"<!DOCTYPE a SYSTEM ''><a/>", b'<!DOCTYPE\ta\nSYSTEM\r"x y>z"\t><a/>', b"<!DOCTYPE a PUBLIC '' ''><a/>",
        b"<!DOCTYPE a PUBLIC \"-//W3C//DTD X 1.0//EN\" 'http://x/y.dtd'><a/>", b"<!--x--><!DOCTYPE a><?p?><a/>",
        b"<!DOCTYPE a PUBLIC 'abc XYZ 019 -()+,./:=?;!*#@$_%' 'x'><a/>",
    ],
    "namespaces": [
        b"<a xmlns='u'/>", b"<a xmlns='u'><b/></a>", b"<a xmlns='u'><b xmlns='v'><c/></b><d/></a>", b"<a xmlns=''/>",
        b"<a xmlns='u'><b xmlns=''><c/></b><d/></a>", b"<p:a xmlns:p='u'/>", b"<p:a xmlns:p='u'><p:b/><c/></p:a>",
        b"<p:a xmlns:p='u'><p:a xmlns:p='v'><p:a/></p:a><p:a/></p:a>", b"<a xmlns:p='u' p:x='1' x='2'/>",
        b"<a p:x='1' xmlns:p='u'/>", b"<p:a p:x='1' xmlns='v' xmlns:p='u' y='2'/>", b"<a xmlns='u' x='1'/>",
        b"<a xmlns:p='u' xmlns:q='u'><p:b x='1' q:x='2'/></a>", b"<a xmlns:p='u' xmlns:q='v' p:x='1' q:x='2'/>",
        b"<a xml:lang='en'/>", b"<xml:a/>", b"<a xml:a='1' a='2'/>", b"<a xmlns='xml'/>", b"<a xmlns='{}' x='1'/>",
        b"<a xmlns:p='u'><b xmlns:q='v'/><b xmlns:q='w'><q:c/></b></a>", b"<a xmlns='u'><p:b xmlns:p='u'/><b/></a>",
        b"<a xmlnsx='1' xmln='2' xm='3'/>", b"<p:xmlns xmlns:p='u'/>", b"<a xmlns:p='u' p:xmlns='1'/>",
        b"<a xmlns:XML='u'><XML:b/></a>", b"<a xmlns='http://www.w3.org/XML/1998/namespaceX'/>",
        b"<a xmlns='http://www.w3.org/1999/xhtml'/>", b"<a xmlns:p='u'/><!-- -->",
        b"<a xmlns:pp='u' xmlns:p='v' pp:x='1' p:x='2'/>",
        b"<%b:a xmlns:%b='%b'/>" % (b"p" * 30, b"p" * 30, b"u" * 500), b"<a xmlns='u\"v'/>",
        b"<a%b><p63:b/></a>" % b"".join(b" xmlns:p%d='%d'" % (n, n) for n in range(64)),
        b"<a>" + b"<b%b/>" % b"".join(b" xmlns:p%d='%d'" % (n, n) for n in range(60)) * 3 + b"</a>",
    ],
    "character references": list(references(right=True)),
    "UTF-8": list(characters(right=True)),
    "more own names than the table has room for": [b"<a>%b</a>" % b"".join(b"<n%d/>" % n for n in range(5000))],
}  # fmt: skip

PASSED_ON: dict[str, list[bytes]] = {
    "names beyond ASCII": ["<é/>".encode(), "<a é='1'/>".encode(), "<aé/>".encode(), "<?é?><a/>".encode()],
    "a colon in other names": [b"<!DOCTYPE a:b><a/>"],
    "internal subsets": [b"<!DOCTYPE a []><a/>", b"<!DOCTYPE a [<!ATTLIST a b CDATA 'c'>]><a/>"],
    "DOCTYPE": [b"<!DOCTYPE a SYSTEM 'x<&'><a/>", "<!DOCTYPE a SYSTEM 'é\n'><a/>".encode()],
    "other encodings": [
        "<a>é</a>".encode("utf-16"), b"<?xml version='1.0' encoding='iso-8859-1'?><a>\xe9</a>",
        b"<?xml version='1.0' encoding='us-ascii'?><a/>", "<a/>".encode("utf-16-le").join((b"\xff\xfe", b"")),
    ],
    "namespaces": [
        b"<a xmlns='&#117;'><b/></a>", "<a xmlns='é'/>".encode(), b"<a xmlns=' \t'/>", b"<a xmlns:xmlfoo='u'/>",
        b"<a xmlns:xml='http://www.w3.org/XML/1998/namespace'/>", b"<a xmlns='http://www.w3.org/2000/xmlns.'/>",
        b"<a%b/>" % b"".join(b" xmlns:p%d='%d'" % (n, n) for n in range(65)),
        b"<a>" * 70 + b"<p:b xmlns:p='%b'/>" % (b"u" * 9000) + b"</a>" * 70,
    ],
}  # fmt: skip

WRONG: dict[str, list[bytes]] = {
    "nothing": [b"", b" ", b"\n", b"\xef\xbb\xbf", b"<!---->", b"<?p?>", b"<!DOCTYPE a>", b"\0", b"x"],
    "elements": [
        b"<a>", b"<a", b"<", b"</a>", b"<a/", b"<a></a", b"<a></b>", b"<a></aa>", b"<aa></a>", b"<a><b></a></b>",
        b"<a/><a/>", b"<a/></a>", b"<a></a></a>", b"<a><b></a>", b"< a/>", b"<a></ a>", b"<a / >", b"<a//>", b"<1/>",
        b"<-/>", b"<./>", b"<a/>x", b"x<a/>", b"<a/>\0", b"<a\0/>", b"<a/>&lt;", b"<a/>]]>", b"<a/><![CDATA[]]>",
        b"<![CDATA[]]><a/>", b"<a></a b='1'>", b"<a></A>", b"<a></a/>", b"<>", b"</>", b"<a></>", b"<a><</a>", b"<a/ >",
        b"<a<b/>", b"<a>" * 20, b"<abcdefghijklmnopq></abcdefghijklmnopr>",
        b"<abcdefghijklmnopqrs></abcdefghijklmnopqr>", b"<a>\0</a>",
    ],
    "attributes": [
        b"<a b/>", b"<a b=/>", b"<a b=c/>", b"<a b='c/>", b"<a b='c\"/>", b"<a b='<'/>", b"<a b='&'/>",
        b"<a b='1'c='2'/>", b"<a b='1' b='1'/>", b"<a b='1' c='2' b='3'/>", b"<a 'b'/>", b"<a ='b'/>", b"<a b='\0'/>",
        b"<a b='\x01'/>", b"<a b'1'/>", b"<a b=='1'/>", b"<a b=''''/>", b"<a 1='2'/>", b"<a b='&lt'/>",
        b"<a b='\x1f'/>", b"<a b='&lt;<'/>", b"<a b='&lt;\x08'/>", b"<a b='&unknown;'/>", b"<ab='1'/>", b"<a/b='1'>",
    ],
    "references": [
        b"<a>&</a>", b"<a>& </a>", b"<a>&;</a>", b"<a>&lt</a>", b"<a>&lt ;</a>", b"<a>&LT;</a>", b"<a>&nbsp;</a>",
        b"<a>&ltx;</a>", b"<a>&#;</a>", b"<a>&#x;</a>", b"<a>&#a;</a>", b"<a>&#xg;</a>", b"<a>&#X41;</a>",
        b"<a>&# 65;</a>", b"<a>&#65</a>", b"<a>&#x41</a>", b"<a>&#-65;</a>", b"<a>&#6 5;</a>", b"<a>&amp</a>",
        b"<a>&apo;</a>", b"<a>&quo;</a>", b"<a>&am;</a>", b"<a>&it;</a>", b"<a>&g;</a>", b"<a>&", b"<a>&#", b"<a>&#x",
        b"<a>&l", b"<a>&lt;", b"<a>&#6", b"<a>&amp;&</a>",
    ],
    "text": [
        b"<a>]]></a>", b"<a>x]]>y</a>", b"<a>]]]></a>", b"<a>&lt;]]></a>", b"<a>\x01</a>", b"<a>\x0b</a>",
        b"<a>\x1f</a>", "<a>é]]></a>".encode(), b"<a>%b]]></a>" % (b"x" * 14),
    ],
    "CDATA": [
        b"<a><![CDATA[</a>", b"<a><![CDATA[]]</a>", b"<a><![CDATA[]]>]]></a>", b"<a><![cdata[]]></a>",
        b"<a><![CDATA []]></a>", b"<a><! [CDATA[]]></a>", b"<a><![CDATA[\0]]></a>", b"<a><![CDATA[\x0c]]></a>",
        b"<a><![CDAT[]]></a>", b"<a><![CDATA[]] ></a>", b"<a><![", b"<a><![CDATA[", b"<a><![CDATA[]", b"<a><![CDATA[]]",
        b"<a><![CDATA[]]>",
    ],
    "comments": [
        b"<a><!-- -- --></a>", b"<a><!-----></a>", b"<a><!-- --- --></a>", b"<a><!--></a>", b"<a><!-</a>",
        b"<a><!-- -->-></a", b"<a/><!--", b"<a/><!-- -", b"<a/><!-- --", b"<a><!--\x01--></a>", b"<a><! -- --></a>",
        b"<!- --><a/>", b"<a><!---", b"<a><!--->", b"<a <!-- -->/>",
    ],
    "processing instructions": [
        b"<?xml?><a/>", b"<a/><?xml?>", b"<a><?xml version='1.0'?></a>", b"<a><?XML?></a>", b"<a><?Xml x?></a>",
        b"<a><?xmL?></a>", b"<??><a/>", b"<? p?><a/>", b"<?p><a/>", b"<?p", b"<?p ", b"<?p ?", b"<?1?><a/>",
        b"<?p\x01?><a/>", b"<?p \x01?><a/>", b"<?p'?><a/>", b" <?xml version='1.0'?><a/>",
        b"<!----><?xml version='1.0'?><a/>", b"<?p:?><a/>", b"<?:p?><a/>", b"<?p:q?><a/>",
    ],
    "the XML declaration": [
        b"<?xml ?><a/>", b"<?xml version='1.1'?><a/>", b"<?xml version='1.00'?><a/>", b"<?xml version='1.0\"?><a/>",
        b"<?xml version=1.0?><a/>", b"<?xml version='1.0'encoding='utf-8'?><a/>",
        b"<?xml version='1.0'standalone='yes'?><a/>", b"<?xml version='1.0' encoding='utf-8'standalone='no'?><a/>",
        b"<?xml version='1.0' standalone='no'x?><a/>", b"<?xml encoding='utf-8'?><a/>",
        b"<?xml version='1.0' standalone='maybe'?><a/>", b"<?xml version='1.0' standalone='YES'?><a/>",
        b"<?xml version='1.0'", b"<?xml version='1.0' standalone='yes' encoding='utf-8'?><a/>",
        b"<?xml version='1.0' encoding=''?><a/>",
        b"<?xml version='1.0' x='1'?><a/>", b"<?XML version='1.0'?><a/>", b"<?xml version='1.0' version='1.0'?><a/>",
        b"<?xml version='1.0'><a/>", b"<?xml version='1.0' ? ><a/>", b"<?xml version='1.0' encoding='utf-7'?><a/>",
        b"<?xml version='1.0' standalone='yes", b"<?xml version='1.0' standalone='yesno'?><a/>",
        b"<?xml VERSION='1.0'?><a/>", b"<?xml version='1.0' encoding='utf-16'?><a/>", b"<?xml version='1.0'?>",
        b"\xef\xbb\xbf<?xml version='1.0' encoding='iso-8859-1'?><a/>",
    ],
    "the byte-order mark": [
        b"\xef\xbb<a/>", b"\xef\xbb\xbf\xef\xbb\xbf<a/>", b"<a/>\xef\xbb\xbf", b" \xef\xbb\xbf<a/>", b"\xff\xfe<a/>",
    ],
    "DOCTYPE": [
        b"<!DOCTYPE><a/>", b"<!DOCTYPE ><a/>", b"<!DOCTYPEa><a/>", b"<!doctype a><a/>", b"<a/><!DOCTYPE a>",
        b"<a><!DOCTYPE a></a>", b"<!DOCTYPE a><!DOCTYPE a><a/>", b"<!DOCTYPE a SYSTEM><a/>",
        b"<!DOCTYPE a SYSTEM'x'><a/>", b"<!DOCTYPE a SYSTEM 'x\"><a/>", b"<!DOCTYPE a PUBLIC 'x'><a/>",
        b"<!DOCTYPE a PUBLIC 'x''y'><a/>", b"<!DOCTYPE a PUBLIC '{' 'y'><a/>", b"<!DOCTYPE aSYSTEM 'x'><a/>",
        b"<!DOCTYPE a PUBLIC'x' 'y'><a/>", b"<!DOCTYPE a system 'x'><a/>", b"<!DOCTYPE a SYSTEM 'x' 'y'><a/>",
        b"<!DOCTYPE a b><a/>", b"<!DOCTYPE a SYSTEM 'x'<a/>", b"<!DOCTYPE a", b"<!DOCTYPE a SYSTEM 'x",
        b"<!DOCTYPE a PUBLIC 'x' 'y", b"<!DOCTYPE a SYSTEM x><a/>", b"<!DOCTYPE a PUBLIC \"a'b{\" 'y'><a/>",
        b"<!DOCTYPE a [<!ENTITY e 'x'>]><a/>",
    ],
    "namespaces": [
        b"<p:a/>", b"<a p:b='1'/>", b"<a><p:b xmlns:p='u'/><p:c/></a>", b"<a xmlns:p=''/>",
        b"<a xmlns:p='u'><b xmlns:p=''/></a>", b"<a xmlns:xml='u'/>", b"<a xmlns:xmlns='u'/>",
        b"<a xmlns='http://www.w3.org/XML/1998/namespace'/>", b"<a xmlns:p='http://www.w3.org/XML/1998/namespace'/>",
        b"<a xmlns='http://www.w3.org/2000/xmlns/'/>", b"<a xmlns:p='http://www.w3.org/2000/xmlns/'/>",
        b"<a xmlns='u' xmlns='u'/>", b"<a xmlns:p='u' xmlns:p='v'/>", b"<a xmlns:p='u' xmlns:q='u' p:x='1' q:x='2'/>",
        b"<a q:x='1' p:x='2' xmlns:p='u' xmlns:q='u'/>", b"<a xml:x='1' xml:x='2'/>", b"<a:/>", b"<:a/>",
        b"<a:b:c xmlns:a='u'/>", b"<a :b='1'/>", b"<a b:='1'/>", b"<a xmlns:='u'/>", b"<a:1 xmlns:a='u'/>",
        b"<xmlns:a/>", b"<a xmlns:p='u'><p:b></b></a>", b"<p:a xmlns:p='u' xmlns:q='u'></q:a>",
        b"<a xmlns:p='u' p:x='1' p:x='2'/>", b"<a:b xmlns:a='u'></a:c>",
        b"<a xmlns:p='u'><b xmlns:q='u' p:x='1' q:x='2'/></a>", b"<a xmlns:xml='http://www.w3.org/2000/xmlns/'/>",
    ],
    "character references": list(references(right=False)),
    "UTF-8": list(characters(right=False)),
}  # fmt: skip
