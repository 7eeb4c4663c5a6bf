# mypy: allow-untyped-defs, allow-untyped-calls
"""Headers of many messages on one link, as bytes, for kernels: the wire format of `annotation_header_codec.py`."""

from typing import NamedTuple

import numpy as np

from pathcast.documents.structure.varint_kernels import put_number
from pathcast.kernels import Bools, Int32s, Int64s, Matrix, UInt8s, Writable, kernel, part

from ..annotations.data_pattern_occurrences_kernels import Places
from .link_annotations_kernels import Lists

FULL = np.uint8(255)


class Written(NamedTuple):
    """The annotations of each message: `holding` aggregates match; all but those in `open` fail, if `has_failed`.

    Bindings are bytes already.
    """

    holding: Lists
    has_holding: Bools
    open: Lists
    has_failed: Bools
    absent: Matrix[Bools]
    has_absent: Bools
    last_places: Places
    bindings_offsets: Int64s
    bindings: UInt8s


class Format(NamedTuple):
    """Flags of the sections, the numbers of aggregates and data patterns, and the version."""

    text: int
    failed: int
    holding: int
    absent: int
    last_places: int
    bindings: int
    aggregates: int
    patterns: int
    version: int


@part
def put_failed(out, at, aggregates, row, lists):
    """Write a bit per aggregate: 1 unless the aggregate is open."""
    at = put_number(out, at, aggregates)
    size = aggregates + 7 >> 3
    for byte in range(size):
        out[at + byte] = FULL
    if aggregates & 7:
        out[at + size - 1] = np.uint8((1 << (aggregates & 7)) - 1)
    for k in range(lists.begins[row], lists.ends[row]):
        number = lists.numbers[k]
        out[at + (number >> 3)] &= FULL ^ np.uint8(1 << (number & 7))
    return at + size


@part
def put_holding(out, at, aggregates, row, lists):
    """Write a bit per aggregate: whether it matches."""
    at = put_number(out, at, aggregates)
    size = aggregates + 7 >> 3
    for byte in range(size):
        out[at + byte] = 0
    for k in range(lists.begins[row], lists.ends[row]):
        number = lists.numbers[k]
        out[at + (number >> 3)] |= np.uint8(1 << (number & 7))
    return at + size


@part
def put_holding_among(out, at, failed_at, aggregates, row, holding, count, stamps):
    """Write a bit per open aggregate, in order: whether it matches; just 0 if all do."""
    if holding.ends[row] - holding.begins[row] == count:
        return put_number(out, at, 0)
    for k in range(holding.begins[row], holding.ends[row]):
        stamps[holding.numbers[k]] = row + 1
    at = put_number(out, at, count)
    bit = 0
    for byte in range(aggregates + 7 >> 3):
        failed = out[failed_at + byte]
        if failed == FULL:
            continue
        for number in range(8 * byte, min(8 * byte + 8, aggregates)):
            if not failed >> np.uint8(number & 7) & 1:
                if not bit & 7:
                    out[at + (bit >> 3)] = 0
                if stamps[number] == row + 1:
                    out[at + (bit >> 3)] |= np.uint8(1 << (bit & 7))
                bit += 1
    return at + (count + 7 >> 3)


@part
def put_absent(out, at, absent, row):
    """Write a bit per data pattern: whether it does not occur."""
    patterns = absent.shape[1]
    at = put_number(out, at, patterns)
    for byte in range(patterns + 7 >> 3):
        out[at + byte] = 0
    for number in range(patterns):
        out[at + (number >> 3)] |= np.uint8(absent[row, number]) << np.uint8(number & 7)
    return at + (patterns + 7 >> 3)


@part
def put_last_places(out, at, row, places):
    """Write data patterns, each as the difference from the one before, and their places."""
    begin, end, before = places.offsets[row], places.offsets[row + 1], np.int64(0)
    at = put_number(out, at, end - begin)
    for k in range(begin, end):
        at = put_number(out, at, places.patterns[k] - before)
        at = put_number(out, at, places.places[k])
        before = np.int64(places.patterns[k])
    return at


@part
def number_size(number):
    """The bytes of a number."""
    size = 1
    while number >= 128:
        number >>= 7
        size += 1
    return size


@kernel(late=True)
def write_headers(
    written: Written, form: Format, stamps: Writable[Int32s], out: Writable[UInt8s], offsets: Writable[Int64s]
) -> int:
    """Write the header of each message; return the total of their bytes. `out` must have room, `stamps` be 0."""
    at, places = 0, written.last_places
    for row in range(len(offsets) - 1):
        offsets[row] = at
        flags = np.int64(0)
        if written.has_failed[row]:
            flags |= form.failed
        if written.has_holding[row]:
            flags |= form.holding
        if written.has_absent[row]:
            flags |= form.absent
        if places.offsets[row + 1] > places.offsets[row]:
            flags |= form.last_places
        if written.bindings_offsets[row + 1] > written.bindings_offsets[row]:
            flags |= form.bindings
        if not flags:
            if form.text:
                out[at] = 1
                out[at + 1] = form.text
                at += 2
            else:
                out[at] = 0
                at += 1
            continue
        begin = at + 5  # leaves space for the length
        end = put_number(out, begin, flags | form.text)
        end = put_number(out, end, form.version)
        if written.has_failed[row]:
            failed_at = end + number_size(form.aggregates)
            end = put_failed(out, end, form.aggregates, row, written.open)
            if written.has_holding[row]:
                count = written.open.ends[row] - written.open.begins[row]
                end = put_holding_among(out, end, failed_at, form.aggregates, row, written.holding, count, stamps)
        elif written.has_holding[row]:
            end = put_holding(out, end, form.aggregates, row, written.holding)
        if written.has_absent[row]:
            end = put_absent(out, end, written.absent, row)
        if flags & form.last_places:
            end = put_last_places(out, end, row, places)
        for k in range(written.bindings_offsets[row], written.bindings_offsets[row + 1]):
            out[end] = written.bindings[k]
            end += 1
        at = put_number(out, at, end - begin)
        for k in range(end - begin):
            out[at + k] = out[begin + k]
        at += end - begin
    offsets[len(offsets) - 1] = at
    return int(at)
