"""The W3C's XML conformance suite, if its archive is available: its tests and the content of their documents.

The archive, `xmlconf.tgz`, is expected in the folder that PATHCAST_DATA names, or in `shared/data` next to the
checkout. It is read in memory: nothing is unpacked or fetched.

`Facts` are the result of plain expat, without any code of Pathcast, for a document: whether it is well-formed
(as far as the document itself goes: external entities are never read), its elements, and which parts of XML it uses
that Pathcast rejects.
"""

import functools
import os
import posixpath
import tarfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.parsers import expat

from lxml import etree

_LIST = "xmlconf/xmlconf.xml"
_CHECKOUT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Entry:
    """One test of the suite; the fields are the list's attributes."""

    id: str
    kind: str
    """valid, invalid (but well-formed), not-wf, or error (which a reader may report or not)."""
    entities: str
    """none, or the kind of external entities that must be read to find the fault: general, parameter, both."""
    namespaces: bool
    editions: tuple[str, ...]
    versions: tuple[str, ...]
    path: str


@dataclass
class Facts:
    """The result of plain expat for one document."""

    well_formed: bool = True
    version: str = "1.0"
    encoding: str | None = None
    declares_entities: bool = False
    declares_external_dtd: bool = False
    """A parameter entity that would have to be read into the DTD from elsewhere."""
    refers_outside: bool = False
    """To an external entity, or to one that may be declared in an external subset."""
    elements: list["ElementFacts"] = field(default_factory=list)


@dataclass
class ElementFacts:
    name: str
    parent: int
    attributes: dict[str, str]
    texts: list[str] = field(default_factory=list)


def archive() -> Path | None:
    """The suite's archive, or None if this machine has none."""
    folders = [os.environ.get("PATHCAST_DATA"), _CHECKOUT.parent / "shared" / "data"]
    paths = [Path(folder) / "xmlconf.tgz" for folder in folders if folder]
    return next((path for path in paths if path.is_file()), None)


_SEVERAL_BYTES = {"euc-jp", "iso-2022-jp", "shift_jis"}


@functools.cache
def files() -> dict[str, bytes]:
    """Every file of the suite, by its path in the archive; none without an archive."""
    path = archive()
    if path is None:
        return {}
    with tarfile.open(path) as tar:
        contents = ((member.name, tar.extractfile(member)) for member in tar.getmembers() if member.isfile())
        return {posixpath.normpath(name): file.read() for name, file in contents if file is not None}


@functools.cache
def entries() -> tuple[Entry, ...]:
    """The suite's tests, in the order of its list; none without an archive."""
    if _LIST not in files():
        return ()
    parser = etree.XMLParser(load_dtd=True, resolve_entities=True, no_network=True)
    parser.resolvers.add(_InTheArchive())
    root = etree.fromstring(files()[_LIST], parser, base_url=_LIST)
    return tuple(_entry(element) for element in root.iter("TEST"))


class _InTheArchive(etree.Resolver):  # type: ignore[misc]
    """Gives lxml the parts of the list from the archive, and nothing else."""

    def resolve(self, system_url: str, public_id: str | None, context: Any) -> Any:
        return self.resolve_string(files()[posixpath.normpath(system_url)], context, base_url=system_url)


def _entry(element: etree._Element) -> Entry:
    get = element.attrib.get
    return Entry(
        id=str(get("ID")),
        kind=str(get("TYPE")),
        entities=str(get("ENTITIES", "none")),
        namespaces=get("NAMESPACE") != "no",
        editions=tuple(str(get("EDITION", "")).split()),
        versions=tuple(str(get("VERSION", "")).split()),
        path=posixpath.normpath(posixpath.join(posixpath.dirname(str(element.base)), str(get("URI")))),
    )


def facts(data: bytes, encoding: str | None = None) -> Facts:
    """The result of plain expat, with namespaces resolved and internal entities expanded."""
    found = Facts()
    parser = expat.ParserCreate(encoding, namespace_separator="\n")
    parser.ordered_attributes = True
    opened: list[int] = []
    joins = False

    def split(*_: object) -> None:
        nonlocal joins
        joins = False

    def start(name: str, pairs: list[str]) -> None:
        split()
        attributes = {_clark(key): value for key, value in zip(pairs[::2], pairs[1::2], strict=True)}
        found.elements.append(ElementFacts(_clark(name), opened[-1] if opened else -1, attributes))
        opened.append(len(found.elements) - 1)

    def end(_: str) -> None:
        split()
        opened.pop()

    def text(piece: str) -> None:
        nonlocal joins
        texts = found.elements[opened[-1]].texts
        texts[len(texts) - joins :] = [texts[-1] + piece if joins else piece]
        joins = True

    def declaration(version: str, encoding: str | None, _: int) -> None:
        found.version, found.encoding = version, encoding

    def declares(_: str, is_parameter: bool, value: str | None, *_rest: object) -> None:
        found.declares_entities = True
        found.declares_external_dtd |= bool(is_parameter) and value is None

    def outside(*_: object) -> int:
        found.refers_outside = True
        return 1

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = text
    parser.CommentHandler = split
    parser.ProcessingInstructionHandler = split
    parser.XmlDeclHandler = declaration
    parser.EntityDeclHandler = declares
    parser.ExternalEntityRefHandler = outside
    parser.SkippedEntityHandler = outside
    try:
        parser.Parse(data, True)
    except (expat.ExpatError, ValueError):
        # Python's expat reads no encoding of several bytes per character: it gets the document in UTF-8 instead.
        if encoding is None and found.encoding is not None and found.encoding.lower() in _SEVERAL_BYTES:
            return facts(data.decode(found.encoding).encode(), encoding="utf-8")
        found.well_formed = False
    return found


def _clark(name: str) -> str:
    uri, separator, local = name.rpartition("\n")
    return f"{{{uri}}}{local}" if separator else local
