"""The nodes of one document with all that element arrays leave out: comments, processing instructions, prefixes,
namespace nodes and IDs.

Expat reads the document's bytes again; the reader has accepted them, so nothing is checked here. As in libxml2, the
namespace nodes of an element are that of `xml`, then the declarations in scope, outermost element last, backwards; a
default namespace that was taken back (`xmlns=""`) has a node, too. IDs are attributes of this type in the document
type, and `xml:id`.

Cost: a Python call per tag and text, once per document on which such an expression is tried.
"""

from collections.abc import Iterator
from xml.parsers import expat

from pathcast.documents import UTF_8, XML_NAMESPACE, DocumentBatch, Limits, as_utf8, expanded
from pathcast.errors import PathcastError

from .document_nodes import ATTRIBUTE, COMMENT, ELEMENT, INSTRUCTION, NAMESPACE, TEXT, DocumentNodes, OutOfWorkError

_SEPARATOR = "\x01"
_XML_ID = expanded(XML_NAMESPACE, "id")
_MOST_NAMESPACE_NODES = 1_000_000


def from_bytes(
    batch: DocumentBatch, index: int, elements: DocumentNodes, *, ignore_namespaces: bool, namespace_nodes: bool
) -> DocumentNodes | None:
    """The nodes of one document of a batch; those of namespaces only if they are wanted.

    None if the bytes are not the document that the arrays hold, whose nodes are `elements`: it was rewritten.
    """
    for form in _forms(batch, index):
        reading = _Reading(namespace_nodes=namespace_nodes)
        try:
            reading.parser.Parse(form, True)
        except expat.ExpatError:
            continue
        finally:
            del reading.parser  # it refers to our methods
        if _plain(reading.nodes) == _plain(elements):
            return reading.nodes.finish(ignore_namespaces=ignore_namespaces)
    return None


def _forms(batch: DocumentBatch, index: int) -> Iterator[bytes]:
    """A document in UTF-8; two guesses if it came from another process, which does not tell its encoding."""
    document = batch[index]
    yield document.utf8
    if index not in batch.encodings:
        try:
            form, codec, _ = as_utf8(document.data, Limits(size=max(1, 4 * len(document.data))))
        except PathcastError:
            return
        if codec != UTF_8:
            yield form


def _plain(nodes: DocumentNodes) -> list[tuple[int, str | None, str | None]]:
    """What element arrays hold of the nodes, in document order."""
    rows = zip(nodes.kind, nodes.name, nodes.values, strict=True)
    return [row for row in rows if row[0] in (ELEMENT, ATTRIBUTE, TEXT)]


class _Reading:
    """One run of expat over one document."""

    def __init__(self, *, namespace_nodes: bool) -> None:
        self.nodes = DocumentNodes()
        self.namespace_nodes = namespace_nodes
        self.made = 0
        self.open = [0]
        self.scopes: list[list[tuple[str, str]]] = []  # the declarations of each open element
        self.declared: list[tuple[str, str]] = []  # those of the element that begins
        self.pending: list[str] = []
        self.id_attributes: set[tuple[str, str]] = set()
        self.parser = parser = expat.ParserCreate("utf-8", _SEPARATOR)
        parser.ordered_attributes = True
        parser.namespace_prefixes = True
        if namespace_nodes:
            parser.StartNamespaceDeclHandler = self.declare
        parser.StartElementHandler = self.start
        parser.EndElementHandler = self.close
        parser.CharacterDataHandler = self.pending.append
        parser.CommentHandler = self.comment
        parser.ProcessingInstructionHandler = self.instruction
        parser.AttlistDeclHandler = self.attribute_type
        parser.StartDoctypeDeclHandler = self.begin_doctype
        parser.EndDoctypeDeclHandler = self.end_doctype

    def add(self, kind: int, name: str | None, value: str | None) -> int:
        nodes = self.nodes
        place = len(nodes.kind)
        nodes.kind.append(kind)
        nodes.parent.append(self.open[-1])
        nodes.name.append(name)
        nodes.values.append(value)
        return place

    def text(self) -> None:
        if self.pending:
            value = "".join(self.pending)
            self.pending.clear()
            self.add(TEXT, None, value)

    def declare(self, prefix: str | None, uri: str | None) -> None:
        self.declared.append((prefix or "", uri or ""))

    def start(self, reported: str, attributes: list[str]) -> None:
        self.text()
        name, written = _names(reported)
        nodes = self.nodes
        element = self.add(ELEMENT, name, None)
        if written is not None:
            nodes.labels[element] = written
        self.open.append(element)
        if self.namespace_nodes:
            self.scopes.append(self.declared)
            self.declared = []
            self.namespaces()
        for at in range(0, len(attributes), 2):
            attribute_name, attribute_written = _names(attributes[at])
            value = attributes[at + 1]
            attribute = self.add(ATTRIBUTE, attribute_name, value)
            if attribute_written is not None:
                nodes.labels[attribute] = attribute_written
            is_id = (written or name, attribute_written or attribute_name) in self.id_attributes
            if is_id or attribute_name == _XML_ID:
                nodes.ids.setdefault(value, element)

    def namespaces(self) -> None:
        """The namespace nodes of the element that begins."""
        in_scope: dict[str, str] = {}
        for scope in reversed(self.scopes):
            for prefix, uri in scope:
                in_scope.setdefault(prefix, uri)
        self.made += len(in_scope) + 1
        if self.made > _MOST_NAMESPACE_NODES:
            raise OutOfWorkError
        for prefix, uri in [("xml", XML_NAMESPACE), *reversed(in_scope.items())]:
            self.nodes.labels[self.add(NAMESPACE, None, uri)] = prefix

    def close(self, _: str) -> None:
        self.text()
        self.open.pop()
        if self.namespace_nodes:
            self.scopes.pop()

    def comment(self, text: str) -> None:
        self.text()
        self.add(COMMENT, None, text)

    def instruction(self, target: str, data: str) -> None:
        self.text()
        self.nodes.labels[self.add(INSTRUCTION, None, data)] = target

    def attribute_type(self, element: str, name: str, kind: str, *_: object) -> None:
        if kind == "ID":
            self.id_attributes.add((element, name))

    def begin_doctype(self, *_: object) -> None:
        """Comments and processing instructions of the document type are not the document's."""
        self.parser.CommentHandler = None
        self.parser.ProcessingInstructionHandler = None

    def end_doctype(self) -> None:
        self.parser.CommentHandler = self.comment
        self.parser.ProcessingInstructionHandler = self.instruction


def _names(reported: str) -> tuple[str, str | None]:
    """The expanded name, and the name as written if it has a prefix."""
    if _SEPARATOR not in reported:
        return reported, None
    uri, local, *prefix = reported.split(_SEPARATOR)
    return expanded(uri, local), f"{prefix[0]}:{local}" if prefix else None
