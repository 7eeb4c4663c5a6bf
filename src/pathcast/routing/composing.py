"""Composing an advertisement: from all that is wanted behind a router, or from the last one and what has changed since.

Anew, everything is aggregated (`aggregation.py`) into `keep` of its steps. After a change, entries that are gone leave
the aggregates that covered them, an aggregate that covers nothing any more goes, and a new entry joins the first
aggregate that contains it, or becomes one itself. When that has grown beyond the bound by more than `SLACK`, or much
has changed, all is aggregated anew.

Invariant: every entry stands behind an aggregate that contains it.
Cost: anew, see `aggregation.py`; a new entry, some microseconds for each aggregate.
"""

from collections.abc import Sequence

import numpy as np

from ..patterns import Pattern
from ..patterns.containment import contains
from ..patterns.generalisation import size
from .advertisement import Advertisement, Behind
from .aggregation import aggregate
from .labels import DataPatterns
from .table import RoutingTable

# How much more than `keep` of the steps changes may come to, and which part of the entries may be new.
SLACK, MUCH = 0.25, 0.05
_FEW = 64

Covered = list[tuple[Pattern, list[int]]]


def compose(
    table: RoutingTable, upstream: str, downstream: str, before: Advertisement | None, keep: float, *, anew: bool
) -> Advertisement:
    """What a router with this table tells a neighbour."""
    entries = list(table.wanted(upstream))
    covered = None if before is None or anew else _changed(before, table, entries, keep)
    if covered is None:
        covered = _aggregated(table, entries, keep)
    nothing = np.zeros(0, dtype=np.int32)
    return Advertisement(
        upstream,
        downstream,
        1 if before is None else before.version + 1,
        tuple(pattern for pattern, _ in covered),
        Behind(behind for _, behind in covered),
        DataPatterns(()),
        nothing,
        Behind(()),
        Behind(()),
    )


def _aggregated(table: RoutingTable, entries: Sequence[int], keep: float) -> Covered:
    found = aggregate([table.patterns.pattern(entry) for entry in entries], keep)
    numbers = np.array(entries, dtype=np.int32)
    return [
        (pattern, numbers[indices].tolist()) for pattern, indices in zip(found.aggregates, found.covered, strict=True)
    ]


def _changed(before: Advertisement, table: RoutingTable, entries: Sequence[int], keep: float) -> Covered | None:
    """The last advertisement with what has come and gone since; None when it is better made anew."""
    wanted = set(entries)
    held: Covered = [
        (pattern, [entry for entry in before.covered.entries_at(number).tolist() if entry in wanted])
        for number, pattern in enumerate(before.aggregates)
    ]
    kept = [(pattern, behind) for pattern, behind in held if behind]
    fresh = sorted(wanted.difference(*(behind for _, behind in kept)))
    if len(fresh) > max(_FEW, MUCH * len(entries)):
        return None
    for entry in fresh:
        pattern = table.patterns.pattern(entry)
        behind = next((behind for general, behind in kept if contains(general, pattern)), None)
        if behind is None:
            kept.append((pattern, [entry]))
        else:
            behind.append(entry)
    if keep < 1.0 and fresh:
        bound = keep * sum(size(table.patterns.pattern(entry)) for entry in entries)
        if sum(size(pattern) for pattern, _ in kept) > (1 + SLACK) * bound + _FEW:
            return None
    return kept
