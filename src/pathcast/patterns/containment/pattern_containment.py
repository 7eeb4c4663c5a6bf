"""Containment of tree patterns: every document that matches `special` matches `general`.

Found by homomorphism (Chan, Ni: Efficient XML Data Dissemination with Piggybacking, SIGMOD 2007, §2, does not prescribe
a method): the demands of `special` are facts about any document that matches it, with a `Place` per node; a demand of
`general` is proved if some place meets it. A chain of `*` is a distance: `/*/*//b` is a `b` at least three levels down,
however it is written.

    general  //b[c]          b ↦ b, c ↦ c         special  /a/b[c = 5]/d

Conditions: a comparison follows from a stronger one (`value_implication.py`), `or` from one of its parts or from each
case of an `or` among the facts, `not(x)` from a `not(y)` such that x would make y true, `contains(path, …)` from the
same path.

Invariant: sound: `contains` is True only if containment holds for all documents. Complete where homomorphism is
complete (conjunctions of `/`, `//` and names; with `*`, most cases). A proof that needs more than `MOST_STEPS`
attempts, or case facts, is abandoned.
Cost: O(|general| · |special|²) without `or` and `not`; some microseconds for two plain paths (`path_containment.py`).
"""

from collections.abc import Collection, Iterator
from typing import NamedTuple

from .. import normal_form_constructors as normal
from ..pattern_text import height
from ..tree_pattern import WILDCARD, AllOf, AnyOf, Compare, Condition, First, Node, Not, Pattern, Root, StringTest
from .path_containment import linear_contains
from .value_implication import excludes, implies

MOST_STEPS = 20_000
_FACTS_A_STEP = 16  # facts examined in one attempt
_TALLEST = 120  # deepest chain of steps that a proof descends


class Effort:
    """The budget left for proofs."""

    __slots__ = ("left",)

    def __init__(self, steps: int = MOST_STEPS) -> None:
        self.left = steps


def contains(general: Pattern, special: Pattern, effort: Effort | None = None) -> bool:
    """Whether every document that matches `special` is known to match `general`."""
    if general.root is None or general == special:
        return True
    if general.expression:
        return False  # opaque; an opaque `special` has at least its root
    steps, known = general.linear, special.linear
    if steps is not None and known is not None:
        return linear_contains(steps, known)
    if height(general.root) > _TALLEST or (special.root is not None and height(special.root) > _TALLEST):
        return False
    return Facts(special, effort).prove(general.root)


class Reached(NamedTuple):
    """A place below another: at least `low` levels further down, exactly `low` levels if `exact`."""

    place: "Place"
    test: str
    low: int
    exact: bool


class Place:
    """The known facts about a node of any matching document."""

    __slots__ = ("_below", "_cases", "_first", "conditions", "told")

    def __init__(self, conditions: tuple[Condition, ...], known: tuple[Condition, ...] = (), first: int = 0) -> None:
        """`known` holds facts already derived; the `or`s before index `first` have been split into their cases."""
        self.conditions = (*known, *_facts(conditions))
        few = len(self.conditions) <= _FACTS_A_STEP
        self.told: Collection[Condition] = self.conditions if few else frozenset(self.conditions)
        self._below: list[Reached] | None = None
        self._cases: dict[tuple[int, int], Place] = {}
        self._first = first

    @property
    def below(self) -> list[Reached]:
        """All places further down."""
        if self._below is None:
            self._below = []
            for node in self.conditions:
                if isinstance(node, Node):
                    place = Place(node.conditions)
                    low, exact = int(node.is_element), node.axis == "/"
                    self._below.append(Reached(place, node.test, low, exact))
                    self._below += [
                        Reached(deep.place, deep.test, low + deep.low, exact and deep.exact) for deep in place.below
                    ]
        return self._below

    @property
    def alternatives(self) -> Iterator[tuple[int, AnyOf]]:
        """Each `or` among the facts that is not yet split into its cases, with its index."""
        for index in range(self._first, len(self.conditions)):
            condition = self.conditions[index]
            if isinstance(condition, AnyOf):
                yield index, condition

    def case(self, index: int, part: int) -> "Place":
        """The place with one part of the `or` at `index` as a fact in its stead; earlier `or`s stay as they are.

        The order in which several `or`s are split does not change the cases, so one order is enough.
        """
        place = self._cases.get((index, part))
        if place is None:
            alternative = self.conditions[index]
            assert isinstance(alternative, AnyOf)
            others = self.conditions[:index] + self.conditions[index + 1 :]
            place = self._cases[index, part] = Place((alternative.conditions[part],), others, index)
        return place


class Facts:
    """The facts that `special` implies for every matching document, and proofs from them."""

    def __init__(self, special: Pattern, effort: Effort | None = None) -> None:
        demands = () if special.root is None else (special.root, *_absolute(special.root))
        self.document = Place(demands)
        self._known: dict[tuple[int, Place], bool] = {}
        self._effort = effort or Effort()
        self._alive: list[Node] = []

    def prove(self, root: Node) -> bool:
        """Whether every matching document has `root` below it."""
        if any(AnyOf(()) in reached.place.conditions for reached in self.document.below):
            return True  # nothing matches
        rest, absolute = _apart(root)
        self._alive += [rest, *absolute]  # facts are cached by id, so their objects must stay alive
        return all(self.holds(demand, self.document) for demand in (rest, *absolute))

    def holds(self, condition: Condition, place: Place) -> bool:
        """Whether a condition follows from the facts; the caller keeps the condition alive meanwhile."""
        key = id(condition), place
        known = self._known.get(key)
        if known is None:
            known = condition in place.told
            self._effort.left -= 1 if known else 1 + len(place.conditions) // _FACTS_A_STEP
            if self._effort.left < 0:
                return False
            known = known or self._follows(condition, place) or self._by_cases(condition, place)
            self._known[key] = known
        return known

    def _by_cases(self, condition: Condition, place: Place) -> bool:
        return any(
            all(self._in_case(condition, place, index, part) for part in range(len(alternative.conditions)))
            for index, alternative in place.alternatives
        )

    def _in_case(self, condition: Condition, place: Place, index: int, part: int) -> bool:
        self._effort.left -= len(place.conditions) + len(place.below)  # the cost of a place with this many facts
        return self._effort.left >= 0 and self.holds(condition, place.case(index, part))

    def _follows(self, condition: Condition, place: Place) -> bool:
        match condition:
            case Node():
                return self._found(condition, place)
            case Compare() | StringTest():
                return any(implies(known, condition) for known in _tests(place))
            case Root():
                return self.holds(condition.node, self.document)
            case First():
                return any(
                    known.steps == condition.steps
                    and known.absolute == condition.absolute
                    and implies(known.test, condition.test)
                    for known in place.conditions
                    if isinstance(known, First)
                )
            case AllOf():
                return all(self.holds(part, place) for part in condition.conditions)
            case AnyOf():
                return any(self.holds(part, place) for part in condition.conditions)
            case Not():
                return self._fails(condition.condition, place)

    def _found(self, node: Node, place: Place) -> bool:
        """Whether some place below satisfies `node`."""
        low, exact, target = distance(node)
        if place is self.document and low <= 1 and target.test == WILDCARD and not target.conditions:
            return True  # a document has an element
        for reached in place.below:
            near = reached.low
            if place is self.document and not reached.exact:
                near = max(near, 1)
            if not (reached.exact and near == low if exact else near >= low):
                continue
            if reached.test != target.test and (target.test != WILDCARD or not _is_element(reached.test)):
                continue
            if all(self.holds(condition, reached.place) for condition in target.conditions):
                return True
        return False

    def _fails(self, condition: Condition, place: Place) -> bool:
        """Whether the facts exclude a condition."""
        match condition:
            case AllOf():
                if any(self._fails(part, place) for part in condition.conditions):
                    return True
            case AnyOf():
                if all(self._fails(part, place) for part in condition.conditions):
                    return True
            case Not():
                if self.holds(condition.condition, place):
                    return True
            case Compare() | StringTest():
                if any(excludes(known, condition) for known in _tests(place)):
                    return True
        denied = [known.condition for known in place.conditions if isinstance(known, Not)]
        if not denied:
            return False
        assumed = Place((condition, *(known for known in place.conditions if not isinstance(known, Not))))
        return any(self.holds(each, assumed) for each in denied)


def distance(node: Node) -> tuple[int, bool, Node]:
    """The demanded depth below a node, counting chains of bare `*`: (least distance, is exact, node at the end).

    For a bare `*` at the end, a node at that depth exists if any deeper node exists.
    """
    low, exact = 0, True
    while True:
        low += node.is_element
        exact = exact and node.axis == "/"
        if node.test != WILDCARD:
            return low, exact, node
        if not node.conditions:
            return low, False, node
        below = node.conditions[0]
        if len(node.conditions) > 1 or not isinstance(below, Node):
            return low, exact, node
        node = below


def _apart(node: Node) -> tuple[Node, list[Node]]:
    """A node without its absolute paths (its own and those below it), and these paths: they hold for any context."""
    kept: list[Condition] = []
    absolute: list[Node] = []
    for condition in node.conditions:
        if isinstance(condition, Root):
            absolute.append(condition.node)
        elif isinstance(condition, Node):
            below, found = _apart(condition)
            kept.append(below)
            absolute += found
        else:
            kept.append(condition)
    if not absolute:
        return node, absolute
    rest = normal.node(node.axis, node.test, kept)
    return (rest, absolute) if isinstance(rest, Node) else (node, [])


def _facts(conditions: tuple[Condition, ...]) -> Iterator[Condition]:
    """The conditions, with `and` split; a `First` test implies that some node of its path passes the test."""
    for condition in conditions:
        if isinstance(condition, AllOf):
            yield from _facts(condition.conditions)
            continue
        yield condition
        if isinstance(condition, First) and condition.steps and not condition.absolute:
            yield path_of(condition)


def path_of(first: First) -> Condition:
    """The path that a `First` test demands, with a node at its end that passes the test."""
    last = len(first.steps) - 1
    return normal.chain(
        [
            (step.axis, step.test, (*step.conditions, first.test) if index == last else step.conditions)
            for index, step in enumerate(first.steps)
        ]
    )


def _absolute(node: Node) -> Iterator[Condition]:
    """The absolute paths that a node, and the nodes it demands, require of the document."""
    for condition in node.conditions:
        match condition:
            case Node():
                yield from _absolute(condition)
            case Root():
                yield condition.node
                yield from _absolute(condition.node)
            case First() if condition.absolute and condition.steps:
                yield path_of(condition)


def _tests(place: Place) -> Iterator[Compare | StringTest]:
    return (known for known in place.conditions if isinstance(known, (Compare, StringTest)))


def _is_element(test: str) -> bool:
    return test[0] != "@" and test != "text()"
