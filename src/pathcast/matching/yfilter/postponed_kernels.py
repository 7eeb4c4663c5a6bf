# mypy: allow-untyped-defs, allow-untyped-calls
"""What is postponed until paths have matched: selections on the elements of a path, and the join of nested paths.

YFilter (Diao et al., TODS 2003), "selection postponed": when a path with selections has matched at an element, the
steps of the path are bound to the elements on the stack, from the last one backwards, and the selections are tried on
them. With `//` a step may have several places; all are followed at once, so that the cost is steps times depth and no
more.

Nested paths: the elements at which the paths of a query ended are joined bottom-up. Of each node of the query
the elements are kept below which all its branches were found; the query holds when its first node has one.

Left out: caching of selections among queries, and their order by selectivity; they stand in the order of the text.
"""

import numpy as np

from ...kernels import part, rare
from ..selections_kernels import selected

# Columns of a step, and further ones of a node of a join.
T_DEEP, T_SYMBOL, T_SELECT, T_SELECT_END, T_LATE, N_PARENT, N_PATH = range(7)
FAILS, HOLDS, NO_ROOM = 0, 1, -1


@part
def select_on_stack(
    query, lowest, depth, first, ends, stack, stack_symbols, query_begin, steps, selects, places, times,
    attribute_begin, attribute_names, attribute_start, attribute_length, text_begin, text_end, text_parent, text_start,
    text_length, data, arena, translation, rows, limits, literals, parts, joined,
):  # fmt: skip
    """After how many start tags the query is certain to hold, with its last step at a depth from `lowest` to `depth`,
    the top of the stack; -1: it fails.

    `places` and `times` have two rows each: the places (depths, falling) of a step, and when they are certain.
    """
    begin, step = query_begin[query], query_begin[query + 1] - 1
    side, n = 0, 0
    for place in range(depth, lowest - 1, -1):
        if steps[step, T_SYMBOL] == 0 or stack_symbols[place] == steps[step, T_SYMBOL]:
            places[0, n] = place
            times[0, n] = 0
            n += 1
    while True:
        kept = 0
        for k in range(n):
            place = places[side, k]
            element = np.int64(stack[place])
            held = True
            for s in range(steps[step, T_SELECT], steps[step, T_SELECT_END]):
                if not selected(
                    element, selects[s], ends, attribute_begin, attribute_names, attribute_start, attribute_length,
                    text_begin, text_end, text_parent, text_start, text_length, data, arena, translation,
                    rows, limits, literals, parts, joined,
                ):  # fmt: skip
                    held = False
                    break
            if held:
                time = times[side, k]
                if steps[step, T_LATE]:
                    time = max(time, np.int32(ends[element] - first))
                places[side, kept] = place
                times[side, kept] = time
                kept += 1
        n = kept
        if n == 0:
            return np.int32(-1)
        if step == begin:
            break
        above = steps[step - 1, T_SYMBOL]
        kept = 0
        if steps[step, T_DEEP]:
            best, k = times[side, 0], 0
            for place in range(places[side, 0] - 1, 0, -1):
                while k < n and places[side, k] > place:
                    best = min(best, times[side, k])
                    k += 1
                if above == 0 or stack_symbols[place] == above:
                    places[1 - side, kept] = place
                    times[1 - side, kept] = best
                    kept += 1
        else:
            for k in range(n):
                place = places[side, k] - 1
                if place > 0 and (above == 0 or stack_symbols[place] == above):
                    places[1 - side, kept] = place
                    times[1 - side, kept] = times[side, k]
                    kept += 1
        side = 1 - side
        n = kept
        if n == 0:
            return np.int32(-1)
        step -= 1
    time = np.int32(-1)
    for k in range(n):
        if (steps[begin, T_DEEP] or places[side, k] == 1) and (time < 0 or times[side, k] < time):
            time = times[side, k]
    return time


@rare
def join(
    number, first, count, names, parents, ends, join_begin, nodes, selects,
    path_head, log_element, log_next, serial, node_lists, marks, visited, pool,
    attribute_begin, attribute_names, attribute_start, attribute_length, text_begin, text_end, text_parent, text_start,
    text_length, data, arena, translation, rows, limits, literals, parts, joined,
):  # fmt: skip
    """Whether the query with nested paths holds, given the elements at which its paths ended.

    Nodes stand after their parents, so that backwards each comes after its branches. A branch leaves of its parent's
    elements those that it was found below: they are marked, and kept where a way up from the branch meets the mark.
    """
    begin, end = join_begin[number], join_begin[number + 1]
    used = 0
    for node in range(begin, end):
        node_lists[2, node - begin] = 0
    for node in range(end - 1, begin - 1, -1):
        at = node - begin
        if used + 2 * count > len(pool):
            return NO_ROOM
        path = nodes[node, N_PATH]
        if path >= 0:
            node_lists[0, at] = used
            record = path_head[path]
            while record >= 0:
                element = log_element[record]
                held = True
                for s in range(nodes[node, T_SELECT], nodes[node, T_SELECT_END]):
                    if not selected(
                        np.int64(element), selects[s], ends, attribute_begin, attribute_names, attribute_start,
                        attribute_length, text_begin, text_end, text_parent, text_start, text_length, data, arena,
                        translation, rows, limits, literals, parts, joined,
                    ):  # fmt: skip
                        held = False
                        break
                if held:
                    pool[used] = element
                    used += 1
                record = log_next[record]
            node_lists[1, at] = used
        if node_lists[0, at] == node_lists[1, at]:
            return FAILS
        above = nodes[node, N_PARENT]
        if above < 0:
            break
        j = node_lists[2, above]
        serial[0] += 1
        stamp = serial[0]
        if j > 0:
            for k in range(node_lists[0, above], node_lists[1, above]):
                marks[pool[k] - first] = stamp
        symbol = nodes[begin + above, T_SYMBOL]
        fresh = used
        for k in range(node_lists[0, at], node_lists[1, at]):
            holder = np.int64(parents[pool[k]])
            while holder >= 0 and visited[holder - first] != stamp:
                visited[holder - first] = stamp
                if j > 0:
                    held = marks[holder - first] == stamp
                else:
                    held = symbol == 0 or translation[names[holder]] + 1 == symbol
                    if held:
                        for s in range(nodes[begin + above, T_SELECT], nodes[begin + above, T_SELECT_END]):
                            if not selected(
                                holder, selects[s], ends, attribute_begin, attribute_names, attribute_start,
                                attribute_length, text_begin, text_end, text_parent, text_start, text_length, data,
                                arena, translation, rows, limits, literals, parts, joined,
                            ):  # fmt: skip
                                held = False
                                break
                if held:
                    pool[used] = np.int32(holder)
                    used += 1
                if not nodes[node, T_DEEP]:
                    break
                holder = np.int64(parents[holder])
        node_lists[0, above] = fresh
        node_lists[1, above] = used
        node_lists[2, above] = j + 1
    if nodes[begin, T_DEEP]:
        return HOLDS
    for k in range(node_lists[0, 0], node_lists[1, 0]):
        if parents[pool[k]] < 0:
            return HOLDS
    return FAILS
