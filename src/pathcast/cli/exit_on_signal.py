"""How a command ends on a signal: 130 after Ctrl-C (SIGINT), 143 after SIGTERM, and never with a traceback.

Most commands end by an exception. SIGTERM raises `Terminated`, a `KeyboardInterrupt`, so that code that cleans up after
Ctrl-C also cleans up after SIGTERM.

An exception during a call to Spark's JVM would break the connection, and PySpark's own Ctrl-C handler makes such a call
at any point of the program. So a command on Spark works in a thread (`Work`), where no signal handler runs and PySpark
installs none, and checks a `Stop` between its steps; the main thread waits.

Invariant: only the first SIGTERM counts, since `timeout` sends one to the command and another to its process group.
"""

import logging
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from types import FrameType
from typing import Generic, TypeVar

import typer

# How often the main thread checks the work, in seconds.
PATIENCE = 0.2


class Terminated(KeyboardInterrupt):
    """SIGTERM was received."""


@contextmanager
def terminable() -> Iterator[None]:
    """Let SIGTERM end the block as Ctrl-C would, with status 143."""
    received = False

    def on(_: int, __: FrameType | None) -> None:
        nonlocal received
        if not received:
            received = True
            raise Terminated

    before = signal.signal(signal.SIGTERM, on)
    try:
        with _without_py4js_log():
            yield
    except (Terminated, SystemExit):
        if received:  # Typer exits with 130 after every KeyboardInterrupt
            sys.exit(128 + signal.SIGTERM)
        raise
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _without_py4js_log() -> Iterator[None]:
    """Silence Py4J, through which PySpark calls the JVM: it logs tracebacks of exceptions that it also raises."""

    def is_not_py4js(record: logging.LogRecord) -> bool:
        return "py4j" not in record.pathname

    root, its_own = logging.getLogger(), logging.getLogger("py4j")
    before = its_own.level
    root.addFilter(is_not_py4js)  # Py4J uses the root logger, too
    its_own.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        its_own.setLevel(before)
        root.removeFilter(is_not_py4js)


class Stop(Event):
    """Set by the first signal, whose number it keeps. A later Ctrl-C interrupts at once."""

    number = 0

    def on(self, number: int, _: FrameType | None) -> None:
        """The handler."""
        if not self.number:
            self.number = number
            typer.echo("stopping …", err=True)
            self.set()
        elif number == signal.SIGINT:
            raise KeyboardInterrupt


@contextmanager
def stopped_by_signals(stop: Stop) -> Iterator[None]:
    """Ctrl-C and SIGTERM set `stop`."""
    before = {number: signal.signal(number, stop.on) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


T = TypeVar("T")


class Work(Thread, Generic[T]):
    """A function that runs in a daemon thread, with its result or error."""

    def __init__(self, function: Callable[[], T]) -> None:
        super().__init__(daemon=True)
        self._function = function
        self.error: BaseException | None = None
        self.result: T | None = None

    def run(self) -> None:
        """Called by the thread."""
        try:
            self.result = self._function()
        except BaseException as error:  # noqa: BLE001 — for the waiting thread
            self.error = error

    def wait(self, until: Callable[[], object]) -> None:
        """Start the thread; wait until it ends or the condition holds."""
        self.start()
        while self.is_alive() and not until():
            self.join(PATIENCE)
