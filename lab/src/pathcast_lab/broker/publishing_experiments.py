"""Publishing rates: durable, compared with JetStream; matched, compared with a bare web server."""

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from pathcast_lab.harness import Claim, Judgement, Plot, Row, Rows, Run, Timing, every, experiment, number_in, ratio

from .interleaved_server_runs import OURS, Work, check_accepted, in_turn, rate_rows

if TYPE_CHECKING:
    from .load_generator import LoadGenerator
    from .server_process import ServerProcess

ALWAYS, DEFAULT, BARE = "JetStream, sync always", "JetStream, default", "bare Starlette"
READS, WRITES = "bare Starlette that reads the XML", "bare Starlette that reads the XML and writes to disk"
FILE = "a file, fsync per 64 documents"
DURABLE, REQUESTS, MATCHES = "durable", "requests", "matches"


@dataclass(frozen=True)
class Publishing:
    """`documents` per round; `subscriptions` wait in the second part, `receivers` match in the third."""

    documents: int = 640
    rounds: int = 3
    subscriptions: int = 5_000
    matches: int = 50
    receivers: int = 5_000
    connections: int = 32


def _times(part: str, series: str, least: float) -> Callable[[Rows], Judgement]:
    def judge(rows: Rows) -> Judgement:
        found = {
            f"with {row['how']}" if row.get("how") else "": number_in(row, "times")
            for row in rows.where(part=part, series=series)
        }
        return every(found, "{:.2f} times", least=least)

    return judge


def _disk(rows: Rows) -> str:
    always, file, writes = (rows.number("times", part=DURABLE, series=series) for series in (ALWAYS, FILE, WRITES))
    return (
        f"Appending the same bytes to a file, with an fsync per 64 documents and nothing else, is {always / file:.2f} "
        f"times as fast as JetStream, a bare handler that decodes the request and reads the XML before it does that is "
        f"{always / writes:.2f} times as fast, and ours reaches {writes:.2f} of the latter."
    )


def _needed(rows: Rows) -> str:
    parts = []
    for how in rows.where(part=REQUESTS, series=BARE).distinct("how"):
        bare, reads, writes = (
            rows.number("times", part=REQUESTS, series=series, how=how) for series in (BARE, READS, WRITES)
        )
        parts.append(
            f"{how}, {bare / reads:.2f} times, {bare / writes:.2f} with an fsync, and ours {writes:.2f} of that"
        )
    return f"A bare handler that decodes the request and reads the XML reaches, {'; '.join(parts)}."


def _many_cost(rows: Rows) -> str:
    many, few = (rows.one(part=MATCHES, how="distinct patterns", series=series) for series in ("many", "few"))
    return (
        f"With distinct patterns the server takes {number_in(many, 'cpu_us'):,.0f} µs of CPU per document that matches "
        f"{many['matches']:,}, and {number_in(few, 'cpu_us'):,.0f} µs per document that matches {few['matches']}."
    )


def _many_receivers(rows: Rows) -> Judgement:
    found = {f"with {row['how']}": number_in(row, "slower") for row in rows.where(part=MATCHES, series="many")}
    return every(found, "{:.2f} times", most=2.0)


@experiment(
    "broker-publishing",
    title="Publishing to the broker",
    small=Publishing(),
    paper=Publishing(6_400, 7, 150_000, receivers=100_000),
    claims=(
        Claim(
            "a durable publication, 64 documents per request, is at least 5 times as fast as in JetStream with "
            "sync_interval: always",
            "target",
            _times(DURABLE, ALWAYS, 5.0),
            "5 times",
            _disk,
        ),
        Claim(
            "a durable publication is at least half as fast as in JetStream with its defaults, which does not wait for "
            "the disk",
            "target",
            _times(DURABLE, DEFAULT, 0.5),
            "0.5 times",
        ),
        Claim(
            "with 150,000 subscriptions, 50 of which match, a publication is at least half as fast as the same request "
            "to a bare Starlette handler",
            "target",
            _times(REQUESTS, BARE, 0.5),
            "0.5 times",
            _needed,
        ),
        Claim(
            "a publication that matches 100,000 subscriptions takes at most twice the time of one that matches 10",
            "target",
            _many_receivers,
            "at most 2 times",
            _many_cost,
        ),
    ),
    plots=(
        Plot(
            "rate",
            "Durable publication, 64 documents of 4 KB per request",
            y="rate",
            y_label="documents per second",
            series="series",
            kind="bars",
            ours=(OURS,),
            only=lambda row: row["part"] == DURABLE,
        ),
    ),
    show={
        "part": "what",
        "how": "how",
        "series": "system",
        "subscriptions": "subscriptions",
        "matches": "matches per document",
        "rate": "documents per second",
        "times": "ours is faster by",
        "slower": "slower than few by",
        "cpu_us": "µs of CPU per document",
        "generator": "load of the generator",
    },
)
def publishing(run: Run, parameters: Publishing) -> Iterator[Row]:
    """Servers are processes on loopback; requests are made beforehand and sent by another process over raw sockets. Its
    CPU time as a share of the elapsed time is the load of the generator: where it is far below 1, the server is what is
    measured. Rivals take turns, and a ratio is the median over the rounds. Every document must be accepted as new, and
    matches are compared with a matcher's. Documents have 4 KB; Pathcast reads, logs (fsync) and matches each before it
    answers. JetStream gets atomic batches, made beforehand, too, over one connection, and a file the same bytes, with
    an fsync per 64 documents. `requests`: one document per request over several connections, and 64 per request over
    four; two more bare handlers do what a broker cannot leave out: one decodes requests and reads the XML, one also
    writes the documents to disk, with an fsync for all requests that wait; that one is a rival in the first part, too.
    `matches`: nobody is connected.
    """
    with tempfile.TemporaryDirectory() as folder:
        yield from _durable(run, parameters, Path(folder))
    with tempfile.TemporaryDirectory() as folder:
        yield from _requests(run, parameters, Path(folder))
    with tempfile.TemporaryDirectory() as folder:
        yield from _matches(run, parameters, Path(folder))


def _durable(run: Run, parameters: Publishing, folder: Path) -> Iterator[Row]:
    from .broker_workloads import Publications, create, news
    from .grouped_file_writes import seconds_to_append
    from .jetstream_server import ADVICE, jetstream_server, program, publish_batches
    from .load_generator import loads
    from .server_process import bare_server, pathcast_server

    count = parameters.documents
    _, documents = news(run, 64)
    made, needed = (Publications(path, documents) for path in ("/v1/feeds/news/documents", "/durable"))
    run.begin("durable publication", parameters.rounds + 1)
    with pathcast_server(folder / "broker") as ours, loads() as load:
        create(run, ours.port, ["//title"], "news")

        def publish() -> Work:
            requests = made.batches(count)
            before = ours.cpu_seconds()
            done = load.post(ours.port, requests, 1)
            check_accepted(run, done, len(requests))
            return Work(done.seconds, ours.cpu_seconds() - before, done.cpu)

        if program() is None:
            run.note(ADVICE)
            yield from rate_rows(DURABLE, in_turn(run, {OURS: publish}, parameters.rounds), count)
            return
        some = [documents[place % len(documents)] for place in range(count)]
        with (
            jetstream_server(folder, "always", always=True) as always,
            jetstream_server(folder, "default", always=False) as default,
            bare_server(folder) as bare,
        ):

            def rival(server: "ServerProcess") -> Callable[[], Work]:
                def batches() -> Work:
                    before = server.cpu_seconds()
                    return Work(publish_batches(server.port, some, 64), server.cpu_seconds() - before, 0.0)

                return batches

            def least() -> Work:
                requests = needed.batches(count)
                before = bare.cpu_seconds()
                done = load.post(bare.port, requests, 1)
                check_accepted(run, done, len(requests))
                return Work(done.seconds, bare.cpu_seconds() - before, done.cpu)

            def append() -> Work:
                seconds, cpu = seconds_to_append(folder / "documents", some, 64)
                return Work(seconds, cpu, 0.0)

            rivals = {OURS: publish, ALWAYS: rival(always), DEFAULT: rival(default), FILE: append, WRITES: least}
            yield from rate_rows(DURABLE, in_turn(run, rivals, parameters.rounds), count)


def _requests(run: Run, parameters: Publishing, folder: Path) -> Iterator[Row]:
    from .broker_workloads import Publications, create, news, selective_paths
    from .load_generator import loads
    from .server_process import bare_server, pathcast_server

    schema, documents = news(run, 200)
    run.begin(f"choosing {parameters.subscriptions:,} subscriptions")
    xpaths, matches = selective_paths(schema, documents, parameters.subscriptions, parameters.matches, run.seed)
    paths = {OURS: "/v1/feeds/news/documents", BARE: "/documents", READS: "/read", WRITES: "/durable"}
    with pathcast_server(folder / "broker") as ours, bare_server(folder) as bare, loads() as load:
        create(run, ours.port, xpaths, "news")
        _check_matches(run, ours.port, xpaths, documents)
        servers = {name: ours if name == OURS else bare for name in paths}
        for how, connections, count in (
            ("one per request", parameters.connections, parameters.documents),
            ("64 per request", 4, 4 * parameters.documents),
        ):
            run.begin(f"publication, {how}", parameters.rounds + 1)

            def rival(name: str, count: int = count, connections: int = connections) -> Callable[[], Work]:
                made = Publications(paths[name], documents)

                def publish() -> Work:
                    requests = made.single(count) if connections > 4 else made.batches(count)
                    before = servers[name].cpu_seconds()
                    done = load.post(servers[name].port, requests, connections)
                    check_accepted(run, done, len(requests))
                    return Work(done.seconds, servers[name].cpu_seconds() - before, done.cpu)

                return publish

            done = in_turn(run, {name: rival(name) for name in servers}, parameters.rounds)
            more: dict[str, str | int | float] = {"how": how, "subscriptions": len(xpaths), "matches": matches}
            yield from rate_rows(REQUESTS, done, count, **more)


def _check_matches(run: Run, port: int, xpaths: list[str], documents: list[bytes]) -> None:
    """Ask for the deliveries of some subscriptions and compare them with a matcher's answers."""
    import pathcast

    from .broker_workloads import Publications
    from .http_requests import Connection

    with Connection(port) as connection:
        for data in Publications("/v1/feeds/news/documents", documents).single(len(documents[:64])):
            connection.ask(data)
        subscriptions = pathcast.Subscriptions()
        subscriptions.add_many(xpaths)
        expected: dict[int, int] = {}
        for found in subscriptions.compile().match_many(documents[:64]):
            for id in found.ids.tolist():
                expected[id - 1] = expected.get(id - 1, 0) + 1
        asked = sorted({*list(expected)[:50], *range(0, len(xpaths), max(1, len(xpaths) // 50))})
        pulled = {
            n: len(connection.call("POST", f"/v1/subscriptions/s{n}:pull?limit=1000")["deliveries"]) for n in asked
        }
        run.check_equal(
            "subscribers get as many documents as a matcher says",
            {"matcher": [expected.get(number, 0) for number in asked], "broker": [pulled[number] for number in asked]},
        )


def _matches(run: Run, parameters: Publishing, folder: Path) -> Iterator[Row]:
    from .broker_workloads import Publications, chain, chain_paths, create
    from .http_requests import Connection
    from .load_generator import loads
    from .server_process import pathcast_server

    depth, few, count = 17, 10, parameters.documents
    total = parameters.receivers
    distinct = chain_paths(depth, total)
    silent = chain_paths(depth, total, "x")
    feeds = {
        "equal patterns": ([distinct[place % few] for place in range(total)], [*distinct[:few], *silent[few:]]),
        "distinct patterns": (distinct, [*distinct[:few], *silent[few:]]),
    }
    for how, (many, some) in feeds.items():
        run.begin(f"{total:,} receivers, {how}", parameters.rounds + 1)
        place = folder / how.split()[0]
        place.mkdir()
        with pathcast_server(place / "broker") as server, loads() as load:
            create(run, server.port, many, "many", "m")
            create(run, server.port, some, "few", "f")

            def rival(feed: str, server: "ServerProcess" = server, load: "LoadGenerator" = load) -> Callable[[], Work]:
                made = Publications(f"/v1/feeds/{feed}/documents", [chain(depth)])

                def publish() -> Work:
                    before = server.cpu_seconds()
                    requests = made.batches(count)
                    done = load.post(server.port, requests, 1)
                    check_accepted(run, done, len(requests))
                    return Work(done.seconds, server.cpu_seconds() - before, done.cpu)

                return publish

            done = in_turn(run, {"many": rival("many"), "few": rival("few")}, parameters.rounds)
            with Connection(server.port) as connection:
                asked = {
                    name: f"/v1/subscriptions/{name}:pull?limit=1000"
                    for name in ("m0", f"m{total - 1}", f"f{total - 1}")
                }
                got = {name: len(connection.call("POST", path)["deliveries"]) for name, path in asked.items()}
            due = min(256, count * (parameters.rounds + 1))
            run.check_equal("the right subscriptions match", {"expected": [due, due, 0], "broker": list(got.values())})
        slower = ratio(*(Timing(tuple(each.seconds for each in done[name])) for name in ("many", "few")))
        for name, works in done.items():
            yield {
                "part": MATCHES,
                "series": name,
                "how": how,
                "subscriptions": 2 * total,
                "matches": total if name == "many" else few,
                "rate": count / median(each.seconds for each in works),
                "slower": slower.median if name == "many" else 1.0,
                "cpu_us": median(each.server for each in works) / count * 1e6,
                "generator": median(each.generator / each.seconds for each in works),
            }
