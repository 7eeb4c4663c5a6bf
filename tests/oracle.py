"""lxml as the oracle: the answer of XPath 1.0 for a pattern and a document.

A pattern means `boolean(pattern)` at the document node. Two things are evaluated differently:

- a relative expression matches anywhere, so lxml is asked the same with `//` before it (`//./a` and `//.//a` are
  XPath for `//a`, so a leading dot needs no care);
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
_BEFORE_OPERAND = frozenset({"@", "::", "(", "[", ",", "/", "//", "=", "!=", "<", "<=", ">", ">=", "+", "-", "|"})


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
    expression = by_local_names(pattern) if local else pattern
    if not expression.lstrip().startswith("/"):
        expression = "//" + expression
    return etree.XPath(f"boolean({expression})", namespaces=dict(namespaces))


def by_local_names(pattern: str) -> str:
    """The pattern with every name test turned into `*[local-name() = …]`, prefixes dropped."""
    return "".join(_rewritten(pattern))


def _rewritten(pattern: str) -> Iterator[str]:
    tokens = [(match.lastgroup, match.group()) for match in _TOKEN.finditer(pattern)]
    before = None
    for index, (kind, text) in enumerate(tokens):
        if kind == "name" and not _is_operator(text, before) and not _is_called(tokens[index + 1 :]):
            yield f"*[local-name() = '{text.rpartition(':')[2]}']"
        else:
            yield text
        if kind != "space":
            before = None if kind == "name" and _is_operator(text, before) else text


def _is_operator(name: str, before: str | None) -> bool:
    """XPath 1.0 §3.7: a name is an operator if an operand precedes it."""
    return name in _OPERATORS and before is not None and before not in _BEFORE_OPERAND


def _is_called(rest: list[tuple[str | None, str]]) -> bool:
    return next((text for kind, text in rest if kind != "space"), "") == "("
