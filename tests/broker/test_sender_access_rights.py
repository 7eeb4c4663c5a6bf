"""Who may do what: loopback without tokens, tokens and their scopes, tenants, addresses that others can reach."""

import json
import socket
import stat
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from pathcast.broker import BrokerSettings, add_token, read_tokens, revoke_tokens
from pathcast.broker.settings.broker_sections import ServerSection, TokensSection
from pathcast.errors import PathcastError

from .served_broker import served

FEED = "/v1/feeds/news/documents"


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def token_of(file: Path, *scopes: str, name: str = "ada", tenant: str = "one", **more: Any) -> dict[str, str]:
    return bearer(add_token(file, tenant, name, scopes, **more)[0])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A tokens file with a token that nobody uses."""
    found = tmp_path / "tokens.json"
    add_token(found, "nobody", "nobody", ["read:nothing"])
    return found


def with_tokens(file: Path) -> BrokerSettings:
    return BrokerSettings(tokens=TokensSection(file=str(file)))


def noticed(check: Any) -> None:
    """Wait until the server has noticed a change of its tokens file."""
    deadline = time.monotonic() + 10
    while not check():
        assert time.monotonic() < deadline, "the server does not notice the change"
        time.sleep(0.1)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"host": "localhost"}, 200),
        ({"host": "LOCALHOST:80"}, 200),
        ({"host": "[::1]:8080"}, 200),
        ({"host": "127.0.0.2"}, 200),
        ({"host": "desk"}, 200),
        ({"host": "evil.example"}, 403),
        ({"host": "evil.example:8080"}, 403),
        ({"host": "localhost.evil.example"}, 403),
        ({"host": "127.0.0.1.evil.example"}, 403),
        ({"host": "evil@localhost"}, 200),  # names this machine; no browser sends it
        ({"host": "[::1"}, 403),
        ({"host": ""}, 403),
        ({"origin": "OWN"}, 200),
        ({"origin": "https://desk.example"}, 200),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "http://localhost:3000"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "https://desk.example.evil.example"}, 403),
        ({"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}, 403),
        ({"sec-fetch-site": "same-site", "sec-fetch-mode": "no-cors"}, 403),
        ({"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}, 200),
        ({"sec-fetch-site": "same-origin"}, 200),
        ({"sec-fetch-site": "none"}, 200),
    ],
)
def test_without_tokens_only_this_machine_and_its_own_pages_have_access(
    tmp_path: Path, headers: dict[str, str], status: int
) -> None:
    settings = BrokerSettings(server=ServerSection(hosts=("desk",), origins=("https://desk.example",)))
    with served(tmp_path, settings) as server:
        sent = {key: server.address if value == "OWN" else value for key, value in headers.items()}
        answer = server.http.get("/v1/feeds", headers=sent)
        assert answer.status_code == status, answer.text


def test_a_page_of_another_site_cannot_publish_with_a_form(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        form = {"content-type": "text/plain", "origin": "https://evil.example", "sec-fetch-mode": "navigate"}
        assert server.http.post(FEED, content="<a/>", headers=form).status_code == 403
        form = {"content-type": "text/plain", "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
        assert server.http.post(FEED, content="<a/>", headers=form).status_code == 403
        assert server.broker.log.head == 0


def test_two_host_headers_and_none_are_rejected(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        for hosts in (b"", b"host: localhost\r\nhost: evil.example\r\n"):
            with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
                connection.sendall(b"GET /v1/feeds HTTP/1.1\r\n" + hosts + b"connection: close\r\n\r\n")
                assert connection.recv(20).split()[1] in (b"400", b"403")


@pytest.mark.parametrize("given", ["", "Bearer", "Bearer x", "Basic YTpi", "Bearer pathcast_0123456789ab_x"])
def test_with_tokens_a_request_needs_a_valid_one(tmp_path: Path, file: Path, given: str) -> None:
    with served(tmp_path / "log", with_tokens(file)) as server:
        answer = server.http.get("/v1/feeds", headers={"authorization": given} if given else {})
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"].startswith("Bearer")
        assert server.http.get("/no/such/path").status_code == 401
        assert server.http.get("/healthz").status_code == 200
        assert server.http.get("/readyz").status_code == 200


def test_a_token_with_one_wrong_character_is_unknown(tmp_path: Path, file: Path) -> None:
    text, _ = add_token(file, "one", "ada", ["*"])
    with served(tmp_path / "log", with_tokens(file)) as server:
        assert server.http.get("/v1/feeds", headers=bearer(text)).status_code == 200
        for place in (10, 22, 30, len(text) - 2):
            wrong = text[:place] + ("a" if text[place] != "a" else "b") + text[place + 1 :]
            assert server.http.get("/v1/feeds", headers=bearer(wrong)).status_code == 401


def test_scopes_allow_what_they_name_and_nothing_else(tmp_path: Path, file: Path) -> None:
    publisher = token_of(file, "publish:news", name="agency")
    reader = token_of(file, "read:news", "subscribe:ada")
    with served(tmp_path / "log", with_tokens(file)) as server:
        client = server.http

        def status(method: str, path: str, headers: dict[str, str], content: str = "") -> int:
            return client.request(method, path, headers=headers, content=content).status_code

        assert status("POST", FEED, publisher, "<a/>") == 202
        assert status("POST", "/v1/feeds/trades/documents", publisher, "<a/>") == 403
        assert status("POST", FEED, reader, "<a/>") == 403
        sequence = server.broker.log.head
        assert status("GET", f"/v1/documents/{sequence}", publisher) == 404
        assert status("GET", f"/v1/documents/{sequence}", reader) == 200
        wanted = json.dumps({"xpath": "//a", "feeds": ["news"]})
        assert status("PUT", "/v1/subscriptions/s", reader, wanted) == 201
        assert status("PUT", "/v1/subscriptions/t", reader, json.dumps({"xpath": "//a"})) == 403
        assert status("PUT", "/v1/subscriptions/t", reader, json.dumps({"xpath": "//a", "feeds": ["trades"]})) == 403
        as_bob = json.dumps({"xpath": "//a", "feeds": ["news"], "subscriber": "bob"})
        assert status("PUT", "/v1/subscriptions/t", reader, as_bob) == 403
        assert status("GET", "/v1/subscriptions/s", publisher) == 403
        assert status("GET", "/v1/subscribers/bob/events", reader) == 403
        assert client.get("/v1/feeds", headers=publisher).json() == {"feeds": []}


def test_a_document_that_may_not_be_read_looks_like_one_that_does_not_exist(tmp_path: Path, file: Path) -> None:
    stranger = token_of(file, "read:trades")
    operator = token_of(file, "*", tenant="two")
    with served(tmp_path / "log", with_tokens(file)) as server:
        sequence = server.http.post(FEED, content="<a/>", headers=operator).json()["sequence"]
        found = [server.http.get(f"/v1/documents/{each}", headers=stranger) for each in (sequence, 999)]
        assert [each.status_code for each in found] == [404, 404]
        assert found[0].text.replace(str(sequence), "999") == found[1].text


def test_no_subscriber_takes_over_the_subscription_of_another(tmp_path: Path, file: Path) -> None:
    ada = token_of(file, "read:news", "subscribe:ada")
    bob = token_of(file, "read:news", "subscribe:bob", name="bob")
    wanted = {"xpath": "//a", "feeds": ["news"]}
    with served(tmp_path / "log", with_tokens(file)) as server:
        client = server.http
        assert client.put("/v1/subscriptions/s", json=wanted, headers=ada).status_code == 201
        assert client.put("/v1/subscriptions/s", json=wanted, headers=bob).status_code == 403
        bulk = "\n".join(json.dumps({"id": id, **wanted}) for id in ("s", "t"))
        answer = client.post("/v1/subscriptions", content=bulk, headers=bob).json()
        assert (answer["accepted"], [each["line"] for each in answer["errors"]]) == (1, [1])
        listed = client.get("/v1/subscriptions", headers=bob).json()
        assert ([each["id"] for each in listed["subscriptions"]], listed["total"]) == (["t"], 1)
        assert client.get("/v1/subscriptions/s", headers=ada).json()["subscriber"] == "ada"


def test_tenants_do_not_see_each_other(tmp_path: Path, file: Path) -> None:
    one, two = token_of(file, "*"), token_of(file, "*", tenant="two")
    with served(tmp_path / "log", with_tokens(file)) as server:
        client = server.http
        path = "/v1/subscriptions/s"
        assert client.put(path, json={"xpath": "//a"}, headers=one).status_code == 201
        client.post(FEED, content="<a/>", headers=one).raise_for_status()
        assert client.get("/v1/subscriptions", headers=two).json() == {"subscriptions": [], "total": 0}
        sequences = {"sequences": [server.broker.log.head]}
        for method, way, body in [
            ("GET", path, None),
            ("DELETE", path, None),
            ("GET", f"{path}/status", None),
            ("GET", f"{path}/events", None),
            ("POST", f"{path}:pull", None),
            ("POST", f"{path}:ack", sequences),
            ("POST", f"{path}:nack", sequences),
            ("POST", f"{path}:replay", {"sequence": 1}),
        ]:
            answer = client.request(method, way, json=body, headers=two)
            assert answer.status_code == 404, (method, way)
        # The same id is another subscription for another tenant, with its own cursor.
        assert client.put(path, json={"xpath": "//b"}, headers=two).status_code == 201
        assert client.post(f"{path}:pull", headers=two).json() == {"deliveries": []}
        (delivery,) = client.post(f"{path}:pull", headers=one).json()["deliveries"]
        assert delivery["body"] == "<a/>"
        # Publishers' ids are theirs: another tenant's document with the same id is no duplicate.
        results = [
            client.post(FEED, content="<c/>", headers={**each, "idempotency-key": "1"}).json() for each in (one, two)
        ]
        assert [each["duplicate"] for each in results] == [False, False]


def test_a_token_works_as_soon_as_it_is_added_and_no_longer_than_it_is_revoked(tmp_path: Path, file: Path) -> None:
    with served(tmp_path / "log", with_tokens(file)) as server:
        headers = token_of(file, "*")

        def status() -> int:
            return server.http.get("/v1/feeds", headers=headers).status_code

        noticed(lambda: status() == 200)
        (removed,) = revoke_tokens(file, "ada")
        assert removed.name == "ada"
        noticed(lambda: status() == 401)


def test_a_token_expires(tmp_path: Path, file: Path) -> None:
    soon = token_of(file, "*", expires=datetime.now(UTC) + timedelta(seconds=2))
    with served(tmp_path / "log", with_tokens(file)) as server:
        assert server.http.get("/v1/feeds", headers=soon).status_code == 200
        noticed(lambda: server.http.get("/v1/feeds", headers=soon).status_code == 401)


def test_a_revoked_token_ends_its_stream(tmp_path: Path, file: Path) -> None:
    reader, publisher = token_of(file, "*"), token_of(file, "publish:news", name="agency")
    with served(tmp_path / "log", with_tokens(file)) as server:
        client = server.http
        assert client.put("/v1/subscriptions/s", json={"xpath": "//a"}, headers=reader).status_code == 201
        received: list[str] = []
        with client.stream("GET", "/v1/subscriptions/s/events", headers=reader) as stream:
            lines = stream.iter_lines()
            received.append(next(lines))
            revoke_tokens(file, "ada")
            with httpx.Client(base_url=server.address, headers=publisher, trust_env=False) as other:
                noticed(lambda: other.get("/v1/feeds", headers=reader).status_code == 401)
                other.post(FEED, content="<a>secret</a>").raise_for_status()
            received += lines
        assert not any("secret" in line for line in received)


def test_a_tokens_file_that_is_damaged_or_open_to_others_gives_nobody_access(tmp_path: Path, file: Path) -> None:
    headers = token_of(file, "*")
    whole = file.read_bytes()
    with served(tmp_path / "log", with_tokens(file)) as server:

        def status() -> int:
            return server.http.get("/v1/feeds", headers=headers).status_code

        assert status() == 200
        file.write_bytes(whole[:-20])
        noticed(lambda: status() == 503)
        file.write_bytes(whole)
        noticed(lambda: status() == 200)
        file.chmod(0o644)
        noticed(lambda: status() == 503)
    with pytest.raises(PathcastError, match="chmod 600"):
        read_tokens(file)


def test_the_tokens_file_holds_hashes_and_only_its_owner_reads_it(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "tokens.json"
    text, record = add_token(file, "one", "ada", ["read:news", "read:news"])
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert len(text) == len("pathcast_") + 12 + 1 + 43
    assert text not in file.read_text()
    assert text.rpartition("_")[2] not in file.read_text()
    assert read_tokens(file) == [record]
    assert record.scopes == ("read:news",)


def test_tokens_added_at_the_same_time_are_all_kept(tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    threads = [
        threading.Thread(target=add_token, args=(file, "one", f"n{number}", ["read:news"])) for number in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {each.name for each in read_tokens(file)} == {f"n{number}" for number in range(8)}


def test_a_crash_while_the_file_is_written_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "tokens.json"
    add_token(file, "one", "ada", ["read:news"])

    def broken(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", broken)
    with pytest.raises(PathcastError, match="No space left"):
        add_token(file, "one", "bob", ["read:news"])
    assert [each.name for each in read_tokens(file)] == ["ada"]
    assert sorted(each.name for each in tmp_path.iterdir()) == ["tokens.json", "tokens.json.lock"]


@pytest.mark.parametrize("scope", ["", "read", "read:", "write:news", "read:a b", "publish:../x", "administer:x", "**"])
def test_unknown_scopes_are_rejected(tmp_path: Path, scope: str) -> None:
    with pytest.raises(PathcastError, match="unknown scope"):
        add_token(tmp_path / "tokens.json", "one", "ada", [scope])


def test_a_media_type_that_is_no_media_type_is_not_repeated(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        event = {"id": "1", "data": "<a/>", "datacontenttype": "text/html\r\nset-cookie: a=b"}
        sent = {"content-type": "application/cloudevents+json"}
        sequence = server.http.post(FEED, json=event, headers=sent).json()["sequence"]
        answer = server.http.get(f"/v1/documents/{sequence}")
        assert answer.headers["content-type"] == "application/octet-stream"
        assert "set-cookie" not in answer.headers
        shown = server.http.post(FEED, content="<a/>", headers={"content-type": "text/html"}).json()["sequence"]
        for each in (sequence, shown):  # no browser runs it, whatever the publisher calls it
            headers = server.http.get(f"/v1/documents/{each}").headers
            assert (headers["x-content-type-options"], headers["content-disposition"]) == ("nosniff", "attachment")
