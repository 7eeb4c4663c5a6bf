# mypy: allow-untyped-defs, allow-untyped-calls
"""Plain values in a pickle, looked over before anything is made of them.

A pickle is a program for a machine with a stack and a memo. Here it runs with weights in the place of values: how many
values a value has inside, itself included and each as often as it occurs, and how deep they lie. A value that is
referred to again weighs again, so that values within values that double at each step are seen before they are made.

    room, from below      the stack: weights; a link to the memo, or `FREE`, `NEVER` or `MARK`
    room, from above      the memo: weights; whether somebody has referred to it

Invariant: what is accepted has operations of `plain.py`'s writer only, no length beyond the last byte, no value that is
filled after somebody has referred to it (so none that contains itself), at most `WEIGHT` values for each byte and
`DEPTH` levels. Only texts, containers and what dates are made of are referred to.
Cost: some 5 ns an operation; room for one entry a byte is always enough.
"""

import numpy as np

from pathcast.kernels import kernel, part

WEIGHT, DEPTH = 256, 100
# What comes instead of whether names are looked up: there is too little room, or the place of what is refused, below 0.
ROOM, REFUSED = -1, -2
_LEVELS, _DEEPEST = 8, 255
_ONE = np.int64((1 << _LEVELS) | 1)
_FREE, _NEVER, _MARK = 0, -1, -2

# What an operation does with the stack; how many bytes come after it, or how many tell how many come.
_NUMBER, _KEEP, _EMPTY, _TUPLE, _TEXT, _COUNTED, _REFER, _BEGIN, _FILL, _NAME, _CALL, _PASS, _STOP = range(1, 14)
_DOES = np.zeros(256, np.uint8)
_BYTES = np.zeros(256, np.int64)
# How many values it takes; -1: all from the last mark on.
_TAKES = np.zeros(256, np.int64)
for _does, _listed in (
    (_PASS, ((0x80, 1, 0), (0x95, 8, 0))),
    (_NUMBER, ((0x4E, 0, 0), (0x88, 0, 0), (0x89, 0, 0), (0x4B, 1, 0), (0x4D, 2, 0), (0x4A, 4, 0), (0x47, 8, 0))),
    (_COUNTED, ((0x8A, 1, 0), (0x8B, 4, 0))),
    (_TEXT, ((0x8C, 1, 0), (0x58, 4, 0), (0x8D, 8, 0), (0x43, 1, 0), (0x42, 4, 0), (0x8E, 8, 0))),
    (_EMPTY, ((0x29, 0, 0), (0x5D, 0, 0), (0x7D, 0, 0))),
    (_BEGIN, ((0x28, 0, 0),)),
    (_TUPLE, ((0x85, 0, 1), (0x86, 0, 2), (0x87, 0, 3), (0x74, 0, -1))),
    (_FILL, ((0x61, 0, 1), (0x65, 0, -1), (0x73, 0, 2), (0x75, 0, -1))),
    (_KEEP, ((0x94, 0, 0),)),
    (_REFER, ((0x68, 1, 0), (0x6A, 4, 0))),
    (_NAME, ((0x93, 0, 2),)),
    (_CALL, ((0x52, 0, 2),)),
    (_STOP, ((0x2E, 0, 0),)),
):
    for _operation, _bytes, _takes in _listed:
        _DOES[_operation], _BYTES[_operation], _TAKES[_operation] = _does, _bytes, _takes


@part
def _told(data, at, count):
    """Some bytes as a number, the first the lowest."""
    found = np.int64(0)
    for place in range(count):
        found |= np.int64(data[at + place]) << np.int64(8 * place)
    return found


@part
def _taken(weights, links, top, count, most):
    """Where the values that an operation takes begin, with the mark before them, and their weight in a container.

    -1 instead of the place when they are too few, too many or too deep.
    """
    last = max(top - count, 0) if count >= 0 else np.int64(0)
    at, values, depth = top, np.int64(1), np.int64(0)
    while at > last and links[at - 1] != _MARK:
        at -= 1
        values += weights[at] >> _LEVELS
        depth = max(depth, weights[at] & _DEEPEST)
        if values > most:
            return np.int64(-1), _ONE
    if count < 0:
        # The mark is taken as well; where there is none, it is -1 already.
        at -= 1
    elif top - at != count:
        return np.int64(-1), _ONE
    return np.int64(at) if depth < DEPTH else np.int64(-1), (values << _LEVELS) | (depth + 1)


@part
def _filled(weights, links, at, weight, most):
    """Put values into the list or dict at a place of the stack; whether that may be."""
    if at < 0 or links[at] < _FREE:
        return False
    values = (weights[at] >> _LEVELS) + (weight >> _LEVELS) - 1
    weights[at] = (values << _LEVELS) | max(weights[at] & _DEEPEST, weight & _DEEPEST)
    if links[at] == _FREE:
        return values <= most
    kept = len(weights) - links[at]
    weights[kept] = weights[at]
    return values <= most and links[kept] == 0


@kernel("int64(ro_u1[::1], i8[::1], i4[::1])")
def look_over(data, weights, links):
    """1 for values that need names to be looked up, 0 for others; else what is wrong."""
    size, room = len(data), len(weights)
    most = np.int64(WEIGHT * size)
    begin = at = top = kept = named = np.int64(0)
    while at < size:
        if top + kept + 2 > room:
            return np.int64(ROOM)
        begin = at
        operation = data[at]
        does, count = _DOES[operation], _BYTES[operation]
        at += 1 + count
        if at > size or does == 0:
            break
        weight, link = _ONE, np.int32(_FREE)
        if does == _NUMBER:
            link = np.int32(_NEVER)
        elif does == _KEEP:
            if top == 0 or links[top - 1] != _FREE:
                break
            kept += 1
            weights[room - kept], links[room - kept] = weights[top - 1], 0
            links[top - 1] = kept
            continue
        elif does == _TUPLE:
            top, weight = _taken(weights, links, top, _TAKES[operation], most)
            if top < 0:
                break
        elif does == _TEXT or does == _COUNTED:
            told = _told(data, at - count, count)
            if told < 0 or told > size - at:
                break
            at += told
            link = np.int32(_FREE if does == _TEXT else _NEVER)
        elif does == _REFER:
            told = _told(data, at - count, count)
            if told >= kept:
                break
            link = np.int32(told + 1)
            weight = weights[room - link]
            links[room - link] = 1
        elif does == _BEGIN:
            link = np.int32(_MARK)
        elif does == _FILL:
            top, weight = _taken(weights, links, top, _TAKES[operation], most)
            if not _filled(weights, links, top - 1, weight, most):
                break
            continue
        elif does == _NAME or does == _CALL:
            top, _ = _taken(weights, links, top, _TAKES[operation], most)
            if top < 0:
                break
            named |= does == _NAME
        elif does == _PASS:
            continue
        elif does == _STOP:
            if top == 1 and at == size and links[0] != _MARK:
                return named
            break
        weights[top], links[top] = weight, link
        top += 1
    return REFUSED - begin
