"""broker.toml: what it accepts, all of its problems with their lines, and its reference page."""

from pathlib import Path

import pytest

from pathcast.broker import BrokerFileError, BrokerSettings, read_settings
from pathcast.broker.settings.broker_file import is_loopback
from pathcast.broker.settings.broker_sections import reference

from .certificates import Certificates

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "broker-file.md"


def written(folder: Path, text: str) -> Path:
    file = folder / "broker.toml"
    file.write_text(text, encoding="utf-8")
    return file


@pytest.fixture
def certificate(certificates: Certificates) -> tuple[Path, Path]:
    """A certificate for this machine, and its private key."""
    return certificates


def test_the_reference_in_the_documentation_is_that_of_the_code() -> None:
    """To fix: paste the output of `reference()` in `pathcast.broker.settings.broker_sections`."""
    page = PAGE.read_text(encoding="utf-8")
    begin, end = "<!-- keys -->\n", "<!-- end of keys -->"
    assert page.partition(begin)[2].partition(end)[0].strip() == reference().strip()


@pytest.mark.slow
def test_the_example_of_the_documentation_is_valid(tmp_path: Path, certificate: tuple[Path, Path]) -> None:
    example = PAGE.read_text(encoding="utf-8").partition("```toml\n")[2].partition("```")[0]
    for name, file in zip(("certificate.pem", "key.pem"), certificate, strict=True):
        (tmp_path / name).write_bytes(file.read_bytes())
    settings = read_settings(written(tmp_path, example))
    assert not is_loopback(settings.server.host)
    assert settings.log.keep_time == 30 * 86_400
    assert settings.tokens.file == str(tmp_path / "tokens.json")


def test_an_empty_file_and_no_file_have_the_same_settings(tmp_path: Path) -> None:
    assert read_settings(written(tmp_path, "")) == read_settings() == BrokerSettings()


def test_options_replace_settings_of_the_file(tmp_path: Path) -> None:
    file = written(tmp_path, 'data = "d"\n[server]\nport = 1\nhost = "::1"\n')
    assert read_settings(file).data == str(tmp_path / "d")
    settings = read_settings(file, data=tmp_path / "e", host="127.0.0.1", port=0)
    assert (settings.data, settings.server.host, settings.server.port) == (str(tmp_path / "e"), "127.0.0.1", 0)


def test_all_problems_are_reported_with_their_lines(tmp_path: Path) -> None:
    text = """[server]
prt = 80
port = 70000
[log]
segment = "5 parsecs"
keep_time = "soon"
[limits]
depth = 0
[quota]
sinks = 1
"""
    with pytest.raises(BrokerFileError) as raised:
        read_settings(written(tmp_path, text))
    assert [each.line for each in raised.value.problems] == [2, 3, 5, 6, 8, 9]
    report = str(raised.value).splitlines()
    assert len(report) == 6
    assert "did you mean port or host?" in report[0] or "did you mean port?" in report[0]
    assert '"256 MiB", got "5 parsecs"' in report[2]
    assert '"7 days", got "soon"' in report[3]
    assert "did you mean quotas?" in report[5]


@pytest.mark.parametrize(
    ("value", "expected"), [("7", 7), ('"7 B"', 7), ('"1.5 KiB"', 1536), ('"2GiB"', 2 << 30), ('"1 TiB"', 1 << 40)]
)
def test_sizes_are_numbers_or_have_a_unit(tmp_path: Path, value: str, expected: int) -> None:
    assert read_settings(written(tmp_path, f"[log]\nsegment = {value}\n")).log.segment == expected


@pytest.mark.parametrize(
    ("value", "expected"), [("7", 7), ("0.5", 0.5), ('"1 second"', 1), ('"90 minutes"', 5400), ('"1.5 hours"', 5400)]
)
def test_durations_are_numbers_or_have_a_unit(tmp_path: Path, value: str, expected: float) -> None:
    assert read_settings(written(tmp_path, f"[log]\nkeep_time = {value}\n")).log.keep_time == expected


@pytest.mark.parametrize("value", ["0", "-1", '"0 MiB"', '"1 mb"', "true", '"1e3 KiB"', '"٣ KiB"', '""', "inf", "nan"])
def test_other_sizes_and_durations_are_rejected(tmp_path: Path, value: str) -> None:
    with pytest.raises(BrokerFileError, match="number of bytes"):
        read_settings(written(tmp_path, f"[log]\nsegment = {value}\n"))
    with pytest.raises(BrokerFileError, match="number of seconds"):
        read_settings(written(tmp_path, f"[log]\nkeep_time = {value}\n"))


@pytest.mark.parametrize(
    "host",
    [
        "0.0.0.0",  # noqa: S104 - nothing listens
        "::",
        "192.168.1.2",
        "example.org",
        "",
    ],
)
def test_an_address_that_others_can_reach_needs_tokens_and_tls(tmp_path: Path, host: str) -> None:
    if host:
        with pytest.raises(BrokerFileError) as raised:
            read_settings(host=host)
        assert "pathcast token add" in str(raised.value)
        assert "server.certificate" in str(raised.value)
    with pytest.raises(BrokerFileError) as raised:
        read_settings(written(tmp_path, f'[server]\nhost = "{host or "0"}"\n'))
    assert [each.key for each in raised.value.problems] == ["tokens.file", "server.certificate"]


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_loopback_addresses_need_neither(host: str) -> None:
    assert is_loopback(host)
    assert read_settings(host=host).server.host == host


@pytest.mark.slow
def test_certificate_and_key_go_together_and_can_be_loaded(tmp_path: Path, certificate: tuple[Path, Path]) -> None:
    good, key = certificate

    def problems(text: str) -> list[str]:
        with pytest.raises(BrokerFileError) as raised:
            read_settings(written(tmp_path, f"[server]\n{text}"))
        return [f"{each.key} {each.reason}" for each in raised.value.problems]

    (alone,) = problems(f'certificate = "{good}"\n')
    assert alone.startswith("server.private_key is missing")
    (missing,) = problems(f'certificate = "{good}"\nprivate_key = "nowhere.pem"\n')
    assert missing.startswith("server.private_key cannot be read")
    (swapped,) = problems(f'certificate = "{key}"\nprivate_key = "{good}"\n')
    assert "cannot be loaded" in swapped
    settings = read_settings(written(tmp_path, f'[server]\ncertificate = "{good}"\nprivate_key = "{key}"\n'))
    assert settings.server.certificate == str(good)


@pytest.mark.parametrize("origin", ["desk.example", "https://desk.example/", "ftp://desk.example", "https://", "*"])
def test_origins_are_origins(tmp_path: Path, origin: str) -> None:
    with pytest.raises(BrokerFileError, match="must be an origin"):
        read_settings(written(tmp_path, f'[server]\norigins = ["{origin}"]\n'))
