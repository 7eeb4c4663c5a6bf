"""Composing an advertisement: from all that is wanted behind a router, or from the last one and what has changed since.

Anew, everything is aggregated (`aggregation.py`) into `keep` of the steps that the subscriptions behind the router have
themselves: what came aggregated is not made looser at every hop again. After a change, entries that are gone leave
the aggregates that covered them, an aggregate that covers nothing any more goes, and a new entry joins the first
aggregate that contains it, or becomes one itself. When that has grown beyond the bound by more than `SLACK`, or much
has changed, all is aggregated anew.

Invariant: every entry stands behind an aggregate that contains it.
Cost: anew, see `aggregation.py`; a new entry, some microseconds for each aggregate.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..patterns.containment import contains
from ..patterns.generalisation import size
from .advertisement import Advertisement, Behind, Known
from .aggregation import aggregate
from .derived import Budget, derive
from .labels import DataPatterns
from .router import Router
from .table import RoutingTable

# How much more than `keep` of the steps changes may come to, and which part of the entries may be new.
SLACK, MUCH = 0.25, 0.05
_FEW = 64
# What is advertised besides aggregates: so many bits are an ND annotation.
BUDGET = Budget(simple=4096, data=512)


def compose(router: Router, upstream: str, keep: float, *, anew: bool) -> Advertisement:
    """What a router tells a neighbour."""
    table, before = router.table, router.made.get(upstream)
    entries = list(table.wanted(upstream))
    steps = sum(size(table.patterns.pattern(entry)) for entry in table.local())
    steps += sum(received.steps for name, received in router.received.items() if name != upstream)
    bound = keep * steps
    made = None if before is None or anew else _changed(before, table, entries, bound)
    if made is None:
        made = _made_anew(table, entries, bound, upstream, router.name)
    needs = router.structures.needs(
        table.patterns, (received.needs for name, received in router.received.items() if name != upstream)
    )
    return replace(made, steps=steps, version=1 if before is None else before.version + 1, needs=needs)


def _made_anew(
    table: RoutingTable, entries: Sequence[int], bound: float, upstream: str, downstream: str
) -> Advertisement:
    patterns = [table.patterns.pattern(entry) for entry in entries]
    found = aggregate(patterns, min(1.0, bound / max(1, sum(map(size, patterns)))))
    derived = derive(found, patterns, budget=BUDGET)
    data = derived.data
    numbers = np.array(entries, dtype=np.int32)
    known = Known(derived, np.arange(len(found.aggregates), dtype=np.int32), numbers)
    return Advertisement(
        upstream,
        downstream,
        1,
        0,
        tuple(found.aggregates),
        known.public(),
        DataPatterns(data.patterns),
        data.frequencies,
        Behind(numbers[each] for each in found.covered),
        known,
        Behind(numbers[each] for each in data.containing),
        Behind(numbers[each] for each in data.expiring),
    )


def _changed(before: Advertisement, table: RoutingTable, entries: Sequence[int], bound: float) -> Advertisement | None:
    """The last advertisement with what has come and gone since; None when it is better made anew.

    New entries are not behind simple aggregates and data patterns: annotations spare them less, and tell nothing wrong.
    """
    wanted = set(entries)
    behind = [
        [entry for entry in before.covered.entries_at(number).tolist() if entry in wanted]
        for number in range(len(before.aggregates))
    ]
    kept = [number for number, each in enumerate(behind) if each]
    aggregates = [before.aggregates[number] for number in kept]
    covered = [behind[number] for number in kept]
    fresh = sorted(wanted.difference(*covered))
    if len(fresh) > max(_FEW, MUCH * len(entries)):
        return None
    for entry in fresh:
        pattern = table.patterns.pattern(entry)
        found = next((number for number, general in enumerate(aggregates) if contains(general, pattern)), None)
        if found is None:
            aggregates.append(pattern)
            covered.append([entry])
            kept.append(-1)
        else:
            covered[found].append(entry)
    if fresh and sum(map(size, aggregates)) > (1 + SLACK) * bound + _FEW:
        return None
    known = before.known.renumbered(kept)
    return replace(
        before, aggregates=tuple(aggregates), simple=known.public(), covered=Behind(covered), known=known
    )  # fmt: skip
