# mypy: allow-untyped-defs, allow-untyped-calls
"""The scanner: XML bytes to element arrays in one pass, without a call or an object per element.

It accepts a document only when it has checked every rule of XML 1.0 and of namespaces that applies to it; whatever it
does not check itself (an internal DTD subset, other encodings, names beyond ASCII, more than `MAX_BINDINGS`
namespaces in scope, …), and whatever is wrong, gets `ASK`: the expat reader decides and words the error. So the two
agree by construction, but for a mistake in what is accepted here, and that is what the fuzz tests look for.

Text nodes and attribute values are places in the data where the bytes are the value already; otherwise (references,
carriage returns, CDATA sections beside text) they are decoded into the arena.

Invariant: places only grow, the data end with a zero byte, and no loop passes one: it ends, inside its buffers.
Cost: 1 to 2 ns a byte.
"""

import numpy as np

from ..kernels import kernel, part, rare
from .bytes_kernels import (
    AMP,
    APOSTROPHE,
    BANG,
    CLASS,
    CLOSE,
    GT,
    HYPHEN,
    LT,
    NEWLINE,
    QUESTION,
    QUOTE,
    RETURN,
    SLASH,
    SPACE,
    TEXT,
    begins,
    hash_name,
    name,
    put,
    reference,
    same_bytes,
    skip_space,
    text_bytes,
    utf8,
    value_bytes,
)  # fmt: skip
from .markup_kernels import (
    BOM,
    CDATA,
    DOCTYPE,
    XML_DECLARATION,
    XMLNS,
    bind,
    bound_twice,
    comment,
    copied,
    decoded_value,
    doctype,
    equals_quote,
    instruction,
    spelt,
    xml_declaration,
)  # fmt: skip
from .names_kernels import GIVEN_UP, add_name, find
from .tables_kernels import (
    A_LENGTH,
    A_NAME,
    ASK,
    E_ATTRIBUTES,
    E_DEPTH,
    E_END,
    E_NAME,
    E_PARENT,
    E_POSITION,
    E_TEXT_BEGIN,
    E_TEXT_END,
    L_ATTRIBUTES,
    L_DEPTH,
    L_NAME,
    L_SIZE,
    N_ARENA,
    N_ATTRIBUTES,
    N_CROWDED,
    N_ELEMENTS,
    N_STAMP,
    N_TEXTS,
    OK,
    S_BINDINGS,
    S_ELEMENT,
    S_NAME,
    S_NAME_END,
    T_LENGTH,
    T_PARENT,
    W_COLON,
    W_NAME,
    W_NAME_END,
)  # fmt: skip


@part
def plain_text(data, p):
    """The first place from `p` on that needs a look."""
    while True:
        n = text_bytes(data, p)
        p += n
        if n < 16:
            return p


@rare
def text(data, begin, p, end, arena, used, kind, start, stop):
    """Character data from `begin`, plain as far as `p`, to the next markup: more of the text node.

    The node is `kind` 0: none yet; 1: the bytes from start to stop; 2: the arena from start on. Gives the place of the
    markup (or -1), the arena's length and the node.
    """
    while True:
        c = data[p]
        if CLASS[c] & TEXT or (c == CLOSE and not (data[p + 1] == CLOSE and data[p + 2] == GT)):
            p += 1
            continue
        if c >= 0x80:
            n = utf8(data, p)
            if n == 0:
                return np.int64(-1), used, kind, start, stop
            p += n
            continue
        if (c != LT and c != AMP and c != RETURN) or p >= end:
            return np.int64(-1), used, kind, start, stop
        if c == LT:
            if p == begin:
                return p, used, kind, start, stop
            if kind == 0:
                return p, used, np.int64(1), begin, p
        if kind != 2:
            begun = used
            used = copied(data, start, stop, arena, used) if kind == 1 else used
            kind, start = np.int64(2), begun
        used = copied(data, begin, p, arena, used)
        if c == LT:
            return p, used, kind, start, stop
        if c == AMP:
            p, code = reference(data, p)
            if p < 0:
                return np.int64(-1), used, kind, start, stop
            used = put(arena, used, code)
        else:
            p += 2 if data[p + 1] == NEWLINE else 1
            arena[used] = NEWLINE
            used += 1
        begin = p


@rare
def cdata(data, p, end, arena, used, kind, start, stop):
    """A CDATA section whose `<![CDATA[` ends at `p`, as more of the text node; see `text`."""
    begin = p
    plain = True
    while p < end:
        c = data[p]
        if c == CLOSE and data[p + 1] == CLOSE and data[p + 2] == GT:
            break
        if c < 0x80:
            if c < 0x20 and not CLASS[c] & SPACE:
                return np.int64(-1), used, kind, start, stop
            plain &= c != RETURN
            p += 1
        else:
            n = utf8(data, p)
            if n == 0:
                return np.int64(-1), used, kind, start, stop
            p += n
    if p >= end:
        return np.int64(-1), used, kind, start, stop
    if p == begin:
        return p + 3, used, kind, start, stop
    if kind == 0 and plain:
        return p + 3, used, np.int64(1), begin, p
    if kind != 2:
        begun = used
        if kind == 1:
            used = copied(data, start, stop, arena, used)
        kind, start = np.int64(2), begun
    q = begin
    while q < p:
        c = data[q]
        if c == RETURN:
            c = NEWLINE
            if data[q + 1] == NEWLINE:
                q += 1
        arena[used] = c
        used += 1
        q += 1
    return p + 3, used, kind, start, stop


@part
def start_tag(
    data, p, bound, stack, depth, elements, attributes, attribute_start, arena, counts, stamps, waiting, bindings,
    spelling, limits, slots, keys, stored, name_offsets,
):  # fmt: skip
    """A start tag at `p`: the place after it (or -1), the namespaces in scope, and whether it closes itself.

    Names wait for the end of the tag, for a namespace may be declared after it is used; the element's is the last.
    """
    begin = p + 1
    p, colon = name(data, begin)
    if p < 0 or p - begin > limits[L_NAME]:
        return np.int64(-1), bound, False
    end = p
    element, first = counts[N_ELEMENTS], bound
    attribute, wait, prefixed = counts[N_ATTRIBUTES], 0, colon >= 0
    elements[E_ATTRIBUTES, element] = attribute
    closes = False
    while True:
        c = data[p]
        if CLASS[c] & SPACE:
            p = skip_space(data, p + 1)
            c = data[p]
            if c != GT and c != SLASH:
                q = p
                p, q_colon = name(data, q)
                if p < 0 or p - q > limits[L_NAME] or wait + (bound - first) >= limits[L_ATTRIBUTES]:
                    return np.int64(-1), bound, False
                q_end = p
                p, quote = equals_quote(data, p)
                if p < 0:
                    return np.int64(-1), bound, False
                start = p
                while True:
                    n = value_bytes(data, p)
                    p += n
                    if n == 16:
                        continue
                    c = data[p]
                    if c == quote:
                        length = p - start
                        p += 1
                        break
                    if c == QUOTE or c == APOSTROPHE:
                        p += 1
                    else:
                        used = counts[N_ARENA]
                        p, counts[N_ARENA] = decoded_value(data, start, p, quote, arena, used)
                        if p < 0:
                            return np.int64(-1), bound, False
                        start = -1 - used
                        length = counts[N_ARENA] - used
                        break
                prefix_end = q_end if q_colon < 0 else q_colon
                if prefix_end - q == 5 and begins(data, q, XMLNS):
                    bound = bind(data, q_colon, q_end, start, length, bindings, bound)
                    if bound < 0:
                        return np.int64(-1), bound, False
                    continue
                attribute_start[attribute + wait] = start
                attributes[A_LENGTH, attribute + wait] = length
                waiting[W_NAME, wait] = q
                waiting[W_COLON, wait] = q_colon
                waiting[W_NAME_END, wait] = q_end
                prefixed |= q_colon >= 0
                wait += 1
                continue
        if c == GT:
            p += 1
            break
        if c == SLASH and data[p + 1] == GT:
            p += 2
            closes = True
            break
        return np.int64(-1), bound, False
    if bound > first + 1 and bound_twice(data, bindings, first, bound):
        return np.int64(-1), bound, False
    waiting[W_NAME, wait] = begin
    waiting[W_COLON, wait] = colon
    waiting[W_NAME_END, wait] = end
    counts[N_STAMP] += 1
    stamp = counts[N_STAMP]
    number = np.int64(0)
    for index in range(wait + 1):
        q, q_end = waiting[W_NAME, index], waiting[W_NAME_END, index]
        if waiting[W_COLON, index] < 0 and (index < wait or bound == 0):
            a, b, hashed = hash_name(data, q, q_end)
            number = find(slots, keys, stored, name_offsets, a, b, hashed, data, q, q_end)
            if number < 0:
                if number == GIVEN_UP:
                    counts[N_CROWDED] = 1
                    return np.int64(-1), bound, False
                number = add_name(-1 - number, a, b, data, q, q_end, slots, keys, stored, name_offsets, counts)
                if number < 0:
                    return np.int64(-1), bound, False
        else:
            number = spelt_name(
                data, q, waiting[W_COLON, index], q_end, bindings, bound, spelling, slots, keys, stored, name_offsets,
                counts,
            )  # fmt: skip
            if number < 0:
                return np.int64(-1), bound, False
        if index < wait:
            if stamps[number] == stamp:
                return np.int64(-1), bound, False
            stamps[number] = stamp
            attributes[A_NAME, attribute + index] = number
    elements[E_NAME, element] = number
    elements[E_PARENT, element] = stack[S_ELEMENT, depth - 1] if depth else -1
    elements[E_DEPTH, element] = depth + 1
    stack[S_ELEMENT, depth] = element
    stack[S_NAME, depth] = begin
    stack[S_NAME_END, depth] = end
    stack[S_BINDINGS, depth] = first
    counts[N_ELEMENTS] = element + 1
    counts[N_ATTRIBUTES] = attribute + wait
    return p, bound, closes


@rare
def spelt_name(
    data, begin, colon, end, bindings, bound, spelling, slots, keys, stored, name_offsets, counts,
):  # fmt: skip
    """The id of a name that may lie in a namespace; -1 for asking expat."""
    length = spelt(data, begin, colon, end, bindings, bound, spelling)
    if length < 0:
        return np.int64(-1)
    begin = np.int64(0)
    a, b, hashed = hash_name(spelling, begin, length)
    number = find(slots, keys, stored, name_offsets, a, b, hashed, spelling, begin, length)
    if number == GIVEN_UP:
        counts[N_CROWDED] = 1
        return np.int64(-1)
    if number < 0:
        number = add_name(-1 - number, a, b, spelling, begin, length, slots, keys, stored, name_offsets, counts)
    return number


@part
def end_tag(data, p, stack, depth):
    """An end tag at `p` that must close the innermost open element: the place after it, or -1."""
    p += 2
    begin, end = stack[S_NAME, depth - 1], stack[S_NAME_END, depth - 1]
    if not same_bytes(data, p, data, begin, end):
        return -1
    p = skip_space(data, p + (end - begin))
    return p + 1 if data[p] == GT else -1


@rare
def prolog(data, p):
    """A byte-order mark and an XML declaration, as far as they are there."""
    if begins(data, p, BOM):
        p += len(BOM)
    if begins(data, p, XML_DECLARATION) and CLASS[data[p + len(XML_DECLARATION)]] & SPACE:
        p = xml_declaration(data, p)
    return p


@part
def document(
    data, begin, end, elements, attributes, attribute_start, texts, text_start, arena, counts, stamps, stack, waiting,
    bindings, spelling, limits, slots, keys, stored, name_offsets,
):  # fmt: skip
    """One document: `OK`, or `ASK` with some rows written that the caller takes back."""
    if end - begin > limits[L_SIZE]:
        return ASK
    p = prolog(data, begin)
    if p < 0:
        return ASK
    depth, bound = np.int64(0), np.int64(0)
    rooted, typed = False, False
    kind, start, stop = np.int64(0), np.int64(0), np.int64(0)
    while True:
        if depth:
            q = plain_text(data, p)
            if data[q] == LT and (q == p or kind == 0):
                if q > p:
                    kind, start, stop = np.int64(1), p, q
                p = q
            else:
                used = counts[N_ARENA]
                p, counts[N_ARENA], kind, start, stop = text(data, p, q, end, arena, used, kind, start, stop)
        else:
            p = skip_space(data, p)
            if p >= end:
                return OK if p == end and rooted else ASK
            if data[p] != LT:
                return ASK
        if p < 0 or p >= end:
            return ASK
        c = data[p + 1]
        if c == BANG and depth and begins(data, p, CDATA):
            p, counts[N_ARENA], kind, start, stop = cdata(
                data, p + len(CDATA), end, arena, counts[N_ARENA], kind, start, stop
            )
            if p < 0:
                return ASK
            continue
        if kind:
            row = counts[N_TEXTS]
            texts[T_PARENT, row] = stack[S_ELEMENT, depth - 1]
            texts[T_LENGTH, row] = stop - start if kind == 1 else counts[N_ARENA] - start
            text_start[row] = start if kind == 1 else -1 - start
            counts[N_TEXTS] = row + 1
            kind = np.int64(0)
        if c == SLASH:
            if not depth:
                return ASK
            p = end_tag(data, p, stack, depth)
            depth -= 1
        elif c == BANG:
            if data[p + 2] == HYPHEN and data[p + 3] == HYPHEN:
                p = comment(data, p + 4, end)
            elif not rooted and not typed and begins(data, p, DOCTYPE):
                p = doctype(data, p)
                typed = True
            else:
                return ASK
            if p < 0:
                return ASK
            continue
        elif c == QUESTION:
            p = instruction(data, p + 2, end)
            if p < 0:
                return ASK
            continue
        else:
            if (rooted and not depth) or depth >= limits[L_DEPTH]:
                return ASK
            element = counts[N_ELEMENTS]
            elements[E_POSITION, element] = p - begin
            elements[E_TEXT_BEGIN, element] = counts[N_TEXTS]
            p, bound, closes = start_tag(
                data, p, bound, stack, depth, elements, attributes, attribute_start, arena, counts, stamps, waiting,
                bindings, spelling, limits, slots, keys, stored, name_offsets,
            )  # fmt: skip
            rooted = True
            if p >= 0 and not closes:
                depth += 1
                continue
        if p < 0:
            return ASK
        element = stack[S_ELEMENT, depth]
        elements[E_END, element] = counts[N_ELEMENTS]
        elements[E_TEXT_END, element] = counts[N_TEXTS]
        bound = stack[S_BINDINGS, depth]


@kernel(
    "void(ro_u1[::1], ro_i8[::1], ro_i8[::1],"
    " i4[::1], u8[:, ::1], u1[::1], i8[::1],"
    " i4[:, ::1], i4[:, ::1], i8[::1], i4[:, ::1], i8[::1], u1[::1],"
    " i8[::1], i1[::1], i8[::1], i8[::1], i8[:, ::1], i8[:, ::1], i8[:, ::1], u1[::1])"
)
def scan(
    data, data_offsets, limits,
    slots, keys, stored, name_offsets,
    elements, attributes, attribute_start, texts, text_start, arena,
    offsets, status, counts, stamps, stack, waiting, bindings, spelling,
):  # fmt: skip
    """Scan the documents of a batch whose `status` is `OK`; those that get `ASK` leave no rows behind."""
    for index in range(len(data_offsets) - 1):
        n_elements, n_attributes, n_texts = counts[N_ELEMENTS], counts[N_ATTRIBUTES], counts[N_TEXTS]
        n_arena = counts[N_ARENA]
        if status[index] == OK:
            status[index] = document(
                data, data_offsets[index], data_offsets[index + 1], elements, attributes, attribute_start, texts,
                text_start, arena, counts, stamps, stack, waiting, bindings, spelling, limits,
                slots, keys, stored, name_offsets,
            )  # fmt: skip
        if status[index] != OK:
            counts[N_ELEMENTS], counts[N_ATTRIBUTES], counts[N_TEXTS] = n_elements, n_attributes, n_texts
            counts[N_ARENA] = n_arena
        offsets[index + 1] = counts[N_ELEMENTS]


@kernel("void(ro_u1[::1], i8[::1])")
def bounds(data, most):
    """How many elements (and text nodes) and attributes the data can have at most: `<` and `=`."""
    tags, equals = 0, 0
    for p in range(len(data)):
        tags += data[p] == 60
        equals += data[p] == 61
    most[0] = tags
    most[1] = equals
