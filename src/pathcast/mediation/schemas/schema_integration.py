"""Schema integration: one global schema tree that has a place for every node of every local one.

The global schema begins as the largest local one. Each other one is compared with it
(`correspondence/schema_correspondence.py`), and pairs that are more likely right than wrong are merged. Every other
local node gets a place of its own below the place of its parent, as optional; a node that the local schema lacks
becomes optional, too. A schema that has nothing in common with the global one becomes a subtree below the global root.

A node that keeps its name below a merged parent is merged with a node of that name there, unless another local node is
that node already; then it gets a name with a number, such as `title-2`.

Invariant: every local node has exactly one place, and no two local nodes have the same. The global schema is *stable*:
names, places and attributes that it has are never changed or removed, so that existing mappings and subscriptions keep
their meaning. Same schemas in the same order, same result.
Cost: one correspondence per schema.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from pathcast.documents.schema import Occurrence
from pathcast.errors import MappingError

from ..correspondence.name_similarity import words_of
from ..correspondence.schema_correspondence import can_be_moved, correspond
from ..correspondence.synonym_dictionary import SynonymDictionary
from ..mappings.mapping_operators import Downgrade, Exchange, Move
from ..mappings.operator_derivation import derive
from .node_samples import NodeSamples
from .schema_tree import SchemaNode, SchemaTree, is_attribute, name_of, nodes_of, parent_of, steps_of

# Pairs with less confidence are not merged.
_MERGED = 0.4
# Merges with less confidence are for a person to check.
_SURE = 0.9
_OPTIONAL: dict[Occurrence, Occurrence] = {"": "?", "+": "*", "?": "?", "*": "*"}


@dataclass(frozen=True, slots=True)
class Decision:
    """Two nodes that were merged, or that were kept apart although something speaks for merging them."""

    schema: int
    local: str
    glob: str
    confidence: float
    merged: bool
    why: str = field(default="", compare=False)

    @property
    def is_sure(self) -> bool:
        """Whether nobody needs to check it."""
        return self.merged and self.confidence >= _SURE


@dataclass(frozen=True, slots=True)
class Integration:
    """A global schema, the place of every node of each local schema in it, and what was decided about pairs."""

    tree: SchemaTree
    places: tuple[Mapping[str, str], ...]
    decisions: tuple[Decision, ...]


def integrate(schemas: Iterable[SchemaTree], *, synonyms: SynonymDictionary | None = None) -> Integration:
    """A global schema for all of these."""
    given = list(schemas)
    if not given:
        raise MappingError("no schemas to integrate; give at least one")
    # The largest first; the sort is stable, so equal ones stay in the order given.
    first, *others = sorted(range(len(given)), key=lambda number: -len(nodes_of(given[number])))
    glob, decisions = given[first], []
    places: dict[int, Mapping[str, str]] = {first: {path: path for path in nodes_of(glob)}}
    for number in others:
        local = given[number]
        merged: dict[str, str] = {}
        for pair in correspond(local, glob, synonyms=synonyms):
            is_merged = pair.confidence >= _MERGED and can_be_moved(pair.local, pair.glob)
            if is_merged:
                merged[pair.local] = pair.glob
            if parent_of(pair.local):
                decisions.append(Decision(number, pair.local, pair.glob, pair.confidence, is_merged, pair.why()))
        if _have_nothing_in_common(local, glob, merged):
            merged = {}
        glob, places[number] = _with_all_places(glob, local, merged)
    return Integration(glob, tuple(places[number] for number in range(len(given))), tuple(decisions))


def _have_nothing_in_common(local: SchemaTree, glob: SchemaTree, merged: Mapping[str, str]) -> bool:
    """Whether the roots have been paired only because every tree has one."""
    same = set(words_of(local.root.name)) & set(words_of(glob.root.name))
    return not same and len(merged) <= 1 + len(nodes_of(local)) // 10


def _with_all_places(
    glob: SchemaTree, local: SchemaTree, merged: Mapping[str, str]
) -> tuple[SchemaTree, dict[str, str]]:
    """The extended global schema; pairs that operators cannot bring together in every document are not merged."""
    left = dict(merged)
    while True:
        tree, places = extended(glob, local, left)
        unsuitable = left.keys() & _not_always_in_place(local, tree, places)
        if not unsuitable:
            return tree, places
        for path in unsuitable:
            del left[path]


def _not_always_in_place(local: SchemaTree, glob: SchemaTree, places: Mapping[str, str]) -> set[str]:
    """The nodes that operators bring to their places only where another element is present, or never."""
    found = derive(local, glob, places)
    away = set(found.unexplained)
    for operator in found.operators:
        match operator:
            case Exchange(node, child):
                away.add(f"{node}/{child}")
            case Downgrade(node, children, into) if _may_be_absent(local, f"{node}/{into}"):
                away |= {f"{node}/{child}" for child in children}
            case Move(node, above, into=str(into)) if _may_be_absent(local, f"{above}/{into}"):
                away.add(node)
    return away


def _may_be_absent(tree: SchemaTree, path: str) -> bool:
    node = tree.paths.get(path)  # none: an exchange brings it there
    return node is None or node.cardinality in ("?", "*")


def extended(
    glob: SchemaTree, local: SchemaTree, correspondence: Mapping[str, str]
) -> tuple[SchemaTree, dict[str, str]]:
    """The global schema with a place for every node of a local one, and these places.

    A root without a counterpart gets a place below the global root.
    """
    return _Extending(glob, local, correspondence).run()


class _Extending:
    def __init__(self, glob: SchemaTree, local: SchemaTree, correspondence: Mapping[str, str]) -> None:
        self.glob, self.local = glob, local
        self.nodes = {path: _Growing(node) for path, node in glob.paths.items()}
        self.places = dict(correspondence)
        self.taken = set(correspondence.values())
        self.root = steps_of(next(iter(glob.paths)))[0]

    def run(self) -> tuple[SchemaTree, dict[str, str]]:
        for path in nodes_of(self.local):
            if path in self.places:
                self._union(path)
            elif is_attribute(path):
                self.places[path] = self._attribute(path)
            else:
                self.places[path] = self._element(path)
            self.taken.add(self.places[path])
        for path, known in self.nodes.items():
            if parent_of(path) and path not in self.taken:
                known.cardinality = _OPTIONAL[known.cardinality]
        tree = SchemaTree(_frozen(self.nodes, self.root), *self._evidence())
        return tree, {path: self.places[path] for path in nodes_of(self.local)}

    def _union(self, path: str) -> None:
        """A merged node has text if one of both has, and repeats if one of both does."""
        place = self.places[path]
        if is_attribute(place) or place not in self.nodes:
            return
        known = self.nodes[place]
        if is_attribute(path):
            known.has_text = True
            return
        node = self.local[path]
        known.has_text = known.has_text or node.has_text
        if parent_of(place):
            known.cardinality = _either(known.cardinality, node.cardinality)

    def _attribute(self, path: str) -> str:
        over = self.places[parent_of(path)]
        if parent_of(path) == self.local.root.name and parent_of(over):
            # An attribute of a root that is a subtree here cannot move down as an attribute.
            return self._child(over, name_of(path), SchemaNode(name_of(path), "?", has_text=True))
        known, name = self.nodes[over].attributes, name_of(path)
        free = _free(name, lambda each: f"{over}/@{each}" in self.taken)
        known.setdefault(free)
        return f"{over}/@{free}"

    def _element(self, path: str) -> str:
        if not parent_of(path) and self.local[path].has_text:
            self.nodes[self.root].has_text = True  # text of a root stays with the root
        over, node = self.places.get(parent_of(path), self.root), self.local[path]
        return self._child(over, node.name, node)

    def _child(self, over: str, name: str, node: SchemaNode) -> str:
        """A child of a global node that no local node has taken: one of this name, or a new one."""
        free = _free(name, lambda each: f"{over}/{each}" in self.taken)
        place = f"{over}/{free}"
        if known := self.nodes.get(place):
            known.has_text = known.has_text or node.has_text
            known.cardinality = _either(known.cardinality, node.cardinality)
            return place
        self.nodes[over].children[free] = place
        self.nodes[place] = _Growing(SchemaNode(free, _OPTIONAL[node.cardinality], node.has_text))
        return place

    def _evidence(self) -> tuple[dict[str, NodeSamples], dict[str, str]]:
        """Samples and documentation of both, those of the local schema at their places."""
        samples = {path: dict(each.by_document) for path, each in self.glob.samples.items()}
        first = 1 + max((number for each in samples.values() for number in each), default=-1)
        for path, each in self.local.samples.items():
            if path in self.places:
                known = samples.setdefault(self.places[path], {})
                known.update({first + number: values for number, values in each.by_document.items()})
        documentation = {self.places[path]: text for path, text in self.local.documentation.items()}
        return (
            {path: NodeSamples(by_document) for path, by_document in samples.items()},
            {**documentation, **self.glob.documentation},
        )


def _either(one: Occurrence, other: Occurrence) -> Occurrence:
    """The cardinality that allows both."""
    is_optional, repeats = {one, other} & {"?", "*"}, {one, other} & {"+", "*"}
    return ("*" if is_optional else "+") if repeats else ("?" if is_optional else "")


def _free(name: str, is_taken: Callable[[str], bool]) -> str:
    """The name, with a number if it is taken."""
    found, number = name, 1
    while is_taken(found):
        number += 1
        found = f"{name}-{number}"
    return found


class _Growing:
    """A node that gets more children and attributes; children by name, as paths."""

    def __init__(self, node: SchemaNode) -> None:
        self.node = node
        self.cardinality = node.cardinality
        self.has_text = node.has_text
        self.attributes: dict[str, None] = dict.fromkeys(node.attributes)
        self.children: dict[str, str] = {}


def _frozen(nodes: Mapping[str, _Growing], path: str) -> SchemaNode:
    growing = nodes[path]
    names = dict.fromkeys([*(child.name for child in growing.node.children), *growing.children])
    return replace(
        growing.node,
        cardinality=growing.cardinality,
        has_text=growing.has_text,
        attributes=tuple(growing.attributes),
        children=tuple(_frozen(nodes, f"{path}/{name}") for name in names),
    )
