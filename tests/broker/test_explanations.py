"""Explanations of who gets a document agree with who gets it, and show nothing that is masked."""

from pathlib import Path

import pytest

from pathcast.broker import Broker, BrokerSettings, Publication, add_token
from pathcast.broker.explanations import Explanations
from pathcast.broker.settings.broker_sections import TokensSection
from pathcast.broker_log import TenantRecord
from pathcast.patterns import parse

from .broker_world import TENANT, broker_in, delivered, published, subscription
from .served_broker import served


def reasons(broker: Broker, sequence: int) -> dict[str, str]:
    about = Explanations.of_logged(broker, TENANT, sequence)
    assert about is not None
    found = about.page([(id, standing) for (_, id), standing in broker.state.subscriptions.items()], seconds=60)
    assert {each.id for each in found if each.matches} == {
        id for _, id in broker.state.subscriptions if sequence in delivered(broker, id)
    }
    return {each.id: each.reason for each in found}


def test_each_subscription_has_the_first_reason_that_keeps_the_document_from_it(tmp_path: Path) -> None:
    with broker_in(tmp_path) as broker:
        broker.subscribe(subscription("changed", "//a")).result()
        broker.subscribe(subscription("all", "//a")).result()
        broker.subscribe(subscription("misses", "//b")).result()
        broker.subscribe(subscription("elsewhere", "//a", ("sports",))).result()
        (first,) = published(broker, "news", "<a/>")
        broker.subscribe(subscription("changed", "//c")).result()
        broker.subscribe(subscription("late", "//a")).result()
        broker.subscribe(subscription("again", "//a", begin=1)).result()
        (second,) = published(broker, "news", "<a/>")
        (letter,) = broker.publish("news", [Publication(b"<a>")], keep_invalid=True).result()
        common = {"all": "matched", "misses": "pattern", "elsewhere": "feed", "again": "matched"}
        assert reasons(broker, first) == {**common, "changed": "matched", "late": "interval"}
        assert reasons(broker, second) == {**common, "changed": "pattern", "late": "matched"}
        unreadable = dict.fromkeys(("all", "misses", "again", "changed", "late"), "unreadable")
        assert reasons(broker, letter.sequence) == {**unreadable, "elsewhere": "feed"}  # type: ignore[union-attr]


def test_a_page_ends_when_its_time_is_over_but_has_one_explanation(tmp_path: Path) -> None:
    with broker_in(tmp_path) as broker:
        for id in ("s1", "s2", "s3"):
            broker.subscribe(subscription(id, "//a")).result()
        about = Explanations.of_new(broker, TENANT, "news", b"<a/>")
        standing = [(id, each) for (_, id), each in broker.state.subscriptions.items()]
        assert [each.id for each in about.page(standing, seconds=0)] == ["s1"]
        assert [each.id for each in about.page(standing, seconds=60)] == ["s1", "s2", "s3"]


def test_a_new_document_is_judged_by_the_guard_that_it_would_meet(tmp_path: Path) -> None:
    with broker_in(tmp_path) as broker:
        broker.subscribe(subscription("s", "//*")).result()
        broker.change([TenantRecord(TENANT, "//open", str(parse("//open")))]).result()
        standing = [("s", broker.state.subscriptions[TENANT, "s"])]
        hidden, open_ = (
            Explanations.of_new(broker, TENANT, "news", body).page(standing)[0] for body in (b"<a/>", b"<open/>")
        )
        assert (hidden.reason, hidden.explanation) == ("guard", None)
        assert open_.matches
        sequence, seen = published(broker, "news", "<a/>", "<open/>")
        assert Explanations.of_logged(broker, TENANT, sequence) is None
        assert reasons(broker, seen) == {"s": "matched"}


def test_explanations_over_http_come_in_pages_and_with_steps_for_one(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        client = server.http
        for id, xpath in (("s1", "//p:a[@x = 7]"), ("s2", "//p:a"), ("s3", "//b")):
            wanted = {"filters": [{"xpath": {"expression": xpath, "namespaces": {"p": "urn:p"}}}]}
            client.put(f"/v1/subscriptions/{id}", json=wanted).raise_for_status()
        body = "<a xmlns='urn:p' x='9'>secret</a>"
        sequence = client.post("/v1/feeds/news/documents", content=body).json()["sequence"]
        for path, content in ((f"sequence={sequence}", ""), ("feed=news", body)):
            page = client.post(f"/v1/explain?{path}&limit=2", content=content).json()
            assert page["next"] == "s2"
            found = page["subscriptions"] + client.post(f"/v1/explain?{path}&after=s2", content=content).json().pop(
                "subscriptions"
            )
            assert [(each["id"], each["reason"], each["matches"]) for each in found] == [
                ("s1", "pattern", False),
                ("s2", "matched", True),
                ("s3", "pattern", False),
            ]
            assert "wanted 7" in found[0]["detail"]
            assert "steps" not in found[0]
            (one,) = client.post(f"/v1/explain?{path}&subscription=s1", content=content).json()["subscriptions"]
            assert one["steps"][0]["holds"] is False
            assert one["pattern"] == "//p:a[@x = 7]"
        for path, content, status in (
            ("", "", 400),
            (f"sequence={sequence}&feed=news", "", 400),
            ("sequence=1", "", 404),
            (f"sequence={sequence}&subscription=s9", "", 404),
            ("feed=news", "<a>", 422),
        ):
            assert client.post(f"/v1/explain?{path}", content=content).status_code == status, path


def test_explanations_show_what_the_sender_may_see(tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    operator = {"authorization": f"Bearer {add_token(file, 'desk', 'root', ['*'])[0]}"}
    scopes = ["read:news", "subscribe:ada", "publish:*"]
    reader = {"authorization": f"Bearer {add_token(file, 'desk', 'ada', scopes)[0]}"}
    other = {"authorization": f"Bearer {add_token(file, 'other', 'root', ['*'])[0]}"}
    with served(tmp_path / "log", BrokerSettings(tokens=TokensSection(file=str(file)))) as server:
        client = server.http
        for id, subscriber in (("s1", "ada"), ("s2", "bob")):
            wanted = {"xpath": "//a", "subscriber": subscriber}
            client.put(f"/v1/subscriptions/{id}", json=wanted, headers=operator).raise_for_status()
        client.put("/v1/subscriptions/s3", json={"xpath": "//a"}, headers=other).raise_for_status()
        news, closed = (
            client.post(f"/v1/feeds/{feed}/documents", content="<a/>", headers=operator).json()["sequence"]
            for feed in ("news", "closed")
        )
        page = client.post(f"/v1/explain?sequence={news}", headers=reader).json()["subscriptions"]
        assert [each["id"] for each in page] == ["s1"]
        assert client.post(f"/v1/explain?sequence={news}&subscription=s2", headers=reader).status_code == 403
        assert client.post("/v1/explain?feed=closed", content="<a/>", headers=reader).status_code == 403
        masked = client.post(f"/v1/explain?sequence={closed}", headers=reader)
        client.put("/v1/tenants/desk", json={"guard": {"expression": "//open"}, "from": 1}, headers=operator)
        guarded = client.post(f"/v1/explain?sequence={news}", headers=reader)
        assert masked.status_code == guarded.status_code == 404
        assert guarded.json()["detail"] == masked.json()["detail"].replace(str(closed), str(news))


@pytest.mark.parametrize("body", [b"<a>", b"<a><a><a/></a></a>"])
def test_a_document_that_would_be_rejected_has_no_explanation(tmp_path: Path, body: bytes) -> None:
    with served(tmp_path) as server:
        server.http.put("/v1/feeds/news", json={"limits": {"depth": 2}}).raise_for_status()
        assert server.http.post("/v1/explain?feed=news", content=body).status_code == 422
