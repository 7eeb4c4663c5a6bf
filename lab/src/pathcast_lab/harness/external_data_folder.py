"""External data, which experiments use if they are available.

The folder is the one that the environment variable `PATHCAST_DATA` names, or `../shared/data` beside the checkout.
"""

import os
import tarfile
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[4]


def data_folder(checkout: Path = CHECKOUT) -> Path | None:
    """The folder with external data, if it exists: from the environment, or beside the checkout."""
    named = os.environ.get("PATHCAST_DATA")
    folder = Path(named) if named else checkout.parent / "shared" / "data"
    return folder if folder.is_dir() else None


def nitf_documents(folder: Path | None) -> list[bytes]:
    """The NITF documents of the data folder in the order of their numbers; none without the folder."""
    archive = folder / "nitf" / "documents.tgz" if folder else None
    if archive is None or not archive.is_file():
        return []
    with tarfile.open(archive) as tar:
        members = [member for member in tar if member.isfile() and member.name.endswith(".xml")]
        members.sort(key=lambda member: (len(member.name), member.name))
        return [file.read() for member in members if (file := tar.extractfile(member)) is not None]
