"""Predicate tables: from an attribute–value pair of a publication to the predicates that it satisfies.

Section 4.1 and Figure 1 of the paper as flat arrays. A *row* belongs to a subject of predicates (a tag's position, the
distance of two tags, a tag's position from the end) and has two tables over the values 1, 2, …: for `=` and for `≥`.

    distance   tag ──▶ its own hash table ──(occurrence, tag, occurrence)──▶ row
    position   tag ──▶ row                                                  cells:  = 1 2 3 …  ≥ 1 2 3 …
    from end   tag, occurrence ──▶ row                                      (the length: from the document)
    filter     (tag, occurrence, steps, attribute) ──▶ limits in order for =, ≥, ≤, !=; texts by hash

Invariant: a cell has the number of the predicate with just this operator and value, or -1.
Cost: 8 bytes per value up to the largest value in a row, 20 bytes per row.
"""

from collections.abc import Iterable

import numpy as np

from pathcast.kernels import AnyArray, Int32s, Int64s
from pathcast.kernels.hash_table_kernels import FNV_PRIME, FNV_SEED
from pathcast.store import offsets_of

from .pattern_table_encoder import Paths, slots_for
from .predicate_numbering_kernels import (
    AT_LEAST,
    DISTANCE,
    EQUAL_NUMBER,
    EQUAL_TEXT,
    EXISTS,
    FILTER,
    FIRST_SHIFT,
    FROM_END,
    NONE,
    OCCURRENCE_MASK,
    OPERATOR_SHIFT,
    POSITION,
    SECOND_SHIFT,
    TAG_SHIFT,
    UNLIKE_NUMBER,
    UNLIKE_TEXT,
    VALUE_SHIFT,
    index_keys,
)
from .publication_matching.attribute_filter_kernels import (
    ASKS_ANY,
    ASKS_NUMBER,
    ASKS_TEXT,
    ATTRIBUTE_BITS,
    LIMIT_KINDS,
    STEPS_BITS,
)
from .publication_matching.structure_predicate_kernels import OCCURRENCE_BITS

Arrays = dict[str, AnyArray]
_WORD = (1 << 64) - 1


class Columns:
    """Predicates, unpacked."""

    def __init__(self, paths: Paths) -> None:
        forms, tags = paths.forms, paths.tag_pairs
        self.kind = forms & ((1 << OPERATOR_SHIFT) - 1)
        self.operator = forms >> OPERATOR_SHIFT & ((1 << FIRST_SHIFT - OPERATOR_SHIFT) - 1)
        self.first = forms >> FIRST_SHIFT & OCCURRENCE_MASK
        self.second = forms >> SECOND_SHIFT & OCCURRENCE_MASK
        self.value = forms >> VALUE_SHIFT
        self.tag = tags >> TAG_SHIFT
        self.other = tags & ((1 << TAG_SHIFT) - 1)


def predicate_tables(paths: Paths, names: int) -> Arrays:
    """The tables of all predicates, over `names` names."""
    columns = Columns(paths)
    return _structure(columns, names) | _filters(columns, paths, names)


def _structure(columns: Columns, names: int) -> Arrays:
    chosen = np.flatnonzero(columns.kind != FILTER)
    kind, tag, other = columns.kind[chosen], columns.tag[chosen], columns.other[chosen]
    place = columns.first[chosen] << OCCURRENCE_BITS | columns.second[chosen]
    heads, row = _distinct((kind, tag, other, place))
    value, operator = columns.value[chosen], columns.operator[chosen]
    widths = np.zeros((2, len(heads)), dtype=np.int64)
    np.maximum.at(widths, (operator, row), value)
    row_equal = offsets_of(widths.sum(axis=0))
    row_least = row_equal[:-1] + widths[0]
    cells = np.full(int(row_equal[-1]), NONE, dtype=np.int32)
    cells[np.where(operator == AT_LEAST, row_least[row], row_equal[row]) + value - 1] = chosen
    position_row = np.full(names, NONE, dtype=np.int32)
    is_position = kind[heads] == POSITION
    position_row[tag[heads][is_position]] = np.flatnonzero(is_position)
    return {
        "row_equal": row_equal,
        "row_least": row_least,
        "cells": cells,
        "position_row": position_row,
        **_from_end(np.flatnonzero(kind[heads] == FROM_END), tag[heads], columns.first[chosen][heads], names),
        **_distances(np.flatnonzero(kind[heads] == DISTANCE), tag[heads], other[heads] << 24 | place[heads], names),
    }


def _from_end(rows: Int64s, tag: Int64s, occurrence: Int64s, names: int) -> Arrays:
    """For each tag its rows by occurrence; the document comes after all tags."""
    most = np.zeros(names + 1, dtype=np.int64)
    whose = np.minimum(tag[rows], names)
    np.maximum.at(most, whose, occurrence[rows])
    begin = offsets_of(most)
    table = np.full(int(begin[-1]), NONE, dtype=np.int32)
    table[begin[whose] + occurrence[rows] - 1] = rows
    return {"end_begin": begin, "end_row": table}


def _distances(rows: Int64s, tag: Int64s, keys: Int64s, names: int) -> Arrays:
    """A hash table per first tag."""
    counts = np.bincount(tag[rows], minlength=names)
    sizes = np.where(counts > 0, 2 ** np.ceil(np.log2(np.maximum(1, 2 * counts))), 0).astype(np.int64)
    begin = offsets_of(sizes)
    slots = np.full(int(begin[-1]), NONE, dtype=np.int32)
    wanted = keys[rows]
    index_keys(wanted, begin[tag[rows]], sizes[tag[rows]], slots)
    return {
        "distance_begin": begin,
        "distance_slots": slots,
        "distance_keys": wanted,
        "distance_row": rows.astype(np.int32),
    }


def _filters(columns: Columns, paths: Paths, names: int) -> Arrays:
    chosen = np.flatnonzero(columns.kind == FILTER)
    tag, attribute = columns.tag[chosen], columns.other[chosen]
    operator, value = columns.operator[chosen], columns.value[chosen]
    steps = columns.second[chosen]
    keys = ((tag << OCCURRENCE_BITS | columns.first[chosen]) << STEPS_BITS | steps) << ATTRIBUTE_BITS | attribute
    seen_from = np.zeros(names + 1, dtype=np.uint64)
    np.bitwise_or.at(seen_from, np.minimum(tag, names), np.uint64(1) << steps.astype(np.uint64))
    wanted, row = np.unique(keys, return_inverse=True)
    exists = np.full(len(wanted), NONE, dtype=np.int32)
    exists[row[operator == EXISTS]] = chosen[operator == EXISTS]
    asks = np.zeros(names, dtype=np.int8)
    asks[attribute] = ASKS_ANY
    is_text, is_unlike = operator == EQUAL_TEXT, operator == UNLIKE_TEXT
    is_number = (operator >= EQUAL_NUMBER) & (operator <= UNLIKE_NUMBER)
    asks[attribute[is_text | is_unlike]] |= ASKS_TEXT
    asks[attribute[is_number]] |= ASKS_NUMBER
    numbers = np.array(list(paths.values.numbers) or [0.0], dtype=np.float64)
    limits = numbers[value[is_number]]
    segment = row[is_number] * LIMIT_KINDS + (operator[is_number] - EQUAL_NUMBER)
    order = np.lexsort((limits, segment))
    text_keys = row[is_text] << 32 | value[is_text]
    unlike = np.flatnonzero(is_unlike)[np.argsort(row[is_unlike], kind="stable")]
    return {
        "asks": asks,
        "filter_steps": seen_from,
        "filter_keys": wanted,
        "filter_slots": _slots(wanted),
        "filter_exists": exists,
        "limits": limits[order],
        "limit_predicate": chosen[is_number][order].astype(np.int32),
        "limit_begin": np.searchsorted(segment[order], np.arange(LIMIT_KINDS * len(wanted) + 1)).astype(np.int64),
        "text_keys": text_keys,
        "text_slots": _slots(text_keys),
        "text_predicate": chosen[is_text].astype(np.int32),
        "unlike_begin": np.searchsorted(row[unlike], np.arange(len(wanted) + 1)).astype(np.int64),
        "unlike_text": value[unlike].astype(np.int32),
        "unlike_predicate": chosen[unlike].astype(np.int32),
        **_literals(paths.values.texts),
    }


def _literals(texts: Iterable[str]) -> Arrays:
    encoded = [text.encode() for text in texts]
    hashes = np.array([_hash(text) for text in encoded], dtype=np.uint64).view(np.int64)
    return {
        "literals": np.frombuffer(b"".join(encoded) + b"\0", dtype=np.uint8),
        "literal_begin": offsets_of([len(text) for text in encoded]),
        "literal_hashes": hashes,
        "literal_slots": _slots(hashes),
    }


def _hash(text: bytes) -> int:
    """As the kernel's `hash_text`."""
    hashed = int(FNV_SEED)
    for byte in text:
        hashed = (hashed ^ byte) * int(FNV_PRIME) & _WORD
    return hashed


def _slots(keys: Int64s) -> Int32s:
    """A hash table of keys."""
    size = slots_for(len(keys))
    slots = np.full(size, NONE, dtype=np.int32)
    index_keys(keys, np.zeros(len(keys), dtype=np.int64), np.full(len(keys), size, dtype=np.int64), slots)
    return slots


def _distinct(columns: tuple[Int64s, ...]) -> tuple[Int64s, Int64s]:
    """The first index of each distinct combination, and the combination number of every row."""
    order = np.lexsort(columns)
    new = np.zeros(len(order), dtype=np.bool_)
    new[:1] = True
    for column in columns:
        ordered = column[order]
        new[1:] |= ordered[1:] != ordered[:-1]
    number = np.empty(len(order), dtype=np.int64)
    number[order] = np.cumsum(new) - 1
    return order[new], number
