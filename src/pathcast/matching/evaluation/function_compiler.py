"""The functions of XPath 1.0 as functions of their arguments' values."""

from collections.abc import Callable
from typing import Any

from pathcast.documents import XML_NAMESPACE, expanded, local_part

from .comparison_compiler import number_in
from .document_nodes import ELEMENT, NAMESPACE, DocumentNodes
from .xpath_strings import floored, is_language, normalized, raised, rounded, seconds_of, substring, translated

_LANGUAGE = expanded(XML_NAMESPACE, "lang")


def _after(text: str, sought: str) -> str:
    return text.partition(sought)[2] if sought else text


def _before(text: str, sought: str) -> str:
    before, found, _ = text.partition(sought) if sought else ("", "", "")
    return before if found else ""


OF_VALUES: dict[str, Callable[..., Any]] = {
    "concat": lambda *texts: "".join(texts),
    "starts-with": str.startswith,
    "contains": str.__contains__,
    "substring-before": _before,
    "substring-after": _after,
    "substring": substring,
    "string-length": lambda text: float(len(text)),
    "normalize-space": normalized,
    "translate": translated,
    "not": lambda truth: not truth,
    "true": lambda: True,
    "false": lambda: False,
    "floor": floored,
    "ceiling": raised,
    "round": rounded,
    "ends-with": str.endswith,
    "lower-case": str.lower,
    "upper-case": str.upper,
    "date": seconds_of,
    "count": lambda found: float(len(found)),
}
"""Functions that see nothing but the values of their arguments."""


def _local_name(nodes: DocumentNodes, node: int) -> str:
    name = nodes.name[node]
    return nodes.labels.get(node, "") if name is None else local_part(name)


def _namespace(nodes: DocumentNodes, node: int) -> str:
    name = nodes.name[node]
    return name[1:].rpartition("}")[0] if name is not None and name.startswith("{") else ""


def _name(nodes: DocumentNodes, node: int) -> str:
    return nodes.labels[node] if node in nodes.labels else _local_name(nodes, node)


def _sum(nodes: DocumentNodes, found: list[int]) -> float:
    total = 0.0
    for node in found:
        total += number_in(nodes, nodes.value(node))
    return total


def _first(of: Callable[[DocumentNodes, int], str]) -> Callable[[DocumentNodes, list[int]], str]:
    return lambda nodes, found: of(nodes, found[0]) if found else ""


OF_NODES: dict[str, Callable[[DocumentNodes, list[int]], Any]] = {
    "local-name": _first(_local_name),
    "namespace-uri": _first(_namespace),
    "name": _first(_name),
    "sum": _sum,
}
"""Functions of a set of nodes, in document order."""


def language(nodes: DocumentNodes, node: int, wanted: str) -> bool:
    """XPath's lang(): by the nearest `xml:lang`; as in libxml2, a namespace node has no language."""
    if nodes.kind[node] == NAMESPACE:
        return False
    while node >= 0:
        nodes.spend(1)
        if nodes.kind[node] == ELEMENT:
            for attribute in nodes.attributes(node):
                if nodes.name[attribute] == _LANGUAGE:
                    return is_language(nodes.values[attribute] or "", wanted)
        node = nodes.parent[node]
    return False


def with_ids(nodes: DocumentNodes, texts: list[str]) -> list[int]:
    """XPath's id(): the elements that have one of these IDs, which white space separates."""
    tokens = {
        token for text in texts for token in text.replace("\t", " ").replace("\n", " ").replace("\r", " ").split(" ")
    }
    nodes.spend(len(tokens))
    return sorted({nodes.ids[token] for token in tokens if token in nodes.ids})
