"""Outer elements: the elements around the entries, with what an entry has from them.

An outer element is read as the document that its start tag, those of the elements around it, and the file's prolog
make together: by the reader of documents, which rejects what it rejects in any document, and by expat for the
namespaces that the tags declare, also by a default in the document type.

An entry taken out of its file gets, at its root:
- the namespace declarations in scope that it does not replace itself, as Canonical XML has them;
- `xml:lang`, `xml:space` and `xml:base` of the nearest element around it that has them, unless it has its own;
- the document type, with the entry's name, if it has an internal subset: entities and defaults keep their meaning.

Cost: some 50 µs per start tag read; tags with the same text are read once, up to `_KEPT` of them.
"""

import re
from dataclasses import replace
from typing import NamedTuple
from xml.parsers import expat

from pathcast.errors import PathcastError

from ..document_limits import Limits
from ..document_reader import Reader
from ..expanded_name_table import XML_NAMESPACE, Names
from ..expat_reader import Entities
from .entry_path import MOST_STEPS

# An internal subset is copied into every entry: this many bytes of document type at most.
LONGEST_DOCTYPE = 1 << 16
_MOST_SIZE = (1 << 31) - 1
_SEPARATOR = "\x01"
_KEPT, _LONGEST_KEPT = 256, 4_096
_INHERITED = ("lang", "space", "base")
_NAME = re.compile(rb"<([^\s/>]+)")
_LITERAL = rb"""(?:"[^"]*"|'[^']*')"""
_DOCTYPE = re.compile(
    rb"<!DOCTYPE\s+(?P<name>[^\s\[>]+)(?P<id>\s+(?:SYSTEM\s+%(l)s|PUBLIC\s+%(l)s\s+%(l)s))?\s*+"
    rb"(?P<subset>\[(?:<!--.*?-->|<\?.*?\?>|<(?!!--|\?)|%(l)s|[^\]<\"'])*+\]\s*+)?>" % {b"l": _LITERAL},
    re.DOTALL,
)
_QUOTED, _DECLARED = re.compile(_LITERAL), re.compile(rb"\sxmlns(?::([^\s=]+))?\s*=")
_VALUE = {'"': "&quot;", "&": "&amp;", "<": "&lt;", "\t": "&#9;", "\n": "&#10;", "\r": "&#13;"}


class _Tag(NamedTuple):
    """What expat reports of a start tag: its name, and what it declares itself."""

    uri: str
    local: str
    namespaces: dict[str, str]
    attributes: dict[str, str]


def end_of_doctype(data: bytes | bytearray, begin: int) -> int:
    """The place after the document type at `begin`; -1 if it has none in these data."""
    found = _DOCTYPE.match(data, begin)
    return -1 if found is None else found.end()


class Prolog:
    """What comes before the root: the XML declaration and the document type, and how to read tags after them."""

    def __init__(self, limits: Limits, entities: Entities) -> None:
        self.declaration = self.doctype = b""
        # The elements around an entry do not count for its limits.
        wider = replace(limits, depth=limits.depth + MOST_STEPS, names=3 * limits.names, size=_MOST_SIZE)
        self._reader = Reader(Names(), wider, entities)

    @property
    def has_subset(self) -> bool:
        """Whether a declaration of the document type may change what entries mean."""
        found = _DOCTYPE.match(self.doctype)
        return found is not None and found["subset"] is not None

    def doctype_for(self, name: bytes) -> bytes:
        """The document type of an entry with this name; empty if there is no internal subset."""
        found = _DOCTYPE.match(self.doctype)
        if found is None or found["subset"] is None:
            return b""
        return self.doctype[: found.start("name")] + name + self.doctype[found.end("name") :]

    def tag(self, tags: tuple[bytes, ...]) -> _Tag:
        """The last of the start tags of elements inside each other; raises the error of the document that they make."""
        document = b"".join((self.declaration, self.doctype, *tags, *(_end_tag(tag) for tag in reversed(tags))))
        batch = self._reader.scanner.read([document], encodings={0: "utf-8"})
        for error in batch.errors.values():
            error.line = error.column = None  # those of a document that nobody has seen
            raise error
        return _told(document, len(tags))


class OuterElement:
    """An element whose children may be entries, or have entries below them."""

    def __init__(
        self, prolog: Prolog, tags: tuple[bytes, ...] = (), above: "OuterElement | None" = None, depth: int = 0
    ) -> None:
        self.depth = depth
        self.name = b""
        self.uri = self.local = ""
        self._prolog, self._tags = prolog, tags
        self._namespaces: dict[str, str] = {}
        self._inherited: dict[str, str] = {}
        self._below: dict[bytes, OuterElement] = {}
        if above is not None:
            read = prolog.tag(tags)
            self.name, self.uri, self.local = name_of(tags[-1]), read.uri, read.local
            self._namespaces = {**above._namespaces, **read.namespaces}
            self._inherited = {**above._inherited, **read.attributes}

    def below(self, tag: bytes) -> "OuterElement":
        """The child with this start tag; raises `DocumentError` or `LimitError`."""
        found = self._below.get(tag)
        if found is None:
            found = OuterElement(self._prolog, (*self._tags, _open_tag(tag)), self, self.depth + 1)
            if len(self._below) >= _KEPT:
                self._below.clear()
            if len(tag) <= _LONGEST_KEPT:
                self._below[tag] = found
        return found

    def child(self, tag: bytes) -> tuple[str | None, str, bytes, bytes]:
        """A child's namespace and local name, what comes before its start tag and after its name to make it a document.

        The namespace is None if the start tag cannot be read: the child is the one to report why.
        """
        name = name_of(tag)
        doctype = self._prolog.doctype_for(name)
        try:
            read = self._prolog.tag((*self._tags, _open_tag(tag)))
        except PathcastError:
            own = {
                (each[1] or b"").decode("utf-8", "replace"): "" for each in _DECLARED.finditer(_QUOTED.sub(b"", tag))
            }
            read = _Tag("", name.rpartition(b":")[2].decode("utf-8", "replace"), own, {})
            return None, read.local, doctype, self._added(read)
        return read.uri, read.local, doctype, self._added(read)

    def _added(self, child: _Tag) -> bytes:
        added = [
            f' xmlns{":" if prefix else ""}{prefix}="{_value(uri)}"'
            for prefix, uri in self._namespaces.items()
            if prefix not in child.namespaces and uri
        ]
        added += [
            f' xml:{local}="{_value(value)}"'
            for local, value in self._inherited.items()
            if local not in child.attributes
        ]
        return "".join(added).encode()


def name_of(tag: bytes) -> bytes:
    """The name in a start tag, as it is written."""
    found = _NAME.match(tag)
    return b"" if found is None else found[1]


def _open_tag(tag: bytes) -> bytes:
    return tag[:-2] + b">" if tag.endswith(b"/>") else tag


def _end_tag(tag: bytes) -> bytes:
    return b"</" + name_of(tag) + b">"


def _value(text: str) -> str:
    return "".join(_VALUE.get(c, c) for c in text)


def _told(document: bytes, depth: int) -> _Tag:
    """What expat reports of the element at this depth, the innermost of a document that is known to be well-formed."""
    parser = expat.ParserCreate("utf-8", _SEPARATOR)
    found: list[_Tag] = []
    declared: dict[str, str] = {}

    def declare(prefix: str | None, uri: str | None) -> None:
        declared[prefix or ""] = uri or ""

    def start(name: str, attributes: dict[str, str]) -> None:
        uri, _, local = name.rpartition(_SEPARATOR)
        own = {each: attributes[key] for each in _INHERITED if (key := XML_NAMESPACE + _SEPARATOR + each) in attributes}
        found.append(_Tag(uri, local, dict(declared), own))
        declared.clear()

    parser.StartNamespaceDeclHandler, parser.StartElementHandler = declare, start
    parser.Parse(document, True)
    return found[depth - 1]
