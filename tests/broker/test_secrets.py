"""Secrets: tokens and documents appear in no log and in no error."""

import logging
import socket
import ssl
import threading
from pathlib import Path

import httpx
import pytest

from pathcast.broker import Broker, BrokerSettings, add_token
from pathcast.broker.server import server_of
from pathcast.broker.settings.broker_sections import ServerSection, TokensSection
from pathcast.log import SqliteLog

from .served_broker import served
from .test_broker_file import certificate

__all__ = ["certificate"]


def test_tokens_and_documents_reach_no_log_and_no_error(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    file = tmp_path / "tokens.json"
    token, _ = add_token(file, "one", "ada", ["publish:news"])
    wrong = f"{token[:-4]}xxxx"
    answers: list[str] = []
    with served(tmp_path / "log", BrokerSettings(tokens=TokensSection(file=str(file)))) as server:
        for text in (token, wrong, f"{token} x", f"x{token}"):
            headers = {"authorization": f"Bearer {text}"}
            for method, path, body in [
                ("POST", "/v1/feeds/news/documents", "<a>hidden-text"),
                ("POST", "/v1/feeds/trades/documents", "<a>hidden-text</a>"),
                ("PUT", "/v1/subscriptions/s", '{"xpath": 1, "hidden-text": "x"}'),
                ("GET", "/v1/documents/1", ""),
                ("GET", "/nothing", ""),
            ]:
                answer = server.http.request(method, path, content=body, headers=headers)
                assert answer.status_code >= 400
                answers += [answer.text, str(answer.headers)]
        with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
            connection.sendall(f"NONSENSE {token}\r\nauthorization: {token}\r\n\r\n".encode())
            answers.append(connection.recv(1 << 16).decode())
        file.write_bytes(file.read_bytes()[:-9])
    everything = "\n".join(answers)
    ours = "\n".join(each.getMessage() for each in caplog.records if not each.name.startswith(("httpx", "httpcore")))
    for secret in (token, token.split("_", 2)[2], wrong, "<a>hidden-text"):
        assert secret not in everything
        assert secret not in ours


@pytest.mark.slow
def test_with_a_certificate_the_server_speaks_tls_only(tmp_path: Path, certificate: tuple[Path, Path]) -> None:
    file = tmp_path / "tokens.json"
    token, _ = add_token(file, "one", "ada", ["*"])
    section = ServerSection(certificate=str(certificate[0]), private_key=str(certificate[1]))
    settings = BrokerSettings(server=section, tokens=TokensSection(file=str(file)))
    broker = Broker(SqliteLog(tmp_path / "log"))
    server = server_of(broker, settings)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            context = ssl.create_default_context(cafile=str(certificate[0]))
            with httpx.Client(verify=context, trust_env=False, timeout=20) as client:
                url = f"https://127.0.0.1:{port}/v1/feeds"
                assert client.get(url).status_code == 401
                assert client.get(url, headers={"authorization": f"Bearer {token}"}).status_code == 200
                with pytest.raises(httpx.TransportError):
                    client.get(f"http://127.0.0.1:{port}/v1/feeds")
        finally:
            server.should_exit = True
            thread.join(20)
            broker.close()
