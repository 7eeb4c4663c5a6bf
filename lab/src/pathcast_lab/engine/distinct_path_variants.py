"""Ten million distinct subscriptions without a table of those drawn already: every way to write a label path with `//`.

A *base* is a path of element names, such as /nitf/body/p, without wildcards and without `//`. Each of its steps may
follow `/` or `//`, so a base of n steps has 2ⁿ variants. Variants of one base differ in their slashes, variants of two
bases in their names: if bases are distinct, all variants are. So shards of different bases have no subscription in
common, and each is made where it is needed from a short list of bases.

Bases are shuffled, because the likelier paths of a schema are drawn first: any part of the list is a fair sample.

Cost: some 2 µs per variant.
"""

from collections.abc import Iterator, Sequence
from math import ceil
from random import Random

from pathcast.documents.schema import Schema

VARIANTS = 64
_MIN_DEPTH, _MAX_DEPTH = 6, 12


def draw_bases(schema: Schema, subscriptions: int, seed: int) -> list[str]:
    """Enough distinct bases of 6 to 12 steps for so large a number of subscriptions."""
    from pathcast.workloads import SubscriptionOptions, generate_subscriptions

    options = SubscriptionOptions(max_depth=_MAX_DEPTH, min_depth=_MIN_DEPTH, wildcard=0, descendant=0, distinct=True)
    bases = generate_subscriptions(schema, ceil(subscriptions / VARIANTS), options, seed=seed)
    Random(seed).shuffle(bases)
    return bases


def variants(bases: Sequence[str], count: int, seed: int) -> list[str]:
    """`count` distinct paths, `VARIANTS` of each base."""
    found: list[str] = []
    for base in bases:
        found.extend(_variants(base, seed))
        if len(found) >= count:
            return found[:count]
    raise ValueError(f"{len(bases):,} bases have only {len(found):,} variants, {count:,} were requested")


def _variants(base: str, seed: int) -> Iterator[str]:
    names = base.split("/")[1:]
    for bits in Random(f"{seed}{base}").sample(range(2 ** len(names)), VARIANTS):
        yield "".join(("//" if bits >> place & 1 else "/") + name for place, name in enumerate(names))
