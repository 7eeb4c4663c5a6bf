"""Trimming the log of a broker that works: a checkpoint of what is in force, then the records before it go.

    sequencer's thread   begin ─ pack ─ batch ─ pack ─ batch ─ pack ─ batch …                  … ─ forget
    caller's thread                                                   write checkpoint ─ trim ──┘

Invariant: what the checkpoint says is what the records up to its sequence add up to, and no record goes that it does
not cover.
Cost to the sequencer: with a million subscriptions 28 ms to begin; then some thousand at a time, at most 3 ms, with
batches in between (`CheckpointPacking`). The files are the caller's.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Protocol, TypeVar

from pathcast.broker_log import BrokerState, CheckpointPacking
from pathcast.log import Log, LogFullError, ReadLeases

T = TypeVar("T")


class Performing(Protocol):
    """Has work done in the sequencer's thread, between batches."""

    def __call__(self, work: Callable[[], T], /) -> "Future[T]":
        """The result of the work, once it is done."""


class LogTrimming:
    """Trims one log; calls in several threads come one after the other."""

    def __init__(
        self,
        log: Log,
        state: BrokerState,
        leases: ReadLeases,
        perform: Performing,
        forget_before: Callable[[int], None],
    ) -> None:
        """`forget_before`: drops what concerns documents before a sequence, in the sequencer's thread."""
        self._log = log
        self._state = state
        self._leases = leases
        self._perform = perform
        self._forget_before = forget_before
        self._checkpoint = 0  # the sequence of the one that this process wrote last
        self.lock = threading.Lock()  # while it is held, nothing is trimmed

    def trim(self, begin: int) -> int:
        """Remove records before `begin`, as far as leases and the log's units allow; returns the oldest that is left.

        `LogFullError` if a checkpoint is needed and the disk has no space for it.
        """
        with self.lock:
            end = min(begin, self._state.head + 1)
            try:
                # One checkpoint serves until records after it are trimmed: packing takes time from other requests.
                if self._checkpoint < end - 1:
                    packing = self._packed()
                    self._log.write_checkpoint(packing.sequence, *packing.pieces())
                    self._checkpoint = packing.sequence
            except LogFullError:
                # Trimming must free a full disk: what the latest checkpoint covers can go without another.
                latest = self._log.checkpoint()
                if latest is None:
                    raise
                end = min(end, latest.sequence + 1)
            first = self._leases.trim(end)
            self._perform(lambda: self._forget_before(first)).result()
            return first

    def _packed(self) -> CheckpointPacking:
        """The state as of a moment, packed between the batches that follow."""
        packing = self._perform(self._state.begin_packing).result()
        while packing.left:
            self._perform(packing.pack).result()
        return packing
