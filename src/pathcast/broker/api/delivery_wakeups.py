"""Wakeups: readers that wait for a delivery sleep until a batch has one for them.

A reader waits under keys: the patterns of its subscriptions, per feed, and the subscriptions themselves. After each
batch the sequencer's thread looks up which of the batch's patterns somebody waits for, one look-up in an array per
match, or per pattern of a set that documents share, and wakes only those readers. Ten thousand idle readers cost
nothing per batch.

Invariant: a reader registers before it searches, so a batch that comes in between wakes it.
"""

import asyncio
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from typing import Final

import numpy as np

from ..sequencing.batch_processing import Processed

# The key of readers that wait for feeds that do not exist yet, or not any more: each has patterns of its own.
FEEDS: Final = "feeds"


class Wakeups:
    """The readers that wait, by what they wait for. All methods but `processed` belong to the event loop's thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: dict[Hashable, set[asyncio.Event]] = {}
        self._marks: dict[str, np.ndarray[tuple[int], np.dtype[np.bool_]]] = {}
        self.closing = False  # the server stops: readers return what there is

    @contextmanager
    def registered(self, keys: Iterable[Hashable]) -> Iterator[asyncio.Event]:
        """An event that is set when something happens under one of the keys."""
        event = asyncio.Event()
        kept = list(dict.fromkeys(keys))  # equal subscriptions have equal patterns
        for key in kept:
            self._waiting.setdefault(key, set()).add(event)
            if isinstance(key, tuple) and key[0] == "pattern":
                self._mark(key[1], key[2], waited=True)
        if self.closing:
            event.set()
        try:
            yield event
        finally:
            for key in kept:
                events = self._waiting[key]
                events.discard(event)
                if not events:
                    del self._waiting[key]
                    if isinstance(key, tuple) and key[0] == "pattern":
                        self._mark(key[1], key[2], waited=False)

    def close(self) -> None:
        """Wake all readers permanently, because the server stops."""
        self.closing = True
        for events in self._waiting.values():
            for event in events:
                event.set()

    def _mark(self, feed: str, pattern: int, *, waited: bool) -> None:
        marks = self._marks.get(feed)
        if marks is None or pattern >= len(marks):
            wider = np.zeros(max(1_024, 2 * pattern + 1), dtype=np.bool_)
            if marks is not None:
                wider[: len(marks)] = marks
            self._marks[feed] = marks = wider
        marks[pattern] = waited

    def processed(self, done: Processed) -> None:
        """A batch was matched; called in the sequencer's thread."""
        keys: list[Hashable] = [("subscription", tenant, id) for tenant, id, _ in done.changed]
        keys += [("subscriber", tenant, subscriber) for tenant, _, subscriber in done.changed]
        if done.has_feeds:
            keys.append(FEEDS)
        for feed, batch in done.matches:
            marks = self._marks.get(feed)
            if marks is not None:
                occurring = batch.occurring
                known = occurring[occurring < len(marks)]
                keys += [("pattern", feed, pattern) for pattern in np.unique(known[marks[known]]).tolist()]
        if keys:
            self._in_loop(self._wake, keys)

    def _wake(self, keys: list[Hashable]) -> None:
        for key in keys:
            for event in self._waiting.get(key, ()):
                event.set()

    def _in_loop(self, call: Callable[[list[Hashable]], None], keys: list[Hashable]) -> None:
        try:
            self._loop.call_soon_threadsafe(call, keys)
        except RuntimeError:  # the loop has ended: nobody waits any more
            return
