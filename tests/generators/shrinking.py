"""Making a failing example smaller, greedily: take parts away for as long as it still fails.

Works on any tree of frozen dataclasses, such as `documents.Document` and `expressions.Path`: an item of a tuple is left
out, an item gives way to its own items of the same kind, a node is replaced by a smaller one, a string by none. What
no longer makes sense does not fail in the same way, so it is not taken.
"""

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

Tree = TypeVar("Tree")


def shrunk(tree: Tree, fails: Callable[[Tree], bool]) -> Tree:
    """A tree that still fails and of which no smaller one, by one change, does."""
    while (smaller := next((each for each in _smaller(tree) if fails(each)), None)) is not None:
        tree = smaller
    return tree


def _smaller(tree: Any) -> Iterator[Any]:
    """Trees with one change, the largest cuts first."""
    for field in fields(tree):
        value = getattr(tree, field.name)
        for instead in _instead(value):
            yield replace(tree, **{field.name: instead})


def _instead(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple):
        for index, item in enumerate(value):
            before, after = value[:index], value[index + 1 :]
            yield before + after
            yield from (before + inner + after for inner in _inner(item))
            if is_dataclass(item):
                yield from ((*before, smaller, *after) for smaller in (*_parts(item), *_smaller(item)))
    elif isinstance(value, str) and value:
        yield ""
    elif is_dataclass(value):
        yield from _parts(value)
        yield from _smaller(value)


def _inner(item: Any) -> Iterator[tuple[Any, ...]]:
    """The item's own items, where they are of its kind: the children of an element in place of it."""
    if is_dataclass(item):
        for field in fields(item):
            value = getattr(item, field.name)
            if isinstance(value, tuple) and any(type(each) is type(item) for each in value):
                yield value


def _parts(tree: Any) -> Iterator[Any]:
    """The parts of a condition, to replace it."""
    for field in fields(tree):
        value = getattr(tree, field.name)
        yield from (each for each in (value if isinstance(value, tuple) else (value,)) if is_dataclass(each))
