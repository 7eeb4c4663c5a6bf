"""Snapshot renewal: when much has changed, a process of its own writes the restart snapshot while the broker works.

    state ──enough changes──▶ snapshot_process.py ──▶ snapshot
          ◀──these are saved────┘

A broker that is killed then restarts as fast as one that was stopped. A process, not a thread: packing a million
subscriptions would keep the broker's threads waiting.

Invariant: one process at a time, and none after `close`. A process that fails or is killed leaves the snapshot before.
Cost: at most a quarter of the time, the process runs, at the lowest priority.
"""

import logging
import subprocess
import sys
import threading
import time
from typing import Final

from msgspec import json

from .broker import Broker
from .settings.broker_sections import BrokerSettings

# Seconds between two looks.
_EVERY: Final = 2.0
# Reading this many changes takes a second at most; of many subscriptions, this share must have changed.
CHANGES: Final = 20_000
_SHARE: Final = 10
# The process rests this many times as long as it ran.
_REST: Final = 3
_LOGGER: Final = logging.getLogger(__name__)


class SnapshotRenewal:
    """Renews the snapshot of a broker from a thread of its own, until it is closed."""

    def __init__(self, broker: Broker, settings: BrokerSettings, *, changes: int = CHANGES) -> None:
        """`changes`: with fewer since the last snapshot, there is no other."""
        self._broker = broker
        self._changes = changes
        # All that the process needs; the rest may hold secrets.
        needed = BrokerSettings(data=settings.data, log=settings.log, jetstream=settings.jetstream)
        self._settings = json.encode(needed) + b"\n"
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._run, name="snapshot", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the process, if one runs, and the thread."""
        self._closed.set()
        with self._lock:
            if self._process is not None:
                self._process.kill()
        self._thread.join()

    def _run(self) -> None:
        rest = _EVERY
        while not self._closed.wait(rest):
            rest = _EVERY
            if self._is_due():
                begin = time.monotonic()
                self._renew()
                rest = max(_EVERY, _REST * (time.monotonic() - begin))

    def _is_due(self) -> bool:
        changes, records = self._broker.state.since_snapshot
        few = max(self._changes, len(self._broker.state.subscriptions) // _SHARE)
        snapshot = self._broker.snapshot
        return snapshot is not None and (changes >= few or snapshot.is_due(0, records))

    def _renew(self) -> None:
        changes = self._broker.state.changes  # the process reads the log later, so it finds at least these
        with self._lock:
            if self._closed.is_set():
                return
            self._process = subprocess.Popen(
                [sys.executable, "-m", f"{__package__}.snapshot_process"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,  # Ctrl-C is for the broker
            )
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(self._settings)
            process.stdin.flush()
            said = process.stdout.read()
        except OSError as error:
            said = str(error).encode()
        finally:
            status = process.wait()
            process.stdin.close()
            process.stdout.close()
        if status == 0:
            self._broker.state.saved(changes)
        elif not self._closed.is_set():
            reason = said.decode(errors="replace").strip() or f"the process ended with status {status}"
            _LOGGER.warning("cannot renew the snapshot for restarts: %s; the broker tries again", reason)
