"""The parts of webhooks: signatures, keys, which addresses a sink may have, what an answer asks for."""

import asyncio
import ipaddress
import random
import socket
import ssl
import threading
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from pathcast.broker.webhooks import webhook_request
from pathcast.broker.webhooks.signatures import signature
from pathcast.broker.webhooks.signing_keys import SigningKeyError, SigningKeys
from pathcast.broker.webhooks.sink_addresses import SinkError, checked_sink, is_public, resolved
from pathcast.broker.webhooks.sink_worker import backoff
from pathcast.broker.webhooks.webhook_request import Message, Outcome, WebhookClient, seconds_of
from pathcast.broker.webhooks.webhook_settings import WebhooksSection
from pathcast.broker_log import BrokerState, SinkDisabledRecord, SubscriptionRecord

from .certificates import Certificates


def test_a_signature_is_that_of_the_specification() -> None:
    # The example of the Standard Webhooks specification and its libraries.
    found = signature(
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}'
    )
    assert found == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_keys_survive_and_a_file_that_is_open_or_damaged_is_rejected(tmp_path: Path) -> None:
    file = tmp_path / "data" / "key"
    secret = SigningKeys(file).secret_of("t", "s", 7)
    assert SigningKeys(file).secret_of("t", "s", 7) == secret
    others = [SigningKeys(file).secret_of(*each) for each in (("t", "s", 8), ("t", "r", 7), ("u", "s", 7))]
    assert len({secret, *others}) == 4
    assert [each.name for each in file.parent.iterdir()] == ["key"]
    assert file.stat().st_mode & 0o777 == 0o600
    file.chmod(0o640)
    with pytest.raises(SigningKeyError, match="chmod 600"):
        SigningKeys(file).secret_of("t", "s", 7)
    file.chmod(0o600)
    file.write_bytes(b"short")
    with pytest.raises(SigningKeyError, match="damaged"):
        SigningKeys(file).secret_of("t", "s", 7)


@pytest.mark.parametrize(
    "text",
    [
        *("127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "0.1.2.3"),  # noqa: S104
        *("224.0.0.1", "239.255.255.250", "255.255.255.255", "240.0.0.1", "192.0.2.1", "198.18.0.1"),
        *("::1", "::", "fe80::1", "fe80::1%1", "fc00::1", "fd12::1", "fec0::1", "ff02::1", "ff0e::1", "2001:db8::1"),
        *("::ffff:127.0.0.1", "::ffff:8.8.8.8", "::8.8.8.8", "2002:7f00:1::", "64:ff9b::7f00:1", "64:ff9b:1::a00:1"),
        *("2001:0:7f00:1::", "2002:808:808::"),
    ],
)
def test_an_address_that_is_not_public_is_recognized(text: str) -> None:
    assert not is_public(ipaddress.ip_address(text))


@pytest.mark.parametrize("text", ["8.8.8.8", "93.184.215.14", "2606:4700::6810:84e5", "2a00:1450:4001:80b::200e"])
def test_a_public_address_is_recognized(text: str) -> None:
    assert is_public(ipaddress.ip_address(text))


def test_a_name_is_resolved_to_a_public_address_if_it_has_one(monkeypatch: pytest.MonkeyPatch) -> None:
    found = ["127.0.0.1", "8.8.8.8"]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [(0, 0, 0, "", (each, 443)) for each in found])
    assert resolved("example.org", 443, allow_private=False) == "8.8.8.8"
    assert resolved("example.org", 443, allow_private=True) == "127.0.0.1"
    found.remove("8.8.8.8")
    with pytest.raises(SinkError, match="no public IP address"):
        resolved("example.org", 443, allow_private=False)


@pytest.mark.parametrize("name", ["127.1", "2130706433", "0x7f.1", "localhost"])
def test_other_ways_to_write_an_address_are_resolved_first(name: str) -> None:
    with pytest.raises(SinkError):
        resolved(name, 443, allow_private=False)


@pytest.mark.parametrize(
    "text",
    [
        *("example.org", "https://", "https://user@example.org", "https://user:pw@example.org/", "https://e.org/#x"),
        *("https://e.org/ a", "https://e.org/\n", "https://é.org", "https://e.org:99999/", "https://[::1", "file:///x"),
        *("https://" + "x" * 2_048, "https://e.org:0/", "https://10.0.0.1/", "http://example.org/"),
    ],
)
def test_a_malformed_sink_is_rejected(text: str) -> None:
    with pytest.raises(SinkError):
        checked_sink(text, allow_private=False)


def test_a_sink_of_a_private_network_is_accepted_if_that_is_allowed() -> None:
    assert checked_sink("http://10.0.0.1:8080/hook?a=b", allow_private=True).port == 8080
    assert checked_sink("https://example.org/hook", allow_private=False).host == "example.org"


def test_retry_after_is_seconds_or_a_date() -> None:
    assert seconds_of("120", 0) == 120
    assert seconds_of("Thu, 01 Jan 1970 00:01:00 GMT", 20.0) == 40
    assert seconds_of("Thu, 01 Jan 1970 00:01:00 GMT", 90.0) == 0
    assert [seconds_of(text, 0) for text in (None, "", "soon", "-1", "1.5")] == [None] * 5


def test_the_wait_doubles_up_to_its_bound_with_full_jitter() -> None:
    chance = random.Random(1)
    for attempt, most in [(1, 1.0), (2, 2.0), (4, 8.0), (7, 60.0), (10_000, 60.0)]:
        waits = [backoff(chance, attempt, 1.0, 60.0) for _ in range(500)]
        assert 0 <= min(waits) < 0.1 * most
        assert 0.9 * most < max(waits) <= most


def test_the_connection_goes_to_the_checked_address_with_the_name_of_the_sink(
    certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name is never resolved again; host, server name and certificate are the sink's."""
    seen: list[str | None] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            seen.append(self.headers["host"])
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    class Server(HTTPServer):
        def handle_error(self, *_: object) -> None:
            pass

    with Server(("127.0.0.1", 0), Handler) as server:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(*certificates)
        tls.sni_callback = lambda _, name, __: seen.append(name)
        server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            port = server.server_address[1]
            monkeypatch.setattr(webhook_request, "resolved", lambda *_, **__: "127.0.0.1")
            context = ssl.create_default_context(cafile=str(certificates.certificate))
            assert asyncio.run(_sent(f"https://localhost:{port}/", context)).delivered
            assert seen == ["localhost", f"localhost:{port}"]
            # A name that the certificate does not have.
            assert asyncio.run(_sent(f"https://sink.invalid:{port}/", context)).status is None
            assert seen[2:] == ["sink.invalid"]
        finally:
            server.shutdown()
            thread.join()


def test_a_sink_is_disabled_only_while_it_is_the_subscriptions_own() -> None:
    """The record that disables it may come after a change of the subscription."""
    state = BrokerState()
    for sequence, (sink, gone, disabled) in enumerate(
        [("https://one", "https://one", "gone"), ("https://two", "https://one", None)], 1
    ):
        state.apply(2 * sequence, SubscriptionRecord("t", "s", "ada", "//a", "//a", {}, (), sink))
        state.apply(2 * sequence + 1, SinkDisabledRecord("t", "s", gone, "gone"))
        assert state.subscriptions["t", "s"].disabled == disabled


async def _sent(sink: str, context: ssl.SSLContext) -> Outcome:
    with ThreadPoolExecutor(1) as threads:
        client = WebhookClient(WebhooksSection(allow_private=True), context, threads)
        try:
            return await client.send(sink, Message("msg_1_2", b"{}", "whsec_AAAA"))
        finally:
            await client.close()
