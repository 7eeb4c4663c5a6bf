import io
import tarfile
from pathlib import Path

import pytest

from pathcast_lab.harness.external_data_folder import data_folder, nitf_documents


def test_the_environment_names_the_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATHCAST_DATA", str(tmp_path))
    assert data_folder() == tmp_path
    monkeypatch.setenv("PATHCAST_DATA", str(tmp_path / "absent"))
    assert data_folder() is None


def test_without_a_name_the_folder_beside_the_checkout_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PATHCAST_DATA", raising=False)
    assert data_folder(tmp_path / "checkout") is None
    (tmp_path / "shared" / "data").mkdir(parents=True)
    assert data_folder(tmp_path / "checkout") == tmp_path / "shared" / "data"


def test_nitf_documents_come_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    (tmp_path / "nitf").mkdir()
    with tarfile.open(tmp_path / "nitf" / "documents.tgz", "w:gz") as tar:
        for name in ("xml/f10.xml", "xml/f2.xml", "xml/README"):
            content = f"<{name[4:-4]}/>".encode()
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    assert nitf_documents(tmp_path) == [b"<f2/>", b"<f10/>"]


def test_there_are_no_nitf_documents_without_the_folder(tmp_path: Path) -> None:
    assert nitf_documents(None) == nitf_documents(tmp_path) == []
