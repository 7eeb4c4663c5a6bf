"""The report: published records as Markdown pages, one per paper, and an index of them.

A pure function: the same records give the same pages. A page has a section per experiment: first the
figures and tables of the paper, in the order of their numbers, then the others by name. Where an experiment has been
measured at both scales, the section shows a record with a code version rather than one without, and then the paper's
scale; verdicts of the other scale that differ appear beside it.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from ..claims import Verdict
from ..experiment_registry import SCALES
from ..experiment_result import JudgedClaim, Published
from ..result_rows import Value
from .result_page_definitions import OTHERS, PAGES, Page, page_of

NO_VERSION = "Measured before code versions were recorded."
MOST_NOTES = 6
NO_REASON = "Cause not determined."
OWN_SOURCES = ("target", "ours")  # "ours" is in records only
INDEX = """\
# Results

Each page sets claims, those of a paper or our own targets, beside our measurements. A claim is held only if it holds at
every measured point; it is not measurable where the rows cannot decide. Every experiment checks the answers of all
rivals before it measures, and rivals run in alternation in one process.
"""
REPEATING = """
`pathcast experiment run NAME` repeats an experiment and writes its rows to `results/`. `pathcast experiment report`
generates these pages from the records in `records/`; do not edit them.
"""


def render(published: Iterable[Published]) -> dict[str, str]:
    """All pages, by the name of their file."""
    figures = [_Figure(list(scales)) for _, scales in groupby(_ordered(published), key=lambda one: one.experiment)]
    by_page: dict[Page, list[_Figure]] = {page: [] for page in (*PAGES, OTHERS)}
    for figure in figures:
        by_page[page_of(figure.shown.experiment)].append(figure)
    pages = {page: found for page, found in by_page.items() if found}
    files = {f"{page.name}.md": _page(page, found) for page, found in pages.items()}
    return {"index.md": "\n".join([INDEX, _headlines(pages), _summary(pages)]) + REPEATING, **files}


class _Figure:
    """The records of one experiment."""

    def __init__(self, scales: Sequence[Published]) -> None:
        self.shown, *others = scales
        self.others = {(other.scale, claim.statement): claim.verdict for other in others for claim in other.claims}

    def differing(self, claim: JudgedClaim) -> list[str]:
        """The verdicts of other scales that are not the one shown."""
        return [
            f"scale {scale}: {verdict}"
            for (scale, statement), verdict in self.others.items()
            if statement == claim.statement and verdict != claim.verdict
        ]


def shown_scales(published: Iterable[Published]) -> list[Published]:
    """The record of each experiment that pages show: one with a code version if there is one, of the largest scale."""
    return [next(scales) for _, scales in groupby(_ordered(published), key=lambda one: one.experiment)]


def _ordered(published: Iterable[Published]) -> list[Published]:
    return sorted(
        published, key=lambda one: (_place(one.experiment), one.version is None, -_rank(one.scale), one.scale)
    )


def _place(experiment: str) -> tuple[object, ...]:
    """Figures and tables of a paper come first, by their numbers; then the others by name."""
    folder, _, rest = experiment.partition("-")
    found = re.match(r"(fig|table)(\d+)(.*)", rest)
    return (folder, 0, found[1], int(found[2]), found[3]) if found else (folder, 1, rest, 0, "")


def _rank(scale: str) -> int:
    return SCALES.index(scale) if scale in SCALES else -1


def _headlines(pages: Mapping[Page, Sequence[_Figure]]) -> str:
    """The comparisons of all pages, of figures with a code version."""
    lines = []
    for page, figures in pages.items():
        records = {figure.shown.experiment: figure.shown for figure in figures}
        for experiment, sentence in _comparisons(page, figures):
            record = records[experiment]
            if record.version is not None:
                version = f"version {record.version}{' (stale)' if record.changed else ''}"
                lines.append(f"- {sentence} [{page.title}]({page.name}.md), {version}.")
    return "\n".join([*lines, ""]) if lines else ""


def _comparisons(page: Page, figures: Sequence[_Figure]) -> Iterator[tuple[str, str]]:
    """The experiment and the sentence of each comparison that the charts of a page support."""
    shown = {figure.shown.experiment: figure.shown.chart for figure in figures}
    for comparison in page.comparisons:
        chart = shown.get(comparison.experiment)
        if chart is not None and (sentence := comparison.sentence(chart)):
            yield comparison.experiment, sentence


def _summary(pages: Mapping[Page, Sequence[_Figure]]) -> str:
    rows: list[list[Value]] = []
    for page, figures in pages.items():
        records = [figure.shown for figure in figures]
        verdicts = Counter(claim.verdict for record in records for claim in record.claims)
        rows.append(
            [
                f"[{page.title}]({page.name}.md)",
                *(verdicts[verdict] for verdict in Verdict),
                _range(sorted({record.date[:10] for record in records})),
                _versions(records),
                _state(records),
            ]
        )
    return table(["page", *Verdict, "measured", "code version", "state of the figures"], rows)


def _range(values: Sequence[str]) -> str:
    return values[0] if len(values) == 1 else f"{values[0]} to {values[-1]}"


def _versions(records: Sequence[Published]) -> str:
    """The versions, those of most figures first."""
    found = Counter(record.version for record in records if record.version is not None)
    shown = [f"{version} ({count})" for version, count in found.most_common()]
    return ", ".join(shown) or "not recorded"


def _state(records: Sequence[Published]) -> str:
    states = Counter(
        "without a code version" if record.changed is None else "stale" if record.changed else "current"
        for record in records
    )
    return ", ".join(f"{count} {state}" for state, count in sorted(states.items()))


def _page(page: Page, figures: Sequence[_Figure]) -> str:
    explained = f" [What the words mean]({page.explained})." if page.explained else ""
    parts = [f"# {page.title}\n", f"{page.text}{explained} [All results](index.md).\n"]
    parts.extend(f"**{sentence}**\n" for _, sentence in _comparisons(page, figures))
    methods: dict[str, str] = {}
    former = ""
    for figure in figures:
        title, method = figure.shown.title, figure.shown.method
        parts.append(f"## {title}\n")
        if method not in methods:
            parts.append(_line(method) + "\n")
        elif method != former:
            parts.append(f"Measured as “{methods[method]}”.\n")
        methods.setdefault(method, title)
        former = method
        parts.extend(_section(figure))
    parts.append("## Machines\n")
    parts.append(_machines([figure.shown for figure in figures]))
    return "\n".join(parts)


def _section(figure: _Figure) -> list[str]:
    record = figure.shown
    parts = [_provenance(record) + (f"\n{_notes(record.notes)}" if record.notes else "") + "\n"]
    if record.claims:
        parts.append(
            table(["claim", "expected", "measured", "held?", "why not"], [_claim(figure, one) for one in record.claims])
        )
    if record.chart is not None:
        parts.append(f"![{record.chart.title}](plots/{record.experiment}.svg)\n")
        if record.chart.sources:
            parts.append(f"Stars: the paper's own numbers ({'; '.join(record.chart.sources)}).\n")
    return parts


def _notes(notes: Sequence[str]) -> str:
    left = len(notes) - MOST_NOTES
    return f"Notes: {_line(' '.join(notes[:MOST_NOTES]))}" + (f" ({left} more in the record.)" if left > 0 else "")


def _claim(figure: _Figure, claim: JudgedClaim) -> list[Value]:
    source = _source(claim.source, figure.shown.title)
    expected = f"{claim.expected} ({source})" if claim.expected else source
    verdict = "; ".join([f"**{claim.verdict}**", *figure.differing(claim)])
    reason = (claim.reason or NO_REASON) if claim.verdict is Verdict.NOT_HELD else ""
    return [claim.statement, expected, claim.measured, verdict, reason]


def _source(source: str, title: str) -> str:
    """The source of a claim: a paper, with the figure or table of the experiment's title unless the claim names one."""
    if source in OWN_SOURCES:
        return "our target"
    figure = re.search(r"\b(Figure|Table) \d+(\([a-z]\))?", title)
    named = "Figure" in source or "Table" in source or "§" not in source
    return source if named or figure is None else f"{source}, {figure[0]}"


def _provenance(record: Published) -> str:
    command = f"pathcast experiment run {record.experiment} --scale {record.scale} --seed {record.seed}"
    command += "".join(f" --set {change}" for change in record.changes)
    text = f"Scale {record.scale}, {record.date[:10]}. {stale_note(record)}"
    return f"{text} Repeat with `{command}` (took {record.seconds:,.0f} s)."


def stale_note(record: Published) -> str:
    """Which code a figure was measured with, and whether that code is still the same."""
    if record.sources is None or record.version is None:
        return NO_VERSION
    if record.changed:
        return f"**Measured with version {record.version}; the code it exercises has changed since.**"
    return f"Measured with version {record.version} (sources {record.sources})."


def _machines(records: Sequence[Published]) -> str:
    found: dict[str, list[str]] = {}
    for record in records:
        parts = {name: f"{text} cores" if name == "cores" else text for name, text in record.machine.items()}
        parts.pop("load", None)
        found.setdefault(", ".join(parts.values()), []).append(record.experiment)
    names = {text: "all figures" if len(found) == 1 else ", ".join(names) for text, names in found.items()}
    return "\n".join(f"- {_line(text)}: {shown}" for text, shown in names.items()) + "\n"


def _line(text: str) -> str:
    return " ".join(text.split())


def table(head: Sequence[str], rows: Sequence[Sequence[Value]]) -> str:
    """A Markdown table; columns that hold numbers only are set to the right."""
    columns = range(len(head))
    numeric = [bool(rows) and all(_is_number(row[column]) for row in rows) for column in columns]
    rule = ["---:" if numeric[column] else "---" for column in columns]
    lines = [[_cell(name) for name in head], rule, *([cell(value) for value in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def cell(value: Value) -> str:
    """A value as a table shows it: four significant digits, thousands separated, empty for None."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return _cell(value)


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


def _is_number(value: Value) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))
