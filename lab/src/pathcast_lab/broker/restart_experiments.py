"""The broker with a million subscriptions: creating them, one more beside them, and a restart to the first match."""

import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from pathcast_lab.harness import Claim, Row, Rows, Run, every, experiment, number_in

if TYPE_CHECKING:
    from pathcast_lab.harness import Judgement

    from .server_process import ServerProcess

BULK, ONE_MORE, RESTART = "bulk creation", "one more", "restart"
STOPPED, KILLED = "after SIGTERM", "after SIGKILL"
_FEED = "news"


@dataclass(frozen=True)
class Restarting:
    """Subscriptions in force and documents in the log."""

    subscriptions: int = 10_000
    documents: int = 10_000
    restarts: int = 2
    more: int = 20


def _restart(rows: Rows) -> "Judgement":
    found = {str(row["how"]): number_in(row, "seconds") for row in rows.where(part=RESTART)}
    return every(found, "{:.1f} s", most=3.0)


@experiment(
    "broker-restart",
    title="A million subscriptions in the broker",
    small=Restarting(),
    paper=Restarting(1_000_000, 1_000_000, 3, 50),
    claims=(
        Claim(
            "a new subscription is in force within 50 ms",
            "target",
            lambda rows: every({"": rows.number("p50_ms", part=ONE_MORE)}, "{:.1f} ms", most=50),
            "50 ms",
        ),
        Claim("the first match after a restart comes within 3 s", "target", _restart, "3 s"),
        Claim(
            "while subscriptions are created in bulk, the slowest of the other publications takes at most 250 ms",
            "target",
            lambda rows: every({"": rows.number("worst_ms", part=BULK)}, "{:.0f} ms", most=250),
            "250 ms",
        ),
    ),
    show={
        "part": "what",
        "how": "how",
        "subscriptions": "subscriptions",
        "documents": "documents in the log",
        "seconds": "seconds",
        "cpu_s": "seconds of CPU",
        "p50_ms": "median in ms",
        "worst_ms": "worst in ms",
        "memory_mb": "MB of the server",
    },
)
def restarting(run: Run, parameters: Restarting) -> Iterator[Row]:
    """The broker is a process on loopback. Subscriptions are distinct paths of news, in requests of 100,000 as NDJSON;
    meanwhile another connection publishes a document every 20 ms, and the slowest answer counts. One more: from the
    request to the answer, which means that the subscription is in force; a document published then must reach it.
    Restart: from the start of the process, after a stop and after a kill, until a new document is published, matched
    and pulled; the best of the restarts. The broker finds the snapshot that it has written when it stopped, or while it
    worked. After each restart, a document from before is pulled again and compared.
    """
    from .broker_workloads import Publications, news
    from .load_generator import loads
    from .server_process import pathcast_server

    schema, _ = news(run, 1)
    xpaths = _distinct_paths(schema, parameters.subscriptions, run.seed)
    with tempfile.TemporaryDirectory() as folder, loads() as load:
        server = pathcast_server(Path(folder) / "broker")
        with server:
            yield _bulk(run, server, xpaths)
            yield _one_more(run, server, parameters)
            made = Publications(
                f"/v1/feeds/{_FEED}/documents", [b"<log><entry n='%d'/></log>" % n for n in range(1_000)]
            )
            run.begin(f"{parameters.documents:,} documents", parameters.documents // 10_000)
            for _ in range(0, parameters.documents, 10_000):
                done = load.post(server.port, made.batches(10_000, 500), 2)
                run.check("all publications are accepted", done.statuses == {202: 20})
                run.advance()
            for how, end in ((STOPPED, signal.SIGTERM), (KILLED, signal.SIGKILL)):
                run.begin(f"restart {how}", parameters.restarts)
                yield from _restarts(run, server, parameters, how, end)


def _distinct_paths(schema: object, count: int, seed: int) -> list[str]:
    from pathcast_lab.engine.distinct_path_variants import draw_bases, variants

    bases = draw_bases(schema, count, seed)  # type: ignore[arg-type]
    return variants(bases, count, seed)


@contextmanager
def _probed(port: int) -> Iterator[list[float]]:
    """Publish a document every 20 ms; the list gets the seconds until each answer."""
    from .http_requests import Connection, request

    ended, found = threading.Event(), list[float]()

    def probe() -> None:
        with Connection(port) as connection:
            data = request("POST", "/v1/feeds/other/documents", b"<probe/>")
            while not ended.wait(0.02):
                begin = time.perf_counter()
                connection.ask(data)
                found.append(time.perf_counter() - begin)

    thread = threading.Thread(target=probe)
    thread.start()
    try:
        yield found
    finally:
        ended.set()
        thread.join()


def _bulk(run: Run, server: "ServerProcess", xpaths: list[str]) -> Row:
    import json

    from .broker_workloads import bulk_requests
    from .http_requests import Connection

    run.begin(f"creating {len(xpaths):,} subscriptions")
    requests = list(bulk_requests(xpaths, _FEED))
    before, memory = server.cpu_seconds(), server.memory()
    with _probed(server.port) as pauses, Connection(server.port) as connection:
        begin = time.perf_counter()
        for data in requests:
            status, answer = connection.ask(data)
            found = json.loads(answer)
            run.check("all subscriptions are accepted", status == 200 and found["rejected"] == 0, str(found)[:300])
        seconds = time.perf_counter() - begin
    return {
        "part": BULK,
        "subscriptions": len(xpaths),
        "seconds": seconds,
        "cpu_s": server.cpu_seconds() - before,
        "p50_ms": median(pauses) * 1e3 if pauses else None,
        "worst_ms": max(pauses) * 1e3 if pauses else None,
        "memory_mb": (server.memory() - memory) / 1e6,
    }


def _one_more(run: Run, server: "ServerProcess", parameters: Restarting) -> Row:
    from .http_requests import Connection, request

    times = []
    with Connection(server.port) as connection:
        for number in range(parameters.more):
            begin = time.perf_counter()
            connection.call("PUT", f"/v1/subscriptions/more{number}", {"feeds": [_FEED], "xpath": f"/more/n{number}"})
            times.append(time.perf_counter() - begin)
            document = b"<more><n%d/></more>" % number
            connection.ask(request("POST", f"/v1/feeds/{_FEED}/documents", document))
            got = connection.call("POST", f"/v1/subscriptions/more{number}:pull")["deliveries"]
            run.check("the next document reaches it", [each["body"].encode() for each in got] == [document])
    return {
        "part": ONE_MORE,
        "subscriptions": parameters.subscriptions,
        "p50_ms": median(times) * 1e3,
        "worst_ms": max(times) * 1e3,
    }


def _restarts(
    run: Run, server: "ServerProcess", parameters: Restarting, how: str, end: signal.Signals
) -> Iterator[Row]:
    from .http_requests import Connection, request

    seconds, cpu, memory = [], [], 0
    for number in range(parameters.restarts):
        with Connection(server.port) as connection:
            waiter = f"w{number}-{end.name.lower()}"
            connection.call(
                "PUT", f"/v1/subscriptions/{waiter}", {"feeds": [_FEED], "xpath": f"/first[@r = '{waiter}']"}
            )
        server.end(end)
        begin = time.perf_counter()
        server.start()
        with Connection(server.port) as connection:
            document = b"<first r='%s'/>" % waiter.encode()
            status, _ = connection.ask(request("POST", f"/v1/feeds/{_FEED}/documents", document))
            got = connection.call("POST", f"/v1/subscriptions/{waiter}:pull")["deliveries"]
            seconds.append(time.perf_counter() - begin)
            cpu.append(server.cpu_seconds())
            run.check(
                "the first document reaches its reader",
                status == 202 and [each["body"].encode() for each in got] == [document],
            )
            old = connection.call("POST", f"/v1/subscriptions/more{number}:pull")["deliveries"]
            run.check(
                "documents from before are delivered again",
                [each["body"] for each in old] == [f"<more><n{number}/></more>"],
            )
            connection.call(
                "POST", f"/v1/subscriptions/more{number}:nack", {"sequences": [each["sequence"] for each in old]}
            )
            memory = max(memory, server.memory())
        run.advance()
    yield {
        "part": RESTART,
        "how": how,
        "subscriptions": parameters.subscriptions,
        "documents": parameters.documents,
        "seconds": min(seconds),
        "cpu_s": min(cpu),
        "memory_mb": memory / 1e6,
    }
