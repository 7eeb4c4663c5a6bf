"""Completions: results of other threads, handed to the event loop many at a time.

The sequencer completes a whole batch of requests at once. Each would wake the event loop by a system call of its own;
here the first wakes the loop, which then takes all that are there.

Invariant: what is completed after the loop began to take results wakes it again, so none waits.
"""

import asyncio
from collections import deque
from concurrent.futures import CancelledError, Future
from typing import Any, TypeVar

T = TypeVar("T")


class Completions:
    """Futures of other threads, awaited in one event loop. `result` is called in the loop's thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._done: deque[tuple[asyncio.Future[Any], Future[Any]]] = deque()
        self._woken = False

    async def result(self, future: "Future[T]") -> T:
        """The result of a future, or its error. If the caller is cancelled, the future is, too."""
        waiter: asyncio.Future[T] = self._loop.create_future()
        future.add_done_callback(lambda done: self._completed(waiter, done))
        try:
            return await waiter
        except asyncio.CancelledError:
            future.cancel()
            raise

    def _completed(self, waiter: "asyncio.Future[Any]", done: "Future[Any]") -> None:
        """A future is done; called in any thread."""
        self._done.append((waiter, done))
        if not self._woken:
            self._woken = True
            try:
                self._loop.call_soon_threadsafe(self._take)
            except RuntimeError:  # the loop has ended: nobody waits any more
                return

    def _take(self) -> None:
        self._woken = False  # first, so that whatever is completed from here on wakes the loop again
        while self._done:
            waiter, done = self._done.popleft()
            if waiter.done():
                continue
            try:
                error = done.exception()
            except CancelledError:
                waiter.cancel()
                continue
            if error is not None:
                waiter.set_exception(error)
            else:
                waiter.set_result(done.result())
