"""Publication: the records of results in the repository, and the pages generated from them.

    docs/results/records/PAGE.json    one record per experiment and scale, one line each, with the points of its chart
    docs/results/plots/NAME.svg       the chart of each experiment
    docs/results/PAGE.md, index.md    the pages

`publish` copies results from the archive to the records; their claims are judged again from the rows, by the current
judges. `write_pages` generates pages and plots from the records alone.

Invariant: pages are a function of the records. Whether a figure is stale is therefore a field of its record, which
`refresh` sets by comparing hashes of sources. `refresh` also takes the sources and reasons of claims from the code,
because these explain a figure and are not part of it.
"""

import dataclasses
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from ..experiment_registry import Experiment, experiments
from ..experiment_result import JudgedClaim, Published, Record, Result
from ..result_archive import ArchiveError
from ..source_version import source_hash
from .chart_data import Chart
from .chart_drawing import draw_svg
from .markdown_report import render, shown_scales
from .plot_declarations import chart_of
from .result_page_definitions import page_of

RECORDS, PLOTS = "records", "plots"


def publish(found: Iterable[tuple[Experiment, Sequence[Result]]], folder: Path) -> None:
    """Add results to the records, then write pages and plots."""
    fresh = {result.key: published(experiment, result) for experiment, results in found for result in results}
    records = {record.key: record for record in load_records(folder)} | fresh
    write(records.values(), folder)


def published(experiment: Experiment, result: Result) -> Published:
    """The published record of a result: its claims as judged now, and the chart of the first plot."""
    claims = tuple(judged_claims(experiment, result))
    chart = chart_of(experiment.plots[0], result.rows) if experiment.plots else None
    texts = {"title": experiment.title, "method": experiment.method}
    return Published.from_record({**result.to_record(), **texts, "claims": []}, claims=claims, chart=chart)


def judged_claims(experiment: Experiment, result: Result) -> Iterable[JudgedClaim]:
    """The experiment's claims, judged on the rows."""
    for claim in experiment.claims:
        found = claim.judge_rows(result.rows)
        reason = claim.reason_on(result.rows)
        yield JudgedClaim(claim.statement, claim.source, found.verdict, found.measured, claim.expected, reason)


def refresh(records: Iterable[Published], hash_of: Callable[[str], str | None] = source_hash) -> list[Published]:
    """The records with the reasons that the code gives, each with whether the sources that it exercises changed.

    A reason that was made from measurements stays as it is.
    """
    known = experiments()
    modules = {one.name: one.measure.__module__ for one in known}
    texts = {(one.name, claim.statement): (claim.source, claim.reason) for one in known for claim in one.claims}
    found: list[Published] = []
    for record in records:
        changed = None
        if record.sources is not None:
            module = modules.get(record.experiment)
            changed = module is None or hash_of(module) != record.sources
        claims = []
        for claim in record.claims:
            source, reason = texts.get((record.experiment, claim.statement), (claim.source, claim.reason))
            reason = reason if isinstance(reason, str) else claim.reason
            claims.append(dataclasses.replace(claim, source=source, reason=reason))
        found.append(dataclasses.replace(record, changed=changed, claims=tuple(claims)))
    return found


def write(records: Iterable[Published], folder: Path) -> None:
    """Write records, pages and plots."""
    current = refresh(records)
    by_page: dict[str, list[Published]] = {}
    for record in sorted(current, key=lambda one: one.key):
        by_page.setdefault(page_of(record.experiment).name, []).append(record)
    (folder / RECORDS).mkdir(parents=True, exist_ok=True)
    for page, those in by_page.items():
        lines = ",\n".join(json.dumps(_to_record(record), ensure_ascii=False) for record in those)
        (folder / RECORDS / f"{page}.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    write_pages(current, folder)


def write_pages(records: Sequence[Published], folder: Path) -> None:
    """Write pages and plots."""
    (folder / PLOTS).mkdir(parents=True, exist_ok=True)
    for name, text in render(records).items():
        (folder / name).write_text(text, encoding="utf-8")
    for record in shown_scales(records):
        if record.chart is not None:
            draw_svg(record.chart, record.footer, folder / PLOTS / f"{record.experiment}.svg")


def load_records(folder: Path) -> list[Published]:
    """All published records."""
    found: list[Published] = []
    for file in sorted((folder / RECORDS).glob("*.json")):
        try:
            found += map(_from_record, json.loads(file.read_text(encoding="utf-8")))
        except (ValueError, TypeError, KeyError) as fault:
            raise ArchiveError(f"cannot read the records in {file}: {fault}; restore the file with git") from fault
    return found


def _to_record(record: Published) -> dict[str, Any]:
    chart = record.chart.to_record() if record.chart is not None else None
    return {**record.to_record(), "changed": record.changed, "chart": chart}


def _from_record(record: dict[str, Any]) -> Published:
    chart = Chart.from_record(record["chart"]) if record["chart"] is not None else None
    fields = {field.name for field in dataclasses.fields(Record)}
    plain = {name: value for name, value in record.items() if name in fields}
    return Published.from_record(plain, changed=record["changed"], chart=chart)
