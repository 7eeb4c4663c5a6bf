"""The HTTP surface, against a real server."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from pathcast.broker import Broker, BrokerSettings
from pathcast.broker.settings.broker_sections import ConnectionLimits
from pathcast.log import JetStreamLog

from .served_broker import Events, Served, served


@pytest.fixture(scope="module", params=["sqlite", pytest.param("jetstream", marks=pytest.mark.slow)])
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    log = None
    if request.param == "jetstream":
        log = JetStreamLog.open(request.getfixturevalue("nats_server").url, "http")
    with served(tmp_path_factory.mktemp("broker"), broker=None if log is None else Broker(log)) as found:
        yield found


def publish(broker: Served, feed: str, document: str | bytes, **options: object) -> httpx.Response:
    return broker.http.post(f"/v1/feeds/{feed}/documents", content=document, **options)  # type: ignore[arg-type]


def subscribe(broker: Served, id: str, xpath: str, **more: object) -> httpx.Response:
    return broker.http.put(f"/v1/subscriptions/{id}", json={"xpath": xpath, **more})


def test_a_document_that_is_posted_arrives_as_it_came(broker: Served) -> None:
    assert subscribe(broker, "arrives", "//title", feeds=["a"]).status_code == 201
    events = Events(broker, "/v1/subscriptions/arrives/events")
    events.next()
    document = "<?xml version='1.0' encoding='utf-8'?>\n<nitf ><title>é</title></nitf>\n"
    answer = publish(broker, "a", document.encode())
    assert answer.status_code == 202
    event = events.next_of_kind("document")
    data = json.loads(event["data"])
    assert (int(event["id"]), data["sequence"]) == (answer.json()["sequence"], answer.json()["sequence"])
    assert (data["body"], data["feed"]) == (document, "a")
    assert broker.http.get(f"/v1/documents/{data['sequence']}").content == document.encode()
    events.close()


def test_a_subscriber_whose_subscriptions_are_equal_gets_every_document(broker: Served) -> None:
    for id in ("equal-1", "equal-2"):
        subscribe(broker, id, "//equal", feeds=["equal"], subscriber="twice")
    events = Events(broker, "/v1/subscribers/twice/events")
    events.next()
    for _ in range(3):
        sequence = publish(broker, "equal", "<equal/>").json()["sequence"]
        data = json.loads(events.next_of_kind("document")["data"])
        assert (data["sequence"], data["subscriptions"]) == (sequence, ["equal-1", "equal-2"])
    events.close()


def test_a_document_in_another_encoding_arrives_in_base64(broker: Served) -> None:
    subscribe(broker, "latin", "//title", feeds=["latin"])
    document = "<?xml version='1.0' encoding='iso-8859-1'?><title>é</title>".encode("iso-8859-1")
    publish(broker, "latin", document)
    (delivery,) = broker.http.post("/v1/subscriptions/latin:pull").json()["deliveries"]
    assert base64.b64decode(delivery["body_base64"]) == document


def test_an_unreadable_document_is_answered_with_its_position(broker: Served) -> None:
    answer = publish(broker, "a", "<a>\n<b></a>")
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    assert (answer.json()["line"], answer.json()["column"]) == (2, 6)
    kept = publish(broker, "a", "<a>\n<b></a>", params={"invalid": "keep"})
    assert kept.status_code == 202
    assert kept.json()["error"]["line"] == 2


def test_a_batch_of_events_has_a_result_each(broker: Served) -> None:
    events = [
        {"id": "1", "source": "s", "specversion": "1.0", "type": "t", "data": "<a/>"},
        {"id": "2", "source": "s", "specversion": "1.0", "type": "t", "data": "<a>"},
        {
            "id": "3",
            "source": "s",
            "specversion": "1.0",
            "type": "t",
            "data_base64": base64.b64encode(b"<b/>").decode(),
        },
        {"id": "1", "source": "s", "specversion": "1.0", "type": "t", "data": "<a/>"},
        {"id": "1", "source": "other", "specversion": "1.0", "type": "t", "data": "<a/>"},
    ]
    headers = {"content-type": "application/cloudevents-batch+json"}
    answer = publish(broker, "batch", json.dumps(events).encode(), headers=headers)
    assert answer.status_code == 202
    first, wrong, third, again, other = answer.json()["results"]
    assert wrong["error"]["status"] == 422
    assert again == {"sequence": first["sequence"], "duplicate": True}
    assert third["sequence"] > first["sequence"]
    assert not other["duplicate"]


def test_an_event_that_is_none_does_not_reject_those_beside_it(broker: Served) -> None:
    good = {"source": "s", "data": "<a/>"}
    wrong = [{"id": "", "data": "<a/>"}, {"id": "w", "data": {}}, {"id": "w", "data_base64": "!"}, {"id": "w"}, 5, None]
    events = [{"id": "first", **good}, *wrong, {"id": "last", **good}]
    headers = {"content-type": "application/cloudevents-batch+json"}
    answer = publish(broker, "beside", json.dumps(events).encode(), headers=headers)
    first, *rejected, last = answer.json()["results"]
    assert (answer.status_code, last["sequence"]) == (202, first["sequence"] + 1)
    assert [each["error"]["status"] for each in rejected] == [400] * len(wrong)
    assert len({each["error"]["detail"] for each in rejected}) == len(wrong)
    none = publish(broker, "beside", json.dumps(wrong).encode(), headers=headers)
    assert (none.status_code, none.json()["results"]) == (422, rejected)


def test_events_with_an_empty_id_are_no_duplicates_of_each_other(broker: Served) -> None:
    event = json.dumps({"id": "", "data": "<a/>"}).encode()
    answer = publish(broker, "empty", event, headers={"content-type": "application/cloudevents+json"})
    assert (answer.status_code, "empty id" in answer.json()["detail"]) == (400, True)
    sequences = [publish(broker, "empty", "<a/>", headers={"ce-id": ""}).json()["sequence"] for _ in range(2)]
    assert sequences[0] < sequences[1]


def test_a_batch_of_documents_full_of_braces_is_published(broker: Served) -> None:
    events = [{"id": str(number), "data": "<a>" + "{" * 4_000 + "</a>"} for number in range(20)]
    headers = {"content-type": "application/cloudevents-batch+json"}
    answer = publish(broker, "braces", (" " + json.dumps(events, indent=1) + "\r\n").encode(), headers=headers)
    assert [each.get("duplicate") for each in answer.json()["results"]] == [False] * 20


def test_a_binary_event_is_a_document_with_attributes_in_headers(broker: Served) -> None:
    subscribe(broker, "binary", "//a", feeds=["binary"])
    headers = {"ce-id": "7", "ce-source": "press", "ce-specversion": "1.0", "content-type": "text/xml"}
    first = publish(broker, "binary", "<a/>", headers=headers).json()
    assert publish(broker, "binary", "<a/>", headers=headers).json() == {**first, "duplicate": True}
    (delivery,) = broker.http.post("/v1/subscriptions/binary:pull").json()["deliveries"]
    assert (delivery["id"], delivery["attributes"], delivery["media_type"]) == ("7", {"source": "press"}, "text/xml")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ({}, "event '7' has neither data (a string) nor data_base64; send one of them"),
        ({"data": "<a/>", "data_base64": ""}, "event '7' has both data (a string) and data_base64; send one of them"),
    ],
)
def test_an_event_needs_one_kind_of_data(broker: Served, content: dict[str, str], reason: str) -> None:
    event = {"specversion": "1.0", "id": "7", "source": "press", "type": "news", **content}
    answer = publish(
        broker, "news", json.dumps(event).encode(), headers={"content-type": "application/cloudevents+json"}
    )
    assert (answer.status_code, answer.json()["detail"]) == (400, reason)


@pytest.mark.parametrize(
    ("body", "status", "fragment"),
    [
        ('{"xpath": "//a["}', 422, "expected"),
        ('{"xpath": "//f:a"}', 422, "prefix 'f:'"),
        ("{", 400, "malformed"),
        ('{"xpath": 1}', 400, "malformed"),
        ('{"xpth": "//a"}', 400, "xpth"),
        ("{}", 422, "a subscription must have exactly one of xpath and filters, got neither"),
        ('{"xpath": "//a", "filters": []}', 422, "a subscription must have exactly one of xpath and filters, got both"),
        ('{"filters": []}', 422, "0 items"),
        ('{"xpath": "//a", "id": "other"}', 422, "same id"),
        ('{"xpath": "//a", "feeds": ["a/b"]}', 400, "feed 'a/b'"),
        ('{"xpath": "//a", "config": {"from": "yesterday"}}', 422, "'yesterday'"),
        ('{"xpath": "//a", "config": {"from": "2026-01-01T00:00:00"}}', 422, "time zone"),
        ('{"xpath": "//a", "config": {"from": 0}}', 422, "at least 1"),
        ('{"xpath": "//a", "config": {"in_flight": 0}}', 400, "in_flight"),
    ],
)
def test_a_wrong_subscription_is_answered_with_the_reason(
    broker: Served, body: str, status: int, fragment: str
) -> None:
    answer = broker.http.put("/v1/subscriptions/wrong", content=body.encode())
    assert answer.status_code == status
    assert fragment in answer.json()["detail"]
    assert broker.http.get("/v1/subscriptions/wrong").status_code == 404


def test_an_expression_that_is_not_xpath_is_shown_with_a_caret(broker: Served) -> None:
    answer = subscribe(broker, "caret", "//a[= 1]").json()
    assert "^" in answer["explanation"]
    assert answer["column"] == 5


def test_a_subscription_is_created_read_changed_listed_and_ended(broker: Served) -> None:
    namespaces = {"f": "urn:f"}
    filters = [{"xpath": {"expression": "//f:quote", "namespaces": namespaces}}]
    created = broker.http.put("/v1/subscriptions/life", json={"filters": filters, "subscriber": "life"})
    assert created.status_code == 201
    assert created.json()["filters"] == filters
    assert broker.http.get("/v1/subscriptions/life").json() == created.json()
    assert subscribe(broker, "life", "//b", subscriber="life").status_code == 200
    page = broker.http.get("/v1/subscriptions", params={"subscriber": "life"}).json()
    assert [each["id"] for each in page["subscriptions"]] == ["life"]
    assert broker.http.delete("/v1/subscriptions/life").status_code == 200
    assert broker.http.get("/v1/subscriptions/life").status_code == 404
    assert broker.http.delete("/v1/subscriptions/life").status_code == 404


def test_pages_of_subscriptions_hold_each_once(broker: Served) -> None:
    lines = [json.dumps({"id": f"page{n:03}", "xpath": "//p", "subscriber": "pages"}) for n in range(25)]
    answer = broker.http.post(
        "/v1/subscriptions", content="\n".join([*lines, '{"id": "bad", "xpath": "//["}']).encode()
    )
    assert answer.json()["accepted"] == 25
    assert answer.json()["errors"][0]["line"] == 26
    found, after = [], ""
    while True:
        page = broker.http.get("/v1/subscriptions", params={"subscriber": "pages", "limit": 10, "after": after}).json()
        found += [each["id"] for each in page["subscriptions"]]
        if "next" not in page:
            break
        after = page["next"]
    assert found == [f"page{n:03}" for n in range(25)]


def test_a_check_shows_the_normal_form_and_saves_nothing(broker: Served) -> None:
    answer = broker.http.post("/v1/subscriptions:check", json={"xpath": "a[5 > b]"})
    assert answer.json() == {"normal_form": "//a/b[. < 5]"}
    assert broker.http.get("/v1/subscriptions/checked").status_code == 404


def test_a_stream_resumes_right_after_the_last_event(broker: Served) -> None:
    subscribe(broker, "resume", "//a", feeds=["resume"])
    sequences = [publish(broker, "resume", "<a/>").json()["sequence"] for _ in range(5)]
    events = Events(broker, "/v1/subscriptions/resume/events", after=sequences[1])
    assert [int(events.next_of_kind("document")["id"]) for _ in range(3)] == sequences[2:]
    events.close()


def test_a_stream_does_not_move_the_cursor(broker: Served) -> None:
    subscribe(broker, "unmoved", "//a", subscriber="unmoved", feeds=["unmoved"])
    sequences = [publish(broker, "unmoved", "<a/>").json()["sequence"] for _ in range(3)]
    cursor = broker.http.get("/v1/subscriptions/unmoved/status").json()["cursor"]
    for path in ("/v1/subscriptions/unmoved/events", "/v1/subscribers/unmoved/events"):
        events = Events(broker, path, after=sequences[0] - 1)
        assert [int(events.next_of_kind("document")["id"]) for _ in range(3)] == sequences
        events.close()
    assert broker.http.get("/v1/subscriptions/unmoved/status").json()["cursor"] == cursor < sequences[0]
    pulled = broker.http.post("/v1/subscriptions/unmoved:pull").json()["deliveries"]
    assert [each["sequence"] for each in pulled] == sequences


def test_an_unknown_position_is_a_gap_and_a_malformed_one_an_error(broker: Served) -> None:
    subscribe(broker, "unknown", "//a", feeds=["unknown"])
    events = Events(broker, "/v1/subscriptions/unknown/events", after=10**12)
    gap = json.loads(events.next_of_kind("gap")["data"])
    assert (gap["to"], gap["reason"]) == (10**12, "unknown")
    sequence = publish(broker, "unknown", "<a/>").json()["sequence"]
    assert int(events.next_of_kind("document")["id"]) == sequence
    events.close()
    answer = broker.http.get("/v1/subscriptions/unknown/events", headers={"last-event-id": "x1"})
    assert answer.status_code == 400


def test_a_subscriber_gets_one_event_per_document_with_all_its_subscriptions(broker: Served) -> None:
    for id, xpath in (("many1", "//a"), ("many2", "//a[b]"), ("many3", "//c")):
        subscribe(broker, id, xpath, subscriber="many", feeds=["many"])
    events = Events(broker, "/v1/subscribers/many/events")
    events.next()
    for document in ("<a/>", "<x/>", "<a><b/><c/></a>"):
        publish(broker, "many", document)
    assert json.loads(events.next_of_kind("document")["data"])["subscriptions"] == ["many1"]
    assert json.loads(events.next_of_kind("document")["data"])["subscriptions"] == ["many1", "many2", "many3"]
    subscribe(broker, "many4", "//x", subscriber="many", feeds=["many"])
    publish(broker, "many", "<x/>")
    assert json.loads(events.next_of_kind("document")["data"])["subscriptions"] == ["many4"]
    events.close()


def test_a_stream_with_links_has_no_bodies(broker: Served) -> None:
    subscribe(broker, "links", "//a", feeds=["links"])
    sequence = publish(broker, "links", "<a/>").json()["sequence"]
    events = Events(broker, "/v1/subscriptions/links/events?bodies=links&after=0")
    data = json.loads(events.next_of_kind("document")["data"])
    assert data["link"] == f"/v1/documents/{sequence}"
    assert "body" not in data
    events.close()


def test_a_stream_ends_with_its_subscription(broker: Served) -> None:
    subscribe(broker, "ends", "//a", feeds=["ends"])
    events = Events(broker, "/v1/subscriptions/ends/events")
    events.next()
    broker.http.delete("/v1/subscriptions/ends")
    assert events.next()["event"] == "end"
    events.close()


def test_a_pull_waits_for_a_document(broker: Served) -> None:
    subscribe(broker, "wait", "//a", feeds=["wait"])
    with httpx.Client(base_url=broker.address, timeout=60) as other:
        import threading

        found: list[object] = []
        thread = threading.Thread(
            target=lambda: found.extend(other.post("/v1/subscriptions/wait:pull?wait=50").json()["deliveries"])
        )
        thread.start()
        publish(broker, "wait", "<a/>")
        thread.join()
    assert len(found) == 1


def test_pull_acknowledge_give_back_and_replay(broker: Served) -> None:
    subscribe(broker, "cursor", "//a", feeds=["cursor"])
    sequences = [publish(broker, "cursor", "<a/>").json()["sequence"] for _ in range(3)]

    def pulled() -> list[tuple[int, int]]:
        deliveries = broker.http.post("/v1/subscriptions/cursor:pull").json()["deliveries"]
        return [(each["sequence"], each["attempt"]) for each in deliveries]

    assert pulled() == [(sequence, 1) for sequence in sequences]
    assert broker.http.post("/v1/subscriptions/cursor:nack", json={"sequences": sequences[1:2]}).json()["returned"] == 1
    assert pulled() == [(sequences[1], 2)]
    wrong = broker.http.post("/v1/subscriptions/cursor:ack", json={"sequences": [*sequences, 10**9]})
    assert (wrong.status_code, wrong.json()["unknown"]) == (422, [10**9])
    status = broker.http.get("/v1/subscriptions/cursor/status").json()
    assert status["cursor"] >= sequences[-1]
    assert status["out"] == 0
    assert pulled() == []
    broker.http.post("/v1/subscriptions/cursor:replay", json={"sequence": sequences[1]})
    assert pulled() == [(sequence, 1) for sequence in sequences[1:]]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nowhere", 404),
        ("DELETE", "/v1/feeds", 405),
        ("GET", "/v1/documents/999999999", 404),
        ("GET", "/v1/subscriptions/no%20name", 400),
        ("POST", "/v1/subscriptions/none:pull", 404),
        ("GET", "/v1/subscriptions?limit=x", 400),
        ("POST", "/v1/feeds/a%2Fb/documents", 404),
    ],
)
def test_unknown_paths_are_answered_as_problems(broker: Served, method: str, path: str, status: int) -> None:
    answer = broker.http.request(method, path)
    assert answer.status_code == status
    assert answer.json()["status"] == status
    assert answer.json()["detail"]


def test_a_document_above_the_limit_is_rejected_before_it_is_read(tmp_path: Path) -> None:
    def endless() -> Iterator[bytes]:
        for _ in range(1 << 20):
            yield b"<!-- -->" * 1024

    # The server answers, then reads on for a time, so that the client can read the answer.
    with served(tmp_path, BrokerSettings(connections=ConnectionLimits(header_time=1.0))) as broker:
        try:
            answer = broker.http.post("/v1/feeds/a/documents", content=endless())
        except httpx.WriteError:
            return  # the server closed the connection, as it announced
        assert answer.status_code == 413


def test_metrics_count_what_was_done(broker: Served) -> None:
    def value(name: str) -> float:
        lines = broker.http.get("/metrics").text.splitlines()
        return next((float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"{name} ")), 0.0)

    before = {name: value(name) for name in ("pathcast_batch_documents_sum", "pathcast_pattern_matches_total")}
    pulled = value('pathcast_deliveries_total{way="pull"}')
    subscribe(broker, "counted", "//a", feeds=["counted"])
    for document in ("<a/>", "<b/>", "<a>"):
        publish(broker, "counted", document)
    broker.http.post("/v1/subscriptions/counted:pull")
    assert value("pathcast_batch_documents_sum") == before["pathcast_batch_documents_sum"] + 2
    assert value("pathcast_pattern_matches_total") == before["pathcast_pattern_matches_total"] + 1
    assert value('pathcast_deliveries_total{way="pull"}') == pulled + 1
    assert value("pathcast_log_head") == broker.broker.matched_to
    assert value("pathcast_up") == 1


def test_health(broker: Served) -> None:
    assert broker.http.get("/healthz").status_code == broker.http.get("/readyz").status_code == 200
