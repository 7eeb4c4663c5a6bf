"""Hints on missing nodes: describes a node that a step demands and the document lacks.

The description lists the nodes at the searched place. If the wanted node is elsewhere (deeper, or in another part of
the document), or a node has a similar name (another namespace, or other capitals), the description also shows the
first of these nodes: these are the most common mistakes.
"""

from collections.abc import Iterator

import numpy as np

from pathcast.documents import local_part
from pathcast.patterns import WILDCARD, Node

from .document_node_sets import Contexts, DocumentNodes, NodeSet, kind_of
from .explanation import SHOWN
from .findings_awaiting_locations import Draft, spot
from .step_and_condition_text import Spelling

_LISTED = 5


class Absence:
    """Describes missing nodes of one document."""

    def __init__(self, nodes: DocumentNodes, spelling: Spelling) -> None:
        self.nodes = nodes
        self.spelling = spelling

    def draft(self, text: str, node: Node, contexts: Contexts) -> Draft:
        """The finding about a step that reaches nothing from these contexts."""
        near = next(self._near(node, contexts), None)
        elsewhere = None if near is None else (near[0], spot(self.nodes, near[1], 0))
        if contexts is None:
            at_root = node.axis == "/" and node.is_element
            root = (spot(self.nodes, self.nodes.all("element"), 0),) if at_root else ()
            return Draft("step", text, False, root, len(root), self._at_document(node), elsewhere)
        spots = tuple(spot(self.nodes, contexts, place) for place in range(min(len(contexts), SHOWN)))
        return Draft("step", text, False, spots, len(contexts), self._at(node, contexts), elsewhere)

    # The nodes at the searched place.

    def _at_document(self, node: Node) -> str:
        if not node.is_element and node.axis == "/":
            return f"the document node has no {'text' if node.is_text else 'attributes'}; only elements do"
        if node.axis == "/":
            root = self._label(int(self.nodes.batch.name[0]))
            return f"the root element is `{root}`, wanted `{self.spelling.test(node.test)}`"
        return f"the document has no {self._what(node)}"

    def _at(self, node: Node, contexts: NodeSet) -> str:
        context = contexts.only(0)
        if node.axis == "//":
            return f"no {self._what(node)} {'below' if node.is_element else 'here or below'}"
        if node.is_text:
            return "no text of its own"
        batch, at = self.nodes.batch, int(context.at[0])
        if node.is_attribute:
            mine = slice(int(batch.attribute_begin[at]), int(batch.attribute_begin[at + 1]))
            found, there = batch.attribute_name[mine], "attributes"
        else:
            inside = slice(at + 1, int(batch.end[at]))
            found, there = batch.name[inside][batch.parent[inside] == at], "children"
        what = self._what(node) if node.is_attribute else f"child {self._what(node)}"
        return f"no {what} ({self._listed(found.tolist(), there)})"

    def _listed(self, numbers: list[int], there: str) -> str:
        labels = list(dict.fromkeys(map(self._label, numbers)))
        if not labels:
            return f"there are no {there}"
        more = f" and {len(labels) - _LISTED} more names" if len(labels) > _LISTED else ""
        return f"{there}: {', '.join(labels[:_LISTED])}{more}"

    def _what(self, node: Node) -> str:
        if node.is_text:
            return "text"
        if node.is_attribute:
            return f"attribute `{self.spelling.name(node.test[1:])}`"
        return "element" if node.test == WILDCARD else f"`{self.spelling.test(node.test)}`"

    def _label(self, number: int) -> str:
        return self.spelling.name(self.nodes.batch.name_of(number))

    # Similar nodes elsewhere.

    def _near(self, node: Node, contexts: Contexts) -> Iterator[tuple[str, NodeSet]]:
        """Similar nodes, the nearest first."""
        if node.is_text or node.test == WILDCARD:
            return
        same = self.nodes.named(node.test)
        if node.axis == "/":
            deeper = same.where(self.nodes.reached("//", contexts, same))
            if len(deeper):
                yield "found deeper", deeper
        # Not in the searched place: `//b` below a `b`.
        elsewhere = (
            same if contexts is None or contexts.kind != same.kind else same.where(~np.isin(same.at, contexts.at))
        )
        if len(elsewhere):
            yield "found elsewhere", elsewhere
        wanted = node.test.removeprefix("@")
        column = self.nodes.batch.attribute_name if node.is_attribute else self.nodes.batch.name
        for but, numbers in self._like(wanted):
            like = NodeSet(kind_of(node.test), np.flatnonzero(np.isin(column, numbers)).astype(np.int32))
            there = like.where(self.nodes.reached(node.axis, contexts, like))
            if len(there):
                yield but, there

    def _like(self, wanted: str) -> Iterator[tuple[str, list[int]]]:
        """Names similar to the wanted one, by their numbers."""
        local = local_part(wanted)
        names = [name for name in self.nodes.numbers if name != wanted]
        for name in names:
            if local_part(name) == local:
                uri = name[1 : -len(local) - 1]
                yield f"found in {f'the namespace {uri}' if uri else 'no namespace'}", self.nodes.numbers[name]
        for name in names:
            if local_part(name).casefold() == local.casefold():
                yield f"found with the spelling `{self.spelling.name(name)}`", self.nodes.numbers[name]
