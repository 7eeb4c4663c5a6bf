"""Write files of subscriptions, in the formats that `Subscriptions.read` reads; the file's suffix chooses the format.

A file is written under a temporary name in the same folder and renamed when it is complete. Compressed files contain
neither time nor name, so that the same subscriptions give the same bytes.
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
    """The suffix of a file is unknown, or the format has no place for subscribers."""


def writer_for(path: Path, *, with_subscribers: bool) -> Writer:
    """A function that writes expressions and their subscribers to the file."""
    ending = next((ending for ending in ENDINGS if path.name.lower().endswith(ending)), None)
    if ending is None:
        raise UnknownFormatError(f"cannot write {path.name}: unknown suffix; use one of {', '.join(ENDINGS)}")
    if ending.startswith(".txt") and with_subscribers:
        raise UnknownFormatError(f"cannot write {path.name}: a text file cannot hold subscribers; use .csv or .parquet")
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
