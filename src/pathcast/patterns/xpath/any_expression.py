"""Any XPath 1.0 expression as a pattern: a tree pattern if it says the same, otherwise an opaque pattern.

An opaque pattern is its expression, as text, and a tree pattern that is weaker: every document that matches the
expression matches the tree. Engines find candidates by the tree and evaluate the expression on them. If the expression
has a counted form (`counted_forms.py`), the pattern has its tree, too, which an engine may match instead.

Invariant: the text of an opaque pattern parses to an equal pattern.
Cost: some 10 µs per token.
"""

from collections.abc import Mapping
from typing import Literal

from pathcast.errors import LimitError, PatternError

from ..parsing.recursive_descent import MAX_NESTING, MAX_TREE_STEPS, Descent
from ..parsing.xpath_tokens import Token
from ..tree_pattern import WILDCARD, Node, Pattern
from .counted_forms import Counting
from .equivalent_forms import as_condition, subscription_text
from .expression_parser import ExpressionParser
from .expression_printing import expression_text
from .expression_tree import Expression, kind_of
from .weaker_forms import Weakening

_ANY_DOCUMENT = Node("/", WILDCARD)
_MOST_TRIED = 50_000  # characters of conditions tried against the fragment

Namespaces = Mapping[str, str] | Literal["ignore"] | None


def any_pattern(expression: str, namespaces: Namespaces, max_steps: int, max_nesting: int) -> Pattern:
    """The pattern of any expression; `PatternError` if it is not XPath 1.0."""
    tree = ExpressionParser(expression, namespaces, max_steps, max_nesting).subscription()
    names: Namespaces = "ignore" if namespaces == "ignore" else None
    condition, text = as_condition(tree), expression_text(tree)
    counted = None
    if kind_of(condition) != "number":
        same = _fragment(subscription_text(condition), names)
        if same is not None:
            return same
        counted = _counted(condition, text, names)
    return Pattern(_weaker(tree, names), text, counted)


def _fragment(text: str, namespaces: Namespaces) -> Pattern | None:
    """The tree pattern of an expression in the fragment."""
    try:
        return Descent(text, namespaces, MAX_TREE_STEPS, MAX_NESTING).pattern()
    except PatternError:
        return None


class _CountedDescent(Descent):
    """Reads tree patterns in which some names stand for computed attributes."""

    attributes: Mapping[str, str]

    def name(self, token: Token) -> str:
        return self.attributes.get(token.text) or super().name(token)


def _counted(condition: Expression, text: str, namespaces: Namespaces) -> Node | None:
    """The tree of an expression's counted form; None if it has none."""
    prefix = "n"
    while prefix in text:
        prefix += "n"
    counting = Counting(prefix)
    counted = counting.condition(condition)
    if not counting.attributes and counted == condition:
        return None
    try:
        descent = _CountedDescent(subscription_text(counted), namespaces, MAX_TREE_STEPS, MAX_NESTING)
        descent.attributes = counting.attributes
        return descent.pattern().root
    except (PatternError, LimitError):
        return None


def _weaker(tree: Expression, namespaces: Namespaces) -> Node:
    left = _MOST_TRIED

    def fits(condition: Expression) -> bool:
        nonlocal left
        text = f"/*[{expression_text(condition)}]"
        left -= len(text)
        try:
            return left > 0 and _fragment(text, namespaces) is not None
        except LimitError:
            return False

    weaker = Weakening(fits).condition(tree)
    if weaker is None:
        return _ANY_DOCUMENT
    try:
        pattern = _fragment(subscription_text(weaker), namespaces)
    except LimitError:
        return _ANY_DOCUMENT
    return _ANY_DOCUMENT if pattern is None or pattern.root is None else pattern.root


def parse_expression(text: str, *, ignore_namespaces: bool) -> Expression:
    """The expression tree of an opaque pattern's text."""
    return ExpressionParser(text, "ignore" if ignore_namespaces else None, len(text), len(text)).subscription()
