# mypy: allow-untyped-defs, allow-untyped-calls
"""Work that is postponed until paths have matched: selections on the elements of a path.

YFilter (Diao et al., TODS 2003), "selection postponed": when a path with selections has matched at an element, the
steps of the path are bound to the elements on the stack, from the last one backwards, and the selections are tested on
them. With `//` a step may have several places; all are followed at once, so that the cost is only steps times depth.

Left out: caching of selections among queries, and their order by selectivity; they are tested in the order of the text.
"""

from typing import NamedTuple

import numpy as np

from pathcast.kernels import Int32s, Matrix, Writable, part

from ..streaming.value_tests_kernels import all_selected

# Columns of a step.
T_DEEP, T_SYMBOL, T_SELECT, T_SELECT_END, T_LATE, T_COLUMNS = range(6)


class Queries(NamedTuple):
    """The queries with selections: the steps of query `q` begin at `begins[q]`; `entries` has its entry."""

    begins: Int32s
    entries: Int32s
    steps: Matrix[Int32s]


class StepPlaces(NamedTuple):
    """Two rows each, used alternately: the places (depths, descending) of a step, and when they are certain."""

    places: Writable[Matrix[Int32s]]
    times: Writable[Matrix[Int32s]]


@part
def last_places(step, lowest, depth, stack_symbols, steps, room):
    """Write the places of a last step, from `lowest` to `depth`; return how many."""
    places, times = room
    n = 0
    for place in range(depth, lowest - 1, -1):
        if steps[step, T_SYMBOL] == 0 or stack_symbols[place] == steps[step, T_SYMBOL]:
            places[0, n], times[0, n] = place, 0
            n += 1
    return n


@part
def selected_places(step, side, n, first, stack, steps, room, tested):
    """Keep the places of a step at which its selections hold; return how many."""
    places, times = room
    kept = 0
    for k in range(n):
        element = np.int64(stack[places[side, k]])
        if all_selected(element, steps[step, T_SELECT], steps[step, T_SELECT_END], tested):
            time = times[side, k]
            if steps[step, T_LATE]:
                time = max(time, np.int32(tested.ends[element] - first))
            places[side, kept], times[side, kept] = places[side, k], time
            kept += 1
    return kept


@part
def places_above(step, side, n, stack_symbols, steps, room):
    """Write the places of the previous step, given those of this one; return how many."""
    places, times = room
    above = steps[step - 1, T_SYMBOL]
    other, kept = 1 - side, 0
    if steps[step, T_DEEP]:
        best, k = times[side, 0], 0
        for place in range(places[side, 0] - 1, 0, -1):
            while k < n and places[side, k] > place:
                best = min(best, times[side, k])
                k += 1
            if above == 0 or stack_symbols[place] == above:
                places[other, kept], times[other, kept] = place, best
                kept += 1
        return kept
    for k in range(n):
        place = places[side, k] - 1
        if place > 0 and (above == 0 or stack_symbols[place] == above):
            places[other, kept], times[other, kept] = place, times[side, k]
            kept += 1
    return kept


@part
def select_on_stack(query, lowest, depth, first, stack, stack_symbols, queries, room, tested):
    """The number of start tags after which the query is certain to hold, with its last step at a depth from `lowest` to
    `depth`, the top of the stack; -1: it fails.
    """
    steps = queries.steps
    begin, step = queries.begins[query], queries.begins[query + 1] - 1
    side, n = 0, last_places(step, lowest, depth, stack_symbols, steps, room)
    while True:
        n = selected_places(step, side, n, first, stack, steps, room, tested)
        if n == 0:
            return np.int32(-1)
        if step == begin:
            break
        n = places_above(step, side, n, stack_symbols, steps, room)
        side = 1 - side
        step -= 1
    places, times = room
    time = np.int32(-1)
    for k in range(n):
        if (steps[begin, T_DEEP] or places[side, k] == 1) and (time < 0 or times[side, k] < time):
            time = times[side, k]
    return time
