"""/metrics, compared with what happened, against a real server."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from pathcast.broker.observation.durability_timestamps import DurableTimes
from pathcast.broker.observation.duration_histogram import BOUNDS, Durations
from pathcast.broker.observation.subscription_lag import quantiles

from .served_broker import Events, Served, served

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "broker.md"


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path) as found:
        yield found


def values(broker: Served) -> dict[str, float]:
    """All samples, by name and labels."""
    families = text_string_to_metric_families(broker.http.get("/metrics").text)
    return {
        "/".join([sample.name, *sample.labels.values()]): sample.value
        for family in families
        for sample in family.samples
    }


def publish(broker: Served, document: str, **options: object) -> int:
    answer = broker.http.post("/v1/feeds/news/documents", content=document, **options)  # type: ignore[arg-type]
    return int(answer.json().get("sequence", 0))


def subscribe(broker: Served, id: str, xpath: str) -> None:
    broker.http.put(f"/v1/subscriptions/{id}", json={"xpath": xpath}).raise_for_status()


def test_every_stage_is_measured_once_per_publication_or_batch(broker: Served) -> None:
    for n in range(5):
        publish(broker, f"<a><b>{n}</b></a>")
    found = values(broker)
    # One after the other, so each is a batch.
    for stage in ("publish", "wait", "match", "append"):
        assert found[f"pathcast_{stage}_seconds_count"] == 5, stage
        assert found[f"pathcast_{stage}_seconds_bucket/+Inf"] == 5
        assert found[f"pathcast_{stage}_seconds_sum"] > 0
    stages = sum(found[f"pathcast_{stage}_seconds_sum"] for stage in ("wait", "match", "append"))
    assert stages <= found["pathcast_publish_seconds_sum"]


def test_documents_are_counted_by_outcome_and_errors_by_status(broker: Served) -> None:
    publish(broker, "<a/>", headers={"ce-id": "1"})
    publish(broker, "<a/>", headers={"ce-id": "1"})
    publish(broker, "<b/>")
    publish(broker, "<a>")
    publish(broker, "<a>", params={"invalid": "keep"})
    broker.http.get("/v1/subscriptions/none")
    broker.http.get("/nowhere")
    broker.http.get("/v1/subscriptions", headers={"host": "elsewhere.example.org"})
    found = values(broker)
    outcomes = {each: found[f"pathcast_documents_total/{each}"] for each in ("accepted", "duplicate", "rejected")}
    assert outcomes == {"accepted": 2, "duplicate": 1, "rejected": 1}
    assert found["pathcast_documents_total/dead_letter"] == 1
    # The duplicate and the rejected document have no records.
    assert (found["pathcast_match_seconds_count"], found["pathcast_append_seconds_count"]) == (5, 3)
    assert {key: found[f"pathcast_problems_total/{key}"] for key in ("403", "404", "422")} == {
        "403": 1,
        "404": 2,
        "422": 1,
    }


def test_deliveries_are_measured_from_durable_to_written(broker: Served) -> None:
    subscribe(broker, "seen", "//a")
    subscribe(broker, "pulled", "//a[b]")
    events = Events(broker, "/v1/subscriptions/seen/events")
    events.next()
    for document in ("<a/>", "<a><b/></a>", "<c/>"):
        publish(broker, document)
    events.next_of_kind("document")
    events.next_of_kind("document")
    broker.http.post("/v1/subscriptions/pulled:pull")
    # The stream counts a document once it is written, which a fast reader may see before.
    deadline = time.monotonic() + 60
    while (found := values(broker))["pathcast_deliveries_total/events"] < 2:
        assert time.monotonic() < deadline
    assert found["pathcast_deliver_seconds_count/events"] == found["pathcast_deliveries_total/events"] == 2
    assert found["pathcast_deliver_seconds_count/pull"] == found["pathcast_deliveries_total/pull"] == 1
    assert found["pathcast_deliver_seconds_sum/events"] > 0
    events.close()


def test_lag_is_shown_as_quantiles_over_cursors(broker: Served) -> None:
    for id in ("behind", "level", "never"):
        subscribe(broker, id, "//a")
    sequences = [publish(broker, "<a/>") for _ in range(4)]
    publish(broker, "<b/>")
    for id in ("behind", "level"):
        broker.http.post(f"/v1/subscriptions/{id}:pull")
    broker.http.post("/v1/subscriptions/level:ack", json={"sequences": sequences}).raise_for_status()
    broker.http.post("/v1/subscriptions/level:pull")  # finds nothing, and knows now that <b/> is no delivery
    lags = {id: broker.http.get(f"/v1/subscriptions/{id}/status").json()["lag"] for id in ("level", "behind")}
    assert lags["level"] == 0
    assert lags["behind"] >= 5
    found = values(broker)
    assert found["pathcast_cursors"] == 2
    assert [found[f"pathcast_subscription_lag/{each}"] for each in ("0.5", "0.9", "1.0")] == [0, *[lags["behind"]] * 2]


def test_levels_are_those_of_the_broker(broker: Served) -> None:
    subscribe(broker, "levels", "//a")
    for _ in range(40):
        publish(broker, f"<a>{'x' * 4_096}</a>")
    broker.http.post("/v1/subscriptions/levels:pull")
    found = values(broker)
    log = broker.broker.log
    assert found["pathcast_log_head"] == broker.broker.matched_to
    assert found["pathcast_log_first"] == log.first
    assert found["pathcast_log_segments"] == len(list(Path(log.folder).glob("segment-*.sqlite"))) > 1  # type: ignore[attr-defined]
    assert found["pathcast_recent_bytes"] == 40 * (4_096 + len("<a></a>"))
    assert found["pathcast_recent_limit_bytes"] == 64 << 20
    assert found["pathcast_body_bytes"] == 0
    assert found["pathcast_body_limit_bytes"] == 1 << 30
    assert found["pathcast_connections"] >= 1
    assert found["pathcast_connections_limit"] == 20_000
    assert found["pathcast_unread_bytes"] == 0
    assert (found["pathcast_subscriptions"], found["pathcast_patterns"], found["pathcast_up"]) == (1, 1, 1)


def test_bodies_in_progress_are_visible(broker: Served) -> None:
    seen: list[float] = []
    deadline = time.monotonic() + 60

    def body() -> Iterator[bytes]:
        yield b"<a>"
        yield b" " * 100_000
        # The server has received all of it when it says so, however it was cut on the way.
        while not seen or seen[-1] < 100_003:
            assert time.monotonic() < deadline
            seen.append(values(broker)["pathcast_body_bytes"])
        yield b"</a>"

    assert broker.http.post("/v1/feeds/news/documents", content=body()).status_code == 202
    assert max(seen) == 100_003
    assert values(broker)["pathcast_body_bytes"] == 0


def test_a_histogram_counts_each_value_in_the_first_bucket_that_holds_it() -> None:
    durations = Durations()
    durations.observe([0.0, BOUNDS[0], BOUNDS[0] * 1.01, 1e9])
    buckets, total = durations.buckets()
    assert [count for _, count in buckets] == [2.0, *[3.0] * (len(BOUNDS) - 1), 4.0]
    assert buckets[-1][0] == "+Inf"
    assert total == sum([0.0, BOUNDS[0], BOUNDS[0] * 1.01, 1e9])


def test_only_recent_documents_have_an_age() -> None:
    times = DurableTimes(10)
    times.add(12, 1.0)
    times.add(15, 2.0)
    assert times.ages([9, 10, 11, 12, 13, 15, 16], 5.0) == [4.0, 4.0, 3.0, 3.0, 0.0]
    for n in range(20_000):
        times.add(16 + n, 3.0)
    assert times.ages([11, 15, 16 + 19_999], 5.0) == [2.0]


def test_quantiles_are_values_that_some_subscription_has() -> None:
    assert quantiles([]) == [0.0] * 4
    assert quantiles(list(range(1, 101))) == [50, 90, 99, 100]


def test_the_guide_lists_all_metrics(tmp_path: Path) -> None:
    text = GUIDE.read_text(encoding="utf-8")
    with served(tmp_path) as broker:
        lines = broker.http.get("/metrics").text.splitlines()
    names = {line.split()[2] for line in lines if line.startswith("# TYPE")}
    assert len(names) > 20
    missing = [name for name in sorted(names) if f"`{name}`" not in text and not name.endswith("_created")]
    assert missing == []
