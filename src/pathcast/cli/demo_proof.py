"""The demo's proof: what a single process says must be there, against what the stream has written.

Which files a micro-batch read stands in Spark's own log (`checkpoint/sources`), which version of the index it used in
its report. With these, a matcher in this process tells who must get each document; the deliveries are read with Arrow.
So neither Spark nor the pipeline is asked whether it did well.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pathcast.errors import PathcastError
from pathcast.matching import open_index


@dataclass(frozen=True)
class Line:
    """One line of the closing table."""

    what: str
    expected: int
    found: int
    lost: int
    twice: int
    wrong: int

    @property
    def right(self) -> bool:
        return not (self.lost or self.twice or self.wrong)


def prove(folder: Path, versions: dict[int, int]) -> Iterator[Line]:
    """Compare, for documents, deliveries of each version, newcomers and dead letters; `versions` is batch → version."""
    files = batches_of_files(folder / "checkpoint")
    documents: Counter[int] = Counter()
    dead: Counter[int] = Counter()
    expected: dict[int, Counter[tuple[int, str]]] = {}
    for version in sorted(set(versions.values())):
        matcher = open_index(folder / "index" / "versions" / f"{version:08}")
        mine = expected[version] = Counter()
        for file in sorted(file for file, batch in files.items() if versions.get(batch) == version):
            numbers, news = _columns(folder / "documents" / file, "document", "xml")
            documents.update(numbers)
            for number, answer in zip(numbers, matcher.match_many(news, errors="return"), strict=True):
                if isinstance(answer, PathcastError):
                    dead[number] += 1
                else:
                    mine.update((number, name) for name in answer.subscribers)
    yield _compare("documents", _all_documents(folder), documents)
    found = _deliveries(folder, versions)
    for version, pairs in expected.items():
        yield _compare(f"deliveries, index version {version}", pairs, found[version])
    later = [
        Counter({pair: times for pairs in every.values() for pair, times in pairs.items() if pair[1].startswith("new")})
        for every in (expected, found)
    ]
    yield _compare("… of these to newcomers", *later)
    yield _compare("dead letters", dead, Counter(_columns(folder / "dead-letters", "document")[0]))


def batches_of_files(checkpoint: Path) -> dict[str, int]:
    """The micro-batch that read each file of the source, by Spark's log."""
    entries = {}
    for log in (checkpoint / "sources" / "0").iterdir():
        if re.fullmatch(r"\d+(\.compact)?", log.name):
            for line in log.read_text(encoding="utf-8").splitlines()[1:]:
                entry = json.loads(line)
                entries[Path(entry["path"]).name] = int(entry["batchId"])
    return entries


def _all_documents(folder: Path) -> "Counter[int]":
    return Counter(_columns(folder / "documents", "document")[0])


def _deliveries(folder: Path, versions: dict[int, int]) -> dict[int, "Counter[tuple[int, str]]"]:
    found: dict[int, Counter[tuple[int, str]]] = {version: Counter() for version in versions.values()}
    numbers, names, batches = _columns(folder / "deliveries", "document", "subscriber", "batch")
    for number, name, batch in zip(numbers, names, batches, strict=True):
        found[versions[batch]][number, name] += 1
    return found


def _compare(what: str, expected: "Counter[Any]", found: "Counter[Any]") -> Line:
    lost = sum(one not in found for one in expected)
    wrong = sum(one not in expected for one in found)
    twice = sum(times - 1 for times in found.values())
    return Line(what, sum(expected.values()), sum(found.values()), lost, twice, wrong)


def _columns(place: Path, *names: str) -> list[list[Any]]:
    import pyarrow.dataset as ds

    if not place.exists():  # nothing was written
        return [[] for _ in names]
    table = ds.dataset(place, format="parquet", partitioning="hive").to_table(columns=list(names))
    return [table[name].to_pylist() for name in names]
