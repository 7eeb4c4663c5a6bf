"""Batches of uploads: all documents or none, once per batch, whatever happens to the broker in between."""

import base64
import random
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from pathcast.broker import Broker, BrokerSettings, Publication, add_token
from pathcast.broker.sequencing.sequencer_requests import Committed, NotCommitted
from pathcast.broker.settings.broker_sections import LogSection, Quotas, TokensSection
from pathcast.broker.settings.jetstream_section import JetStreamSection
from pathcast.broker.standby import Standby
from pathcast.broker.uploads.upload_settings import UploadsSection
from pathcast.broker.uploads.upload_store import BusyUploadError, UnknownUploadError, UploadStore
from pathcast.broker_log import BatchRecord, BrokerState, CommittedBatches, DocumentRecord, SubscriptionRecord, meta_of
from pathcast.errors import LimitError
from pathcast.log import LogFullError, LogRecord, SqliteLog

from ..log.nats_servers import NatsServer
from .broker_process import BrokerProcess
from .served_broker import Served, served
from .settable_clock import SettableClock


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path / "data") as found:
        yield found


def documents(*names: str, feed: str = "news") -> list[dict[str, Any]]:
    return [{"feed": feed, "id": name, "data": f"<n k='{name}'/>"} for name in names]


def upload(http: httpx.Client, *names: str, feed: str = "news") -> str:
    answer = http.post("/v1/uploads", json=documents(*names, feed=feed))
    assert answer.status_code == 201, answer.text
    return str(answer.json()["upload"])


def commit(http: httpx.Client, batch: str, *uploads: str, **more: str) -> httpx.Response:
    return http.post("/v1/uploads:commit", json={"uploads": uploads, "batch": batch, "source": "job", **more})


def ids(broker: Broker) -> list[str | None]:
    found = [meta_of(entry) for entry in broker.log.read(1)]
    return [meta.id for meta in found if isinstance(meta, DocumentRecord)]


def test_an_upload_is_published_by_the_commit_of_its_batch_and_not_before(server: Served) -> None:
    server.http.put("/v1/subscriptions/all", json={"xpath": "//n"}).raise_for_status()
    first, second = upload(server.http, "a", "b"), upload(server.http, "c", feed="mail")
    assert ids(server.broker) == []
    answer = commit(server.http, "0", first, second)
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert found == {"sequence": server.broker.log.head, "documents": 3, "duplicates": 0, "kept": 0, "repeated": False}
    assert ids(server.broker) == ["a", "b", "c"]
    pulled = server.http.post("/v1/subscriptions/all:pull").json()["deliveries"]
    assert [each["body"] for each in pulled] == ["<n k='a'/>", "<n k='b'/>", "<n k='c'/>"]
    assert [each["feed"] for each in pulled] == ["news", "news", "mail"]
    # The uploads are gone: another batch cannot have them.
    assert commit(server.http, "1", first).status_code == 404


@pytest.mark.slow
def test_after_a_take_over_uploads_are_unknown_and_committed_batches_are_known(
    tmp_path: Path, nats_server: NatsServer
) -> None:
    """Uploads are on the disk of one broker; the log is not."""
    clock = SettableClock()

    def on(machine: str) -> tuple[BrokerSettings, Standby]:
        jetstream = JetStreamSection(servers=(nats_server.url,), stream="uploads-taken-over")
        settings = BrokerSettings(data=str(tmp_path / machine), log=LogSection(kind="jetstream"), jetstream=jetstream)
        return settings, Standby(settings, f"http://{machine}", clock)

    settings, active = on("one")
    assert active.take()
    with closing(active), served(tmp_path, settings, active.broker(), active) as server:
        committed = commit(server.http, "0", upload(server.http, "a")).json()
        lost = upload(server.http, "b")
    settings, active = on("two")
    assert active.take()
    with closing(active), served(tmp_path, settings, active.broker(), active) as server:
        assert commit(server.http, "0", "gone").json() == {**committed, "repeated": True}
        answer = commit(server.http, "1", lost)
        assert answer.status_code == 404
        assert "or belongs to another token or broker; upload its documents again" in answer.json()["detail"]
        assert ids(server.broker) == ["a"]
        assert commit(server.http, "1", upload(server.http, "b")).status_code == 200
        assert ids(server.broker) == ["a", "b"]


def test_a_batch_is_published_once_however_often_it_is_committed(server: Served) -> None:
    first = commit(server.http, "0", upload(server.http, "a")).json()
    # The answer was lost: the same commit, whose uploads are gone.
    again = commit(server.http, "0", "0" * 32)
    assert again.status_code == 200
    assert again.json() == {**first, "repeated": True}
    # The batch was made again, with new uploads and documents without ids.
    other = server.http.post("/v1/uploads", json=[{"feed": "news", "data": "<other/>"}]).json()["upload"]
    assert commit(server.http, "0", other).json() == {**first, "repeated": True}
    assert commit(server.http, "1", other).status_code == 404
    # Another source has batches of its own.
    assert commit(server.http, "0", upload(server.http, "z"), source="else").json()["repeated"] is False
    assert ids(server.broker) == ["a", "z"]


def test_a_batch_with_an_unreadable_document_publishes_nothing_and_names_it(server: Served) -> None:
    good = upload(server.http, "a", "b")
    content = [*documents("c"), {"feed": "new", "id": "broken-1", "data": "<x>\n<y></x>"}]
    bad = server.http.post("/v1/uploads", json=content).json()["upload"]
    head = server.broker.log.head
    answer = commit(server.http, "0", good, bad)
    assert answer.status_code == 422
    problem = answer.json()
    assert problem["detail"].startswith(
        f"nothing was published: document 1 (id 'broken-1') of upload {bad!r} for feed 'new' cannot be read: "
    )
    assert (problem["upload"], problem["document"], problem["line"]) == (bad, 1, 2)
    assert server.broker.log.head == head
    assert "new" not in server.broker.indexes
    kept = commit(server.http, "0", good, bad, invalid="keep").json()
    assert (kept["documents"], kept["kept"]) == (4, 1)
    assert ids(server.broker) == ["a", "b", "c", "broken-1"]


def test_documents_with_known_ids_are_duplicates_within_a_batch_too(server: Served) -> None:
    commit(server.http, "0", upload(server.http, "a")).raise_for_status()
    found = commit(server.http, "1", upload(server.http, "a", "b", "b")).json()
    assert (found["documents"], found["duplicates"]) == (1, 2)
    assert ids(server.broker) == ["a", "b"]


def test_bytes_headers_and_schemas_are_kept(server: Served) -> None:
    mediator = {"mediator": {"schema": "n", "mappings": {"annex": 'name = "annex"\nschema = "n @k #text"'}}}
    server.http.put("/v1/feeds/news", json=mediator).raise_for_status()
    body = "<?xml version='1.0' encoding='latin-1'?><n>é</n>".encode("latin-1")
    content = {
        "feed": "news",
        "data_base64": base64.b64encode(body).decode(),
        "headers": {"content-type": "text/xml", "pathcast-schema": "annex", "type": "t"},
    }
    made = server.http.post("/v1/uploads", json=[content]).json()["upload"]
    commit(server.http, "0", made).raise_for_status()
    (entry,) = server.broker.log.read(1, kinds=["document"])
    document = meta_of(entry)
    assert isinstance(document, DocumentRecord)
    assert entry.body == body
    assert (document.media_type, document.schema, document.id) == ("text/xml", "annex", None)
    assert document.attributes == {"type": "t", "dataschema": "annex"}


def test_uploads_are_rejected_with_the_place_of_what_is_wrong(server: Served) -> None:
    rows: list[tuple[Any, int, str]] = [
        ([], 422, "the upload has no documents"),
        ({}, 400, "the upload is malformed"),
        ([*documents("a"), {"feed": "news"}], 422, "document 1: the document has neither data nor data_base64"),
        (
            [{"feed": "news", "data": "<a/>", "data_base64": ""}],
            422,
            "document 0: the document has both data and data_base64",
        ),
        ([{"feed": "a b", "data": "<a/>"}], 422, "document 0: invalid feed 'a b'"),
        ([{"feed": "news", "data": "<a/>", "id": ""}], 422, "document 0: the id has 0 characters"),
        ([{"feed": "news", "data": "<a/>", "headers": {"": "x"}}], 422, "document 0: a header has an empty name"),
        ([{"feed": "news", "data_base64": "%%"}], 400, "$[0].data_base64"),
        ([{"feed": "news", "data": "<a/>", "more": 1}], 400, "$[0]"),
    ]
    for content, status, detail in rows:
        answer = server.http.post("/v1/uploads", json=content)
        assert (answer.status_code, detail in answer.json()["detail"]) == (status, True), answer.text
    wrong: list[tuple[dict[str, Any], int]] = [
        ({"uploads": [], "batch": ""}, 422),
        ({"uploads": ["x", "x"], "batch": "0"}, 422),
        ({"uploads": ["x"], "batch": "0"}, 404),
        ({"uploads": ["../../x"], "batch": "0"}, 404),
        ({"uploads": [], "batch": "0", "invalid": "maybe"}, 400),
    ]
    for content, status in wrong:
        assert server.http.post("/v1/uploads:commit", json=content).status_code == status, content
    assert server.http.delete("/v1/uploads/none").status_code == 404
    assert server.broker.log.head == 0 or ids(server.broker) == []


def test_an_upload_belongs_to_its_token_and_feeds_need_scopes(tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    secrets = {
        name: add_token(file, "desk", name, scopes)[0]
        for name, scopes in {"ada": ["publish:news"], "bob": ["publish:*"]}.items()
    }
    settings = BrokerSettings(tokens=TokensSection(file=str(file)))
    with served(tmp_path / "data", settings) as server:
        ada, bob = ({"authorization": f"Bearer {secrets[name]}"} for name in ("ada", "bob"))
        assert server.http.post("/v1/uploads", json=documents("a", feed="mail"), headers=ada).status_code == 403
        made = server.http.post("/v1/uploads", json=documents("a"), headers=ada).json()["upload"]
        stolen = {"uploads": [made], "batch": "0"}
        assert server.http.post("/v1/uploads:commit", json=stolen, headers=bob).status_code == 404
        assert server.http.delete(f"/v1/uploads/{made}", headers=bob).status_code == 404
        assert server.http.post("/v1/uploads:commit", json=stolen, headers=ada).status_code == 200
        assert (
            server.http.post("/v1/uploads:commit", json={**stolen, "uploads": []}, headers=bob).json()["documents"] == 0
        )


def test_quotas_bound_uploads_and_batches(tmp_path: Path) -> None:
    settings = BrokerSettings(uploads=UploadsSection(tenant=900, batch=500, documents=5), quotas=Quotas(feeds=1))
    with served(tmp_path / "data", settings) as server:
        assert server.http.post("/v1/uploads", json=documents(*"abcdef")).status_code == 422
        assert server.http.post("/v1/uploads", json=documents("a" * 200, "b" * 200)).status_code == 413
        made = [upload(server.http, f"{name}" * 40) for name in "abcdefg"[:6]]
        assert server.http.post("/v1/uploads", json=documents("g" * 100)).status_code == 429
        answer = commit(server.http, "0", *made)
        assert answer.status_code == 422
        assert "at most 500 are allowed" in answer.json()["detail"]
        assert server.http.delete(f"/v1/uploads/{made.pop()}").status_code == 204
        other = server.http.post("/v1/uploads", json=documents("g", feed="mail"))
        assert other.status_code == 201
        commit(server.http, "0", made[0]).raise_for_status()
        assert commit(server.http, "1", other.json()["upload"]).status_code == 429  # a second feed
        assert server.http.get("/metrics").text.count("pathcast_upload_bytes ") >= 1


def test_uploads_expire_survive_a_restart_and_are_checked_when_read(tmp_path: Path) -> None:
    clock = SettableClock()

    def store() -> UploadStore:
        return UploadStore(tmp_path / "uploads", expire=60.0, tenant_bytes=100, clock=clock)

    first = store()
    old = first.put("t", "ada", ["news"], 1, b"x" * 40)
    clock.now += 30
    new = first.put("t", "ada", ["news"], 1, b"y" * 40)
    with pytest.raises(LimitError, match="exceed 100"):
        first.put("t", "ada", ["news"], 1, b"z" * 40)
    (tmp_path / "uploads" / "cut.new").write_bytes(b"{")
    (tmp_path / "uploads" / f"{'0' * 32}.upload").write_bytes(b"no header")
    again = store()
    assert again.size == 80
    assert [each.size for each in again.take([old], "t", "ada")] == [40]
    with pytest.raises(BusyUploadError):
        again.take([new, old], "t", "ada")
    assert again.read(old) == b"x" * 40
    clock.now += 40  # the old one would have expired, but a commit has it
    again.sweep()
    assert again.size == 80
    again.give_back([old])
    again.sweep()
    with pytest.raises(UnknownUploadError, match="it has expired"):
        again.take([old], "t", "ada")
    path = tmp_path / "uploads" / f"{new}.upload"
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    path.write_bytes(path.read_bytes()[:-1] + b"!")
    with pytest.raises(UnknownUploadError, match="is damaged"):
        again.read(new)
    assert again.remove([new], "t", "bob") == 0
    assert again.remove([new], "t", "ada") == 1
    assert again.size == 0


def test_of_commits_at_the_same_time_one_publishes(server: Served) -> None:
    made = [upload(server.http, f"a{number}") for number in range(8)]
    answers: list[httpx.Response] = []

    def run(id: str) -> None:
        with httpx.Client(base_url=server.address, timeout=30) as http:
            answers.append(commit(http, "0", id))

    threads = [threading.Thread(target=run, args=[id]) for id in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [each.status_code for each in answers] == [200] * 8
    assert sorted(each.json()["repeated"] for each in answers) == [False] + [True] * 7
    assert len(ids(server.broker)) == 1


def test_a_full_disk_publishes_nothing_and_the_batch_can_be_committed_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = SqliteLog(tmp_path / "log")
    broker = Broker(log)
    append = log.append

    def full(records: list[LogRecord]) -> int:
        raise LogFullError("no space")

    batch = {"news": [Publication(b"<a/>", "a")]}
    try:
        monkeypatch.setattr(log, "append", full)
        with pytest.raises(LogFullError):
            broker.commit("t/ada/", "0", batch).result()
        assert broker.indexes == {}
        monkeypatch.setattr(log, "append", append)
        assert broker.commit("t/ada/", "0", batch).result().repeated is False  # type: ignore[union-attr]
    finally:
        broker.close()


def test_a_batch_of_many_pieces_is_matched_like_single_publications(tmp_path: Path) -> None:
    broker, plain = Broker(SqliteLog(tmp_path / "batch")), Broker(SqliteLog(tmp_path / "plain"))
    try:
        bodies = [f"<n k='{number % 7}'><m/></n>".encode() for number in range(2_000)]
        bodies[700] = bodies[1_500] = b"<broken"
        for each in (broker, plain):
            for key in range(3):
                each.subscribe(
                    SubscriptionRecord(
                        "t", f"s{key}", "ada", expression=f"//n[@k='{key}']", pattern=f"//n[@k = '{key}']"
                    )
                ).result()
        result = broker.commit("t/ada/", "0", {"news": [Publication(each) for each in bodies]}).result()
        assert isinstance(result, NotCommitted)
        assert (result.place, result.rejected) == (700, 2)
        documents = [Publication(each) for each in bodies]
        result = broker.commit("t/ada/", "0", {"news": documents}, keep_invalid=True).result()
        assert isinstance(result, Committed)
        for begin in range(0, len(documents), 100):
            plain.publish("news", documents[begin : begin + 100], keep_invalid=True).result()
        for key in range(3):
            found = [
                each.deliveries(each.state.subscriptions["t", f"s{key}"], 0, 5_000).sequences
                for each in (broker, plain)
            ]
            assert len(found[0]) > 200
            assert found[0] == found[1]
    finally:
        broker.close()
        plain.close()


def test_committed_batches_are_known_by_publisher_and_survive_checkpoints(tmp_path: Path) -> None:
    window = CommittedBatches(batches=2, publishers=2)
    for sequence, (publisher, batch) in enumerate(
        [("t/a/x", "0"), ("t/a/x", "1"), ("t/a/y", "0"), ("t/a/x", "2"), ("u/a/z", "0")], 1
    ):
        window.add(sequence, BatchRecord(publisher, batch, 1))
    assert window.find("t/a/x", "0") is None  # beyond the two batches of its publisher
    assert window.find("t/a/x", "1") is not None
    window.add(6, BatchRecord("t/a/w", "0", 1))
    assert window.find("t/a/y", "0") is None  # the publisher that committed longest ago
    assert window.find("u/a/z", "0") is not None  # another tenant's
    state = BrokerState()
    for sequence in range(1, 4):
        state.apply(sequence, BatchRecord("t/a/x", str(sequence), sequence))
    restored = BrokerState.restored(3, state.checkpoint())
    assert restored.batches.saved() == state.batches.saved()
    assert restored.batches.find("t/a/x", "2") == (2, BatchRecord("t/a/x", "2", 2))


def test_a_batch_is_known_after_a_restart_and_after_trimming(tmp_path: Path) -> None:
    with served(tmp_path / "data") as server:
        first = commit(server.http, "0", upload(server.http, *(f"a{n}" for n in range(400)))).json()
        for number in range(300):
            server.http.post("/v1/feeds/news/documents", content=f"<n>{'x' * 500}{number}</n>").raise_for_status()
        assert server.broker.trim(server.broker.log.head) > first["sequence"]
    with served(tmp_path / "data") as server:
        assert commit(server.http, "0", "0" * 32).json() == {**first, "repeated": True}


@pytest.mark.slow
def test_a_broker_that_is_killed_during_commits_publishes_each_batch_once(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """The client sends a request without an answer again, as after every kill; uploads outlive the process."""
    kills = 40 if request.config.getoption("--long") else 6
    per_batch = 300
    moments = random.Random(kills)
    again: list[bool] = []  # of commits that were cut: whether the first one had published
    with BrokerProcess(tmp_path / "data") as broker, httpx.Client(base_url=broker.address, timeout=60) as http:
        for batch in range(kills):
            # Without ids: the broker finds documents with an id that come twice, whatever the commit does.
            rows = [{"feed": "news", "data": f"<n k='{batch}-{number}'/>"} for number in range(per_batch)]
            made = http.post("/v1/uploads", json=rows).raise_for_status().json()["upload"]
            # A commit of this size takes some 20 ms: the kill comes before, in the middle, or after.
            strike = threading.Timer(moments.uniform(0, 0.03), broker.kill)
            strike.start()
            try:
                answer = commit(http, str(batch), made)
                strike.join()
                broker.start()
            except httpx.TransportError:
                strike.join()
                broker.start()
                answer = commit(http, str(batch), made)
                again.append(answer.json()["repeated"])
            assert answer.status_code == 200, answer.text
            assert answer.json()["documents"] == per_batch
        assert broker.stop() == 0, broker.errors()
    assert again
    log = SqliteLog(tmp_path / "data" / "log", read_only=True)
    found = [entry.body.decode() for entry in log.read(1, kinds=["document"])]
    log.close()
    assert found == [f"<n k='{batch}-{number}'/>" for batch in range(kills) for number in range(per_batch)]
