"""The demo's broker: a real process that serves during the stream, and is killed and restarted at the end.

1. `pathcast serve` runs in a separate process. During the stream the user can try it: `curl_lines` prints commands
   that publish and receive.
2. Half of some reports are published. Every subscriber pulls; half of the subscribers acknowledge.
3. While the other reports are published, the process is killed with SIGKILL and started again. The publisher tries
   again until it gets an answer.
4. All subscribers pull and acknowledge the rest. A delivery counts when it was acknowledged: a repeated delivery
   after that counts twice.

Invariant: no process outlives the scenario, however it ends.
"""

import os
import signal
import socket
import subprocess
import sys
from collections import Counter
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Final

from .delivery_check import Line, compare, deliveries_of
from .publisher_schemas import write
from .synthetic_market import Market

if TYPE_CHECKING:
    from pathcast.client import Client

REPORTS, SUBSCRIPTIONS = 1_000, 100
FEED, ARCHIVE, PLAYGROUND = "reports", "archive", "market"
# Few documents per call: the process is killed in the middle of a publication.
_CALL = 20
_PORT: Final = 8080
# Seconds for what must happen, on a busy machine too.
_PATIENCE = 120


class DemoBroker:
    """`pathcast serve` in a process of its own, which ends with the block."""

    def __init__(self, folder: Path, port: int = _PORT) -> None:
        self.folder = folder.absolute()
        self.address = ""
        self._port = _free_port(port)
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start the process; `wait` waits until it accepts connections."""
        program = "import sys; sys.argv[0] = 'pathcast'; from pathcast.cli.app import main; main()"
        options = ["serve", "--data", str(self.folder / "broker"), "--port", str(self._port)]
        with (self.folder / "broker.log").open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-c", program, *options],
                env=os.environ | {"PYTHONUNBUFFERED": "1"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )

    def wait(self) -> None:
        """Wait until the broker accepts connections."""
        from pathcast.errors import PipelineError

        assert self._process is not None
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line.startswith("serving "):
            log = self.folder / "broker.log"
            said = log.read_text(encoding="utf-8", errors="replace").splitlines()[-8:]
            raise PipelineError(
                f"the broker did not start; see the last lines of {log}:"
                + "".join(f"\n  {each[:200]}" for each in said)
            )
        self.address = line.removeprefix("serving ").partition(",")[0]

    def kill(self) -> None:
        """SIGKILL: the process gets no chance to do anything."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.communicate()
            self._process = None

    def __enter__(self) -> "DemoBroker":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()


def curl_lines(address: str) -> tuple[str, str]:
    """Commands that receive and publish while the broker runs; subscribes the first."""
    from pathcast.client import connect

    with connect(address) as client:
        client.subscribe("stocks", "//stock", [PLAYGROUND])
    return (
        f"curl -N {address}/v1/subscriptions/stocks/events",
        f"curl {address}/v1/feeds/{PLAYGROUND}/documents --data-binary '<report><stock/></report>'",
    )


class BrokerStory:
    """Publishes and receives through a broker that is killed meanwhile."""

    def __init__(self, broker: DemoBroker, market: Market, reports: int = REPORTS) -> None:
        self.broker = broker
        self.before = 0  # documents that were acknowledged to the publisher before the kill
        self._reports = [market.report(number) for number in range(1, reports + 1)]
        drawn = enumerate(market.subscriptions(["broker"], SUBSCRIPTIONS, SUBSCRIPTIONS))
        self._wanted = {f"reader-{number}": xpath for number, (_, xpath, _) in drawn} | {ARCHIVE: "/report"}
        self._published = 0
        self._failure: BaseException | None = None
        self._received: Counter[tuple[int, str]] = Counter()

    def run(self) -> list[Line]:
        """Run the story; compare what was received with the answers of a matcher."""
        from pathcast.client import connect

        half = len(self._reports) // 2
        with connect(self.broker.address, patience=_PATIENCE) as client:
            for id, xpath in self._wanted.items():
                client.subscribe(id, xpath, [FEED])
            self._publish(client, 0, half)
            for place, id in enumerate(self._wanted):
                self._receive(client, id, acknowledge=place % 2 == 0)
            goes_on = Event()
            rest = Thread(target=self._publish_rest, args=(client, half, goes_on), name="publisher")
            rest.start()
            try:
                goes_on.wait(_PATIENCE)
                self.broker.kill()
                self.before = self._published
                self.broker.start()
                self.broker.wait()
            finally:
                rest.join()
            if self._failure is not None:
                raise self._failure
            for id in self._wanted:
                while self._receive(client, id):
                    pass
        return list(self._lines())

    def _publish(self, client: "Client", begin: int, end: int, goes_on: Event | None = None) -> None:
        for first in range(begin, end, _CALL):
            some = self._reports[first : min(first + _CALL, end)]
            client.publish(FEED, [write("exchange", each) for each in some], [str(each.number) for each in some])
            self._published += len(some)
            if goes_on is not None:
                goes_on.set()

    def _publish_rest(self, client: "Client", begin: int, goes_on: Event) -> None:
        try:
            self._publish(client, begin, len(self._reports), goes_on)
        except BaseException as error:  # noqa: BLE001 - raised in the thread that waits for this one
            self._failure = error
        finally:
            goes_on.set()

    def _receive(self, client: "Client", id: str, *, acknowledge: bool = True) -> int:
        """Pull once; return how many documents came."""
        deliveries = client.pull(id, limit=256).deliveries
        if deliveries and acknowledge:
            client.acknowledge(id, deliveries)
            self._received.update((int(each.id or 0), id) for each in deliveries)
        return len(deliveries)

    def _lines(self) -> tuple[Line, Line]:
        readers = [("broker", xpath, id) for id, xpath in self._wanted.items() if id != ARCHIVE]
        expected = Counter({(number, id): 1 for number, _, id in deliveries_of(self._reports, readers)})
        archive = Counter({number: times for (number, id), times in self._received.items() if id == ARCHIVE})
        received = Counter({one: times for one, times in self._received.items() if one[1] != ARCHIVE})
        documents = Counter(report.number for report in self._reports)
        return compare("broker: documents", documents, archive), compare("broker: deliveries", expected, received)


def _free_port(preferred: int) -> int:
    """The preferred port, or another one if somebody listens on it."""
    for port in (preferred, 0):
        try:
            with socket.create_server(("127.0.0.1", port)) as listener:
                return int(listener.getsockname()[1])
        except OSError:
            continue
    raise AssertionError("unreachable: port 0 is always free")
