"""Committed batches: a batch that is committed again is answered as the first time, and publishes nothing.

A batch is known by its publisher and the id that the publisher gave it. The window is counted in batches, not in time:
the last 256 of each publisher, for the 1,024 publishers of a tenant that committed last. One publisher therefore never
pushes another one's batches out of the window, however fast it commits, and a stream that stands still for weeks finds
its last batch.

Invariant: the window depends on the log alone; a checkpoint holds it, so trimming does not shorten it.
Cost: some 300 bytes per batch in the window.
"""

from collections import OrderedDict
from typing import Final, NamedTuple

from .broker_records import BatchRecord

BATCHES: Final = 256
PUBLISHERS: Final = 1_024


class SavedBatch(NamedTuple):
    """A batch in a checkpoint: the sequence of its record, and the record."""

    sequence: int
    record: BatchRecord


class CommittedBatches:
    """The batches that publishers committed last."""

    def __init__(self, batches: int = BATCHES, publishers: int = PUBLISHERS) -> None:
        self._batches = batches
        self._publishers = publishers
        # Per tenant, its publishers, the one that committed last at the end; per publisher, its batches.
        self._of: dict[str, OrderedDict[str, OrderedDict[str, SavedBatch]]] = {}

    def add(self, sequence: int, record: BatchRecord) -> None:
        """A batch was appended."""
        publishers = self._of.setdefault(_tenant_of(record.publisher), OrderedDict())
        batches = publishers.setdefault(record.publisher, OrderedDict())
        publishers.move_to_end(record.publisher)
        batches[record.batch] = SavedBatch(sequence, record)
        batches.move_to_end(record.batch)
        if len(batches) > self._batches:
            batches.popitem(last=False)
        if len(publishers) > self._publishers:
            publishers.popitem(last=False)

    def find(self, publisher: str, batch: str) -> SavedBatch | None:
        """A batch of a publisher, if it is in the window."""
        publishers = self._of.get(_tenant_of(publisher))
        batches = None if publishers is None else publishers.get(publisher)
        return None if batches is None else batches.get(batch)

    def saved(self) -> list[SavedBatch]:
        """All batches in the order of the log, as `add` takes them."""
        found = (
            each for publishers in self._of.values() for batches in publishers.values() for each in batches.values()
        )
        return sorted(found, key=lambda each: each.sequence)


def _tenant_of(publisher: str) -> str:
    """A publisher's name begins with its tenant and a slash."""
    return publisher.partition("/")[0]
