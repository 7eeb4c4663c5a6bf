"""The demo's story: a stream is started, new subscribers join, the stream is killed and started again.

1. The stream runs as a user would run it: `pathcast run pipeline.toml`, in its own process.
2. After a sixth of the documents, newcomers' subscriptions are published as a new version of the overlay. The stream
   is paused meanwhile: on a busy machine it could otherwise end before the version is published.
3. After half of them, during a micro-batch, all processes of the stream are killed; then the stream is started again.

Invariant: no process outlives the story, however it ends.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

    from pathcast.spark.pipeline import JoinReport, Report, Stream

    AnyReport = Report | JoinReport

# A JVM that lives for a minute does not gain from its second compiler, which takes a third of the JVM's time.
_JAVA = "-XX:TieredStopAtLevel=1"
# How long a micro-batch may take, in seconds; the first one compiles kernels.
PATIENCE = 300


class Story:
    """The streams of one pipeline, killed on purpose."""

    def __init__(
        self,
        folder: Path,
        batches: int,
        progress: "Progress",
        console: "Console",
        told: Callable[[str, str], None] = lambda step, text: None,
    ) -> None:
        """`told` is called with each step of the story, and what happened."""
        from pathcast.spark.pipeline import joins_stream, read_pipeline

        stream = read_pipeline(folder / "pipeline.toml").stream
        assert stream is not None
        self.folder = folder
        self.batches = batches
        self.console = console
        self.streams: dict[str, Stream] = {"documents": stream, "joins": joins_stream(stream)}
        self.reports: dict[str, dict[int, AnyReport]] = {name: {} for name in self.streams}
        self._progress = progress
        self._told = told
        self._bars = {name: progress.add_task(name, total=batches) for name in self.streams}

    def run(self, newcomers: Callable[[], str]) -> str:
        """Run the story; return the micro-batches killed. `newcomers` publishes new subscriptions, returns a report."""
        from pathcast.spark.sessions import find_java

        self.console.print(f"Starting the stream (pathcast run pipeline.toml) on Java {find_java().version} …")
        with self._started() as running:
            self._follow(running, lambda: self._part("documents") >= 1 / 6)
            with paused(running):
                came = newcomers()
                self.console.print(came)
                self._told("newcomers", came)
            self._follow(running, lambda: self._is_ripe() and "documents" in self._midst())
            killed = self._midst()
            os.killpg(running.pid, signal.SIGKILL)
            running.wait()
        if not killed:
            self._fail("the stream finished before it could be killed during a micro-batch; increase --documents")
        self.console.print(f"Killed all processes of the stream during {killed}; starting it again …")
        self._told("kill", f"All processes of the stream were killed during {killed}. It is started again.")
        with self._started() as running:
            self._follow(running, lambda: running.poll() is not None)
        if running.returncode != 0:
            self._fail(f"the stream failed with status {running.returncode}")
        return killed

    @property
    def versions(self) -> dict[int, int]:
        """The version of the overlay that each micro-batch of documents was routed with."""
        found = self.reports["documents"].items()
        return {batch: version for batch, report in found if (version := getattr(report, "version", None)) is not None}

    def _part(self, name: str) -> float:
        """The share of a stream's micro-batches that is done."""
        return len(self.reports[name]) / self.batches

    def _is_ripe(self) -> bool:
        """Whether it is time for the crash: the new subscribers are in use, and both streams have output to lose."""
        done = self._part("documents")
        return 2 in self.versions.values() and (done > 3 / 4 or (done >= 1 / 2 and self._part("joins") > 0))

    def _midst(self) -> str:
        """The micro-batches that Spark has begun and not done yet."""
        begun = {name: _begun(stream) - set(self.reports[name]) for name, stream in self.streams.items()}
        return " and ".join(f"micro-batch {max(batches)} of {name}" for name, batches in begun.items() if batches)

    @contextmanager
    def _started(self) -> Iterator["subprocess.Popen[bytes]"]:
        """Start the stream in its own process group, which ends with the block."""
        program = "import sys; sys.argv[0] = 'pathcast'; from pathcast.cli.app import main; main()"
        with (self.folder / "run.log").open("ab") as log:
            running = subprocess.Popen(
                [sys.executable, "-c", program, "run", str((self.folder / "pipeline.toml").absolute())],
                env=_environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
            try:
                yield running
            finally:
                if running.poll() is None:
                    os.killpg(running.pid, signal.SIGKILL)
                    running.wait()

    def _follow(self, running: "subprocess.Popen[bytes]", until: Callable[[], bool]) -> None:
        """Show the progress of the stream until a condition holds; fail if the stream ends before."""
        last = time.perf_counter()
        while True:
            ended = running.poll() is not None
            if self._tell():
                last = time.perf_counter()
            if until():
                break
            if ended:
                self._fail(f"the stream ended too early, with status {running.returncode}")
            if time.perf_counter() - last > PATIENCE:
                self._fail(
                    f"the stream has not finished a micro-batch for {PATIENCE} s; end other programs and run the "
                    "demo again"
                )
            time.sleep(0.02)
        self._tell()

    def _tell(self) -> bool:
        """Collect and show new reports; return whether there were any."""
        from pathcast.spark.pipeline import reports_after

        told = False
        for name, stream in self.streams.items():
            for report in reports_after(stream, max(self.reports[name], default=-1)):
                assert report.batch is not None
                self.reports[name][report.batch] = report
                told = True
                self._progress.advance(self._bars[name])
                self._told("batch", str(report))
                if not self.console.is_terminal:
                    self.console.print(f"  {report}")
        return told

    def _fail(self, reason: str) -> None:
        from pathcast.errors import PipelineError

        log = (self.folder / "run.log").read_text(encoding="utf-8", errors="replace").splitlines()
        said = "".join(f"\n  {line[:200]}" for line in log[-8:])
        raise PipelineError(f"{reason}; see the last lines of {self.folder / 'run.log'}:{said}")


@contextmanager
def paused(running: "subprocess.Popen[bytes]") -> Iterator[None]:
    """Stop all processes of a group for the duration of the block."""
    os.killpg(running.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.killpg(running.pid, signal.SIGCONT)


def _begun(stream: "Stream") -> set[int]:
    """The numbers of the micro-batches that Spark has begun."""
    offsets = Path(stream.checkpoint) / "offsets"
    return {int(file.name) for file in offsets.iterdir() if file.name.isdecimal()} if offsets.is_dir() else set()


def _environment() -> dict[str, str]:
    """The environment of the demo, with our Java options added to its own."""
    return os.environ | {"JAVA_TOOL_OPTIONS": f"{os.environ.get('JAVA_TOOL_OPTIONS', '')} {_JAVA}".strip()}
