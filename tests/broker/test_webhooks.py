"""Webhooks: signed, in order, at least once; failures wait, throttle, disable or become dead letters."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pathcast.broker import BrokerSettings
from pathcast.broker.webhooks.webhook_settings import WebhooksSection

from .served_broker import Served, served
from .test_metrics import values
from .webhook_receiver import PATIENCE, Answer, Received, Receiver, receiving

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "webhooks.md"


def settings(folder: Path, **changed: object) -> BrokerSettings:
    given = {"allow_private": True, "first_delay": 0.01, "longest_delay": 0.05, "timeout": 20.0} | changed
    return BrokerSettings(data=str(folder), webhooks=WebhooksSection(**given))  # type: ignore[arg-type]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path / "log", settings(tmp_path)) as broker:
        yield broker


def hook(broker: Served, id: str, url: str, xpath: str = "//a", **config: object) -> str:
    """A subscription with a sink; returns its secret."""
    answer = broker.http.put(f"/v1/subscriptions/{id}", json={"xpath": xpath, "sink": url, "config": config})
    assert answer.status_code in (200, 201), answer.text
    return str(answer.json().get("secret"))


def publish(broker: Served, *documents: str) -> list[int]:
    return [broker.http.post("/v1/feeds/news/documents", content=each).json()["sequence"] for each in documents]


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def status(broker: Served, id: str) -> dict[str, object]:
    found: dict[str, object] = broker.http.get(f"/v1/subscriptions/{id}/status").json()
    return found


def test_deliveries_arrive_signed_in_order_once(broker: Served, receiver: Receiver) -> None:
    secret = hook(broker, "s", receiver.url + "?key=1")
    sequences = publish(broker, *["<a/>", "<b/>"] * 20)
    receiver.wait(lambda: len(receiver.received) >= 20)
    assert receiver.sequences() == sequences[::2]
    for each in receiver.received:
        each.verify(secret)
        assert each.path == "/hook?key=1"
        assert each.headers["host"] == receiver.url.split("/")[2]
        assert abs(int(each.headers["webhook-timestamp"]) - time.time()) < PATIENCE
    assert len({each.headers["webhook-id"] for each in receiver.received}) == 20
    first = json.loads(receiver.received[0].body)
    assert (first["type"], first["data"]["subscription"], first["data"]["body"]) == ("pathcast.document", "s", "<a/>")
    wait_for(lambda: int(str(status(broker, "s")["cursor"])) >= sequences[-2])
    assert broker.http.post("/v1/subscriptions/s:pull").status_code == 409


def test_the_receiver_of_the_guide_verifies(broker: Served, receiver: Receiver) -> None:
    snippet = GUIDE.read_text(encoding="utf-8").partition("```python\n")[2].partition("```")[0]
    guide: dict[str, Callable[..., bool]] = {}
    exec(snippet, guide)  # noqa: S102 - a page of ours
    secret = hook(broker, "s", receiver.url)
    publish(broker, "<a/>")
    receiver.wait(lambda: receiver.received)
    _, headers, body = receiver.received[0]
    verified = guide["verified"]
    assert verified(secret, headers, body)
    assert not verified(secret, headers, body + b" ")
    assert not verified("whsec_AAAA", headers, body)
    assert not verified(secret, headers | {"webhook-id": "msg_1_1"}, body)
    assert not verified(secret, headers, body, tolerance=-1)


def test_the_secret_is_the_owners_and_new_for_a_new_subscription(
    broker: Served, receiver: Receiver, tmp_path: Path
) -> None:
    secret = hook(broker, "s", receiver.url)
    assert broker.http.get("/v1/subscriptions/s/secret").json() == {"secret": secret}
    assert "secret" not in broker.http.get("/v1/subscriptions/s").json()
    assert "secret" not in broker.http.put("/v1/subscriptions/s", json={"xpath": "//a", "sink": receiver.url}).json()
    assert hook(broker, "t", receiver.url) != secret
    broker.http.delete("/v1/subscriptions/s")
    assert hook(broker, "s", receiver.url) not in (secret, "None")
    assert (tmp_path / "webhook-signing.key").stat().st_mode & 0o777 == 0o600
    broker.http.put("/v1/subscriptions/pulled", json={"xpath": "//a"})
    assert broker.http.get("/v1/subscriptions/pulled/secret").status_code == 404


def test_a_failed_delivery_comes_again_before_those_after_it(broker: Served, receiver: Receiver) -> None:
    failures = iter([500, 307, 429, 404])
    receiver.answer = lambda _: Answer(next(failures, 200), {"location": "/elsewhere"})
    hook(broker, "s", receiver.url)
    sequences = publish(broker, *["<a/>"] * 5)
    receiver.wait(lambda: len(receiver.received) >= 9)
    assert receiver.sequences() == [*[sequences[0]] * 4, *sequences]
    assert {each.path for each in receiver.received} == {"/hook"}  # no redirect was followed
    assert len({each.headers["webhook-id"] for each in receiver.received}) == 5
    wait_for(lambda: int(str(status(broker, "s")["cursor"])) >= sequences[-1])


def test_what_follows_a_dead_letter_does_not_wait_for_an_attempt_that_will_not_be(
    tmp_path: Path, receiver: Receiver
) -> None:
    failures = iter([500])
    receiver.answer = lambda _: Answer(next(failures, 204))
    with served(tmp_path / "log", settings(tmp_path, first_delay=1e9, longest_delay=1e9)) as broker:
        hook(broker, "s", receiver.url, max_deliver=1)
        first, second = publish(broker, "<a/>", "<a/>")
        receiver.wait(lambda: second in receiver.sequences())
        assert receiver.sequences() == [first, second]


def test_after_max_deliver_attempts_the_next_is_sent_and_a_replay_brings_it_back(
    broker: Served, receiver: Receiver
) -> None:
    broken = True
    receiver.answer = lambda each: Answer(500 if b"poison" in each.body and broken else 204)
    hook(broker, "s", receiver.url, max_deliver=3)
    good, bad, last = publish(broker, "<a/>", "<a>poison</a>", "<a/>")
    receiver.wait(lambda: last in receiver.sequences())
    assert receiver.sequences() == [good, bad, bad, bad, last]
    letters = broker.http.get("/v1/subscriptions/s/dead-letters").json()["dead_letters"]
    assert letters == [{"sequence": bad, "attempts": 3, "reason": "max_deliver"}]
    broken = False
    assert broker.http.post("/v1/subscriptions/s:replay", json={"dead_letters": True}).json()["replayed"] == 1
    receiver.wait(lambda: len(receiver.received) == 6)
    assert receiver.sequences()[-1] == bad
    wait_for(lambda: status(broker, "s")["out"] == 0)
    assert broker.http.get("/v1/subscriptions/s/dead-letters").json()["kept"] == 0


def test_status_and_metrics_show_what_was_sent_and_what_failed(broker: Served, receiver: Receiver) -> None:
    answers = iter([Answer(200), Answer(500), Answer(500), Answer(429, {"retry-after": "0"}), Answer(200)])
    receiver.answer = lambda _: next(answers)
    hook(broker, "s", receiver.url, max_deliver=2)
    (first,) = publish(broker, "<a/>")
    wait_for(lambda: status(broker, "s")["last_delivery"] is not None)
    delivery = status(broker, "s")["last_delivery"]
    assert isinstance(delivery, dict)
    assert (delivery["sequence"], delivery["way"]) == (first, "webhook")
    assert status(broker, "s")["last_error"] is None
    second, third = publish(broker, "<a/>", "<a/>")  # one becomes a dead letter, one is throttled and then delivered
    wait_for(lambda: dict(status(broker, "s")["last_delivery"])["sequence"] == third)  # type: ignore[call-overload]
    error = status(broker, "s")["last_error"]
    assert isinstance(error, dict)
    assert error["reason"] == f"document {third} was not delivered: the receiver answered 429"
    wait_for(lambda: values(broker)["pathcast_webhook_queue"] == 0)
    found = values(broker)
    outcomes = ("delivered", "failed", "throttled", "gone")
    assert [found[f"pathcast_webhook_requests_total/{each}"] for each in outcomes] == [2, 2, 1, 0]
    assert found["pathcast_webhook_seconds_count"] == 5
    assert found["pathcast_webhook_dead_letters_total"] == 1
    assert found["pathcast_deliveries_total/webhook"] == found["pathcast_deliver_seconds_count/webhook"] == 2
    assert found["pathcast_webhook_sinks"] == 1
    letters = broker.http.get("/v1/subscriptions/s/dead-letters").json()["dead_letters"]
    assert [each["sequence"] for each in letters] == [second]


def test_the_queue_shows_what_waits_for_an_answer(broker: Served, receiver: Receiver) -> None:
    go_on = threading.Event()

    def answer(_: Received) -> Answer:
        assert go_on.wait(PATIENCE)
        return Answer()

    receiver.answer = answer
    hook(broker, "s", receiver.url)
    publish(broker, "<a/>")
    receiver.wait(lambda: receiver.received)
    assert values(broker)["pathcast_webhook_queue"] == 1
    go_on.set()
    wait_for(lambda: values(broker)["pathcast_webhook_queue"] == 0)


def test_a_webhook_carries_the_trace_of_its_document(broker: Served, receiver: Receiver) -> None:
    hook(broker, "s", receiver.url)
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    event = {"id": "1", "source": "s", "data": "<a/>", "traceparent": "x\r\ny: z"}
    headers = {"content-type": "application/cloudevents+json"}
    broker.http.post("/v1/feeds/news/documents", json=event, headers=headers).raise_for_status()
    broker.http.post("/v1/feeds/news/documents", content="<a/>", headers={"traceparent": trace}).raise_for_status()
    receiver.wait(lambda: len(receiver.received) == 2)
    assert [each.headers.get("traceparent") for each in receiver.received] == [None, trace]


def test_a_receiver_that_is_gone_is_disabled_also_after_a_restart_until_it_is_put_again(
    tmp_path: Path, receiver: Receiver
) -> None:
    receiver.answer = lambda _: Answer(410)
    with served(tmp_path / "log", settings(tmp_path)) as broker:
        hook(broker, "s", receiver.url)
        first, second = publish(broker, "<a/>", "<a/>")
        wait_for(lambda: status(broker, "s")["sink"]["disabled"] is not None)  # type: ignore[index]
    for _ in range(2):
        with served(tmp_path / "log", settings(tmp_path)) as broker:
            sink = status(broker, "s")["sink"]
            assert sink == {"url": receiver.url, "disabled": "the receiver answered 410"}
    assert receiver.sequences() == [first]
    receiver.answer = lambda _: Answer()
    with served(tmp_path / "log", settings(tmp_path)) as broker:
        hook(broker, "s", receiver.url)
        receiver.wait(lambda: len(receiver.received) == 3)
        assert receiver.sequences() == [first, first, second]
        assert status(broker, "s")["sink"]["disabled"] is None  # type: ignore[index]


def test_retry_after_holds_back_all_of_the_sink_and_costs_no_attempt(tmp_path: Path, receiver: Receiver) -> None:
    answers = iter([Answer(429, {"retry-after": "1"}), Answer(503, {"retry-after": "1"})])
    times: list[float] = []

    def answer(_: Received) -> Answer:
        times.append(time.monotonic())
        return next(answers, Answer())

    receiver.answer = answer
    with served(tmp_path / "log", settings(tmp_path, longest_delay=0.5)) as broker:
        hook(broker, "s", receiver.url, max_deliver=1)
        hook(broker, "t", receiver.url, "//b", max_deliver=1)
        (sequence,) = publish(broker, "<a/>")
        receiver.wait(lambda: receiver.received)
        (other,) = publish(broker, "<b/>")
        receiver.wait(lambda: {sequence, other} <= set(receiver.sequences()[2:]))
        # Nothing between: the wait is the one asked for, bounded by `longest_delay`.
        assert times[1] - times[0] >= 0.49
        assert times[2] - times[1] >= 0.49
        assert broker.http.get("/v1/subscriptions/s/dead-letters").json()["total"] == 0


def test_a_sink_that_never_answers_does_not_hold_up_another(broker: Served, receiver: Receiver) -> None:
    released = threading.Event()
    with receiving() as silent:

        def answer(_: Received) -> Answer:
            released.wait(PATIENCE)
            return Answer()

        silent.answer = answer
        try:
            hook(broker, "silent", silent.url)
            hook(broker, "good", receiver.url)
            sequences = publish(broker, *["<a/>"] * 40)
            silent.wait(lambda: silent.received)
            receiver.wait(lambda: len(receiver.received) == 40)
            assert receiver.sequences() == sequences
            assert silent.sequences() == sequences[:1]  # one request in flight
        finally:
            released.set()
        silent.wait(lambda: len(silent.received) == 40)
        assert silent.sequences() == sequences


def test_a_subscription_that_changes_its_sink_is_sent_there(broker: Served, receiver: Receiver) -> None:
    with receiving() as other:
        hook(broker, "s", receiver.url)
        (first,) = publish(broker, "<a/>")
        receiver.wait(lambda: receiver.received)
        wait_for(lambda: status(broker, "s")["out"] == 0)
        hook(broker, "s", other.url)
        (second,) = publish(broker, "<a/>")
        other.wait(lambda: other.received)
        assert (receiver.sequences(), other.sequences()) == ([first], [second])
        broker.http.delete("/v1/subscriptions/s")


@pytest.mark.parametrize(
    ("sink", "reason"),
    [
        ("http://example.org/hook", "sink must begin with https://"),
        ("https://127.0.0.1/hook", "sink address 127.0.0.1 is not public"),
        ("https://[::ffff:10.0.0.1]/", "sink address ::ffff:10.0.0.1 is not public"),
        ("ftp://example.org", "sink must begin with https://"),
    ],
)
def test_a_sink_that_is_not_allowed_is_rejected(tmp_path: Path, sink: str, reason: str) -> None:
    with served(tmp_path / "log", BrokerSettings(data=str(tmp_path))) as broker:
        wanted = {"xpath": "//a", "sink": sink}
        answer = broker.http.put("/v1/subscriptions/s", json=wanted)
        assert answer.status_code == 422
        assert reason in answer.json()["detail"]
        assert broker.http.post("/v1/subscriptions:check", json=wanted).status_code == 422
        bulk = broker.http.post("/v1/subscriptions", content=json.dumps({"id": "s", **wanted})).json()
        assert (bulk["accepted"], bulk["rejected"]) == (0, 1)


def test_a_name_that_leads_to_this_machine_gets_no_connection(tmp_path: Path, receiver: Receiver) -> None:
    guarded = settings(tmp_path, allow_private=False)
    with served(tmp_path / "log", guarded) as broker:
        port = receiver.url.split(":")[2].split("/")[0]
        hook(broker, "s", f"https://localhost:{port}/hook", max_deliver=1)
        publish(broker, "<a/>")
        wait_for(lambda: broker.http.get("/v1/subscriptions/s/dead-letters").json()["kept"] == 1)
        sink = status(broker, "s")["sink"]
        reason = (
            "sink host localhost has no public IP address; use a public host, or ask the operator to set "
            "webhooks.allow_private"
        )
        assert sink["last_error"] == reason  # type: ignore[index]
        assert receiver.received == []


def test_concurrency_sends_several_at_a_time(broker: Served, receiver: Receiver) -> None:
    sequences = publish(broker, *["<a/>"] * 6)
    together = threading.Barrier(3)

    def answer(_: Received) -> Answer:
        together.wait(PATIENCE)
        return Answer()

    receiver.answer = answer
    config: dict[str, object] = {"concurrency": 3, "from": 1}
    hook(broker, "s", receiver.url, **config)  # type: ignore[arg-type]
    receiver.wait(lambda: len(receiver.received) == 6)
    assert sorted(receiver.sequences()) == sequences
    assert set(receiver.sequences()[:3]) == set(sequences[:3])
