"""What becomes of a command whose output can't be written: it ends, with a status of its own and without a traceback.

Exit status 141 when whoever reads the output has gone (`| head`), 74 when there is no room for it. Neither can be taken
for an answer, as 1 would be. A stdin or stdout that was closed is an empty one.
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
    """Whatever a command prints within, its help and version among it, may find nobody who reads it, or no room."""
    try:
        yield
    except BrokenPipeError:
        _write_nowhere()
        sys.exit(READER_GONE)
    except SystemExit as left:
        # Typer and Rich notice by themselves that the reader has gone, and leave with 1.
        if not isinstance(left.__context__, BrokenPipeError):
            raise
        _write_nowhere()
        sys.exit(READER_GONE)
    except OSError as error:
        if error.filename is not None or error.errno not in _FULL:
            raise
        _write_nowhere()
        typer.echo(f"error: the output can't be written: {error.strerror}", err=True)
        sys.exit(NO_ROOM)


def open_what_is_closed() -> None:
    """Let commands find a stdin and a stdout, also where the shell has closed them (`>&-`)."""
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115 — for as long as the process lives
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115


def _write_nowhere() -> None:
    """Python flushes stdout once more on its way out: its documentation advises to let that go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
