"""Which documents of a feed match which patterns: what others find out for a broker that leaves matching to them.

Invariant: the answer is that of documents, patterns and mappings alone, so it is the same in every
process, and every time.
Cost: that of compiling the patterns once, and of reading and matching.
"""

import logging
from collections.abc import Sequence
from typing import Final

import numpy as np

from pathcast.kernels import Int64s
from pathcast.matching import Subscriptions

from ..document_groups_from_log import LoggedDocuments
from ..feed_mediators import MediatorSpans
from .match_logged_documents import LogMatcher, Validity
from .subscription_spans import OPEN

_LOGGER: Final = logging.getLogger(__name__)


class PatternMatcher:
    """Matches documents of a log against patterns, which may become more. One thread."""

    def __init__(self) -> None:
        self._matcher = LogMatcher(Subscriptions().compile(), 0)
        self.patterns: list[str] = []

    def add(self, patterns: Sequence[str]) -> None:
        """More patterns; each is given once."""
        self._matcher.add(patterns)
        self.patterns += patterns

    def match(self, feed: str, documents: LoggedDocuments, mediators: MediatorSpans = ()) -> tuple[Int64s, Int64s]:
        """The sequences of documents, and the place of the pattern that each matches."""
        count = len(self.patterns)
        none = np.zeros(count, dtype=np.int32)
        always = Validity(np.zeros(count, dtype=np.int64), np.full(count, OPEN), none, ((),), none, ("",))
        found = self._matcher.match(feed, documents, always, {}, mediators)
        for place, error in found.errors.items():
            _LOGGER.error("document %d was accepted, but cannot be matched: %s", documents.sequences[place], error)
        return np.array(documents.sequences, dtype=np.int64)[found.documents], found.rows
