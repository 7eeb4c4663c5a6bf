"""DTD → schema.

lxml reads the declarations and resolves parameter entities that the text itself declares; it keeps their expansion and
the nesting of content models within its limits. Nothing outside the text is ever read: the DTD is handed to the parser
as the external subset of an empty document through a resolver that rejects every other address.

Rejected with a `DocumentError`: text that is not a DTD, elements declared twice, external parameter entities,
undefined ones, default values that refer to general entities. A DTD above `LARGEST` bytes and content models nested
more than `DEEPEST` deep are a `LimitError`.

lxml gives the names inside content models without their prefix. They are completed from the declared elements; when
two declared elements differ only in their prefix, a model that names one is rejected as ambiguous.
"""

import os
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any, Literal

from pathcast.documents.schema.document_schema import Attribute, AttributeType, Element, Occurrence, Particle, Schema
from pathcast.errors import DocumentError, LimitError
from pathcast.extras import extra

LARGEST = 16 * 1024 * 1024
DEEPEST = 100
ADDRESS = "pathcast:schema"

OCCURRENCES: dict[str, Occurrence] = {"once": "", "opt": "?", "mult": "*", "plus": "+"}
USES: dict[str, Literal["required", "implied", "fixed", "default"]] = {
    "required": "required",
    "implied": "implied",
    "fixed": "fixed",
    "none": "default",
}
TYPES: dict[str, AttributeType] = {
    "cdata": "CDATA",
    "id": "ID",
    "idref": "IDREF",
    "idrefs": "IDREFS",
    "entity": "ENTITY",
    "entities": "ENTITIES",
    "nmtoken": "NMTOKEN",
    "nmtokens": "NMTOKENS",
    "notation": "NOTATION",
    "enumeration": "enumeration",
}


def read_dtd(source: bytes | str | os.PathLike[str], *, root: str | None = None) -> Schema:
    """The schema that a DTD declares. Bytes and str are its text, a path is read; `root` overrides the guessed one."""
    text = _text_of(source)
    if len(text) > LARGEST:
        raise LimitError(
            f"the DTD has {len(text):,} bytes; at most {LARGEST:,} are allowed; remove unused declarations"
        )
    declarations = [declaration for declaration in _parse(text).iterelements() if declaration.type != "undefined"]
    names = _Names(declarations)
    if not names.declared:
        raise DocumentError("the DTD declares no element; add <!ELEMENT …> declarations")
    anything = Particle(
        "choice", "*", parts=(Particle("text"), *(Particle("element", name=name) for name in names.declared))
    )
    return Schema((_element(declaration, names, anything) for declaration in declarations), root=root)


def _text_of(source: bytes | str | os.PathLike[str]) -> bytes:
    if isinstance(source, bytes):
        return source
    if isinstance(source, str):
        # The encoding declaration no longer applies: this text is already decoded.
        return re.sub(r"\A\ufeff?(<\?xml\s[^>]*\?>)?", "", source).encode("utf-8", "surrogatepass")
    try:
        return Path(source).read_bytes()
    except OSError as error:
        raise DocumentError(f"cannot read the DTD {os.fspath(source)}: {error.strerror}; check the path") from error


def _parse(text: bytes) -> Any:
    with extra("generate"):
        from lxml import etree

    def resolve(self: Any, system_url: str, _public_id: str | None, context: Any) -> Any:
        if system_url == ADDRESS:
            return self.resolve_string(text, context)
        raise DocumentError(
            f"the DTD refers to the external entity '{system_url}', which is never read; copy its text into the DTD"
        )

    parser = etree.XMLParser(load_dtd=True, no_network=True, resolve_entities=False, huge_tree=False)
    parser.resolvers.add(type("OnlyThisText", (etree.Resolver,), {"resolve": resolve})())
    try:
        tree = etree.fromstring(f'<!DOCTYPE x SYSTEM "{ADDRESS}"><x/>'.encode(), parser).getroottree()
    except etree.XMLSyntaxError as error:
        line, column = error.position
        reason = re.sub(r", line \d+, column \d+.*", "", error.msg or "not a DTD")
        raise DocumentError(
            f"the DTD is malformed: {reason}; correct it", line=line or None, column=column or None
        ) from error
    for entry in parser.error_log:
        if entry.level >= etree.ErrorLevels.ERROR:
            raise DocumentError(
                f"the DTD is malformed: {entry.message}; correct it", line=entry.line, column=entry.column
            )
    dtd = tree.docinfo.externalDTD
    if dtd is None:
        raise DocumentError("the DTD has no declarations; add <!ELEMENT …> declarations")
    return dtd


class _Names:
    """Declared names, and the full name behind the local one that lxml reports inside a content model."""

    def __init__(self, declarations: list[Any]) -> None:
        self.declared = [_full(declaration) for declaration in declarations]
        self.by_local: dict[str, list[str]] = {}
        for name in self.declared:
            self.by_local.setdefault(name.rpartition(":")[2], []).append(name)

    def complete(self, local: str) -> str:
        names = self.by_local.get(local, [local])
        if len(names) > 1:
            raise DocumentError(
                f"'{local}' in a content model is ambiguous: the DTD declares {' and '.join(names)}; rename one"
            )
        return names[0]


def _full(declaration: Any) -> str:
    return f"{declaration.prefix}:{declaration.name}" if declaration.prefix else str(declaration.name)


def _element(declaration: Any, names: _Names, anything: Particle) -> Element:
    name = _full(declaration)
    attributes = tuple(_attribute(name, attribute) for attribute in declaration.iterattributes())
    if declaration.type == "any":
        return Element(name, "any", anything, attributes)
    if declaration.type == "empty" or declaration.content is None:
        return Element(name, "empty", None, attributes)
    kind: Literal["mixed", "children"] = "mixed" if declaration.type == "mixed" else "children"
    return Element(name, kind, _particle(declaration.content, names), attributes)


def _particle(content: Any, names: _Names, depth: int = 1) -> Particle:
    if depth > DEEPEST:
        raise LimitError(f"a content model nests groups more than {DEEPEST} deep; split it into several elements")
    occurrence = OCCURRENCES[content.occur]
    if content.type == "element":
        return Particle("element", occurrence, names.complete(content.name))
    if content.type == "pcdata":
        return Particle("text")
    kind: Literal["sequence", "choice"] = "sequence" if content.type == "seq" else "choice"
    return Particle(kind, occurrence, parts=tuple(_particle(part, names, depth + 1) for part in _parts(content)))


def _parts(content: Any) -> Iterator[Any]:
    """The parts of a group. lxml nests them to the right, `(a, (b, (c, d)))`: a chain as long as the model."""
    kind = content.type
    while True:
        yield content.left
        content = content.right
        if content is None:
            return
        if content.type != kind or content.occur != "once":
            yield content
            return


def _attribute(element: str, declaration: Any) -> Attribute:
    value = declaration.default_value
    if value is not None:
        reference = re.search(r"&(?!#|amp;|lt;|gt;|quot;|apos;)[^;]*;", value)
        if reference is not None:
            where = f"the default value of attribute '{declaration.name}' of '{element}'"
            raise DocumentError(
                f"{where} refers to the entity '{reference.group()}', which is not supported; replace the "
                "reference with its text"
            )
        value = unescape(value)
    return Attribute(
        _full(declaration), TYPES[declaration.type], USES[declaration.default], value, tuple(declaration.values())
    )
