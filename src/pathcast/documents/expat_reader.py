"""The expat reader: XML bytes to element arrays, with a clear message for every error.

Expat decides what is well-formed and reports line and column; handlers append to flat lists, one entry per element,
attribute or text node. Beyond well-formedness, the reader rejects input that a receiver of untrusted documents must not
process: entity declarations (unless `entities="expand"`), external entities (never fetched), undeclared entities, XML
other than 1.0, and anything beyond the `Limits`. Expat reads the UTF-8 form of a document (`character_encodings.py`)
and never chooses an encoding itself.

Text nodes are XPath's: character data, CDATA sections and references that touch are one node; a comment or processing
instruction between two pieces makes them two.

Invariant: lists grow only inside a document's handlers; the entries of a failed document are removed again. Whatever is
wrong with a document, `BatchBuilder.add` raises `DocumentError` or `LimitError`, unless memory runs out.
Cost: a Python call per tag and text, some 10 MB/s of markup-heavy documents; linear in the document's size, always.
"""

import logging
import re
from array import array
from typing import Literal, NoReturn
from xml.parsers import expat

import numpy as np

from pathcast.errors import DocumentError, LimitError, PathcastError

from .character_encodings import UTF_8, as_utf8
from .document_batch import DocumentBatch
from .document_limits import AMPLIFICATION_FLOOR, Limits
from .expanded_name_table import Names, expanded
from .limits_while_parsing import LimitChecks
from .scanner.scanner_array_layout_kernels import LONGEST_NAMESPACE
from .undeclared_prefix_finder import unbound_prefix

Entities = Literal["refuse", "expand"]

# No XML document can contain this character, so expat never confuses it with part of a namespace URI.
_SEPARATOR = "\x01"
_PIECE = 1 << 20
# The fewest bytes of a document that an element or attribute takes.
_SHORTEST = 4
# Expat bounds the work that nested entities can cause from this version on.
_SAFE_EXPANSION = (2, 4, 0)
_AMPLIFIED = 43
_MISMATCHED = expat.errors.codes[expat.errors.XML_ERROR_TAG_MISMATCH]
_ENDED_EARLY = expat.errors.codes[expat.errors.XML_ERROR_NO_ELEMENTS]
_UNDEFINED = expat.errors.codes[expat.errors.XML_ERROR_UNDEFINED_ENTITY]
_UNBOUND = expat.errors.codes[expat.errors.XML_ERROR_UNBOUND_PREFIX]
_GZIP = b"\x1f\x8b"
_log = logging.getLogger("pathcast.documents")
# A reference of more bytes than this is not shown in an error.
_SHOWN = 100


# Expat spells out the namespace of every attribute before it calls a handler: documents with long namespaces are
# checked before expat gets them.
_LONG_VALUE = re.compile(rb"""\"[^"]{%d}|'[^']{%d}""" % (LONGEST_NAMESPACE, LONGEST_NAMESPACE))
# The beginning of a start tag, and one of its attributes, with a group for the name if it declares no namespace.
_TAG = re.compile(rb"<[^\s<>/!?=\"']+")
_ATTRIBUTE = re.compile(rb"""\s+(?:xmlns(?:[:][^\s=]+)?|([^\s=]+))\s*=\s*(?:"[^"]*"|'[^']*')""")


class BatchBuilder:
    """Collects documents in order; `finish` returns the batch."""

    def __init__(self, names: Names, known_count: int, limits: Limits, entities: Entities) -> None:
        """Names beyond the first `known_count` of the table are the batch's own, whatever has been added since."""
        if entities == "expand" and expat.version_info < _SAFE_EXPANSION:
            raise DocumentError(f"entities='expand' needs expat 2.4 or later, got {expat.EXPAT_VERSION}; update Python")
        self.limits = limits
        self.entities = entities
        self.known = names
        self.known_count = known_count
        self.own: dict[str, int] = {}
        self.pieces: list[bytes] = []
        self.data_offsets = array("q", [0])
        self.offsets = array("q", [0])
        self.name = array("i")
        self.parent = array("i")
        self.depth = array("i")
        self.end = array("i")
        self.position = array("i")
        self.attribute_begin = array("i")
        self.attribute_name = array("i")
        self.attribute_start = array("q")
        self.attribute_length = array("i")
        self.text_begin = array("i")
        self.text_end = array("i")
        self.text_parent = array("i")
        self.text_start = array("q")
        self.text_length = array("i")
        self.arena = bytearray()
        self.encodings: dict[int, str] = {}
        self.errors: dict[int, PathcastError] = {}

    def add(self, data: bytes, *, encoding: str | None = None) -> None:
        """Read one document (`encoding` overrides the declared one); raise if it cannot be read."""
        index = len(self.offsets) - 1
        marks = [len(column) for column in self._columns()]
        try:
            form, codec, declared = as_utf8(data, self.limits, encoding)
            _DocumentReader(self, form, declared).run()
        except BaseException as error:
            for column, mark in zip(self._columns(), marks, strict=True):
                del column[mark:]
            if isinstance(error, PathcastError | MemoryError) or not isinstance(error, Exception):
                raise
            _log.exception("the reader failed on a document; please report this traceback as a bug")
            what = f"{type(error).__name__}: {error}"
            raise DocumentError(f"the document cannot be read ({what}); please report this as a bug") from error
        if codec != UTF_8:
            self.encodings[index] = codec
        self._close(data)

    def fail(self, data: bytes, error: PathcastError) -> None:
        """Add an unreadable document to the batch, with the reason."""
        self.errors[len(self.offsets) - 1] = error
        self._close(data)

    def _close(self, data: bytes) -> None:
        self.pieces.append(data)
        self.data_offsets.append(self.data_offsets[-1] + len(data))
        self.offsets.append(len(self.name))

    def _columns(self) -> "tuple[array[int] | bytearray, ...]":
        return (
            self.name,
            self.parent,
            self.depth,
            self.end,
            self.position,
            self.attribute_begin,
            self.attribute_name,
            self.attribute_start,
            self.attribute_length,
            self.text_begin,
            self.text_end,
            self.text_parent,
            self.text_start,
            self.text_length,
            self.arena,
        )

    def finish(self) -> DocumentBatch:
        """The batch of all documents so far."""
        self.attribute_begin.append(len(self.attribute_name))
        return DocumentBatch(
            data=np.frombuffer(b"".join(self.pieces), dtype=np.uint8),
            data_offsets=_int64(self.data_offsets),
            offsets=_int64(self.offsets),
            name=_int32(self.name),
            parent=_int32(self.parent),
            depth=_int32(self.depth),
            end=_int32(self.end),
            position=_int32(self.position),
            attribute_begin=_int32(self.attribute_begin),
            attribute_name=_int32(self.attribute_name),
            attribute_start=_int64(self.attribute_start),
            attribute_length=_int32(self.attribute_length),
            text_begin=_int32(self.text_begin),
            text_end=_int32(self.text_end),
            text_parent=_int32(self.text_parent),
            text_start=_int64(self.text_start),
            text_length=_int32(self.text_length),
            arena=np.frombuffer(bytes(self.arena), dtype=np.uint8),
            known=self.known,
            known_count=self.known_count,
            own_names=tuple(self.own),
            encodings=self.encodings,
            errors=self.errors,
        )

    def number(self, reported: str) -> int:
        """The id of a name as expat reports it: `local`, after the `uri` and before the prefix, if it has them."""
        first, *rest = reported.split(_SEPARATOR, 2)
        uri, local = (first, rest[0]) if rest else ("", first)
        if len(local) > self.limits.name_length:
            raise self.limits.exceeded("name_length", f"a name has {len(local):,} characters")
        name = expanded(uri, local)
        known = self.known.get(name)
        if known is None or known >= self.known_count:
            known = self.known_count + self.own.setdefault(name, len(self.own))
        return known


def _int32(column: "array[int]") -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    return np.array(column, dtype=np.int32)


def _int64(column: "array[int]") -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(column, dtype=np.int64)


def _declaration_size(prefix: str, uri: str) -> int:
    """No more than the bytes of a namespace's declaration in a tag; one that a document type adds is in no tag."""
    return len("xmlns=''") + len(prefix) + len(uri)


class _DocumentReader:
    """One run of expat over one document, appending to a builder's columns."""

    def __init__(self, builder: BatchBuilder, data: bytes, declared: str | None) -> None:
        """For a document in UTF-8, whose declaration names the encoding `declared`."""
        self.builder = builder
        self.data = data
        self.declared = declared
        self.open: list[int] = []
        self.pending: list[str] = []
        self.ids: dict[str, int] = {}
        self.numbers: set[int] = set()
        self.prefixes: set[str | None] = {None}
        self.check = LimitChecks(builder.limits, len(data))
        self.allowance = max(AMPLIFICATION_FLOOR, builder.limits.amplification * len(data))
        self.parser = parser = expat.ParserCreate(UTF_8, _SEPARATOR)
        parser.ordered_attributes = True
        parser.namespace_prefixes = True
        parser.StartElementHandler = self.start
        parser.EndElementHandler = self.close
        parser.StartNamespaceDeclHandler = self.prefix
        parser.CharacterDataHandler = self.characters
        parser.CommentHandler = self.boundary
        parser.ProcessingInstructionHandler = self.boundary
        parser.XmlDeclHandler = self.declaration
        parser.EntityDeclHandler = self.entity
        parser.ExternalEntityRefHandler = self.external
        parser.SkippedEntityHandler = self.skipped

    def run(self) -> None:
        """Parse."""
        try:
            if (at := self.data.find(b"\0", 0, 2)) >= 0:  # expat would take the document for UTF-16
                what = (
                    "not well-formed (invalid token): a NUL byte, which XML forbids; remove the byte, or convert the "
                    "document to UTF-8"
                )
                raise DocumentError(what, line=1, column=at + 1)
            if self.may_have_long_namespaces():
                self.check_namespaces()
            self.parse(self.parser)
        except expat.ExpatError as error:
            kind = LimitError if error.code == _AMPLIFIED else DocumentError
            raise kind(self.explain(error), line=error.lineno, column=error.offset + 1) from None
        finally:
            # The parser refers to our methods: without it, the document is freed as soon as it is unused.
            del self.parser

    def parse(self, parser: expat.XMLParserType) -> None:
        view = memoryview(self.data)
        begin, size = 0, _PIECE
        while begin < len(view):
            end = begin + size
            parser.Parse(view[begin:end], False)
            at = parser.CurrentByteIndex
            if at >= 0 and end < len(view):
                self.check_tag(parser, at, end)
                # Expat reads an incomplete token from its beginning again: doubling the input bounds the cost.
                size = max(_PIECE, end - at)
            begin = end
        parser.Parse(b"", True)

    def check_tag(self, parser: expat.XMLParserType, at: int, end: int) -> None:
        """Reject a start tag with too many attributes or prefixes before its end: expat reports only complete tags."""
        data = self.data[at:end]
        found, count, declared = _TAG.match(data), 0, 0
        while found := found and _ATTRIBUTE.match(data, found.end()):
            if found[1] is not None:
                count += 1
                self.check.attributes(parser, count, " or more")
            else:
                declared += 1
                self.check.names(parser, declared - 1)  # one may be the namespace without a prefix

    def may_have_long_namespaces(self) -> bool:
        """Whether a namespace may be too long: it is in quotes, or a DTD has a part of it."""
        data = self.data
        return b"xmlns" in data and (b"<!DOCTYPE" in data or _LONG_VALUE.search(data) is not None)

    def check_namespaces(self) -> None:
        """Reject a document with a namespace that is too long.

        The parser here treats declarations like other attributes. Other errors of the document are reported later.
        """
        parser = expat.ParserCreate(UTF_8)
        parser.ordered_attributes = True
        most = max(LONGEST_NAMESPACE, self.builder.limits.name_length)
        allowance = self.allowance
        prefixes: set[str] = set()
        spellings: set[str] = set()

        def start(tag: str, attributes: list[str]) -> None:
            nonlocal allowance
            declared = 0
            spellings.add(tag)
            for index in range(0, len(attributes), 2):
                if attributes[index] == "xmlns" or attributes[index].startswith("xmlns:"):
                    declared += 1
                    allowance -= _declaration_size(attributes[index][6:], attributes[index + 1])
                    if attributes[index] != "xmlns":
                        prefixes.add(attributes[index])
                    if (size := len(attributes[index + 1])) > most:
                        what = f"a namespace has {size:,} characters; at most {most:,} are allowed"
                        reason = f"{what} (raise the limit with Limits(name_length=…))"
                        raise LimitError(reason, line=parser.CurrentLineNumber, column=parser.CurrentColumnNumber + 1)
                else:
                    spellings.add(attributes[index])
            self.check.attributes(parser, len(attributes) // 2 - declared)
            self.check.growth(parser, allowance)
            self.check.names(parser, len(prefixes))
            self.check.spellings(parser, len(spellings))

        parser.StartElementHandler = start
        try:
            self.parse(parser)
        except expat.ExpatError:
            return  # the namespace-aware parser will report this, too

    def explain(self, error: expat.ExpatError) -> str:
        """Expat's reason, with the details that help to fix the document."""
        reason = expat.ErrorString(error.code) or "not well-formed"
        if not self.data.strip():
            return "the document is empty; it must have a root element"
        if self.data.startswith(_GZIP):
            return "the document is compressed with gzip; decompress it, or give a file whose name ends in .gz"
        if error.code == _UNDEFINED and (name := self.reference()):
            return f"{reason} '{name}'; write the character itself or its number, such as &#160;"
        if error.code == _UNBOUND and (found := unbound_prefix(self.data)):
            return f"{reason}: {found}"
        if error.code == _AMPLIFIED:
            return (
                "entities expand the document beyond the fixed limit of the XML parser; replace the entities with text"
            )
        if error.code == _MISMATCHED and self.open:
            return f"{reason}: <{self.tag()}> was opened in line {self.opened()} and is not closed yet"
        if error.code == _ENDED_EARLY and self.open:
            return f"{reason}: the document ends inside <{self.tag()}>, opened in line {self.opened()}"
        return reason

    def reference(self) -> str:
        """The text of the reference at the parser's position; empty if there is no reference."""
        at = self.parser.ErrorByteIndex
        text = self.data[at : at + _SHOWN].decode(UTF_8, "replace")
        return text[: text.find(";") + 1] if text.startswith("&") else ""

    def tag(self) -> str:
        """The name of the innermost open element."""
        builder = self.builder
        number = builder.name[self.open[-1]]
        if number < builder.known_count:
            return builder.known[number]
        return list(builder.own)[number - builder.known_count]

    def opened(self) -> int:
        """The line of the innermost open element's start tag."""
        before = self.data[: self.builder.position[self.open[-1]]].decode(UTF_8, "replace")
        return before.replace("\r\n", "\n").replace("\r", "\n").count("\n") + 1

    def refuse(self, reason: str) -> NoReturn:
        raise DocumentError(reason, line=self.parser.CurrentLineNumber, column=self.parser.CurrentColumnNumber + 1)

    def over(self, limit: str, what: str) -> NoReturn:
        line, column = self.parser.CurrentLineNumber, self.parser.CurrentColumnNumber + 1
        raise self.builder.limits.exceeded(limit, what, line=line, column=column)

    # Handlers that expat calls.

    def start(self, reported: str, attributes: list[str]) -> None:
        builder, parents = self.builder, self.open
        if self.pending:
            self.boundary()
        element = len(builder.name)
        if len(parents) >= builder.limits.depth:
            self.over("depth", f"an element is nested {len(parents) + 1:,} deep")
        number = self.ids.get(reported)
        builder.name.append(self.number(reported) if number is None else number)
        builder.parent.append(parents[-1] if parents else -1)
        parents.append(element)
        builder.depth.append(len(parents))
        builder.end.append(0)
        builder.position.append(self.parser.CurrentByteIndex)
        builder.text_begin.append(len(builder.text_start))
        builder.text_end.append(0)
        builder.attribute_begin.append(len(builder.attribute_name))
        self.spend(_SHORTEST)
        if attributes:
            self.attributes(attributes)

    def attributes(self, attributes: list[str]) -> None:
        builder, arena = self.builder, self.builder.arena
        if len(attributes) > 2 * builder.limits.attributes:
            self.check.attributes(self.parser, len(attributes) // 2)
        for index in range(0, len(attributes), 2):
            reported = attributes[index]
            number = self.ids.get(reported)
            builder.attribute_name.append(self.number(reported) if number is None else number)
            value = attributes[index + 1].encode()
            builder.attribute_start.append(-1 - len(arena))
            builder.attribute_length.append(len(value))
            arena += value
            self.spend(_SHORTEST + len(value))

    def number(self, reported: str) -> int:
        """The id of a name that the document did not have before, or not with this prefix."""
        self.check.spellings(self.parser, len(self.ids) + 1)
        try:
            number = self.builder.number(reported)
        except PathcastError as error:
            error.line, error.column = self.parser.CurrentLineNumber, self.parser.CurrentColumnNumber + 1
            raise
        if number not in self.numbers:
            self.check.names(self.parser, len(self.numbers) + len(self.prefixes))
            self.numbers.add(number)
        self.ids[reported] = number
        return number

    def prefix(self, prefix: str | None, uri: str | None) -> None:
        """Count a prefix that is declared: expat keeps it, and each name under it, up to the document's end."""
        self.spend(_declaration_size(prefix or "", uri or ""))
        if prefix not in self.prefixes:
            self.check.names(self.parser, len(self.numbers) + len(self.prefixes))
            self.prefixes.add(prefix)

    def close(self, _: str) -> None:
        builder = self.builder
        if self.pending:
            self.boundary()
        element = self.open.pop()
        builder.end[element] = len(builder.name)
        builder.text_end[element] = len(builder.text_start)

    def characters(self, text: str) -> None:
        self.pending.append(text)

    def boundary(self, *_: str) -> None:
        """End the text node that is being collected."""
        if not self.pending:
            return
        builder = self.builder
        value = "".join(self.pending).encode()
        self.pending.clear()
        builder.text_parent.append(self.open[-1])
        builder.text_start.append(-1 - len(builder.arena))
        builder.text_length.append(len(value))
        builder.arena += value
        self.spend(len(value))

    def spend(self, size: int) -> None:
        self.allowance -= size
        if self.allowance < 0:
            self.check.growth(self.parser, self.allowance)

    def declaration(self, version: str, encoding: str | None, _: int) -> None:
        if version != "1.0":
            self.refuse(f"XML {version} is not supported; use XML 1.0")
        if encoding != self.declared:
            self.refuse(f"malformed encoding '{encoding}' in the XML declaration; write for example encoding='UTF-8'")

    def entity(
        self,
        name: str,
        is_parameter: bool,
        value: str | None,
        base: str | None,
        system_id: str | None,
        public_id: str | None,
        notation: str | None,
    ) -> None:
        # An external parameter entity can only be used by reading it into the DTD: its declaration is rejected.
        if self.builder.entities == "refuse" or (is_parameter and value is None):
            hint = (
                "entities='expand' allows internal entities"
                if value is not None
                else "external entities are never read; remove the declaration"
            )
            self.refuse(f"the DOCTYPE declares the entity '{name}', which is rejected ({hint})")

    def external(self, context: str, base: str | None, system_id: str | None, public_id: str | None) -> int:
        self.refuse(
            f"the document refers to the external entity '{system_id}', which is never read; copy its text into the "
            "document"
        )

    def skipped(self, name: str, is_parameter: bool) -> None:
        if is_parameter:
            self.refuse(
                f"the document refers to the parameter entity '%{name};', which is never read; remove the reference"
            )
        self.refuse(
            f"the document refers to the undeclared entity '&{name};'; declare it in the DOCTYPE, or write its text"
        )
