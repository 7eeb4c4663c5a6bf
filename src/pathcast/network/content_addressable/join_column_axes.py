"""The space of a CAN for standing joins: an axis per column that subscriptions have ranges on.

The semijoins of one subscription have the same ranges in different terms
(`joins/schemes/reserved_message_attributes.py`): on a column of the base table as a range of that column, on a column
of the filtering table as points of the skyline, or as the range around the tuple that exposes. With readings for each
form and kind of message, all filters of a subscription share one point, as in §6 of the select-join paper.

Not done: forms with several filtering axes, whose exposures list points; messages to one subscription (`#to`), which a
server sends directly to its node.
"""

from collections.abc import Mapping

from pathcast.errors import MessageError
from pathcast.joins.schemes import (
    ABOVE,
    ARRIVE,
    AT,
    BELOW,
    DEPART,
    ENTER,
    EXPOSE,
    FORM,
    KIND,
    LEAVE,
    PATCH,
    SKYLINE,
    WITHDRAW,
    Form,
)

from .can_coordinate_space import Axis, Reading, Space

_TUPLES = (ARRIVE, DEPART, PATCH, ENTER, LEAVE)


def join_space(forms: Mapping[int, Form], bounds: Mapping[tuple[str, str], tuple[float, float]]) -> Space:
    """A space for subscriptions of some forms; `bounds` has the bounds of the ranges per table and column."""
    if not bounds:
        raise MessageError(
            "bounds must not be empty; give the bounds of at least one column, such as {('R', 'a'): (0, 100)}"
        )
    axes = []
    for (table, column), (low, high) in bounds.items():
        readings = [reading for number, form in forms.items() for reading in _readings(number, form, table, column)]
        axes.append(Axis(f"{table}.{column}", low, high, tuple(readings), required=True))
    return Space.of(*axes)


def result_space(signature: int, bounds: Mapping[str, tuple[float, float]]) -> Space:
    """A space for subscriptions to join results: an axis per attribute of the result."""
    return Space.of(
        *(
            Axis(name, low, high, (Reading(name, given={FORM: signature}),), required=True)
            for name, (low, high) in bounds.items()
        )
    )


def _readings(number: int, form: Form, table: str, column: str) -> list[Reading]:
    found = []
    if form.base == table:
        kinds = (*_TUPLES, EXPOSE) if form.edge else _TUPLES
        found += [Reading(column, given={FORM: number, KIND: kind}) for kind in kinds]
    if form.filtering == table and column in form.axes:
        if len(form.axes) > 1:
            raise MessageError(
                f"{form} has several filtering columns ({', '.join(form.axes)}), but a space supports one "
                "filtering column per semijoin; create the join server with axes=1"
            )
        found += [Reading(SKYLINE, axis=column, given={FORM: number, KIND: kind}) for kind in _TUPLES]
        gap = (BELOW, ABOVE)
        found += [Reading(AT, gap=gap, given={FORM: number, KIND: kind}) for kind in (EXPOSE, WITHDRAW)]
    return found
