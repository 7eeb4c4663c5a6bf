"""Containment of plain paths: `//b//d` contains `/a/b/c/d`.

The general path is split at its `//` into blocks of names at fixed distances (`*` only adds distance). The first block
starts at the root unless the path begins with `//`. Each further block takes the earliest position after the previous
one. Greedy is right: a path need not end where a pattern ends, so the earliest position leaves the most for the rest.

Invariant: agrees with the homomorphism of `pattern_containment.py` (property test). Cost: O(|general| · |special|) at
worst, usually one pass.
"""

from ..tree_pattern import WILDCARD, Node


def linear_contains(general: tuple[Node, ...], special: tuple[Node, ...]) -> bool:
    """Whether every document with the path `special` has the path `general`."""
    if not general or (len(general) == 1 and general[0].test == WILDCARD):
        return True  # every document has an element
    place = -1  # position of the last name in `special`; -1 is the document
    for low, exact, names in _blocks(general):
        found = _find(names, special, place + low, only=exact)
        if found < 0:
            return False
        place = found + names[-1][0]
    return True


def _blocks(general: tuple[Node, ...]) -> list[tuple[int, bool, list[tuple[int, str]]]]:
    """Runs of names at fixed distances: (distance from the last name, whether it is exact, (offset, name) pairs).

    A trailing `*` is a block without names: it only demands depth.
    """
    blocks: list[tuple[int, bool, list[tuple[int, str]]]] = []
    low, exact = 0, True
    for node in general:
        low += 1
        exact = exact and node.axis == "/"
        if node.test == WILDCARD:
            continue
        if blocks and exact:
            names = blocks[-1][2]
            names.append((names[-1][0] + low, node.test))
        else:
            blocks.append((low, exact, [(0, node.test)]))
        low, exact = 0, True
    if low:
        blocks.append((low, False, [(0, WILDCARD)]))
    return blocks


def _find(names: list[tuple[int, str]], special: tuple[Node, ...], first: int, *, only: bool) -> int:
    """The earliest position from `first` on where a block fits, or -1; with `only`, just `first`, from the root.

    A fixed distance requires child steps throughout.
    """
    last = len(special) - names[-1][0]
    for begin in range(first, min(last, first + 1) if only else last):
        if only and any(step.axis == "//" for step in special[: begin + 1]):
            return -1
        if all(special[begin + offset].test == name or name == WILDCARD for offset, name in names) and not any(
            step.axis == "//" for step in special[begin + 1 : begin + names[-1][0] + 1]
        ):
            return begin
    return -1
