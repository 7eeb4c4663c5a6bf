"""Covering: when one filter matches every message that another matches, so that a network need only pass on the first.

A filter covers another when each of its terms is implied by a term of the other. Per kind of term:

    In(a, I)            by In(a, J) with J ⊂ I; never by Between or Covers, since they do not restrict a
    Differs(a, v)       by Differs(a, v), or In(a, J) with v not in J
    Covers(l, h, I)     by Covers(l, h, J) with J ⊂ I
    Between(l, h, I)    by Between(l, h, J) with I ⊂ J, I not empty
    SomePoint(a, B)     by SomePoint(a, C) with C ⊂ B on all axes of B: the same point is covered
    NoPoint(a, B)       by NoPoint(a, C) with B ⊂ C on all axes of C: C covers every point that B covers

Before that, terms of the other filter about one attribute are merged (`a > 3 and a < 5`), and every filter covers a
filter that no message can match.

Sound, and complete for conjunctions of `In` (tested). Not complete in general: an implication that needs two terms of
different kinds is not detected, which costs a network some traffic but never a delivery.
Cost: the product of the numbers of terms.
"""

from .filters import Between, Covers, Differs, Filter, In, NoPoint, SomePoint, Term
from .value_interval import Interval


def covers(one: Filter, other: Filter) -> bool:
    """Whether `one` matches every message that `other` matches."""
    given = _joined(other)
    if given is None:
        return True
    return all(any(_implies(have, want) for have in given) or _always(want) for want in one.terms)


def _joined(one: Filter) -> tuple[Term, ...] | None:
    """The terms, with the ranges of each attribute merged into one term; None if no message can match."""
    ranges: dict[str, Interval] = {}
    rest: list[Term] = []
    for term in one.terms:
        if not isinstance(term, In):
            rest.append(term)
            continue
        before = ranges.get(term.attribute, Interval())
        if len({before.family, term.interval.family} - {None}) > 1:
            return None
        ranges[term.attribute] = before & term.interval
    if any(interval.empty for interval in ranges.values()) or any(_never(term, ranges) for term in rest):
        return None
    return (*(In(attribute, interval) for attribute, interval in ranges.items()), *rest)


def _never(term: Term, ranges: dict[str, Interval]) -> bool:
    """Whether no message matches the term."""
    match term:
        case Differs(attribute, value):
            return ranges.get(attribute) == Interval.only(value)
        case Covers(_, _, interval):
            return interval.empty
        case SomePoint(_, box):
            return box.empty
    return False


def _always(term: Term) -> bool:
    """Whether every message matches the term."""
    return isinstance(term, NoPoint) and term.box.empty


def _implies(have: Term, want: Term) -> bool:
    match have, want:
        case In(a, one), In(b, other):
            return a == b and other.holds(one)
        case Differs(), Differs():
            return have == want
        case In(a, one), Differs(b, value):
            return a == b and value not in one
        case Covers(l, h, one), Covers(k, g, other):
            return (l, h) == (k, g) and other.holds(one)
        case Between(l, h, one), Between(k, g, other):
            return (l, h) == (k, g) and (one == other or (not other.empty and one.holds(other)))
        case SomePoint(a, one), SomePoint(b, other):
            return a == b and other.holds(one)
        case NoPoint(a, one), NoPoint(b, other):
            return a == b and one.holds(other)
    return False
