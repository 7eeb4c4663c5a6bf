"""Figure 5(c), *real*: four routers, a process each, in a chain of TCP connections.

A router receives a message, bridges and matches it, sends it on as it came, and reports when it had the message, when
it had its matches, and what they were. All use the machine's clock. So querying time is the time of the routers, and
all other time between the first send and the matches is transmission, including the operating system's work.

A message is a length of 8 bytes, the number of the way, and the bytes that this way sends.
"""

import multiprocessing
import socket
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from multiprocessing.connection import Connection
from statistics import fmean, median
from time import perf_counter
from typing import Any

from pathcast_lab.harness import Claim, Judgement, Plot, Row, Rows, Run, experiment, judged

from . import mediation_claims as claims
from .mediation_workloads import SDR, Sent, Way, matching_by, mediator_of, sent_documents, subscriptions_to

_HEAD = struct.Struct(">QBQ")  # bytes in all, number of the way, bytes of the original


@dataclass(frozen=True)
class Sockets:
    """Documents of `bytes` bytes, one after the other, through `routers` processes."""

    ways: tuple[str, ...] = claims.WAYS
    bytes: int = 20_000
    subscriptions: int = 1_000
    routers: int = 4
    catalogues: int = 6
    rounds: int = 7


@dataclass(frozen=True)
class Place:
    """The start-up data of a router."""

    ways: tuple[str, ...]
    subscriptions: int
    catalogues: int
    seed: int
    number: int
    is_last: bool


def _packed(sent: Sent, way: Way, number: int) -> bytes:
    body = sent.original + sent.rewritten if way.kind == SDR else sent.message
    return _HEAD.pack(len(body), number, len(sent.original)) + body


def _received(link: socket.socket, size: int) -> bytes:
    """Receive `count` bytes; fewer if the other side has closed."""
    found = bytearray(size)
    view, at = memoryview(found), 0
    while at < size and (count := link.recv_into(view[at:])):
        at += count
    return bytes(found[:at])


def _matchers(place: Place) -> list[Callable[[Sent], list[int]]]:
    from pathcast_lab.workloads import GLOBAL, generate_catalogues

    mediator = mediator_of(generate_catalogues(place.catalogues, seed=place.seed))
    asked = subscriptions_to(GLOBAL, place.subscriptions, place.seed + place.number)
    return [matching_by(Way.read(text), mediator, asked) for text in place.ways]


def serve(place: Place, reports: Connection) -> None:
    """A router: accepts one connection, and runs until it is closed."""
    matchers = _matchers(place)
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        reports.send(server.getsockname()[1])
        onward = None
        if not place.is_last:
            onward = socket.create_connection(("127.0.0.1", reports.recv()))
            onward.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        link, _ = server.accept()
        while len(head := _received(link, _HEAD.size)) == _HEAD.size:
            size, way, original = _HEAD.unpack(head)
            body = _received(link, size)
            arrived = perf_counter()
            found = matchers[way](Sent("", body[:original], body[original:], body))
            ended = perf_counter()
            if onward is not None:
                onward.sendall(head + body)
            reports.send((arrived, ended, found))
        if onward is not None:
            onward.close()
        link.close()


class Chain:
    """The processes, and the connection to the first of them."""

    def __init__(self, parameters: Sockets, seed: int) -> None:
        context = multiprocessing.get_context("spawn")
        self.reports: list[Connection] = []
        self._processes: list[Any] = []
        for number in range(parameters.routers):
            place = Place(
                parameters.ways,
                parameters.subscriptions,
                parameters.catalogues,
                seed,
                number,
                number == parameters.routers - 1,
            )
            ours, theirs = context.Pipe()
            process = context.Process(target=serve, args=(place, theirs), daemon=True)
            process.start()
            theirs.close()
            self.reports.append(ours)
            self._processes.append(process)
        ports = [report.recv() for report in self.reports]
        for number, report in enumerate(self.reports[:-1]):
            report.send(ports[number + 1])
        self._link = socket.create_connection(("127.0.0.1", ports[0]))
        self._link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def publish(self, message: bytes) -> tuple[float, list[tuple[float, float, list[int]]]]:
        """Send a message, and wait until all routers have it: when it was sent, and what each reports."""
        begun = perf_counter()
        self._link.sendall(message)
        return begun, [report.recv() for report in self.reports]

    def close(self) -> None:
        """End the first router's connection; the others end after it."""
        self._link.close()
        for process in self._processes:
            process.join(10)
            process.terminate()


def _better(rows: Rows) -> Judgement:
    part = 1 - rows.number("ms", way=claims.NDDR_DEFAULT) / rows.number("ms", way=claims.SDR_DEFAULT)
    best = min(rows, key=lambda row: float(row["ms"] or 0))
    return judged(part > 0, f"NDDR saves {part:.0%} of SDR's response time; the best is {best['way']}")


@experiment(
    "mediation-sockets",
    title="Mediation, Figure 5(c): four processes",
    small=Sockets(),
    paper=Sockets(catalogues=40),
    claims=(
        Claim(
            "on a real network NDDR is faster than SDR, too",
            claims.PAPER,
            _better,
            "faster",
            "Connections within one machine are fast, so querying decides, and SDR queries least.",
        ),
    ),
    plots=(
        Plot(
            "response",
            "Four processes in a chain",
            y="ms",
            y_label="response time, ms",
            series="way",
            kind="bars",
            ours=(claims.NDDR_DEFAULT,),
        ),
    ),
    show={
        "way": "way",
        "ms": "response time, ms",
        "query_ms": "querying, ms",
        "transmission_ms": "transmission, ms",
        "bytes": "bytes per link",
    },
)
def sockets(run: Run, parameters: Sockets) -> Iterator[Row]:
    """Four processes, connected by TCP on this machine, each a router with subscriptions of its own; a document goes
    through all of them before the next one comes. Figures are medians of the rounds, of means over deliveries. Under
    SDR the link from the publisher to the mediator does not count.
    """
    from pathcast_lab.workloads import generate_catalogues

    catalogues = generate_catalogues(parameters.catalogues, seed=run.seed)
    sent = sent_documents(mediator_of(catalogues), catalogues, parameters.bytes, run.seed)
    ways = [Way.read(text) for text in parameters.ways]
    run.begin("starting routers")
    chain = Chain(parameters, run.seed)
    try:
        for document in sent:
            answers = {
                str(way): [found for _, _, found in chain.publish(_packed(document, way, number))[1]]
                for number, way in enumerate(ways)
            }
            run.check_equal("every router matches the same by every way", answers)
        samples: dict[Way, list[tuple[float, float]]] = {way: [] for way in ways}
        run.begin("documents through four processes", parameters.rounds)
        for _ in range(parameters.rounds):
            for number, way in enumerate(ways):
                samples[way].append(_mean_times(chain, [_packed(document, way, number) for document in sent]))
            run.advance()
    finally:
        chain.close()
    for way in ways:
        whole, querying = (median(each[part] for each in samples[way]) for part in (0, 1))
        yield {
            "way": str(way),
            "ms": 1e3 * whole,
            "query_ms": 1e3 * querying,
            "transmission_ms": 1e3 * (whole - querying),
            "bytes": fmean(each.size(way.kind) for each in sent),
        }


def _mean_times(chain: Chain, messages: Sequence[bytes]) -> tuple[float, float]:
    """Means over deliveries of the time to the matches, and of the routers' time until then."""
    whole = querying = deliveries = 0.0
    for message in messages:
        begun, reports = chain.publish(message)
        spent = 0.0
        for arrived, ended, found in reports:
            spent += ended - arrived
            whole += len(found) * (ended - begun)
            querying += len(found) * spent
            deliveries += len(found)
    return whole / max(1.0, deliveries), querying / max(1.0, deliveries)
