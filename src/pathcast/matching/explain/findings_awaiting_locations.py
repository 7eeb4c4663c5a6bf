"""Unlocated: findings whose nodes have no lines and paths yet.

Lines are counted for all nodes of an explanation together, in one pass over the document; until then a finding refers
to nodes by index.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from .document_node_sets import DocumentNodes, Kind, NodeSet
from .explanation import Elsewhere, Finding, Place
from .node_locations import Locations


class Spot(NamedTuple):
    """A node of the document, the element that holds it, and its value if that was tested."""

    kind: Kind
    at: int
    element: int
    value: str | None = None


def spot(document: DocumentNodes, nodes: NodeSet, place: int, value: str | None = None) -> Spot:
    """The node at a place of a set."""
    node = nodes.only(place)
    holder = node.at if nodes.kind == "element" else document.owner(node)
    return Spot(nodes.kind, int(node.at[0]), int(holder[0]), value)


@dataclass(frozen=True, slots=True)
class Draft:
    """A future `Finding`, which documents the fields."""

    kind: str
    text: str
    holds: bool
    spots: tuple[Spot, ...] = ()
    count: int = 0
    reason: str = ""
    elsewhere: tuple[str, Spot] | None = None
    parts: tuple["Draft", ...] = ()

    def all_spots(self) -> Iterator[Spot]:
        """All nodes that the finding and its parts show."""
        yield from self.spots
        if self.elsewhere is not None:
            yield self.elsewhere[1]
        for part in self.parts:
            yield from part.all_spots()


def finished(drafts: tuple[Draft, ...], locations: Locations) -> tuple[Finding, ...]:
    """The drafts as findings, each node with its path, line and column."""
    spots = {spot for draft in drafts for spot in draft.all_spots()}
    lines = locations.lines(spot.element for spot in spots)
    places = {spot: _place(spot, lines[spot.element], locations) for spot in spots}
    return tuple(_finding(draft, places) for draft in drafts)


def _place(spot: Spot, where: tuple[int, int], locations: Locations) -> Place:
    return Place(locations.path(NodeSet.one(spot.kind, spot.at), 0), *where, spot.value)


def _finding(draft: Draft, places: dict[Spot, Place]) -> Finding:
    near = draft.elsewhere
    return Finding(
        kind=draft.kind,
        text=draft.text,
        holds=draft.holds,
        places=tuple(places[spot] for spot in draft.spots),
        count=draft.count,
        reason=draft.reason,
        elsewhere=None if near is None else Elsewhere(near[0], places[near[1]]),
        parts=tuple(_finding(part, places) for part in draft.parts),
    )
