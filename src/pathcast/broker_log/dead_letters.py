"""Dead letters: deliveries that were given up, per subscription.

    delivery ──max_deliver attempts──▶ dead letter ──replay──▶ due again
             ──document trimmed──────▶

A dead letter counts as acknowledged: the cursor passes it, and it is not delivered again until it is replayed. A
replayed dead letter is *revived*: due again whatever the cursor's floor is, until it is acknowledged or dies again.

Invariant: a sequence is a dead letter or revived, never both.
Cost: a subscription keeps its `MOST` newest dead letters; `total` counts all that there ever were.
"""

from bisect import bisect_right
from collections.abc import Iterable
from typing import Final

from msgspec import Struct

MOST: Final = 10_000
# Reasons.
ATTEMPTS: Final = "max_deliver"
TRIMMED: Final = "trimmed"


class DeadLetter(Struct, frozen=True, gc=False):
    """A delivery that was given up after some attempts. `reason`: `max_deliver`, or `trimmed` with its document."""

    sequence: int
    attempts: int
    reason: str


class DeadLetterRecord(Struct, frozen=True):
    """Deliveries of a subscription become dead letters; the cursor's record that follows acknowledges them."""

    tenant: str
    id: str
    letters: tuple[DeadLetter, ...]


class DeadLetterReplayRecord(Struct, frozen=True):
    """Dead letters of a subscription are due again."""

    tenant: str
    id: str
    sequences: tuple[int, ...]


class DeadLetters(Struct, gc=False):
    """The dead letters of one subscription, by sequence."""

    letters: dict[int, DeadLetter] = {}
    total: int = 0

    def add(self, letters: Iterable[DeadLetter]) -> None:
        """Keep more dead letters; beyond `MOST`, those of the oldest documents are forgotten."""
        kept = dict(self.letters)
        for letter in letters:
            kept[letter.sequence] = letter
            self.total += 1
        # Replaced, not changed: other threads read it.
        self.letters = {sequence: kept[sequence] for sequence in sorted(kept)[-MOST:]}

    def remove(self, sequences: Iterable[int]) -> None:
        """Forget dead letters."""
        gone = set(sequences)
        self.letters = {sequence: each for sequence, each in self.letters.items() if sequence not in gone}

    def page(self, after: int, limit: int) -> tuple[list[DeadLetter], bool]:
        """At most `limit` dead letters after a sequence, in order, and whether there are more."""
        letters = self.letters
        sequences = list(letters)
        begin = bisect_right(sequences, after)
        return [letters[each] for each in sequences[begin : begin + limit]], begin + limit < len(sequences)
