# mypy: allow-untyped-defs, allow-untyped-calls
"""Structure annotations for kernels: the elements, attributes and texts of a document as numbers of few bytes.

    elements     a label path each, in document order; its depth tells where it hangs
    attributes   elements since the last one, number of the name, value
    texts        elements begun since the last one, levels up to the text's parent, value

A number is 7 bits a byte, the lowest first, the last byte without the eighth bit. A value is a place in the document,
as twice the distance from where the last one ended, and a length. A place before that is 1, the place and a length;
bytes that the document does not have as they are: twice their number and 3, and they.

The decoder checks every number before it is used: what is wrong is an answer, not a fault.
Cost: some 4 ns an element, some 6 ns a value.
"""

import numpy as np

from pathcast.kernels import kernel, part

from ..router_messages_kernels import put_number

# What the needs say of a name, as bits: its text nodes, its string-value.
TEXTS, VALUES = 1, 2
# Why a document was not decoded.
OK, CUT, NO_PATH, NO_PARENT, NO_PLACE, NO_NAME, REST, TOO_DEEP = range(8)
# Rows of what is told of a message: where its three parts lie, label paths known to it, the document's place and
# length, and how many elements, attributes and texts there are before it and in it.
R_BEGIN, R_END, R_PATHS, R_DATA, R_LENGTH, R_ELEMENTS, R_ATTRIBUTES, R_TEXTS, R_ROWS = range(9)
# `state` of a reader: where it is, whether something was wrong, and why a message was not read.
AT, WRONG, WHY, S_ROWS = range(4)
MOST_BITS = 42
BACK, INLINE = 1, 3
NONE = -1


@part
def take(data, end, state):
    """Read a number; one that has no end, or is too large, is marked as wrong."""
    at = state[AT]
    if at < end and data[at] < 128:
        state[AT] = at + 1
        return np.int64(data[at])
    number = np.int64(0)
    shift = 0
    while at < end and shift < MOST_BITS:
        byte = np.int64(data[at])
        number |= (byte & 127) << shift
        at += 1
        if byte < 128:
            state[AT] = at
            return number
        shift += 7
    state[WRONG] = 1
    state[AT] = end
    return np.int64(0)


@part
def put_value(out, at, start, length, base, last, arena):
    """Write a value; where the next number goes."""
    if start >= base and start >= 0:
        moved = start - base - last
        if moved >= 0:
            at = put_number(out, at, moved << 1)
        else:
            out[at] = BACK
            at = put_number(out, at + 1, start - base)
        return put_number(out, at, np.int64(length))
    at = put_number(out, at, (np.int64(length) << 1) + INLINE)
    begin = -1 - start
    for k in range(length):
        out[at + k] = arena[begin + k]
    return at + length


@part
def take_value(data, end, state, base, length_of_document, last, starts, lengths, index):
    """Read a value and write where it lies; where it ends in the document, or `last` when it is not there."""
    code = take(data, end, state)
    if code & 1 and code != BACK:
        length = (code - INLINE) >> 1
        if length > end - state[AT]:
            state[WRONG] = 1
            return last
        starts[index] = -1 - state[AT]
        lengths[index] = length
        state[AT] += length
        return last
    start = take(data, end, state) if code == BACK else last + (code >> 1)
    length = take(data, end, state)
    if state[WRONG] != 0 or start + length > length_of_document:
        state[WRONG] = 1
        return last
    starts[index] = base + start
    lengths[index] = length
    return start + length


@part
def is_asked(pairs, key):
    """Whether a sorted array has a key."""
    low, high = 0, len(pairs)
    while low < high:
        middle = (low + high) >> 1
        if pairs[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low < len(pairs) and pairs[low] == key


@kernel(
    "int64(int64, int64, ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i8[::1],"
    " ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i8[::1], ro_i4[::1], ro_u1[::1], int64,"
    " ro_i4[::1], ro_u1[::1], ro_i4[::1], ro_b1[::1], ro_i8[::1], u1[::1], u1[::1], i8[::1])",
    late=True,
)
def encode_structure(
    begin, end, names, parents, depths, paths, attribute_begin, attribute_name, attribute_start, attribute_length,
    text_begin, text_parent, text_start, text_length, arena, base,
    translate, flags, codes, everywhere, pairs, wanted, out, counts,
):  # fmt: skip
    """Write one document; how many bytes, -1 when there is no room. `counts` gets the attributes and texts."""
    room = len(out) - 40
    at = 0
    values = False
    for element in range(begin, end):
        if at > room:
            return -1
        at = put_number(out, at, np.int64(paths[element - begin]))
        name = translate[names[element]]
        flag = flags[name]
        if parents[element] >= begin and wanted[parents[element] - begin] & VALUES:
            flag |= VALUES
        wanted[element - begin] = flag
        values |= flag > 0
    counts[0] = 0
    counts[1] = 0
    last = 0
    if len(everywhere) > 0:
        before = begin
        for element in range(begin, end):
            for index in range(attribute_begin[element], attribute_begin[element + 1]):
                code = codes[translate[attribute_name[index]]]
                if code < 0:
                    continue
                if not everywhere[code]:
                    if not is_asked(pairs, np.int64(translate[names[element]]) << 32 | code):
                        continue
                if at + attribute_length[index] > room:
                    return -1
                at = put_number(out, at, np.int64(element - before))
                at = put_number(out, at, np.int64(code))
                at = put_value(out, at, attribute_start[index], attribute_length[index], base, last, arena)
                if attribute_start[index] >= base and attribute_start[index] >= 0:
                    last = attribute_start[index] - base + attribute_length[index]
                before = element
                counts[0] += 1
    if not values or end == begin:
        return at
    last = 0
    before = begin
    under = begin
    for index in range(text_begin[begin], len(text_parent)):
        parent = text_parent[index]
        if parent >= end:
            break
        while under + 1 < end and text_begin[under + 1] <= index:
            under += 1
        if wanted[parent - begin] == 0:
            continue
        if at + text_length[index] > room:
            return -1
        at = put_number(out, at, np.int64(under - before))
        at = put_number(out, at, np.int64(depths[under] - depths[parent]))
        at = put_value(out, at, text_start[index], text_length[index], base, last, arena)
        if text_start[index] >= base and text_start[index] >= 0:
            last = text_start[index] - base + text_length[index]
        before = under
        counts[1] += 1
    return at


@part
def read_paths(data, end, known, first, count, path_name, path_depth, deepest, name, depth, path_of, state):
    """Read the label paths of elements, with the names and depths that follow from them: OK, or why not."""
    for element in range(first, count):
        path = take(data, end, state)
        if state[WRONG] != 0:
            return CUT
        if path >= known:
            return NO_PATH
        if path_depth[path] > deepest:
            return TOO_DEEP
        name[element] = path_name[path]
        depth[element] = path_depth[path]
        path_of[element] = path
    return OK


@part
def read_attributes(
    data, end, base, length, first, count, first_attribute, attributes, attribute_names,
    attribute_begin, attribute_name, attribute_start, attribute_length, state,
):  # fmt: skip
    """Read the attributes of elements: OK, or why not."""
    owner, begun, last = first, first, np.int64(0)
    for index in range(first_attribute, attributes):
        owner += take(data, end, state)
        code = take(data, end, state)
        if state[WRONG] != 0:
            return CUT
        if owner >= count:
            return NO_PARENT
        if code >= len(attribute_names):
            return NO_NAME
        last = take_value(data, end, state, base, length, last, attribute_start, attribute_length, index)
        if state[WRONG] != 0:
            return NO_PLACE
        attribute_name[index] = attribute_names[code]
        while begun <= owner:
            attribute_begin[begun] = index
            begun += 1
    while begun < count:
        attribute_begin[begun] = attributes
        begun += 1
    return OK


@part
def close_down_to(level, opened, element, text, stack, ends, text_end):
    """Close the elements that are open at this level and below it; they end before `element` and `text`."""
    while opened >= level:
        ends[stack[0, opened]] = element
        text_end[stack[0, opened]] = text
        opened -= 1
    return opened


@part
def read_tree(
    data, end, base, length, first, count, first_text, texts, path_parent, stack,
    parent, depth, ends, text_begin, text_end, text_parent, text_start, text_length, state,
):  # fmt: skip
    """Hang elements on each other, and texts, which are read, in their places: OK, or why not.

    `text_end` has the label paths of elements until it is known where their texts end.
    """
    text, opened, last = first_text, np.int64(0), np.int64(0)
    under, up = np.int64(count), np.int64(0)  # the element after whose start tag the next text comes; levels up to it
    if text < texts:
        under = first + take(data, end, state)
        up = take(data, end, state)
    for element in range(first, count):
        path, level = text_end[element], np.int64(depth[element])
        if level > opened + 1 or (level == 1 and element > first):
            return NO_PARENT
        if path_parent[path] != (stack[1, level - 1] if level > 1 else NONE):
            return NO_PARENT
        close_down_to(level, opened, element, text, stack, ends, text_end)
        parent[element] = stack[0, level - 1] if level > 1 else NONE
        stack[0, level], stack[1, level] = element, path
        opened = level
        text_begin[element] = text
        while under == element:
            holder = level - up
            if state[WRONG] != 0 or holder < 1 or holder > opened:
                return NO_PARENT
            opened = close_down_to(holder + 1, opened, element + 1, text, stack, ends, text_end)
            last = take_value(data, end, state, base, length, last, text_start, text_length, text)
            if state[WRONG] != 0:
                return NO_PLACE
            text_parent[text] = stack[0, holder]
            text += 1
            under = np.int64(count)
            if text < texts:
                under = element + take(data, end, state)
                up = take(data, end, state)
    if text < texts:
        return NO_PARENT if state[WRONG] == 0 else CUT
    close_down_to(1, opened, count, text, stack, ends, text_end)
    return OK if state[AT] == end else REST


@part
def decode_one(
    data, rows, row, path_parent, path_name, path_depth, attribute_names, stack,
    name, parent, depth, ends, attribute_begin, text_begin, text_end,
    attribute_name, attribute_start, attribute_length, text_parent, text_start, text_length, state,
):  # fmt: skip
    """Read one message into the arrays of a batch, at the places that its row tells: OK, or why not.

    `stack` has room for the deepest path that is allowed: open elements, and their paths.
    """
    end, base, length = rows[R_END, row], rows[R_DATA, row], rows[R_LENGTH, row]
    first, count = rows[R_ELEMENTS, row], rows[R_ELEMENTS, row + 1]
    state[AT], state[WRONG] = rows[R_BEGIN, row], 0
    why = read_paths(
        data, end, rows[R_PATHS, row], first, count, path_name, path_depth, stack.shape[1] - 1, name, depth, text_end,
        state,
    )  # fmt: skip
    if why == OK:
        why = read_attributes(
            data, end, base, length, first, count, rows[R_ATTRIBUTES, row], rows[R_ATTRIBUTES, row + 1],
            attribute_names, attribute_begin, attribute_name, attribute_start, attribute_length, state,
        )  # fmt: skip
    if why == OK:
        why = read_tree(
            data, end, base, length, first, count, rows[R_TEXTS, row], rows[R_TEXTS, row + 1], path_parent, stack,
            parent, depth, ends, text_begin, text_end, text_parent, text_start, text_length, state,
        )  # fmt: skip
    return why


@kernel(
    "int64(ro_u1[::1], ro_i8[:, ::1], int64, int64, ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], i4[:, ::1],"
    " i4[::1], i4[::1], i4[::1], i4[::1], i4[::1], i4[::1], i4[::1],"
    " i4[::1], i8[::1], i4[::1], i4[::1], i8[::1], i4[::1], i8[::1])",
    late=True,
)
def decode_structures(
    data, rows, first, last, path_parent, path_name, path_depth, attribute_names, stack,
    name, parent, depth, ends, attribute_begin, text_begin, text_end,
    attribute_name, attribute_start, attribute_length, text_parent, text_start, text_length, state,
):  # fmt: skip
    """Read messages `first` to before `last`: the first that can't be read, with why in `state`."""
    for row in range(first, last):
        state[WHY] = decode_one(
            data, rows, row, path_parent, path_name, path_depth, attribute_names, stack,
            name, parent, depth, ends, attribute_begin, text_begin, text_end,
            attribute_name, attribute_start, attribute_length, text_parent, text_start, text_length, state,
        )  # fmt: skip
        if state[WHY] != OK:
            return row
    return last
