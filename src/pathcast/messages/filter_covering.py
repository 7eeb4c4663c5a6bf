"""Covering: when one filter matches whatever another matches, so that a network need only pass on the first.

A filter covers another when each of its terms is implied by a term of the other. Per kind of term:

    In(a, I)            by In(a, J) with J ⊂ I; by Between and Covers never, since they say nothing of a
    Differs(a, v)       by Differs(a, v), or In(a, J) with v not in J
    Covers(l, h, I)     by Covers(l, h, J) with J ⊂ I
    Between(l, h, I)    by Between(l, h, J) with I ⊂ J, I not empty
    SomePoint(a, B)     by SomePoint(a, C) with C ⊂ B on all axes of B: the same point is covered
    NoPoint(a, B)       by NoPoint(a, C) with B ⊂ C on all axes of C: what B covers, C would

Before that, terms of the other filter about one attribute are taken together (`a > 3 and a < 5`), and a filter that
nothing can match is covered by all.

Sound, and complete for conjunctions of `In` (tested). Not complete beyond: what follows only from two terms of
different kinds together is not seen, which costs a network some traffic and never a delivery.
Cost: the product of the numbers of terms.
"""

from .filters import Between, Covers, Differs, Filter, In, NoPoint, SomePoint, Term
from .intervals import Interval


def covers(one: Filter, other: Filter) -> bool:
    """Whether every message that `other` matches is matched by `one`."""
    given = _joined(other)
    if given is None:
        return True
    return all(any(_implies(have, want) for have in given) or _always(want) for want in one.terms)


def _joined(one: Filter) -> tuple[Term, ...] | None:
    """The terms, those about one attribute's value in one; None when no message can match."""
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
    """Terms that no message matches."""
    match term:
        case Differs(attribute, value):
            return ranges.get(attribute) == Interval.only(value)
        case Covers(_, _, interval):
            return interval.empty
        case SomePoint(_, box):
            return box.empty
    return False


def _always(term: Term) -> bool:
    """Terms that every message matches."""
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
