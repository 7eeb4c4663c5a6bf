"""Files of subscriptions, written: what `Subscriptions.read` reads, chosen by the name's ending.

A file is written under another name beside its place and moved there when it is complete. Compressed files hold no
time and no name, so that the same subscriptions are the same bytes.
"""

import csv
import gzip
import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from pathcast.extras import extra

ENDINGS = (".txt", ".csv", ".parquet", ".txt.gz", ".csv.gz")

Writer = Callable[[Sequence[str], Sequence[str] | None], None]


class UnknownFormatError(Exception):
    """The name of a file says nothing about its format, or the format cannot hold what is wanted."""


def writer_for(path: Path, *, with_subscribers: bool) -> Writer:
    """What writes expressions and their subscribers into that file."""
    ending = next((ending for ending in ENDINGS if path.name.lower().endswith(ending)), None)
    if ending is None:
        raise UnknownFormatError(f"{path.name}: a file of subscriptions ends in {', '.join(ENDINGS)}")
    if ending.startswith(".txt") and with_subscribers:
        raise UnknownFormatError(f"{path.name}: a text file holds no subscribers; use .csv or .parquet")
    write = _write_parquet if ending == ".parquet" else _write_csv if ending.startswith(".csv") else _write_text

    def write_complete(expressions: Sequence[str], subscribers: Sequence[str] | None) -> None:
        partial = path.with_name(f".{path.name}.partial")
        try:
            with partial.open("wb") as file, _compressed(file, ending.endswith(".gz")) as target:
                write(target, expressions, subscribers)
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)

    return write_complete


@contextmanager
def _compressed(file: IO[bytes], wanted: bool) -> Iterator[IO[bytes]]:
    if not wanted:
        yield file
        return
    with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as target:
        yield cast(IO[bytes], target)


def _write_text(file: IO[bytes], expressions: Sequence[str], _: Sequence[str] | None) -> None:
    for expression in expressions:
        file.write(expression.encode() + b"\n")


def _write_csv(file: IO[bytes], expressions: Sequence[str], subscribers: Sequence[str] | None) -> None:
    text = io.TextIOWrapper(file, encoding="utf-8", newline="")
    rows = csv.writer(text, lineterminator="\n")
    if subscribers is None:
        rows.writerow(("id", "xpath"))
        rows.writerows(enumerate(expressions, 1))
    else:
        rows.writerow(("id", "xpath", "subscriber"))
        numbered = zip(range(1, len(expressions) + 1), expressions, subscribers, strict=True)
        rows.writerows(numbered)
    text.flush()
    text.detach()


def _write_parquet(file: IO[bytes], expressions: Sequence[str], subscribers: Sequence[str] | None) -> None:
    with extra("parquet"):
        import pyarrow
        from pyarrow import parquet

    columns = {
        "id": pyarrow.array(range(1, len(expressions) + 1), pyarrow.int32()),
        "xpath": pyarrow.array(expressions, pyarrow.string()),
    }
    if subscribers is not None:
        columns["subscriber"] = pyarrow.array(subscribers, pyarrow.string())
    parquet.write_table(pyarrow.table(columns), file)
