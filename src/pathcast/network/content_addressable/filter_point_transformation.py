"""Transformation: a filter is a point, and a message a region of such points (appendix A of the select-join paper).

A filter has equalities, ranges, and terms without either. Filters that differ only in the ends of their ranges share a
*signature*; within it a filter is a point, with two coordinates per range. A message restricts the coordinates of a
range to a union of orthants:

    In(a, I)          low ≤ v, high ≥ v              Covers(l, h, I)   low ≤ l, high ≥ h
    Between(l, h, I)  low > l, high < h              SomePoint(a, B)   per listed point as Covers, some of them
    NoPoint(a, B)     none of the orthants of SomePoint

Coordinates are floats that preserve the order of values. If they preserve it strictly (numbers up to 53 bits, dates),
the filter is *exact*: an open end is the next float, and the coordinates decide. Otherwise the coordinates give
candidates, and the filter itself decides.

Columns are stored so that one filter covers another of its signature if it is ≤ in every column.
Invariant: a filter that matches has its point in the message's region.
Cost: a filter is analysed once; a message once per slot, regardless of the number of hops and filters.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from math import inf, nextafter
from typing import Literal

import numpy as np

from pathcast.kernels import Bools, Floats
from pathcast.messages import (
    Between,
    Box,
    Covers,
    Differs,
    Filter,
    In,
    Interval,
    NoPoint,
    Points,
    Scalar,
    SomePoint,
    Value,
    family,
)

Kind = Literal["in", "covers", "between", "some", "no"]
_EXACT = 1 << 53
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - without zone, as all timestamps of messages
_PREFIX = 6


@dataclass(frozen=True, slots=True)
class Slot:
    """A term whose ranges are coordinates: two per axis. A term about one value has one axis without a name."""

    kind: Kind
    names: tuple[str, ...]
    axes: tuple[str, ...]
    families: tuple[str | None, ...]
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.kind, self.names, self.axes, self.families)))

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[object, ...]:
        return Slot, (self.kind, self.names, self.axes, self.families)

    @property
    def narrow(self) -> bool:
        """Whether the filter with the narrower range covers the other."""
        return self.kind in {"between", "no"}


@dataclass(frozen=True, slots=True)
class Signature:
    """The common part of filters that differ only in the ends of their ranges."""

    equal: tuple[tuple[str, Scalar], ...]
    slots: tuple[Slot, ...]
    rest: tuple[Differs, ...]
    exact: bool
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.equal, self.slots, self.rest, self.exact)))

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[object, ...]:
        return Signature, (self.equal, self.slots, self.rest, self.exact)

    @property
    def width(self) -> int:
        """The number of coordinates of a filter."""
        return 2 * sum(len(slot.axes) for slot in self.slots)

    def columns(self) -> list[int]:
        """The first column of each slot."""
        found, at = [], 0
        for slot in self.slots:
            found.append(at)
            at += 2 * len(slot.axes)
        return found


@dataclass(frozen=True, slots=True)
class Shaped:
    """A filter's signature and point."""

    signature: Signature
    point: tuple[float, ...]
    filter: Filter


def shape(wanted: Filter) -> Shaped:
    """A filter's signature and point. Terms are sorted, so that equal conjunctions have equal shapes."""
    equal: list[tuple[str, Scalar]] = []
    ranged: list[tuple[Slot, tuple[Interval, ...]]] = []
    rest: list[Differs] = []
    for term in wanted.terms:
        match term:
            case In(attribute, one) if _single(one):
                equal.append((attribute, one.low))
            case In(attribute, one):
                ranged.append((Slot("in", (attribute,), ("",), (one.family,)), (one,)))
            case Covers(low, high, one):
                ranged.append((Slot("covers", (low, high), ("",), (one.family,)), (one,)))
            case Between(low, high, one):
                ranged.append((Slot("between", (low, high), ("",), (one.family,)), (one,)))
            case SomePoint(attribute, box):
                ranged.append(_boxed("some", attribute, box))
            case NoPoint(attribute, box):
                ranged.append(_boxed("no", attribute, box))
            case Differs():
                rest.append(term)
    ranged.sort(key=lambda pair: (pair[0].kind, pair[0].names, pair[0].axes, str(pair[0].families)))
    equal.sort(key=lambda pair: (pair[0], str(pair[1])))
    rest.sort(key=str)
    point: list[float] = []
    exact = True
    for slot, intervals in ranged:
        for interval in intervals:
            begin, end, sharp = _ends(interval)
            exact &= sharp
            point += (-begin, end) if slot.narrow else (begin, -end)
    signature = Signature(tuple(equal), tuple(slot for slot, _ in ranged), tuple(rest), exact)
    return Shaped(signature, tuple(point), wanted)


def _boxed(kind: Literal["some", "no"], attribute: str, box: Box) -> tuple[Slot, tuple[Interval, ...]]:
    axes = tuple(axis for axis, _ in box.ranges)
    intervals = tuple(one for _, one in box.ranges)
    return Slot(kind, (attribute,), axes, tuple(one.family for one in intervals)), intervals


def _single(one: Interval) -> bool:
    """Whether the interval contains exactly one value, so that it can be found by hash."""
    return one.low is not None and one.low == one.high and not one.low_open and not one.high_open


def _ends(one: Interval) -> tuple[float, float, bool]:
    """The ends of a closed interval of floats, and whether it contains the same values."""
    low, sharp_low = (-inf, True) if one.low is None else key(one.low)
    high, sharp_high = (inf, True) if one.high is None else key(one.high)
    sharp = sharp_low and sharp_high and not one.empty
    # Beyond 53 bits there are whole numbers between an open end and the next float; infinity has no next float.
    if one.low is not None and one.low_open:
        low, exact = _beyond(low, inf, sharp=sharp_low)
        sharp &= exact
    if one.high is not None and one.high_open:
        high, exact = _beyond(high, -inf, sharp=sharp_high)
        sharp &= exact
    return low, high, sharp and low <= high


def _beyond(end: float, way: float, *, sharp: bool) -> tuple[float, bool]:
    """The next float after an open end, if it is also the next value, otherwise the end itself; and which it is."""
    exact = sharp and abs(end) < _EXACT
    return nextafter(end, way) if exact else end, exact


def key(value: Scalar) -> tuple[float, bool]:
    """A number that preserves the order of values of one family, and whether it does so strictly."""
    match value:
        case int():
            return float(value), -_EXACT <= value <= _EXACT
        case float():
            return value + 0.0, True
        case datetime():
            return float(round((value - _EPOCH).total_seconds() * 1e3)), False
        case date():
            return float(value.toordinal()), True
        case str():
            return float(int.from_bytes(value.encode()[:_PREFIX].ljust(_PREFIX, b"\0"))), False
        case bytes():
            return float(int.from_bytes(value[:_PREFIX].ljust(_PREFIX, b"\0"))), False
    return -inf, False


@dataclass(frozen=True, slots=True)
class Region:
    """The condition of a message on one slot's coordinates: they do not exceed some row of `most`.

    A row has an upper bound per column, as columns are stored (infinite: no bound). `strict` means below the bound.
    `sharp`: the coordinates of exact filters decide. For `no`, none of the rows may hold.
    """

    most: Floats
    strict: bool = False
    sharp: bool = True
    negated: bool = False

    def within(self, columns: Floats, *, loose: bool = False) -> Bools:
        """For each row of columns whether it is in the region; `loose`: true for undecided rows, too."""
        loose |= not self.sharp
        if not self.negated:
            return self._some(columns, strict=self.strict and not loose)
        if loose:
            return np.ones(len(columns), bool)
        return ~self._some(-columns, strict=False)

    def _some(self, columns: Floats, *, strict: bool) -> Bools:
        if not len(self.most):
            return np.zeros(len(columns), bool)
        found = np.ones((len(columns), len(self.most)), bool)
        for at in range(self.most.shape[1]):
            left, right = columns[:, at, None], self.most[None, :, at]
            found &= (left < right) | np.isposinf(right) if strict else left <= right
        return np.asarray(found.any(axis=1))


NOWHERE = Region(np.zeros((0, 0)))
EVERYWHERE = Region(np.zeros((1, 0)))


class Probe:
    """A message, with its regions computed once per slot."""

    __slots__ = ("_regions", "area", "message")

    def __init__(self, message: Mapping[str, Value]) -> None:
        self.message = message
        # The region in a space, as the space has computed it: (space, boxes).
        self.area: tuple[object, object] | None = None
        self._regions: dict[Slot, Region] = {}

    def region(self, slot: Slot) -> Region:
        """The region of a slot."""
        found = self._regions.get(slot)
        if found is None:
            found = self._regions[slot] = _region(slot, self.message)
        return found


def _region(slot: Slot, message: Mapping[str, Value]) -> Region:
    match slot.kind:
        case "in":
            value = message.get(slot.names[0])
            return NOWHERE if isinstance(value, Points) else _orthants(slot, [(value, value)])
        case "covers":
            low, high = (message.get(name) for name in slot.names)
            return NOWHERE if isinstance(low, Points) or isinstance(high, Points) else _orthants(slot, [(low, high)])
        case "between":
            return _gap(slot, message)
        case "some" | "no":
            found = _listed(slot, message.get(slot.names[0]))
            return found if slot.kind == "some" else _none_of(found)
    raise AssertionError(f"unhandled kind of slot: {slot.kind!r}")


def _listed(slot: Slot, points: Value) -> Region:
    """The orthants of the points that an attribute lists."""
    if not isinstance(points, Points) or not set(slot.axes) <= set(points.axes) or not points.rows:
        return NOWHERE
    if not slot.axes:
        return EVERYWHERE
    step = 2 if points.pairs else 1
    places = [points.axes.index(axis) * step for axis in slot.axes]
    return _orthants(slot, [tuple(row[at + end] for at in places for end in (0, step - 1)) for row in points.rows])


def _none_of(found: Region) -> Region:
    """Bounds are those of `some`; columns of `no` are stored with the other sign (see `Region.within`)."""
    return Region(found.most, found.strict, found.sharp, negated=True)


def _orthants(slot: Slot, rows: list[tuple[Scalar, ...]]) -> Region:
    """Rows of values, low and high per axis, as bounds; a row with a value of another family never holds."""
    bounds, sharp = [], True
    for row in rows:
        one: list[float] = []
        for at, kind in enumerate(slot.families):
            low, high = row[2 * at], row[2 * at + 1]
            if low is None or high is None or (kind is not None and (family(low) != kind or family(high) != kind)):
                break
            (lower, exact_low), (upper, exact_high) = key(low), key(high)
            sharp &= exact_low and exact_high
            one += (lower, -upper)
        else:
            bounds.append(one)
    return Region(np.array(bounds, np.float64).reshape(len(bounds), 2 * len(slot.axes)), sharp=sharp)


def _gap(slot: Slot, message: Mapping[str, Value]) -> Region:
    """Between: (-low, high) strictly below (-l, h), where these are not NULL."""
    if slot.names[0] not in message or slot.names[1] not in message:
        return NOWHERE
    low, high = (message[name] for name in slot.names)
    if isinstance(low, Points) or isinstance(high, Points):
        return NOWHERE
    bounds, sharp = [], True
    for value, sign in ((low, -1.0), (high, 1.0)):
        if value is None:
            bounds.append(inf)
            continue
        if family(value) != slot.families[0]:
            return NOWHERE
        at, exact = key(value)
        sharp &= exact and abs(at) != inf
        bounds.append(sign * at)
    return Region(np.array([bounds]), strict=True, sharp=sharp)
