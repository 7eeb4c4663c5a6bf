"""Needed values: those of a document that the patterns of a router depend on.

A structure annotation (`structure_encoder.py`) carries a document's label paths and the attributes and texts
that a router downstream may compare: no other value can change a result. A router's needs are those of its own patterns
and those that its neighbours advertised to it; they are part of an advertisement, since aggregates drop value
predicates.

Invariant: two documents with the same structure and the same needed values match the same patterns.
Cost: one visit of each distinct node of the patterns; plain paths need nothing and are skipped.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b

from pathcast.documents import local_part
from pathcast.errors import MessageError
from pathcast.matching.table import PatternTable
from pathcast.patterns import (
    WILDCARD,
    AllOf,
    AnyOf,
    Compare,
    Condition,
    First,
    Node,
    Not,
    Pattern,
    Root,
    StringTest,
    conditions_in,
)

ANY = WILDCARD
_ATTRIBUTE, _TEXT, _VALUE = "@", "t", "v"
_ESCAPE, _ESCAPED = re.compile(r"\\(.?)"), {"\\": "\\", "s": " ", "n": "\n"}


@dataclass(frozen=True)
class Needs:
    """`attributes` are pairs of element and attribute; `texts` and `values` are elements whose text nodes and whose
    string-value are needed. An element is a name, or `*` for every element. `local`: names are local parts.
    """

    attributes: frozenset[tuple[str, str]] = frozenset()
    texts: frozenset[str] = frozenset()
    values: frozenset[str] = frozenset()
    local: bool = False

    @classmethod
    def of(cls, patterns: Iterable[Pattern], *, local: bool = False) -> "Needs":
        """The needs of these patterns."""
        found = _Found()
        for pattern in patterns:
            if pattern.root is not None:
                found.look(ANY, pattern.root)
        return found.needs(local=local)

    @classmethod
    def of_table(cls, table: PatternTable) -> "Needs":
        """The needs of the patterns of a table."""
        return TableNeeds(table).current()

    def __or__(self, other: "Needs") -> "Needs":
        """The union of both needs."""
        if self == other:
            return self
        if self.local != other.local:
            raise ValueError(
                "cannot combine needed values: one side has local names (namespaces='ignore'), the other full names; "
                "use the same namespaces= for both"
            )
        return Needs(
            self.attributes | other.attributes, self.texts | other.texts, self.values | other.values, self.local
        )

    def __bool__(self) -> bool:
        return bool(self.attributes or self.texts or self.values)

    @cached_property
    def version(self) -> int:
        """A number that identifies the needs: both ends of a link must have the same."""
        return int.from_bytes(blake2b(self.encode(), digest_size=4).digest(), "little")

    @cached_property
    def attribute_names(self) -> tuple[str, ...]:
        """The needed attributes, in the order of their numbers in annotations."""
        return tuple(sorted({name for _, name in self.attributes}))

    def spelled(self, name: str) -> str:
        """A name of a document as needs write it."""
        return local_part(name) if self.local else name

    def encode(self) -> bytes:
        """The needs as bytes, the same for equal needs."""
        rows = [f"{_ATTRIBUTE} {_written(element)} {_written(name)}" for element, name in self.attributes]
        rows += [f"{_TEXT} {_written(element)}" for element in self.texts]
        rows += [f"{_VALUE} {_written(element)}" for element in self.values]
        return "\n".join(["local" if self.local else "full", *sorted(rows)]).encode()

    @classmethod
    def decode(cls, data: bytes) -> "Needs":
        """The needs that `encode` wrote; `MessageError` for anything else."""
        try:
            first, *rows = data.decode().split("\n")
        except UnicodeDecodeError as error:
            raise MessageError(
                "the message is damaged: its list of needed values is not UTF-8; request the message again"
            ) from error
        attributes, texts, values = set(), set(), set()
        for row in rows:
            match row.split(" "):
                case ["@", element, name] if element and name:
                    attributes.add((_read(element), _read(name)))
                case ["t", element] if element:
                    texts.add(_read(element))
                case ["v", element] if element:
                    values.add(_read(element))
                case _:
                    raise MessageError(
                        f"the message is damaged: malformed row {row[:60]!r} in its list of needed values; "
                        "request the message again"
                    )
        if first not in {"local", "full"}:
            raise MessageError(
                f"the message is damaged: its list of needed values must begin with 'local' or 'full', "
                f"got {first[:60]!r}; request the message again"
            )
        return cls(frozenset(attributes), frozenset(texts), frozenset(values), first == "local")


def _written(name: str) -> str:
    """A name with separators escaped: a namespace may have any character."""
    return name.replace("\\", "\\\\").replace(" ", "\\s").replace("\n", "\\n")


def _read(written: str) -> str:
    """The name from the text that `_written` returned."""
    if not all(mark in _ESCAPED for mark in _ESCAPE.findall(written)):
        raise MessageError(
            f"the message is damaged: malformed name {written[:60]!r} in its list of needed values; request the "
            "message again"
        )
    return _ESCAPE.sub(lambda found: _ESCAPED[found[1]], written)


class TableNeeds:
    """The needs of a growing table: each pattern is visited once. Needs are never removed."""

    def __init__(self, table: PatternTable) -> None:
        self.table = table
        self._found = _Found()
        self._seen = 0
        self._needs = Needs(local=table.namespaces == "ignore")

    def current(self) -> Needs:
        """The needs of all current patterns."""
        if self._seen < len(self.table):
            end = len(self.table)
            for entry in self.table.trees.between(self._seen, end):
                pattern = self.table.trees[entry]
                if pattern.root is not None:
                    self._found.look(ANY, pattern.root)
            self._seen = end
            self._needs |= self._found.needs(local=self._needs.local)
        return self._needs


class _Found:
    """The needs found so far; a node is visited once, whatever is above it."""

    def __init__(self) -> None:
        self.attributes: set[tuple[str, str]] = set()
        self.texts: set[str] = set()
        self.values: set[str] = set()
        self._seen: set[Node] = set()

    def needs(self, *, local: bool) -> Needs:
        """All needs found."""
        return Needs(frozenset(self.attributes), frozenset(self.texts), frozenset(self.values), local)

    def look(self, element: str, condition: Condition) -> None:
        """Visit a condition on an element with this test, and all its parts."""
        waiting: list[tuple[str, Condition]] = [(element, condition)]
        while waiting:
            where, current = waiting.pop()
            if isinstance(current, Node):
                waiting += self._node(where, current)
            elif isinstance(current, (Compare, StringTest)):
                self.values.add(where)
            elif isinstance(current, (AllOf, AnyOf)):
                waiting += [(where, each) for each in current.conditions]
            elif isinstance(current, Not):
                waiting.append((where, current.condition))
            elif isinstance(current, Root):
                waiting.append((ANY, current.node))
            elif isinstance(current, First):
                waiting += self._first(where, current)

    def _node(self, where: str, node: Node) -> list[tuple[str, Condition]]:
        """A node below an element: an attribute or a text is needed; an element has its own conditions."""
        if node.is_attribute:
            self.attributes.add((where if node.axis == "/" else ANY, node.test[1:]))
            return _elsewhere(node)
        if node.is_text:
            (self.texts if node.axis == "/" else self.values).add(where)
            return _elsewhere(node)
        if node in self._seen:
            return []
        self._seen.add(node)
        return [(node.test, each) for each in node.conditions]

    def _first(self, where: str, first: First) -> list[tuple[str, Condition]]:
        """A path whose first node is tested: its steps, and the value of its last node."""
        found: list[tuple[str, Condition]] = []
        above = ANY if first.absolute else where
        for step in first.steps:
            found += self._node(above, step)
            above = step.test
        if not first.steps or first.steps[-1].is_element:
            self.values.add(above)
        return found


def _elsewhere(node: Node) -> list[tuple[str, Condition]]:
    """The conditions of an attribute or a text on other places: absolute paths."""
    inside = [each for condition in node.conditions for each in conditions_in(condition)]
    return [(ANY, each) for each in inside if isinstance(each, Root) or (isinstance(each, First) and each.absolute)]
