"""Quotas: one tenant uses what it may, others are unharmed."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pathcast.broker import BrokerSettings, add_token
from pathcast.broker.api.problems import ProblemError
from pathcast.broker.api.tenant_quotas import TenantQuotas
from pathcast.broker.settings.broker_sections import Quotas, TokensSection
from pathcast.broker_log import BrokerState, DocumentRecord, SubscriptionRecord, UnsubscriptionRecord

from .served_broker import served


def record(id: str, sink: str | None = None, expression: str = "//a", tenant: str = "one") -> SubscriptionRecord:
    return SubscriptionRecord(tenant, id, "ada", expression, expression, {}, (), sink)


CHANGES = st.lists(
    st.tuples(st.booleans(), st.sampled_from("abcd"), st.none() | st.sampled_from(["x", "y", "z"])), max_size=40
)


@given(changes=CHANGES)
def test_usage_is_what_the_subscriptions_add_up_to(changes: list[tuple[bool, str, str | None]]) -> None:
    state, expected = BrokerState(), dict[str, str | None]()
    for sequence, (added, id, sink) in enumerate(changes, 1):
        if added:
            state.apply(sequence, record(id, sink))
            expected[id] = sink
        else:
            state.apply(sequence, UnsubscriptionRecord("one", id))
            expected.pop(id, None)
        for each in (state, BrokerState.restored(state.head, state.checkpoint())):
            usage = each.usage_of("one")
            assert usage.subscriptions == len(expected)
            sinks = [found for found in expected.values() if found is not None]
            assert usage.sinks == {found: sinks.count(found) for found in sinks}


def test_what_a_tenant_did_not_publish_for_long_is_not_saved_up() -> None:
    now = 0.0
    quotas = TenantQuotas(Quotas(publish_rate=100), BrokerState(), clock=lambda: now)
    quotas.publish("one", 50)
    now = 1_000_000.0
    quotas.check_rate("one")
    quotas.publish("one", 350)
    with pytest.raises(ProblemError) as raised:
        quotas.check_rate("one")
    assert (raised.value.status, raised.value.headers["retry-after"]) == (429, "3")
    quotas.check_rate("two")
    now += 2.6
    quotas.check_rate("one")


def test_a_batch_counts_with_the_bytes_of_all_its_documents(tmp_path: Path) -> None:
    large = f"<a>{'x' * 100_000}</a>"
    events = [{"id": str(number), "data": "<a/>" if number == 0 else large} for number in range(10)]
    headers = {"content-type": "application/cloudevents-batch+json"}
    with served(tmp_path, BrokerSettings(quotas=Quotas(publish_rate=1_000))) as broker:
        path = "/v1/feeds/news/documents"
        broker.http.post(path, content=json.dumps(events), headers=headers).raise_for_status()
        answer = broker.http.post(path, content="<a/>")
    assert (answer.status_code, int(answer.headers["retry-after"]) > 60) == (429, True)


def test_what_is_admitted_counts_until_it_is_settled() -> None:
    quotas = TenantQuotas(Quotas(subscriptions=2, sinks=1), BrokerState())
    first, second = record("a", "x"), record("b", "x")
    quotas.admit(first)
    quotas.admit(first)  # the same subscription again is no other
    quotas.admit(second)
    with pytest.raises(ProblemError) as raised:
        quotas.admit(record("c"))
    assert (raised.value.status, raised.value.headers["retry-after"]) == (429, "60")
    with pytest.raises(ProblemError, match="sinks"):
        quotas.admit(record("a", "y"))
    quotas.admit(record("c", tenant="two"))
    quotas.settle([first, second])
    quotas.admit(record("c", "y"))


@given(sizes=st.lists(st.tuples(st.integers(1, 3_000), st.floats(0, 3)), min_size=1, max_size=40))
def test_a_tenant_publishes_at_most_its_rate_and_one_publication_more(sizes: list[tuple[int, float]]) -> None:
    now, total, rate = [0.0], 0, 1_000
    quotas = TenantQuotas(Quotas(publish_rate=rate), BrokerState(), clock=lambda: now[0])
    for size, pause in sizes:
        now[0] += pause
        assert total <= rate * (now[0] + 1) + 3_000
        try:
            quotas.check_rate("one")
        except ProblemError as problem:
            now[0] += int(problem.headers["retry-after"])
            quotas.publish("one", 0)
            now[0] += 0.001
            quotas.check_rate("one")
        quotas.publish("one", size)
        total += size
        quotas.check_rate("two")


def test_a_tenant_creates_as_many_feeds_as_it_may(tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    one, two = ({"authorization": f"Bearer {add_token(file, tenant, 'ada', ['*'])[0]}"} for tenant in ("one", "two"))
    settings = BrokerSettings(tokens=TokensSection(file=str(file)), quotas=Quotas(feeds=2))
    for restarted in (False, True):
        with served(tmp_path / "log", settings) as server:
            client = server.http

            def publish(feed: str, headers: dict[str, str], client: httpx.Client = client) -> int:
                return client.post(f"/v1/feeds/{feed}/documents", content="<a/>", headers=headers).status_code

            if not restarted:
                assert publish("a", one) == 202
                assert client.put("/v1/feeds/b", json={}, headers=one).status_code == 201
            assert publish("c", one) == 429
            late = client.put("/v1/feeds/c", json={}, headers=one)
            assert (late.status_code, late.headers["retry-after"]) == (429, "60")
            assert "cannot create feed 'c': the tenant already created 2 feeds" in late.json()["detail"]
            assert (publish("a", one), publish("b", one), publish("d", two)) == (202, 202, 202)
            # Settings by another tenant do not make the feed its own.
            assert client.put("/v1/feeds/a", json={}, headers=two).status_code == 200
            assert publish("c", one) == 429
            client.delete("/v1/feeds/b", headers=one).raise_for_status()
            assert client.put("/v1/feeds/b", json={}, headers=one).status_code == 201


def test_quotas_answer_429_and_leave_other_tenants_alone(tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    one, two = ({"authorization": f"Bearer {add_token(file, tenant, 'ada', ['*'])[0]}"} for tenant in ("one", "two"))
    quotas = Quotas(subscriptions=3, expression=100, publish_rate=10)
    with served(tmp_path / "log", BrokerSettings(tokens=TokensSection(file=str(file)), quotas=quotas)) as server:
        client = server.http

        def put(id: str, headers: dict[str, str], **more: Any) -> int:
            return client.put(f"/v1/subscriptions/{id}", json={"xpath": "//a", **more}, headers=headers).status_code

        assert put("long", one, xpath="//" + "a" * 200) == 422
        lines = "\n".join(json.dumps({"id": f"s{number}", "xpath": "//a"}) for number in range(5))
        answer = client.post("/v1/subscriptions", content=lines, headers=one).json()
        assert (answer["accepted"], answer["rejected"]) == (3, 2)
        assert [(each["line"], each["status"]) for each in answer["errors"]] == [(4, 429), (5, 429)]
        assert (put("s0", one), put("s9", one), put("s9", two)) == (200, 429, 201)
        client.delete("/v1/subscriptions/s0", headers=one).raise_for_status()
        assert put("s9", one) == 201

        def publish(headers: dict[str, str]) -> Any:
            return client.post("/v1/feeds/news/documents", content=f"<a>{'x' * 1000}</a>", headers=headers)

        assert publish(one).status_code == 202
        late = publish(one)
        assert late.status_code == 429
        assert int(late.headers["retry-after"]) > 50
        assert publish(two).status_code == 202


def test_a_subscription_changes_as_often_as_earlier_versions_may_be_kept(tmp_path: Path) -> None:
    with served(tmp_path, BrokerSettings(quotas=Quotas(versions=3))) as broker:

        def put(number: int) -> httpx.Response:
            return broker.http.put("/v1/subscriptions/s", json={"xpath": f"//v{number}"})

        def publish(number: int) -> int:
            answer = broker.http.post("/v1/feeds/news/documents", content=f"<v{number}/>")
            return int(answer.raise_for_status().json()["sequence"])

        # Versions without documents are not kept.
        assert {put(number).status_code for number in range(-20, 1)} == {200, 201}
        sequences = []
        for number in range(4):
            assert put(number).status_code == 200
            sequences.append(publish(number))
        refused = put(4)
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "60")
        assert "subscription 's' has changed 3 times" in refused.json()["detail"]
        assert put(3).status_code == 200  # what changes nothing needs no version
        lines = "\n".join(json.dumps({"id": id, "xpath": "//w"}) for id in ("s", "t"))
        answer = broker.http.post("/v1/subscriptions", content=lines).json()
        assert [each["line"] for each in answer["errors"]] == [1]
        found = broker.http.post("/v1/subscriptions/s:pull").json()["deliveries"]
        assert [each["sequence"] for each in found] == sequences


def test_changes_on_their_way_to_the_log_count_as_versions() -> None:
    state = BrokerState()
    state.apply(1, record("a"))
    state.apply(2, DocumentRecord("news"))
    quotas = TenantQuotas(Quotas(versions=2), state)
    changes = [record("a", expression=f"//{name}") for name in "bcd"]
    quotas.admit(changes[0])
    quotas.admit(changes[1])
    with pytest.raises(ProblemError, match="has changed 2 times"):
        quotas.admit(changes[2])
    quotas.settle(changes[:2])
    quotas.admit(changes[2])


def test_feeds_that_only_subscriptions_name_count_too(tmp_path: Path) -> None:
    with served(tmp_path, BrokerSettings(quotas=Quotas(feeds=3))) as broker:

        def put(id: str, *feeds: str) -> int:
            return broker.http.put(f"/v1/subscriptions/{id}", json={"xpath": "//a", "feeds": feeds}).status_code

        def publish(feed: str) -> int:
            return broker.http.post(f"/v1/feeds/{feed}/documents", content="<a/>").status_code

        assert (put("s", "a", "b"), put("t", "b", "a"), put("u", "c", "d")) == (201, 201, 429)
        assert (publish("b"), publish("c"), publish("d")) == (202, 202, 429)
        assert (put("u", "b", "c"), put("u", "d")) == (201, 429)
        assert len(broker.broker.indexes) == 3
        assert put("s", "c") == 200
        assert (put("t"), put("u", "d")) == (200, 200)  # nobody names feed a any more
        assert set(broker.broker.indexes) == {"b", "c", "d"}
        assert broker.http.delete("/v1/feeds/b").status_code == 200
        assert set(broker.broker.indexes) == {"c", "d"}
        assert publish("e") == 202


def test_what_a_request_names_counts_until_it_is_settled() -> None:
    quotas = TenantQuotas(Quotas(feeds=2), BrokerState())
    named = SubscriptionRecord("one", "s", "ada", "//a", "//a", {}, ("a", "b"))
    quotas.admit(named)
    quotas.admit_feed("one", "a")
    with pytest.raises(ProblemError, match="cannot create feed 'c'"):
        quotas.admit_feed("one", "c")
    quotas.settle_feed("one", "a")
    with pytest.raises(ProblemError):
        quotas.admit_feed("one", "c")
    quotas.settle([named])
    quotas.admit_feed("one", "c")
