"""Sources of schema trees: DTDs, XML Schema, or sample documents.

From documents a tree is *inferred*: one node per label path that occurs, with the attributes that occur, text where
there is some, and the cardinality that fits the counts: never absent and never twice is exactly one, and so on.
Elements that the samples lack are not in the tree; rewriting leaves such elements unchanged.

The XML Schemas of standards are large and often recursive, while documents use a small part of them. So with samples
the tree of an XML Schema or a DTD is that of the samples; an XML Schema adds its documentation.
"""

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pathcast.documents import ENDINGS, Readable, list_folder, read_batch
from pathcast.documents.schema import Occurrence, read_dtd
from pathcast.errors import LimitError, MappingError, PathcastError
from pathcast.extras import extra

from ..mappings.document_object_tree import Item, item_of
from ..mappings.schema_mapping import read_tree
from .node_samples import NodeSamples, node_samples
from .schema_tree import LIMIT, Recursion, SchemaNode, SchemaTree

if TYPE_CHECKING:
    from xmlschema import XMLSchema

__all__ = ["infer_tree", "open_schema", "sample_count", "tree_of_dtd", "tree_of_xsd", "with_samples"]


def tree_of_dtd(
    source: bytes | str | os.PathLike[str],
    *,
    root: str | None = None,
    recursion: Recursion = "refuse",
    limit: int = LIMIT,
) -> SchemaTree:
    """The tree of a DTD: a path, or its text as bytes."""
    return SchemaTree.unfold(read_dtd(source, root=root), recursion=recursion, limit=limit)


def infer_tree(documents: Iterable[Readable]) -> SchemaTree:
    """The schema tree of sample documents; the error of an unreadable document has its `index`.

    >>> print(pathcast.mediation.infer_tree(["<a><b k='1'/><b>x</b></a>"]))
    a
      b+ @k #text
    """
    if isinstance(documents, str | bytes | bytearray | memoryview):
        raise TypeError(
            f"infer_tree takes a list of documents, got a single {type(documents).__name__}; put it into a list"
        )
    batch = read_batch(documents, errors="return")
    for number, error in batch.errors.items():
        error.index = number
        raise error
    samples = [item_of(document) for document in batch]
    if not samples:
        raise MappingError("cannot infer a schema: no documents given; give at least one sample")
    if len(roots := {sample.name for sample in samples}) > 1:
        raise MappingError(
            f"the documents have different roots: {', '.join(sorted(roots)[:5])}; infer a schema for each root"
        )
    return SchemaTree(_inferred(samples, ""), node_samples(samples))


def with_samples(tree: SchemaTree, documents: Iterable[Readable]) -> SchemaTree:
    """The tree with the values of further sample documents, numbered after those that it has."""
    items = [item_of(document) for document in read_batch(documents)]
    for item in items:
        if item.name != tree.root.name:
            raise MappingError(
                f"a sample has the root element '{item.name}', but the schema has the root '{tree.root.name}'; give "
                "samples of this schema"
            )
    first = sample_count(tree)
    samples = {path: dict(each.by_document) for path, each in tree.samples.items()}
    for path, each in node_samples(items).items():
        shifted = {first + number: values for number, values in each.by_document.items()}
        samples.setdefault(path, {}).update(shifted)
    return SchemaTree(tree.root, {path: NodeSamples(known) for path, known in samples.items()}, tree.documentation)


def sample_count(tree: SchemaTree) -> int:
    """The number of sample documents whose values a tree has."""
    root = tree.samples.get(tree.root.name)
    return len(root.by_document) if root is not None else 0


def _inferred(items: list[Item], cardinality: Occurrence) -> SchemaNode:
    """The node that all these elements are instances of."""
    counts: dict[str, list[int]] = {}
    below: dict[str, list[Item]] = {}
    for item in items:
        for name, count in Counter(child.name for child in item.elements).items():
            counts.setdefault(name, []).append(count)
        for child in item.elements:
            below.setdefault(child.name, []).append(child)
    children = []
    for name, found in below.items():
        always, often = len(counts[name]) == len(items), max(counts[name]) > 1
        children.append(_inferred(found, ("+" if always else "*") if often else ("" if always else "?")))
    return SchemaNode(
        name=items[0].name,
        cardinality=cardinality,
        has_text=any(isinstance(part, str) and part.strip() for item in items for part in item.content),
        attributes=tuple(dict.fromkeys(name for item in items for name in item.attributes)),
        children=tuple(children),
    )


def tree_of_xsd(
    source: str | os.PathLike[str],
    *,
    root: str | None = None,
    recursion: Recursion = "refuse",
    limit: int = LIMIT,
    samples: Iterable[Readable] | None = None,
) -> SchemaTree:
    """The tree of an XML Schema: a path, or its text; with samples, of the part that they use.

    Nothing is fetched: imported schemas must be in the same folder. `root` is needed where several declared elements
    could be the root.
    """
    with extra("mediation"):
        import xmlschema

    given = os.fspath(source)
    try:
        schema = xmlschema.XMLSchema(given, allow="local", defuse="always")
    except OSError as error:
        raise MappingError(f"cannot read the XML Schema: {_first_line(error)}; check the path") from None
    except (xmlschema.XMLSchemaException, ValueError) as error:
        raise MappingError(f"the XML Schema is invalid: {_first_line(error)}; correct it") from None
    if samples is not None:
        tree = infer_tree(samples)
        found = {element.name: element for element in schema.elements.values()}.get(tree.root.name)
        documentation = {} if found is None else dict(_documented(found, tree.root, tree.root.name))
        return SchemaTree(tree.root, tree.samples, documentation)
    unfolding = _XsdUnfolding(recursion, limit)
    return SchemaTree(unfolding.node(_root(schema, root), "", ()), {}, unfolding.documentation)


def _documented(element: Any, node: SchemaNode, path: str) -> Iterator[tuple[str, str]]:
    """The documentation of the nodes of a tree that an XML Schema declares."""
    if text := _annotation(element):
        yield path, text
    declared = _content(element.type)
    for name in node.attributes:
        attribute = element.attributes.get(name)
        if attribute is not None and (text := _annotation(attribute)):
            yield f"{path}/@{name}", text
    for child in node.children:
        if child.name in declared:
            yield from _documented(declared[child.name][0], child, f"{path}/{child.name}")


def _annotation(declared: Any) -> str:
    """The documentation of a declaration, of the one that it refers to, or of its type."""
    for each in (declared, declared.ref, declared.type):
        annotation = getattr(each, "annotation", None)
        if annotation is not None:
            texts = (" ".join(part.itertext()) for part in annotation.documentation)
            if text := " ".join(" ".join(texts).split()):
                return text
    return ""


def _root(schema: "XMLSchema", root: str | None) -> Any:
    elements = schema.elements
    if root is not None:
        for element in elements.values():
            if root in (element.name, element.local_name):
                return element
        raise MappingError(f"the XML Schema declares no element '{root}'; use one of {', '.join(elements)}")
    used = {
        child.name
        for kind in (*elements.values(), *schema.types.values())
        for child in _child_elements(getattr(kind, "type", kind))
    }
    candidates = [element for element in elements.values() if element.name not in used]
    if len(candidates) != 1:
        if not elements:
            raise MappingError("the XML Schema declares no global element; declare the root element")
        names = ", ".join(element.local_name for element in candidates or elements.values())
        raise MappingError(f"the XML Schema has several possible roots, {names}; choose one with root=…")
    return candidates[0]


def _child_elements(kind: Any) -> list[Any]:
    """The element declarations in a type's content, in order."""
    content = getattr(kind, "content", None)
    if content is None or not hasattr(content, "iter_elements"):
        return []
    return [each for each in content.iter_elements() if each.name is not None]


class _XsdUnfolding:
    def __init__(self, recursion: Recursion, limit: int) -> None:
        self.recursion, self.limit = recursion, limit
        self.made = 0
        self.documentation: dict[str, str] = {}

    def node(self, element: Any, cardinality: Occurrence, above: tuple[str, ...]) -> SchemaNode:
        self.made += 1
        if self.made > self.limit:
            raise LimitError(f"the schema tree has more than {self.limit:,} nodes; raise limit=… or shorten the schema")
        here = (*above, element.name)
        if text := _annotation(element):
            self.documentation["/".join(here)] = text
        for name, attribute in element.attributes.items():
            if name is not None and (text := _annotation(attribute)):
                self.documentation[f"{'/'.join(here)}/@{name}"] = text
        kind = element.type
        children: dict[str, SchemaNode] = {}
        for name, (child, least, most) in _content(kind).items():
            if name in here:
                if self.recursion == "refuse":
                    where = "/".join((*here, name))
                    raise MappingError(
                        f"the schema is recursive at '{where}', but mappings need trees; give samples, or cut the "
                        "recursion with recursion='cut'"
                    )
                continue
            often = most is None or most > 1
            children[name] = self.node(child, ("+" if least else "*") if often else ("" if least else "?"), here)
        return SchemaNode(
            name=element.name,
            cardinality=cardinality,
            has_text=kind.is_simple() or kind.has_simple_content() or kind.mixed,
            attributes=tuple(name for name in element.attributes if name is not None),
            children=tuple(children.values()),
        )


def _content(kind: Any) -> dict[str, tuple[Any, int, int | None]]:
    """The child elements of a type with their least and largest numbers, groups around them counted in."""
    found: dict[str, tuple[Any, int, int | None]] = {}
    content = getattr(kind, "content", None)
    if content is None or not hasattr(content, "iter_model"):
        return found

    def walk(group: Any, optional: bool, often: bool) -> None:
        optional = optional or group.min_occurs == 0 or (group.model == "choice" and len(group) > 1)
        often = often or group.max_occurs is None or group.max_occurs > 1
        for part in group:
            if hasattr(part, "iter_model"):
                walk(part, optional, often)
            elif part.name is not None:
                most = None if often else part.max_occurs
                least = 0 if optional else part.min_occurs
                if part.name in found:
                    least, most = max(least, found[part.name][1]), None
                found[part.name] = part, least, most

    walk(content, False, False)
    return found


def _first_line(error: BaseException) -> str:
    return next((line.strip(" :") for line in str(error).splitlines() if line.strip()), type(error).__name__)


def open_schema(
    path: str | os.PathLike[str],
    *,
    root: str | None = None,
    recursion: Recursion = "refuse",
    limit: int = LIMIT,
    samples: str | os.PathLike[str] | None = None,
) -> SchemaTree:
    """The tree of a file, by its ending: .dtd, .xsd, .tree (indented names, as `str` of a tree gives them), or .xml or
    .xml.gz for a sample; a folder of samples, subfolders included.

    `samples`, a document or a folder, are evidence for correspondences; of an .xsd or .dtd the tree then has what they
    use. `limit`: the maximum number of nodes of a tree that is unfolded.
    """
    file = Path(path)
    given = [] if samples is None else _documents(Path(samples))
    try:
        if file.is_dir() or file.name.lower().endswith(ENDINGS):
            given = [*_documents(file), *given]
            return infer_tree(given)
        return _declared(file, root, recursion, limit, given)
    except UnicodeDecodeError:
        raise MappingError(f"the file {file} is not UTF-8; save it as UTF-8") from None
    except OSError as error:
        raise MappingError(f"cannot read {file}: {error.strerror}; check the path") from None
    except PathcastError as error:
        named = file if error.index is None else given[error.index]
        if str(named) not in error.reason:
            error.reason = f"{named}: {error.reason}"
        raise


def _documents(place: Path) -> list[Path]:
    return list_folder(place).documents if place.is_dir() else [place]


def _declared(file: Path, root: str | None, recursion: Recursion, limit: int, samples: list[Path]) -> SchemaTree:
    match file.suffix:
        case ".dtd":
            if samples:
                return infer_tree(samples)
            return tree_of_dtd(file, root=root, recursion=recursion, limit=limit)
        case ".xsd":
            return tree_of_xsd(file, root=root, recursion=recursion, limit=limit, samples=samples or None)
        case ".tree":
            tree = read_tree(file.read_text(encoding="utf-8-sig"))
            return with_samples(tree, samples) if samples else tree
    raise MappingError(
        f"a schema must be a .dtd, .xsd or .tree file, a sample .xml, or a folder of samples, got '{file.name}'"
    )
