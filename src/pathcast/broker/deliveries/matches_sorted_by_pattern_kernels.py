"""Kernels of the delivery index: matches sorted by pattern, in linear time.

Both are counting sorts: count the places of each pattern, let the sums be where each pattern's places begin, and put
every place there. The order of the input is kept within a pattern, so sequences that ascend in the input ascend in the
output. `least` is the smallest pattern; `counts` has an entry, zero, for each number from there to the largest.
"""

from typing import Any, NamedTuple

import numpy as np

from pathcast.kernels import Int32s, Int64s, Writable, kernel, part

UInt16s = np.ndarray[Any, np.dtype[np.uint16]]


class DocumentMatches(NamedTuple):
    """The document at `places[i]` matches `patterns[offsets[i] : offsets[i + 1]]`."""

    places: UInt16s
    offsets: Int64s
    patterns: Int32s


class Segments(NamedTuple):
    """`patterns[i]` matches the documents at `places[offsets[i] : offsets[i + 1]]`; a pattern may come repeatedly."""

    patterns: Int32s
    offsets: Int64s
    places: UInt16s


class SortedMatches(NamedTuple):
    """The result: as `Segments`, but each pattern comes once, and they ascend."""

    patterns: Writable[Int32s]
    offsets: Writable[Int32s]
    places: Writable[UInt16s]


@part
def begin_patterns(least: int, counts: Writable[Int32s], found: SortedMatches) -> int:
    """List the patterns that occur; the counts become where the places of each begin."""
    used = total = 0
    for number in range(len(counts)):
        count = counts[number]
        if count:
            found.patterns[used] = least + number
            found.offsets[used] = total
            counts[number] = total
            total += count
            used += 1
    found.offsets[used] = total
    return used


@kernel
def sort_documents(matches: DocumentMatches, least: int, counts: Writable[Int32s], found: SortedMatches) -> int:
    """Sort the matches of documents; return how many patterns there are."""
    for match in range(len(matches.patterns)):
        counts[matches.patterns[match] - least] += 1
    used: int = begin_patterns(least, counts, found)
    for document in range(len(matches.places)):
        place = matches.places[document]
        for match in range(matches.offsets[document], matches.offsets[document + 1]):
            number = matches.patterns[match] - least
            found.places[counts[number]] = place
            counts[number] += 1
    return used


@kernel
def sort_segments(segments: Segments, least: int, counts: Writable[Int32s], found: SortedMatches) -> int:
    """Sort segments, whole; return how many patterns there are."""
    for segment in range(len(segments.patterns)):
        counts[segments.patterns[segment] - least] += segments.offsets[segment + 1] - segments.offsets[segment]
    used: int = begin_patterns(least, counts, found)
    for segment in range(len(segments.patterns)):
        number = segments.patterns[segment] - least
        to = counts[number]
        for place in range(segments.offsets[segment], segments.offsets[segment + 1]):
            found.places[to] = segments.places[place]
            to += 1
        counts[number] = to
    return used
