"""Feeds and dead letters: documents as they come, who gets them and why; correct and publish, or replay."""

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from pathcast.broker import BrokerSettings, add_token
from pathcast.broker.deliveries.newest_documents import WantedDocuments, newest_documents
from pathcast.broker.settings.broker_sections import TokensSection
from tests.broker.served_broker import Served, served

from .browser import opened_page, ready
from .test_playground import HOSTILE, MARKED, SCRIPT

pytestmark = pytest.mark.slow

BROKEN = "<order>\n  <price>12</cost>\n</order>"


def _publish(broker: Served, feed: str, content: str | bytes, **headers: str) -> int:
    answer = broker.http.post(f"/v1/feeds/{feed}/documents?invalid=keep", content=content, headers=headers)
    sequence: int = answer.raise_for_status().json()["sequence"]
    return sequence


def _add(broker: Served, id: str, xpath: str, **more: Any) -> None:
    broker.http.put(f"/v1/subscriptions/{id}", json={"xpath": xpath, **more}).raise_for_status()


def test_documents_appear_as_they_are_published_and_are_explained(page: Page, broker: Served) -> None:
    _add(broker, "cheap", "//price[. < 20]")
    _add(broker, "dear", "//price[. > 100]")
    _publish(broker, "orders", "<order/>")
    ready(page, "/feeds")
    expect(page.locator("tbody tr")).to_have_count(1)
    sequence = _publish(broker, "orders", "<order n='1'><price>12</price><!-- gift --></order>", **{"ce-id": "o-1"})
    other = _publish(broker, "returns", "<return/>")
    expect(page.locator("tbody tr")).to_have_count(3)
    expect(page.locator("tbody tr").first).to_contain_text(f"#{other}")
    page.get_by_role("button", name=f"#{sequence}").click()
    details = page.get_by_role("region", name="Document")
    expect(details).to_contain_text("1 subscription gets it")
    expect(details).to_contain_text("price: 12")
    details.get_by_text("//price[. < 20]").click()
    expect(details).to_contain_text("gets it")
    expect(details.locator(".steps .steps .holds").first).to_contain_text("12")
    page.get_by_label("Why does a subscription get it, or not?").fill("dear")
    page.get_by_role("button", name="Explain").click()
    expect(details).to_contain_text("`price` is 12, wanted more than 100")
    page.get_by_role("tab", name="Structure").press("ArrowRight")
    expect(page.get_by_role("tab", name="Source")).to_be_focused()
    expect(details.locator("pre")).to_have_text("<order n='1'><price>12</price><!-- gift --></order>")
    page.get_by_role("tab", name="Bytes").click()
    expect(details.locator("pre")).to_contain_text("3c 6f 72 64 65 72")
    page.get_by_label("Feed", exact=True).select_option("returns")
    expect(page.locator("tbody tr")).to_have_count(1)
    page.get_by_label("live").uncheck()


def test_a_person_corrects_a_document_and_publishes_it(browser: Browser, broker: Served) -> None:
    sequence = _publish(broker, "orders", BROKEN, **{"ce-id": "broken-1"})
    _add(broker, "corrected", "/order[price = 12]", feeds=["orders"])
    with opened_page(browser, broker, ("422",)) as page:
        ready(page, "/dead-letters")
        page.get_by_role("button", name=f"#{sequence}").click()
        region = page.get_by_role("region", name="Correction")
        expect(region).to_contain_text("line 2, column")
        editor = page.get_by_role("textbox", name="Document, to be corrected")
        expect(editor).to_have_text(BROKEN)
        (wrong,) = page.evaluate(MARKED, "wrong")
        assert wrong in BROKEN.splitlines()[1]
        page.get_by_role("button", name="Publish the corrected document").click()
        expect(region.get_by_role("alert").last).to_contain_text("price")
        editor.fill("<order>\n  <price>12</price>")
        editor.press("Control+End")
        editor.press("Enter")
        page.keyboard.type("</order>")
        page.get_by_role("button", name="Publish the corrected document").click()
        expect(region.get_by_role("alert")).to_contain_text("Published as #")
    (delivery,) = broker.http.post("/v1/subscriptions/corrected:pull?wait=5").json()["deliveries"]
    assert delivery["body"] == BROKEN.replace("cost", "price")
    assert delivery["attributes"]["corrects"] == str(sequence)


def test_a_document_in_another_encoding_is_corrected(page: Page, broker: Served) -> None:
    text = '<?xml version="1.0" encoding="ISO-8859-1"?><fish>Größe</fisch>'
    sequence = _publish(broker, "fish", text.encode("latin-1"))
    _add(broker, "fish", "//fish[. = 'Größe']", feeds=["fish"])
    ready(page, f"/dead-letters?document={sequence}")
    page.get_by_role("textbox", name="Document, to be corrected").fill(text.replace("fisch", "fish"))
    page.get_by_role("button", name="Publish the corrected document").click()
    expect(page.get_by_role("region", name="Correction")).to_contain_text("Published as #")
    (delivery,) = broker.http.post("/v1/subscriptions/fish:pull?wait=5").json()["deliveries"]
    assert delivery["body"] == '<?xml version="1.0"?><fish>Größe</fish>'


def test_a_person_replays_deliveries_that_were_given_up(page: Page, broker: Served) -> None:
    _add(broker, "fragile", "//fragile", config={"max_deliver": 1})
    sequences = [_publish(broker, "orders", f"<fragile n='{number}'/>") for number in range(3)]
    pulled = broker.http.post("/v1/subscriptions/fragile:pull?wait=5&limit=9").json()["deliveries"]
    assert [each["sequence"] for each in pulled] == sequences
    broker.http.post("/v1/subscriptions/fragile:nack", json={"sequences": sequences}).raise_for_status()
    ready(page, "/dead-letters")
    page.get_by_text("3 deliveries that were given up").click()
    expect(page.get_by_role("link", name=f"#{sequences[0]}")).to_be_visible()
    page.get_by_role("button", name="Replay all 3").click()
    expect(page.get_by_text("3 dead letters of fragile are due again.")).to_be_visible()
    expect(page.get_by_text("No subscription has dead letters.")).to_be_visible()
    again = broker.http.post("/v1/subscriptions/fragile:pull?limit=9").json()["deliveries"]
    assert [each["sequence"] for each in again] == sequences


def test_script_in_a_document_is_shown_as_text_in_every_view(page: Page, broker: Served) -> None:
    page.on("dialog", lambda dialog: pytest.fail("a script of a document ran"))
    _add(broker, "hostile", f"//title[. = '{SCRIPT}']", feeds=["hostile"])
    good = _publish(broker, "hostile", HOSTILE, **{"ce-id": SCRIPT[:200], "ce-kind": SCRIPT})
    bad = _publish(broker, "hostile", HOSTILE + SCRIPT)
    ready(page, f"/feeds?document={good}")
    details = page.get_by_role("region", name="Document")
    expect(details).to_contain_text("1 subscription gets it")
    details.locator("summary", has_text="//title").click()
    expect(details.locator(".steps .steps").first).to_contain_text("<img src=x")
    expect(details.locator(".tree").first).to_contain_text(SCRIPT)
    for tab in ("Source", "Bytes"):
        page.get_by_role("tab", name=tab).click()
    ready(page, f"/dead-letters?document={bad}")
    expect(page.get_by_role("textbox", name="Document, to be corrected")).to_contain_text(SCRIPT)
    assert page.locator("main img, main script").count() == 0


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        ("<?xml version='1.0' encoding='ISO-8859-1'?><r>Größe</r>".encode("latin-1"), "Größe"),
        ("<r>Größe</r>".encode("utf-16"), "Größe"),
    ],
)
def test_a_document_is_shown_in_its_encoding(page: Page, broker: Served, content: bytes, shown: str) -> None:
    ready(page, f"/feeds?document={_publish(broker, 'encodings', content)}")
    expect(page.get_by_role("region", name="Document")).to_contain_text(f"r: {shown}")


def test_a_deep_and_a_large_document_do_not_stop_the_page(page: Page, broker: Served) -> None:
    deep = _publish(broker, "large", "<a>" * 250 + "x" + "</a>" * 250)
    ready(page, f"/feeds?document={deep}")
    expect(page.get_by_role("region", name="Document").locator(".tree").first).to_be_visible()
    large = _publish(broker, "large", f"<r>{'<p>text</p>' * 20_000}</r>")
    ready(page, f"/feeds?document={large}")
    expect(page.get_by_text("The tree shows the first 3,000 of 40,001 nodes.")).to_be_visible()
    page.get_by_role("tab", name="Source").click()
    expect(page.locator("pre.source")).to_contain_text("</p></r>")


def test_a_tenant_sees_only_its_own_data_and_what_its_guard_allows(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    operator = add_token(file, "operator", "root", ["*"])[0]
    mine = add_token(file, "one", "ada", ["subscribe:ada", "read:shared", "publish:shared"])[0]
    manager = add_token(file, "one", "manager", ["*"])[0]
    everything = {"authorization": f"Bearer {operator}"}
    with served(tmp_path / "log", BrokerSettings(tokens=TokensSection(file=str(file)))) as broker:
        guard = {"guard": {"expression": "/m[@level = 'open']"}}
        broker.http.put("/v1/tenants/one", json=guard, headers=everything).raise_for_status()
        broker.http.put("/v1/subscriptions/theirs", json={"xpath": "//m"}, headers=everything).raise_for_status()
        colleague = {"xpath": "//m", "subscriber": "bob"}
        broker.http.put(
            "/v1/subscriptions/colleagues", json=colleague, headers={"authorization": f"Bearer {manager}"}
        ).raise_for_status()
        own = {"xpath": "//n", "subscriber": "ada", "feeds": ["shared"]}
        broker.http.put(
            "/v1/subscriptions/own", json=own, headers={"authorization": f"Bearer {mine}"}
        ).raise_for_status()

        def publish(feed: str, content: str) -> int:
            answer = broker.http.post(f"/v1/feeds/{feed}/documents", content=content, headers=everything)
            sequence: int = answer.raise_for_status().json()["sequence"]
            return sequence

        shown = publish("shared", "<m level='open'>Tell everybody</m>")
        masked = publish("shared", "<m level='closed'>Top secret</m>")
        elsewhere = publish("private", "<m level='open'>Also secret</m>")
        with opened_page(browser, broker, ("401", "404")) as page:
            page.goto("/login?back=/feeds")
            page.get_by_label("Access token").fill(mine)
            page.keyboard.press("Enter")
            expect(page.get_by_role("button", name=f"#{shown}")).to_be_visible()
            expect(page.locator("tbody tr")).to_have_count(1)
            expect(page.get_by_label("Feed", exact=True)).not_to_contain_text("private")
            page.get_by_role("button", name=f"#{shown}").click()
            expect(page.get_by_role("region", name="Document")).to_contain_text("0 subscriptions get it")
            for hidden in (masked, elsewhere):
                ready(page, f"/feeds?document={hidden}")
                expect(page.get_by_role("alert")).to_contain_text("not a document that this token may read")
            for path in ("/subscriptions", "/dead-letters", "/"):
                ready(page, path)
                expect(page.locator("main")).not_to_contain_text("theirs")
                expect(page.locator("main")).not_to_contain_text("colleagues")
            ready(page, "/subscriptions")
            expect(page.get_by_text("1 of 1 subscription")).to_be_visible()
            expect(page.get_by_role("button", name="own")).to_be_visible()
            page.get_by_role("link", name="Playground").click()
            page.get_by_label("XPath expression").fill("//m")
            expect(page.get_by_text("of the newest 1 document")).to_be_visible()


def test_the_newest_documents_are_found_from_the_end_of_the_log(tmp_path: Path) -> None:
    with served(tmp_path) as broker:
        lines = "\n".join(f'{{"id": "s{n}", "xpath": "//a"}}' for n in range(3_000))
        first = [_publish(broker, name, "<a/>") for name in ("one", "two", "one")]
        broker.http.post("/v1/subscriptions", content=lines).raise_for_status()  # records that are no documents
        last = _publish(broker, "one", "<a>")
        log, end = broker.broker.log, broker.broker.matched_to + 1
        every = WantedDocuments(None)
        assert newest_documents(log, every, end, 10).sequences == [last, *reversed(first)]
        assert newest_documents(log, every, end, 10).searched_from == log.first
        cut = newest_documents(log, every, end, 2)
        assert (cut.sequences, cut.searched_from) == ([last, first[2]], first[1] + 1)
        assert newest_documents(log, every, cut.searched_from, 9).sequences == [first[1], first[0]]
        one = WantedDocuments(frozenset({"one"}), dead=False, expired={"one": first[2]})
        assert newest_documents(log, one, end, 10).sequences == [first[2]]
        bounded = newest_documents(log, every, end, 10, examined=100)
        assert (bounded.sequences, bounded.searched_from) == ([last], end - 100)
        assert newest_documents(log, every, end, 10, after=first[1]).sequences == [last, first[2]]
