"""YFilter 1.0 as its authors published it: its Java classes, run by their own main program.

`edu.berkeley.cs.db.yfilter.filter.EXfilter DOCUMENTS QUERIES` reads a folder of documents in the order of their names
and a file with one query per line, and writes two files to its working directory:

    result.txt        per document `FILE: 3 17 …`, the matched queries, counted from 1
    performance.txt   under `-- … cost --`, a line with the milliseconds of each document: parsing, then filtering

The documents are written several times in a row, so that Java has compiled its code before the last pass, whose
milliseconds count. A document takes whole milliseconds on its clock; the error of a sum over a pass is far smaller.

Java is that of JAVA_HOME, or else on the path; JAVA_TOOL_OPTIONS can give it more memory.
"""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from pathcast_lab.harness import RivalError

MAIN = "edu.berkeley.cs.db.yfilter.filter.EXfilter"
_COST = re.compile(r"^-- (?:parsing|filtering|parsing \+ filtering) cost --\n([\d\s]+)$", re.MULTILINE)
_RESULT = re.compile(r"^.*?(\d+)\.xml: *([\d ]*)$", re.MULTILINE)


class YFilterRun(NamedTuple):
    """The matched queries of each document, from 1, and the seconds for reading and filtering all documents once."""

    matches: list[list[int]]
    seconds: float


def run_yfilter(classes: Path, xpaths: Sequence[str], documents: Sequence[bytes], *, passes: int = 5) -> YFilterRun:
    """Run YFilter's main program, whose classes are below the folder `classes` (or in that JAR file)."""
    if not classes.exists():
        raise RivalError(f"rival 'yfilter': {classes} does not exist; give a folder of classes with --rival yfilter=…")
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        (work / "documents").mkdir()
        for number in range(passes * len(documents)):
            (work / "documents" / f"{number:09}.xml").write_bytes(documents[number % len(documents)])
        (work / "queries.txt").write_text("".join(f"{xpath}\n" for xpath in xpaths), encoding="utf-8")
        _start(classes.resolve(), work)
        return _read_run(work, len(documents), passes)


def _start(classes: Path, work: Path) -> None:
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=str(Path(home) / "bin") if home else None)
    if java is None:
        raise RivalError("rival 'yfilter' needs Java; set JAVA_HOME, or put java on the path")
    command = [java, "-cp", str(classes), MAIN, "documents", "queries.txt", "--result=BOOLEAN"]
    done = subprocess.run(command, cwd=work, capture_output=True, encoding="utf-8", errors="replace", check=False)
    if done.returncode:
        wrote = " ".join(done.stderr.split())[-400:]
        raise RivalError(f"rival 'yfilter' ended with status {done.returncode}; it wrote: {wrote}")


def _read_run(work: Path, documents: int, passes: int) -> YFilterRun:
    results, costs = (_text(work / name) for name in ("result.txt", "performance.txt"))
    matches = {int(number): [int(word) for word in words.split()] for number, words in _RESULT.findall(results)}
    last = range((passes - 1) * documents, passes * documents)
    if missing := [number for number in range(passes * documents) if number not in matches]:
        raise RivalError(f"rival 'yfilter' has no result for document {missing[0] % documents + 1} in result.txt")
    for number, found in matches.items():
        if found != matches[last[number % documents]]:
            raise RivalError(f"rival 'yfilter' finds something else for document {number % documents + 1} each time")
    milliseconds = [[int(word) for word in line.split()] for line in _COST.findall(costs)]
    if not milliseconds or any(len(line) != passes * documents for line in milliseconds):
        raise RivalError("rival 'yfilter' has not a time for each document in performance.txt")
    return YFilterRun([matches[number] for number in last], sum(sum(line[-documents:]) for line in milliseconds) / 1e3)


def _text(file: Path) -> str:
    if not file.is_file():
        raise RivalError(f"rival 'yfilter' has not written {file.name}; is it YFilter 1.0?")
    return file.read_text(encoding="utf-8", errors="replace")
