"""Capacity planning: the shards and cores for a number of subscriptions and a rate of documents, from measured costs.

Every document goes to every shard. A shard of s subscriptions costs per document

    seconds(s) = read + match(s)            both measured; or match(s) alone, if documents arrive already read

so the cores that are busy are rate × shards × seconds(s), spread over replicas of the shards. A worker is one process
with one core; it holds one shard, `memory` bytes. Workers of one shard on one machine share the mapped index; the sum
of memory counts one worker per shard, which is the least. Traffic: each shard gets each document once; a delivery is a
document sent to one subscription, or, inside the system, one id.

`Line` is the straight line through two measured sizes: what a size between or beyond would cost if costs were linear.
Reading does not depend on the size, and no index gets faster with more subscriptions, so a line never falls
(`rising_line`): over a range of ten or a hundred times, it would turn noise into a prediction below zero.
"""

from dataclasses import dataclass
from math import ceil
from typing import NamedTuple


@dataclass(frozen=True)
class PerDocument:
    """Costs of one shard of `size` subscriptions: seconds and matches per document, bytes of the worker."""

    size: int
    read: float
    match: float
    matches: float
    memory: float


class Requirements(NamedTuple):
    """For a number of subscriptions and a rate; bytes and bytes per second, documents and deliveries per second."""

    shards: int
    workers_per_shard: int
    cores: float
    cores_read_once: float
    memory_per_worker: float
    memory: float
    matches: float
    deliveries: float
    per_subscription: float
    bytes_to_shards: float
    bytes_of_ids: float
    bytes_to_subscribers: float


def required(
    cost: PerDocument, subscriptions: int, rate: float, *, document_bytes: float, id_bytes: int
) -> Requirements:
    """The shards and cores for these subscriptions at this rate (documents per second), by shards of one size."""
    shards = ceil(subscriptions / cost.size)
    matches = cost.matches * subscriptions / cost.size
    deliveries = rate * matches
    return Requirements(
        shards=shards,
        workers_per_shard=max(1, ceil(rate * (cost.read + cost.match))),
        cores=rate * shards * (cost.read + cost.match),
        cores_read_once=rate * (cost.read + shards * cost.match),
        memory_per_worker=cost.memory,
        memory=shards * cost.memory,
        matches=matches,
        deliveries=deliveries,
        per_subscription=deliveries / subscriptions,
        bytes_to_shards=rate * shards * document_bytes,
        bytes_of_ids=deliveries * id_bytes,
        bytes_to_subscribers=deliveries * document_bytes,
    )


class Line(NamedTuple):
    """value(size) = base + each × size."""

    base: float
    each: float

    def at(self, size: float) -> float:
        return self.base + self.each * size


def line_through(one: tuple[float, float], other: tuple[float, float]) -> Line:
    """The line through two points (size, value)."""
    (x, y), (further, value) = one, other
    if further == x:
        raise ValueError(f"a line needs two different sizes, got {x:g} twice")
    each = (value - y) / (further - x)
    return Line(y - each * x, each)


def rising_line(one: tuple[float, float], other: tuple[float, float]) -> Line:
    """As `line_through`, for what cannot fall with the size: if the larger size was cheaper by chance, their mean."""
    line = line_through(one, other)
    return line if line.each >= 0 else Line((one[1] + other[1]) / 2, 0.0)


def short(value: float, unit: str = "") -> str:
    """A figure with three significant digits: 1.23 GB of the unit B, 45.6 million without a unit."""
    bytes_ = unit.startswith("B")
    for factor, prefix, word in ((1e12, "T", "trillion"), (1e9, "G", "billion"), (1e6, "M", "million"), (1e3, "k", "")):
        if value >= factor and (bytes_ or word):
            return f"{_digits(value / factor)} {prefix + unit if bytes_ else word}"
    return f"{_digits(value)} {unit}".rstrip()


def _digits(value: float) -> str:
    return f"{float(f'{value:.3g}'):,.0f}" if value >= 100 else f"{value:.3g}"
