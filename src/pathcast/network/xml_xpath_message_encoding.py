"""XML documents as messages, and XPath patterns as filters: the GPX encoding over a content network.

The GPX-Matcher's encoding (`literature/gpx`) turns a document into a set of *publications*, one per path from the root
to a leaf, and a path pattern into a conjunction over one of them. Here a publication is a row of points; its axes are
positions, distances and attribute values:

    p a¹ position · d a¹ b¹ distance · e a¹ elements below · length · # a¹ 0 x number, @ a¹ 0 x text of an attribute

and a pattern is `SomePoint`: some publication lies in all ranges of the pattern. So messages from tables and messages
from documents use the same filter tables, and the bytes of the document are the payload.

Invariant: the filter of a pattern matches the message of a document if and only if the pattern matches the document.
Not done: twigs (a conjunction of paths is not a twig), conditions on text, `!=` on attributes: `MessageError`.
Cost: a row per path and choice of repeated tags, a column per pair of tags; `LIMIT` bounds the rows.
"""

from collections.abc import Iterator
from math import isnan
from pathlib import Path

from pathcast.documents import read
from pathcast.errors import LimitError, MessageError
from pathcast.literature.gpx import (
    Distance,
    FromEnd,
    Length,
    Place,
    Position,
    Predicate,
    Publication,
    Unencodable,
    predicates,
    publications,
)
from pathcast.literature.gpx import (
    Filter as AttributeFilter,
)
from pathcast.messages import Box, Filter, Interval, Message, Points, Scalar, SomePoint
from pathcast.patterns import Compare, Pattern, number_of, parse

PATHS, DOCUMENT = "#paths", "document"
LIMIT = 10_000
_BETWEEN = "\x1f"  # occurs in no XML name


def document_message(document: str | bytes | Path) -> Message:
    """A document as a message: its publications, and its bytes as payload."""
    parsed = read(document)
    rows: list[dict[str, Scalar]] = []
    for publication in publications(parsed):
        if len(rows) == LIMIT:
            raise LimitError(
                f"the document needs more than {LIMIT:,} rows, because its paths repeat tags often; split the document"
            )
        rows.append(dict(_pairs(publication)))
    axes = sorted({axis for row in rows for axis in row})
    distinct = dict.fromkeys(tuple(row.get(axis) for axis in axes) for row in rows)
    return Message({PATHS: Points.of(axes, distinct), DOCUMENT: parsed.data}, [DOCUMENT])


def pattern_filter(pattern: str | Pattern) -> Filter:
    """A path pattern as a filter over such messages; `MessageError` if the encoding cannot express it.

    >>> from pathcast.network import document_message, pattern_filter
    >>> pattern_filter("/news//title").matches(document_message("<news><head><title/></head></news>"))
    True
    """
    parsed = parse(pattern) if isinstance(pattern, str) else pattern
    ranges: dict[str, Interval] = {}
    try:
        for predicate in predicates(parsed):
            axis, interval = _range(predicate)
            ranges[axis] = ranges[axis] & interval if axis in ranges else interval
    except Unencodable as reason:
        raise MessageError(f"a content network does not support '{parsed}': {reason}") from None
    return Filter((SomePoint(PATHS, Box.of(ranges)),))


def _pairs(publication: Publication) -> Iterator[tuple[str, Scalar]]:
    """A publication as axes and values."""
    yield "length", publication.length
    places = list(publication.positions.items())
    for at, (tag, position) in enumerate(places):
        yield _axis("p", *tag), position
        yield _axis("e", *tag), publication.length - position
        for other, later in places[at + 1 :]:
            yield _axis("d", *tag, *other), later - position
    for (position, attribute), values in publication.attributes.items():
        for place in (Place(None, position), *(Place(tag, position - at) for tag, at in places)):
            yield _axis("@", *_place(place), attribute), values[0]
            number = number_of(values[0])
            yield _axis("#", *_place(place), attribute), None if isnan(number) else number


def _range(predicate: Predicate) -> tuple[str, Interval]:
    """A predicate as an axis and the values that it allows there."""
    match predicate:
        case Position(tag, operator, value):
            return _axis("p", *tag), Interval(value, value if operator == "=" else None)
        case Distance(first, second, operator, value):
            return _axis("d", *first, *second), Interval(value, value if operator == "=" else None)
        case FromEnd(tag, value):
            return _axis("e", *tag), Interval(value, None)
        case Length(value):
            return "length", Interval(value, None)
        case AttributeFilter(place, attribute, None):
            return _axis("@", *_place(place), attribute), Interval()
        case AttributeFilter(place, attribute, test):
            return _tested(place, attribute, test)
    raise AssertionError(f"unhandled predicate: {predicate!r}")


def _tested(place: Place, attribute: str, test: Compare | None) -> tuple[str, Interval]:
    assert test is not None
    if test.operator == "!=" or (test.number is None and test.operator != "="):
        raise Unencodable(
            f"comparison of attribute '{attribute}' with '{test.operator}'; use =, or <, <=, >, >= and a number"
        )
    if test.number is not None and isnan(test.number):
        raise Unencodable(
            f"comparison of attribute '{attribute}' with NaN, which matches nothing; remove the comparison"
        )
    if test.number is None:
        return _axis("@", *_place(place), attribute), Interval.only(test.string)
    strict = test.operator in {"<", ">"}
    low = test.number if test.operator[0] in "=>" else None
    high = test.number if test.operator[0] in "=<" else None
    return _axis("#", *_place(place), attribute), Interval(low, high, strict, strict)


def _place(place: Place) -> tuple[object, ...]:
    tag: tuple[object, ...] = place.tag if place.tag is not None else ("/", 0)
    return (*tag, place.steps)


def _axis(*parts: object) -> str:
    return _BETWEEN.join(map(str, parts))
