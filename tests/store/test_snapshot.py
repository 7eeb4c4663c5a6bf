"""Snapshots: written content can be read back; anything else is rejected with a reason."""

import json
import multiprocessing
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from pathcast import SnapshotError
from pathcast.kernels import AnyArray
from pathcast.store import open_snapshot, read_manifest, write_snapshot
from pathcast.store.snapshot import MAPPED_BYTES
from pathcast.store.text_arrays import Texts, pack

ARRAYS: dict[str, AnyArray] = {
    "numbers": np.arange(20_000, dtype=np.int32),
    "empty": np.empty(0, dtype=np.int64),
    "grid": np.arange(12, dtype=np.uint8).reshape(3, 4),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_snapshot(tmp_path / "index", "numbers", {"answer": 42, "text": "é"}, ARRAYS)
    return tmp_path / "index"


def test_what_was_written_comes_back_as_read_only_maps(folder: Path) -> None:
    snapshot = open_snapshot(folder, "numbers")
    assert snapshot.facts == {"answer": 42, "text": "é"}
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(snapshot.arrays[name], array)
        assert not snapshot.arrays[name].flags.writeable
    assert isinstance(snapshot.arrays["numbers"], np.memmap)


def test_a_reader_keeps_what_it_opened_while_a_writer_replaces_it(folder: Path) -> None:
    before = open_snapshot(folder, "numbers")
    write_snapshot(folder, "numbers", {}, {"numbers": np.zeros(5, dtype=np.int32)})
    assert before.arrays["numbers"].sum() == ARRAYS["numbers"].sum()
    assert open_snapshot(folder, "numbers").arrays["numbers"].tolist() == [0] * 5
    assert len([entry for entry in folder.iterdir() if entry.is_dir()]) == 1, "the old data are gone"


def test_another_kind_is_refused(folder: Path) -> None:
    with pytest.raises(SnapshotError, match="kind 'numbers', expected 'index'"):
        open_snapshot(folder, "index")


def test_a_newer_version_says_to_update(folder: Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["version"] = 99
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(
        SnapshotError, match="version 99, but this version of Pathcast reads version 2; update Pathcast"
    ):
        open_snapshot(folder, "numbers")


def test_a_changed_manifest_is_damage(folder: Path) -> None:
    path = folder / "manifest.json"
    path.write_text(path.read_text().replace("42", "43"))
    with pytest.raises(SnapshotError, match="manifest.json was changed"):
        open_snapshot(folder, "numbers")
    path.write_text(path.read_text()[:-20])
    with pytest.raises(SnapshotError, match="not JSON"):
        open_snapshot(folder, "numbers")
    path.write_text('{"format": "else"}')
    with pytest.raises(SnapshotError, match="not a Pathcast snapshot"):
        open_snapshot(folder, "numbers")


def data_file(folder: Path) -> Path:
    generation: str = read_manifest(folder)["generation"]
    return folder / f"data-{generation}" / "numbers.bin"


def test_a_flipped_bit_is_found(folder: Path) -> None:
    file = data_file(folder)
    content = bytearray(file.read_bytes())
    content[-7] ^= 1
    file.write_bytes(content)
    with pytest.raises(SnapshotError, match="does not match its checksum"):
        open_snapshot(folder, "numbers")
    assert open_snapshot(folder, "numbers", verify=False).facts["answer"] == 42


def test_a_truncated_or_missing_file_is_found_even_without_verifying(folder: Path) -> None:
    file = data_file(folder)
    os.truncate(file, 100)
    with pytest.raises(SnapshotError, match="is damaged: it has"):
        open_snapshot(folder, "numbers", verify=False)
    file.unlink()
    with pytest.raises(SnapshotError, match="cannot read snapshot file"):
        open_snapshot(folder, "numbers", verify=False)


def test_a_folder_that_is_none_says_so(tmp_path: Path) -> None:
    with pytest.raises(SnapshotError, match="the folder does not exist"):
        open_snapshot(tmp_path / "nowhere", "numbers")
    with pytest.raises(SnapshotError, match=r"no manifest\.json"):
        open_snapshot(tmp_path, "numbers")


def test_a_folder_with_other_things_is_never_written_to(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(SnapshotError, match=r"contains other files \(thesis\.tex"):
        write_snapshot(tmp_path, "numbers", {}, ARRAYS)
    assert [entry.name for entry in tmp_path.iterdir()] == ["thesis.tex"]
    (tmp_path / "file").write_text("")
    with pytest.raises(SnapshotError, match="is a file, not a snapshot; give the folder of a snapshot"):
        read_manifest(tmp_path / "file")
    with pytest.raises(SnapshotError, match="is a file, but a snapshot is a folder"):
        write_snapshot(tmp_path / "file", "numbers", {}, ARRAYS)


def rewrite(folder: str, rounds: int) -> None:
    for value in range(1, rounds + 1):
        write_snapshot(folder, "numbers", {"value": value}, {"numbers": np.full(1000, value, dtype=np.int32)})


@pytest.mark.slow
def test_readers_beside_a_writer_never_see_a_mixture(folder: Path) -> None:
    write_snapshot(folder, "numbers", {"value": 0}, {"numbers": np.zeros(1000, dtype=np.int32)})
    writer = multiprocessing.get_context("spawn").Process(target=rewrite, args=(str(folder), 60))
    writer.start()
    seen = set()
    while writer.is_alive():
        snapshot = open_snapshot(folder, "numbers")
        assert (snapshot.arrays["numbers"] == snapshot.facts["value"]).all()
        seen.add(snapshot.facts["value"])
    writer.join()
    assert writer.exitcode == 0 and len(seen) > 1


def test_writers_take_turns(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    with ThreadPoolExecutor(4) as pool:
        for _ in range(10):
            done = [
                pool.submit(write_snapshot, folder, "numbers", {"value": value}, {"n": np.full(9, value)})
                for value in range(4)
            ]
            generations = [future.result() for future in done]
            snapshot = open_snapshot(folder, "numbers")
            assert snapshot.generation in generations
            assert (snapshot.arrays["n"] == snapshot.facts["value"]).all()


def test_texts_pack_and_unpack() -> None:
    texts = ["", "a", "né", "", "\U0001f600"]
    assert list(Texts(*pack(texts))) == texts and Texts(*pack(texts))[2] == "né"
    assert list(Texts(*pack([]))) == []


def test_only_large_arrays_of_an_open_snapshot_hold_a_file_open(tmp_path: Path) -> None:
    small = {f"small{number}": np.arange(number) for number in range(100)}
    write_snapshot(tmp_path, "k", {}, {**small, "large": np.zeros(MAPPED_BYTES, np.uint8)})
    before = len(list(Path("/dev/fd").iterdir()))
    opened = open_snapshot(tmp_path, "k")
    assert len(list(Path("/dev/fd").iterdir())) == before + 1
    assert all(np.array_equal(opened.arrays[name], array) for name, array in small.items())
    assert not any(array.flags.writeable for array in opened.arrays.values())
