"""Patterns as documents, so that an engine finds the patterns that may contain them.

A pattern drawn as a document has its steps as elements, `*` as a name that no pattern has, and `//` as one such element
in between. Other parts are drawn as elements, too: an attribute, a text node, and each condition whose value is fixed
(`= 5`, `or`, `not`) is an element with a unique name; conditions that follow from others (`>= 3`) are omitted.

    /a[@x = 5]//b    drawn     <a><n1><n2/></n1><any><b/></any></a>       n1 for @x, n2 for "= 5"

Invariant: the path of a pattern matches the document of every pattern that it contains by `contains`, except for cases
of an `or`. The converse does not hold: a match must be proved.
"""

from collections.abc import Iterator

from pathcast.patterns import WILDCARD, Compare, Condition, Node, Pattern

_ANY = "any"
_FIXED = frozenset({"="})


class Drawing:
    """Patterns as paths and as documents, over generated names."""

    def __init__(self) -> None:
        self._names: dict[object, str] = {}

    def name(self, what: object) -> str:
        return self._names.setdefault(what, f"n{len(self._names)}")

    def path(self, pattern: Pattern) -> str:
        """The pattern's steps, with the values and conditions that are drawn."""
        return "/*" if pattern.root is None else self._path(pattern.root, "/", "//")

    def _path(self, node: Node, child: str, descendant: str) -> str:
        text = (child if node.axis == "/" else descendant) + ("*" if node.test == WILDCARD else self.name(node.test))
        parts = [
            self._path(each, "", ".//") if isinstance(each, Node) else self.name(each)
            for each in _drawn(node.conditions)
        ]
        if len(parts) == 1:
            follow = parts[0]
            return text + (follow[1:] if follow.startswith(".//") else "/" + follow)
        return text + "".join(f"[{part}]" for part in parts)

    def document(self, pattern: Pattern) -> bytes:
        """A document that matches the pattern, with one element per step, and so as few other patterns as possible."""
        return f"<{_ANY}/>".encode() if pattern.root is None else self._element(pattern.root).encode()

    def _element(self, node: Node) -> str:
        tag = _ANY if node.test == WILDCARD else self.name(node.test)
        inside = "".join(
            self._element(each) if isinstance(each, Node) else f"<{self.name(each)}/>"
            for each in _drawn(node.conditions)
        )
        text = f"<{tag}>{inside}</{tag}>"
        return f"<{_ANY}>{text}</{_ANY}>" if node.axis == "//" else text


def _drawn(conditions: tuple[Condition, ...]) -> Iterator[Condition]:
    for condition in conditions:
        if not isinstance(condition, Compare) or condition.operator in _FIXED:
            yield condition
