# mypy: allow-untyped-defs, allow-untyped-calls
"""All events of one part as the bytes of their messages, for two tables with one axis each (`bulk_message_writer.py`).

Tables are 0 and 1, and group t has base table t, filtered by the other; an event at table t exposes or withdraws rows
of the other table in that table's group, then announces its own row in group t (§3 of the select-join paper; proof in
`semijoin_group_deltas.py`). An event is a slot, which has the row, and whether the row is inserted or deleted.

Invariant: runs change, and `progress` advances, only when all messages of an event are written.
Cost: that of `reach`, `nearest` and the gaps in `clustered_semijoin_index_kernels.py`, once each, plus the bytes.
"""

from typing import NamedTuple

import numpy as np

from pathcast.kernels import Bools, Int32s, Int64s, Matrix, UInt8s, Writable, kernel, part, rare
from pathcast.messages.value_wire_format_kernels import (
    SAME_COLUMN,
    VALUE,
    put_bytes,
    put_column,
    put_number,
    put_signed,
    put_value,
)

from ..index.clustered_box_forest_kernels import GREATEST, LEAST
from ..index.clustered_semijoin_index_kernels import list_nearest, list_reached, mark_gaps
from ..index.stabbing_partition_kernels import Clusters
from ..index.window_query_kernels import from_on

ARRIVE, DEPART, SKYLINE, EXPOSE, WITHDRAW, FORM, EXPOSED, WITHDRAWN, ROW = range(9)
WORDS = 9
BEGIN, AXIS, AXIS_END, JOIN, END = range(5)


class RowSlots(NamedTuple):
    """Rows, each in a slot: key, number, table, and where its bytes lie in `data` (BEGIN, AXIS, …)."""

    keys: Int64s
    numbers: Int64s
    tables: Int64s
    places: Matrix[Int64s]
    data: UInt8s


class Runs(NamedTuple):
    """For each table its rows with the join value: keys in order, the slot of each, and how many there are."""

    keys: Writable[Matrix[Int64s]]
    slots: Writable[Matrix[Int32s]]
    sizes: Writable[Int64s]


class Wording(NamedTuple):
    """How messages are written.

    Word `group * WORDS + k` is `words[ends[w] : ends[w + 1]]`, constant bytes of messages. `kinds` has for each table
    the tag of its axis' values, and what is taken off them (`value_wire_format_kernels.py`).
    """

    words: UInt8s
    ends: Int64s
    kinds: Matrix[Int64s]


class EventScratch(NamedTuple):
    """Room for the rows that an event reaches (`list_reached`), and for a skyline: keys, and free gaps between."""

    following: Writable[Int32s]
    found: Writable[Int32s]
    near: Writable[Int64s]
    free: Writable[Bools]


class MessageBuffer(NamedTuple):
    """Messages, one after the other: the length of each, and the event that sends it.

    `progress` is the next event, how many messages there are, and how many bytes.
    """

    data: Writable[UInt8s]
    lengths: Writable[Int32s]
    senders: Writable[Int32s]
    progress: Writable[Int64s]


class Change(NamedTuple):
    """A row that comes or goes."""

    slot: np.int64
    comes: bool
    key: np.int64


class Neighbours(NamedTuple):
    """The keys next to that of a change in its run, if there are any."""

    has_below: bool
    low: np.int64
    has_above: bool
    high: np.int64


class Joining(NamedTuple):
    """The other table's run."""

    keys: Int64s
    slots: Int32s


class GroupWording(NamedTuple):
    """The first word of a group, and how values of the axis that its messages have are written."""

    first: np.int64
    tag: np.int64
    less: np.int64


@part
def _put_word(out, at, wording, word):
    return put_bytes(out, at, wording.words, wording.ends[word], wording.ends[word + 1])


@part
def _room(buffer, at, count, needed):
    """Whether there is room for one more message of this many bytes, not counting its constant parts."""
    return count < len(buffer.lengths) and at + needed <= len(buffer.data)


@rare
def _put_skyline(out, at, near, free, count, tag, less):
    """Runs of keys with free gaps between, a point per run: the last key and the first (`descriptive_skylines.py`)."""
    points = 1
    for gap in range(count - 1):
        points += not free[gap]
    at = put_number(out, at, np.uint64(points))
    if points == count:
        at = put_column(out, at, near, count, tag, less)
        out[at] = np.uint8(SAME_COLUMN)
        return at + 1
    # Last keys and first keys of the runs, side by side after the keys themselves.
    lasts, firsts = near[count : count + points], near[count + points : count + 2 * points]
    point = 0
    firsts[0] = near[0]
    for place in range(1, count):
        if not free[place - 1]:
            lasts[point] = near[place - 1]
            point += 1
            firsts[point] = near[place]
    lasts[point] = near[count - 1]
    at = put_column(out, at, lasts, points, tag, less)
    return put_column(out, at, firsts, points, tag, less)


@rare
def _sort_slots(found, count, numbers):
    """Slots in the order of their rows' numbers."""
    step = count // 2
    while step > 0:
        for place in range(step, count):
            slot = found[place]
            at = place
            while at >= step and numbers[found[at - step]] > numbers[slot]:
                found[at] = found[at - step]
                at -= step
            found[at] = slot
        step //= 2


@rare
def _write_exposures(clusters, joining, change, neighbours, group, slots, wording, scratch, buffer, end):
    """Write what a new row exposes, or a deleted row withdraws, after `end`; return counts of messages and bytes.

    -1 messages: no room. The row's key and its neighbours are keys of the filtering axis.
    """
    count, at = end
    slot, comes, key = change
    has_below, low, has_above, high = neighbours
    first, tag, less = group
    numbers, places, found, out = slots.numbers, slots.places, scratch.found, buffer.data
    least, greatest = low + 1 if has_below else LEAST, high - 1 if has_above else GREATEST
    most = len(joining.keys) if comes else 1
    reached = list_reached(clusters, least, key, greatest, joining.keys, most, scratch.following, found)
    if comes:
        for one in range(reached):
            found[one] = joining.slots[found[one]]
        _sort_slots(found, reached, numbers)
    for one in range(reached):
        told = np.int64(found[one]) if comes else slot
        begin, stop = places[told, BEGIN if comes else JOIN], places[told, JOIN if comes else END]
        if not _room(buffer, at, count, stop - begin + len(wording.words) + 4 * VALUE):
            return -1, at
        start = at
        at = _put_word(out, at, wording, first + (EXPOSE if comes else WITHDRAW))
        at = put_value(out, at, True, key, tag, less)
        at = _put_word(out, at, wording, first + FORM)
        at = put_value(out, at, has_above, high, tag, less)
        at = _put_word(out, at, wording, first + (EXPOSED if comes else WITHDRAWN))
        at = put_value(out, at, has_below, low, tag, less)
        if comes:
            at = _put_word(out, at, wording, first + ROW)
            at = put_signed(out, at, numbers[told])
        at = put_bytes(out, at, slots.data, begin, stop)
        buffer.lengths[count] = np.int32(at - start)
        count += 1
    return count, at


@rare
def _write_row(clusters, joining, change, group, slots, wording, scratch, buffer, end):
    """Write the row itself, with the skyline of affected semijoins; return counts as `_write_exposures` does."""
    count, at = end
    slot, comes, key = change
    first, tag, less = group
    near, free, out = scratch.near, scratch.free, buffer.data
    nearby = list_nearest(clusters.anchors, joining.keys, near)
    if nearby == 0:
        return count, at
    mark_gaps(clusters, key, near[:nearby], free)
    begin, stop = slots.places[slot, BEGIN if comes else AXIS], slots.places[slot, JOIN if comes else AXIS_END]
    if not _room(buffer, at, count, stop - begin + len(wording.words) + 2 * (nearby + 2) * VALUE):
        return -1, at
    start = at
    at = _put_word(out, at, wording, first + (ARRIVE if comes else DEPART))
    at = put_signed(out, at, slots.numbers[slot])
    at = _put_word(out, at, wording, first + SKYLINE)
    at = _put_skyline(out, at, near, free, nearby, tag, less)
    at = put_bytes(out, at, slots.data, begin, stop)
    buffer.lengths[count] = np.int32(at - start)
    return count + 1, at


@rare
def _change_run(runs, table, place, change):
    """Insert a row into its table's run at a place, or remove it."""
    keys, slots, size = runs.keys[table], runs.slots[table], runs.sizes[table]
    if change.comes:
        for one in range(size, place, -1):
            keys[one], slots[one] = keys[one - 1], slots[one - 1]
        keys[place], slots[place] = change.key, np.int32(change.slot)
        runs.sizes[table] = size + 1
        return
    for one in range(place, size - 1):
        keys[one], slots[one] = keys[one + 1], slots[one + 1]
    runs.sizes[table] = size - 1


@kernel(late=True)
def write_messages(
    clusters0: Clusters,
    clusters1: Clusters,
    events: Matrix[Int64s],
    slots: RowSlots,
    runs: Runs,
    wording: Wording,
    scratch: EventScratch,
    buffer: MessageBuffer,
) -> bool:
    """Write the messages of events from `progress` on; return whether there was room for all."""
    progress, kinds = buffer.progress, wording.kinds
    while progress[0] < len(events):
        event, end = progress[0], (progress[1], progress[2])
        slot = events[event, 0]
        change = Change(slot, events[event, 1] != 0, slots.keys[slot])
        key, comes = change.key, change.comes
        table = slots.tables[slot]
        other = 1 - table
        keys, size = runs.keys[table], runs.sizes[table]
        joining = Joining(runs.keys[other][: runs.sizes[other]], runs.slots[other])
        place = from_on(keys, size, key)
        while not comes and runs.slots[table, place] != slot:
            place += 1
        after = place if comes else place + 1
        has_below, has_above = place > 0, after < size
        low, high = keys[place - 1] if has_below else LEAST, keys[after] if has_above else GREATEST
        if len(joining.keys) and not (has_below and low == key) and not (has_above and high == key):
            neighbours = Neighbours(has_below, low, has_above, high)
            group = GroupWording(other * WORDS, kinds[table, 0], kinds[table, 1])
            clusters = clusters1 if table == 0 else clusters0
            end = _write_exposures(clusters, joining, change, neighbours, group, slots, wording, scratch, buffer, end)
            if end[0] < 0:
                return False
        group = GroupWording(table * WORDS, kinds[other, 0], kinds[other, 1])
        clusters = clusters0 if table == 0 else clusters1
        end = _write_row(clusters, joining, change, group, slots, wording, scratch, buffer, end)
        if end[0] < 0:
            return False
        _change_run(runs, table, place, change)
        for message in range(progress[1], end[0]):
            buffer.senders[message] = np.int32(event)
        progress[0], progress[1], progress[2] = event + 1, end[0], end[1]
    return True
