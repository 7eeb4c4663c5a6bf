"""The subscriptions page: a person finds, adds, changes, pauses, replays and deletes; and the API beneath it."""

import json
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from pathcast.broker import Broker, BrokerSettings
from pathcast.broker.settings.broker_sections import Quotas
from pathcast.broker.webhooks.webhook_settings import WebhooksSection
from pathcast.log import SqliteLog
from tests.broker.served_broker import Served, served
from tests.broker.webhook_receiver import receiving

from .browser import NARROW, opened_page, ready

pytestmark = pytest.mark.slow

SCRIPT = "<script>alert(1)</script>"


def _publish(broker: Served, count: int, feed: str = "news") -> list[int]:
    found = []
    for number in range(count):
        answer = broker.http.post(f"/v1/feeds/{feed}/documents", content=f"<a n='{number}'><b/></a>")
        found.append(answer.raise_for_status().json()["sequence"])
    return found


def _add(broker: Served, id: str, xpath: str = "//b", **more: Any) -> None:
    broker.http.put(f"/v1/subscriptions/{id}", json={"xpath": xpath, **more}).raise_for_status()


def _pull(broker: Served, id: str) -> list[int]:
    answer = broker.http.post(f"/v1/subscriptions/{id}:pull?limit=100").raise_for_status()
    return [each["sequence"] for each in answer.json()["deliveries"]]


def test_a_person_adds_changes_pauses_replays_and_deletes_a_subscription(browser: Browser, broker: Served) -> None:
    with opened_page(browser, broker, ("422",)) as page:
        _carry_out(page, broker)


def _carry_out(page: Page, broker: Served) -> None:
    ready(page, "/subscriptions")
    expect(page.get_by_text("No subscriptions yet.")).to_be_visible()
    page.get_by_role("button", name="Add a subscription").click()
    page.get_by_label("Id", exact=True).fill("bees")
    page.get_by_label("Subscriber").fill("ada")
    page.get_by_label("XPath expression").fill("//b[")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_contain_text("column 5: expected a path")
    page.get_by_label("XPath expression").fill("//b")
    page.get_by_label("Largest number of attempts").fill("1")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", name="bees")).to_be_visible()
    expect(page.get_by_text("1 of 1 subscription")).to_be_visible()

    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_text("Paused bees.")).to_be_visible()
    sequences = _publish(broker, 3)
    assert _pull(broker, "bees") == []
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_text("Resumed bees.")).to_be_visible()
    expect(page.get_by_role("button", name="Pause")).to_be_focused()
    details = page.get_by_role("region", name="Details")
    expect(details.get_by_text("waiting")).to_have_count(3)
    assert _pull(broker, "bees") == sequences

    page.get_by_role("button", name="Change").click()
    page.get_by_label("Feeds").fill("news, sports")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Changed bees.")).to_be_visible()
    changed = broker.http.get("/v1/subscriptions/bees").json()
    assert (changed["feeds"], changed["config"]["max_deliver"]) == (["news", "sports"], 1)

    broker.http.post("/v1/subscriptions/bees:nack", json={"sequences": sequences}).raise_for_status()
    page.locator("td button.link", has_text="bees").click()
    page.get_by_role("button", name="Replay 3 dead letters").click()
    expect(page.get_by_text("Dead letters of bees are due again.")).to_be_visible()
    assert _pull(broker, "bees") == sequences
    broker.http.post("/v1/subscriptions/bees:ack", json={"sequences": sequences}).raise_for_status()
    page.get_by_label("Deliver again from").fill(str(sequences[1]))
    page.get_by_role("button", name="Replay", exact=True).click()
    expect(page.get_by_text(f"Replaying bees from {sequences[1]}.")).to_be_visible()
    assert broker.http.get("/v1/subscriptions/bees/status").json()["cursor"] == sequences[1] - 1

    page.get_by_role("button", name="Delete").click()
    page.get_by_role("button", name="Really delete?").click()
    expect(page.get_by_text("No subscriptions yet.")).to_be_visible()
    assert broker.http.get("/v1/subscriptions/bees").status_code == 404


def test_a_search_goes_on_until_a_page_is_full_and_pages_follow(page: Page, broker: Served) -> None:
    lines = [json.dumps({"id": f"s{n:05}", "xpath": f"//k{n % 7}", "subscriber": f"u{n % 3}"}) for n in range(30_000)]
    broker.http.post("/v1/subscriptions", content="\n".join(lines)).raise_for_status()
    ready(page, "/subscriptions")
    rows = page.locator("tbody tr[data-key]")
    expect(page.get_by_text("50 of 30,000 subscriptions")).to_be_visible()
    page.get_by_role("button", name="More").click()
    expect(rows).to_have_count(100)
    expect(rows.last).to_contain_text("s00099")
    page.get_by_label("Search").fill("s2999")
    expect(rows).to_have_count(10)
    expect(rows.first).to_contain_text("s29990")
    page.get_by_label("Search").fill("K3")
    expect(rows).to_have_count(50)
    page.get_by_label("Search").fill("nothing has this")
    expect(page.get_by_text("Nothing found.")).to_be_visible()


def test_what_others_wrote_is_shown_as_text(page: Page, broker: Served) -> None:
    page.on("dialog", lambda dialog: pytest.fail("a script of a subscription ran"))
    _add(broker, "0hostile", f"//a[. = '{SCRIPT}']", filters=None)
    ready(page, "/subscriptions?id=0hostile")
    expect(page.get_by_role("region", name="Details")).to_contain_text(SCRIPT)
    assert page.locator("main script").count() == 0


def test_changing_and_trying_a_subscription_keeps_its_namespaces(page: Page, broker: Served) -> None:
    xpath = {"expression": "//f:quote", "namespaces": {"f": "urn:f", "g": "urn:g"}}
    content = {"filters": [{"xpath": xpath}], "config": {"in_flight": 7}}
    broker.http.put("/v1/subscriptions/0quotes", json=content).raise_for_status()
    ready(page, "/subscriptions?id=0quotes")
    page.get_by_role("button", name="Change").click()
    page.get_by_label("Feeds").fill("markets")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Changed 0quotes.")).to_be_visible()
    changed = broker.http.get("/v1/subscriptions/0quotes").json()
    assert (changed["filters"], changed["config"]["in_flight"]) == (content["filters"], 7)
    page.get_by_role("link", name="Try").click()
    expect(page.get_by_label("XPath expression")).to_have_value("//f:quote")
    expect(page.get_by_label("prefix=uri, separated by spaces")).to_have_value("f=urn:f g=urn:g")
    expect(page.locator("#verdict")).to_contain_text("does not match")


def test_on_a_telephone_the_chosen_subscription_comes_into_view(browser: Browser, broker: Served) -> None:
    lines = [json.dumps({"id": f"3small{n:02}", "xpath": "//b"}) for n in range(40)]
    broker.http.post("/v1/subscriptions", content="\n".join(lines)).raise_for_status()
    with opened_page(browser, broker, size=NARROW) as page:
        ready(page, "/subscriptions?q=3small")
        page.get_by_role("button", name="3small00").click()
        expect(page.get_by_role("heading", name="3small00")).to_be_in_viewport()


def test_only_subscriptions_with_problems_are_shown_and_more_follow(page: Page, broker: Served) -> None:
    _add(broker, "0well")
    for number in range(60):
        _add(broker, f"1ill-{number:02}", "//ill", config={"max_deliver": 1}, feeds=["ill"])
    broker.http.post("/v1/feeds/ill/documents", content="<ill/>").raise_for_status()
    for number in range(60):
        (sequence,) = _pull(broker, f"1ill-{number:02}")
        broker.http.post(f"/v1/subscriptions/1ill-{number:02}:nack", json={"sequences": [sequence]}).raise_for_status()
    ready(page, "/subscriptions")
    page.get_by_label("with problems only").check()
    rows = page.locator("tbody tr[data-key]")
    expect(page.get_by_text("50 subscriptions found, and there may be more")).to_be_visible()
    page.get_by_role("button", name="More").click()
    expect(rows).to_have_count(60)
    rows.last.get_by_role("button").click()
    details = page.get_by_role("region", name="Details")
    expect(details.get_by_role("heading", name="1ill-59")).to_be_in_viewport()  # beside the end of a long list


# The API beneath.


def test_the_last_deliveries_come_with_their_state(broker: Served) -> None:
    _add(broker, "history", config={"max_deliver": 1, "from": "now"}, feeds=["past"])
    first, second, third, fourth = _publish(broker, 4, "past")
    broker.http.post("/v1/subscriptions/history:pull?limit=3")
    broker.http.post("/v1/subscriptions/history:ack", json={"sequences": [first]}).raise_for_status()
    broker.http.post("/v1/subscriptions/history:nack", json={"sequences": [second]}).raise_for_status()

    def page(**query: int) -> dict[str, Any]:
        found: dict[str, Any] = broker.http.get("/v1/subscriptions/history/deliveries", params=query).json()
        return found

    found = page()
    assert [(each["sequence"], each["state"]) for each in found["deliveries"]] == [
        (fourth, "waiting"),
        (third, "out"),
        (second, "dead"),
        (first, "acknowledged"),
    ]
    assert "next" not in found
    newest = page(limit=3)
    assert [each["sequence"] for each in newest["deliveries"]] == [fourth, third, second]
    older = page(before=newest["next"])
    assert [each["sequence"] for each in older["deliveries"]] == [first]
    assert _pull(broker, "history") == [fourth]  # looking moved nothing


def test_a_paused_subscription_is_pulled_from_where_it_was(broker: Served) -> None:
    _add(broker, "pausing", feeds=["quiet"])
    _publish(broker, 1, "quiet")
    _add(broker, "pausing", feeds=["quiet"], config={"paused": True})
    assert broker.http.get("/v1/subscriptions/pausing").json()["config"]["paused"]
    assert broker.http.post("/v1/subscriptions/pausing:pull?wait=1").json() == {"deliveries": []}
    _publish(broker, 1, "quiet")
    _add(broker, "pausing", feeds=["quiet"])
    assert len(_pull(broker, "pausing")) == 2


def test_a_new_webhook_shows_its_secret_once(browser: Browser, tmp_path: Path) -> None:
    settings = BrokerSettings(webhooks=WebhooksSection(allow_private=True))
    with receiving() as receiver, served(tmp_path, settings) as broker, opened_page(browser, broker) as page:
        ready(page, "/subscriptions")
        page.get_by_role("button", name="Add a subscription").click()
        page.get_by_label("Id", exact=True).fill("hook")
        page.get_by_label("XPath expression").fill("//b")
        page.get_by_label("Webhook").fill(receiver.url)
        page.get_by_role("button", name="Save").click()
        details = page.get_by_role("region", name="Details")
        expect(details).to_contain_text("The secret that signs its webhooks")
        secret = broker.http.get("/v1/subscriptions/hook/secret").json()["secret"]
        expect(details).to_contain_text(secret)
        ready(page, "/subscriptions?id=hook")
        expect(details).not_to_contain_text(secret)


def test_a_paused_webhook_is_sent_nothing_until_it_is_resumed(tmp_path: Path) -> None:
    settings = BrokerSettings(webhooks=WebhooksSection(allow_private=True))
    with receiving() as receiver, served(tmp_path, settings) as broker:
        _add(broker, "hook", sink=receiver.url, config={"paused": True})
        sequences = _publish(broker, 2)
        status = broker.http.get("/v1/subscriptions/hook/status").json()
        assert (status["out"], status["sink"]["disabled"], len(receiver.sequences())) == (0, None, 0)
        assert "pathcast_webhook_sinks 0.0" in broker.http.get("/metrics").text
        _add(broker, "hook", sink=receiver.url)
        receiver.wait(lambda: receiver.sequences() == sequences)


def test_only_troubled_subscriptions_are_listed_also_after_a_restart(tmp_path: Path) -> None:
    def troubled(broker: Served) -> list[tuple[str, int]]:
        found = broker.http.get("/v1/subscriptions?trouble=only").json()["subscriptions"]
        return [(each["id"], each["dead_letters"]) for each in found]

    with served(tmp_path, broker=Broker(SqliteLog(tmp_path))) as broker:
        _add(broker, "good")
        _add(broker, "ill", config={"max_deliver": 1})
        _publish(broker, 2)
        broker.http.post("/v1/subscriptions/ill:nack", json={"sequences": _pull(broker, "ill")}).raise_for_status()
        assert troubled(broker) == [("ill", 2)]
    with served(tmp_path, broker=Broker(SqliteLog(tmp_path))) as broker:
        assert troubled(broker) == [("ill", 2)]
        assert broker.http.get("/v1/subscriptions?trouble=only&q=good").json()["subscriptions"] == []


def test_costly_expressions_are_listed_for_administrators(browser: Browser, tmp_path: Path) -> None:
    with served(tmp_path, BrokerSettings(quotas=Quotas())) as broker:
        _add(broker, "costly", "//b[not(contains(., 'draft'))]")
        _add(broker, "cheap", "//b")
        for number in range(5):
            broker.http.post("/v1/feeds/news/documents", content=f"<a><b>text {number}</b></a>").raise_for_status()
        (found,) = broker.http.get("/v1/expressions/costly").json()["expressions"]
        assert (found["feed"], found["expression"]) == ("news", "//b[not(contains(., 'draft'))]")
        assert found["tried_on"] >= 1
        with opened_page(browser, broker) as page:
            ready(page, "/subscriptions")
            page.get_by_text("The most expensive expressions").click()
            page.get_by_role("button", name="//b[not(contains(., 'draft'))]").click()
            expect(page.get_by_text("1 subscription found")).to_be_visible()
