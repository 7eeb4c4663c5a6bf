"""The archive: results as files that outlive their run.

`publish` writes `results/<experiment>/<scale>/` (rows as Parquet and CSV, plots as PNG and SVG, everything else in
`record.json`) and `results.md`, the report of all results of the folder. Each scale has a place of its own, so a quick
run does not cost the figures of a long one.

Invariant: a result is whole or absent. The new files and the new report are ready before the former result gives way,
by renaming; a failure or Ctrl-C before that leaves everything as it was, and no trace of the attempt.
"""

import json
import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from pathcast.errors import PathcastError

from .experiment_result import Result
from .markdown_report import render
from .result_plots import Plot, draw
from .result_rows import Rows

REPORT, RESULTS, RECORD = "results.md", "results", "record.json"


class ArchiveError(PathcastError):
    """A result on disk is not one that this Pathcast wrote, or is damaged."""


def publish(result: Result, plots: Sequence[Plot], output: Path) -> Path:
    """Write a result and renew the report; gives the folder of the result."""
    home = output / RESULTS / result.experiment
    final = home / result.scale
    partial = home / f".{result.scale}.new.{os.getpid()}"
    others = [other for other in load_all(output) if other.key != result.key]
    report = output / f".{REPORT}.new.{os.getpid()}"
    partial.mkdir(parents=True)
    try:
        _write(result, plots, partial)
        report.write_text(render([*others, result]), encoding="utf-8")
        _replace(final, partial)
        report.replace(output / REPORT)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        report.unlink(missing_ok=True)
        for folder in (home, home.parent, output):
            with suppress(OSError):  # not empty: it holds results
                folder.rmdir()
    return final


def load_all(output: Path) -> list[Result]:
    """Every result in the folder, by experiment and scale."""
    records = sorted((output / RESULTS).glob(f"*/[!.]*/{RECORD}"))
    return [load(record.parent) for record in records]


def load(folder: Path) -> Result:
    """The result in `results/<experiment>/<scale>/`."""
    from pyarrow import parquet

    try:
        record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
        return Result.from_record(record, Rows(parquet.read_table(folder / "rows.parquet").to_pylist()))
    except (OSError, ValueError, TypeError, KeyError) as fault:
        raise ArchiveError(
            f"the result in {folder} cannot be read: {fault} (remove the folder, and it is gone)"
        ) from fault


def _write(result: Result, plots: Sequence[Plot], folder: Path) -> None:
    import pyarrow
    from pyarrow import csv, parquet

    columns = {name: [row.get(name) for row in result.rows] for name in result.rows.columns}
    table = pyarrow.table(columns)
    parquet.write_table(table, folder / "rows.parquet")
    csv.write_csv(table, folder / "rows.csv")
    for plot in plots:
        draw(plot, result.rows, result.footer, folder)
    record = json.dumps(result.to_record(), indent=1, ensure_ascii=False)
    (folder / RECORD).write_text(record + "\n", encoding="utf-8")


def _replace(former: Path, new: Path) -> None:
    """Put the new folder in the place of the former one, or leave the former one there."""
    aside = former.with_name(f".{former.name}.old.{os.getpid()}")
    if former.exists():
        former.rename(aside)
    try:
        new.rename(former)
    except BaseException:
        if aside.exists() and not former.exists():
            aside.rename(former)
        raise
    shutil.rmtree(aside, ignore_errors=True)
