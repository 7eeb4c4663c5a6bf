"""Folders that hold rows of others: a stream is kept from starting, and a micro-batch from writing. Without Spark."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from pathcast.errors import PipelineError
from pathcast.spark.pipeline.output_folder_owners import check_outputs, claim
from pathcast.spark.pipeline.pipeline_file import Pipeline, read_pipeline

STREAM = """
[source]
format = "files"
path = "news"
[subscriptions]
index = "index"
[deliveries]
path = "deliveries"
[dead_letters]
path = "dead"
[stream]
checkpoint = "checkpoint"
"""


@pytest.fixture
def stream(tmp_path: Path) -> Pipeline:
    (tmp_path / "stream.toml").write_text(STREAM)
    return read_pipeline(tmp_path / "stream.toml")


def begin(checkpoint: Path, last: int, id: str = "ours") -> None:
    """The records of Spark before a micro-batch writes."""
    (checkpoint / "offsets").mkdir(parents=True, exist_ok=True)
    (checkpoint / "metadata").write_text(json.dumps({"id": id}))
    (checkpoint / "offsets" / str(last)).touch()


def put(file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch()


def write(stream: Pipeline, number: int) -> None:
    assert stream.stream is not None
    claim(stream.deliveries, stream.stream, number)
    put(Path(stream.deliveries.path or "") / f"batch={number}" / "part-0.parquet")


def test_a_new_checkpoint_over_rows_is_refused_with_what_to_do(stream, tmp_path):
    put(tmp_path / "dead" / "part-0.parquet")
    with pytest.raises(PipelineError) as refused:
        check_outputs(stream)
    assert str(refused.value) == (
        f"{tmp_path}/stream.toml: dead_letters.path: {tmp_path}/dead holds rows that this stream did not write "
        f"(part-0.parquet), and the checkpoint {tmp_path}/checkpoint is new, so the stream would deliver all documents "
        "again next to them; choose another folder, set stream.checkpoint to that of the stream which wrote them, or "
        f"remove {tmp_path}/dead"
    )


def test_a_folder_without_rows_is_taken(stream, tmp_path):
    put(tmp_path / "deliveries" / "_batch-0-left" / "part-0.parquet")  # of a micro-batch that was killed
    put(tmp_path / "deliveries" / "_SUCCESS")
    (tmp_path / "deliveries" / "2026").mkdir()
    put(tmp_path / "dead" / ".part-0.crc")
    check_outputs(stream)
    begin(tmp_path / "checkpoint", 0)
    write(stream, 0)
    check_outputs(stream)


def test_a_stream_goes_on_over_its_own_rows_marked_or_not(stream, tmp_path):
    put(tmp_path / "deliveries" / "batch=0" / "part-0.parquet")
    begin(tmp_path / "checkpoint", 0)
    check_outputs(stream)
    write(stream, 1)
    put(tmp_path / "deliveries" / "batch=9" / "part-0.parquet")  # its mark claims the whole folder
    check_outputs(stream)
    (tmp_path / "moved").mkdir()
    for name in ("stream.toml", "checkpoint", "deliveries"):
        (tmp_path / name).rename(tmp_path / "moved" / name)
    check_outputs(read_pipeline(tmp_path / "moved" / "stream.toml"))


@pytest.mark.parametrize("file", ["part-0.parquet", "batch=1/part-0.parquet"])
def test_a_stream_that_has_begun_does_not_go_on_over_rows_of_others(stream, tmp_path, file):
    begin(tmp_path / "checkpoint", 0)
    put(tmp_path / "deliveries" / file)
    with pytest.raises(PipelineError, match=f"{file}.*, and it would write its own next to them; choose another"):
        check_outputs(stream)
    with pytest.raises(PipelineError, match=f"{file}.*; choose another folder for this stream"):
        write(stream, 0)


def test_two_streams_do_not_share_a_folder(stream, tmp_path):
    begin(tmp_path / "checkpoint", 0)
    other = replace(stream, stream=replace(stream.stream, checkpoint=str(tmp_path / "other")))
    begin(tmp_path / "other", 0, "theirs")
    write(stream, 0)
    with pytest.raises(PipelineError, match="holds rows that this stream did not write"):
        check_outputs(other)
    with pytest.raises(PipelineError, match="choose another folder for this stream"):
        write(other, 0)


def test_joins_have_folders_and_a_checkpoint_of_their_own(tmp_path):
    joins = '[joins]\nschema = "s.toml"\nsubscriptions = "j.csv"\nkey = "number"\npath = "messages"\n'
    text = STREAM.replace('"files"', '"parquet"\nschema = "number long, xml binary"')
    (tmp_path / "stream.toml").write_text(text + joins + 'deliveries = "join-deliveries"\n')
    begin(tmp_path / "checkpoint", 3)
    put(tmp_path / "join-deliveries" / "batch=0" / "part-0.parquet")
    stream = read_pipeline(tmp_path / "stream.toml")
    with pytest.raises(PipelineError, match="joins.deliveries: .*/checkpoint/joins is new"):
        check_outputs(stream)
    begin(tmp_path / "checkpoint" / "joins", 0, "joins")
    check_outputs(stream)
