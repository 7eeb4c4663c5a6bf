"""The process that writes a broker's restart snapshot while the broker works (snapshot_renewal.py starts it).

    standard input ──settings, as JSON──▶ log, opened for reading ──▶ state, indexes ──▶ snapshot

It does what a restart does: it opens the snapshot before, or the checkpoint, reads the records after it, and writes the
result. The broker waits for nothing and needs no memory for it.

Invariant: the process ends when its standard input does, however the broker ends.
Cost: that of a restart, and 10 µs per subscription to write; at the lowest priority.
"""

import contextlib
import os
import sys
import threading
from contextlib import closing
from pathlib import Path

from msgspec import json

from pathcast.errors import PathcastError

from .restart import renew
from .settings.broker_sections import BrokerSettings


def main() -> None:
    """Write the snapshot that the settings on standard input describe; a failure is a line on standard output."""
    settings = json.decode(sys.stdin.buffer.readline(), type=BrokerSettings)
    threading.Thread(target=_end_with_broker, daemon=True).start()
    os.nice(19)
    with contextlib.suppress(OSError):  # if memory runs out, this process must end, not the broker
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    try:
        with closing(settings.followed_log()) as log:
            renew(settings.snapshot(), log)
    except (PathcastError, OSError) as error:
        sys.stdout.write(f"{error}\n")
        sys.exit(1)


def _end_with_broker() -> None:
    while os.read(0, 1):  # not by `sys.stdin`, whose lock the interpreter needs at its end
        pass
    os._exit(1)


if __name__ == "__main__":
    main()
