"""Why a shard costs other than predicted, or than other shards: the measured parts of its time."""

from math import log
from statistics import mean, median

from pathcast_lab.harness import Rows, number_in

SMALLER, SHARD = "smaller shard", "shard"


def why_not_predicted(rows: Rows) -> str:
    """The parts of the time of the shard that is furthest from its prediction."""
    smaller, shards = rows.where(part=SMALLER), rows.where(part=SHARD)
    furthest = max(shards, key=lambda row: abs(log(number_in(row, "us") / number_in(row, "predicted_us"))))
    read, match = (number_in(furthest, name) for name in ("read_us", "match_us"))
    reading = mean(smaller.numbers("read_us"))
    matching = sum(smaller.numbers("match_us"))
    found, found_in_smaller = number_in(furthest, "matches"), sum(smaller.numbers("matches"))
    return (
        f"On shard {furthest['shard']}, reading took {read:.1f} µs per document (predicted {reading:.1f} µs), matching "
        f"{match:.1f} µs (predicted {number_in(furthest, 'predicted_us') - reading:.1f} µs). A match took "
        f"{match / found * 1e3:,.0f} ns, and {matching / found_in_smaller * 1e3:,.0f} ns in the smaller shards."
    )


def why_unlike(rows: Rows) -> str:
    """The parts of the time of the slowest shard, and of the median one."""
    shards = rows.where(part=SHARD)
    slowest = max(shards, key=lambda row: number_in(row, "us"))
    read, match, matches = (
        f"{number_in(slowest, name):,.1f} (median {median(shards.numbers(name)):,.1f})"
        for name in ("read_us", "match_us", "matches")
    )
    return (
        f"The slowest shard took {read} µs to read the same documents as all others, and {match} µs to find {matches} "
        "matches per document."
    )
