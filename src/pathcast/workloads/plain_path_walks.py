"""Plain paths in bulk: the walk of schema_walks.py without conditions, directly as text.

Draws the same random numbers in the same order as `Walker.path`, so that both give the same paths for a seed, at
about half the cost: there are no lists of steps and levels, and an element is one list of what the loop needs. Distinct
workloads draw many more paths than they keep, so most of their time is spent here.
"""

from bisect import bisect
from collections.abc import Iterator
from typing import Any

from pathcast.workloads.schema_walks import Node, Walker, nodes_below, shallow_schema


def plain_paths(walker: Walker) -> Iterator[str]:
    """The paths that `walker.path` would give, as text, without end."""
    random, wildcard, descendant = walker.random, walker.wildcard, walker.descendant
    named = not walker.last_wildcard
    shortest, span = walker.min_depth, walker.max_depth - walker.min_depth + 1
    root = _compiled(walker.root)
    failed = 0
    while True:
        depth = shortest + int(random() * span)
        node = root
        text = before = instead = ""
        below = starred = False
        skip = 0
        level = 1
        while True:
            child, descendant_child, children, width, bounds = node
            if not below and random() < descendant:
                below = True
                skip = int(random() * (depth - level + 1))
            if skip:
                skip -= 1
            elif random() < wildcard:
                before, instead, starred = text, descendant_child if below else child, True
                text += "/*"
            else:
                text += descendant_child if below else child
                below = starred = False
            if level >= depth or not width:
                break
            node = children[bisect(bounds, random(), 0, width - 1) if bounds else int(random() * width)]
            level += 1
        if text and level >= walker.required_depth:
            failed = 0
            yield before + instead if starred and named else text
        else:
            failed += 1
            if failed == walker.attempts:
                raise shallow_schema(walker)


def _compiled(root: Node) -> list[Any]:
    """An element as its text after `/` and `//`, its children, their number, cumulative probabilities."""
    entries: dict[Node, list[Any]] = {
        node: ["/" + node.name, "//" + node.name, [], len(node.children), node.bounds] for node in nodes_below(root)
    }
    for node, entry in entries.items():
        entry[2] += [entries[child] for child in node.children]
    return entries[root]
