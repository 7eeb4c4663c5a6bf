"""Samples of a schema tree's nodes: the values that they have in sample documents.

Values are kept per document, since documents that say the same in two schemas show which nodes correspond. White space
is collapsed, long values are cut, and only the first values of each node count: a sample, not a copy.

Invariant: every occurrence that counts has a value; elements without text of their own have empty ones.
Cost: linear in the documents; at most `_VALUES` values of `_LENGTH` characters per node.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ..mappings.document_object_tree import Item

_VALUES = 1_000
_LENGTH = 200


class NodeSamples(NamedTuple):
    """The values of a node by the number of their document, in document order."""

    by_document: Mapping[int, tuple[str, ...]]

    @property
    def values(self) -> list[str]:
        """All values that are not empty."""
        return [value for values in self.by_document.values() for value in values if value]


def node_samples(documents: Iterable[Item]) -> dict[str, NodeSamples]:
    """The values of each element and attribute path of some documents."""
    found: dict[str, dict[int, list[str]]] = {}
    counts: dict[str, int] = {}

    def note(path: str, number: int, value: str) -> None:
        counts[path] = counts.get(path, 0) + 1
        if counts[path] <= _VALUES:
            found.setdefault(path, {}).setdefault(number, []).append(" ".join(value.split())[:_LENGTH])

    for number, root in enumerate(documents):
        stack = [(root.name, root)]
        while stack:
            path, item = stack.pop()
            note(path, number, " ".join(part for part in item.content if isinstance(part, str)))
            for name, value in item.attributes.items():
                note(f"{path}/@{name}", number, value)
            stack.extend((f"{path}/{child.name}", child) for child in reversed(list(item.elements)))
    return {
        path: NodeSamples({number: tuple(values) for number, values in by_document.items()})
        for path, by_document in found.items()
    }
