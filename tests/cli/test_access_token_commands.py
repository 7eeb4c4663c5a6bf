"""`pathcast token`: add, list, revoke."""

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pathcast.broker import read_tokens
from pathcast.cli.app import app
from pathcast.errors import PathcastError


def run(*arguments: object) -> str:
    result = CliRunner().invoke(app, ["token", *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_token_is_shown_once_listed_without_its_secret_and_revoked(tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    options = ("--scope", "read:news", "--scope", "subscribe:ada", "--tenant", "desk", "--days", "7", "--file", file)
    text = run("add", "ada", *options).strip()
    assert re.fullmatch(r"pathcast_[0-9a-f]{12}_[\w-]{43}", text)
    listed = run("list", "--file", file)
    id = text.split("_")[1]
    assert f"{id}  desk/ada  read:news subscribe:ada  expires " in listed
    row = json.loads(run("list", "--file", file, "--format", "json"))
    assert (row["id"], row["tenant"], row["scopes"]) == (id, "desk", ["read:news", "subscribe:ada"])
    assert (row["valid"], row["expires"][:10]) == (True, f"{read_tokens(file)[0].expires:%Y-%m-%d}")
    listed += json.dumps(row)
    assert text.split("_", 2)[2] not in listed + file.read_text()
    assert run("revoke", id, "--file", file) == f"revoked {id} of desk/ada\n"
    assert read_tokens(file) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("add", "a/b", "--scope", "*"), "invalid name 'a/b'; use 1 to 128"),
        (("add", "ada", "--scope", "write:x"), "unknown scope 'write:x'"),
        (("add", "ada", "--scope", "*", "--days", "0"), "--days must be above 0"),
        (("add", "ada", "--scope", "*", "--days", "nan"), "--days must be above 0"),
        (("list",), "cannot be read"),
        (("revoke", "ada"), "cannot be read"),
    ],
)
def test_wrong_arguments_are_reported(tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(PathcastError) as raised:
        run(*arguments, "--file", tmp_path / "tokens.json")
    assert message in str(raised.value)


def test_revoking_an_unknown_token_is_an_error(tmp_path: Path) -> None:
    run("add", "ada", "--scope", "*", "--file", tmp_path / "t")
    with pytest.raises(PathcastError, match="no token with id or name 'bob'"):
        run("revoke", "bob", "--file", tmp_path / "t")
