"""Rivals that are programs of the user's: named with `--rival NAME=PATH`, driven by lines of text.

We ship none of these rivals. The user wraps one in a small program, the *driver*, which reads lines from its standard
input and answers on its standard output, both UTF-8. Patterns and events count from 1, in the order given:

    we write          the driver answers
    pattern TEXT      nothing
    event TEXT        nothing; it keeps the event for `match` and `run`
    build             `ready`, once all patterns are indexed
    match             one line per event: the numbers of the patterns that match, in any order, with spaces between
    run N             the number of matches in N passes over all events

At the end of its input the driver exits. It may answer `error REASON` at any time. `match` is for checking answers,
`run` for timing: N passes over thousands of events cost one line each way, so the pipe costs next to nothing.

Invariant: an answer that is late, malformed or missing raises `RivalError`, with what the program wrote to its standard
error; the number of matches of a timed run is checked against that of `match`.
"""

import shlex
import subprocess
import tempfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Timer
from time import perf_counter
from types import TracebackType
from typing import Self

from pathcast.errors import PathcastError

from .run_context import CheckError, Run

# How much of a program's messages an error shows.
_SHOWN = 400


class RivalError(PathcastError):
    """A rival is unknown, does not start, or does not keep to the protocol."""


def named_rivals(given: Iterable[str], known: Collection[str]) -> dict[str, str]:
    """Name to path, from `NAME=PATH`; each name must be one of the known ones."""
    found: dict[str, str] = {}
    for text in given:
        name, equals, path = (part.strip() for part in text.partition("="))
        if not (equals and path):
            raise RivalError(f"a rival is given as NAME=PATH, such as --rival quamina=/path/to/driver, got {text!r}")
        if name not in known:
            names = ", ".join(sorted(known)) or "none"
            raise RivalError(f"unknown rival '{name}'; the rivals of the chosen experiments are {names}")
        if name in found:
            raise RivalError(f"rival '{name}' is given twice; give it once")
        found[name] = path
    return found


class RivalProgram:
    """A running driver; a context manager, which ends the process.

    `command` is a program and its arguments, in the syntax of a shell, without being run by one. A driver that takes
    longer than `patience` seconds for an answer is ended.
    """

    def __init__(self, name: str, command: str, *, patience: float = 3600.0) -> None:
        self.name = name
        self._patience = patience
        self._late = False
        self._events = 0
        self._messages = tempfile.TemporaryFile()  # noqa: SIM115 (closed by `close`)
        try:
            self._process = subprocess.Popen(
                shlex.split(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._messages,
                encoding="utf-8",
            )
        except (OSError, ValueError) as error:
            self._messages.close()
            raise RivalError(f"rival '{name}' cannot be started: {error}; check --rival {name}=…") from None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input, self._output = self._process.stdin, self._process.stdout

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End the process: by the end of its input, or by force."""
        with suppress(BrokenPipeError):  # it has ended already
            self._input.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._output.close()
        self._messages.close()

    def build(self, patterns: Sequence[str], events: Sequence[str]) -> float:
        """Send everything, let the rival index the patterns, and return the seconds from first line to `ready`."""
        self._events = len(events)
        begin = perf_counter()
        with self._waiting():
            self._send(f"pattern {text}" for text in self._one_line("pattern", patterns))
            self._send(["build"])
            if (answer := self._line("build")) != "ready":
                raise self._error(f"answered {answer!r} to 'build', expected 'ready'")
        taken = perf_counter() - begin
        with self._waiting():
            self._send(f"event {text}" for text in self._one_line("event", events))
        return taken

    def match(self) -> list[list[int]]:
        """The patterns that match each event, ascending."""
        with self._waiting():
            self._send(["match"])
            return [self._numbers(self._line("match")) for _ in range(self._events)]

    def run(self, passes: int = 1) -> int:
        """Match all events this many times; the number of matches."""
        with self._waiting():
            self._send([f"run {passes}"])
            numbers = self._numbers(answer := self._line("run"))
        if len(numbers) != 1:
            raise self._error(f"answered {answer!r} to 'run', expected one number")
        return numbers[0]

    def run_checked(self, matches: int) -> None:
        """One pass over all events, which must find this many matches: the rival of a race."""
        if (found := self.run()) != matches:
            raise CheckError(f"check failed: '{self.name}' found {found:,} matches while it was timed, not {matches:,}")

    def _one_line(self, kind: str, texts: Iterable[str]) -> Iterator[str]:
        for number, text in enumerate(texts, 1):
            if "\n" in text or "\r" in text:
                raise RivalError(f"{kind} {number} has a line break, which the protocol of rivals cannot carry")
            yield text

    def _send(self, lines: Iterable[str]) -> None:
        try:
            self._input.writelines(f"{line}\n" for line in lines)
            self._input.flush()
        except BrokenPipeError:
            raise self._error("ended before it was asked everything") from None

    def _line(self, asked: str) -> str:
        try:
            line = self._output.readline()
        except UnicodeDecodeError as error:
            raise self._error(f"answered '{asked}' in another encoding than UTF-8: {error}") from None
        if not line.endswith("\n"):
            late = f"gave no answer to '{asked}' within {self._patience:g} s"
            raise self._error(late if self._late else f"ended before it answered '{asked}'")
        line = line.strip()
        if line.startswith("error"):
            raise self._error(f"reports {line!r}")
        return line

    def _numbers(self, line: str) -> list[int]:
        try:
            return sorted(int(word) for word in line.split())
        except ValueError:
            raise self._error(f"answered {line[:_SHOWN]!r}, expected numbers") from None

    def _error(self, what: str) -> RivalError:
        """The error, with the status of a program that has ended by itself, and the end of what it wrote."""
        try:
            status = f"; exit status {self._process.wait(1)}"
        except subprocess.TimeoutExpired:
            status = ""
            self._process.kill()
            self._process.wait()
        self._messages.seek(0)
        wrote = " ".join(self._messages.read().decode("utf-8", "replace").split())[-_SHOWN:]
        return RivalError(f"rival '{self.name}' {what}{status}" + (f"; it wrote: {wrote}" if wrote else ""))

    @contextmanager
    def _waiting(self) -> Iterator[None]:
        def end() -> None:
            self._late = True
            self._process.kill()

        timer = Timer(self._patience, end)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()


def check_matches(run: Run, rival: str, ours: Sequence[Sequence[int]], theirs: Sequence[Sequence[int]]) -> None:
    """Record that a rival finds the same matches as ours, or end the run and name the first difference."""
    found = f"{len(theirs):,} answers for {len(ours):,} events" if len(ours) != len(theirs) else ""
    for number, (our, their) in enumerate(zip(ours, theirs, strict=False), 1):
        missing, wrong = sorted(set(our) - set(their)), sorted(set(their) - set(our))
        repeated = len(their) - len(set(their))
        if missing or wrong or repeated:
            found = f"event {number}: misses {missing[:5]}, wrongly has {wrong[:5]}, and has {repeated} numbers twice"
            break
    run.check(f"{rival} finds what ours finds", not found, found)
