"""A scene in which a stream is killed: documents keep coming, subscriptions keep changing, processes keep dying.

Every version of the index has a subscription of its own that matches every document, number 1000 + version, of the
subscriber `version-<version>`: a row in a sink says by itself which version it was matched with.
"""

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

import pyarrow as pa
import pyarrow.parquet as pq

import pathcast
from pathcast import Matcher
from pathcast.spark.pins import pins_of
from pathcast.spark.versions import publish

HERE = Path(__file__).parent
PER_FILE = 8
# So many files more than the stream has taken up may wait: some three micro-batches.
AHEAD = 30
VERSION = 1000


def document(number: int) -> bytes:
    """Document `number`; every seventh can't be read."""
    return b"<doc>" if number % 7 == 0 else b"<doc><n%d/><a/></doc>" % (number % 5)


def matcher_of(version: int) -> Matcher:
    subscriptions = pathcast.Subscriptions()
    subscriptions.add_many([f"//n{n}" for n in range(5)], [f"reader-{n}" for n in range(5)])
    subscriptions.add_many(["/doc/a"] * (version % 3), ["reader-0"] * (version % 3))
    subscriptions.add("/doc", subscriber=f"version-{version}", id=VERSION + version)
    return subscriptions.compile()


class Scene:
    """A folder with a running program, and threads that feed it with documents and versions."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.random = random.Random(seed)
        self.documents = 0
        self.version = 0
        self.restarts = 0
        self.program: subprocess.Popen[bytes] | None = None
        self.pins: dict[str, dict[int, int]] = {"filed": {}, "delivered": {}}
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
        with self._publishing:
            assert publish(matcher_of(self.version + 1), self.folder / "index", keep=2, grace=20) == self.version + 1
            self.version += 1

    def _feed(self) -> None:
        while not self._end.wait(0.25):
            if self.documents // PER_FILE - min(map(self._taken, self.pins)) > AHEAD:
                continue  # a slow machine gets fewer documents, not a backlog that it can't work off in the end
            numbers = range(self.documents, self.documents + PER_FILE)
            table = pa.table({"id": pa.array(numbers, pa.int64()), "xml": [document(number) for number in numbers]})
            hidden = self.folder / "in" / f".{self.documents}"
            pq.write_table(table, hidden)
            hidden.rename(self.folder / "in" / f"{self.documents:08}.parquet")
            self.documents += PER_FILE
            if self.documents % (6 * PER_FILE) == 0:
                self.publish()

    def _taken(self, query: str) -> int:
        """How many files a query has taken up, by Spark's log."""
        log = self.folder / f"{query}-checkpoint" / "sources" / "0"
        files: set[str] = set()
        for entry in log.iterdir() if log.is_dir() else ():
            if not entry.name.startswith("."):
                with contextlib.suppress(OSError):  # merged with others meanwhile
                    files.update(json.loads(line)["path"] for line in entry.read_text().splitlines()[1:])
        return len(files)

    # The program.

    def start(self) -> None:
        (self.folder / "streaming").unlink(missing_ok=True)
        with (self.folder / "log").open("ab") as log:
            self.program = subprocess.Popen(
                [sys.executable, str(HERE / "program.py"), str(self.folder)],
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def wait_until_streaming(self) -> None:
        self.wait_for((self.folder / "streaming").exists, "the stream to start")

    def pause(self, longest: float) -> None:
        """Let things run for a random time."""
        until = time.monotonic() + self.random.uniform(0, longest)
        self.wait_for(lambda: time.monotonic() > until, "the time to pass")

    def wait_for(self, condition, what: str, seconds: float = 120) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"waited in vain for {what}\n{self.log()}"
            assert self.program is not None
            if self.program.poll() is not None:  # a query ended by itself: whoever runs it starts it again
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
        """SIGKILL to the Python workers, and sometimes to the daemon that forks them; how many died."""
        found = self.processes()
        daemons = {process for process, (_, command) in found.items() if "pyspark.daemon" in command}
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
        """Remember the pins; one that was seen before must be as it was."""
        for query, known in self.pins.items():
            number = self.query_id(query)
            if number is not None:
                now = pins_of(self.folder / "index", number, self.folder / "pins" if query == "delivered" else None)
                for batch, version in now.items():
                    assert known.setdefault(batch, version) == version, f"batch {batch} of {query} was pinned anew"
        return self.pins

    def finish(self) -> None:
        """Let no more come, and wait until all that has come is through."""
        self._end.set()
        self._feeder.join()
        (self.folder / "stop").touch()
        while True:
            assert self.program is not None
            code = self.program.wait(timeout=180)
            if code == 0:
                break
            self.restarts += 1
            assert self.restarts < 10, self.log()
            self.start()
        self.look_at_pins()
