"""Rebuilding the delivery indexes after a restart, in the background.

The documents that are in the log already are matched again, oldest first, while new ones are published. A search that
comes to a part of the log which is not matched yet reads that part by itself (delivery_search.py).

Cost: that of reading and matching all documents that the log retains, once, in a thread of its own.
"""

import logging
import threading
from collections.abc import Callable, Mapping
from typing import Final

from pathcast.broker_log import LoggedDocuments, MediatorSpans, groups_of_documents
from pathcast.log import Log, LogError, TrimmedError

from ..feed_index import FeedIndex

_LOGGER: Final = logging.getLogger(__name__)


class Rebuild:
    """Matches the documents before `end` against the patterns that are `rebuilt`."""

    def __init__(
        self, log: Log, indexes: Mapping[str, FeedIndex], end: int, mediators: Mapping[str, MediatorSpans]
    ) -> None:
        self._log = log
        self._indexes = dict(indexes)
        self._mediators = dict(mediators)  # a trim meanwhile forgets those of documents that this may still have
        self._end = end
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="rebuild", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End early; what is not rebuilt is found by reading the log."""
        self._stopped.set()
        self._thread.join()

    def wait(self) -> None:
        """Wait until everything is rebuilt."""
        self._thread.join()

    @property
    def done(self) -> bool:
        """Whether everything is rebuilt."""
        return not self._thread.is_alive()

    def _run(self) -> None:
        begin = self._log.first
        while not self._stopped.is_set():
            try:
                for group in groups_of_documents(self._log, begin, self._end):
                    if self._stopped.is_set():
                        return
                    for name, documents in group.items():
                        index = self._indexes.get(name)
                        if index is None:  # the feed was deleted: its documents have expired
                            continue
                        mine = without(documents, index.computed.leaves)
                        if mine.sequences:
                            index.earlier.append(index.match_again(mine, self._mediators.get(name, ())))
                    begin = 1 + max(documents.sequences[-1] for documents in group.values())
                    self._complete(begin - 1)
            except TrimmedError as error:
                begin = error.first
                continue
            except LogError as error:
                _LOGGER.error("searches for older documents read the log, without an index: %s", error.reason)  # noqa: TRY400
                return
            self._complete(self._end - 1)
            return

    def _complete(self, sequence: int) -> None:
        for index in self._indexes.values():
            index.earlier_to = sequence


def without(documents: LoggedDocuments, left: Callable[[int], bool]) -> LoggedDocuments:
    """The documents that are not left to Spark."""
    kept = [place for place, sequence in enumerate(documents.sequences) if not left(sequence)]
    if len(kept) == len(documents.sequences):
        return documents
    schemas = {at: documents.schemas[place] for at, place in enumerate(kept) if place in documents.schemas}
    return LoggedDocuments(
        [documents.sequences[place] for place in kept], [documents.bodies[place] for place in kept], schemas
    )
