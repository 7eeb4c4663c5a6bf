"""What the demo is about: made-up news, who wants what of it, and those who come later.

News are Parquet files, taken one a micro-batch. Some documents are damaged on purpose: a pipeline must live with them.
Subscriptions are paths that few documents have: candidates are tried on a sample of other news, and those are drawn
that match none of it, together with a few that match some. With 100,000 of them some 20 subscribers get a document.
"""

import csv
import os
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from random import Random

from pathcast.matching import Subscriptions

# One document in so many is cut short, the first of them early, so that a small demo has one too.
DAMAGED_EVERY, FIRST_DAMAGED = 250, 10
NEWCOMERS = 10
# Subscriptions that match a few of the sample's documents each, so that a small demo delivers something too.
_LIVELY = 100
_SAMPLE = 1_000
_MOST = 0.05


def write_news(folder: Path, count: int, files: int, seed: int, advance: Callable[[int], object]) -> None:
    """Write news to Parquet files, the first the oldest: a stream takes the oldest first."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from pathcast.workloads import generate_documents, news_schema

    folder.mkdir()
    made = damage(generate_documents(news_schema(), count, seed=seed, text="words"))
    for number in range(files):
        first, last = count * number // files, count * (number + 1) // files
        columns = [pa.array(range(first + 1, last + 1), pa.int64()), pa.array(islice(made, last - first), pa.binary())]
        file = folder / f"news-{number + 1:03}.parquet"
        pq.write_table(pa.table(columns, names=["document", "xml"]), file, compression="zstd")
        os.utime(file, (1_000_000_000 + number, 1_000_000_000 + number))
        advance(last - first)


def damage(documents: Iterator[bytes]) -> Iterator[bytes]:
    """Cut one document in `DAMAGED_EVERY` short, as a broken connection would."""
    for number, xml in enumerate(documents, 1):
        yield xml[: len(xml) // 2] if number % DAMAGED_EVERY == FIRST_DAMAGED else xml


def write_subscriptions(
    subscriptions: Path, newcomers: Path, count: int, subscribers: int, documents: int, seed: int
) -> None:
    """Write the subscriptions of the beginning, and a twentieth as many of subscribers who come later."""
    from pathcast.workloads import assign_subscribers

    later = max(count // 20, NEWCOMERS)
    rare, lively = _paths(count, documents, seed)
    draw = Random(f"pathcast/demo/{seed}")
    xpaths = [draw.choice(rare) for _ in range(count + later)]
    for start, size in ((0, count), (count, later)):
        for place in draw.sample(range(size), min(_LIVELY, size // 2)):
            xpaths[start + place] = draw.choice(lively)
    names = assign_subscribers(count, readers=subscribers, seed=seed)
    names += [f"newcomer-{1 + number % NEWCOMERS:02}" for number in range(later)]
    _write(subscriptions, range(1, count + 1), xpaths[:count], names[:count])
    _write(newcomers, range(count + 1, count + later + 1), xpaths[count:], names[count:])


def _paths(count: int, documents: int, seed: int) -> tuple[list[str], list[str]]:
    """Paths that match no document of a sample, and paths that match a few; the sample is not among the documents."""
    import numpy as np

    from pathcast.workloads import generate_documents, generate_subscriptions, news_schema

    schema = news_schema()
    size = max(2_000, count * 6 // 5)
    paths = generate_subscriptions(
        schema, size, seed=seed, min_depth=6, max_depth=10, wildcard=0.1, descendant=0.1, distinct=True
    )
    matcher = Subscriptions()
    matcher.add_many(paths)
    sample = generate_documents(schema, _SAMPLE, seed=seed, text="words", start=documents)
    found = np.zeros(size + 1, dtype=np.int64)
    for matches in matcher.compile().match_many(sample, errors="return"):
        found[matches.ids] += 1  # type: ignore[union-attr]
    few = (found > 0) & (found <= _MOST * _SAMPLE)
    return [paths[id - 1] for id in np.flatnonzero(found[1:] == 0) + 1], [paths[id - 1] for id in np.flatnonzero(few)]


def _write(file: Path, ids: Sequence[int], xpaths: Sequence[str], names: Sequence[str]) -> None:
    with file.open("w", newline="", encoding="utf-8") as target:
        writer = csv.writer(target)
        writer.writerow(["id", "xpath", "subscriber"])
        writer.writerows(zip(ids, xpaths, names, strict=True))


def add_newcomers(subscriptions: Subscriptions, file: Path) -> None:
    """Add the subscriptions of those who come later, as they stand in their file."""
    with file.open(newline="", encoding="utf-8") as source:
        rows = list(csv.DictReader(source))
    subscriptions.add_many(
        [row["xpath"] for row in rows], [row["subscriber"] for row in rows], [int(row["id"]) for row in rows]
    )
