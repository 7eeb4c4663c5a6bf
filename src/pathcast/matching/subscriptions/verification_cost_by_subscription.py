"""Expensive subscriptions: the patterns on which an engine spends most of its verification time.

A `Costed` engine counts, per candidate pattern, the documents that it verifies and the approximate bytes of values that
it reads. Shared work counts for the first pattern that needs it. Patterns found by look-ups alone are never verified
and cost next to nothing.

Cost: one pass over the patterns that were tried, on demand.
"""

from typing import Any, NamedTuple

import numpy as np

from ..engine_contract import Costed, Costs, Engine
from ..results.match_expansion import Expansion

SHOWN = 5
"""The number of expensive patterns that `statistics` shows, and of subscriptions of each."""

# Verifying one candidate takes about as long as reading this many bytes.
_BYTES_PER_TRY = 128
# A step of a full evaluation takes about as long as reading this many bytes.
_BYTES_PER_STEP = 200


class Cost(NamedTuple):
    """The cost of a pattern: the number of verified documents, and its share of all verification work."""

    entry: int
    tries: int
    share: float

    def __str__(self) -> str:
        documents = "1 document" if self.tries == 1 else f"{self.tries:,} documents"
        return f"candidate in {documents} so far, {self.share:.0%} of the verification work"


def most_expensive(engine: Engine, expansion: Expansion) -> list[dict[str, Any]]:
    """The patterns that have cost most, the most expensive first, each with the first of its subscriptions."""
    found: list[dict[str, Any]] = []
    for cost in _costs(engine, expansion):
        ids = expansion.ids_of(np.array([cost.entry], dtype=np.int32))
        if len(ids):
            found.append(
                {
                    "xpath": engine.table.text(cost.entry),
                    "ids": ids[:SHOWN].tolist(),
                    "subscriptions": len(ids),
                    "tried on": cost.tries,
                    "share": cost.share,
                }
            )
        if len(found) == SHOWN:
            break
    return found


def cost_of(engine: Engine, expansion: Expansion, id: int) -> Cost | None:
    """The cost of a subscription's pattern; None for one that was never tried."""
    costs = _costs(engine, expansion)
    if not costs:
        return None
    entries = np.array([cost.entry for cost in costs], dtype=np.int32)
    offsets, ids = expansion.ids_of_all(np.arange(len(entries) + 1), entries)
    place = np.flatnonzero(ids == id)
    return costs[int(np.searchsorted(offsets, place[0], side="right")) - 1] if len(place) else None


def _costs(engine: Engine, expansion: Expansion) -> list[Cost]:
    """The costs of all patterns that were tried, the most expensive first."""
    if engine.table is not expansion.rows.table:  # the engine is about to change
        return []
    parts = [engine.costs()] if isinstance(engine, Costed) else []
    if (opaque := engine.table.opaque) is not None:
        evaluated, tried, steps = opaque.costs()
        if parts:
            tried = np.where(np.isin(evaluated, parts[0].entries), 0, tried)  # counted when its tree was tried
        parts.append(Costs(evaluated, tried, _BYTES_PER_STEP * steps))
    entries, tries, read = Costs.of(parts)
    distinct, of = np.unique(entries, return_inverse=True)
    work = np.bincount(of, read + _BYTES_PER_TRY * tries, len(distinct))
    times = np.bincount(of, tries, len(distinct))
    order = np.argsort(-work, kind="stable")
    total = max(1.0, float(work.sum()))
    return [Cost(int(distinct[k]), int(times[k]), float(work[k]) / total) for k in order]
