"""Normal form: the constructors that build every pattern.

Equivalent subscriptions should be equal, so that a hash look-up finds duplicates. The constructors apply these
rewrites, each an equivalence under XPath 1.0:

- conditions of a node, of `and`, of `or` are flattened, sorted by their text, and deduplicated;
- `not(not(x))` is `x`; constants are folded; `not` of a constant is a constant;
- `//*/x` is `/*//x` if the `*` has no other conditions; a last `//*` is `/*` (below means a child exists);
- a relational comparison with a string compares with its number; it never holds if the string is not a number;
- `contains(x, '')` always holds.

Not done: minimisation (a branch implied by another stays) and reasoning about values.
"""

from collections.abc import Iterable
from math import isnan

from .pattern_text import condition_text
from .tree_pattern import (
    ALWAYS,
    NEVER,
    WILDCARD,
    AllOf,
    AnyOf,
    Axis,
    Compare,
    Condition,
    First,
    Node,
    Not,
    Operator,
    Root,
    StringFunction,
    StringTest,
)
from .xpath_value_comparison import number_of, number_text


def node(axis: Axis, test: str, conditions: Iterable[Condition] = ()) -> Node | AnyOf:
    """A node with these conditions; `NEVER` if one of them cannot hold."""
    holds = all_of(conditions)
    if is_never(holds):
        return NEVER
    kept = holds.conditions if isinstance(holds, AllOf) else (holds,)
    if axis == "//" and test == WILDCARD:
        if not kept:
            axis = "/"
        elif len(kept) == 1 and isinstance(kept[0], Node):
            return Node("/", WILDCARD, (_deep(kept[0]),))
    return Node(axis, test, kept)


def _deep(below: Node) -> Node:
    """`below` at any depth, in normal form again."""
    deep = node("//", below.test, below.conditions)
    assert isinstance(deep, Node)
    return deep


def chain(steps: Iterable[tuple[Axis, str, Iterable[Condition]]]) -> Node | AnyOf:
    """A path as nested nodes: each step is a condition of the step before it."""
    result: Node | AnyOf | None = None
    for axis, test, conditions in reversed(list(steps)):
        below: tuple[Condition, ...] = () if result is None else (result,)
        result = node(axis, test, (*conditions, *below))
    assert result is not None
    return result


def root(below: Node | AnyOf) -> Condition:
    """An absolute path inside a predicate."""
    return Root(below) if isinstance(below, Node) else below


def all_of(conditions: Iterable[Condition]) -> Condition:
    """The conjunction."""
    parts: list[Condition] = []
    for condition in conditions:
        if is_never(condition):
            return NEVER
        parts.extend(condition.conditions if isinstance(condition, AllOf) else (condition,))
    kept = _sorted(parts)
    return kept[0] if len(kept) == 1 else AllOf(kept)


def any_of(conditions: Iterable[Condition]) -> Condition:
    """The disjunction."""
    parts: list[Condition] = []
    for condition in conditions:
        if is_always(condition):
            return ALWAYS
        parts.extend(condition.conditions if isinstance(condition, AnyOf) else (condition,))
    kept = _sorted(parts)
    return kept[0] if len(kept) == 1 else AnyOf(kept)


def negation(condition: Condition) -> Condition:
    """The negation of a condition."""
    if isinstance(condition, Not):
        return condition.condition
    if is_always(condition):
        return NEVER
    if is_never(condition):
        return ALWAYS
    return Not(condition)


def compare(operator: Operator, literal: str | float, text: str) -> Condition:
    """A comparison of the node's value with a literal, as in XPath 1.0; `text` is the literal as written."""
    if isinstance(literal, str):
        if operator in ("=", "!="):
            return Compare.with_string(operator, literal)
        literal = number_of(literal)
    if isnan(literal):
        return NEVER
    literal += 0.0  # -0 is 0
    return Compare.with_number(operator, literal, number_text(literal) or text)


def string_test(
    function: StringFunction, steps: tuple[Node, ...], text: str, *, absolute: bool, one_attribute: bool
) -> Condition:
    """`function(path, text)`; without steps, the path is the node itself.

    `one_attribute`: an element has at most one attribute of a name (not true if namespaces are ignored).
    """
    if text == "":
        return ALWAYS
    test = StringTest(function, text)
    if not absolute:
        if not steps:
            return test
        if one_attribute and len(steps) == 1 and steps[0].is_attribute and steps[0].axis == "/":
            return node("/", steps[0].test, (*steps[0].conditions, test))
    return First(steps, test, absolute)


def is_always(condition: Condition) -> bool:
    """Whether a condition is `ALWAYS`."""
    return isinstance(condition, AllOf) and not condition.conditions


def is_never(condition: Condition) -> bool:
    """Whether a condition is `NEVER`."""
    return isinstance(condition, AnyOf) and not condition.conditions


def _sorted(conditions: list[Condition]) -> tuple[Condition, ...]:
    if len(conditions) < 2:
        return tuple(conditions)
    return tuple(sorted(set(conditions), key=condition_text))
