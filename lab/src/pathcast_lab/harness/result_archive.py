"""The archive: results as files that outlive their run, outside the repository.

`store` writes `<output>/<experiment>/<scale>/`: rows as Parquet, CSV and a Markdown table, plots as PNG and SVG, and
everything else in `record.json`. Each scale has its own folder, so a quick run does not replace the figures of a long
one. `pathcast experiment report` publishes from here (`published_records.py`).

Invariant: a result is complete or absent. The new files are complete before a rename replaces the earlier result; a
failure or Ctrl-C before that changes nothing and leaves no files behind.
"""

import json
import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from pathcast.errors import PathcastError

from .experiment_result import Result
from .publishing.chart_drawing import draw_png, draw_svg
from .publishing.markdown_report import table
from .publishing.plot_declarations import Plot, chart_of
from .result_rows import Rows

RECORD = "record.json"


class ArchiveError(PathcastError):
    """A result on disk is not one that this version of Pathcast wrote, or is damaged."""


def store(result: Result, plots: Sequence[Plot], output: Path) -> Path:
    """Write a result; return its folder."""
    home = output / result.experiment
    final = home / result.scale
    partial = home / f".{result.scale}.new.{os.getpid()}"
    partial.mkdir(parents=True)
    try:
        _write(result, plots, partial)
        _replace(final, partial)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        for folder in (home, output):
            with suppress(OSError):  # not empty: it holds results
                folder.rmdir()
    return final


def load_all(output: Path, experiment: str = "*") -> list[Result]:
    """Every result in the folder, or those of one experiment, by experiment and scale."""
    records = sorted(output.glob(f"{experiment}/[!.]*/{RECORD}"))
    return [load(record.parent) for record in records]


def load(folder: Path) -> Result:
    """The result in `<output>/<experiment>/<scale>/`."""
    from pyarrow import parquet

    try:
        record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
        return Result.from_record(record, rows=Rows(parquet.read_table(folder / "rows.parquet").to_pylist()))
    except (OSError, ValueError, TypeError, KeyError) as fault:
        raise ArchiveError(
            f"cannot read the result in {folder}: {fault}; remove the folder, then run the experiment again"
        ) from fault


def _write(result: Result, plots: Sequence[Plot], folder: Path) -> None:
    import pyarrow
    from pyarrow import csv, parquet

    columns = {name: [row.get(name) for row in result.rows] for name in result.rows.columns}
    rows = pyarrow.table(columns)
    parquet.write_table(rows, folder / "rows.parquet")
    csv.write_csv(rows, folder / "rows.csv")
    show = result.show or {column: column for column in result.rows.columns}
    text = table(list(show.values()), [[row.get(column) for column in show] for row in result.rows])
    (folder / "rows.md").write_text(f"# {result.title}\n\n{text}", encoding="utf-8")
    for plot in plots:
        chart = chart_of(plot, result.rows)
        draw_png(chart, result.footer, folder / f"{plot.name}.png")
        draw_svg(chart, result.footer, folder / f"{plot.name}.svg")
    record = json.dumps({**result.to_record(), "show": result.show}, indent=1, ensure_ascii=False)
    (folder / RECORD).write_text(record + "\n", encoding="utf-8")


def _replace(former: Path, new: Path) -> None:
    """Replace the earlier folder with the new one, or keep the earlier one."""
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
