"""The log of Spark's own file source in a checkpoint: the files of each micro-batch, in `sources/0`.

    checkpoint/offsets/17         …, last line {"logOffset": 12}
    checkpoint/sources/0/12       v1, then {"path": "file:///feed/a%20b.xml", "timestamp": …, "batchId": 12}, …
    checkpoint/sources/0/19.compact   all entries up to 19

`stream_files` (file_source.py) continues from this log, and `check_names` finds names that make Spark read files twice.
"""

import json
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from pathcast.errors import PipelineError

LOG_OFFSET = "logOffset"
_WILD = frozenset("[]{}*?\\")


def logged_files(checkpoint: str | Path) -> list[list[tuple[str, int]]]:
    """The URI and time (milliseconds) of the files in each entry of the log, by its number."""
    log = Path(checkpoint) / "sources" / "0"
    if not log.is_dir():
        return []
    numbers = {int(file.name.removesuffix(".compact")): file for file in log.iterdir() if _is_entry(file)}
    compact = max((number for number, file in numbers.items() if file.suffix), default=-1)
    found: dict[int, list[tuple[str, int]]] = {}
    for number in sorted(numbers):
        if number >= compact:
            for facts in _entries(numbers[number]):
                found.setdefault(facts["batchId"], []).append((facts["path"], facts["timestamp"]))
    return [found.get(number, []) for number in range(max(found, default=-1) + 1)]


def local_path(uri: str) -> str:
    """The path of a file on this machine's disks, by its URI."""
    return unquote(urlsplit(uri).path)


def check_names(checkpoint: str | Path, batch: int) -> None:
    """Raise `PipelineError` if a micro-batch of Spark's own file source has names that make Spark read files twice."""
    end, begin = _log_offset(checkpoint, batch), _log_offset(checkpoint, batch - 1)
    log = Path(checkpoint) / "sources" / "0"
    if end is None or not log.is_dir():
        return  # another kind of source
    for number in range(0 if begin is None else begin + 1, end + 1):
        plain = log / str(number)
        for facts in _entries(plain if plain.exists() else log / f"{number}.compact"):
            name = local_path(facts["path"]).rpartition("/")[2]
            if facts["batchId"] == number and _WILD & set(name):
                raise PipelineError(
                    f"the file name {name!r} contains one of [ ] {{ }} * ? \\, which makes Spark read files twice; set "
                    "recursiveFileLookup = true in source.options, which also reads subfolders, and run again"
                )


def _log_offset(checkpoint: str | Path, batch: int) -> int | None:
    """The last entry of the log that a micro-batch reads."""
    try:
        text = (Path(checkpoint) / "offsets" / str(batch)).read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    last = text.split("\n")[-1]
    found = json.loads(last).get(LOG_OFFSET) if last.startswith("{") else None
    return found if isinstance(found, int) else None


def _is_entry(file: Path) -> bool:
    return file.name.removesuffix(".compact").isdecimal()


def _entries(file: Path) -> list[dict[str, Any]]:
    lines = file.read_text(encoding="utf-8").split("\n")
    if not lines or lines[0] != "v1":
        raise PipelineError(
            f"{file} is damaged, or not a log of Spark's file source: it begins with {lines[0]!r:.40}, expected 'v1'; "
            "restore the checkpoint from a backup, or start with a new checkpoint and new output folders"
        )
    return [json.loads(line) for line in lines[1:] if line]
