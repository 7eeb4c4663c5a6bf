"""Compose an advertisement: from all subscriptions behind a router, or from the last advertisement and the changes.

Aggregates follow the subscriptions (`incremental_aggregation.py`) within `keep` of the steps of all patterns in the
routing table with targets other than the receiver, local subscriptions and neighbours' advertisements alike: a router
aggregates its subscriptions "to a size that is k % of the original set" (§6.1), and the paper's annotations of 160
bytes for NS are a bit for each of a quarter of 5,000. But the advertisement of one neighbour may always stay as it is,
so that a router with few subscriptions of its own does not loosen everything again. Derived information follows the
aggregates (`advertised_annotation_hints.py`).

Invariant: every entry with a target other than the receiver is behind an aggregate that contains it.
Cost: from scratch, see `subscription_aggregation.py` and `advertised_annotation_hints.py`; after a change about 100 µs
per new entry, and some microseconds per aggregate and entry to record the entries behind each aggregate.
"""

from ..annotations.advertised_annotation_hints import Budget, ChangingDerived
from ..annotations.data_pattern_occurrences import DataPatterns
from ..router import Router
from .incremental_aggregation import ChangingAggregation
from .subscription_advertisement import Advertisement, BoundEntries, EntriesBehind

# Limits of derived information: the number of data patterns is the number of bits of an ND annotation.
BUDGET = Budget(simple=4096, data=1024)


def compose(router: Router, upstream: str, keep: float, *, anew: bool) -> Advertisement:
    """The advertisement of a router to a neighbour; `anew`: from scratch."""
    before, derived = router.made.get(upstream), router.aggregations.get(upstream)
    if anew or derived is None:
        derived = router.aggregations[upstream] = ChangingDerived(ChangingAggregation(keep), BUDGET)
    changing = derived.aggregation
    entries = set(router.table.wanted(upstream))
    fresh = {entry: router.table.patterns.pattern(entry) for entry in entries - changing.patterns.keys()}
    received = [each for name, each in router.received.items() if name != upstream]
    changing.change(fresh, changing.patterns.keys() - entries, least=max((each.steps for each in received), default=0))
    derived.follow()
    numbers = tuple(sorted(changing.aggregates))
    known, table = BoundEntries(derived, numbers), derived.data
    same = before is not None and before.data.patterns == table.patterns
    data = before.data if before is not None and same else DataPatterns(table.patterns)
    needs = router.structures.needs(router.table.patterns, (each.needs for each in received))
    return Advertisement(
        upstream,
        router.name,
        1 if before is None else before.version + 1,
        changing.steps,
        tuple(changing.aggregates[number] for number in numbers),
        known.public(),
        data,
        table.frequencies,
        EntriesBehind(sorted(changing.covered[number]) for number in numbers),
        known,
        EntriesBehind(table.containing, data),
        EntriesBehind(table.expiring),
        needs,
    )
