"""Delivery rates, compared with ActiveMQ and a bare web server; latency; many idle readers."""

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from pathcast_lab.harness import Claim, Judgement, MissingRowError, Plot, Row, Rows, Run, every, experiment, number_in

from .interleaved_server_runs import OURS, Work, check_accepted, in_turn, rate_rows

if TYPE_CHECKING:
    from .broker_workloads import Publications
    from .server_process import ServerProcess

ACTIVEMQ, BARE = "ActiveMQ 5.17, XPath selectors", "bare Starlette"
WRITES = "bare Starlette that reads the XML and writes to disk"
SELECTORS, FAN_OUT, LATENCY, IDLE = "end to end", "fan-out", "latency", "idle readers"


@dataclass(frozen=True)
class Delivering:
    """`documents` per round end to end, `events` of all readers per round of the fan-out, `seconds` of the latency."""

    subscriptions: int = 1_000
    documents: int = 1_280
    rival_documents: int = 16
    readers: tuple[int, ...] = (1, 32)
    events: int = 1_280
    rounds: int = 3
    seconds: float = 3.0
    idle: int = 500


def _times(part: str, series: str, least: float) -> Callable[[Rows], Judgement]:
    def judge(rows: Rows) -> Judgement:
        found = {
            f"with {row['how']}" if row.get("how") else "": number_in(row, "times")
            for row in rows.where(part=part, series=series)
        }
        return every(found, "{:,.3g} times", least=least)

    return judge


def _needed(part: str, rival: str, shown: str) -> Callable[[Rows], str]:
    """What remains when a bare handler does what a durable broker cannot leave out."""

    def reason(rows: Rows) -> str:
        parts = []
        for row in rows.where(part=part, series=rival):
            wheres = {"how": row["how"]} if row.get("how") else {}
            writes = rows.number("times", part=part, series=WRITES, **wheres)
            how = row.get("how") or "in all"
            parts.append(
                f"{how}, {shown.format(number_in(row, 'times') / writes)} times, and ours {writes:.2f} of that"
            )
        if not parts:
            raise MissingRowError(f"no row has part = {part}, series = {rival}")
        return (
            "A bare handler that decodes the request, reads the XML and writes it to disk before it passes an event on "
            f"reaches, {'; '.join(parts)}."
        )

    return reason


def _most(part: str, column: str, most: float, shown: str) -> Callable[[Rows], Judgement]:
    return lambda rows: every({"": rows.number(column, part=part)}, shown, most=most)


def _idle(rows: Rows) -> Judgement:
    row = rows.one(part=IDLE)
    each = number_in(row, "memory_mb") / number_in(row, "readers")
    return every({f"for 10,000 readers, from {row['readers']:,} measured": each * 10_000}, "{:,.0f} MB", most=1_000)


@experiment(
    "broker-deliveries",
    title="Deliveries of the broker",
    small=Delivering(),
    paper=Delivering(
        documents=12_800, rival_documents=64, readers=(1, 32, 256), events=6_400, rounds=7, seconds=20, idle=10_000
    ),
    claims=(
        Claim(
            "1,000 XPath subscriptions take at most a 500th of the time of ActiveMQ's XPath selectors, end to end",
            "target",
            _times(SELECTORS, ACTIVEMQ, 500),
            "500 times",
            _needed(SELECTORS, ACTIVEMQ, "{:,.0f}"),
        ),
        Claim(
            "events reach their readers at least half as fast as the same bytes from a bare Starlette handler",
            "target",
            _times(FAN_OUT, BARE, 0.5),
            "0.5 times",
            _needed(FAN_OUT, BARE, "{:.2f}"),
        ),
        Claim(
            "at half load the median document is with its reader within 5 ms",
            "target",
            _most(LATENCY, "p50_ms", 5.0, "{:.1f} ms"),
            "5 ms",
        ),
        Claim(
            "at half load 99 % of the documents are with their reader within 25 ms",
            "target",
            _most(LATENCY, "p99_ms", 25.0, "{:.1f} ms"),
            "25 ms",
        ),
        Claim("10,000 idle readers take less than 1 GB", "target", _idle, "1 GB"),
    ),
    plots=(
        Plot(
            "rate",
            "Documents per second end to end, 1,000 XPath subscriptions",
            y="rate",
            y_label="documents per second",
            series="series",
            kind="bars",
            ours=(OURS,),
            only=lambda row: row["part"] == SELECTORS,
        ),
    ),
    show={
        "part": "what",
        "how": "how",
        "series": "system",
        "rate": "documents per second",
        "times": "ours is faster by",
        "cpu_us": "µs of CPU per document",
        "p50_ms": "median in ms",
        "p99_ms": "99th percentile in ms",
        "readers": "readers",
        "memory_mb": "MB for them",
        "generator": "load of the generator",
    },
)
def deliveries(run: Run, parameters: Delivering) -> Iterator[Row]:
    """Servers are processes on loopback, loads come from a process of their own; rivals take turns. End to end: the
    clock runs from the first request to the last delivery. ActiveMQ has no storage and a subscription per expression on
    one STOMP connection, and sends a message per match; some documents warm it up. Pathcast logs each document, gets 64
    per request, and sends one event per document to a reader of all subscriptions, with the ids of those that match.
    The pairs of document and subscription are compared first. Fan-out: each of the readers gets every document, 64 per
    request, of 1 KB; the bare handler passes ready events on, one by one. In both, another bare handler does what a
    durable broker cannot leave out: it decodes requests, reads the XML, writes the documents to disk with an fsync for
    all requests that wait, and passes on an event per document. Latency: one document of 4 KB per request at
    a fixed rate, half of what one connection reaches, unless eight wait for their answers; from the moment at which the
    request is due to the moment at which its event is read.
    """
    with tempfile.TemporaryDirectory() as folder:
        yield from _selectors(run, parameters, Path(folder))
    with tempfile.TemporaryDirectory() as folder:
        yield from _fan_out(run, parameters, Path(folder))
    with tempfile.TemporaryDirectory() as folder:
        yield from _latency(run, parameters, Path(folder))
    with tempfile.TemporaryDirectory() as folder:
        yield from _idle_readers(run, parameters, Path(folder))


def _selectors(run: Run, parameters: Delivering, folder: Path) -> Iterator[Row]:
    from .activemq_server import ADVICE, StompConnection, activemq_server, is_installed
    from .broker_workloads import Publications, create, news, selective_paths
    from .load_generator import loads
    from .server_process import bare_server, pathcast_server

    schema, documents = news(run, 64)
    xpaths, _ = selective_paths(schema, documents, parameters.subscriptions, 10, run.seed)
    expected = _pairs(xpaths, documents)
    seen = sorted({place for place, _ in expected})
    # Every document is delivered to somebody, so that the last delivery ends the clock.
    documents = [documents[place] for place in seen]
    expected = _pairs(xpaths, documents)
    run.begin("end to end", parameters.rounds + 1)
    made = Publications("/v1/feeds/news/documents", documents)
    with pathcast_server(folder / "broker") as ours, bare_server(folder) as bare, loads() as load:
        create(run, ours.port, xpaths, "news")
        run.check_equal(
            "a reader gets the pairs that a matcher says",
            {"matcher": expected, "broker": _delivered(ours, made, len(documents))},
        )

        durable = Publications("/durable/fan-out", documents)

        def publish(server: "ServerProcess", made: Publications, events: str) -> Work:
            requests = made.batches(parameters.documents)
            before = server.cpu_seconds()
            done = load.fan_out(server.port, events, 1, requests, parameters.documents)
            check_accepted(run, done, len(requests))
            return Work(
                done.seconds / parameters.documents,
                (server.cpu_seconds() - before) / parameters.documents,
                done.cpu / parameters.documents,
            )

        servers = {
            OURS: partial(publish, ours, made, "/v1/subscribers/lab/events"),
            WRITES: partial(publish, bare, durable, "/events"),
        }
        if not is_installed():
            run.note(ADVICE)
            yield from rate_rows(SELECTORS, in_turn(run, servers, parameters.rounds), 1)
            return
        with activemq_server(folder) as rival, StompConnection(rival.port) as stomp:
            stomp.subscribe("/topic/news", xpaths)
            some = documents[: parameters.rival_documents]
            due = sum(1 for place, _ in expected if place < len(some))
            run.check_equal(
                "ActiveMQ delivers the pairs that a matcher says",
                {"matcher": expected[:due], "ActiveMQ": sorted(stomp.deliveries("/topic/news", some, due))},
            )

            def send() -> Work:
                from time import perf_counter

                before, begin = rival.cpu_seconds(), perf_counter()
                stomp.deliveries("/topic/news", some, due)
                seconds = perf_counter() - begin
                return Work(seconds / len(some), (rival.cpu_seconds() - before) / len(some), 0.0)

            yield from rate_rows(SELECTORS, in_turn(run, {**servers, ACTIVEMQ: send}, parameters.rounds), 1)


def _pairs(xpaths: list[str], documents: list[bytes]) -> list[tuple[int, int]]:
    import pathcast

    subscriptions = pathcast.Subscriptions()
    subscriptions.add_many(xpaths)
    found = subscriptions.compile().match_many(list(documents))
    return [(place, id - 1) for place, matches in enumerate(found) for id in sorted(matches.ids.tolist())]


def _delivered(server: "ServerProcess", made: "Publications", count: int) -> list[tuple[int, int]]:
    """Pairs that a reader of all subscriptions gets for documents published once each."""
    import json

    from .http_requests import Connection, request

    with Connection(server.port) as reader, Connection(server.port) as publisher:
        reader.ask(request("GET", "/v1/subscribers/lab/events"))
        sequences: list[int] = []
        for data in made.batches(count):
            sequences += [each["sequence"] for each in json.loads(publisher.ask(data)[1])["results"]]
        found: list[tuple[int, int]] = []
        while len({place for place, _ in found}) < count:
            line = reader.line()
            if line.startswith(b"data: "):
                event = json.loads(line[6:])
                place = sequences.index(event["sequence"])
                found += [(place, int(id[1:])) for id in event["subscriptions"]]
    return sorted(found)


def _fan_out(run: Run, parameters: Delivering, folder: Path) -> Iterator[Row]:
    from .broker_workloads import Publications, create
    from .http_requests import Connection, request
    from .load_generator import loads
    from .server_process import bare_server, pathcast_server

    document = b"<story>" + b"some words " * 90 + b"</story>"
    made = Publications("/v1/feeds/news/documents", [document])
    durable = Publications("/durable/fan-out", [document])
    with pathcast_server(folder / "broker") as ours, bare_server(folder) as bare, loads() as load:
        create(run, ours.port, ["/story"], "news")
        with Connection(ours.port) as connection:
            connection.ask(made.single(1)[0])
            (found,) = connection.call("POST", "/v1/subscriptions/s0:pull")["deliveries"]
            run.check("the subscription matches", found["body"].encode() == document)
        event = (
            b'id: 4711\nevent: document\ndata: {"sequence":4711,"feed":"news","time":1.0,"body":"%s"}\n\n' % document
        )
        for readers in parameters.readers:
            events = max(64, parameters.events // readers // 64 * 64)
            run.begin(f"{readers} readers", parameters.rounds + 1)

            def publish(readers: int = readers, events: int = events) -> Work:
                requests = made.batches(events)
                before = ours.cpu_seconds()
                done = load.fan_out(ours.port, "/v1/subscriptions/s0/events", readers, requests, events)
                check_accepted(run, done, len(requests))
                return Work(done.seconds, ours.cpu_seconds() - before, done.cpu)

            def rival(readers: int = readers, events: int = events) -> Work:
                requests = [request("POST", "/fan-out", event * 64)] * (events // 64)
                before = bare.cpu_seconds()
                done = load.fan_out(bare.port, "/events", readers, requests, events)
                return Work(done.seconds, bare.cpu_seconds() - before, done.cpu)

            def least(readers: int = readers, events: int = events) -> Work:
                requests = durable.batches(events)
                before = bare.cpu_seconds()
                done = load.fan_out(bare.port, "/events", readers, requests, events)
                return Work(done.seconds, bare.cpu_seconds() - before, done.cpu)

            done = in_turn(run, {OURS: publish, BARE: rival, WRITES: least}, parameters.rounds)
            yield from rate_rows(FAN_OUT, done, events, how=f"{readers} readers", readers=readers)


def _latency(run: Run, parameters: Delivering, folder: Path) -> Iterator[Row]:
    from .broker_workloads import create
    from .http_requests import request
    from .load_generator import loads
    from .server_process import pathcast_server

    with pathcast_server(folder / "broker") as ours, loads() as load:
        create(run, ours.port, ["/story"], "news")
        path = "/v1/feeds/news/documents"
        requests = [
            request("POST", path, b"<story>place=%d;%s</story>" % (place, b"some words " * 360)) for place in range(400)
        ]
        full = load.post(ours.port, requests, 1)
        check_accepted(run, full, len(requests))
        interval = 2 * full.seconds / len(requests)
        count = max(50, int(parameters.seconds / interval))
        requests = [
            request("POST", path, b"<story>place=%d;%s</story>" % (place, b"some words " * 360))
            for place in range(count)
        ]
        run.begin("latency at half load")
        before = ours.cpu_seconds()
        done = load.latency(ours.port, "/v1/subscriptions/s0/events", requests, interval)
        run.check("every document arrives once", done.statuses == {202: count})
        ordered = sorted(done.latencies)
        yield {
            "part": LATENCY,
            "series": OURS,
            "rate": 1 / interval,
            "p50_ms": median(ordered) * 1e3,
            "p99_ms": ordered[int(0.99 * len(ordered))] * 1e3,
            "cpu_us": (ours.cpu_seconds() - before) / count * 1e6,
            "generator": done.cpu / done.seconds,
        }


def _idle_readers(run: Run, parameters: Delivering, folder: Path) -> Iterator[Row]:
    from .broker_workloads import create
    from .load_generator import loads
    from .server_process import pathcast_server

    count = parameters.idle
    with pathcast_server(folder / "broker") as ours, loads() as load:
        create(run, ours.port, [f"/story[@n = '{number}']" for number in range(count)], "news")
        load.hold(ours.port, "/v1/subscriptions/s{}/events", 10)
        before = ours.memory()
        run.begin(f"{count:,} idle readers")
        done = load.hold(ours.port, "/v1/subscriptions/s{}/events", count - 10)
        run.check("all streams are open", done.statuses == {200: count - 10})
        yield {
            "part": IDLE,
            "series": OURS,
            "readers": count,
            "memory_mb": (ours.memory() - before) * count / (count - 10) / 1e6,
        }
