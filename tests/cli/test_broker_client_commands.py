"""`pathcast publish`, `subscribe` and `replay`, against a real broker."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pathcast.cli.app import app
from pathcast.errors import PathcastError
from tests.broker.broker_process import free_port
from tests.broker.served_broker import Served, served


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("broker")) as found:
        yield found


def run(*arguments: object, stdin: str | None = None) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, [str(each) for each in arguments], input=stdin)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


def test_files_folders_and_stdin_are_published_and_printed(broker: Served, tmp_path: Path) -> None:
    (tmp_path / "stories").mkdir()
    for name in "ab":
        (tmp_path / "stories" / f"{name}.xml").write_text(f"<t>{name}</t>")
    first = broker.broker.log.head + 2  # after the record of the new feed
    done = run("publish", broker.address, "files", tmp_path / "stories", "-", stdin="<t>c</t>")
    assert done == (0, "published 3 of 3 documents to feed files\n", "")
    shown = run("subscribe", broker.address, "//t", "--feed", "files", "--from", first, "--bodies", "--count", 3)
    lines = [f"{first + place}  files\n<t>{name}</t>\n" for place, name in enumerate("abc")]
    assert shown == (0, "".join(lines), "")
    options = ["--from", first, "--count", 1, "--format", "json"]
    row = json.loads(run("subscribe", broker.address, "//t[. = 'b']", *options)[1])
    assert (row["sequence"], row["feed"], "body" in row) == (first + 1, "files", False)
    assert broker.http.get("/v1/subscriptions").json()["total"] == 0


def test_a_document_that_is_rejected_is_reported_and_gives_status_1(broker: Served, tmp_path: Path) -> None:
    bad, good = tmp_path / "bad.xml", tmp_path / "good.xml"
    bad.write_text("<a>\n<b></a>")
    good.write_text("<a/>")
    status, out, err = run("publish", broker.address, "bad", bad, good, tmp_path / "none.xml")
    assert (status, out) == (1, "published 1 of 3 documents to feed bad\n")
    assert f"error: {bad}: line 2, column 6: " in err and "none.xml" in err
    status, out, _ = run("publish", broker.address, "bad", bad, good, "--format", "json")
    rows = [json.loads(line) for line in out.splitlines()]
    assert (status, rows[0]["line"], "sequence" in rows[1]) == (1, 2, True)
    assert run("publish", broker.address, "bad", bad, "--keep-invalid")[0] == 0
    (tmp_path / "empty").mkdir()
    assert run("publish", broker.address, "bad", tmp_path / "empty")[0] == 1


def test_the_schema_of_documents_is_an_option(broker: Served, tmp_path: Path) -> None:
    mappings = {name: f'name = "{name}"\nschema = "{name}"' for name in ("annex", "main")}
    settings = {"mediator": {"schema": "shop", "mappings": mappings}}
    broker.http.put("/v1/feeds/mediated", json=settings).raise_for_status()
    (tmp_path / "a.xml").write_text("<annex/>")
    assert run("publish", broker.address, "mediated", tmp_path / "a.xml", "--schema", "annex")[0] == 0
    status, _, err = run("publish", broker.address, "mediated", tmp_path / "a.xml")
    assert status == 1 and "name one of these schemas with ?schema=" in err


def test_a_named_subscription_stays_and_is_replayed(broker: Served, tmp_path: Path) -> None:
    file = tmp_path / "a.xml"
    file.write_text("<named/>")
    run("publish", broker.address, "named", file)
    head = broker.broker.log.head
    command = ["subscribe", broker.address, "//named", "--id", "kept", "--from", head, "--count", 1]
    assert run(*command) == (0, f"{head}  named\n", "")
    assert broker.http.get("/v1/subscriptions/kept").status_code == 200
    status, _, err = run(*command)
    assert status == 2 and "already exists" in err
    assert run("replay", broker.address, "kept", head)[1].startswith(f"kept: delivers from {head} again; head ")
    replayed = json.loads(run("replay", broker.address, "kept", "2020-01-01T00:00:00Z", "--format", "json")[1])
    assert (replayed["id"], replayed["from"]) == ("kept", 1)
    assert run("replay", broker.address, "kept", "now")[1].startswith(
        f"kept: delivers from {replayed['head'] + 1} again"
    )
    for wrong, reason in (("soon", "from"), (10**9, "must be between 1 and"), (0, "must be at least 1")):
        with pytest.raises(PathcastError, match=reason):
            run("replay", broker.address, "kept", wrong)
    with pytest.raises(PathcastError, match="nobody"):
        run("replay", broker.address, "nobody", 1)
    broker.http.delete("/v1/subscriptions/kept")


def test_dead_letters_are_replayed(broker: Served) -> None:
    path = "/v1/subscriptions/given-up"
    broker.http.put(path, json={"xpath": "//given-up", "config": {"max_deliver": 1}}).raise_for_status()
    sequence = broker.http.post("/v1/feeds/up/documents", content="<given-up/>").json()["sequence"]
    command = ["replay", broker.address, "given-up", "--dead-letters"]
    for options, shown in (
        ([], "given-up: dead letters to deliver again: 1; trimmed: 0\n"),
        (["--format", "json"], '{"id": "given-up", "replayed": 1, "trimmed": 0}\n'),
    ):
        pulled = broker.http.post(f"{path}:pull?wait=5").json()["deliveries"]
        assert [each["sequence"] for each in pulled] == [sequence]
        broker.http.post(f"{path}:nack", json={"sequences": [sequence]}).raise_for_status()
        assert run(*command, *options) == (0, shown, "")
    assert run(*command, "--format", "json")[1] == '{"id": "given-up", "replayed": 0, "trimmed": 0}\n'
    status, _, err = run(*command, sequence)
    assert status == 2 and "omit one of them" in err
    status, _, err = run("replay", broker.address, "given-up")
    assert status == 2 and "or --dead-letters" in err
    with pytest.raises(PathcastError, match="nobody"):
        run("replay", broker.address, "nobody", "--dead-letters")
    broker.http.delete(path)


def test_wrong_arguments_and_a_missing_broker_are_errors(broker: Served, tmp_path: Path) -> None:
    with pytest.raises(PathcastError, match=r"(?s)unknown axis.*\^"):
        run("subscribe", broker.address, "//a/sideways::b")
    assert run("subscribe", broker.address, "//a", "--namespaces", "ignore")[0] == 2
    file = tmp_path / "a.xml"
    file.write_text("<a/>")
    with pytest.raises(PathcastError, match="cannot reach the broker"):
        run("publish", f"http://127.0.0.1:{free_port()}", "a", file, "--patience", "0.1")
    assert broker.http.get("/v1/subscriptions").json()["total"] == 0


def test_split_publishes_the_entries_of_a_file(broker: Served, tmp_path: Path) -> None:
    (tmp_path / "feed.xml").write_text(
        "<feed xmlns:x='u'><entry>1</entry><entry><y:b/></entry><entry>3</entry></feed><feed/>"
    )
    first = broker.broker.log.head + 2
    options = ["--split", "/feed/entry", "--format", "json"]
    status, out, err = run("publish", broker.address, "entries", tmp_path / "feed.xml", *options)
    rows = [json.loads(line) for line in out.splitlines()]
    assert status == 1
    assert [row["document"].partition("#")[2] for row in rows] == ["1", "2", "3", "4"]
    assert [row.get("sequence") for row in rows] == [first, None, first + 1, None]
    assert "undeclared prefix 'y:'" in rows[1]["error"]
    assert "second root element" in rows[3]["error"] and "feed.xml#4" in err
    shown = run("subscribe", broker.address, "//entry", "--feed", "entries", "--from", first, "--bodies", "--count", 1)
    assert shown[1] == f'{first}  entries\n<entry xmlns:x="u">1</entry>\n'
