"""The playground: an expression is tried as it is typed, on samples, own texts and documents of the log."""

import json
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.broker.served_broker import Served

from .browser import opened_page, ready

pytestmark = pytest.mark.slow

MARKED = """name => [...(CSS.highlights.get(name) ?? [])].map(range => range.toString())"""
SCRIPT = "<img src=x onerror=alert(1)><script>alert(2)</script>"
ESCAPED = SCRIPT.replace("<", "&lt;").replace(">", "&gt;")
# Script in every place where a document has text; what is shown of it must be text.
HOSTILE = (
    f"<?xml version='1.0'?><!--{SCRIPT}--><news a=\"{ESCAPED}\"><?run {SCRIPT}?><title>{ESCAPED}</title>"
    f"<x><![CDATA[{SCRIPT}]]></x></news>"
)


def _type(page: Page, expression: str) -> None:
    page.get_by_label("XPath expression").fill(expression)


def _document(page: Page, text: str) -> None:
    page.get_by_role("textbox", name="Document").fill(text)


def test_a_person_tries_an_expression_and_subscribes(browser: Browser, broker: Served) -> None:
    with opened_page(browser, broker, ("412",)) as page:
        _try_and_subscribe(page, broker)


def _try_and_subscribe(page: Page, broker: Served) -> None:
    ready(page, "/playground")
    _type(page, "//keyword")
    expect(page.locator("#verdict")).to_contain_text("matches")
    expect(page.locator("#verdict")).to_contain_text("2 parts selected")
    assert page.evaluate(MARKED, "selected") == ["<keyword>rain</keyword>", "<keyword>forecast</keyword>"]
    expect(page.get_by_role("main")).to_contain_text("No documents have been published yet")
    _type(page, "//story[@section = 'sports']")
    expect(page.get_by_text("Nearest miss:")).to_be_visible()
    expect(page.get_by_role("main")).to_contain_text("wanted 'sports'")
    assert page.evaluate(MARKED, "selected") == []
    _type(page, "//story[not(contains(., 'draft'))]")
    expect(page.get_by_text("This is the costly kind")).to_be_visible()
    page.get_by_label("Id", exact=True).fill("no-drafts")
    page.get_by_label("Feeds").fill("news")
    page.get_by_role("button", name="Subscribe").click()
    expect(page.get_by_text("Subscribed as no-drafts.")).to_be_visible()
    found = broker.http.get("/v1/subscriptions/no-drafts").json()
    assert found["feeds"] == ["news"]
    assert found["filters"][0]["xpath"]["expression"] == "//story[not(contains(., 'draft'))]"
    page.get_by_label("Id", exact=True).fill("no-drafts")
    page.get_by_role("button", name="Subscribe").click()
    expect(page.get_by_text("already in use")).to_be_visible()


def test_typing_an_unfinished_expression_says_what_is_wrong_with_it(browser: Browser, broker: Served) -> None:
    with opened_page(browser, broker, ("422",)) as page:
        ready(page, "/playground")
        box = page.get_by_label("XPath expression")
        box.fill("")
        box.press_sequentially("//story[headline")
        expect(page.get_by_text("not an expression")).to_be_visible()
        expect(box).to_have_attribute("aria-invalid", "true")
        box.press_sequentially("]")
        expect(page.locator("#verdict")).to_contain_text("matches")
        expect(box).not_to_have_attribute("aria-invalid", "true")
        _document(page, "<a>\n  <b></a>")
        expect(page.get_by_text("not readable")).to_be_visible()
        assert len(page.evaluate(MARKED, "wrong")) == 1
        _document(page, "<story><headline/></story>")
        expect(page.locator("#verdict")).to_contain_text("matches")
        assert page.evaluate(MARKED, "wrong") == []


def test_own_text_is_marked_whatever_its_letters(page: Page) -> None:
    ready(page, "/playground")
    _document(page, "<r>äöü 🌧 <p>Größe</p>€<p x='ß'/></r>")
    _type(page, "//p")
    expect(page.locator("#verdict")).to_contain_text("2 parts selected")
    assert page.evaluate(MARKED, "selected") == ["<p>Größe</p>", "<p x='ß'/>"]
    page.get_by_text("Namespaces").click()
    page.get_by_label("prefix=uri, separated by spaces").fill("f=urn:f")
    _document(page, "<r xmlns:q='urn:f'><q:p/></r>")
    _type(page, "//f:p")
    expect(page.locator("#verdict")).to_contain_text("1 part selected")


def test_documents_of_the_log_are_counted_and_opened(page: Page, broker: Served) -> None:
    for number in range(20):
        broker.http.post("/v1/feeds/news/documents", content=f"<news><n{number % 4}/></news>").raise_for_status()
    ready(page, "/playground")
    _type(page, "//n3")
    expect(page.get_by_text("of the newest 20 documents (25 %)")).to_be_visible()
    page.locator("button.link", has_text="#").first.click()
    expect(page.get_by_role("textbox", name="Document")).to_have_text("<news><n3/></news>")
    expect(page.locator("#verdict")).to_contain_text("1 part selected")
    assert page.evaluate(MARKED, "selected") == ["<n3/>"]
    opened = page.get_by_label("Sample or document").input_value()
    assert broker.http.get(f"/v1/documents/{opened.removeprefix('document:')}").text == "<news><n3/></news>"


def test_script_in_a_document_is_shown_as_text(page: Page, broker: Served) -> None:
    page.on("dialog", lambda dialog: pytest.fail("a script of a document ran"))
    sequence = broker.http.post("/v1/feeds/hostile/documents", content=HOSTILE).json()["sequence"]
    ready(page, f"/playground?document={sequence}&xpath=//title[. != '']")
    expect(page.get_by_role("textbox", name="Document")).to_contain_text(SCRIPT)
    expect(page.locator(".steps").first).to_contain_text(SCRIPT[:20])
    assert page.locator("main img, main script").count() == 0


# The API beneath, as curl uses it.


def _try(broker: Served, **trial: Any) -> dict[str, Any]:
    answer = broker.http.post("/v1/expressions:try", json=trial)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_a_trial_returns_parts_in_bytes_and_why(broker: Served) -> None:
    document = "<r>ä<p>1</p></r>"
    found = _try(broker, xpath="//p", document=document)
    (part,) = found["parts"]
    assert document.encode()[part["begin"] : part["end"]] == b"<p>1</p>"
    assert (found["matches"], found["selected"], found["normal_form"]) == (True, 1, "//p")
    assert "nearest" not in found
    for declared in ("ISO-8859-1", "UTF-16", "UTF-8"):  # what is tried is a text, whatever its bytes once were
        text = f"<?xml version='1.0' encoding = '{declared}' standalone='yes'?>{document}"
        (part,) = _try(broker, xpath="//p[../text() = 'ä']", document=text)["parts"]
        assert text.encode()[part["begin"] : part["end"]] == b"<p>1</p>"
    missed = _try(broker, xpath="//p[. = 2]", document=document)
    assert (missed["matches"], missed["parts"], missed["nearest"]) == (False, [], "`p` is 1, wanted 2, line 1")


@pytest.mark.parametrize(
    ("xpath", "kind"),
    [
        ("//p", "path"),
        ("/", "everything"),
        ("//p[@id = 7]", "value"),
        ("/r[p]/q", "branches"),
        ("//p[not(contains(., 'draft'))]", "trial"),
    ],
)
def test_a_trial_says_how_the_engine_handles_the_expression(broker: Served, xpath: str, kind: str) -> None:
    assert _try(broker, xpath=xpath, document="<r><p id='7'>x</p><q/></r>")["handling"]["kind"] == kind


@pytest.mark.parametrize(
    ("trial", "status"),
    [
        ({"xpath": "//p"}, 422),
        ({"xpath": "//p", "document": "<a/>", "sequence": 1}, 422),
        ({"xpath": "//p[", "document": "<a/>"}, 422),
        ({"xpath": "//p", "document": "<a>"}, 422),
        ({"xpath": "//p", "document": ""}, 422),
        ({"xpath": "//p" * 40_000, "document": "<a/>"}, 422),
        ({"xpath": "//p", "sequence": 999_999}, 404),
        ({"xpath": "//p", "document": "<a/>", "namespaces": {f"p{n}": "u" for n in range(100)}}, 422),
        ({"xpath": "//p", "document": 5}, 400),
    ],
)
def test_a_faulty_trial_is_rejected(broker: Served, trial: dict[str, Any], status: int) -> None:
    answer = broker.http.post("/v1/expressions:try", content=json.dumps(trial))
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")


def test_counts_agree_with_deliveries_and_stay_within_the_newest_thousand(broker: Served) -> None:
    events = [
        {"id": f"count-{n}", "source": "t", "data": f"<c n='{n}'>{'<even/>' if n % 2 == 0 else ''}</c>"}
        for n in range(1_100)
    ]
    for begin in range(0, len(events), 550):
        broker.http.post(
            "/v1/feeds/counted/documents",
            content=json.dumps(events[begin : begin + 550]),
            headers={"content-type": "application/cloudevents-batch+json"},
        ).raise_for_status()
    broker.http.post("/v1/feeds/counted/documents?invalid=keep", content="<c>").raise_for_status()

    def counted(xpath: str) -> dict[str, Any]:
        found: dict[str, Any] = broker.http.post(
            "/v1/expressions:count", json={"xpath": xpath, "feeds": ["counted"]}
        ).json()
        return found

    found = counted("//even")
    assert (found["documents"], found["matched"], found["complete"]) == (1_000, 500, True)
    assert len(found["newest"]) == 10
    assert _try(broker, xpath="//even", sequence=found["newest"][0])["matches"]
    assert counted("/c[@n >= 600]")["matched"] == 500
    assert counted("/c[@n < 100]")["matched"] == 0  # older than the newest thousand
    broker.http.put("/v1/subscriptions/even", json={"xpath": "//even", "feeds": ["counted"]})  # now it is indexed
    assert counted("//even")["matched"] == 500


def test_a_guard_bounds_what_is_counted_and_tried(broker: Served) -> None:
    shown = broker.http.post("/v1/feeds/masked/documents", content="<m><open/></m>").json()["sequence"]
    tenant = "/v1/tenants/default"
    broker.http.put(tenant, json={"guard": {"expression": "//open"}, "from": 1}).raise_for_status()
    try:
        hidden = broker.http.post("/v1/feeds/masked/documents", content="<m><secret/></m>").json()["sequence"]
        found = broker.http.post("/v1/expressions:count", json={"xpath": "//m", "feeds": ["masked"]}).json()
        assert (found["documents"], found["newest"]) == (1, [shown])
        answer = broker.http.post("/v1/expressions:try", json={"xpath": "//secret", "sequence": hidden})
        assert answer.status_code == 404
        listed = broker.http.get("/v1/documents?feed=masked").json()["documents"]
        assert [each["sequence"] for each in listed] == [shown]
        assert broker.http.get(f"/v1/documents/{hidden}/recipients").status_code == 404
    finally:
        broker.http.put(tenant, json={"guard": None}).raise_for_status()
