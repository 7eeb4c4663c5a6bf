"""Attributes of messages that are not columns, and the filters on them.

A message to all subscriptions of a form (§3.2 of the select-join paper) has the columns of a tuple of the base table,
and beside them, by kind:

    arrive    a   #s skyline over the filtering attributes: the tuple is new
    depart    d   #s; no payload: the tuple is gone
    patch     p   #s; only columns that changed, for clients that have the tuple's other version, #o
    enter     n   #s, #o: the tuple's new version, for clients that did not have the other
    leave     l   #s, #o: the tuple's old version, for clients that do not have the other
    expose    e   #at, #lo, #hi (or #at, #held): a filtering tuple arrived, and this tuple now passes
    withdraw  w   the same, but only the join columns: no tuple of this join value passes any longer

A message to one subscription (`#to`) lists rows by table: `+T` new, `~T` changed, `-T` removed; `+` lists join
results; `#forms` lists the forms of its semijoins from now on.

Invariant: a subscription's filters, evaluated on the message alone, match exactly the semijoins that the message
changes. For a tuple with two versions, `#o` is the other one as a point, so "has it already" is "some #o in my base
ranges", and each subscription matches at most one of patch, enter and leave. Filters for arrivals and departures do not
test `#o`, so that filters with wide ranges cover those with narrow ones.
"""

from collections.abc import Mapping

from pathcast.messages import Between, Box, Filter, In, Interval, NoPoint, SomePoint, Term

FORM, KIND, ROW, TO = "#f", "#k", "#r", "#to"
SKYLINE, OTHER = "#s", "#o"
AT, BELOW, ABOVE, HELD = "#at", "#lo", "#hi", "#held"
ARRIVE, DEPART, PATCH, ENTER, LEAVE, EXPOSE, WITHDRAW = "a", "d", "p", "n", "l", "e", "w"
COME, CHANGE, GO = "+", "~", "-"
RESULTS = "+"
FORMS = "#forms"

Ranges = Mapping[str, Interval]


def only(attribute: str, value: int | str) -> Term:
    """A term: the attribute equals this value."""
    return In(attribute, Interval.only(value))


def unicast(subscription: int) -> Filter:
    """The filter on messages to one subscription."""
    return Filter((only(TO, subscription),))


def semijoin_filters(form: int, base: Ranges, filtering: Ranges | None) -> tuple[Filter, ...]:
    """The filters of a semijoin of some form, one per kind of message.

    filtering: the ranges on the filtering axes of the form, empty when it has none; None for a selection, which every
    tuple passes, so that nothing is ever exposed.
    """
    mine = tuple(In(column, interval) for column, interval in base.items())
    box = Box.of(base)
    support: tuple[Term, ...] = (SomePoint(SKYLINE, Box.of(filtering)),) if filtering else ()
    kinds: list[tuple[str, tuple[Term, ...]]] = [
        (ARRIVE, (*mine, *support)),
        (DEPART, (*mine, *support)),
        (PATCH, (*mine, SomePoint(OTHER, box), *support)),
        (ENTER, (*mine, NoPoint(OTHER, box), *support)),
        (LEAVE, (*mine, NoPoint(OTHER, box), *support)),
    ]
    if filtering is not None:
        gap = _gap(filtering)
        kinds += [(EXPOSE, (*mine, *gap)), (WITHDRAW, gap)]
    return tuple(Filter((only(FORM, form), only(KIND, kind), *terms)) for kind, terms in kinds)


def _gap(filtering: Ranges) -> tuple[Term, ...]:
    """Theorem 1 as terms: the ranges contain the filtering tuple and none of those that stay."""
    if not filtering:
        return ()
    if len(filtering) == 1:
        interval = next(iter(filtering.values()))
        return In(AT, interval), Between(BELOW, ABOVE, interval)
    box = Box.of(filtering)
    return SomePoint(AT, box), NoPoint(HELD, box)


def result_filters(signature: int, ranges: Mapping[str, Ranges], represent: Mapping[str, str]) -> tuple[Filter, ...]:
    """The filter on join results of a signature: each range applies to the attribute that represents its column."""
    terms = []
    for table, columns in ranges.items():
        for column, interval in columns.items():
            term = In(represent[f"{table}.{column}"], interval)
            if term not in terms:
                terms.append(term)
    return (Filter((only(FORM, signature), *terms)),)


def row_attribute(table: str) -> str:
    """The attribute that has the number of a table's row in a join result."""
    return f"#{table}"
