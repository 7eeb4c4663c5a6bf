"""Damaged or forged snapshots: every byte is checked, and only `SnapshotError` is raised."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pathcast import SnapshotError
from pathcast.kernels import AnyArray
from pathcast.store import open_snapshot, reading_snapshot, write_snapshot
from tests.store.forged import forge, manifest_of

ARRAYS: dict[str, AnyArray] = {
    "whole": np.arange(20, dtype=np.int32),
    "more": np.arange(20, dtype=np.int32)[::-1],
    "real": np.linspace(0, 1, 5),
    "flags": np.array([True, False, True]),
    "grid": np.arange(12, dtype=np.uint16).reshape(3, 4),
    "empty": np.empty((0, 3), dtype=np.int64),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(os, "fsync", lambda _: None)
    write_snapshot(tmp_path / "index", "numbers", {"answer": 42, "text": "é"}, ARRAYS)
    return tmp_path / "index"


def files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*") if file.is_file() and file.name != ".lock")


@pytest.mark.slow
def test_every_byte_of_every_file_is_covered(folder: Path) -> None:
    assert len(files(folder)) == 1 + len(ARRAYS)
    for file in files(folder):
        content = file.read_bytes()
        for at in range(len(content)):
            file.write_bytes(content[:at] + bytes([content[at] ^ 2]) + content[at + 1 :])  # '<' becomes '>'
            with pytest.raises(SnapshotError):
                open_snapshot(folder, "numbers")
        file.write_bytes(content)
    open_snapshot(folder, "numbers")


def test_files_that_are_cut_or_have_grown_are_found_without_verifying(folder: Path) -> None:
    for file in files(folder):
        content = file.read_bytes()
        for changed in (content + b"\0", content + b"\n", content[:-1], content[:1], b""):
            if changed != content:
                file.write_bytes(changed)
                with pytest.raises(SnapshotError):
                    open_snapshot(folder, "numbers", verify=False)
        file.write_bytes(content)


def test_two_files_in_each_others_place_are_found(folder: Path) -> None:
    one, other = (next(folder.rglob(name)) for name in ("whole.bin", "more.bin"))
    contents = one.read_bytes(), other.read_bytes()
    other.write_bytes(contents[0])
    one.write_bytes(contents[1])
    with pytest.raises(SnapshotError, match="does not match its checksum"):
        open_snapshot(folder, "numbers")


def test_a_missing_file_or_folder_is_found(folder: Path) -> None:
    for file in files(folder):
        content = file.read_bytes()
        file.unlink()
        with pytest.raises(SnapshotError):
            open_snapshot(folder, "numbers", verify=False)
        file.mkdir()
        with pytest.raises(SnapshotError):
            open_snapshot(folder, "numbers", verify=False)
        file.rmdir()
        file.write_bytes(content)
    (data,) = folder.glob("data-*")
    shutil.rmtree(data)
    with pytest.raises(SnapshotError, match="cannot read snapshot file"):
        open_snapshot(folder, "numbers")


def test_pipes_and_devices_are_refused_and_not_waited_for(folder: Path) -> None:
    for file in files(folder):
        content = file.read_bytes()
        file.unlink()
        os.mkfifo(file)
        with pytest.raises(SnapshotError, match="not a regular file"):
            open_snapshot(folder, "numbers")
        file.unlink()
        file.symlink_to("/dev/zero")
        with pytest.raises(SnapshotError, match="not a regular file"):
            open_snapshot(folder, "numbers")
        file.unlink()
        file.symlink_to(file)
        with pytest.raises(SnapshotError):
            open_snapshot(folder, "numbers")
        file.unlink()
        file.write_bytes(content)


def test_a_link_is_followed_and_what_it_leads_to_is_checked(folder: Path) -> None:
    file = next(folder.rglob("whole.bin"))
    elsewhere = file.rename(folder.parent / "elsewhere")
    file.symlink_to(elsewhere)
    assert open_snapshot(folder, "numbers").arrays["whole"].tolist() == list(range(20))
    elsewhere.write_bytes(b"x" * 80)
    with pytest.raises(SnapshotError, match="does not match its checksum"):
        open_snapshot(folder, "numbers")


@pytest.mark.parametrize(
    "manifest",
    [
        pytest.param(b"[" * 100_000, id="nested"),
        pytest.param(b'{"format": "pathcast-snapshot", "facts": ' + b'{"a":' * 100_000, id="nested and unfinished"),
        pytest.param(b"[" * 900 + b"]" * 900, id="nested less"),
        pytest.param(b"1" * 10_000, id="a long number"),
        pytest.param(b"\xff\xfe{}", id="no UTF-8"),
        pytest.param("{}".encode("utf-16"), id="UTF-16"),
        pytest.param(b"\xef\xbb\xbf{}", id="a byte order mark"),
        pytest.param(b"", id="nothing"),
        pytest.param(b"null", id="null"),
        pytest.param(b'{"format": []}', id="a format that is a list"),
        pytest.param(b'{"format": "pathcast-snapshot", "version": {}}', id="a version that is an object"),
        pytest.param(b'{"format": "pathcast-snapshot", "version": "2"}', id="a version that is a text"),
    ],
)
def test_a_manifest_that_is_none_is_refused(folder: Path, manifest: bytes) -> None:
    (folder / "manifest.json").write_bytes(manifest)
    with pytest.raises(SnapshotError):
        open_snapshot(folder, "numbers")


def test_a_manifest_has_no_lone_surrogates(folder: Path) -> None:
    path = folder / "manifest.json"
    content = path.read_bytes()
    for surrogate in (rb"\ud800", "\ud800".encode("utf-8", "surrogatepass")):
        path.write_bytes(content.replace(b'"kind": "numbers"', b'"kind": "%b"' % surrogate))
        with pytest.raises(SnapshotError, match="damaged"):
            open_snapshot(folder, "numbers")
    with pytest.raises(UnicodeEncodeError):
        write_snapshot(folder.parent / "other", "numbers", {"text": "\ud800"}, {})
    assert not list((folder.parent / "other").glob("data-*"))


def test_a_manifest_that_says_the_same_in_other_bytes_was_changed(folder: Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    with pytest.raises(SnapshotError, match=r"manifest\.json was changed"):
        open_snapshot(folder, "numbers")


def test_a_manifest_of_an_earlier_format_is_refused_with_advice(folder: Path) -> None:
    (folder / "manifest.json").write_text('{"format": "pathcast-snapshot", "version": 1, "kind": "numbers"}')
    with pytest.raises(
        SnapshotError, match="has version 1, but this version of Pathcast reads version 2; write the snapshot again"
    ):
        open_snapshot(folder, "numbers")


def test_a_manifest_is_read_up_to_a_size(folder: Path) -> None:
    with (folder / "manifest.json").open("ab") as file:
        file.truncate(1 << 40)
    with pytest.raises(SnapshotError, match=r"exceeds 67,108,864 bytes"):
        open_snapshot(folder, "numbers")


def replaced(name: str, **facts: Any) -> Callable[[dict[str, Any]], None]:
    def change(manifest: dict[str, Any]) -> None:
        manifest["arrays"][name] |= facts

    return change


def test_every_value_of_a_forged_manifest_is_checked(folder: Path) -> None:
    whole = {"dtype": "<i4", "shape": [20], "crc32": 0}
    dtypes: list[Any] = [">i4", "|O", "|V4", "<U1", "<M8[s]", "i4,i4", "object", 4, None, ["<i4"], {}]
    changes: list[Callable[[dict[str, Any]], object]] = [
        lambda manifest: manifest.update(arrays={"../../x": whole}),
        lambda manifest: manifest.update(arrays={"..\\x": whole}),
        lambda manifest: manifest.update(arrays={"a\0b": whole}),
        lambda manifest: manifest.update(arrays={"": whole}),
        lambda manifest: manifest.update(arrays={"n" * 10_000: whole}),
        lambda manifest: manifest.update(arrays=[]),
        lambda manifest: manifest.update(arrays={"whole": None}),
        lambda manifest: manifest["arrays"]["whole"].pop("crc32"),
        lambda manifest: manifest.update(facts=None),
        lambda manifest: manifest.update(generation="../other"),
        lambda manifest: manifest.update(generation=3),
        lambda manifest: manifest.update(kind=3),
        lambda manifest: manifest.pop("kind"),
        *(replaced("whole", dtype=dtype) for dtype in dtypes),
        *(
            replaced("whole", shape=shape)
            for shape in ([-20], [-4, -5], [20.0], [True], ["20"], 20, None, [10**30], [19], [21], [], [1] * 80 + [20])
        ),
        replaced("empty", shape=[0, 10**30]),
        replaced("empty", shape=[0] * 100),
        *(replaced("whole", crc32=value) for value in ("x", None, -1, 1.5, True)),
    ]
    manifest = manifest_of(folder)
    forge(folder, manifest)
    open_snapshot(folder, "numbers")
    for number, change in enumerate(changes):
        forged = json.loads(json.dumps(manifest))
        change(forged)
        forge(folder, forged)
        with pytest.raises(SnapshotError):
            pytest.fail(f"change {number}: {open_snapshot(folder, 'numbers')}")


def test_names_in_a_forged_manifest_do_not_lead_out_of_its_folder(folder: Path) -> None:
    manifest = manifest_of(folder)
    (data,) = folder.glob("data-*")
    outside = folder.parent / "outside"
    shutil.copy(data / "whole.bin", f"{outside}.bin")  # with the size and checksum in the manifest
    for forged in (
        manifest | {"arrays": {"../../outside": manifest["arrays"]["whole"]}},
        manifest | {"arrays": {str(outside): manifest["arrays"]["whole"]}},
        manifest | {"generation": f"{manifest['generation']}/../{data.name}"},
    ):
        forge(folder, forged)
        with pytest.raises(SnapshotError, match=r"manifest\.json is incomplete"):
            open_snapshot(folder, "numbers")


def test_a_path_that_no_file_system_takes_is_no_snapshot() -> None:
    for path in ("a\0b", "\ud800", "n" * 10_000):
        with pytest.raises(SnapshotError):
            open_snapshot(path, "numbers")


def test_an_array_of_objects_is_not_written_and_nothing_is_left(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="array 'wrong' has dtype object"):
        write_snapshot(tmp_path / "index", "numbers", {}, {"wrong": np.array([{}])})
    assert not list((tmp_path / "index").glob("data-*"))


def test_whatever_fails_while_a_snapshot_is_read_is_an_error_of_the_snapshot() -> None:
    for error in (
        KeyError("a"),
        RecursionError("deep"),
        AssertionError(),
        UnicodeEncodeError("utf-8", "é", 0, 1, "no"),
    ):
        reason = f"snapshot there is damaged: {type(error).__name__}"
        with pytest.raises(SnapshotError, match=reason), reading_snapshot("there"):
            raise error
    with pytest.raises(KeyboardInterrupt), reading_snapshot("there"):
        raise KeyboardInterrupt


def test_a_shape_of_very_many_sizes_is_rejected_before_they_are_multiplied(folder: Path) -> None:
    for shape in ([9] * 100_000, [1] * 64 + [20], [1 << 63, 0]):
        manifest = manifest_of(folder)
        manifest["arrays"]["whole"]["shape"] = shape
        forge(folder, manifest)
        with pytest.raises(SnapshotError, match="manifest.json is incomplete"):
            open_snapshot(folder, "numbers")
