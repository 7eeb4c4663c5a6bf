"""Sessions of browsers: the cookie, who may use it, and pages without a token."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, expect

from pathcast.broker import BrokerSettings, add_token, revoke_tokens
from pathcast.broker.settings.broker_sections import TokensSection
from pathcast.broker.workbench.pages import PAGES, POLICY, static_files, version
from tests.broker.served_broker import Served, served

from .browser import opened_page, ready

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tokens") / "tokens.json"


@pytest.fixture(scope="module")
def guarded(tokens: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    add_token(tokens, "desk", "first", ["*"])
    with served(tmp_path_factory.mktemp("log"), BrokerSettings(tokens=TokensSection(file=str(tokens)))) as found:
        yield found


def _token(tokens: Path, served: Served, *scopes: str, name: str = "ada", tenant: str = "desk") -> str:
    token = add_token(tokens, tenant, name, scopes or ["*"])[0]
    _until_known(served, token)
    return token


def _until_known(served: Served, token: str) -> None:
    """The server looks at its file once per second."""
    while served.http.get("/v1/feeds", headers={"authorization": f"Bearer {token}"}).status_code == 401:
        pass


def _session(served: Served, token: str) -> tuple[dict[str, str], dict[str, str]]:
    """The cookie of a session, and the headers with which its page changes something."""
    answer = httpx.post(f"{served.address}/v1/session", json={"token": token}, headers={"origin": served.address})
    assert answer.status_code == 200
    return dict(answer.cookies), {"origin": served.address, "pathcast-csrf": answer.json()["csrf"]}


def test_a_person_logs_in_looks_around_and_logs_out(browser: Browser, guarded: Served, tokens: Path) -> None:
    token = _token(tokens, guarded)
    with opened_page(browser, guarded, ("401",)) as page:
        page.goto("/")
        page.get_by_label("Access token").fill("pathcast_wrong")
        page.get_by_role("button", name="Log in").click()
        expect(page.get_by_role("alert").last).to_contain_text("unknown, revoked or expired")
        page.get_by_label("Access token").fill(token)
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="Overview")).to_be_visible()
        expect(page.get_by_text("desk / ada")).to_be_visible()
        assert page.evaluate("document.cookie") == ""  # no script can read the token
        (cookie,) = page.context.cookies()
        assert (cookie["httpOnly"], cookie["sameSite"], cookie["value"]) == (True, "Strict", token)
        page.get_by_role("link", name="Playground").click()
        page.get_by_label("Id", exact=True).fill("by-cookie")  # a change, which needs the CSRF token
        page.get_by_role("button", name="Subscribe").click()
        expect(page.get_by_text("Subscribed as by-cookie.")).to_be_visible()
        page.get_by_role("button", name="Log out").click()
        expect(page.get_by_label("Access token")).to_be_visible()
        assert page.context.cookies() == []
        assert page.evaluate("fetch('/v1/session').then(answer => answer.status)") == 401


def test_logging_in_leads_back_to_the_page_and_never_to_another_host(
    browser: Browser, guarded: Served, tokens: Path
) -> None:
    token = _token(tokens, guarded)
    for back, expected in (("/?here", "/?here"), ("//other.example/", "/"), ("/\\other.example", "/"), ("x:y", "/")):
        with opened_page(browser, guarded, ("401",)) as page:
            ready(page, f"/login?back={back}")
            page.get_by_label("Access token").fill(token)
            page.keyboard.press("Enter")
            page.wait_for_url(guarded.address + expected)


def test_pages_hold_no_data_and_need_no_token(guarded: Served) -> None:
    for path in (*PAGES, *(f"/workbench/{version()}/{name}" for name in static_files())):
        answer = guarded.http.get(path)
        assert answer.status_code == 200, path
        assert answer.headers["content-security-policy"] == POLICY
        assert answer.headers["x-content-type-options"] == "nosniff"
        again = guarded.http.get(path, headers={"if-none-match": answer.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
    assert guarded.http.get("/workbench/../pages.py").status_code in {401, 404}
    assert guarded.http.get(f"/workbench/{version()}/pages.py").status_code == 404
    assert guarded.http.post("/").status_code == 401
    assert guarded.http.get("/v1/overview").status_code == 401


def test_the_policy_allows_no_inline_script_and_no_other_host() -> None:
    directives = dict(each.strip().split(" ", 1) for each in POLICY.split(";"))
    assert directives["default-src"] == "'none'"
    assert directives["require-trusted-types-for"] == "'script'"
    assert {directives[name] for name in ("script-src", "style-src", "connect-src", "img-src")} == {"'self'"}
    assert directives["frame-ancestors"] == directives["base-uri"] == directives["form-action"] == "'none'"


def test_a_change_with_the_cookie_needs_the_csrf_token_and_an_origin(guarded: Served, tokens: Path) -> None:
    cookies, headers = _session(guarded, _token(tokens, guarded))
    url = f"{guarded.address}/v1/subscriptions/mine"

    def status(headers: dict[str, str]) -> int:
        return httpx.put(url, json={"xpath": "//a"}, cookies=cookies, headers=headers).status_code

    assert status({}) == 403
    assert status({"origin": guarded.address}) == 403  # a form of another page on this host, if there was one
    assert status({"pathcast-csrf": headers["pathcast-csrf"]}) == 403
    assert status({**headers, "pathcast-csrf": "0" * 64}) == 403
    assert status({**headers, "origin": "http://other.example"}) == 403
    assert status({"pathcast-csrf": headers["pathcast-csrf"], "sec-fetch-site": "cross-site"}) == 403
    assert httpx.get(url, cookies=cookies).status_code == 404  # nothing was changed
    assert status(headers) == 201
    assert httpx.get(url, cookies=cookies, headers={"origin": "http://other.example"}).status_code == 403
    assert httpx.delete(url, cookies=cookies).status_code == 403


def test_a_page_of_another_origin_begins_and_ends_no_session(guarded: Served, tokens: Path) -> None:
    token = _token(tokens, guarded)
    other = {"origin": "http://other.example"}
    assert httpx.post(f"{guarded.address}/v1/session", json={"token": token}, headers=other).status_code == 403
    assert httpx.delete(f"{guarded.address}/v1/session", headers=other).status_code == 403
    assert httpx.delete(f"{guarded.address}/v1/session", headers={"sec-fetch-site": "cross-site"}).status_code == 403


def test_a_token_in_the_header_needs_no_csrf_token_and_wins_over_the_cookie(guarded: Served, tokens: Path) -> None:
    cookies, _ = _session(guarded, _token(tokens, guarded))
    bearer = {"authorization": f"Bearer {_token(tokens, guarded, 'subscribe:bob', name='bob')}"}
    found = httpx.get(f"{guarded.address}/v1/session", cookies=cookies, headers=bearer).json()
    assert (found["name"], found["subscribe"], found["administer"], "csrf" in found) == ("bob", ["bob"], False, False)
    wrong = {"authorization": "Bearer nothing"}
    assert httpx.get(f"{guarded.address}/v1/session", cookies=cookies, headers=wrong).status_code == 401


def test_a_session_ends_when_its_token_is_revoked(guarded: Served, tokens: Path) -> None:
    cookies, _ = _session(guarded, _token(tokens, guarded, name="leaver"))
    revoke_tokens(tokens, "leaver")
    while httpx.get(f"{guarded.address}/v1/feeds", cookies=cookies).status_code == 200:
        pass
    assert httpx.get(f"{guarded.address}/v1/feeds", cookies=cookies).status_code == 401


def test_over_https_the_cookie_is_bound_to_the_host(guarded: Served, tokens: Path) -> None:
    token = _token(tokens, guarded)
    settings = BrokerSettings(tokens=TokensSection(file=str(tokens)))
    # As a proxy sends it, which ends TLS: the operator lists its origin.
    listed = settings.__class__(
        tokens=settings.tokens, server=settings.server.__class__(origins=("https://desk.example",))
    )
    with served(tokens.parent / "proxied", listed) as proxied:
        answer = proxied.http.post("/v1/session", json={"token": token}, headers={"origin": "https://desk.example"})
        cookie = answer.headers["set-cookie"]
        assert cookie.startswith("__Host-pathcast_session=")
        assert {"Secure", "HttpOnly", "Path=/", "SameSite=strict"} <= {each.strip() for each in cookie.split(";")}
        by_cookie = proxied.http.get("/v1/session", headers={"cookie": cookie.partition(";")[0]})
        assert by_cookie.json()["name"] == "ada"


def test_without_tokens_nobody_logs_in(broker: Served) -> None:
    answer = broker.http.post("/v1/session", json={"token": "any"})
    assert (answer.status_code, answer.json()["login"], "set-cookie" in answer.headers) == (200, False, False)
    assert broker.http.get("/", headers={"host": "other.example"}).status_code == 403
