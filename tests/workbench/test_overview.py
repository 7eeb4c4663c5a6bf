"""The overview: what happens, what is wrong, and what a tenant may see of it."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from pathcast.broker import BrokerSettings, add_token
from pathcast.broker.observation.recent_activity import quantile
from pathcast.broker.settings.broker_sections import TokensSection
from tests.broker.served_broker import Served, served

from .browser import opened_page, ready

pytestmark = pytest.mark.slow

BAD = "<a>\n<b></a>"


def _give_up(broker: Served, id: str, headers: dict[str, str] | None = None) -> None:
    """Make a dead letter for a subscription."""
    broker.http.put(
        f"/v1/subscriptions/{id}", json={"xpath": "//b", "config": {"max_deliver": 1}}, headers=headers
    ).raise_for_status()
    broker.http.post("/v1/feeds/news/documents", content="<a><b/></a>", headers=headers).raise_for_status()
    (delivery,) = broker.http.post(f"/v1/subscriptions/{id}:pull?wait=5", headers=headers).json()["deliveries"]
    broker.http.post(f"/v1/subscriptions/{id}:nack", json={"sequences": [delivery["sequence"]]}, headers=headers)


def test_an_operator_sees_numbers_and_problems_with_remedies(browser: Browser, tmp_path: Path) -> None:
    with served(tmp_path) as broker, opened_page(browser, broker) as page:
        ready(page, "/")
        expect(page.get_by_text("No problems.")).to_be_visible()
        for number in range(12):
            broker.http.post("/v1/feeds/news/documents", content=f"<a n='{number}'/>").raise_for_status()
        broker.http.post("/v1/feeds/news/documents", content=BAD)
        broker.http.post("/v1/feeds/news/documents?invalid=keep", content=BAD).raise_for_status()
        _give_up(broker, "fragile")
        problems = page.get_by_role("region", name="Problems")
        expect(problems).to_contain_text("1 unreadable document was rejected in the last 10 minutes.")
        expect(problems).to_contain_text("1 unreadable document was kept as dead letters")
        expect(problems).to_contain_text("Subscription fragile has 1 dead letter.")
        expect(problems).to_contain_text("correct the cause, then replay them")
        expect(page.locator(".tile", has_text="Documents")).to_contain_text("13")
        expect(page.get_by_role("img", name="Documents per second: documents")).to_be_visible()
        expect(page.locator("svg.chart path.line").first).to_be_attached()
        expect(problems.get_by_role("link", name="Open")).to_have_count(2)
        problems.get_by_role("link", name="Open").last.click()
        expect(page.get_by_role("heading", name="Deliveries that were given up")).to_be_visible()


def test_a_problem_goes_away_with_its_cause(tmp_path: Path) -> None:
    with served(tmp_path) as broker:
        _give_up(broker, "fragile")

        def named() -> list[str]:
            found = broker.http.get("/v1/overview").json()["problems"]
            return [each["subscription"] for each in found if "subscription" in each]

        assert named() == ["fragile"]
        broker.http.post("/v1/subscriptions/fragile:replay", json={"dead_letters": True}).raise_for_status()
        assert named() == []
        _give_up(broker, "other")
        broker.http.delete("/v1/subscriptions/other").raise_for_status()
        assert named() == []


def test_a_tenant_sees_its_own_problems_and_no_counters(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    mine = add_token(file, "one", "ada", ["subscribe:ada", "read:news", "publish:news"])[0]
    other = add_token(file, "two", "bob", ["subscribe:*", "read:*", "publish:*"])[0]
    with served(tmp_path / "log", BrokerSettings(tokens=TokensSection(file=str(file)))) as broker:
        headers = {"authorization": f"Bearer {other}"}
        _give_up(broker, "secret-of-two", headers)
        broker.http.post("/v1/feeds/hidden/documents", content="<a/>", headers=headers).raise_for_status()
        found = broker.http.get("/v1/overview", headers={"authorization": f"Bearer {mine}"}).json()
        assert (found["subscriptions"], found["feeds"], found["problems"]) == (0, 1, [])
        colleague = add_token(file, "two", "eve", ["subscribe:eve", "read:*"])[0]
        while (seen := broker.http.get("/v1/overview", headers={"authorization": f"Bearer {colleague}"})).is_error:
            pass  # the server looks at its file once per second
        assert (seen.json()["subscriptions"], seen.json()["problems"]) == (0, [])
        assert "totals" not in found
        assert "series" not in found
        with opened_page(browser, broker, ("401",)) as page:
            page.goto("/login")
            page.get_by_label("Access token").fill(mine)
            page.keyboard.press("Enter")
            expect(page.get_by_text("No problems.")).to_be_visible()
            expect(page.locator("main")).not_to_contain_text("secret-of-two")


def test_the_page_continues_when_the_broker_answers_again(browser: Browser, broker: Served) -> None:
    with opened_page(browser, broker, ("503",)) as page:
        ready(page, "/")
        page.route("**/v1/overview", lambda route: route.fulfill(status=503, json={"detail": "try again"}))
        expect(page.get_by_role("alert")).to_contain_text("try again")
        page.unroute("**/v1/overview")
        expect(page.get_by_text("No problems.")).to_be_visible()


def test_quantiles_are_interpolated_between_two_readings() -> None:
    bounds = (0.001, 0.01, float("inf"))
    before = list(zip(bounds, (5.0, 5.0, 5.0), strict=True))
    after = list(zip(bounds, (5.0, 15.0, 15.0), strict=True))
    assert quantile(before, after, 0.5) == pytest.approx(0.0055)
    assert quantile(before, before, 0.5) is None
    assert quantile(before, list(zip(bounds, (5.0, 5.0, 6.0), strict=True)), 0.99) == 0.01
