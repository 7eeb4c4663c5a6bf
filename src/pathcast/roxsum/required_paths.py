"""Demands: the plain paths that a document must have before a pattern with predicates can match it.

The demands of a tree pattern are the paths from the root to each required element (not under `or` or `not`), without
values. A document that lacks one of them cannot match; a document that has all of them may still not match: the
branches of `/a/b[c][d]` may be under two different `b`. So demands yield candidates, not matches.

Invariant: the candidates of a pattern include all documents that match it.
"""

from collections.abc import Iterator

import numpy as np

from pathcast.documents import local_part
from pathcast.matching import Matcher, Subscriptions, View
from pathcast.patterns import AllOf, Condition, Namespaces, Node, Pattern, Root

Path = tuple[Node, ...]


def demanded_paths(pattern: Pattern) -> Iterator[Path]:
    """The longest paths of elements that a pattern demands; none when it demands no element."""
    if pattern.root is not None:
        yield from _below(pattern.root, ())


def _below(condition: Condition, above: Path) -> Iterator[Path]:
    match condition:
        case Root():
            yield from _below(condition.node, ())
        case AllOf():
            for part in condition.conditions:
                yield from _below(part, above)
        case Node() if condition.is_element:
            path = (*above, condition)
            deeper = [found for part in condition.conditions for found in _below(part, path)]
            if not any(found[: len(path)] == path for found in deeper):
                yield path
            yield from deeper


class Demands:
    """The demands of a view's tree patterns, as a matcher of plain paths of their own."""

    def __init__(self, view: View) -> None:
        table = view.table
        self._of = table, view.size
        self.trees = table.trees.between(0, view.size)
        self.is_tree = np.zeros(view.size, dtype=np.bool_)
        self.is_tree[self.trees] = True
        self.prefixes: dict[str, str] = {}
        numbers: dict[str, int] = {}
        self.of_tree: list[list[int]] = []  # ids of the paths, from 1
        for entry in self.trees:
            found = {self._text(path): None for path in demanded_paths(table.trees[entry])}
            self.of_tree.append([numbers.setdefault(text, len(numbers) + 1) for text in found])
        namespaces: Namespaces = "ignore" if table.namespaces == "ignore" else self._namespaces()
        self.matcher: Matcher | None = None
        if numbers:
            paths = Subscriptions(namespaces)
            paths.add_many(list(numbers))
            self.matcher = paths.compile()

    def fit(self, view: View) -> bool:
        """Whether these are the demands of a view."""
        return self._of[0] is view.table and self._of[1] == view.size

    def _namespaces(self) -> dict[str, str]:
        return {prefix: uri for uri, prefix in self.prefixes.items()}

    def _text(self, path: Path) -> str:
        return "".join(node.axis + self._name(node.test) for node in path)

    def _name(self, name: str) -> str:
        """A name as an expression of our own writes it: with a prefix for each namespace."""
        local = local_part(name)
        if local == name:
            return name
        uri = name[1 : -len(local) - 1]
        return f"{self.prefixes.setdefault(uri, f'n{len(self.prefixes)}')}:{local}"
