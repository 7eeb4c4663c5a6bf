"""Matches: the result for one document, computed on demand."""

from collections.abc import Iterator

import numpy as np

from pathcast.kernels import Int32s

from .match_expansion import Expansion


class Matches:
    """The subscriptions that a document matches, as of the moment it was matched.

    >>> subscriptions = pathcast.Subscriptions()
    >>> subscriptions.add_many(["//a", "//b", "/*"], subscribers=["ada", "bob", "ada"])
    range(1, 4)
    >>> matches = subscriptions.compile().match("<a/>")
    >>> matches.ids.tolist(), matches.subscribers, 2 in matches, len(matches)
    ([1, 3], ['ada'], False, 2)
    """

    __slots__ = ("_entries", "_expansion", "_ids")

    def __init__(self, entries: Int32s, expansion: Expansion) -> None:
        self._entries = entries
        self._expansion = expansion
        self._ids: Int32s | None = None

    @property
    def ids(self) -> Int32s:
        """The ids, ascending; read-only."""
        if self._ids is None:
            self._ids = self._expansion.ids_of(self._entries)
        return self._ids

    @property
    def subscribers(self) -> list[str]:
        """The names of the subscribers, sorted, each once; subscriptions without one don't appear."""
        return self._expansion.subscribers_of(self._entries)

    def __len__(self) -> int:
        return self._expansion.count(self._entries)

    def __bool__(self) -> bool:
        return len(self) > 0

    def __contains__(self, id: object) -> bool:
        if not isinstance(id, int | np.integer):
            return False
        ids = self.ids
        at = int(np.searchsorted(ids, id))
        return at < len(ids) and int(ids[at]) == id

    def __iter__(self) -> Iterator[int]:
        return iter(self.ids.tolist())

    def __repr__(self) -> str:
        shown = ", ".join(map(str, self.ids[:10].tolist())) + (", …" if len(self) > 10 else "")
        return f"<Matches: {len(self):,} ({shown})>" if self else "<Matches: none>"
