"""The encoding: patterns as conjunctions of Boolean predicates, documents as sets of attribute–value pairs.

Sections 3.1 and 3.2 of GPX-Matcher (Sadoghi, Burcea, Jacobsen, EDBT 2011), as plain data for any Boolean matcher.

    a/a/*/b     d(a¹, a²) = 1  ∧  d(a², b¹) = 2          the named steps, each by its distance from the previous one
    /a/a/*/*    p(a¹) = 1  ∧  d(a¹, a²) = 1  ∧  p⁻¹(a²) ≥ 2

A document is a set of *publications*: for each path from the root to a leaf the positions of its tags and their
distances. Repeated tags of a path are numbered (a¹, a²). Since the k-th a of a pattern may be any later a of the path,
there is a publication for each selection of repetitions to leave out, except the last.

Invariant: a document has the pattern's path if and only if one of its publications satisfies all its predicates.
Where the paper contradicts itself: `p⁻¹ ≥ v` holds if `length − position ≥ v`, and the length of a publication is that
of the whole path, even if tags were left out.
Beyond the evaluation: the filter `[@a]`, the operators `!=`, `<` and `>`, comparisons with texts, and filters on
a `*` that is a fixed number of steps from a tag or from the document.
Not encoded: conditions on text, functions, `or`, `not`, `.//@a`, and filters on other `*`; `Unencodable`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import isinf
from typing import Literal

from pathcast.documents import Document, local_part
from pathcast.patterns import Compare, Condition, Node, Pattern, Root, condition_text, holds

from .step_positions import Place, Tag, Unencodable, place_of, tags_of

Operator = Literal["=", ">="]


@dataclass(frozen=True, slots=True)
class Position:
    """`p(tag) operator value`: the position of the tag in the path, the root at 1."""

    tag: Tag
    operator: Operator
    value: int


@dataclass(frozen=True, slots=True)
class Distance:
    """`d(first, second) operator value`: how far the second tag is below the first."""

    first: Tag
    second: Tag
    operator: Operator
    value: int


@dataclass(frozen=True, slots=True)
class FromEnd:
    """`p⁻¹(tag) ≥ value`: the number of elements of the path below the tag."""

    tag: Tag
    value: int


@dataclass(frozen=True, slots=True)
class Length:
    """`length ≥ value`: the number of elements of the path."""

    value: int


@dataclass(frozen=True, slots=True)
class Filter:
    """`place[attribute test]`: an attribute of just this occurrence of a tag; without a test, it must exist."""

    place: Place
    attribute: str
    test: Compare | None


Predicate = Position | Distance | FromEnd | Length | Filter


def predicates(pattern: Pattern) -> tuple[Predicate, ...]:
    """The conjunction for a pattern that is one path, with or without filters; `Unencodable` for any other.

    Predicates on structure come first, in the order of the steps, then filters. A pattern with several branches is
    several paths: see `pattern_decomposition.py`.
    """
    if pattern.expression:
        raise Unencodable(f"{pattern} is more than a tree pattern; only a single path can be encoded")
    steps = []
    node = pattern.root
    while node is not None:
        steps.append(node)
        below = elements_below(node)
        if len(below) > 1 or roots_in(node):
            raise Unencodable(f"{pattern} has more than one path; only a single path can be encoded")
        node = below[0] if below else None
    return path_predicates(steps)


def elements_below(node: Node) -> list[Node]:
    """The elements that a node demands below itself."""
    return [part for part in node.conditions if isinstance(part, Node) and part.is_element]


def roots_in(node: Node) -> list[Node]:
    """The absolute paths that a node's conditions demand."""
    return [part.node for part in node.conditions if isinstance(part, Root)]


def path_predicates(steps: Sequence[Node]) -> tuple[Predicate, ...]:
    """The conjunction for a path of elements; of their conditions, only filters are considered."""
    structure: list[Predicate] = []
    filters: list[Predicate] = []
    last: Tag | None = None
    gap, deep = 0, False
    for at, (step, tag) in enumerate(zip(steps, tags_of(steps), strict=True)):
        if not step.is_element:
            raise Unencodable("the pattern has an attribute or text() outside an element, which cannot be encoded")
        gap += 1
        deep |= step.axis == "//"
        filtered = [condition for condition in step.conditions if _is_filter(condition)]
        if filtered:
            place = Place(tag) if tag is not None else place_of(steps, at)
            filters.extend(_filters(place, filtered))
        if tag is None:
            continue
        operator: Operator = ">=" if deep else "="
        structure.append(Position(tag, operator, gap) if last is None else Distance(last, tag, operator, gap))
        last, gap, deep = tag, 0, False
    if last is None:
        return (Length(gap), *filters)
    if gap:
        structure.append(FromEnd(last, gap))
    first = structure[0]
    if len(structure) > 1 and isinstance(first, Position) and first.operator == ">=" and first.value == 1:
        del structure[0]  # the next predicate implies it
    return (*structure, *filters)


def _is_filter(condition: Condition) -> bool:
    return not isinstance(condition, Root) and not (isinstance(condition, Node) and condition.is_element)


def _filters(place: Place, conditions: Iterable[Condition]) -> Iterator[Filter]:
    for condition in conditions:
        if not isinstance(condition, Node) or not condition.is_attribute or condition.axis == "//":
            what = f"the condition '{condition_text(condition)}' cannot be encoded"
            raise Unencodable(f"{what}; only tests of the step's own attributes can be encoded")
        attribute = condition.test[1:]
        if not condition.conditions:
            yield Filter(place, attribute, None)
        for test in condition.conditions:
            if not isinstance(test, Compare):
                raise Unencodable(
                    f"the test of attribute '{attribute}' cannot be encoded; only comparisons with a literal can be "
                    "encoded"
                )
            if test.operator in ("<", ">") and test.number is not None and isinf(test.number):
                raise Unencodable(
                    f"the test '{test.operator}' of attribute '{attribute}' against infinity cannot be encoded"
                )
            yield Filter(place, attribute, test)


@dataclass(frozen=True, slots=True)
class Publication:
    """The facts about a path.

    `positions` are in the order of the path; `elements` are the document's elements of these tags; `attributes` the
    values by position and name (several only if namespaces are ignored).
    """

    length: int
    positions: Mapping[Tag, int]
    elements: Mapping[Tag, int]
    attributes: Mapping[tuple[int, str], tuple[str, ...]]

    def tuples(self) -> Iterator[tuple[object, ...]]:
        """The attribute–value pairs as in the paper: (length, n), (tag, position), (tag, tag, distance)."""
        yield ("length", self.length)
        yield from self.positions.items()
        for (first, begin), (second, end) in combinations(self.positions.items(), 2):
            yield (first, second, end - begin)

    def satisfies(self, predicate: Predicate) -> bool:
        """Whether a predicate holds (section 3.3)."""
        at = self.positions
        match predicate:
            case Position(tag, operator, value):
                return tag in at and _compares(at[tag], operator, value)
            case Distance(first, second, operator, value):
                return first in at and second in at and _compares(at[second] - at[first], operator, value)
            case FromEnd(tag, value):
                return tag in at and self.length - at[tag] >= value
            case Length(value):
                return self.length >= value
            case Filter((tag, steps), attribute, test):
                if tag is not None and tag not in at:
                    return False
                position = steps if tag is None else at[tag] + steps
                values = self.attributes.get((position, attribute), ())
                return any(test is None or holds(test, text) for text in values)


def _compares(distance: int, operator: Operator, value: int) -> bool:
    return distance == value if operator == "=" else distance >= value


def publications(document: Document, *, local: bool = False) -> Iterator[Publication]:
    """All publications of a document; `local`: names without their namespaces.

    Their number doubles with every repetition of a tag in a path.
    """
    path: list[int] = []
    for element in range(len(document)):
        del path[document.depth(element) - 1 :]
        path.append(element)
        if document.end(element) == element + 1:
            yield from _path_publications(document, path, local=local)


def _path_publications(document: Document, path: Sequence[int], *, local: bool) -> Iterator[Publication]:
    names = [_name(document.name(element), local=local) for element in path]
    attributes: dict[tuple[int, str], tuple[str, ...]] = {}
    for place, element in enumerate(path):
        for name, value in document.attributes(element).items():
            key = (place + 1, _name(name, local=local))
            attributes[key] = (*attributes.get(key, ()), value)
    repeated = [place for place, name in enumerate(names) if name in names[place + 1 :]]
    for size in range(len(repeated) + 1):
        for left_out in combinations(repeated, size):
            seen: Counter[str] = Counter()
            positions: dict[Tag, int] = {}
            for place, name in enumerate(names):
                if place not in left_out:
                    seen[name] += 1
                    positions[Tag(name, seen[name])] = place + 1
            elements = {tag: path[position - 1] for tag, position in positions.items()}
            yield Publication(len(path), positions, elements, attributes)


def _name(name: str, *, local: bool) -> str:
    return local_part(name) if local else name


def matches(conjunction: Iterable[Predicate], document: Document, *, local: bool = False) -> bool:
    """Whether some publication of the document satisfies all predicates: the plainest Boolean matcher."""
    wanted = list(conjunction)
    return any(all(map(each.satisfies, wanted)) for each in publications(document, local=local))
