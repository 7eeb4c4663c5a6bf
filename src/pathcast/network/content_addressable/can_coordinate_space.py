"""The space of a content-addressable network: the point of a filter and the region of a message (appendix A).

An axis is a pair of dimensions, the low and the high end of a range; a filter's range on it is a point of that plane. A
`Reading` defines where filters have that range, and where messages have the values that it must contain:

    Reading("per")                          In("per", I) in the filter; the value of `per` in the message
    Reading("skyline", axis="rating")       SomePoint("skyline", box with `rating`); the points of the message
    Reading("#at", gap=("#lo", "#hi"))      In("#at", I) and Between("#lo", "#hi", I)
    Reading("#at", given={"#f": 2})         the same, for messages and filters with this value alone

A message restricts a plane to a rectangle, or to a staircase for a skyline; its region is their product. Terms that no
reading names are evaluated at the owner of the filter. A filter without a range on an axis is at (-∞, ∞), unless the
axis is `required`: then it is rejected.

The filters of one subscription can share one point, including filters without a range on some axis, provided that no
reading of the axis applies to messages that they match. If no reading of an axis applies to a message, its region
includes the whole axis.

Invariant: a filter that matches a message is a point of the message's region. Coordinates are whole numbers of 20 bits
that preserve the order of values, so different values may have equal coordinates, and the filter decides.
Cost: a few steps per term, and a box per step of a staircase.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import inf

import numpy as np

from pathcast.errors import MessageError
from pathcast.kernels import Floats, Int64s
from pathcast.messages import Between, Filter, In, Interval, Points, Scalar, SomePoint, Value

from .filter_point_transformation import Probe, key
from .zone_boxes import SIDE, Box

Plane = tuple[int, int, int, int]
_CORNER: Plane = (0, 1, SIDE - 1, SIDE)


@dataclass(frozen=True)
class Reading:
    """Where filters have a range, and where messages have the values that it must contain."""

    attribute: str
    axis: str | None = None
    gap: tuple[str, str] | None = None
    given: Mapping[str, Scalar] = field(default_factory=dict)

    def contradicts(self, equal: Mapping[str, Scalar]) -> bool:
        """Whether the reading applies to no message that a filter with these equalities matches."""
        return any(name in equal and equal[name] != value for name, value in self.given.items())

    def reads(self, message: Mapping[str, Value]) -> bool:
        """Whether the reading applies to a message."""
        return all(_equals(message.get(name), value) for name, value in self.given.items())

    def range(self, terms: Sequence[object], equal: Mapping[str, Scalar]) -> Interval | None:
        """A filter's range, if this reading finds one."""
        if any(equal.get(name) != value for name, value in self.given.items()):
            return None
        found = [one for one in map(self._of, terms) if one is not None]
        if not found:
            return None
        if self.gap is not None and Between(*self.gap, found[0]) not in terms:
            below, above = self.gap
            raise MessageError(
                f"the filter has a range on '{self.attribute}', but no Between({below!r}, {above!r}, …) for the "
                "gap; add this term to the filter"
            )
        return found[0]

    def _of(self, term: object) -> Interval | None:
        match term:
            case In(attribute, one) if attribute == self.attribute and self.axis is None:
                return one
            case SomePoint(attribute, box) if attribute == self.attribute and self.axis is not None:
                return dict(box.ranges).get(self.axis)
        return None


@dataclass(frozen=True)
class Axis:
    """A range that filters have: the bounds of its ends, and its readings."""

    name: str
    low: float
    high: float
    readings: tuple[Reading, ...] = ()
    required: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise MessageError(f"the name of an axis must be a string, got {self.name!r}")
        readings: object = self.readings
        if not isinstance(readings, tuple) or not all(isinstance(one, Reading) for one in readings):
            raise MessageError(f"readings of axis '{self.name}' must be a tuple of Reading(…), got {readings!r}")
        numbers = all(isinstance(end, int | float) for end in (self.low, self.high))
        if not numbers or not -inf < self.low < self.high < inf:
            raise MessageError(
                f"axis '{self.name}' must have finite low < high, got low={self.low!r}, high={self.high!r}"
            )
        if not self.readings:
            object.__setattr__(self, "readings", (Reading(self.name),))

    def place(self, value: float) -> int:
        """The coordinate of a value."""
        if value <= self.low:
            return 0
        if value >= self.high:
            return SIDE - 1
        return min(SIDE - 1, int((value - self.low) / (self.high - self.low) * SIDE))

    def places(self, values: Floats) -> Int64s:
        """The coordinates of many values."""
        scaled = (values - self.low) / (self.high - self.low) * SIDE
        return np.clip(scaled, 0, SIDE - 1).astype(np.int64)

    def point(self, terms: Sequence[object], equal: Mapping[str, Scalar]) -> tuple[int, int] | None:
        """A filter's place in the plane; None if any place will do, since it matches no message that is read here."""
        for reading in self.readings:
            one = reading.range(terms, equal)
            if one is not None:
                low = -inf if one.low is None else key(one.low)[0]
                high = inf if one.high is None else key(one.high)[0]
                return self.place(low), self.place(high)
        if all(reading.contradicts(equal) for reading in self.readings):
            return None
        if self.required:
            raise MessageError(
                f"the filter has no range on '{self.name}', which is a required axis of the space; add a range"
            )
        return 0, SIDE - 1

    def parts(self, message: Mapping[str, Value]) -> list[Plane]:
        """The region of a message in the plane: rectangles (low from, below, high from, below)."""
        readings = [reading for reading in self.readings if reading.reads(message)]
        if not readings:
            return [(0, SIDE, 0, SIDE)]
        found = [part for reading in readings for part in self._asked(reading, message)]
        return found if self.required else [*found, _CORNER]

    def _asked(self, reading: Reading, message: Mapping[str, Value]) -> list[Plane]:
        value = message.get(reading.attribute)
        if isinstance(value, Points):
            return staircase(self._steps(reading, value)) if reading.axis is not None else []
        if value is None or reading.axis is not None:
            return []
        at = self.place(key(value)[0])
        low, high = 0, SIDE
        if reading.gap is not None:
            below, above = (message.get(name) for name in reading.gap)
            if isinstance(below, Points) or isinstance(above, Points):
                return []
            low = 0 if below is None else self.place(key(below)[0])
            high = SIDE if above is None else self.place(key(above)[0]) + 1
        return [(low, at + 1, at, high)] if low <= at < high else []

    def _steps(self, reading: Reading, points: Points) -> Iterator[tuple[int, int]]:
        if reading.axis not in points.axes:
            return
        step = 2 if points.pairs else 1
        at = points.axes.index(reading.axis) * step
        for row in points.rows:
            low, high = row[at], row[at + step - 1]
            if low is not None and high is not None:
                yield self.place(key(low)[0]), self.place(key(high)[0])


def staircase(points: Iterator[tuple[int, int]]) -> list[Plane]:
    """The ranges that cover some point, as disjoint rectangles: one per step of the skyline."""
    found: list[Plane] = []
    least, begin = SIDE, None
    for low, high in sorted(points, reverse=True):
        if high >= least:
            continue
        if begin is not None:
            found.append((low + 1, begin + 1, least, SIDE))
        least, begin = high, low
    if begin is not None:
        found.append((0, begin + 1, least, SIDE))
    return [part for part in found if part[0] < part[1]]


def _equals(found: Value, value: Scalar) -> bool:
    return not isinstance(found, Points) and found == value


def _equalities(wanted: Filter) -> dict[str, Scalar]:
    return {
        term.attribute: term.interval.low
        for term in wanted.terms
        if isinstance(term, In) and term.interval == Interval.only(term.interval.low) and term.interval.low is not None
    }


@dataclass(frozen=True)
class Space:
    """A space of some axes, with two dimensions each."""

    axes: tuple[Axis, ...]

    def __post_init__(self) -> None:
        if not self.axes:
            raise MessageError("the space has no axes; give at least one, such as Space.of(Axis('per', 0, 100))")
        names: set[str] = set()
        for axis in self.axes:
            if not isinstance(axis, Axis):
                raise MessageError(f"the axes of a space must be Axis(…), got {axis!r}")
            if axis.name in names:
                raise MessageError(f"duplicate axis '{axis.name}'; give each axis its own name")
            names.add(axis.name)

    @classmethod
    def of(cls, *axes: Axis) -> "Space":
        """A space of at least one axis; axis names must be distinct."""
        return cls(tuple(axes))

    @property
    def dimensions(self) -> int:
        """The number of coordinates of a point."""
        return 2 * len(self.axes)

    @property
    def whole(self) -> Box:
        """All points."""
        return Box((0,) * self.dimensions, (SIDE,) * self.dimensions)

    def point(self, *wanted: Filter) -> tuple[int, ...]:
        """The point of a filter, or of several filters that share one."""
        found: list[int] = []
        for axis in self.axes:
            tried = (axis.point(one.terms, _equalities(one)) for one in wanted)
            places = {place for place in tried if place is not None}
            if len(places) > 1:
                raise MessageError(
                    f"the filters have different ranges on '{axis.name}', so they share no point; register each alone"
                )
            found += next(iter(places), (0, SIDE - 1))
        return tuple(found)

    def area(self, probe: Probe) -> list[Box]:
        """The region of a message, computed once for all hops."""
        if probe.area is None or probe.area[0] is not self:
            probe.area = self, self.region(probe.message)
        found = probe.area[1]
        assert isinstance(found, list)
        return found

    def region(self, message: Mapping[str, Value]) -> list[Box]:
        """The boxes in which filters can match a message."""
        planes = [axis.parts(message) for axis in self.axes]
        return [
            Box(tuple(at for part in parts for at in part[::2]), tuple(at for part in parts for at in part[1::2]))
            for parts in product(*planes)
        ]
