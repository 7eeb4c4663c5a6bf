# mypy: allow-untyped-defs, allow-untyped-calls
"""Packed documents for kernels: the element arrays of one document as words of four bytes, the lowest byte first.

    header       form, elements, attributes, texts, names, bytes of names, bytes of values
    element      name, parent, position, first attribute, first text, end of its texts
    attribute    name, start, length
    text         parent, start, length
    names        a length each
    bytes        of the names, then of values that the document does not have as they are; zeros up to whole words

Names, elements, attributes and texts are numbered from 0 in the document; a start below 0 is a place among the values.
Depths and ends follow from the parents. `check_packed` looks at every number before any is used as a place, so that
what was damaged is an answer, not a fault.
Cost: some 10 ns an element, attribute, text or name, and as much again to check it.
"""

from pathcast.kernels import kernel, part

FORM = 1
HEADER = 7
ELEMENT, VALUE = 6, 3
# Rows of what is told of each packed document: where it begins, and how many elements, attributes, texts and names
# there are before it (in the last column: in all).
R_BEGIN, R_ELEMENTS, R_ATTRIBUTES, R_TEXTS, R_NAMES, R_ROWS = range(6)


@part
def put(out, at, number):
    """Write a word; where the next one goes."""
    out[at] = number & 255
    out[at + 1] = (number >> 8) & 255
    out[at + 2] = (number >> 16) & 255
    out[at + 3] = (number >> 24) & 255
    return at + 4


@part
def word(data, at):
    """The number at a place."""
    low = int(data[at]) | (int(data[at + 1]) << 8) | (int(data[at + 2]) << 16)
    high = int(data[at + 3])
    return low | ((high - 256 if high >= 128 else high) << 24)


@part
def put_three(out, at, one, two, three):
    """Write three words; where the next one goes."""
    return put(out, put(out, put(out, at, one), two), three)


@part
def number_names(name, first, last, document, count, stamp, local, used):
    """Number the names that are new in their document, `count` of which have a number; how many have one then."""
    for each in range(first, last):
        number = name[each]
        if stamp[number] != document:
            stamp[number] = document
            local[number] = count
            used[count] = number
            count += 1
    return count


@part
def beside(starts, lengths, first, last):
    """The bytes of values that the document does not have as they are."""
    total = 0
    for each in range(first, last):
        total += lengths[each] if starts[each] < 0 else 0
    return total


@part
def put_value(out, at, owner, start, length, place, values):
    """Write an attribute or a text, `values` bytes of values being used; where the next goes, and what is used then."""
    at = put_three(out, at, owner, start - place if start >= 0 else -1 - values, length)
    return at, values + length if start < 0 else values


@part
def put_bytes(out, at, source, start, length):
    """Copy bytes; where the next go."""
    for byte in range(length):
        out[at + byte] = source[start + byte]
    return at + length


@part
def put_beside(out, at, starts, lengths, first, last, arena):
    """Copy values that the document does not have as they are; where the next go."""
    for each in range(first, last):
        if starts[each] < 0:
            at = put_bytes(out, at, arena, -1 - starts[each], lengths[each])
    return at


@kernel(
    "int64(ro_i8[::1], ro_i8[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i8[::1], ro_i4[::1],"
    " ro_i4[::1], ro_i4[::1], ro_i4[::1], ro_i8[::1], ro_i4[::1], ro_u1[::1], ro_u1[::1], ro_i8[::1],"
    " i8[::1], i4[::1], i4[::1], u1[::1], i8[::1])"
)
def pack_documents(
    offsets, data_offsets, name, parent, position, attribute_begin, attribute_name, attribute_start, attribute_length,
    text_begin, text_end, text_parent, text_start, text_length, arena, name_bytes, name_edges,
    stamp, local, used, out, edges,
):  # fmt: skip
    """Write all documents, `edges` says where each; how many bytes, or -1 where `out` is too small."""
    at = 0
    for document in range(len(offsets) - 1):
        edges[document] = at
        first, last = offsets[document], offsets[document + 1]
        if first == last:
            continue
        place = data_offsets[document]
        attributes, texts = attribute_begin[first], text_begin[first]
        attributes_end, texts_end = attribute_begin[last], text_end[first]
        names = number_names(name, first, last, document, 0, stamp, local, used)
        names = number_names(attribute_name, attributes, attributes_end, document, names, stamp, local, used)
        spelled = 0
        for each in range(names):
            spelled += name_edges[used[each] + 1] - name_edges[used[each]]
        inside = beside(attribute_start, attribute_length, attributes, attributes_end)
        inside += beside(text_start, text_length, texts, texts_end)
        words = HEADER + ELEMENT * (last - first) + VALUE * (attributes_end - attributes + texts_end - texts) + names
        if at + 4 * words + spelled + inside + 4 > len(out):
            return -1
        at = put(out, at, FORM)
        at = put_three(out, at, last - first, attributes_end - attributes, texts_end - texts)
        at = put_three(out, at, names, spelled, inside)
        for element in range(first, last):
            above = parent[element] - first if element > first else -1
            at = put_three(out, at, local[name[element]], above, position[element])
            attribute, text = attribute_begin[element] - attributes, text_begin[element] - texts
            at = put_three(out, at, attribute, text, text_end[element] - texts)
        values = 0
        for each in range(attributes, attributes_end):
            owner = local[attribute_name[each]]
            at, values = put_value(out, at, owner, attribute_start[each], attribute_length[each], place, values)
        for each in range(texts, texts_end):
            owner = text_parent[each] - first
            at, values = put_value(out, at, owner, text_start[each], text_length[each], place, values)
        for each in range(names):
            at = put(out, at, name_edges[used[each] + 1] - name_edges[used[each]])
        for each in range(names):
            start = name_edges[used[each]]
            at = put_bytes(out, at, name_bytes, start, name_edges[used[each] + 1] - start)
        at = put_beside(out, at, attribute_start, attribute_length, attributes, attributes_end, arena)
        at = put_beside(out, at, text_start, text_length, texts, texts_end, arena)
        while at & 3:
            out[at] = 0
            at += 1
    edges[len(offsets) - 1] = at
    return at


@part
def is_value(start, length, size, values):
    """Whether a value lies within the document, or within the bytes beside it."""
    if length < 0:
        return False
    return start + length <= size if start >= 0 else -1 - start + length <= values


@part
def are_elements(data, begin, elements, attributes, texts, names):
    """Whether elements are in document order, and what they refer to is there."""
    at = begin + 4 * HEADER
    before_attribute = before_text = 0
    for element in range(elements):
        name, parent = word(data, at), word(data, at + 4)
        attribute, text, text_end = word(data, at + 12), word(data, at + 16), word(data, at + 20)
        if name < 0 or name >= names or (element == 0) != (parent == -1) or parent < -1 or parent >= element:
            return False
        above = element - 1  # its parent is the element before, or one that this is inside of
        while above > parent:
            above = word(data, begin + 4 * (HEADER + ELEMENT * above) + 4)
        if above != parent or attribute < before_attribute or attribute > attributes or (element == 0 and attribute):
            return False
        if text < before_text or text_end < text or text_end > texts or (element == 0 and (text or text_end != texts)):
            return False
        before_attribute, before_text = attribute, text
        at += 4 * ELEMENT
    return True


@part
def are_values(data, at, count, owners, size, values):
    """Whether attributes or texts belong to one of so many names or elements, and have a value that is there."""
    for _ in range(count):
        owner = word(data, at)
        if owner < 0 or owner >= owners or not is_value(word(data, at + 4), word(data, at + 8), size, values):
            return False
        at += 4 * VALUE
    return True


@part
def are_lengths(data, at, count, total):
    """Whether names have a length, and this many bytes together."""
    for _ in range(count):
        length = word(data, at)
        if length < 1 or length > total:
            return False
        total -= length
        at += 4
    return total == 0


@part
def is_sound(data, begin, end, size):
    """Whether a packed document has what it announces, and no number that leads astray."""
    if end - begin < 4 * HEADER or word(data, begin) != FORM:
        return False
    elements, attributes, texts = word(data, begin + 4), word(data, begin + 8), word(data, begin + 12)
    names, spelled, values = word(data, begin + 16), word(data, begin + 20), word(data, begin + 24)
    room = end - begin
    if elements < 1 or attributes < 0 or texts < 0 or names < 1 or spelled < 0 or values < 0:
        return False
    if elements > room or attributes > room or texts > room or names > room or spelled > room or values > room:
        return False
    words = HEADER + ELEMENT * elements + VALUE * (attributes + texts) + names
    if (4 * words + spelled + values + 3) // 4 * 4 != room:
        return False
    at = begin + 4 * (HEADER + ELEMENT * elements)
    return (
        are_elements(data, begin, elements, attributes, texts, names)
        and are_values(data, at, attributes, names, size, values)
        and are_values(data, at + 4 * VALUE * attributes, texts, elements, size, values)
        and are_lengths(data, at + 4 * VALUE * (attributes + texts), names, spelled)
    )


@kernel("int64(ro_u1[::1], ro_i8[::1], ro_i8[::1], i8[:,::1], u1[::1])")
def check_packed(data, edges, sizes, rows, sound):
    """Look at all packed documents: which are sound, and how much of anything they have; how many are not."""
    wrong = 0
    elements = attributes = texts = names = 0
    for document in range(len(edges) - 1):
        begin, end = edges[document], edges[document + 1]
        rows[R_BEGIN, document] = begin
        rows[R_ELEMENTS, document], rows[R_ATTRIBUTES, document] = elements, attributes
        rows[R_TEXTS, document], rows[R_NAMES, document] = texts, names
        sound[document] = is_sound(data, begin, end, sizes[document])
        if not sound[document]:
            wrong += 1
            continue
        elements += word(data, begin + 4)
        attributes += word(data, begin + 8)
        texts += word(data, begin + 12)
        names += word(data, begin + 16)
    last = len(edges) - 1
    rows[R_BEGIN, last], rows[R_ELEMENTS, last], rows[R_ATTRIBUTES, last] = edges[last], elements, attributes
    rows[R_TEXTS, last], rows[R_NAMES, last] = texts, names
    return wrong


@kernel("void(ro_u1[::1], ro_i8[:,::1], i8[::1], i8[::1])")
def find_names(data, rows, starts, lengths):
    """Where the names of all sound documents lie."""
    for document in range(rows.shape[1] - 1):
        begin, count = rows[R_BEGIN, document], rows[R_NAMES, document + 1] - rows[R_NAMES, document]
        if not count:
            continue
        values = word(data, begin + 8) + word(data, begin + 12)
        at = begin + 4 * (HEADER + ELEMENT * word(data, begin + 4) + VALUE * values)
        place = at + 4 * count
        for each in range(count):
            lengths[rows[R_NAMES, document] + each] = word(data, at + 4 * each)
            starts[rows[R_NAMES, document] + each] = place
            place += word(data, at + 4 * each)


@kernel("int64(ro_u1[::1], ro_i8[::1], ro_i8[::1], i4[::1], i4[::1], i4[::1])")
def distinct_names(data, starts, lengths, slots, firsts, number_of):
    """Number spellings from 0 as they first occur (`firsts`); how many. `slots` are -1, and a power of two of them."""
    count = 0
    mask = len(slots) - 1
    for place in range(len(starts)):
        start, length = starts[place], lengths[place]
        hashed = 2166136261
        for byte in range(start, start + length):
            hashed = ((hashed ^ int(data[byte])) * 16777619) & 0xFFFFFFFF
        slot = (hashed ^ (hashed >> 15)) & mask
        while slots[slot] >= 0:
            known = firsts[slots[slot]]
            same = lengths[known] == length
            byte = 0
            while same and byte < length:
                same = data[starts[known] + byte] == data[start + byte]
                byte += 1
            if same:
                break
            slot = (slot + 1) & mask
        if slots[slot] < 0:
            slots[slot] = count
            firsts[count] = place
            count += 1
        number_of[place] = slots[slot]
    return count


@kernel(
    "void(ro_u1[::1], ro_i8[:,::1], ro_i8[::1], ro_i4[::1], i4[:,::1], i4[::1], i4[::1], i8[::1], i4[::1],"
    " i4[::1], i8[::1], i4[::1])"
)
def unpack_documents(
    data, rows, data_offsets, name_of, elements, attribute_begin, attribute_name, attribute_start, attribute_length,
    text_parent, text_start, text_length,
):  # fmt: skip
    """The element arrays of all sound documents; rows of `elements`: name, parent, depth, end, position, texts."""
    for document in range(rows.shape[1] - 1):
        begin, first, last = rows[R_BEGIN, document], rows[R_ELEMENTS, document], rows[R_ELEMENTS, document + 1]
        if first == last:
            continue
        names, place = rows[R_NAMES, document], data_offsets[document]
        attributes, texts = rows[R_ATTRIBUTES, document], rows[R_TEXTS, document]
        attribute_count = rows[R_ATTRIBUTES, document + 1] - attributes
        text_count = rows[R_TEXTS, document + 1] - texts
        words = HEADER + ELEMENT * (last - first) + VALUE * (attribute_count + text_count)
        words += rows[R_NAMES, document + 1] - names
        values = begin + 4 * words + word(data, begin + 20)
        at = begin + 4 * HEADER
        for element in range(first, last):
            parent = word(data, at + 4)
            elements[0, element] = name_of[names + word(data, at)]
            elements[1, element] = first + parent if parent >= 0 else -1
            elements[2, element] = elements[2, first + parent] + 1 if parent >= 0 else 1
            elements[3, element] = element + 1
            elements[4, element] = word(data, at + 8)
            attribute_begin[element] = attributes + word(data, at + 12)
            elements[5, element] = texts + word(data, at + 16)
            elements[6, element] = texts + word(data, at + 20)
            at += 4 * ELEMENT
        for element in range(last - 1, first, -1):
            above = elements[1, element]
            elements[3, above] = max(elements[3, above], elements[3, element])
        for each in range(attributes, attributes + attribute_count):
            start = word(data, at + 4)
            attribute_name[each] = name_of[names + word(data, at)]
            attribute_start[each] = place + start if start >= 0 else start - values
            attribute_length[each] = word(data, at + 8)
            at += 4 * VALUE
        for each in range(texts, texts + text_count):
            start = word(data, at + 4)
            text_parent[each] = first + word(data, at)
            text_start[each] = place + start if start >= 0 else start - values
            text_length[each] = word(data, at + 8)
            at += 4 * VALUE
    attribute_begin[rows[R_ELEMENTS, rows.shape[1] - 1]] = rows[R_ATTRIBUTES, rows.shape[1] - 1]
