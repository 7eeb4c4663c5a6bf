"""The lock of a log's folder, on its file `.lock`: one process appends; others may read.

The operating system releases the lock when its process ends, however it ends.
"""

import fcntl
import os
from pathlib import Path

from pathcast.store import flush

from ..log_contract import LogError


def sole_lock(folder: Path) -> int:
    """Lock a folder to append, and create it if it is missing; closing the returned descriptor releases the lock."""
    try:
        if not folder.exists():
            folder.mkdir(parents=True)
            flush(folder.parent)
        lock = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise LogError(f"cannot open a log in {folder}: {error.strerror}; give a folder that can be written") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise LogError(f"the log in {folder} is in use by another process; stop that process first") from None
    return lock


def shared_lock(folder: Path) -> tuple[int | None, bool]:
    """Keep others from appending while a log is read: the lock, if there is one, and whether a process appends now."""
    try:
        lock = os.open(folder / ".lock", os.O_RDONLY)
    except OSError:  # a copy has no lock, and needs none
        return None, False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None, True
    return lock, False
