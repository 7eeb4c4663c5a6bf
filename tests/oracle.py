"""lxml as the oracle: the answer of XPath 1.0 for a pattern and a document.

A pattern means `boolean(pattern)` at the document node. lxml evaluates at the root element, so it is asked for the
document node with the pattern as a predicate. Two things are evaluated differently:

- a relative path matches anywhere, so lxml is asked the same with `//` before it (`//./a` and `//.//a` are XPath for
  `//a`, so a leading dot needs no care), as is each relative member of a union; operands of other operators, and what
  is in parentheses, functions and predicates, stay as they are;
- with `namespaces="ignore"` each name test becomes a test of the local name, token by token.

lxml ignores attribute defaults of an internal subset by default; XML requires every processor to apply them.
"""

import functools
import re
from collections.abc import Iterator, Mapping

from lxml import etree

from tests.corpus import Namespaces

Unanswerable = (etree.XPathError, etree.XMLSyntaxError)
"""The errors of lxml for an expression or a document that it rejects."""

_TOKEN = re.compile(
    r"""(?P<space>\s+)
      | (?P<literal>"[^"]*"|'[^']*')
      | (?P<number>\d+(?:\.\d*)?|\.\d+)
      | (?P<name>[^\W\d][\w.·\-]*(?::[^\W\d][\w.·\-]*)?)
      | (?P<symbol>//|::|!=|<=|>=|.)""",
    re.VERBOSE | re.DOTALL,
)
_OPERATORS = frozenset({"and", "or", "div", "mod"})
_COMPARISONS = frozenset({"=", "!=", "<", "<=", ">", ">="})
_BINARY = frozenset({"*", "+", "-", "and", "or", "div", "mod"})
_NODE_TYPES = frozenset({"node", "text", "comment", "processing-instruction"})
_NAME = re.compile(r"[^\W\d][\w.·\-]*(?::[^\W\d][\w.·\-]*)?")
_BEFORE_OPERAND = frozenset({"@", ":", "::", "(", "[", ",", "/", "//", "=", "!=", "<", "<=", ">", ">=", "+", "-", "|"})


def read(document: bytes) -> etree._ElementTree:
    """The document as lxml's tree; deep documents and attribute defaults allowed, nothing fetched."""
    parser = etree.XMLParser(huge_tree=True, attribute_defaults=True, no_network=True)
    return etree.fromstring(document, parser).getroottree()


def matches(pattern: str, document: bytes, namespaces: Namespaces = None) -> bool:
    return answer(ask(pattern, namespaces), read(document))


def ask(pattern: str, namespaces: Namespaces = None) -> etree.XPath:
    """The compiled pattern; compile it once, evaluate it for many documents."""
    if isinstance(namespaces, Mapping):
        return _compiled(pattern, tuple(sorted(namespaces.items())), local=False)
    return _compiled(pattern, (), local=namespaces == "ignore")


def answer(question: etree.XPath, tree: etree._ElementTree) -> bool:
    result = question(tree)
    assert isinstance(result, bool)
    return result


@functools.lru_cache(maxsize=20_000)
def _compiled(pattern: str, namespaces: tuple[tuple[str, str], ...], *, local: bool) -> etree.XPath:
    expression = "|".join(map(_anywhere, members(pattern)))
    if local:
        expression = by_local_names(expression)
    return etree.XPath(f"boolean(/self::node()[boolean({expression})])", namespaces=dict(namespaces))


def members(pattern: str) -> list[str]:
    """The members of the union that the pattern is; the pattern alone if it is no union."""
    if _has_operator(pattern):
        return [pattern]
    found, begin, depth = [], 0, 0
    for match in _TOKEN.finditer(pattern):
        text = match.group()
        depth += text in ("(", "[")
        depth -= text in (")", "]")
        if depth == 0 and text == "|":
            found.append(pattern[begin : match.start()])
            begin = match.end()
    return [*found, pattern[begin:]]


def _has_operator(expression: str) -> bool:
    """Whether the expression is an operator with its operands."""
    depth, before = 0, None
    for match in _TOKEN.finditer(expression):
        kind, text = match.lastgroup, match.group()
        if kind == "space":
            continue
        depth += text in ("(", "[")
        depth -= text in (")", "]")
        operand = before is not None and before not in _BEFORE_OPERAND and before not in _OPERATORS
        if depth == 0 and (text in _COMPARISONS or (operand and text in _BINARY)):
            return True
        before = "a name" if kind == "name" and not (operand and text in _OPERATORS) else text
    return False


def _anywhere(member: str) -> str:
    """A relative path with `//` before it."""
    tokens = [match.group() for match in _TOKEN.finditer(member) if match.lastgroup != "space"]
    if not tokens or _has_operator(member):
        return member
    called = len(tokens) > 1 and tokens[1] == "(" and tokens[0] not in _NODE_TYPES
    is_path = tokens[0] in (".", "..", "@", "*") or (_NAME.fullmatch(tokens[0]) is not None and not called)
    return "//" + member if is_path else member


def by_local_names(pattern: str) -> str:
    """The pattern with every name test turned into `*[local-name() = …]`, prefixes dropped."""
    return "".join(_rewritten(pattern))


def _rewritten(pattern: str) -> Iterator[str]:
    tokens = [(match.lastgroup, match.group()) for match in _TOKEN.finditer(pattern)]
    before = None
    for index, (kind, text) in enumerate(tokens):
        rest = tokens[index + 1 :]
        if kind == "name" and not _is_operator(text, before) and not _precedes(rest, "(", "::", ":"):
            yield f"*[local-name() = '{text.rpartition(':')[2]}']"
        else:
            yield text
        if kind != "space":
            before = None if kind == "name" and _is_operator(text, before) else text


def _is_operator(name: str, before: str | None) -> bool:
    """XPath 1.0 §3.7: a name is an operator if an operand precedes it."""
    return name in _OPERATORS and before is not None and before not in _BEFORE_OPERAND


def _precedes(rest: list[tuple[str | None, str]], *texts: str) -> bool:
    """Whether one of these tokens comes next: the name before it is a function, an axis or a prefix."""
    return next((text for kind, text in rest if kind != "space"), "") in texts
