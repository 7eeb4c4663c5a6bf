"""A program with a stream that is killed and started again: its processes, checkpoints and pins."""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Self

from pathcast.spark.files.file_source import LOG
from pathcast.spark.files.input_file_log import FileLog
from pathcast.spark.publishing.micro_batch_version_pins import pins_of
from pathcast.spark.sessions.spark_session import LOCAL_SETTINGS
from tests.spark.machines import MINUTES

HERE = Path(__file__).parent
# The modules that fork workers: ours and Spark's.
_DAEMONS = (LOCAL_SETTINGS["spark.python.daemon.module"], "pyspark.daemon")


class Stage:
    """A folder with a running program, and a thread that feeds its streams.

    `queries` are the streams by name, each with the folder of its pins if that is not the one next to `versions`.
    """

    def __init__(self, folder: Path, seed: int, program: str, versions: str, queries: dict[str, str | None]) -> None:
        self.folder = folder
        self.random = random.Random(seed)
        self.version = 0
        self.restarts = 0
        self.program: subprocess.Popen[bytes] | None = None
        self.pins: dict[str, dict[int, int]] = {query: {} for query in queries}
        self._program, self._versions, self._queries = program, versions, queries
        self._end = threading.Event()
        self._publishing = threading.Lock()
        (folder / "in").mkdir()
        self.publish()
        self._feeder = threading.Thread(target=self._feed)

    def __enter__(self) -> Self:
        self._feeder.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._feeder.join()
        if self.program is not None:
            self.kill_driver()

    def publish(self) -> None:
        """Publish the next version."""
        raise NotImplementedError

    def _feed(self) -> None:
        """Feed the streams until the end."""
        raise NotImplementedError

    def _taken(self, query: str) -> int:
        """The number of files that a query has read, from our log or Spark's."""
        ours = self.folder / f"{query}-checkpoint" / LOG
        if ours.exists():
            return len(FileLog(ours))
        log = self.folder / f"{query}-checkpoint" / "sources" / "0"
        files: set[str] = set()
        for entry in log.iterdir() if log.is_dir() else ():
            if not entry.name.startswith("."):
                with contextlib.suppress(OSError):  # merged with others in the meantime
                    files.update(json.loads(line)["path"] for line in entry.read_text().splitlines()[1:])
        return len(files)

    # The program.

    def start(self) -> None:
        (self.folder / "streaming").unlink(missing_ok=True)
        with (self.folder / "log").open("ab") as log:
            self.program = subprocess.Popen(
                [sys.executable, str(HERE / self._program), str(self.folder)],
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def wait_until_streaming(self) -> None:
        self.wait_for((self.folder / "streaming").exists, "the stream to start")

    def pause(self, longest: float) -> None:
        """Wait for a random time."""
        until = time.monotonic() + self.random.uniform(0, longest)
        self.wait_for(lambda: time.monotonic() > until, "the time to pass")

    def wait_for(self, condition, what: str) -> None:
        deadline = time.monotonic() + MINUTES
        while not condition():
            assert time.monotonic() < deadline, f"waited in vain for {what}\n{self.log()}"
            assert self.program is not None
            if self.program.poll() is not None:  # a query failed: start it again, as its operator would
                self.restarts += 1
                self.kill_driver()
                self.start()
            time.sleep(0.005)

    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")[-5000:]

    def processes(self) -> dict[int, tuple[int, str]]:
        """The processes of the program's session: parent and command line."""
        assert self.program is not None
        found = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal():
                with contextlib.suppress(OSError):
                    facts = (entry / "stat").read_text().rpartition(")")[2].split()
                    if int(facts[3]) == self.program.pid and facts[0] != "Z":
                        found[int(entry.name)] = int(facts[1]), (entry / "cmdline").read_text()
        return found

    def kill_driver(self) -> None:
        """SIGKILL to the driver, its JVM, its daemon and its workers, in any order."""
        assert self.program is not None
        while living := list(self.processes()):
            self.random.shuffle(living)
            for process in living:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
        self.program.wait()
        self.look_at_pins()

    def kill_workers(self) -> int:
        """SIGKILL to the Python workers, and sometimes to the daemon that forks them; how many died.

        The daemon is ours or, where a session has not set it, Spark's.
        """
        found = self.processes()
        daemons = {process for process, (_, command) in found.items() if any(name in command for name in _DAEMONS)}
        victims = {process for process in daemons if found[process][0] in daemons}
        if self.random.random() < 0.3:
            victims = daemons
        for process in victims:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        return len(victims)

    # What is known of batches.

    def query_id(self, query: str) -> str | None:
        try:
            return str(json.loads((self.folder / f"{query}-checkpoint" / "metadata").read_text())["id"])
        except (FileNotFoundError, ValueError):
            return None

    def unfinished(self, query: str, first: int = 0) -> tuple[int, int] | None:
        """Batch and version of a batch (`first` or later) that is pinned and not committed yet."""
        pins = self.look_at_pins()[query]
        batch = max(pins, default=-1)
        if batch < first:
            return None
        committed = self.folder / f"{query}-checkpoint" / "commits" / str(batch)
        return None if committed.exists() else (batch, pins[batch])

    def look_at_pins(self) -> dict[str, dict[int, int]]:
        """Record the pins; a pin that was seen before must be unchanged."""
        for query, known in self.pins.items():
            number = self.query_id(query)
            if number is not None:
                pins = self._queries[query]
                now = pins_of(self.folder / self._versions, number, None if pins is None else self.folder / pins)
                for batch, version in now.items():
                    assert known.setdefault(batch, version) == version, f"batch {batch} of {query} was pinned again"
        return self.pins

    def finish(self) -> None:
        """Stop the feeder, and wait until all input is processed."""
        self._end.set()
        self._feeder.join()
        (self.folder / "stop").touch()
        while True:
            assert self.program is not None
            code = self.program.wait(timeout=MINUTES)
            if code == 0:
                break
            self.restarts += 1
            assert self.restarts < 10, self.log()
            self.start()
        self.look_at_pins()
