"""Composing an advertisement: from all that is wanted behind a router, or from the last one and what has changed since.

Aggregates follow the subscriptions (`changing.py`) within `keep` of the steps that the subscriptions behind the router
have themselves: what came aggregated is not made looser at every hop again. Derived information follows the aggregates
(`derived.py`).

Invariant: every entry that somebody else than the receiver wants stands behind an aggregate that contains it.
Cost: anew, see `aggregation.py` and `derived.py`; after a change some 100 µs for each new entry, and some microseconds
for each aggregate and entry to write down which stands behind which.
"""

from ..patterns.generalisation import size
from .advertisement import Advertisement, Behind, Known
from .changing import ChangingAggregation
from .derived import Budget, ChangingDerived
from .labels import DataPatterns
from .router import Router

# What is advertised besides aggregates: so many bits are an ND annotation.
BUDGET = Budget(simple=4096, data=1024)


def compose(router: Router, upstream: str, keep: float, *, anew: bool) -> Advertisement:
    """What a router tells a neighbour."""
    steps = _steps(router, upstream)
    before, derived = router.made.get(upstream), router.aggregations.get(upstream)
    if anew or derived is None:
        derived = router.aggregations[upstream] = ChangingDerived(ChangingAggregation(keep), BUDGET)
    changing = derived.aggregation
    entries = set(router.table.wanted(upstream))
    fresh = {entry: router.table.patterns.pattern(entry) for entry in entries - changing.patterns.keys()}
    changing.change(fresh, changing.patterns.keys() - entries, steps=steps)
    derived.follow()
    numbers = tuple(sorted(changing.aggregates))
    known, table = Known(derived, numbers), derived.data
    same = before is not None and before.data.patterns == table.patterns
    needs = router.structures.needs(
        router.table.patterns, (received.needs for name, received in router.received.items() if name != upstream)
    )
    return Advertisement(
        upstream,
        router.name,
        1 if before is None else before.version + 1,
        steps,
        tuple(changing.aggregates[number] for number in numbers),
        known.public(),
        before.data if before is not None and same else DataPatterns(table.patterns),
        table.frequencies,
        Behind(sorted(changing.covered[number]) for number in numbers),
        known,
        Behind(table.containing),
        Behind(table.expiring),
        needs,
    )


def _steps(router: Router, upstream: str) -> int:
    """The steps of the subscriptions behind a router before any aggregation."""
    table = router.table
    own = sum(size(table.patterns.pattern(entry)) for entry in table.local())
    return own + sum(received.steps for name, received in router.received.items() if name != upstream)
