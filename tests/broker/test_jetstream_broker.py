"""A broker whose log is on NATS servers: what survives it, and how it connects."""

from pathlib import Path

import pytest

from pathcast.broker import BrokerFileError, read_settings
from pathcast.broker.server import broker_of
from pathcast.log import LogError

from ..log.nats_servers import NatsServer, free_ports
from .certificates import Certificates
from .nats_credentials import credentials_in
from .served_broker import served


def settings_file(folder: Path, server: str, stream: str, more: str = "") -> Path:
    file = folder / f"{stream}.toml"
    file.write_text(
        f'[log]\nkind = "jetstream"\n[jetstream]\nservers = ["{server}"]\nstream = "{stream}"\n{more}', encoding="utf-8"
    )
    return file


@pytest.mark.slow
def test_deliveries_and_cursors_survive_a_restart(tmp_path: Path, nats_server: NatsServer) -> None:
    settings = read_settings(settings_file(tmp_path, nats_server.url, "survives"), data=tmp_path / "data")
    with served(tmp_path, settings, broker_of(settings)) as before:
        before.http.put("/v1/subscriptions/s", json={"xpath": "//d"}).raise_for_status()
        bodies = [f"<d n='{number}'/>" for number in range(3)]
        posted = [before.http.post("/v1/feeds/f/documents", content=body).json()["sequence"] for body in bodies]
        before.http.post("/v1/subscriptions/s:ack", json={"sequences": [posted[1]]}).raise_for_status()
    with served(tmp_path, settings, broker_of(settings)) as after:
        deliveries = after.http.post("/v1/subscriptions/s:pull").json()["deliveries"]
        assert [(each["sequence"], each["body"]) for each in deliveries] == [
            (posted[0], bodies[0]),
            (posted[2], bodies[2]),
        ]
        assert after.http.post("/v1/feeds/f/documents", content="<d/>").json()["sequence"] > posted[2]
    assert not (tmp_path / "data").exists()


@pytest.mark.slow
def test_a_batch_larger_than_a_message_is_one_append_and_known_after_a_restart(
    tmp_path: Path, nats_server: NatsServer
) -> None:
    settings = read_settings(settings_file(tmp_path, nats_server.url, "batches"), data=tmp_path / "data")
    batch = {"batch": "0", "source": "job"}
    with served(tmp_path, settings, broker_of(settings)) as before:
        before.http.put("/v1/subscriptions/s", json={"xpath": "//d[@n='299']"}).raise_for_status()
        content = [{"feed": "f", "data": f"<d n='{number}'>{'x' * 10_000}</d>"} for number in range(300)]
        uploaded = before.http.post("/v1/uploads", json=content).json()["upload"]
        first = before.http.post("/v1/uploads:commit", json={**batch, "uploads": [uploaded]}).json()
        assert (first["documents"], first["repeated"]) == (300, False)
    with served(tmp_path, settings, broker_of(settings)) as after:
        (delivery,) = after.http.post("/v1/subscriptions/s:pull").json()["deliveries"]
        assert delivery["body"] == content[299]["data"]
        again = after.http.post("/v1/uploads:commit", json={**batch, "uploads": []}).json()
        assert again == {**first, "repeated": True}


@pytest.mark.slow
def test_a_broker_and_its_servers_identify_each_other(tmp_path: Path, certificates: Certificates) -> None:
    file, key = certificates.certificate, certificates.private_key
    verify = f'tls {{ cert_file: "{file}", key_file: "{key}", ca_file: "{file}", verify: true }}'
    server = NatsServer(tmp_path / "nats", *free_ports(1), more=verify)
    server.start()
    try:
        server.wait()
        known = f'ca = "{file}"\n'
        own = f'certificate = "{file}"\nprivate_key = "{key}"\n'
        read_settings(settings_file(tmp_path, server.url, "t", known + own)).opened_log().close()
        with pytest.raises(LogError, match="cannot connect"):
            read_settings(settings_file(tmp_path, server.url, "t", known + "timeout = 0.5\n")).opened_log()
        with pytest.raises(LogError, match="cannot connect"):
            read_settings(settings_file(tmp_path, server.url, "t", "timeout = 0.5\n")).opened_log()
    finally:
        server.kill()


@pytest.mark.slow
def test_a_broker_connects_with_its_credentials(tmp_path: Path) -> None:
    file, configuration = credentials_in(tmp_path)
    server = NatsServer(tmp_path / "nats", *free_ports(1), more=configuration)
    server.start()
    try:
        server.wait()
        read_settings(settings_file(tmp_path, server.url, "c", f'credentials = "{file}"\n')).opened_log().close()
        with pytest.raises(LogError, match="cannot connect"):
            read_settings(settings_file(tmp_path, server.url, "c", "timeout = 0.5\n")).opened_log()
    finally:
        server.kill()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('[log]\nkind = "jetstream"\n', "jetstream.servers: is missing"),
        ('[jetstream]\nservers = ["nats://n"]\n', 'needs kind = "jetstream" in [log], whose kind is "sqlite"'),
        ('[log]\nkind = "jetstream"\nfolder = "l"\n[jetstream]\nservers = ["nats://n"]\n', "or change the kind"),
        (
            '[log]\nkind = "jetstream"\nkeep_bytes = 9\n[jetstream]\nservers = ["nats://n"]\n',
            "use keep_time instead",
        ),
        ('[log]\nkind = "jetstream"\n[jetstream]\nservers = ["nats://u:p@n"]\n', "set jetstream.credentials instead"),
        ('[log]\nkind = "jetstream"\n[jetstream]\nservers = ["http://n"]\n', "must be an address such as"),
        ('[log]\nkind = "jetstream"\n[jetstream]\nservers = ["nats://n"]\nstream = "a b"\n', "must consist of"),
        ('[log]\nkind = "jetstream"\n[jetstream]\nservers = ["nats://n"]\nca = "none"\n', "cannot be read"),
        ('[log]\nkind = "jetstream"\n[jetstream]\nservers = ["nats://n"]\nca = "broker.toml"\n', "cannot be loaded"),
        (
            '[log]\nkind = "jetstream"\n[jetstream]\nservers = ["nats://n"]\nprivate_key = "broker.toml"\n',
            "go together",
        ),
    ],
)
def test_settings_that_do_not_go_together_are_reported(tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / "broker.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(BrokerFileError) as caught:
        read_settings(file)
    assert problem in str(caught.value)
    assert "u:p" not in str(caught.value)
