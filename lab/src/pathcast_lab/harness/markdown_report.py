"""The report: results as one Markdown page, a section per experiment in the order of names.

A pure function of the results: the same ones give the same page. Within a section the paper's scale comes first.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby

from .claims import Verdict
from .experiment_registry import SCALES
from .experiment_result import Result
from .result_rows import Value

LONGEST_TABLE = 60

HEAD = """\
# Results

Measured and written by `pathcast experiment run`; whatever is typed here is lost with the next run. Every experiment
checks the answers of all rivals before it takes a time. Rivals run in alternation, in one process; figures are medians,
with the interval that holds the median with 95 % probability where a range is given.
"""


def render(results: Iterable[Result]) -> str:
    """The whole page."""
    ordered = sorted(results, key=lambda result: (result.experiment, -_rank(result.scale), result.scale))
    parts = [HEAD, _summary(ordered)]
    for _, group in groupby(ordered, key=lambda result: result.experiment):
        parts.extend(_section(list(group)))
    return "\n".join(parts)


def _rank(scale: str) -> int:
    return SCALES.index(scale) if scale in SCALES else -1


def _summary(results: Sequence[Result]) -> str:
    verdicts = list(Verdict)
    rows: list[list[Value]] = []
    for result in results:
        counts = Counter(claim.verdict for claim in result.claims)
        link = f"[{result.experiment}](#{_anchor(result.experiment)})"
        rows.append([link, result.scale, *(counts[verdict] for verdict in verdicts), result.date[:10]])
    return table(["experiment", "scale", *verdicts, "date"], rows)


def _section(results: Sequence[Result]) -> list[str]:
    first = results[0]
    parts = [f"## {first.experiment}\n", f"**{first.title}.** {first.method}\n"]
    for result in results:
        parts.extend(_scale(result))
    return parts


def _scale(result: Result) -> list[str]:
    folder = f"results/{result.experiment}/{result.scale}"
    parts = [f"### {result.experiment}, scale {result.scale}\n"]
    if result.claims:
        claims = [[claim.statement, claim.source, claim.measured, f"**{claim.verdict}**"] for claim in result.claims]
        parts.append(table(["claim", "source", "measured", "verdict"], claims))
    parts.extend(f"![{title}]({folder}/{name}.png)\n" for name, title in result.plots.items())
    parts.append(_rows(result))
    files = ["rows.csv", "rows.parquet", *(f"{plot}.svg" for plot in result.plots)]
    parts.append(f"Files: {', '.join(f'[{file}]({folder}/{file})' for file in files)}.\n")
    if result.notes:
        parts.append("\n".join(f"- {note}" for note in result.notes) + "\n")
    parts.append(_provenance(result))
    return parts


def _rows(result: Result) -> str:
    show = result.show or {column: column for column in result.rows.columns}
    shown = result.rows[:LONGEST_TABLE]
    text = table(list(show.values()), [[row.get(column) for column in show] for row in shown])
    left = len(result.rows) - len(shown)
    return text + (f"\n… and {left:,} more rows in the files.\n" if left else "")


def _provenance(result: Result) -> str:
    command = f"pathcast experiment run {result.experiment} --scale {result.scale} --seed {result.seed}"
    command += "".join(f" --set {change}" for change in result.changes)
    checks = "; ".join(f"{statement} ({count} times)" for statement, count in result.checks.items())
    lines = {
        "checked": checks,
        "parameters": ", ".join(f"{name} = {value}" for name, value in result.parameters.items()),
        "seed": str(result.seed),
        "measured": f"{result.date}, in {result.seconds:.0f} s",
        **result.machine,
        "again": f"`{command}`",
    }
    return table(["", ""], [[name, text] for name, text in lines.items()])


def table(head: Sequence[str], rows: Sequence[Sequence[Value]]) -> str:
    """A Markdown table; columns that hold numbers only are set to the right."""
    columns = range(len(head))
    numeric = [bool(rows) and all(_is_number(row[column]) for row in rows) for column in columns]
    rule = ["---:" if numeric[column] else "---" for column in columns]
    lines = [[_cell(name) for name in head], rule, *([cell(value) for value in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def cell(value: Value) -> str:
    """A value as a table shows it: four significant digits, thousands apart, nothing for nothing."""
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


def _anchor(name: str) -> str:
    return name.lower().replace(" ", "-")
