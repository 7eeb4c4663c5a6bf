"""Selected parts: where in the bytes of a document an expression holds, to be marked for people.

    //story[head/title]/body[. != '']   ──▶   the <title> and the <body> elements of the stories that match

A pattern has no result, only conditions. What is marked are the ends of its branches: nodes at
which a path of the pattern ends, each within one match of the whole pattern. Of an `or`, the alternatives that hold
count; of a `not()`, nothing. Of an opaque pattern, the nodes are marked that its expression selects.

Invariant: a document without a match has no parts.
Cost: that of explaining, and one pass of expat over the document for the ends of elements.
Not done: text nodes by themselves (the content of their element is marked); elements that come from an entity (the part
is the reference to it).
"""

import re
from typing import Final, NamedTuple
from xml.parsers import expat

from pathcast.documents import Document, Limits
from pathcast.patterns import AllOf, AnyOf, Condition, Namespaces, Node, Pattern, Root

from .condition_node_sets import Truth, reached
from .document_node_sets import Contexts, DocumentNodes, NodeSet
from .evaluated_expressions import selected_by
from .step_and_condition_text import Spelling

_TAG: Final = re.compile(rb"""<[^\s/>]+(?:[^>"']|"[^"]*"|'[^']*')*>""")
_ATTRIBUTE: Final = re.compile(rb"""([^\s=<>/"']+)\s*=\s*(?:"[^"]*"|'[^']*')""")


class Part(NamedTuple):
    """A part of a document: `element`, `attribute` or `text`, from byte `begin` to before `end` of its UTF-8."""

    kind: str
    begin: int
    end: int


class Parts(NamedTuple):
    """The first parts in the order of the document, and how many there are."""

    parts: list[Part]
    total: int


def find_parts(document: Document, pattern: Pattern, namespaces: Namespaces, most: int) -> Parts:
    """The parts at which a pattern holds in a readable document, at most `most` of them."""
    alone = document.alone()[0]
    nodes = DocumentNodes(alone.batch, ignore_namespaces=Spelling(namespaces).local)
    if pattern.root is None:
        return Parts([], 0)
    if pattern.expression:
        found = selected_by(pattern.expression, alone.batch, Limits(), ignore_namespaces=Spelling(namespaces).local)
    else:
        found = _ends(Truth(nodes), pattern.root)
    count = sum(map(len, found))
    if not count:
        return Parts([], 0)
    spans = _Spans(alone.utf8)
    parts = {spans.part(nodes, each, index) for each in found for index in range(min(len(each), most))}
    return Parts(sorted(parts, key=lambda part: (part.begin, part.end))[:most], count)


def _ends(truth: Truth, root: Node) -> list[NodeSet]:
    """The nodes at which the paths of a pattern end, per path."""
    found: list[NodeSet] = []
    waiting: list[tuple[Condition, Contexts]] = [(root, None)]
    while waiting:
        condition, contexts = waiting.pop()
        match condition:
            case Node():
                nodes = reached(truth, condition, contexts, satisfied=True)
                below = [each for each in condition.conditions if _has_nodes(each)]
                waiting += [(each, nodes) for each in reversed(below)]
                if not below:
                    found.append(nodes)
            case Root():
                waiting.append((condition.node, None))
            case AllOf() | AnyOf():
                for each in reversed(condition.conditions):
                    if isinstance(condition, AllOf) or contexts is None:
                        waiting.append((each, contexts))
                    else:
                        waiting.append((each, contexts.where(truth.holds(each, contexts))))
    return found


def _has_nodes(condition: Condition) -> bool:
    match condition:
        case Node() | Root():
            return True
        case AllOf() | AnyOf():
            return any(map(_has_nodes, condition.conditions))
    return False


class _Spans:
    """Where the elements of a document begin and end."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._begin: list[int] = []
        self._end: list[int] = []
        open_: list[int] = []
        parser = expat.ParserCreate("utf-8")

        def start(_name: str, _attributes: object) -> None:
            open_.append(len(self._begin))
            self._begin.append(parser.CurrentByteIndex)
            self._end.append(-1)

        def end(_name: str) -> None:
            self._end[open_.pop()] = parser.CurrentByteIndex

        parser.StartElementHandler, parser.EndElementHandler = start, end
        parser.Parse(data, True)

    def part(self, nodes: DocumentNodes, found: NodeSet, index: int) -> Part:
        """The part of one node."""
        owner = int(nodes.owner(found.only(index))[0]) if found.kind != "element" else int(found.at[index])
        begin, end = self._begin[owner], self._end[owner]
        tag = _TAG.match(self._data, begin)
        if tag is None:  # an entity's reference, in whose text the element is
            return Part(found.kind, begin, self._data.find(b";", begin) + 1)
        is_empty = tag[0].endswith(b"/>")
        if found.kind == "attribute":
            place = int(found.at[index]) - int(nodes.batch.attribute_begin[owner])
            return self._attribute(tag[0], begin, place)
        if found.kind == "text":
            return Part("text", tag.end(), tag.end() if is_empty else end)
        return Part("element", begin, tag.end() if is_empty else self._data.find(b">", end) + 1)

    @staticmethod
    def _attribute(tag: bytes, begin: int, place: int) -> Part:
        """The attribute at a place in a start tag; declarations of namespaces do not count."""
        given = [each for each in _ATTRIBUTE.finditer(tag) if each[1] != b"xmlns" and not each[1].startswith(b"xmlns:")]
        if place >= len(given):  # a default from the document's DTD
            return Part("attribute", begin, begin + len(tag))
        return Part("attribute", begin + given[place].start(), begin + given[place].end())
