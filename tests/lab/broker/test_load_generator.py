"""The load generator sends everything once, counts the answers, and notices what a server gets wrong."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pathcast_lab.broker.broker_workloads import Publications, chain, chain_paths
from pathcast_lab.broker.http_requests import Connection, request
from pathcast_lab.broker.load_generator import LoadGenerator, loads
from pathcast_lab.broker.server_process import ServerError, ServerProcess, bare_server, free_port, pathcast_server

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def load() -> Iterator[LoadGenerator]:
    with loads() as generator:
        yield generator


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with pathcast_server(tmp_path_factory.mktemp("broker") / "data") as server:
        with Connection(server.port) as connection:
            connection.call("PUT", "/v1/subscriptions/all", {"xpath": "/story", "feeds": ["news"]})
        yield server


def test_every_request_is_sent_once_and_answers_are_counted(load: LoadGenerator, broker: ServerProcess) -> None:
    made = Publications("/v1/feeds/news/documents", [b"<story/>", b"<other/>"])
    requests = [*made.batches(640), *made.single(3), request("GET", "/nowhere")]
    done = load.post(broker.port, requests, 4)
    assert done.statuses == {202: 13, 404: 1}
    assert done.duplicates == 0
    assert done.cpu < done.seconds
    with Connection(broker.port) as connection:
        found = connection.call("POST", "/v1/subscriptions/all:pull?limit=1000")["deliveries"]
        assert len(found) == 256  # of the 322 that match, as many as may be out
        connection.call("POST", "/v1/subscriptions/all:ack", {"sequences": [each["sequence"] for each in found]})
        assert len(connection.call("POST", "/v1/subscriptions/all:pull?limit=1000")["deliveries"]) == 322 - 256


def test_documents_sent_again_are_counted_as_duplicates(load: LoadGenerator, broker: ServerProcess) -> None:
    requests = Publications("/v1/feeds/news/documents", [b"<story/>"]).batches(128)
    assert load.post(broker.port, requests, 1).duplicates == 0
    assert load.post(broker.port, requests, 1).duplicates == 128


def test_a_fan_out_ends_when_every_reader_has_every_event(load: LoadGenerator, broker: ServerProcess) -> None:
    requests = Publications("/v1/feeds/news/documents", [b"<story/>"]).batches(128)
    done = load.fan_out(broker.port, "/v1/subscriptions/all/events", 3, requests, 128)
    assert (done.statuses, done.duplicates) == ({202: 2}, 0)


def test_a_latency_belongs_to_each_document(load: LoadGenerator, broker: ServerProcess) -> None:
    requests = [request("POST", "/v1/feeds/news/documents", b"<story>place=%d;</story>" % n) for n in range(20)]
    done = load.latency(broker.port, "/v1/subscriptions/all/events", requests, 0.005)
    assert len(done.latencies) == 20
    assert all(seconds > 0 for seconds in done.latencies)


def test_requests_that_are_all_due_do_not_overrun_the_broker(load: LoadGenerator, broker: ServerProcess) -> None:
    requests = [request("POST", "/v1/feeds/news/documents", b"<story>place=%d;</story>" % n) for n in range(500)]
    assert load.latency(broker.port, "/v1/subscriptions/all/events", requests, 0.0).statuses == {202: 500}


def test_the_bare_server_passes_events_on(load: LoadGenerator, tmp_path: Path) -> None:
    with bare_server(tmp_path) as server:
        events = b"id: 1\nevent: document\ndata: {}\n\n" * 64
        assert load.fan_out(server.port, "/events", 2, [request("POST", "/fan-out", events)] * 2, 128).statuses == {
            202: 2
        }
        assert load.post(server.port, [request("POST", "/documents", b"<a/>")] * 5, 2).statuses == {202: 5}


def test_a_server_that_does_not_start_is_an_error_with_its_output(tmp_path: Path) -> None:
    failing = ServerProcess(["sh", "-c", "echo no such configuration; exit 1"], free_port(), tmp_path / "output")
    with pytest.raises(ServerError, match="no such configuration"):
        failing.start()


def test_paths_of_a_chain_are_distinct_and_match_it() -> None:
    import pathcast

    paths = chain_paths(6, 64)
    assert len(set(paths)) == 64
    subscriptions = pathcast.Subscriptions()
    subscriptions.add_many([*paths, *chain_paths(6, 10, "x")])
    assert subscriptions.compile().match(chain(6)).ids.tolist() == list(range(1, 65))
