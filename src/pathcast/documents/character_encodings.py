"""Encodings: the bytes of a document as UTF-8, whatever encoding they are in.

    bytes ──first bytes──▶ UTF-8, UTF-16, UTF-32 or EBCDIC ──declaration──▶ codec ──decode, encode──▶ UTF-8

The first bytes show the family, as in appendix F of XML 1.0; then the XML declaration can be read, and it names the
encoding. All other code sees only the UTF-8 form, so the XML parser never looks up an encoding by an untrusted name.
Python decodes; an encoding is supported if `_CODECS` lists it. The list deliberately omits:

- UTF-7: it can spell `<` as `+ADw-`, so that markup looks like text to every reader that does not know UTF-7;
- `idna`, `punycode`, `unicode_escape`, `raw_unicode_escape`, `charmap`, `undefined`: not encodings of documents;
- `mbcs`, `oem`: their meaning depends on the machine;
- codecs that other packages register, and codecs from bytes to bytes (`zlib`, `base64`): not text, or not known.

Invariant: the result has the same text as the original, and its declaration is the one that was read.
Cost: nothing for UTF-8; otherwise one decoding and one encoding, up to 7 bytes per byte of document meanwhile.
"""

import codecs
import re
from encodings import normalize_encoding
from encodings.aliases import aliases

from pathcast.errors import DocumentError

from .document_limits import Limits

UTF_8 = "utf-8"
_BOM = b"\xef\xbb\xbf"
# Formatted as a table by family: one codec per line would take ninety lines.
_CODECS = frozenset({
    "ascii", "latin_1", "utf_8", "utf_16", "utf_16_be", "utf_16_le", "utf_32", "utf_32_be", "utf_32_le",
    "iso8859_1", "iso8859_2", "iso8859_3", "iso8859_4", "iso8859_5", "iso8859_6", "iso8859_7", "iso8859_8",
    "iso8859_9", "iso8859_10", "iso8859_11",
    "iso8859_13", "iso8859_14", "iso8859_15", "iso8859_16",
    "cp1250", "cp1251", "cp1252", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "cp1258",
    "cp437", "cp720", "cp737", "cp775", "cp850", "cp852", "cp855", "cp856", "cp857", "cp858", "cp860", "cp861",
    "cp862", "cp863", "cp864", "cp865", "cp866", "cp869", "cp874",
    "cp1006", "cp1125", "koi8_r", "koi8_t", "koi8_u", "kz1048", "ptcp154", "tis_620", "hp_roman8", "palmos",
    "mac_arabic", "mac_croatian", "mac_cyrillic", "mac_farsi", "mac_greek", "mac_iceland", "mac_latin2",
    "mac_roman", "mac_romanian", "mac_turkish",
    "cp037", "cp273", "cp424", "cp500", "cp875", "cp1026", "cp1140",
    "big5", "big5hkscs", "cp950", "gb2312", "gbk", "gb18030", "hz",
    "shift_jis", "shift_jis_2004", "shift_jisx0213", "cp932", "euc_jp", "euc_jis_2004", "euc_jisx0213",
    "iso2022_jp", "iso2022_jp_1", "iso2022_jp_2", "iso2022_jp_2004", "iso2022_jp_3", "iso2022_jp_ext",
    "euc_kr", "cp949", "johab", "iso2022_kr",
})  # fmt: skip
# Names that XML 1.0 itself uses and Python does not know.
_XML_NAMES = {"iso_10646_ucs_2": "utf_16", "iso_10646_ucs_4": "utf_32"}
_EBCDIC, _EBCDIC_DECLARATION = "cp037", "<?xml".encode("cp037")
_DECLARATION = re.compile(
    rb"(?:\xef\xbb\xbf)?<\?xml[ \t\r\n]+version[ \t\r\n]*=[ \t\r\n]*(?:\"[^\"<>]*\"|'[^'<>]*')"
    rb"[ \t\r\n]+encoding[ \t\r\n]*=[ \t\r\n]*[\"']([A-Za-z][A-Za-z0-9._-]*)[\"']"
)


def declared_encoding(data: bytes) -> str | None:
    """The encoding that the XML declaration names, for a document whose ASCII characters are ASCII bytes."""
    found = _DECLARATION.match(data)
    return None if found is None else found[1].decode("ascii")


def codec_of(name: str) -> str | None:
    """Python's name of an encoding; None if documents in it are not read.

    >>> from pathcast.documents.character_encodings import codec_of
    >>> [codec_of(name) for name in ("utf8", "Windows-1252", "latin1", "utf-7", "zlib")]
    ['utf-8', 'cp1252', 'iso8859-1', None, None]
    """
    plain = normalize_encoding(name).lower().replace(".", "_")
    codec = _XML_NAMES.get(plain) or aliases.get(plain, plain)
    return codecs.lookup(codec).name if codec in _CODECS else None


def as_utf8(data: bytes, limits: Limits, encoding: str | None = None) -> tuple[bytes, str, str | None]:
    """The document in UTF-8, Python's name of its encoding, and the name that its declaration gives, if any.

    `encoding`, a codec of Python, overrides what the document declares.
    """
    if len(data) > limits.size:
        raise limits.exceeded("size", f"the document has {len(data):,} bytes")
    if encoding is not None:
        form = data if encoding == UTF_8 else _converted(data, encoding, limits)
        return form, encoding, declared_encoding(form)
    detected = _detected(data)
    form = data if detected == UTF_8 else _converted(data, detected, limits)
    codec, name = _codec_and_declared(data, form, detected)
    return form if codec == detected else _converted(data, codec, limits), codec, name


def encoding_of_head(head: bytes) -> str:
    """Python's name of the encoding of a document, by its first bytes, which must have all of its XML declaration."""
    detected = _detected(head)
    decoder = codecs.getincrementaldecoder(detected)("replace")
    form = head if detected == UTF_8 else decoder.decode(head).encode("utf-8", "replace")
    if form.removeprefix(_BOM).startswith(b"<?xml") and b">" not in form:
        raise _refused(f"the XML declaration has more than {len(head):,} bytes; shorten it")
    return _codec_and_declared(head, form, detected)[0]


def _codec_and_declared(data: bytes, form: bytes, detected: str) -> tuple[str, str | None]:
    """The codec of a document and the encoding that it declares, if any; `form`: its text by the detected encoding."""
    found = _DECLARATION.match(form)
    if found is None:
        if detected == _EBCDIC:
            raise _refused("the document is in EBCDIC but declares no encoding; add encoding='…' to its declaration")
        return detected, None
    name = found[1].decode("ascii")
    codec = codec_of(name)
    if codec is None:
        raise _refused(f"encoding '{name}' is not supported; convert the document to UTF-8")
    if codec == detected or detected[:-3] == codec:  # UTF-16 and UTF-32 are declared with or without the byte order
        return detected, name
    if data.startswith(_BOM):
        raise _refused(f"the byte order mark means UTF-8, but the document declares encoding '{name}'; declare UTF-8")
    if detected not in (UTF_8, _EBCDIC) or data[: len(found[0])].decode(codec, "replace").encode() != found[0]:
        raise _refused(
            f"the document declares encoding '{name}', but its bytes are in {detected}; correct the declaration"
        )
    return codec, name


def _detected(data: bytes) -> str:
    """The encoding by the first bytes, or one that encodes the declaration in the same way."""
    head = data[:4]
    if head == b"\x00\x00\xfe\xff" or (head[:3] == b"\0\0\0" and head[3:] not in (b"", b"\0")):
        return "utf-32-be"
    if head == b"\xff\xfe\x00\x00" or (head[1:] == b"\0\0\0" and head[0]):
        return "utf-32-le"
    if head[:2] == b"\xfe\xff" or head[:1] == b"\0":
        return "utf-16-be"
    if head[:2] == b"\xff\xfe" or head[1:2] == b"\0":
        return "utf-16-le"
    return _EBCDIC if data.startswith(_EBCDIC_DECLARATION) else UTF_8


def _converted(data: bytes, codec: str, limits: Limits) -> bytes:
    try:
        form = data.decode(codec).encode()
    except UnicodeDecodeError as error:
        what = f"byte 0x{data[error.start]:02x} at offset {error.start:,} is not valid in {codec} ({error.reason})"
        raise DocumentError(f"{what}; correct the byte or the declared encoding") from None
    if len(form) > limits.size:
        raise limits.exceeded("size", f"the document has {len(form):,} bytes in UTF-8")
    return form


def _refused(reason: str) -> DocumentError:
    return DocumentError(reason, line=1, column=1)
