"""Text: names, steps, conditions and values as an explanation prints them.

Names are printed with the prefixes that the subscriptions declare, as `Q{uri}local` if there is none, and by their
local part if namespaces are ignored.
"""

from collections.abc import Mapping

from msgspec.structs import replace

from pathcast.documents import XML_NAMESPACE, local_part
from pathcast.patterns import (
    AllOf,
    AnyOf,
    Compare,
    Condition,
    First,
    Namespaces,
    Node,
    Not,
    Root,
    StringTest,
    condition_text,
    test_text,
)

from .node_value_tests import VALUE_PRINTED


class Spelling:
    """Prints names, given the namespaces of the subscriptions."""

    def __init__(self, namespaces: Namespaces) -> None:
        self.local = namespaces == "ignore"
        declared = namespaces if isinstance(namespaces, Mapping) else {}
        self._prefixes = {XML_NAMESPACE: "xml"} | {uri: prefix for prefix, uri in declared.items()}

    def name(self, name: str) -> str:
        """An expanded name."""
        local = local_part(name)
        if self.local or local == name:
            return local
        prefix = self._prefixes.get(name[1 : -len(local) - 1])
        return test_text(name) if prefix is None else f"{prefix}:{local}"

    def test(self, test: str) -> str:
        """The test of a step: `p`, `@id`, `*`, `text()`."""
        return "@" + self.name(test[1:]) if test[0] == "@" else self.name(test)

    def step(self, node: Node, *, relative: bool = False) -> str:
        """A step with its axis; `relative`: the first one of a path inside a predicate."""
        axis = {"/": "", "//": ".//"}[node.axis] if relative else node.axis
        return axis + self.test(node.test)

    def condition(self, condition: Condition) -> str:
        """A condition as printed inside a predicate."""
        return condition_text(self._spelt(condition))

    def _spelt(self, condition: Condition) -> Condition:
        match condition:
            case Node():
                test = self.test(condition.test)
                if "Q{" in test:  # the printer writes this itself
                    test = condition.test
                return Node(condition.axis, test, tuple(map(self._spelt, condition.conditions)))
            case Root():
                return Root(self._spelt_node(condition.node))
            case First():
                return replace(condition, steps=tuple(map(self._spelt_node, condition.steps)))
            case AllOf() | AnyOf():
                return replace(condition, conditions=tuple(map(self._spelt, condition.conditions)))
            case Not():
                return Not(self._spelt(condition.condition))
            case Compare() | StringTest():
                return condition

    def _spelt_node(self, node: Node) -> Node:
        spelt = self._spelt(node)
        assert isinstance(spelt, Node)
        return spelt


def wanted(test: Compare | StringTest) -> str:
    """The demand of a test in words: `wanted 9`, `wanted more than 5`, `does not contain 'x'`."""
    if isinstance(test, StringTest):
        return f"does not {'contain' if test.function == 'contains' else 'start with'} {quoted(test.text)}"
    literal = quoted(test.string) if test.string is not None else test.text
    words = {"=": "", "!=": "anything but ", "<": "less than ", "<=": "at most ", ">": "more than ", ">=": "at least "}
    return f"wanted {words[test.operator]}{literal}"


def quoted(value: str) -> str:
    """A value in quotes on one line, cut if it is long, without control characters."""
    cut = value if len(value) <= VALUE_PRINTED else value[:VALUE_PRINTED] + "…"
    return "'" + "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in cut) + "'"
