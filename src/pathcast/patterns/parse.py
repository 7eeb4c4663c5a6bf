"""Parsing: XPath to tree patterns.

The fragment: `/`, `//`, `*`, `.`; predicates with `and`, `or`, `not()`; `@a`, `text()`, `.` and paths, alone or
compared with a string or a number; `contains()` and `starts-with()`; absolute paths inside predicates; a trailing
`/@a` or `/text()`. A relative expression matches anywhere: `a/b` is `//a/b`. Everything else is a `PatternError` that
points at its place.

An expression is put together from parts that are known (`assembly.py`), or else read by recursive descent
(`descent.py`), which also words all errors. Plain paths in bulk go through `linear.py` instead.
"""

from ..errors import PatternError
from .assembly import assembler
from .descent import MAX_NESTING, MAX_STEPS, MAX_TREE_STEPS, Descent, Namespaces
from .model import Pattern

__all__ = ["MAX_STEPS", "MAX_TREE_STEPS", "Namespaces", "parse", "parse_printed"]


def parse(expression: str, namespaces: Namespaces = None, *, max_steps: int = MAX_STEPS) -> Pattern:
    """The tree pattern of an XPath expression; `PatternError` when it is outside the fragment.

    >>> str(pathcast.patterns.parse("a[c and b]"))
    '//a[c]/b'
    """
    if not isinstance(expression, str):
        raise PatternError(f"a subscription is a str, not {type(expression).__name__}")
    pattern = assembler(namespaces).pattern(expression, min(max_steps, MAX_TREE_STEPS))
    if pattern is None:
        pattern = Descent(expression, namespaces, max_steps, MAX_NESTING).pattern()
    return pattern


def parse_printed(text: str, namespaces: Namespaces) -> Pattern:
    """The pattern whose `str` this is. It was within the limits once: printing may add a step or a bracket."""
    limit = 2 * len(text)
    pattern = assembler(namespaces).pattern(text, limit)
    return Descent(text, namespaces, limit, limit).pattern() if pattern is None else pattern
