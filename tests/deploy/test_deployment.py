"""Files for running the broker: the unit of systemd, the Dockerfile, their settings, the health check."""

import configparser
import fnmatch
import json
import re
import runpy
import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
import typer

from pathcast.broker import read_settings
from pathcast.broker.server import _OTHER_FILES
from pathcast.cli.app import app
from tests.broker.broker_process import free_port
from tests.broker.served_broker import served

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"


def unit() -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(DEPLOY / "pathcast.service")
    return parser


def instructions() -> list[tuple[str, str]]:
    """The instructions of the Dockerfile."""
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    return [(name, rest.strip()) for name, _, rest in (line.partition(" ") for line in joined.splitlines())]


def parsed(command: list[str]) -> dict:
    """The arguments of a `pathcast` command line, as the command itself parses them."""
    group = typer.main.get_group(app)
    _, name, rest = command[0], command[1], command[2:]
    return group.commands[name].make_context(name, rest).params


def test_the_unit_starts_the_broker_with_a_file_that_it_accepts() -> None:
    service = unit()["Service"]
    arguments = parsed(shlex.split(service["ExecStart"]))
    assert str(arguments["settings"]) == "/etc/pathcast/broker.toml"
    settings = read_settings(DEPLOY / "broker.toml")
    # The only folder that the service may write and that outlives it.
    assert settings.data == f"/var/lib/{service['StateDirectory']}"
    assert service["Environment"] == "PYTHONUNBUFFERED=1"
    assert f"PATHCAST_CACHE=/var/cache/{service['CacheDirectory']}" in (DEPLOY / "pathcast.service").read_text()
    assert int(service["LimitNOFILE"]) >= settings.connections.count + _OTHER_FILES


def test_the_unit_restarts_after_a_failure_and_may_touch_little() -> None:
    service = unit()["Service"]
    expected = {"Restart": "on-failure", "NoNewPrivileges": "true", "ProtectSystem": "strict", "User": "pathcast"}
    assert {name: service[name] for name in expected} == expected
    assert service["CapabilityBoundingSet"] == ""
    # The server does not notify systemd, so a watchdog or Type=notify would end it.
    assert service["Type"] == "exec" and "WatchdogSec" not in service


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is missing")
@pytest.mark.slow
def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    # systemd also checks that the program exists.
    text = (DEPLOY / "pathcast.service").read_text(encoding="utf-8")
    copy = tmp_path / "pathcast.service"
    copy.write_text(re.sub(r"^ExecStart=\S+", f"ExecStart={shutil.which('true')}", text, flags=re.MULTILINE))
    done = subprocess.run(["systemd-analyze", "verify", copy], capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, [line for line in done.stderr.splitlines() if "pathcast" in line]) == (0, [])


def test_every_source_of_the_image_exists_and_is_sent_to_the_builder() -> None:
    rules = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]
    sources = [
        source
        for name, rest in instructions()
        if name == "COPY" and not rest.startswith("--from")
        for source in rest.split()[:-1]
    ]
    assert "src" in sources and "deploy/container.toml" in sources
    for source in sources:
        assert (ROOT / source).exists(), source
        assert f"!{source}" in rules, f"{source} is ignored"
    assert rules[0] == "*"
    assert not any(fnmatch.fnmatch(source, rule) for source in sources for rule in rules[1:])
    # The package cannot be built without the files that its metadata names.
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert {project["readme"], *project["license-files"]} <= set(sources)
    install = next(rest for name, rest in instructions() if name == "RUN" and " install " in rest and "pip" in rest)
    (extra,) = re.findall(r'"\.\[(\w+)\]"', install)
    assert extra in project["optional-dependencies"]


def test_the_image_runs_the_broker_as_a_user_without_rights(tmp_path: Path) -> None:
    found = dict(instructions())
    users = [rest for name, rest in instructions() if name == "USER"]
    assert users and users[-1] not in {"root", "0"}
    command = json.loads(found["ENTRYPOINT"]) + json.loads(found["CMD"])
    arguments = parsed(command)
    copied = dict(rest.split() for name, rest in instructions() if name == "COPY" and rest.startswith("deploy"))
    assert copied["deploy/container.toml"] == str(arguments["settings"])
    settings = tomllib.loads((DEPLOY / "container.toml").read_text(encoding="utf-8"))
    assert settings["data"] in json.loads(found["VOLUME"])
    assert found["EXPOSE"] == str(settings["server"]["port"])
    check = json.loads(found["HEALTHCHECK"].partition(" CMD ")[2])
    assert check[1] == copied["deploy/health_check.py"]
    assert check[2] == f"https://127.0.0.1:{found['EXPOSE']}/healthz"
    # With a certificate and a key in the place that it names, the file is complete.
    file = tmp_path / "broker.toml"
    file.write_text((DEPLOY / "container.toml").read_text(encoding="utf-8"))
    (tmp_path / "tls").mkdir()
    certificate, key = tmp_path / settings["server"]["certificate"], tmp_path / settings["server"]["private_key"]
    options = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
    subprocess.run(
        ["openssl", "req", "-x509", *options.split(), "-keyout", key, "-out", certificate],
        check=True,
        capture_output=True,
    )
    assert read_settings(file).tokens.file == "/var/lib/pathcast/tokens.json"


def test_the_health_check_asks_the_broker(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    check = runpy.run_path(str(DEPLOY / "health_check.py"))["main"]
    with served(tmp_path / "log") as broker:
        assert check(f"{broker.address}/healthz") == 0
        assert check(f"{broker.address}/nothing") == 1
    assert check(f"http://127.0.0.1:{free_port()}/healthz") == 1
    assert "404" in capsys.readouterr().out
