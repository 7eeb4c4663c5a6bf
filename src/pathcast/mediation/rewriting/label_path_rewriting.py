"""Mediation of label paths: for plain paths, no document is rewritten.

A plain path is matched by a label path, and for most operators the label path of an element in the global schema
follows from that in the local one: Rename, ToElement, Insert and Upgrade do not depend on siblings. So each node of the
local schema has one global label path; the engine finds the subscriptions that it matches once; and a document matches
the subscriptions of its nodes. Documents with the same set of nodes, as most documents of a publisher have, take one
look-up.

Invariant: matches are those of the rewritten document. Documents are rewritten for Downgrade and Exchange (which depend
on siblings), for Move, for patterns with predicates, and if they have elements that the schema does not have.
Cost: a few ns per element after reading; for a new set of nodes a union of their matches, cached for `_KEPT` sets.
"""

import numpy as np

from pathcast.documents import DocumentBatch, read_batch
from pathcast.kernels import Bools, Int32s, Int64s, UInt64s
from pathcast.matching import View

from ..mappings.document_object_tree import Item, to_bytes
from ..mappings.operators_by_schema_node import Down, Into, NodePlan, Plan, Up
from ..schemas.schema_tree import name_of, parent_of
from .operator_plan_arrays import Tables
from .schema_node_lookup_kernels import mark_present, place_elements

_KEPT = 10_000


def is_by_paths(plan: Plan) -> bool:
    """Whether the global label path of an element follows from its local one."""
    return not plan.incoming and not any(
        each.exchange is not None or any(isinstance(place, Down) for place in each.places.values())
        for each in plan.nodes.values()
    )


def global_paths(plan: Plan) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """The label path of each node in the global schema, and of each attribute of the tables that becomes an element."""
    around: dict[str, tuple[str, ...]] = {}  # the path of the node's parent
    nodes: dict[str, tuple[str, ...]] = {}
    attributes: list[tuple[str, ...]] = []
    for path, each in plan.nodes.items():
        above = parent_of(path)
        around[path] = _around(plan.nodes[above], name_of(path), around[above], nodes[above]) if above else ()
        nodes[path] = (*around[path], each.name)
        attributes += [()] * len(each.attributes) + [(*nodes[path], name) for _, name in each.elements]
    return list(nodes.values()), attributes


def _around(parent: NodePlan, name: str, over: tuple[str, ...], above: tuple[str, ...]) -> tuple[str, ...]:
    match parent.place(name):
        case Into(path):
            return (*above, *path)
        case Up():
            return over
    return above


def known_documents(batch: DocumentBatch, tables: Tables) -> Bools:
    """Which documents have only elements of the schema, and no texts that rewriting would merge."""
    nodes = np.empty(len(batch.name), dtype=np.int32)
    is_split = place_elements(batch.elements, batch.values.texts, tables.schema(batch.known_count), nodes)
    if is_split:
        return np.zeros(len(batch), dtype=np.bool_)
    return _marked(batch, tables, tables.nodes.shape[1] + tables.attributes.shape[1])[1]


def _marked(batch: DocumentBatch, tables: Tables, bits: int) -> tuple[UInt64s, Bools]:
    marks = np.zeros((len(batch), (bits + 63) // 64), dtype=np.uint64)
    is_known = np.zeros(len(batch), dtype=np.bool_)
    nodes, schema = np.empty(len(batch.name), dtype=np.int32), tables.schema(batch.known_count)
    mark_present(batch.elements, batch.values.attributes, schema, tables.plan, nodes, marks, is_known)
    return marks, is_known


class PathMediation:
    """Answers for documents of one mapping, from the nodes that they have."""

    def __init__(self, plan: Plan, tables: Tables) -> None:
        self._tables = tables
        nodes, attributes = global_paths(plan)
        self._paths = [*nodes, *attributes]
        self._view: View | None = None
        self._begin: Int64s = np.zeros(1, dtype=np.int64)
        self._entries: Int32s = np.empty(0, dtype=np.int32)
        self._known: dict[bytes, Int32s] = {}

    def match(self, batch: DocumentBatch, view: View) -> list[Int32s | None]:
        """The entries that each document matches, ascending; None for one that has to be rewritten, or has an error."""
        tables = self._tables
        known, begin, entries = self._followed(view)
        marks, is_known = _marked(batch, tables, len(self._paths))
        found: list[Int32s | None] = []
        for index in range(len(batch)):
            if not is_known[index]:
                found.append(None)
                continue
            key = marks[index].tobytes()
            answer = known.get(key)
            if answer is None:
                if len(known) >= _KEPT:
                    known.clear()
                bits = np.unpackbits(marks[index].view(np.uint8), bitorder="little")
                present = np.flatnonzero(bits).tolist()
                answer = known[key] = np.unique(np.concatenate([entries[begin[k] : begin[k + 1]] for k in present]))
            found.append(answer)
        return found

    def _followed(self, view: View) -> tuple[dict[bytes, Int32s], Int64s, Int32s]:
        """The cache for a view of the subscriptions; empty when they have changed."""
        before = self._view
        if before is None or before.engine is not view.engine or before.expansion.version != view.expansion.version:
            chains = read_batch([_chain(path) for path in self._paths], names=view.table.names)
            begin, entries = view.match_batch(chains)
            self._view, self._known, self._begin, self._entries = view, {}, begin, entries
        return self._known, self._begin, self._entries


def _chain(path: tuple[str, ...]) -> bytes:
    """A label path as a document. (An attribute that stays an attribute has no path; its document is not used.)"""
    inside: list[Item | str] = []
    for name in reversed(path):
        inside = [Item(name, content=inside)]
    top = inside[0] if inside else Item("none")
    assert isinstance(top, Item)
    return to_bytes(top)
