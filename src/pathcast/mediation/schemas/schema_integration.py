"""Schema integration: one global schema tree that covers all local ones.

The global schema begins as the largest local one. Each other one is compared with it (`similarity_flooding.py`), and
supported pairs are merged (`schema_correspondence_pruning.py`): two nodes for one concept do less harm than one node
for two. A node that only the local schema has is added below the image of its nearest ancestor that has one, as
optional; a node that the local schema lacks becomes optional. A pair whose names differ is reported as a *doubt*,
merged or not.

Invariant: the global schema is *stable*: names, places and attributes that it has are never changed or removed, so that
existing mappings and subscriptions keep their meaning. Same schemas in the same order, same result.
Cost: one correspondence per schema.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from pathcast.documents.schema import Occurrence
from pathcast.errors import MappingError

from .schema_correspondence_pruning import borne_out, has_names_alike
from .schema_tree import SchemaNode, SchemaTree, is_attribute, name_of, parent_of, steps_of
from .similarity_flooding import correspond, nodes_of

# Pairs below this confidence are ignored.
_SURE = 0.05
_OPTIONAL: dict[Occurrence, Occurrence] = {"": "?", "+": "*", "?": "?", "*": "*"}


@dataclass(frozen=True, slots=True)
class Doubt:
    """Two nodes whose names differ, the number of the schema, and whether the nodes were merged."""

    schema: int
    local: str
    glob: str
    taken: bool

    def __str__(self) -> str:
        if self.taken:
            return f"'{self.local}' was matched with '{self.glob}', though their names differ"
        return f"'{self.local}' was kept separate, but may be the same as '{self.glob}'"


def integrate(schemas: Iterable[SchemaTree]) -> SchemaTree:
    """A global schema for all of these, which should describe the same domain."""
    return integrate_with_doubts(schemas)[0]


def integrate_with_doubts(schemas: Iterable[SchemaTree]) -> tuple[SchemaTree, list[Doubt]]:
    """A global schema for all of these, and the doubts that a person should review."""
    given = list(schemas)
    if not given:
        raise MappingError("no schemas to integrate; give at least one")
    # The largest first; the sort is stable, so equal ones stay in the order given.
    first, *others = sorted(range(len(given)), key=lambda number: -len(nodes_of(given[number])))
    glob, doubts = given[first], []
    for number in others:
        local = given[number]
        found = {pair.local: pair.glob for pair in correspond(local, glob, least=_SURE)}
        taken = borne_out(local, glob, found)
        doubts += [
            Doubt(number, path, other, path in taken)
            for path, other in found.items()
            if not has_names_alike(path, other)
        ]
        glob = extended(glob, local, taken)
    return glob, doubts


def extended(glob: SchemaTree, local: SchemaTree, correspondence: Mapping[str, str]) -> SchemaTree:
    """The global schema with what only a local one has, as optional, and what that one lacks made optional."""
    nodes = {path: _Growing(node) for path, node in glob.paths.items()}
    images = set(correspondence.values())
    for path, known in nodes.items():
        if parent_of(path) and path not in images:
            known.cardinality = _OPTIONAL[known.cardinality]
    places = {path: there for path, there in correspondence.items() if not is_attribute(there)}
    for path in nodes_of(local):
        if path in correspondence:
            continue
        over = places.get(parent_of(path))
        if over is None:
            continue  # below a node that has no place, either
        above, name = nodes[over], name_of(path)
        if is_attribute(path):
            above.attributes.setdefault(name)
            continue
        place = places[path] = f"{over}/{name}"
        if place not in nodes:  # otherwise the existing node stays, and gets the local node's children
            node = local[path]
            above.children[name] = place
            nodes[place] = _Growing(SchemaNode(name, _OPTIONAL[node.cardinality], node.has_text))
    return SchemaTree(_frozen(nodes, steps_of(next(iter(glob.paths)))[0]))


class _Growing:
    """A node that gets more children and attributes; children by name, as paths."""

    def __init__(self, node: SchemaNode) -> None:
        self.node = node
        self.cardinality = node.cardinality
        self.attributes: dict[str, None] = dict.fromkeys(node.attributes)
        self.children: dict[str, str] = {}


def _frozen(nodes: Mapping[str, _Growing], path: str) -> SchemaNode:
    growing = nodes[path]
    names = dict.fromkeys([*(child.name for child in growing.node.children), *growing.children])
    return replace(
        growing.node,
        cardinality=growing.cardinality,
        attributes=tuple(growing.attributes),
        children=tuple(_frozen(nodes, f"{path}/{name}") for name in names),
    )
