"""Verification: read a whole log, and report every problem instead of the first.

    every record        readable, with the right checksums, in order without gaps, times not decreasing
    checkpoint          readable; it covers all records that are no longer in the log, and none after the last

Cost: the whole log is read once; memory does not grow with the log, as consecutive damaged records are one problem.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from .log_contract import Log, LogEntry, LogError, TrimmedError

_PROGRESS = 1024  # records


@dataclass
class LogProblem:
    """Consecutive records with problems, and the reason of the first; `first` is None if no record is concerned."""

    first: int | None
    last: int | None
    reason: str

    def __str__(self) -> str:
        if self.first is None:
            return self.reason
        return f"record{'' if self.first == self.last else f's {self.first} to'} {self.last}: {self.reason}"


@dataclass
class LogReport:
    """The report of `verify`. `checkpoint` is the sequence of the checkpoint, if it is readable."""

    first: int
    head: int
    records: int = 0
    bytes: int = 0
    checkpoint: int | None = None
    problems: list[LogProblem] = field(default_factory=list)


def verify(log: Log, *, progress: Callable[[int], object] = lambda done: None) -> LogReport:
    """Read all records and the checkpoint of a log; `progress` gets the number of sequences that were looked at.

    Records that are trimmed in the meantime are no problem.

    >>> import tempfile
    >>> from pathcast.log import LogRecord, SqliteLog, verify
    >>> log = SqliteLog(tempfile.mkdtemp())
    >>> log.append([LogRecord("document", b"{}", b"<a/>")])
    1
    >>> verify(log)
    LogReport(first=1, head=1, records=1, bytes=6, checkpoint=None, problems=[])
    >>> log.close()
    """
    report = LogReport(log.first, log.head)
    time = 0
    for entry in _readable(log, report):
        report.records += 1
        report.bytes += len(entry.meta) + len(entry.body)
        if entry.time < time:
            _add(report, entry.sequence, f"time {entry.time} is earlier than {time}, the time of the previous record")
        time = max(time, entry.time)
        if entry.sequence % _PROGRESS == 0:
            progress(entry.sequence - report.first + 1)
    _verify_checkpoint(log, report)
    progress(report.head - report.first + 1)
    return report


def _readable(log: Log, report: LogReport) -> Iterator[LogEntry]:
    """The records that can be read; the others are noted in the report."""
    expected, end = report.first, report.head + 1
    while expected < end:
        try:
            for entry in log.read(expected, end):
                if entry.sequence != expected:
                    break
                yield entry
                expected += 1
            if expected < end:
                _add(report, expected, "missing")
                expected += 1
        except TrimmedError as error:
            expected = max(expected + 1, error.first)
        except LogError as error:
            _add(report, expected, error.reason)
            expected += 1


def _add(report: LogReport, sequence: int, reason: str) -> None:
    last = report.problems[-1] if report.problems else None
    if last is not None and last.last == sequence - 1:
        last.last = sequence
    else:
        report.problems.append(LogProblem(sequence, sequence, reason))


def _verify_checkpoint(log: Log, report: LogReport) -> None:
    try:
        checkpoint = log.checkpoint()
    except LogError as error:
        report.problems.append(LogProblem(None, None, error.reason))
        return
    covered = 0 if checkpoint is None else checkpoint.sequence
    report.checkpoint = None if checkpoint is None else covered
    if covered > log.head:
        reason = f"the checkpoint covers records up to {covered}, but the log ends with record {log.head}"
        report.problems.append(LogProblem(None, None, reason))
    if covered < report.first - 1:
        reason = f"records {covered + 1} to {report.first - 1} are neither in the log nor covered by a checkpoint"
        report.problems.append(LogProblem(None, None, reason))
