"""Course catalogues: one global schema, and any number of local schemas that differ from it in various ways.

A local schema is the global schema with random changes, each the inverse of a mapping operator:

    synonyms          another name                                     undone by Rename
    attributes        a text element is an attribute of its parent     ToElement
    no grouping       the children of a group are in its parent        Insert
    nesting           a sibling becomes a child                        Upgrade
    flat              a child becomes a sibling                        Downgrade
    inverted          parent and child are exchanged                   Exchange
    split and union   a name in two parts, two values in one element   nothing: there is no operator for it
    missing parts     an optional part is missing                      nothing: documents lack it

The frequencies are such that forty schemas need about 89 Rename, 31 Insert, 17 ToElement, 6 Upgrade, 3 Downgrade and 2
Exchange, the counts of the mediation paper's benchmark, whose data is not available.

Invariant: a local schema has its true mapping, from its nodes to global nodes (the code that derives mappings must not
read it), and no node is moved twice, since operators are not chained. The same seed gives the same catalogues.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random

from pathcast.documents.schema.document_schema import Occurrence
from pathcast.mediation import Mapping, SchemaNode, SchemaTree
from pathcast.mediation.mappings.schema_mapping import read_tree

from .catalogue_vocabulary import SYNONYMS, WORDS

GLOBAL = read_tree("""
university
  institution #text
  department*
    label #text
    head? #text
    phone? #text
    course* @id
      code #text
      title #text
      description? #text
      credits? #text
      level? #text
      schedule?
        day? #text
        time? #text
        place?
          building? #text
          room? #text
      instructor*
        fullname #text
        email? #text
        office? #text
        assistant* #text
      prerequisite* #text
      textbook*
        heading #text
        publisher? #text
        author?
          person #text
          country? #text
""")
# How often a schema has each kind of heterogeneity, and at which nodes.
_RATES: dict[str, float] = {
    "synonym": 2.23,
    "attribute": 0.43,
    "ungroup": 0.78,
    "nest": 0.15,
    "flatten": 0.075,
    "invert": 0.05,
    "split": 0.1,
    "union": 0.1,
    "drop": 1.5,
}


@dataclass(slots=True)
class _Node:
    """A node that is still being changed; `origin` is its path in the global schema, or none."""

    name: str
    cardinality: Occurrence
    has_text: bool
    origin: str | None
    attributes: list[tuple[str, str | None]] = field(default_factory=list)
    children: "list[_Node]" = field(default_factory=list)
    moved: bool = False

    @classmethod
    def of(cls, node: SchemaNode, path: str) -> "_Node":
        made = cls(node.name, node.cardinality, node.has_text, path)
        made.attributes = [(name, f"{path}/@{name}") for name in node.attributes]
        made.children = [cls.of(child, f"{path}/{child.name}") for child in node.children]
        return made

    def frozen(self) -> SchemaNode:
        children = tuple(child.frozen() for child in self.children)
        return SchemaNode(
            self.name, self.cardinality, self.has_text, tuple(name for name, _ in self.attributes), children
        )

    def walk(self, path: str = "") -> "Iterator[tuple[str, _Node, _Node | None]]":
        """All nodes with their paths and parents."""
        here = f"{path}/{self.name}" if path else self.name
        yield here, self, None
        for child in self.children:
            for below, node, parent in child.walk(here):
                yield below, node, parent or self

    def has(self, name: str) -> bool:
        return any(child.name == name for child in self.children) or any(known == name for known, _ in self.attributes)


@dataclass(frozen=True, slots=True)
class Catalogue:
    """A publisher's schema and its true mapping: `truth` maps local nodes to their global nodes."""

    name: str
    schema: SchemaTree
    truth: dict[str, str]

    @property
    def mapping(self) -> Mapping:
        """The true mapping."""
        return Mapping.derive(self.name, self.schema, GLOBAL, self.truth)

    def document(self, size: int, seed: int = 0) -> bytes:
        """A document of at least this many bytes, and little more."""
        return _Writing(self.schema, Random(f"{self.name} {seed}")).document(size)


def generate_catalogues(count: int = 40, *, seed: int = 0) -> list[Catalogue]:
    """Local catalogue schemas derived from `GLOBAL`, each with a name and its true mapping."""
    return [_catalogue(f"u{number:02}", Random(f"{seed} {number}")) for number in range(count)]


def _catalogue(name: str, random: Random) -> Catalogue:
    root = _Node.of(GLOBAL.root, GLOBAL.root.name)
    for kind in ("drop", "invert", "flatten", "nest", "ungroup", "attribute", "split", "union", "synonym"):
        rate = _RATES[kind]
        for _ in range(int(rate) + (random.random() < rate % 1)):
            _CHANGES[kind](root, random)
    truth: dict[str, str] = {}
    for path, node, _ in root.walk():
        if node.origin is not None:
            truth[path] = node.origin
        truth |= {f"{path}/@{known}": origin for known, origin in node.attributes if origin is not None}
    return Catalogue(name, SchemaTree(root.frozen()), truth)


# The kinds of heterogeneity: each changes a tree in one place that allows it, or nowhere.


def _somewhere(root: _Node, random: Random, fits: Callable[[_Node, _Node], bool]) -> tuple[_Node, _Node] | None:
    """A random node that fits, and its parent."""
    found = [(node, parent) for _, node, parent in root.walk() if parent is not None and fits(node, parent)]
    return random.choice(found) if found else None


def _is_value(node: _Node) -> bool:
    """Whether a node holds text only, and is at its place in the global schema."""
    return node.has_text and not node.children and not node.attributes and not node.moved


def _drop(root: _Node, random: Random) -> None:
    def fits(node: _Node, _: _Node) -> bool:
        return node.cardinality == "?" or node.name in ("prerequisite", "textbook")

    if place := _somewhere(root, random, fits):
        place[1].children.remove(place[0])


def _rename(root: _Node, random: Random) -> None:
    """Rename a node (possibly the root), or an attribute that was an element."""
    places: list[tuple[_Node, int | None, str]] = []
    for _, node, parent in root.walk():
        synonyms = SYNONYMS.get(node.name, ())
        places.extend((node, None, synonym) for synonym in synonyms if parent is None or not parent.has(synonym))
        for at, (name, _) in enumerate(node.attributes):
            places.extend((node, at, synonym) for synonym in SYNONYMS.get(name, ()) if not node.has(synonym))
    if not places:
        return
    node, attribute, synonym = random.choice(places)
    if attribute is None:
        node.name = synonym
    else:
        node.attributes[attribute] = synonym, node.attributes[attribute][1]


def _to_attribute(root: _Node, random: Random) -> None:
    def fits(node: _Node, parent: _Node) -> bool:
        names = [name for name, _ in parent.attributes]
        return _is_value(node) and node.cardinality in ("", "?") and node.name not in names

    if place := _somewhere(root, random, fits):
        node, parent = place
        parent.children.remove(node)
        parent.attributes.append((node.name, node.origin))


def _ungroup(root: _Node, random: Random) -> None:
    """Replace a group that occurs at most once by its children."""

    def fits(node: _Node, parent: _Node) -> bool:
        return (
            node.cardinality == "?"
            and bool(node.children)
            and not node.attributes
            and not any(child.moved for child in node.children)
            and not any(parent.has(child.name) for child in node.children)
        )

    if place := _somewhere(root, random, fits):
        node, parent = place
        at = parent.children.index(node)
        parent.children[at : at + 1] = node.children
        for child in node.children:
            child.moved = True


def _nest(root: _Node, random: Random) -> None:
    """Move a value into a sibling that occurs exactly once."""
    places = [
        (value, sibling, parent)
        for _, parent, _ in root.walk()
        for value in parent.children
        for sibling in parent.children
        if value is not sibling and _is_value(value) and _may_hold(sibling, value)
    ]
    if places:
        value, sibling, parent = random.choice(places)
        parent.children.remove(value)
        sibling.children.append(value)
        value.moved = sibling.moved = True


def _may_hold(node: _Node, value: _Node) -> bool:
    return node.cardinality == "" and not node.moved and not node.has(value.name)


def _flatten(root: _Node, random: Random) -> None:
    """Move a value out of an element that occurs at least once, to be its sibling."""
    places = [
        (value, node, parent)
        for _, node, parent in root.walk()
        if parent is not None and not node.moved
        for value in node.children
        if _is_value(value) and not parent.has(value.name) and len(node.children) > 1
    ]
    if places:
        value, node, parent = random.choice(places)
        node.children.remove(value)
        parent.children.insert(parent.children.index(node) + 1, value)
        value.moved = node.moved = True


def _invert(root: _Node, random: Random) -> None:
    """Exchange a child that occurs at most once with its parent, which may then repeat."""

    def fits(node: _Node, parent: _Node) -> bool:
        return (
            bool(node.children) and node.cardinality in ("", "?") and parent is not root and not node.has(parent.name)
        )

    if place := _somewhere(root, random, fits):
        node, parent = place
        above = next(each for _, each, _ in root.walk() if parent in each.children)
        if above.has(node.name):
            return
        above.children[above.children.index(parent)] = node
        parent.children.remove(node)
        node.children.append(parent)
        node.cardinality, parent.cardinality = parent.cardinality, "+"
        node.moved = parent.moved = True


def _split(root: _Node, random: Random) -> None:
    """Split a person's name into two elements."""

    def fits(node: _Node, parent: _Node) -> bool:
        return node.name in ("fullname", "person") and _is_value(node) and not parent.has("first")

    if place := _somewhere(root, random, fits):
        node, parent = place
        at = parent.children.index(node)
        parent.children[at : at + 1] = [_Node("first", "", True, None), _Node("last", "", True, None)]


def _union(root: _Node, random: Random) -> None:
    """Join two values in one element."""
    place = _somewhere(root, random, lambda node, parent: node.name == "building" and parent.has("room"))
    if place:
        node, parent = place
        parent.children = [child for child in parent.children if child.name != "room"]
        parent.children[parent.children.index(node)] = _Node("location", "?", True, None)


_CHANGES: dict[str, Callable[[_Node, Random], None]] = {
    "drop": _drop,
    "synonym": _rename,
    "attribute": _to_attribute,
    "ungroup": _ungroup,
    "nest": _nest,
    "flatten": _flatten,
    "invert": _invert,
    "split": _split,
    "union": _union,
}


# Documents.


class _Writing:
    def __init__(self, schema: SchemaTree, random: Random) -> None:
        self.schema, self.random = schema, random
        self.out: list[str] = []
        self.size = 0

    def document(self, size: int) -> bytes:
        """The root once; below it, repeated elements are added until there are enough bytes."""
        root = self.schema.root
        repeated = [child for child in root.children if child.repeats]
        last = "\n" + f"</{root.name}>" + "\n"
        self._put(f"<{root.name}{self._attributes(root)}>")
        for child in root.children:
            if not child.repeats:
                self._element(child, 1)
        while repeated and self.size + len(last) < size:
            for child in repeated:
                self._element(child, 1)
        self._put(last)
        return "".join(self.out).encode()

    def _put(self, text: str) -> None:
        self.out.append(text)
        self.size += len(text)

    def _element(self, node: SchemaNode, depth: int) -> None:
        self._put("\n" + "  " * depth + f"<{node.name}{self._attributes(node)}>")
        for child in node.children:
            for _ in range(self._count(child)):
                self._element(child, depth + 1)
        if node.has_text:
            self._put(self._text())
        self._put(("\n" + "  " * depth if node.children else "") + f"</{node.name}>")

    def _count(self, node: SchemaNode) -> int:
        match node.cardinality:
            case "":
                return 1
            case "?":
                return int(self.random.random() < 0.8)
            case "+":
                return self.random.randint(1, 3)
        return self.random.randint(0, 3)

    def _attributes(self, node: SchemaNode) -> str:
        return "".join(f' {name}="{self._text()}"' for name in node.attributes)

    def _text(self) -> str:
        return " ".join(self.random.choice(WORDS) for _ in range(self.random.randint(1, 3)))
