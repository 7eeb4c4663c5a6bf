# mypy: allow-untyped-defs, allow-untyped-calls
"""All events of one part as the bytes of their messages, for two tables with one axis each (`event_messages.py`).

Tables are 0 and 1, and group t has base table t, filtered by the other; an event at table t exposes or withdraws rows
of the other one in that one's group, then tells of its row in group t (§3 of the select-join paper;
`semijoin_groups.py` proves it). A table's rows of the join value are a run: keys in order, and the slot of each.

    slots     a row: key, number, table, and where its bytes lie: begin, its axis' (from, to), its join columns', end
    events    slot, and whether it comes
    words     the constant bytes of messages: group · WORDS + which of them
    kinds     table → tag and difference of its axis' values (`wire_format_kernels.py`)
    progress  the next event, how many messages there are, how many bytes

Invariant: runs are changed, and `progress` goes on, only when all messages of an event are written.
Cost: as `stabbing_index_kernels.py` says for `reach`, `nearest` and the gaps between, once each, and the bytes.
"""

import numpy as np

from pathcast.kernels import kernel, part, rare
from pathcast.messages.wire_format_kernels import (
    SAME_COLUMN,
    VALUE,
    put_bytes,
    put_column,
    put_number,
    put_signed,
    put_value,
)

from ..index.box_forest_kernels import GREATEST, LEAST
from ..index.stabbing_index_kernels import list_nearest, list_reached, mark_gaps
from ..index.window_query_kernels import from_on

ARRIVE, DEPART, SKYLINE, EXPOSE, WITHDRAW, FORM, EXPOSED, WITHDRAWN, ROW = range(9)
WORDS = 9
BEGIN, AXIS, AXIS_END, JOIN, END = range(5)


@part
def _put_word(out, at, words, ends, word):
    return put_bytes(out, at, words, ends[word], ends[word + 1])


@part
def _room(out, at, lengths, count, needed):
    """Whether there is room for one more message of so many bytes, its constant parts aside."""
    return count < len(lengths) and at + needed <= len(out)


@rare
def _put_skyline(out, at, near, free, count, tag, less):
    """Runs of keys with free gaps between, a point each: the last key and the first (`descriptive_skylines.py`)."""
    points = 1
    for gap in range(count - 1):
        points += not free[gap]
    at = put_number(out, at, np.uint64(points))
    if points == count:
        at = put_column(out, at, near, count, tag, less)
        out[at] = np.uint8(SAME_COLUMN)
        return at + 1
    # Last keys and first keys of the runs, side by side behind the keys themselves.
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
def _tell_joining(
    bounds, links, boxes, stack, anchors, roots, joining, members, comes, slot, low, key, high, has_below, has_above,
    tag, less, numbers, places, fragments, words, ends, first, following, found, out, at, lengths, count,
):  # fmt: skip
    """What a row that comes exposes, or one that goes withdraws; how many messages there are then, and bytes.

    The row and its neighbours, `low` and `high`, are keys of the filtering axis. -1 messages: no room.
    """
    least, greatest = low + 1 if has_below else LEAST, high - 1 if has_above else GREATEST
    most = len(joining) if comes else 1
    reached = list_reached(
        bounds, links, boxes, stack, anchors, roots, least, key, greatest, joining, most, following, found
    )
    if comes:
        for one in range(reached):
            found[one] = members[found[one]]
        _sort_slots(found, reached, numbers)
    for one in range(reached):
        told = np.int64(found[one]) if comes else slot
        begin, end = places[told, BEGIN if comes else JOIN], places[told, JOIN if comes else END]
        if not _room(out, at, lengths, count, end - begin + len(words) + 4 * VALUE):
            return -1, at
        start = at
        at = _put_word(out, at, words, ends, first + (EXPOSE if comes else WITHDRAW))
        at = put_value(out, at, True, key, tag, less)
        at = _put_word(out, at, words, ends, first + FORM)
        at = put_value(out, at, has_above, high, tag, less)
        at = _put_word(out, at, words, ends, first + (EXPOSED if comes else WITHDRAWN))
        at = put_value(out, at, has_below, low, tag, less)
        if comes:
            at = _put_word(out, at, words, ends, first + ROW)
            at = put_signed(out, at, numbers[told])
        at = put_bytes(out, at, fragments, begin, end)
        lengths[count] = np.int32(at - start)
        count += 1
    return count, at


@rare
def _tell_row(
    bounds, links, boxes, stack, anchors, roots, joining, comes, slot, key,
    tag, less, numbers, places, fragments, words, ends, first, near, free, out, at, lengths, count,
):  # fmt: skip
    """The row itself, with a skyline of those whom it concerns; messages and bytes as for `_tell_joining`."""
    nearby = list_nearest(anchors, joining, near)
    if nearby == 0:
        return count, at
    mark_gaps(bounds, links, boxes, stack, anchors, roots, key, near[:nearby], free)
    begin, end = places[slot, BEGIN if comes else AXIS], places[slot, JOIN if comes else AXIS_END]
    if not _room(out, at, lengths, count, end - begin + len(words) + 2 * (nearby + 2) * VALUE):
        return -1, at
    start = at
    at = _put_word(out, at, words, ends, first + (ARRIVE if comes else DEPART))
    at = put_signed(out, at, numbers[slot])
    at = _put_word(out, at, words, ends, first + SKYLINE)
    at = _put_skyline(out, at, near, free, nearby, tag, less)
    at = put_bytes(out, at, fragments, begin, end)
    lengths[count] = np.int32(at - start)
    return count + 1, at


@rare
def _change_run(keys, members, size, place, comes, key, slot):
    """Put a row into a run, or take it out; how many there are then."""
    if comes:
        for one in range(size, place, -1):
            keys[one], members[one] = keys[one - 1], members[one - 1]
        keys[place], members[place] = key, np.int32(slot)
        return size + 1
    for one in range(place, size - 1):
        keys[one], members[one] = keys[one + 1], members[one + 1]
    return size - 1


@kernel(
    "boolean(ro_i8[:, ::1], ro_i4[:, ::1], ro_i8[:, ::1], ro_i8[::1], ro_i4[::1],"
    " ro_i8[:, ::1], ro_i4[:, ::1], ro_i8[:, ::1], ro_i8[::1], ro_i4[::1], i8[::1],"
    " ro_i8[:, ::1], ro_i8[::1], ro_i8[::1], ro_i8[:, ::1], ro_i8[::1], ro_u1[::1],"
    " i8[:, ::1], i4[:, ::1], i8[::1], ro_u1[::1], ro_i8[::1], ro_i8[:, ::1],"
    " i4[::1], i4[::1], i8[::1], b1[::1], u1[::1], i4[::1], i4[::1], i8[::1])",
    late=True,
)
def tell(
    bounds0, links0, boxes0, anchors0, roots0, bounds1, links1, boxes1, anchors1, roots1, stack,
    events, slot_keys, numbers, places, tables, fragments, keys, members, sizes, words, ends, kinds,
    following, found, near, free, out, lengths, senders, progress,
):  # fmt: skip
    """Write the messages of events from `progress` on; whether there was room for all.

    For each message its length, and the event that sends it.
    """
    while progress[0] < len(events):
        event, count, at = progress[0], progress[1], progress[2]
        slot, comes = events[event, 0], events[event, 1] != 0
        table = tables[slot]
        other = 1 - table
        if table == 0:
            bounds, links, boxes, anchors, roots = bounds1, links1, boxes1, anchors1, roots1
        else:
            bounds, links, boxes, anchors, roots = bounds0, links0, boxes0, anchors0, roots0
        key, mine, size, joining = slot_keys[slot], keys[table], sizes[table], keys[other][: sizes[other]]
        place = from_on(mine, size, key)
        while not comes and members[table, place] != slot:
            place += 1
        after = place if comes else place + 1
        has_below, has_above = place > 0, after < size
        low, high = mine[place - 1] if has_below else LEAST, mine[after] if has_above else GREATEST
        if len(joining) and not (has_below and low == key) and not (has_above and high == key):
            count, at = _tell_joining(
                bounds, links, boxes, stack, anchors, roots, joining, members[other], comes, slot, low, key, high,
                has_below, has_above, kinds[table, 0], kinds[table, 1], numbers, places, fragments, words, ends,
                other * WORDS, following, found, out, at, lengths, count,
            )  # fmt: skip
            if count < 0:
                return False
        if table == 0:
            bounds, links, boxes, anchors, roots = bounds0, links0, boxes0, anchors0, roots0
        else:
            bounds, links, boxes, anchors, roots = bounds1, links1, boxes1, anchors1, roots1
        count, at = _tell_row(
            bounds, links, boxes, stack, anchors, roots, joining, comes, slot, key, kinds[other, 0], kinds[other, 1],
            numbers, places, fragments, words, ends, table * WORDS, near, free, out, at, lengths, count,
        )  # fmt: skip
        if count < 0:
            return False
        sizes[table] = _change_run(mine, members[table], size, place, comes, key, slot)
        for message in range(progress[1], count):
            senders[message] = np.int32(event)
        progress[0], progress[1], progress[2] = event + 1, count, at
    return True
