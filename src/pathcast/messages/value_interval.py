"""Intervals over one family of values: ends open, closed or absent.

`Interval(5, 10)` is [5, 10]; `Interval(5, None, low_open=True)` is everything above 5. NULL is in no interval, not even
in one without ends; nor is a value of another family than the ends.

Invariant: the ends are of one family. An interval may be empty (`Interval(5, 3)`); it then contains no value and lies
in every other interval.
"""

from dataclasses import dataclass

from pathcast.errors import MessageError

from .attribute_values import Scalar, check_scalar, family, shown


@dataclass(frozen=True, slots=True)
class Interval:
    """The values from `low` to `high`; None means no end on that side.

    >>> 70 in pathcast.messages.Interval(45, 70), 70 in pathcast.messages.Interval(45, 70, high_open=True)
    (True, False)
    """

    low: Scalar = None
    high: Scalar = None
    low_open: bool = False
    high_open: bool = False

    def __post_init__(self) -> None:
        check_scalar(self.low)
        check_scalar(self.high)
        if self.low is not None and self.high is not None and family(self.low) != family(self.high):
            raise MessageError(
                f"the interval from {shown(self.low)} to {shown(self.high)} has ends of different types; give "
                "both ends the same type"
            )

    @classmethod
    def only(cls, value: Scalar) -> "Interval":
        """The interval that contains one value."""
        return cls(value, value)

    @property
    def family(self) -> str | None:
        """The family of the ends; None for an interval without ends."""
        return family(self.low) or family(self.high)

    @property
    def empty(self) -> bool:
        """Whether the interval contains no value of any type."""
        if self.low is None or self.high is None:
            return False
        return bool(
            self.low > self.high  # type: ignore[operator]
            or (self.low == self.high and (self.low_open or self.high_open))
        )

    def __contains__(self, value: Scalar) -> bool:
        return self.covers(value, value)

    def covers(self, low: Scalar, high: Scalar) -> bool:
        """Whether the interval begins at `low` or before and ends at `high` or after: the test of a skyline point.

        Both ends are tested independently: `low` may exceed `high`, and then the interval need only overlap the range
        between them. An empty interval covers nothing.
        """
        return _begins(self, low) and _ends(self, high) and not self.empty

    def holds(self, other: "Interval") -> bool:
        """Whether this interval contains every value of the other."""
        if other.empty:
            return True
        if self.low is not None and (
            other.low is None or not _begins(self, other.low, strictly=self.low_open and not other.low_open)
        ):
            return False
        return self.high is None or (
            other.high is not None and _ends(self, other.high, strictly=self.high_open and not other.high_open)
        )

    def between(self, low: Scalar, high: Scalar) -> bool:
        """Whether the interval lies strictly between two values (NULL: no bound on that side)."""
        if low is not None and not (
            family(low) == family(self.low) and (self.low > low or (self.low == low and self.low_open))  # type: ignore[operator]
        ):
            return False
        return high is None or (
            family(high) == family(self.high) and bool(self.high < high or (self.high == high and self.high_open))  # type: ignore[operator]
        )

    def __and__(self, other: "Interval") -> "Interval":
        """The intersection of both intervals."""
        low, low_open = _tighter(self.low, self.low_open, other.low, other.low_open, 1)
        high, high_open = _tighter(self.high, self.high_open, other.high, other.high_open, -1)
        return Interval(low, high, low_open, high_open)

    def __str__(self) -> str:
        left = "(" if self.low_open or self.low is None else "["
        right = ")" if self.high_open or self.high is None else "]"
        low = "-∞" if self.low is None else shown(self.low)
        high = "∞" if self.high is None else shown(self.high)
        return f"{left}{low}, {high}{right}"


def _begins(interval: Interval, at: Scalar, *, strictly: bool | None = None) -> bool:
    """Whether the interval begins at a value or before it, or strictly before it (default: if its low end is open)."""
    if at is None:
        return False
    if interval.low is None:
        return interval.high is None or family(at) == family(interval.high)
    if family(at) != family(interval.low):
        return False
    beyond = interval.low_open if strictly is None else strictly
    return bool(interval.low < at if beyond else interval.low <= at)  # type: ignore[operator]


def _ends(interval: Interval, at: Scalar, *, strictly: bool | None = None) -> bool:
    """Whether the interval ends at a value or after it, or strictly after it."""
    if at is None:
        return False
    if interval.high is None:
        return interval.low is None or family(at) == family(interval.low)
    if family(at) != family(interval.high):
        return False
    beyond = interval.high_open if strictly is None else strictly
    return bool(interval.high > at if beyond else interval.high >= at)  # type: ignore[operator]


def _tighter(one: Scalar, one_open: bool, other: Scalar, other_open: bool, sign: int) -> tuple[Scalar, bool]:
    if one is None or other is None:
        return (other, other_open) if one is None else (one, one_open)
    if family(one) != family(other):
        raise MessageError(
            f"cannot intersect intervals whose ends {shown(one)} and {shown(other)} have different types; "
            "give both ends the same type"
        )
    if one == other:
        return one, one_open or other_open
    above = one > other  # type: ignore[operator]
    return (one, one_open) if above == (sign > 0) else (other, other_open)
