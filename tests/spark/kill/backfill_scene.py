"""A broker and `pathcast backfill`, both killed repeatedly while documents are published and subscriptions come."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx

from ...broker.broker_process import BrokerProcess

_PROGRAM = "from pathcast.cli.app import main; main()"
_CUT = (httpx.TransportError, httpx.StreamError)


class Backfill:
    """The command as a process; its session leads a group, so its JVM and workers are killed with it."""

    def __init__(self, address: str, errors: Path) -> None:
        command = [sys.executable, "-c", _PROGRAM, "backfill", address, "--follow", "--json", "--master", "local[1]"]
        self._errors = errors.open("a")
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=self._errors, text=True, start_new_session=True
        )
        self.rounds = 0
        self._reader = threading.Thread(target=self._count, daemon=True)
        self._reader.start()

    def _count(self) -> None:
        assert self._process.stdout is not None
        for _ in self._process.stdout:
            self.rounds += 1

    def wait_for_a_round(self) -> None:
        """Wait until it has done something."""
        while self.rounds == 0:
            assert self._process.poll() is None, "the backfill ended by itself"
            time.sleep(0.05)

    def kill(self) -> None:
        """SIGKILL to the process, its JVM and its workers."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._reader.join()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._errors.close()


class Reader(threading.Thread):
    """Pulls and acknowledges the deliveries of subscriptions, through restarts of the broker."""

    def __init__(self, address: str) -> None:
        super().__init__(daemon=True)
        self._http = httpx.Client(base_url=address, timeout=120)
        self.ids: list[str] = []
        self.got: dict[str, list[int]] = {}
        self._acknowledged: dict[str, set[int]] = {}
        self.repeated: list[tuple[str, int]] = []
        self.finish = threading.Event()

    def run(self) -> None:
        while not self.finish.is_set():
            for id in list(self.ids):
                try:
                    self._pull(id)
                except _CUT:
                    time.sleep(0.1)
            time.sleep(0.05)
        self._http.close()

    def _pull(self, id: str) -> None:
        answer = self._http.post(f"/v1/subscriptions/{id}:pull?limit=50")
        if answer.status_code >= 500:
            return
        sequences = [each["sequence"] for each in answer.raise_for_status().json()["deliveries"]]
        done = self._acknowledged.setdefault(id, set())
        self.repeated += [(id, sequence) for sequence in sequences if sequence in done]
        known = self.got.setdefault(id, [])
        known += [sequence for sequence in sequences if sequence not in known]
        if sequences:
            body = {"sequences": sequences}
            if self._http.post(f"/v1/subscriptions/{id}:acknowledge", json=body).status_code == 200:
                done.update(sequences)


def run_scene(folder: Path, kills: int, seed: int = 1) -> None:
    """Kill a broker and a backfill by turns; in the end every subscription got its documents, each once."""
    draw = random.Random(seed)
    settings = folder / "broker.toml"
    settings.write_text("[backfill]\nabove = 20\n", encoding="utf-8")
    with BrokerProcess(folder / "data", settings=settings) as broker:
        _run(broker, folder, kills, draw)


def _run(broker: BrokerProcess, folder: Path, kills: int, draw: random.Random) -> None:
    backfill = Backfill(broker.address, folder / "backfill.stderr")
    reader = Reader(broker.address)
    reader.start()
    documents: list[tuple[int, str, str]] = []
    begins: dict[str, int] = {}
    try:
        for number in range(kills):
            with httpx.Client(base_url=broker.address, timeout=120) as http:
                for feed in ("old", "new"):
                    matching = draw.choice(["broker", "spark"]) if feed == "old" else ["spark", "broker"][number % 2]
                    http.put(f"/v1/feeds/{feed}", json={"matching": matching}).raise_for_status()
                    for _ in range(30):
                        name = draw.choice("ab")
                        answer = http.post(f"/v1/feeds/{feed}/documents", content=f"<{name}/>").raise_for_status()
                        documents.append((answer.json()["sequence"], feed, name))
                id, begin = f"{draw.choice('ab')}-{number}", draw.choice(documents)[0]
                body = {"xpath": f"//{id[0]}", "config": {"from": begin}}
                begins[id] = http.put(f"/v1/subscriptions/{id}", json=body).raise_for_status().json()["valid_from"]
                reader.ids.append(id)
            time.sleep(draw.random())
            if number % 2:
                backfill.wait_for_a_round()
                time.sleep(2 * draw.random())
                backfill.kill()
                backfill = Backfill(broker.address, folder / "backfill.stderr")
            else:
                broker.kill()
                broker.start()
        expected = {
            id: [at for at, _, name in documents if at >= begin and name == id[0]] for id, begin in begins.items()
        }
        deadline = time.monotonic() + 600
        while {id: sorted(reader.got.get(id, [])) for id in expected} != expected and time.monotonic() < deadline:
            time.sleep(0.2)
        assert {id: sorted(reader.got.get(id, [])) for id in expected} == expected
        assert reader.repeated == []
    finally:
        reader.finish.set()
        reader.join()
        backfill.kill()
