"""Label paths of a document's elements: the nodes of `/a//b` without a search.

Which elements a path without predicates reaches follows from their label paths alone. A document has few distinct label
paths, and documents share them; a compiled path remembers for each whether it reaches it. So the nodes of a path are
those of some label paths that end with its last name.

Invariant: `LabelPath` objects of one root are equal exactly if they are the same object.
Cost: a look-up per element to index a document, once; a look-up per label path that ends with the name, per path.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pathcast.patterns.xpath import Step

if TYPE_CHECKING:
    from .document_nodes import DocumentNodes

_MOST_REMEMBERED = 1 << 12  # label paths per compiled path
_MOST_PATHS = 1 << 16  # label paths that are kept for further documents


class LabelPath:
    """The names of an element and of its ancestors: one object per label path."""

    __slots__ = ("above", "below", "name")

    def __init__(self, name: str = "", above: "LabelPath | None" = None) -> None:
        self.name, self.above = name, above
        self.below: dict[str, LabelPath] = {}

    def names(self) -> list[str]:
        """The names from the root element down."""
        found: list[str] = []
        path = self
        while path.above is not None:
            found.append(path.name)
            path = path.above
        return found[::-1]


class LabelPaths:
    """The label paths of many documents, in bounded memory."""

    def __init__(self) -> None:
        self.root, self._left = LabelPath(), _MOST_PATHS

    def for_document(self, elements: int) -> LabelPath:
        """The root for a document with this number of elements."""
        self._left -= elements
        if self._left < 0:
            self.root, self._left = LabelPath(), _MOST_PATHS
        return self.root


class LabelPathIndex:
    """The elements of one document by their label paths."""

    def __init__(self, tested: Sequence[str | None], parent: Sequence[int], elements: Sequence[int], root: LabelPath):
        self.all: list[tuple[LabelPath, list[int]]] = []
        self.named: dict[str, list[tuple[LabelPath, list[int]]]] = {}
        path_of: dict[int, LabelPath] = {0: root}
        members: dict[LabelPath, list[int]] = {}
        for element in elements:
            above, name = path_of[parent[element]], tested[element] or ""
            path = above.below.get(name)
            if path is None:
                path = above.below.setdefault(name, LabelPath(name, above))
            path_of[element] = path
            known = members.get(path)
            if known is None:
                members[path] = known = []
                self.all.append((path, known))
                self.named.setdefault(name, []).append((path, known))
            known.append(element)


def is_located(step: Step) -> bool:
    """Whether label paths decide what a step reaches from other located steps, its predicates aside."""
    return step.axis in ("child", "descendant") and step.test.kind in ("name", "any")


def compile_located(steps: Sequence[Step]) -> "Callable[[DocumentNodes], list[int]]":
    """The elements that located steps reach from the document, predicates left out."""
    shape = [(step.axis == "descendant", step.test.name if step.test.kind == "name" else "") for step in steps]
    last = shape[-1][1]
    known: dict[LabelPath, bool] = {}

    def located(nodes: "DocumentNodes") -> list[int]:
        index = nodes.label_paths()
        found: list[int] = []
        paths = index.named.get(last, ()) if last else index.all
        several = 0
        for path, members in paths:
            reached = known.get(path)
            if reached is None:
                if len(known) >= _MOST_REMEMBERED:
                    known.clear()
                reached = known[path] = _reaches(shape, path.names())
            if reached:
                found = found + members if several else members
                several += 1
        nodes.spend(len(paths) + len(found))
        return sorted(found) if several > 1 else found

    return located


def _reaches(shape: Sequence[tuple[bool, str]], names: Sequence[str]) -> bool:
    """Whether steps, each with its name and whether it skips levels, lead to the element with these names."""
    ends = {0}  # the numbers of names that the steps so far may have used
    for skips, name in shape:
        ends = {
            at + 1
            for end in ends
            for at in range(end, len(names) if skips else min(end + 1, len(names)))
            if not name or names[at] == name
        }
    return len(names) in ends
