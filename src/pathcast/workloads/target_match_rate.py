"""Match rate: subscriptions that match a target share of the documents on average.

Candidates are drawn as usual and their share is measured on a sample of documents (path_selectivity.py). Each is kept
or dropped so that the mean of the kept ones follows the target: a candidate above the target is kept only while the
mean is at or below it, one at or below the target only while the mean is at or above it, and neither if the remaining
candidates could no longer balance it. So the result is a mix of matching and non-matching candidates, each an ordinary
walk, and every part of it has about the target rate. If nothing was kept for long, the direction no longer matters,
only that the target can still be reached.

The sum of all shares misses its target by at most a tenth, or by the share of one document. If no candidate fits any
more, a `LimitError` reports the rate that was reached. The rate holds for the sample; on other documents of the same
kind it is close, but a rate below one document of the sample cannot be measured precisely (use a larger sample).
"""

from collections.abc import Callable, Iterable

from pathcast.errors import LimitError
from pathcast.workloads.path_selectivity import Sample
from pathcast.workloads.schema_walks import Walker

PATIENCE = 50_000
HASTE = 5_000
REMEMBERED = 500_000
REPORT_EVERY = 100


def draw_at_rate(
    walker: Walker,
    count: int,
    distinct: bool,
    target: float,
    documents: Iterable[bytes],
    progress: Callable[[int], object] | None,
) -> list[str]:
    """`count` paths whose mean share of the documents is about `target`."""
    sample = Sample(documents)
    budget = Budget(target, count, 1 / sample.documents)
    shares: dict[str, float] = {}
    found: list[str] = []
    kept: set[str] = set()
    dropped = 0
    while len(found) < count:
        path = walker.path()
        expression = str(path)
        if not distinct or expression not in kept:
            share = shares.get(expression)
            if share is None:
                if len(shares) >= REMEMBERED:
                    shares.clear()
                share = shares[expression] = sample.share(path)
            if budget.spend(share, patient=dropped < HASTE):
                found.append(expression)
                if distinct:
                    kept.add(expression)
                dropped = 0
                if progress is not None and len(found) % REPORT_EVERY == 0:
                    progress(len(found))
                continue
        dropped += 1
        if dropped > PATIENCE:
            raise budget.failure("distinct subscriptions" if distinct else "subscriptions")
    if progress is not None:
        progress(count)
    return found


class Budget:
    """The sum of shares that may be spent, target × count, and the sum spent so far."""

    def __init__(self, target: float, count: int, smallest: float) -> None:
        self.target = target
        self.count = count
        self.kept = 0
        self.spent = 0.0
        self.highest, self.lowest = 0.0, 1.0  # of all candidates seen
        self._aim = max(0.02 * target * count, smallest / 2)
        self._tolerance = max(0.1 * target * count, smallest)

    def spend(self, share: float, *, patient: bool) -> bool:
        """Whether to keep a candidate with this share."""
        self.highest, self.lowest = max(self.highest, share), min(self.lowest, share)
        behind = self.target * self.kept - self.spent
        if patient and (behind < 0 if share > self.target else behind > 0):
            return False
        margin = self._aim if patient else self._tolerance
        left, others = self.target * self.count - self.spent - share, self.count - self.kept - 1
        if not others * self.lowest - margin <= left <= others * self.highest + margin:
            return False
        self.spent += share
        self.kept += 1
        return True

    def failure(self, what: str) -> LimitError:
        """The error, with the rate that was reached."""
        mean = self.spent / max(1, self.kept)
        return LimitError(
            f"a match rate of {self.target:.4%} cannot be reached: {self.kept:,} of {self.count:,} {what} were found, "
            f"with a mean of {mean:.4%}; candidates match {self.lowest:.2%} to {self.highest:.2%} of the documents; "
            "change depth, wildcard, descendant, predicates or the documents"
        )
