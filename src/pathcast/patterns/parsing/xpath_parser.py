"""Parsing: XPath to tree patterns.

Tree patterns are a fragment of XPath 1.0: `/`, `//`, `*`, `.`; predicates with `and`, `or`, `not()`; `@a`, `text()`,
`.` and paths, alone or compared with a string or a number; `contains()` and `starts-with()`; absolute paths inside
predicates; a trailing `/@a` or `/text()`. A relative expression matches anywhere: `a/b` is `//a/b`. Any other XPath 1.0
becomes an opaque pattern (`xpath/any_expression.py`); everything else is a `PatternError` that points at the offending
text.

An expression is assembled from known parts (`cached_pattern_assembly.py`) or, failing that, read by recursive descent
(`recursive_descent.py`). Plain paths in bulk go through `plain_path_encoder.py` instead.

Cost: linear in the length of the expression, which is checked first: some 0.2 s for the worst expression of 65,536
characters.
"""

from pathcast.errors import LimitError, PatternError

from ..tree_pattern import Pattern
from .cached_pattern_assembly import assembler
from .recursive_descent import MAX_NESTING, MAX_STEPS, MAX_TREE_STEPS, Descent, Namespaces

__all__ = ["MAX_LENGTH", "MAX_STEPS", "MAX_TREE_STEPS", "Namespaces", "max_length", "parse", "parse_printed"]

MAX_LENGTH = 1 << 16
_STEP_LENGTH = MAX_LENGTH // MAX_STEPS


def max_length(max_steps: int) -> int:
    """The most characters of an expression: 65,536, or 256 per allowed step if that is more."""
    return max(MAX_LENGTH, _STEP_LENGTH * max_steps)


def parse(expression: str, namespaces: Namespaces = None, *, max_steps: int = MAX_STEPS) -> Pattern:
    """The pattern of an XPath expression; `PatternError` if it is not XPath 1.0, `LimitError` if too large.

    >>> str(pathcast.patterns.parse("a[c and b]"))
    '//a[c]/b'
    """
    if not isinstance(expression, str):
        raise PatternError(f"a subscription must be a str, got {type(expression).__name__}")
    if len(expression) > max_length(max_steps):
        raise LimitError(
            f"the subscription has {len(expression):,} characters; at most {max_length(max_steps):,} are "
            f"allowed (raise the limit with Subscriptions(max_steps=…): {_STEP_LENGTH} characters per step)"
        )
    pattern = assembler(namespaces).pattern(expression, min(max_steps, MAX_TREE_STEPS))
    if pattern is None:
        pattern = descended(expression, namespaces, max_steps, MAX_NESTING)
    return pattern


def descended(expression: str, namespaces: Namespaces, max_steps: int, max_nesting: int) -> Pattern:
    """The pattern by recursive descent, or an opaque pattern if the expression is beyond the fragment."""
    try:
        return Descent(expression, namespaces, max_steps, max_nesting).pattern()
    except PatternError:
        from ..xpath import any_pattern

        return any_pattern(expression, namespaces, max_steps, max_nesting)


def parse_printed(text: str, namespaces: Namespaces) -> Pattern:
    """The pattern with this `str`. It was within the limits once; printing may add a step or a bracket."""
    limit = 2 * len(text)
    pattern = assembler(namespaces).pattern(text, limit)
    return descended(text, namespaces, limit, limit) if pattern is None else pattern
