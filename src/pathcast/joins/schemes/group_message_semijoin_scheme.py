"""`ref-sj-*` and `rel-sel`: an event as messages to all subscriptions of a form (§3.2 of the select-join paper).

A message carries a tuple and as much of the server's state as filters need to decide whom it concerns: a skyline for an
inserted or deleted base tuple, the neighbours of a filtering tuple for the tuples that it exposes or withdraws
(`reserved_message_attributes.py` has the forms). Variants differ only in the skyline. A selection needs no state: its
messages are the tuples.

A withdrawal carries no base tuples: a client that it concerns drops all tuples of the join value.

Invariant: every message concerns some subscription, except under `tup`, `clu` and `clu+` (and `rel-sel`), which do not
check who is affected, as in the paper.
Cost: one message per group for the tuple itself, one per exposed base tuple, one per group for a withdrawal.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pathcast.messages import Message, Points, Scalar, Value

from ..index.semijoin_index_protocol import Ends, Ids
from ..query.join_graph_schema import Row
from ..query.order_preserving_key_encoding import Kind
from ..query.select_join_query import Column, Query
from ..server.row_multisets import Bag
from ..skylines.descriptive_skylines import Corners, describe
from .reserved_message_attributes import (
    ABOVE,
    ARRIVE,
    AT,
    BELOW,
    DEPART,
    ENTER,
    EXPOSE,
    FORM,
    HELD,
    KIND,
    LEAVE,
    OTHER,
    PATCH,
    ROW,
    SKYLINE,
    WITHDRAW,
)
from .row_listing_messages import changed_columns
from .semijoin_group_deltas import FilterEvent, Group, IndexMaker
from .semijoin_scheme import Choice, SemijoinScheme, Version
from .semijoin_templates import Form

_NO_PAYLOAD: frozenset[str] = frozenset()


class ReformulatedSemijoins(SemijoinScheme):
    """Messages per group and event."""

    def __init__(self, bags: Mapping[str, Bag], index: IndexMaker, flavour: str, *, axes: int | None = None) -> None:
        super().__init__(bags, index, axes=axes)
        self.flavour = flavour

    def begin(self) -> None:
        self._messages: list[Message] = []

    def finish(self) -> list[Message]:
        return self._messages

    # Base events.

    def arrive(self, group: Group, new: Version) -> None:
        skyline = self._skyline(group, new.row)
        if skyline is not None:
            self._send(group, ARRIVE, new, group.base.columns, skyline)

    def depart(self, group: Group, old: Version) -> None:
        skyline = self._skyline(group, old.row)
        if skyline is not None:
            self._send(group, DEPART, old, group.ranged, skyline)

    def replace(self, group: Group, old: Version, new: Version) -> None:
        columns, ranged = group.base.columns, group.ranged
        changed = changed_columns(group.base, old.row, new.row)
        patched = [name for name in columns if name in changed or name in ranged]
        if not set(changed) & set(ranged):
            # No range tests the changed columns: clients that have the row keep it.
            self._version(group, PATCH, new, patched, old)
            return
        stay, enter, leave = group.compared(old.row, new.row)
        if stay:
            self._version(group, PATCH, new, patched, old)
        if enter:
            self._version(group, ENTER, new, columns, old)
        if leave:
            self._version(group, LEAVE, old, ranged, new)

    def _version(self, group: Group, kind: str, version: Version, columns: Sequence[str], other: Version) -> None:
        """Send one version of a row together with the point of the other."""
        skyline = self._skyline(group, version.row)
        if skyline is not None:
            self._send(group, kind, version, columns, {**skyline, **_other(group, other)})

    def _skyline(self, group: Group, row: Row) -> dict[str, Value] | None:
        """The attribute that describes the affected semijoins; empty when all selected ones are, None when none is."""
        run, placed = group.joining(row), group.placed(row)
        if run is None or not group.form.axes:
            return {} if placed and (run is None or len(run)) else None
        corners = describe(self.flavour, placed, run, len(group.form.axes))
        if not corners or group.filter_view is None:
            return None
        points = _values(group.filter_view.kinds, corners)
        return {SKYLINE: Points(group.form.axes, points, pairs=True)}

    # Filter events.

    def expose(self, group: Group, event: FilterEvent) -> None:
        numbers = group.exposed_rows(event)
        if numbers:
            layout, gap, rows = _layout(group, group.base.columns), _gap(group, event), group.base.rows
            for number in numbers:
                self._tell(group, EXPOSE, Version(number, rows[number]), layout, gap)

    def withdraw(self, group: Group, event: FilterEvent) -> None:
        if group.exposed_rows(event, most=1):
            join = dict(zip(group.form.join, event.join_value, strict=True))
            attributes: dict[str, Value] = {FORM: group.number, KIND: WITHDRAW, **join, **_gap(group, event)}
            self._messages.append(Message.trusted(attributes, _NO_PAYLOAD))

    def _send(
        self, group: Group, kind: str, version: Version, columns: Sequence[str], state: Mapping[str, Value]
    ) -> None:
        self._tell(group, kind, version, _layout(group, columns), state)

    def _tell(self, group: Group, kind: str, version: Version, layout: "_Layout", state: Mapping[str, Value]) -> None:
        """Send some columns of a row, which was checked when it came."""
        attributes: dict[str, Value] = {FORM: group.number, KIND: kind, ROW: version.number}
        row = version.row
        for name, place in layout.columns:
            attributes[name] = row[place]
        attributes.update(state)
        self._messages.append(Message.trusted(attributes, layout.payload))


class RelaxedSelections(ReformulatedSemijoins):
    """`rel-sel`: every table's tuples to the subscriptions that select them (§2.3)."""

    relaxed = True

    def __init__(self, bags: Mapping[str, Bag], index: IndexMaker) -> None:
        super().__init__(bags, index, "tup")

    def add(self, id: int, query: Query, choice: Choice) -> dict[int, Form]:
        """Add a subscription, one selection per table."""
        return super().add(id, query, dict.fromkeys(choice))

    def add_many(self, ids: Ids, query: Query, keys: Mapping[Column, Ends], choice: Choice) -> dict[int, Form]:
        """Add a batch of subscriptions, one selection per table."""
        return super().add_many(ids, query, keys, dict.fromkeys(choice))


class _Layout(NamedTuple):
    """Columns of a message with their places in a row, and which of them are payload, that is, read by no filter."""

    columns: list[tuple[str, int]]
    payload: frozenset[str]


def _layout(group: Group, columns: Sequence[str]) -> _Layout:
    name = tuple(columns)
    known: _Layout | None = group.derived.get(name)
    if known is None:
        light = {*group.ranged, *group.base.schema.join_columns(group.form.base)}
        placed = list(zip(columns, group.base.places(columns), strict=True))
        known = group.derived[name] = _Layout(placed, frozenset(name for name in columns if name not in light))
    return known


def _values(kinds: Sequence[Kind], corners: Sequence[Corners]) -> tuple[tuple[Scalar, ...], ...]:
    """Points of a skyline, with values instead of keys."""
    if len(kinds) == 1:
        value = kinds[0].value
        return tuple([(one := value(x), one if x == y else value(y)) for x, y in corners])
    pairs = [kind for kind in kinds for _ in range(2)]
    return tuple(tuple(kind.value(key) for kind, key in zip(pairs, corner, strict=True)) for corner in corners)


def _other(group: Group, version: Version) -> dict[str, Value]:
    """The other version of a row, as a point over all base attributes with a range in some subscription."""
    ranged = group.ranged
    places = group.base.places(ranged)
    return {OTHER: Points(tuple(ranged), (tuple(version.row[place] for place in places),))}


def _gap(group: Group, event: FilterEvent) -> dict[str, Value]:
    """A filtering tuple and its neighbours, as values."""
    axes = group.form.axes
    if not axes or group.filter_view is None:
        return {}
    kinds = group.filter_view.kinds
    if len(axes) == 1:
        keys = {AT: event.at, BELOW: event.below, ABOVE: event.above}
        return {name: None if key is None else kinds[0].value(key) for name, key in keys.items()}

    def point(keys: Sequence[Any]) -> tuple[Scalar, ...]:
        return tuple(kind.value(key) for kind, key in zip(kinds, keys, strict=True))

    return {AT: Points(axes, (point(event.at),)), HELD: Points(axes, tuple(point(keys) for keys in event.held))}
