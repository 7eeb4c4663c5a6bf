"""The clients against a real broker: both have the same methods, which do the same."""

import asyncio
import inspect
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

import pathcast
import pathcast.client.dead_letters as dead_letters_calls
from pathcast.client import (
    AsyncClient,
    BrokerError,
    Client,
    DeadLetter,
    Delivery,
    Gap,
    NewDocument,
    Revived,
    UnreachableError,
    connect_async,
)
from pathcast.client.calls import Answer
from pathcast.client.event_reader import EventReader
from pathcast.client.explanation_pages import Explanation
from tests.broker.broker_process import free_port
from tests.broker.served_broker import Served, served


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("broker")) as found:
        yield found


@pytest.fixture
def client(broker: Served) -> Iterator[Client]:
    with pathcast.connect(broker.address) as found:
        yield found


def methods(kind: type) -> dict[str, list[str]]:
    public = inspect.getmembers(kind, inspect.isfunction)
    return {name: list(inspect.signature(each).parameters) for name, each in public if not name.startswith("_")}


def test_both_clients_have_the_same_methods() -> None:
    assert methods(Client) == methods(AsyncClient)


def test_documents_arrive_as_they_were_given(client: Client, tmp_path: Path) -> None:
    client.subscribe("given", "//t", "given")
    latin = "<?xml version='1.0' encoding='iso-8859-1'?><t>é</t>"
    file = tmp_path / "t.xml"
    file.write_bytes(latin.encode("iso-8859-1"))
    events = client.events("given")
    one = client.publish("given", "<t>\u2028 \x85 é\r\n</t>")
    many = client.publish("given", [b"<t/>", latin, file, b"\xef\xbb\xbf<t/>"], ["a", "b", "c", "d"])
    found = [next(events) for _ in range(5)]
    events.close()
    assert [each.sequence for each in found if isinstance(each, Delivery)] == [
        one.sequence,
        *(m.sequence for m in many),
    ]
    raw = latin.encode("iso-8859-1")
    wanted = ["<t>\u2028 \x85 é\r\n</t>".encode(), b"<t/>", raw, raw, b"\xef\xbb\xbf<t/>"]
    assert [each.body for each in found if isinstance(each, Delivery)] == wanted
    assert [each.id for each in many] == ["a", "b", "c", "d"]
    assert client.document(many[1].sequence) == raw


def test_documents_are_published_with_the_name_of_their_schema(broker: Served, client: Client) -> None:
    mappings = {name: f'name = "{name}"\nschema = "{name}"' for name in ("annex", "main")}
    settings = {"mediator": {"schema": "shop", "mappings": mappings}}
    broker.http.put("/v1/feeds/mediated", json=settings).raise_for_status()
    assert client.publish("mediated", "<annex/>", schema="annex").sequence > 0
    assert len(client.publish("mediated", ["<main/>", "<main/>"], schema="main")) == 2
    with pytest.raises(BrokerError, match="unknown schema 'cellar'"):
        client.publish("mediated", "<main/>", schema="cellar")

    async def send() -> int:
        async with connect_async(broker.address) as other:
            await other.publish("mediated", "<main/>", schema="main")
            return len(await other.publish("mediated", ["<annex/>", "<annex/>"], schema="annex"))

    assert asyncio.run(send()) == 2


def test_a_document_that_is_published_again_under_its_id_is_a_duplicate(client: Client) -> None:
    first = client.publish("again", "<a/>", "7")
    assert client.publish("again", "<a/>", "7") == type(first)(first.sequence, "7", duplicate=True)
    assert client.publish("again", ["<a/>", "<b/>"], ["7", "8"])[0].duplicate
    with pytest.raises(ValueError, match="2 ids for 1 documents"):
        client.publish("again", ["<a/>"], ["1", "2"])
    with pytest.raises(ValueError, match="printable"):
        client.publish("again", "<a/>", "é")


def test_an_unreadable_document_is_an_error_with_its_position(client: Client, tmp_path: Path) -> None:
    with pytest.raises(BrokerError) as caught:
        client.publish("bad", "<a>\n<b></a>")
    assert (caught.value.status, caught.value.line, caught.value.column) == (422, 2, 6)
    found = client.publish("bad", ["<a/>", "<a>", tmp_path / "none", "<b/>"], errors="return")
    assert [isinstance(each, pathcast.PathcastError) for each in found] == [False, True, True, False]
    assert [each.index for each in found if isinstance(each, pathcast.PathcastError)] == [1, 2]
    with pytest.raises(BrokerError) as caught:
        client.publish("bad", ["<a>", "<b>"])
    assert caught.value.index == 0
    kept = client.publish("bad", "<a>", keep_invalid=True)
    assert kept.error is not None and kept.error.startswith("line 1")


def test_many_documents_travel_in_several_batches(client: Client) -> None:
    client.subscribe("batches", "//n[@k = '3']", ["batches"])
    found = client.publish("batches", [f"<n k='{number}'/>" for number in range(1_300)])
    assert [each.sequence for each in found] == list(range(found[0].sequence, found[0].sequence + 1_300))
    assert [each.sequence for each in client.pull("batches").deliveries] == [found[3].sequence]


def test_a_subscription_is_created_read_listed_and_ended(client: Client) -> None:
    start = datetime(2020, 1, 1, tzinfo=UTC)
    made = client.subscribe(
        "life", "//f:a", ["x"], namespaces={"f": "urn:f"}, start=start, subscriber="life", ack_wait=5, in_flight=9
    )
    assert (made.xpath, made.namespaces, made.feeds) == ("//f:a", {"f": "urn:f"}, ("x",))
    assert (made.config["ack_wait"], made.config["in_flight"]) == (5, 9)
    assert client.subscription("life") == made
    assert list(client.subscriptions("life")) == [made]
    assert made in list(client.subscriptions())
    client.unsubscribe("life")
    with pytest.raises(BrokerError, match="unknown subscription 'life'"):
        client.unsubscribe("life")


def test_a_check_has_the_normal_form_or_the_place_of_the_error(client: Client) -> None:
    assert client.check("a[5 > b]") == "//a/b[. < 5]"
    with pytest.raises(BrokerError) as caught:
        client.check("//a[place() > 1]")
    assert caught.value.column == 5 and "^" in str(caught.value)


def test_pull_acknowledge_give_back_and_replay(client: Client) -> None:
    client.subscribe("cursor", "//a", ["cursor"])
    sequences = [each.sequence for each in client.publish("cursor", ["<a/>"] * 3)]
    pulled = client.pull("cursor", wait=5).deliveries
    assert [(each.sequence, each.attempt) for each in pulled] == [(sequence, 1) for sequence in sequences]
    client.give_back("cursor", pulled[1:2])
    assert [(each.sequence, each.attempt) for each in client.pull("cursor").deliveries] == [(sequences[1], 2)]
    client.acknowledge("cursor", pulled)
    status = client.status("cursor")
    assert status.cursor >= sequences[-1]
    assert status.dead_letters == {"kept": 0, "total": 0}
    assert status.last_delivery is not None
    assert status.last_delivery["sequence"] == sequences[1]
    assert status.last_error is not None
    assert str(status.last_error["reason"]).startswith(f"the subscriber did not acknowledge document {sequences[1]}")
    with pytest.raises(BrokerError) as caught:
        client.acknowledge("cursor", [10**9])
    assert caught.value.problem["unknown"] == [10**9]
    assert client.replay("cursor", sequences[1]).cursor == sequences[0]
    assert [each.sequence for each in client.pull("cursor").deliveries] == sequences[1:]


def test_dead_letters_are_listed_page_by_page_and_made_due_again(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dead_letters_calls, "_PAGE", 2)
    client.subscribe("dead", "//a", "dead", max_deliver=1)
    sequences = [each.sequence for each in client.publish("dead", ["<a/>"] * 5)]
    assert (list(client.dead_letters("dead")), client.revive("dead")) == ([], Revived(0, 0))
    client.give_back("dead", client.pull("dead", wait=5).deliveries)
    assert list(client.dead_letters("dead")) == [DeadLetter(each, 1, "max_deliver") for each in sequences]
    assert client.pull("dead").deliveries == ()
    assert client.revive("dead") == Revived(5, 0)
    assert list(client.dead_letters("dead")) == []
    again = client.pull("dead").deliveries
    assert [(each.sequence, each.attempt) for each in again] == [(sequence, 1) for sequence in sequences]
    for call in (lambda: list(client.dead_letters("nobody")), lambda: client.revive("nobody")):
        with pytest.raises(BrokerError, match="unknown subscription 'nobody'"):
            call()


def test_a_sink_has_a_secret_until_it_is_removed(client: Client) -> None:
    sink = "https://example.org/hook"
    made = client.subscribe("hook", "//a", "hook", sink=sink)
    assert made.sink == sink
    assert client.status("hook").sink == {"url": sink, "disabled": None, "failures": 0}
    assert client.subscription("hook") == made
    assert client.secret("hook").startswith("whsec_")
    with pytest.raises(BrokerError, match="has a sink, so it cannot be pulled"):
        client.pull("hook")
    assert client.subscribe("hook", "//a", "hook").sink is None
    with pytest.raises(BrokerError, match="no sink"):
        client.secret("hook")


def test_events_end_with_the_subscription_and_begin_where_they_are_told(client: Client) -> None:
    made = client.subscribe("ends", "//a", ["ends"])
    first, second = client.publish("ends", ["<a/>", "<a/>"])
    with client.events("ends", after=made.valid_from - 1, bodies=False) as events:
        delivery = next(events)
        assert isinstance(delivery, Delivery) and (delivery.sequence, delivery.body) == (first.sequence, None)
        assert events.position == first.sequence
    rest = client.events("ends", after=first.sequence)
    assert next(rest).sequence == second.sequence  # type: ignore[union-attr]
    client.unsubscribe("ends")
    assert list(rest) == []
    with pytest.raises(BrokerError, match="unknown subscription"):
        client.events("ends")


def test_an_unknown_position_is_a_gap(client: Client) -> None:
    client.subscribe("unknown", "//a", ["unknown"])
    events = client.events("unknown", after=10**12)
    gap = next(events)
    assert isinstance(gap, Gap) and (gap.end, gap.reason) == (10**12, "unknown")
    published = client.publish("unknown", "<a/>")
    assert next(events).sequence == published.sequence  # type: ignore[union-attr]
    events.close()


def test_an_address_without_a_broker_is_reported(broker: Served) -> None:
    waits: list[float] = []
    with (
        pathcast.connect(
            f"http://127.0.0.1:{free_port()}", patience=0.3, on_retry=lambda _, seconds: waits.append(seconds)
        ) as client,
        pytest.raises(UnreachableError, match="cannot reach the broker"),
    ):
        client.status("x")
    assert waits and sum(waits) < 0.5
    for url in ("127.0.0.1:80", "ftp://x", "http://", "http://x:port", "http://x?y"):
        with pytest.raises(pathcast.PathcastError, match="is not a broker address"):
            pathcast.connect(url)
    with pathcast.connect(f"{broker.address}/nowhere") as client, pytest.raises(BrokerError, match="unknown path"):
        client.status("x")


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1_000])
def test_frames_are_read_whatever_the_pieces_they_come_in(size: int) -> None:
    text = "<t>\u2028\u0085</t>"
    document = '{"sequence":%d,"feed":"f","time":1.5,"media_type":"application/xml","body":"' + text + '"}'
    frames = ["id: 3\r\n: heartbeat\r\n\r\n", f"id: 4\nevent: document\ndata: {document % 4}\n\n"]
    frames += ['event: gap\ndata: {"from":5,"to":8,"reason":"trimmed"}\n\n', "id: 9\n: heartbeat\n\n"]
    frames += [f"id: 9\nevent: document\ndata: {document % 9}\n\n", f"id: 10\nevent: document\ndata: {document % 10}"]
    data = "".join(frames).encode()
    reader = EventReader("x", None, bodies=True)
    found = [event for at in range(0, len(data), size) for event in reader.read(data[at : at + size])]
    assert [each.sequence if isinstance(each, Delivery) else (each.begin, each.end) for each in found] == [4, (5, 8)]
    assert isinstance(found[0], Delivery) and found[0].body == text.encode()
    assert reader.headers()["last-event-id"] == "9"
    assert list(reader.read(b"id: 9\n: heartbeat\n\n")) == []
    (after,) = reader.read(f"id: 10\nevent: document\ndata: {document % 10}\n\n".encode())
    assert isinstance(after, Delivery) and after.sequence == 10


@pytest.mark.parametrize("documents", [["<a/>"], ["<a/>", "<b/>", "<c/>"]], ids=["raw", "batch"])
def test_a_publication_whose_answer_is_lost_is_not_published_twice(broker: Served, documents: list[str]) -> None:
    sent: list[httpx.Response] = []

    def lose_the_first(request: httpx.Request) -> httpx.Response:
        headers = {"content-type": request.headers["content-type"], "ce-id": request.headers.get("ce-id", "")}
        sent.append(broker.http.post(request.url.path, content=request.read(), headers=headers))
        if len(sent) == 1:
            raise httpx.ReadError("lost")
        return sent[-1]

    with pathcast.connect(broker.address) as client:
        client._http = httpx.Client(base_url=broker.address, transport=httpx.MockTransport(lose_the_first))
        found = client.publish("lost", documents)
    assert len(sent) == 2 and all(each.duplicate for each in found)


def test_the_asynchronous_client_does_the_same(broker: Served) -> None:
    async def session() -> None:
        async with connect_async(broker.address) as client:
            await client.subscribe("async", "//a", ["async"])
            async with client.events("async") as events:
                one = await client.publish("async", "<a/>")
                many = await client.publish("async", ["<a/>", "<b/>", "<a"], errors="return")
                assert isinstance(many[2], BrokerError)
                found = [(await anext(events)).sequence for _ in range(2)]  # type: ignore[union-attr]
                assert found == [one.sequence, one.sequence + 1]
            pulled = await client.pull("async")
            await client.acknowledge("async", pulled.deliveries[:1])
            await client.give_back("async", pulled.deliveries[1:])
            assert [each.attempt for each in (await client.pull("async")).deliveries] == [2]
            assert (await client.replay("async", one.sequence)).cursor == one.sequence - 1
            await client.subscribe("async", "//a", ["async"], start=one.sequence, max_deliver=1)
            await client.give_back("async", (await client.pull("async")).deliveries)
            dead = [each.sequence async for each in client.dead_letters("async")]
            assert dead == [one.sequence, one.sequence + 1]
            assert await client.revive("async") == Revived(2, 0)
            await client.subscribe("async", "//a", ["none"], sink="https://example.org/hook")
            assert (await client.secret("async")).startswith("whsec_")
            assert (await client.subscription("async")).id in [each.id async for each in client.subscriptions()]
            assert (await client.document(one.sequence), await client.check("a")) == (b"<a/>", "//a")
            await client.unsubscribe("async")
            with pytest.raises(BrokerError):
                await client.status("async")

    asyncio.run(session())


def test_an_explanation_has_all_subscriptions_of_a_logged_or_given_document(broker: Served, tmp_path: Path) -> None:
    with pathcast.connect(broker.address) as client:
        client.subscribe("e1", "//e[@x = 7]", "explained")
        client.subscribe("e2", "//e", "explained")
        file = tmp_path / "e.xml"
        file.write_text("<e x='9'/>")
        sequence = client.publish("explained", file).sequence
        for found in (client.explain(sequence), client.explain(file, "explained")):
            assert {each.id: each.reason for each in found if each.id in {"e1", "e2"}} == {
                "e1": "pattern",
                "e2": "matched",
            }
        (one,) = client.explain(sequence, subscription="e1")
        assert not one.matches
        assert one.steps[0]["holds"] is False
        with pytest.raises(ValueError, match="either a sequence, or a document and its feed"):
            client.explain(file)
        with pytest.raises(ValueError, match="either a sequence, or a document and its feed"):
            client.explain(sequence, "explained")

    async def asynchronously() -> list[bool]:
        async with connect_async(broker.address) as client:
            return [each.matches for each in await client.explain(sequence, subscription="e2")]

    assert asyncio.run(asynchronously()) == [True]


def test_an_explanation_asks_for_pages_until_there_are_no_more() -> None:
    explanation = Explanation(7, None, None)
    shown = '{"subscriptions": [{"id": "%s", "subscriber": "ada", "matches": true, "reason": "matched"}]%s}'
    for id, more in (("a", ', "next": "a"'), ("b", "")):
        call = explanation.next()
        assert call is not None
        assert call.query.get("after") == (None if id == "a" else "a")
        call.read(Answer(200, {}, (shown % (id, more)).encode()))
    assert explanation.next() is None
    assert [each.id for each in explanation.found] == ["a", "b"]


@pytest.mark.parametrize(("reason", "position"), [("expired", 3), ("trimmed", 9)])
def test_documents_of_other_feeds_follow_the_gap_of_an_expired_feed(reason: str, position: int) -> None:
    reader = EventReader("s", 3, bodies=True)
    frame = f'event: gap\ndata: {{"from": 4, "to": 9, "reason": "{reason}", "feed": "news"}}\n\n'
    assert list(reader.read(frame.encode())) == [Gap(4, 9, reason, "news")]
    assert reader.position == position


def test_a_batch_is_uploaded_in_pieces_and_published_once(client: Client) -> None:
    uploads = [
        client.upload(
            [NewDocument("news", "<a>é</a>", "a"), NewDocument("news", b"<a>\xff</a>", headers={"type": "t"})]
        ),
        client.upload([NewDocument("news", b"<b/>")]),
    ]
    with pytest.raises(BrokerError, match=r"document 1 of upload .* cannot be read"):
        client.commit(uploads, "7", "job")
    first = client.commit(uploads, "7", "job", keep_invalid=True)
    assert (first.documents, first.kept, first.repeated) == (3, 1, False)
    assert client.commit(uploads, "7", "job") == replace(first, repeated=True)
    client.discard(uploads[0])
    assert client.document(first.sequence - 3) == "<a>é</a>".encode()
