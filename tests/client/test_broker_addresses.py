"""Clients of a broker and its standbys: a call that fails at one address is made at the next."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest
import uvicorn

import pathcast
from pathcast.broker.api.standby_application import standby_application
from pathcast.client import Delivery, LogReader, UnreachableError, connect_async
from pathcast.client.broker_addresses import Addresses
from pathcast.errors import PathcastError

from ..broker.broker_process import free_port
from ..broker.served_broker import Served, served


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("broker")) as found:
        yield found


@contextmanager
def standing_by() -> Iterator[str]:
    """The address of a standby."""
    configuration = uvicorn.Config(
        standby_application(lambda: "http://elsewhere"), lifespan="off", ws="none", log_config=None
    )
    server = uvicorn.Server(configuration)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield address
        finally:
            server.should_exit = True
            thread.join()


@pytest.fixture(scope="module")
def addresses(broker: Served) -> Iterator[list[str]]:
    """Nobody, a standby, and the active broker."""
    with standing_by() as standby:
        yield [f"http://127.0.0.1:{free_port()}", standby, broker.address]


def test_a_client_goes_on_to_the_active_broker_and_stays(addresses: list[str]) -> None:
    with pathcast.connect(addresses, patience=30) as client:
        client.subscribe("s", "//d")
        assert client.url == addresses[-1]
        published = client.publish("f", "<d/>")
        assert [each.sequence for each in client.pull("s").deliveries] == [published.sequence]
        assert client.url == addresses[-1]


def test_events_come_from_the_active_broker(addresses: list[str], broker: Served) -> None:
    broker.http.put("/v1/subscriptions/e", json={"xpath": "//e"}).raise_for_status()
    sequence = broker.http.post("/v1/feeds/f/documents", content="<e/>").json()["sequence"]
    with (
        pathcast.connect(",".join(addresses), patience=30) as client,
        closing(client.events("e", after=sequence - 1)) as events,
    ):
        event = next(events)
        assert isinstance(event, Delivery)
        assert event.sequence == sequence


def test_an_asynchronous_client_goes_on_to_the_active_broker(addresses: list[str]) -> None:
    async def run() -> tuple[int, int, str]:
        async with connect_async(addresses, patience=30) as client:
            await client.subscribe("a", "//a")
            url = client.url
            client._addresses.failed(url)  # as if it had failed: events find the active broker themselves
            published = await client.publish("f", "<a/>")
            client._addresses.failed(url)
            async with client.events("a", after=published.sequence - 1) as events:
                event = await anext(events)
                assert isinstance(event, Delivery)
                return published.sequence, event.sequence, url

    published, received, url = asyncio.run(run())
    assert (published, url) == (received, addresses[-1])


def test_a_log_reader_goes_on_to_the_active_broker_and_stays(addresses: list[str], broker: Served) -> None:
    sequence = broker.http.post("/v1/feeds/f/documents", content="<log/>").json()["sequence"]
    for given in (addresses, ",".join(addresses)):
        with LogReader(given, patience=30) as reader:
            assert reader.bounds().head == broker.broker.matched_to
            assert reader.url == addresses[-1]
        with LogReader(given, patience=30) as reader:
            (batch,) = reader.batches(sequence, sequence + 1)
            assert batch.column(4).to_pylist() == [b"<log/>"]
            assert reader.url == addresses[-1]


def test_several_addresses_none_of_which_answers_are_an_error() -> None:
    with (
        pathcast.connect([f"http://127.0.0.1:{free_port()}" for _ in range(2)], patience=0.5) as client,
        pytest.raises(UnreachableError, match="attempts"),
    ):
        client.status("s")


def test_of_several_threads_whose_call_fails_at_an_address_one_goes_on() -> None:
    three = Addresses("http://a, http://b,http://c")
    for _ in range(2):
        three.failed("http://a")
    assert three.current == "http://b"
    three.failed("http://b")
    three.failed("http://c")
    assert three.current == "http://a"


@pytest.mark.parametrize("given", ["", "http://a,", "http://a,ftp://b", []])
def test_what_is_no_address_is_refused(given: str | list[str]) -> None:
    with pytest.raises(PathcastError, match="address"):
        Addresses(given)
