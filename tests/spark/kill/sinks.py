"""Actual and expected content of the sinks in the end: every document once, matched with its batch's version."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from pathcast import Matcher

from .scene import VERSION, Scene, document, matcher_of


def check(scene: Scene) -> None:
    _check_filed(scene)
    _check_delivered(scene)


def _check_filed(scene: Scene) -> None:
    """The file sink: Spark's log lists the committed files and the batch of each."""
    batch_of = _logged(scene.folder / "filed" / "_spark_metadata")
    rows = [
        (row["id"], batch, row["matches"], row["error"])
        for file, batch in batch_of.items()
        for row in pq.read_table(scene.folder / "filed" / file).to_pylist()
    ]
    _each_once([row[0] for row in rows], scene)
    expected = _Expected("ids")
    for number, batch, matches, error in rows:
        version = scene.pins["filed"][batch]
        assert (error is None) == (number % 7 != 0)
        assert matches == expected.of(version, number), f"document {number}, batch {batch}, version {version}"
    assert len(set(scene.pins["filed"].values())) > 1, "subscriptions did not change"


def _check_delivered(scene: Scene) -> None:
    """The sink of `write_once`: a folder for each batch."""
    expected = _Expected("subscribers")
    numbers: list[int] = []
    for folder in (scene.folder / "delivered").glob("batch=*"):
        batch = int(folder.name.partition("=")[2])
        version = scene.pins["delivered"][batch]
        pairs = [(row["id"], row["subscriber"]) for row in _rows(folder)]
        dead = [row["id"] for row in _rows(scene.folder / "dead" / folder.name)]
        documents = {number for number, _ in pairs}
        wanted = [(number, name) for number in documents for name in expected.of(version, number) or []]
        assert Counter(pairs) == Counter(wanted), f"batch {batch}, version {version}"
        assert all(number % 7 == 0 for number in dead)
        numbers += [*documents, *dead]
    _each_once(numbers, scene)
    left = [entry.name for name in ("delivered", "dead") for entry in (scene.folder / name).glob("_batch-*")]
    assert not left, "a batch that is through leaves nothing of its attempts"


def _each_once(numbers: list[int], scene: Scene) -> None:
    counts = Counter(numbers)
    assert sorted(counts) == list(range(scene.documents)), "documents were lost"
    assert set(counts.values()) == {1}, "documents came twice"


def _rows(folder: Path) -> list[dict[str, Any]]:
    return [row for file in folder.glob("*.parquet") for row in pq.ParquetFile(file).read().to_pylist()]


def _logged(log: Path) -> dict[str, int]:
    """The files of a file sink and the batch that each was committed with."""
    batches = sorted((int(entry.name.partition(".")[0]), entry) for entry in log.iterdir() if entry.name[0].isdigit())
    files: dict[str, int] = {}
    for batch, entry in batches:
        for line in entry.read_text().splitlines()[1:]:
            files.setdefault(Path(json.loads(line)["path"]).name, batch)
    return files


class _Expected:
    """The result of one process without Spark."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._known: dict[tuple[int, int], list[object] | None] = {}
        self._matchers: dict[int, Matcher] = {}

    def of(self, version: int, number: int) -> list[object] | None:
        key = version, number % 35  # documents repeat
        if key not in self._known:
            self._known[key] = self._match(version, number)
        return self._known[key]

    def _match(self, version: int, number: int) -> list[object] | None:
        if number % 7 == 0:
            return None
        if version not in self._matchers:
            self._matchers[version] = matcher_of(version)
        matches = self._matchers[version].match(document(number))
        found = list(matches.ids.tolist() if self._what == "ids" else matches.subscribers)
        assert (VERSION + version if self._what == "ids" else f"version-{version}") in found
        return found
