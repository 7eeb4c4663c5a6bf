"""A broker among several on one JetStream log: it stands by, takes over, and stops when another one has taken over.

    stands by ──lease is free──▶ active ──stopped────────▶ released: a standby takes the lease at once
     follows the log            renews the lease ──taken──▶ deposed: answers nothing more, the process ends

A standby applies the records of the log to its state and its indexes as they come, so at a take-over it reads only the
last few.

Invariant: only the holder of the lease opens the log, and opening it fences the broker that wrote to it before. A
broker that slept through its lease can therefore append nothing; and since it answers only while its lease is valid, it
delivers nothing either that its successor knows to be acknowledged.
Cost: one request per poll while nothing happens; a follower reads each record once.
"""

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from pathcast.errors import PathcastError
from pathcast.log import FencedError, JetStreamLog, LogError, LogLease

from .broker import Broker
from .restart import restored
from .restart_snapshot import Restored
from .settings.broker_sections import BrokerSettings

# Seconds between two looks of a standby, and renewals per lease.
_POLL_SECONDS: Final = 0.2
_RENEWALS: Final = 5
_LOGGER: Final = logging.getLogger(__name__)


class Standby:
    """One of the brokers on a log; `is_active` once `stand_by` has taken the lease. Close it after the broker."""

    def __init__(self, settings: BrokerSettings, address: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._settings, self._clock = settings, clock
        self._lease: LogLease = settings.jetstream.lease(address, clock)
        self._log: JetStreamLog | None = None
        self._restored: Restored | None = None
        self._snapshot = settings.snapshot()
        self._first = 0  # of the log, as far as the state knows
        self._end_following, self._end_renewing = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None
        self._on_end: Callable[[], None] = lambda: None
        self.is_active = False
        self.problem: PathcastError | None = None  # why the active broker must stop

    @property
    def holder(self) -> str:
        """The address of the broker that is active instead of this one; empty if none is known."""
        return "" if self.is_active and self.problem is None else self._lease.holder

    def is_valid(self) -> bool:
        """Whether the active broker may answer: nobody else can be active."""
        return self._lease.is_valid and self.problem is None

    def take(self) -> bool:
        """Take the lease if it is free; whether this broker is active now. Renews it from then on."""
        if self._lease.take():
            self.is_active = True
            self._thread = threading.Thread(target=self._renew, name="lease", daemon=True)
            self._thread.start()
        return self.is_active

    def stand_by(self, ended: Callable[[], None]) -> Callable[[], None]:
        """Follow the log in a thread of its own until the lease is free; returns what ends that early.

        `ended` is called once this broker is active, or cannot stand by any more.
        """
        thread = threading.Thread(target=self._follow, args=(ended,), name="standby", daemon=True)
        thread.start()

        def end() -> None:
            self._end_following.set()
            thread.join()

        return end

    def _follow(self, ended: Callable[[], None]) -> None:
        answered = True
        try:
            while not self._end_following.wait(_POLL_SECONDS):
                try:
                    if self.take():
                        return
                    self.catch_up()
                    answered = True
                except LogError as error:
                    if answered:
                        _LOGGER.warning("the standby cannot read the active broker's log: %s; retrying", error)
                    answered = False
        finally:
            ended()

    def catch_up(self) -> None:
        """Apply what the active broker has appended since the last call."""
        if self._log is None:
            self._log = self._settings.jetstream.followed()
        self._log.refresh()
        self._restored = restored(self._log, self._snapshot, self._restored)
        if self._log.first != self._first:
            self._first = self._log.first
            self._restored.state.forget_before(self._first)

    def broker(self) -> Broker:
        """The active broker, which owns the log from now on."""
        log = self._settings.jetstream.followed() if self._log is None else self._log
        self._log = None  # the broker closes it
        try:
            log.take_over()
            leases = self._settings.log.leases_on(log)
            return Broker(
                log,
                limits=self._settings.limits,
                leases=leases,
                clock=self._clock,
                snapshot=self._snapshot,
                before=self._restored,
                backfill=self._settings.backfill.above,
            )
        except BaseException:
            log.close()
            raise

    def watch(self, broker: Broker, ended: Callable[[], None]) -> None:
        """Call `ended` when the broker must stop, since it was deposed or has failed; `problem` says why."""
        self._on_end = ended

        def check(_: object) -> None:
            if broker.failure is not None:
                self._give_up(broker.failure)

        broker.listen(check)
        check(None)
        if self.problem is not None:
            ended()

    def _renew(self) -> None:
        answered = True
        while not self._end_renewing.wait(self._lease.seconds / _RENEWALS):
            try:
                self._lease.renew()
                answered = True
            except FencedError as error:
                self._give_up(error)
                return
            except LogError as error:
                if answered:
                    _LOGGER.warning("cannot renew the lease on the log: %s; the broker tries again", error)
                answered = False

    def _give_up(self, error: Exception) -> None:
        if self.problem is None:
            cause = error.__cause__ if isinstance(error.__cause__, PathcastError) else error
            reason = cause.reason if isinstance(cause, PathcastError) else str(cause)
            self.problem = PathcastError(f"this broker is no longer active: {reason}")
            self._on_end()

    def close(self) -> None:
        """Release the lease, so that a standby takes it at once."""
        self._end_renewing.set()
        if self._thread is not None:
            self._thread.join()
        with suppress(LogError):  # without answers, the lease runs out
            self._lease.release()
        self._lease.close()
        if self._log is not None:
            self._log.close()
