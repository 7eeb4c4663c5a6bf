"""The least upper bound of two tree patterns: the tightest pattern that contains both.

The product of the two patterns (Chan, Fan, Felber, Garofalakis, Rastogi: Tree Pattern Aggregation for Scalable XML Data
Dissemination, VLDB 2002, as far as the piggyback paper describes it): a demand of one pattern that the other implies is
kept; the remaining branches are merged in pairs: equal names stay, others become `*`; equal fixed distances stay,
others become `//`.

    /a/b[c]/d        /a/x[c]/d/e        →  /a/*[c]/d
    /a[@n >= 3]      /a[@n >= 5]        →  /a[@n >= 3]

Value tests are kept where one test implies the other, and dropped otherwise; so are `or`, `not()` and
`contains(path, …)`.

Invariant: the bound contains both patterns and has no more steps than the larger of them. The true least bound has as
many steps as the product of the sizes and is hardly tighter; to save space, the branches with the fewest names are cut.
Cost: O(|one| · |other|) pairs, each with containment tests for shared parts; a millisecond for eight steps each.
"""

from .. import normal_form_constructors as normal
from ..tree_pattern import WILDCARD, Condition, Node, Pattern, conditions_in
from .pattern_containment import Facts, Place, contains
from .pattern_minimisation import minimised

WIDEST = 8
_MOST_LOOKED_AT = 8
_LARGEST = 64  # most steps of a pattern whose product is computed
_MOST_PARTS = 256  # most steps and conditions


def upper_bound(one: Pattern, other: Pattern) -> Pattern:
    """The tightest pattern found that contains both."""
    if one.root is None or other.root is None:
        return Pattern(None)
    if one == other:
        return one
    if any(_size(each) > _LARGEST or len(conditions_in(each)) > _MOST_PARTS for each in (one.root, other.root)):
        return one if contains(one, other) else other if contains(other, one) else Pattern(None)
    product = _Product(one, other)
    demands = product.common((one.root,), (other.root,))
    roots = [each for each in demands if isinstance(each, Node)]
    if not roots:
        return Pattern(None)
    # The first path down from the document becomes the pattern; further paths are attached as absolute paths.
    first = max(roots, key=_weight)
    more = tuple(normal.root(each) for each in roots if each is not first)
    built = normal.node(first.axis, first.test, (*first.conditions, *more))
    return minimised(Pattern(built if isinstance(built, Node) else None))


class _Product:
    def __init__(self, one: Pattern, other: Pattern) -> None:
        self.facts = Facts(one), Facts(other)
        self._places: dict[int, Place] = {}
        self._known: dict[tuple[int, int], tuple[Condition, ...]] = {}
        self._kept: list[tuple[Condition, ...]] = []

    def common(self, left: tuple[Condition, ...], right: tuple[Condition, ...]) -> tuple[Condition, ...]:
        """The conditions that follow from both sets, each set at its own node."""
        key = id(left), id(right)
        known = self._known.get(key)
        if known is None:
            self._kept += [left, right]  # keeps them alive, so that their ids stay unique
            known = self._known[key] = self._merged(left, right)
        return known

    def _merged(self, left: tuple[Condition, ...], right: tuple[Condition, ...]) -> tuple[Condition, ...]:
        here, there = self._place(left), self._place(right)
        shared = [each for each in left if self.facts[1].holds(each, there)]
        shared += [each for each in right if each not in shared and self.facts[0].holds(each, here)]
        lonely = [each for each in left if isinstance(each, Node) and each not in shared]
        others = [each for each in right if isinstance(each, Node) and each not in shared]
        merged: list[Condition] = []
        for each in lonely[:WIDEST]:
            merged += self._pairs(each, others)
        told = sorted((each for each in merged if isinstance(each, Node)), key=_weight, reverse=True)
        room = max(sum(map(_size, left)), sum(map(_size, right))) - sum(map(_size, shared))
        for each in told[:_MOST_LOOKED_AT]:
            if _size(each) <= room and not self.facts[0].holds(each, Place(tuple(shared))):
                shared.append(each)
                room -= _size(each)
        return tuple(shared)

    def _place(self, conditions: tuple[Condition, ...]) -> Place:
        place = self._places.get(id(conditions))
        if place is None:
            place = self._places[id(conditions)] = Place(conditions)
        return place

    def _pairs(self, node: Node, others: list[Node]) -> list[Condition]:
        """The merges of a node with the others, and of nodes further down that have the same name."""
        found: list[Condition] = []
        for other in others[:WIDEST]:
            found += self._merge(node, other)
            seen = {(id(node), id(other))}
            pairs = [*((node, below) for below in _children(other)), *((below, other) for below in _children(node))]
            for left, right in pairs:  # grows during the loop
                if (id(left), id(right)) in seen:
                    continue
                seen.add((id(left), id(right)))
                if left.test == right.test != WILDCARD:
                    found.append(normal.node("//", left.test, self.common(left.conditions, right.conditions)))
                else:
                    pairs += [(left, below) for below in _children(right)]
                    pairs += [(below, right) for below in _children(left)]
        return found

    def _merge(self, node: Node, other: Node) -> list[Condition]:
        """The merge of two nodes with the same parent."""
        if node.test == other.test:
            test = node.test
        elif node.is_element and other.is_element:
            test = WILDCARD
        else:
            return []
        axis = node.axis if node.axis == other.axis else "//"
        return [normal.node(axis, test, self.common(node.conditions, other.conditions))]


def _children(node: Node) -> list[Node]:
    return [each for each in node.conditions if isinstance(each, Node)]


def _size(condition: Condition) -> int:
    return sum(isinstance(each, Node) for each in conditions_in(condition))


def _weight(node: Node) -> int:
    """How specific a pattern is: names count, `*` hardly does."""
    weight, level = 0, [node]
    while level:
        weight += sum(1 if each.test == WILDCARD else 4 for each in level)
        level = [below for each in level for below in _children(each)]
    return weight
