"""Output that cannot be written: the command ends with its own status and without a traceback.

Exit status 141 when the reader of the output has gone (`| head`), 74 when the disk is full. Both differ from 1, which
is an answer of some commands. A closed stdin or stdout is treated as empty.
"""

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import typer

READER_GONE = 141  # what a shell reports for a process that SIGPIPE ended
NO_ROOM = 74  # an error of input or output, in sysexits.h
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}


@contextmanager
def output_that_may_end() -> Iterator[None]:
    """Handle output errors of a command, also of its help and version: a reader that has gone, or a full disk."""
    try:
        yield
    except BrokenPipeError:
        _write_nowhere()
        sys.exit(READER_GONE)
    except SystemExit as left:
        # Typer and Rich handle a reader that has gone themselves, and exit with 1.
        if not isinstance(left.__context__, BrokenPipeError):
            raise
        _write_nowhere()
        sys.exit(READER_GONE)
    except OSError as error:
        if error.filename is not None or error.errno not in _FULL:
            raise
        _write_nowhere()
        advice = "the output is incomplete: free disk space or use another disk, and run the command again"
        typer.echo(f"error: cannot write the output: {error.strerror}; {advice}", err=True)
        sys.exit(NO_ROOM)


def open_what_is_closed() -> None:
    """Open a stdin and stdout for commands if the shell has closed them (`>&-`)."""
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115 — for as long as the process lives
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115


def _write_nowhere() -> None:
    """Redirect stdout to the null device: Python flushes it again at exit (as its documentation advises)."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
