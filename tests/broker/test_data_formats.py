"""Upgrades: data of an earlier format is opened, rebuilt or rejected with advice, of a later format rejected."""

import io
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from msgspec import json, msgpack

from pathcast.broker import Broker
from pathcast.broker.tokens.token_file import TokenFileError, add_token, read_tokens
from pathcast.log import LogError, SqliteLog, import_log
from tests.broker.broker_world import TENANT, broker_in, published, subscription

EARLIER, LATER = "an earlier version wrote it", "a later version wrote it; update Pathcast"


def filled(folder: Path) -> list[int]:
    """A broker's log: a subscription, documents, an acknowledgement, a checkpoint; the sequences of the documents."""
    with broker_in(folder) as broker:
        broker.subscribe(subscription("titles", "//title")).result()
        sequences = published(broker, "news", "<a><title/></a>", "<a/>", "<b><title/></b>")
        broker.acknowledge(TENANT, "titles", sequences[:1])
    return sequences


def received(folder: Path) -> list[int]:
    with broker_in(folder) as broker:
        return [each.entry.sequence for each in broker.pull(TENANT, "titles", 10).deliveries]


def with_checkpoint(folder: Path, change: Callable[[dict], None]) -> None:
    """Change the state in the checkpoint of a log."""
    with closing(SqliteLog(folder)) as log:
        found = log.checkpoint()
        assert found is not None
        content = msgpack.decode(found.data)
        change(content)
        log.write_checkpoint(found.sequence, msgpack.encode(content))


def with_segment_format(folder: Path, version: int) -> Path:
    """Give the only segment of a log another format, as a closed file."""
    (file,) = folder.glob("segment-*.sqlite")
    with closing(sqlite3.connect(file)) as segment:
        segment.execute(f"pragma user_version = {version}")
        segment.execute("pragma journal_mode = delete").fetchall()
    return file


def test_a_checkpoint_without_the_fields_that_came_later_is_opened(tmp_path: Path) -> None:
    sequences = filled(tmp_path)

    def without(content: dict) -> None:
        for name in ("guards", "settings"):
            del content[name]

    with_checkpoint(tmp_path, without)
    assert received(tmp_path) == [sequences[2]]


def test_a_checkpoint_of_an_earlier_format_is_rebuilt_from_the_records(tmp_path: Path) -> None:
    sequences = filled(tmp_path)
    with_checkpoint(tmp_path, lambda content: content.update(format=0, subscriptions="another shape"))
    assert received(tmp_path) == [sequences[2]]
    # The broker has written a checkpoint of its own format.
    with closing(SqliteLog(tmp_path)) as log:
        found = log.checkpoint()
        assert found is not None
        assert msgpack.decode(found.data)["format"] == 1


def test_an_earlier_checkpoint_that_stands_for_trimmed_records_is_rejected(tmp_path: Path) -> None:
    with closing(SqliteLog(tmp_path)) as log:
        log.begin_at(5)
        log.write_checkpoint(4, msgpack.encode({"format": 0}))
        before = log.checkpoint()
        with pytest.raises(
            LogError, match="has state format 0, but this version of Pathcast reads format 1; start a version"
        ):
            Broker(log)
        assert (log.checkpoint(), log.head) == (before, 4)


def test_a_checkpoint_of_a_later_format_is_rejected_whatever_its_content_is(tmp_path: Path) -> None:
    filled(tmp_path)
    with_checkpoint(tmp_path, lambda content: content.update(format=2, subscriptions="another shape"))
    with closing(SqliteLog(tmp_path)) as log:
        head = log.head
        with pytest.raises(
            LogError, match="has state format 2, but this version of Pathcast reads format 1; update Pathcast"
        ):
            Broker(log)
        assert log.head == head


@pytest.mark.parametrize(("version", "advice"), [(2, LATER), (7, LATER), (0, EARLIER)])
def test_a_log_of_another_format_is_rejected_and_left_as_it_is(tmp_path: Path, version: int, advice: str) -> None:
    filled(tmp_path)
    file = with_segment_format(tmp_path, version)
    content = file.read_bytes()
    for read_only in (False, True):
        with pytest.raises(LogError) as raised:
            SqliteLog(tmp_path, read_only=read_only)
        assert f"{file} has format {version}, but this version of Pathcast reads format 1: {advice}" in str(
            raised.value
        )
    assert file.read_bytes() == content
    if version == 0:
        assert "run `pathcast log export` with that version" in str(raised.value)


@pytest.mark.parametrize(("version", "advice"), [(2, LATER), (0, EARLIER)])
def test_a_checkpoint_file_of_another_format_is_not_called_damaged(tmp_path: Path, version: int, advice: str) -> None:
    filled(tmp_path)
    (file,) = tmp_path.glob("checkpoint-*.bin")
    content = file.read_bytes().replace(b"pathcast checkpoint 1\n", b"pathcast checkpoint %d\n" % version)
    file.write_bytes(content)
    with pytest.raises(LogError, match=f"has format {version}, but this version of Pathcast reads format 1: {advice}"):
        received(tmp_path)
    assert file.read_bytes() == content


@pytest.mark.parametrize("version", [b"2", b"12"])
def test_an_export_of_a_later_format_is_rejected(tmp_path: Path, version: bytes) -> None:
    with closing(SqliteLog(tmp_path)) as log, pytest.raises(LogError, match="later format, .*; import it with a later"):
        import_log(log, io.BytesIO(b"pathcast log " + version + b"\nHEAD"))


def test_a_tokens_file_of_a_later_format_is_rejected_whatever_its_content_is(tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    add_token(file, "desk", "ada", ["*"])
    file.write_bytes(json.encode({"format": 2, "users": []}))
    with pytest.raises(
        TokenFileError, match="has format 2, but this version of Pathcast reads format 1; update Pathcast"
    ):
        read_tokens(file)
