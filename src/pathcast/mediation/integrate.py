"""Integrating schemas: one global schema tree that has a place for what each local one has.

It begins with the largest of them. Each of the others is laid beside what there is by now (`correspond.py`); what it
has and the global one lacks is added below the image of its nearest ancestor that has one, as optional; and what the
local one lacks becomes optional.

Invariant: the global schema is *stable*: names, places and attributes that it has are never changed or removed, so that
mappings and subscriptions made before stay what they were. Same schemas in the same order, same result.
Cost: one correspondence a schema.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from ..documents.schema import Occurrence
from ..errors import MappingError
from .correspond import correspond, nodes_of
from .schema_tree import SchemaNode, SchemaTree, is_attribute, name_of, parent_of, steps_of

# Pairs below this confidence are not taken for one thing: two places for it do less harm than one for two things.
_SURE = 0.05
_OPTIONAL: dict[Occurrence, Occurrence] = {"": "?", "+": "*", "?": "?", "*": "*"}


def integrate(schemas: Iterable[SchemaTree]) -> SchemaTree:
    """A global schema for all of these, which should be about the same things."""
    given = list(schemas)
    if not given:
        raise MappingError("there is no schema to integrate")
    # The largest first; the sort is stable, so equal ones stay in the order given.
    first, *others = sorted(given, key=lambda tree: -len(nodes_of(tree)))
    glob = first
    for local in others:
        glob = extended(glob, local, {pair.local: pair.glob for pair in correspond(local, glob, least=_SURE)})
    return glob


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
            continue  # below something that found no place either
        above, name = nodes[over], name_of(path)
        if is_attribute(path):
            above.attributes.setdefault(name)
            continue
        place = places[path] = f"{over}/{name}"
        if place not in nodes:  # else what is there stays, and takes up what the local one has below
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
