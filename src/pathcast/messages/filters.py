"""Filters: a subscriber registers a filter, a conjunction of terms over the attributes of a message.

A content-based network evaluates a term on one message alone (§2.1, §3.2, appendices A and C of the select-join paper),
so all state of a subscription is in the message or in the filter:

    In(a, I)              the value of a is in my interval; comparisons with a constant are this
    Differs(a, v)         a has a value, and it is not v
    Covers(l, h, I)       my interval contains the message's range [l, h]
    Between(l, h, I)      my interval lies strictly inside the message's range (l, h); NULL is no bound
    SomePoint(a, box)     some point that the message lists in a is covered by my ranges
    NoPoint(a, box)       no point that the message lists in a is; true if it lists none

Invariant: a term about an attribute that a message lacks is false, except `NoPoint`.
Cost: a comparison per term, or a few per listed point.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from pathcast.errors import MessageError

from .attribute_values import Points, Scalar, Value, check_scalar, shown
from .value_interval import Interval


@dataclass(frozen=True, slots=True)
class Box:
    """An interval for each of some named axes."""

    ranges: tuple[tuple[str, Interval], ...]

    @classmethod
    def of(cls, ranges: Mapping[str, Interval]) -> "Box":
        """A box; its axes are sorted by name."""
        return cls(tuple(sorted(ranges.items())))

    def covers(self, points: Points) -> Iterator[bool]:
        """For each point, whether all ranges cover it; a range on an axis that the points lack covers none."""
        step = 2 if points.pairs else 1
        places = [(points.axes.index(axis) * step, one) for axis, one in self.ranges if axis in points.axes]
        if len(places) < len(self.ranges):
            yield from (False for _ in points.rows)
            return
        for row in points.rows:
            yield all(one.covers(row[at], row[at + step - 1]) for at, one in places)

    def holds(self, other: "Box") -> bool:
        """Whether this box covers every point that the other covers."""
        theirs = dict(other.ranges)
        return all(axis in theirs and one.holds(theirs[axis]) for axis, one in self.ranges)

    @property
    def empty(self) -> bool:
        """Whether the box covers no point."""
        return any(one.empty for _, one in self.ranges)

    def __str__(self) -> str:
        return " × ".join(f"{axis} {one}" for axis, one in self.ranges)


@dataclass(frozen=True, slots=True)
class In:
    """The attribute's value lies in the interval."""

    attribute: str
    interval: Interval

    def matches(self, message: Mapping[str, Value]) -> bool:
        value = message.get(self.attribute)
        return not isinstance(value, Points) and value in self.interval

    def __str__(self) -> str:
        one = self.interval
        if one.low is not None and one.low == one.high and not one.empty:
            return f"{self.attribute} = {shown(one.low)}"
        if one.low is None and one.high is None:
            return f"{self.attribute} is not null"
        if one.high is None:
            return f"{self.attribute} {'>' if one.low_open else '>='} {shown(one.low)}"
        if one.low is None:
            return f"{self.attribute} {'<' if one.high_open else '<='} {shown(one.high)}"
        return f"{self.attribute} in {one}"


@dataclass(frozen=True, slots=True)
class Differs:
    """The attribute has a value other than this one."""

    attribute: str
    value: Scalar

    def __post_init__(self) -> None:
        check_scalar(self.value)

    def matches(self, message: Mapping[str, Value]) -> bool:
        found = message.get(self.attribute)
        return found is not None and not isinstance(found, Points) and found != self.value

    def __str__(self) -> str:
        return f"{self.attribute} != {shown(self.value)}"


@dataclass(frozen=True, slots=True)
class Covers:
    """The interval contains the range between two attributes."""

    low: str
    high: str
    interval: Interval

    def matches(self, message: Mapping[str, Value]) -> bool:
        low, high = message.get(self.low), message.get(self.high)
        if isinstance(low, Points) or isinstance(high, Points):
            return False
        return self.interval.covers(low, high)

    def __str__(self) -> str:
        return f"[{self.low}, {self.high}] within {self.interval}"


@dataclass(frozen=True, slots=True)
class Between:
    """The interval lies strictly between two attributes; NULL means no bound on that side."""

    low: str
    high: str
    interval: Interval

    def matches(self, message: Mapping[str, Value]) -> bool:
        if self.low not in message or self.high not in message:
            return False
        low, high = message[self.low], message[self.high]
        if isinstance(low, Points) or isinstance(high, Points):
            return False
        return self.interval.between(low, high)

    def __str__(self) -> str:
        return f"{self.interval} within ({self.low}, {self.high})"


@dataclass(frozen=True, slots=True)
class SomePoint:
    """Some point that the attribute lists is covered by the box."""

    attribute: str
    box: Box

    def matches(self, message: Mapping[str, Value]) -> bool:
        points = message.get(self.attribute)
        return isinstance(points, Points) and any(self.box.covers(points))

    def __str__(self) -> str:
        return f"some {self.attribute} in {self.box}"


@dataclass(frozen=True, slots=True)
class NoPoint:
    """No point that the attribute lists is covered by the box."""

    attribute: str
    box: Box

    def matches(self, message: Mapping[str, Value]) -> bool:
        points = message.get(self.attribute)
        return not isinstance(points, Points) or not any(self.box.covers(points))

    def __str__(self) -> str:
        return f"no {self.attribute} in {self.box}"


Term: TypeAlias = In | Differs | Covers | Between | SomePoint | NoPoint

_COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")


def compare(attribute: str, operator: str, value: Scalar) -> Term:
    """The term for a comparison with a constant: `compare("per", ">=", 45)`."""
    if operator not in _COMPARISONS:
        raise MessageError(f"unknown comparison {operator!r}; use one of {' '.join(_COMPARISONS)}")
    if value is None:
        raise MessageError(
            f"cannot compare {attribute!r} with NULL (None): the comparison never holds; give another value"
        )
    if operator == "!=":
        return Differs(attribute, value)
    strict = len(operator) == 1 and operator != "="
    low = value if operator[0] in "=>" else None
    high = value if operator[0] in "=<" else None
    return In(attribute, Interval(low, high, strict and low is not None, strict and high is not None))


@dataclass(frozen=True, slots=True)
class Filter:
    """All of its terms must hold; a filter without terms matches everything.

    >>> from pathcast.messages import Filter, In, Interval, Message, compare
    >>> wanted = Filter((compare("symbol", "=", "GOOG"), In("per", Interval(45, 70))))
    >>> wanted.matches(Message({"symbol": "GOOG", "per": 52.1})), wanted.matches(Message({"symbol": "GOOG"}))
    (True, False)
    """

    terms: tuple[Term, ...] = ()

    def matches(self, message: Mapping[str, Value]) -> bool:
        """Whether the filter matches the message."""
        return all(term.matches(message) for term in self.terms)

    def covers(self, other: "Filter") -> bool:
        """Whether this filter matches each message that the other does: sound but incomplete (filter_covering.py)."""
        from .filter_covering import covers

        return covers(self, other)

    def encode(self) -> bytes:
        """The wire form (`wire_format.py`)."""
        from .wire_format import encode_filter

        return encode_filter(self)

    def __and__(self, other: "Filter") -> "Filter":
        return Filter(self.terms + tuple(term for term in other.terms if term not in self.terms))

    def __str__(self) -> str:
        return " and ".join(str(term) for term in self.terms) or "true"
