"""Build `.venv` with everything that the demo, the tests and the checks need, once.

    check → environment → packages → stamp

A stamp inside `.venv` holds a hash of the requirements (pyproject.toml of both packages, constraints.txt, the
interpreter), so a finished set-up costs one comparison, and one that was interrupted or is out of date continues from
there. Spark comes as a source package that takes 2.5 GB of temporary files to build, which many `/tmp` cannot
hold: they go to `.tmp` in the project. Standard library only.
"""

import fcntl
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import time
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

PROJECT = Path(__file__).resolve().parent.parent
EXTRAS = "all,dev"

# Measured: the project's folder reaches 3.6 GB while Spark is unpacked and packed (1.5 GB stay), and pip's cache,
# mostly on the same disk, takes another 0.9.
ROOM_NEEDED = 4_500_000_000
ROOM_TO_UPDATE = 1_000_000_000
# Spark's JVM (1 GB of heap by default), two Python workers and pip's unpacking.
MEMORY_NEEDED = 2_000_000_000


class SetupError(Exception):
    """The set-up cannot continue; the text explains why and what to do."""


def main(project: Path = PROJECT) -> int:
    """Bring `.venv` up to date; 0 when it is."""
    try:
        with one_at_a_time(project / ".tmp"):
            set_up(project)
    except SetupError as error:
        print(f"set-up: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("set-up: interrupted; run make again to continue", file=sys.stderr)
        return 130
    return 0


def set_up(project: Path) -> None:
    """Run the phases that are not done yet."""
    environment = project / ".venv"
    stamp = environment / "pathcast-setup"
    wanted = fingerprint(project)
    if stamp.is_file() and stamp.read_text(encoding="ascii") == wanted and works(environment):
        return
    stamp.unlink(missing_ok=True)
    check_room(project, environment)
    if not works(environment):
        with phase("environment: .venv"):
            create(environment)
    with phase("packages: Spark is the largest, a few minutes the first time"):
        install(project, environment)
    stamp.write_text(wanted, encoding="ascii")


def fingerprint(project: Path) -> str:
    """A hash of everything that determines the installation; the interpreter's folder is part of it."""
    digest = hashlib.sha256(f"{sys.version}\n{sys.base_prefix}\n{EXTRAS}\n{project}\n".encode())
    for name in ("pyproject.toml", "lab/pyproject.toml", "constraints.txt"):
        digest.update((project / name).read_bytes())
    return digest.hexdigest()


def works(environment: Path) -> bool:
    """Whether the environment has pip, and was created in this place by the running interpreter."""
    python = environment / "bin" / "python"
    question = "import pip, sys; print(sys.version, sys.base_prefix, sep='\\n')"
    try:
        answer = subprocess.run([python, "-c", question], capture_output=True, text=True, check=False)
        script = (environment / "bin" / "pip").read_text(encoding="utf-8")
    except OSError:
        return False
    here = str(environment / "bin") in script  # commands hold the path of their interpreter: a moved folder breaks them
    return here and answer.returncode == 0 and answer.stdout == f"{sys.version}\n{sys.base_prefix}\n"


def check_room(project: Path, environment: Path) -> None:
    """Report before starting what would fail half an hour later."""
    resources = load_resources(project)
    spark_is_there = any(environment.glob("lib/python*/site-packages/pyspark/jars"))
    needed = ROOM_TO_UPDATE if spark_is_there else ROOM_NEEDED
    free = resources.free_disk(project)
    if free < needed:
        raise SetupError(
            f"too little disk: {resources.gigabytes(free)} free at {project}, {resources.gigabytes(needed)} needed "
            "(1.5 GB stay, the rest is needed while Spark installs); free some space or clone to another disk"
        )
    memory = resources.memory()
    if 0 < memory < MEMORY_NEEDED:
        raise SetupError(
            f"too little memory: {resources.gigabytes(memory)}, {resources.gigabytes(MEMORY_NEEDED)} needed to run "
            "Spark; `pip install .` installs Pathcast without Spark"
        )


def load_resources(project: Path) -> ModuleType:
    """The package's own module on memory and disk, loaded from its file because nothing is installed yet."""
    spec = importlib.util.spec_from_file_location(
        "resources", project / "src" / "pathcast" / "cli" / "machine_resources.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def create(environment: Path) -> None:
    """Create a new environment, replacing an existing one."""
    if environment.exists():
        shutil.rmtree(environment)
    try:
        venv.create(environment, with_pip=True, symlinks=True)
    except (subprocess.CalledProcessError, OSError) as error:
        shutil.rmtree(environment, ignore_errors=True)
        raise SetupError(
            f"{sys.executable} could not create {environment}: {error}\n"
            "(Debian, Ubuntu: apt install python3-venv; or choose another: make PYTHON=/path/to/python3)"
        ) from error


def install(project: Path, environment: Path) -> None:
    """Let pip install the package with its extras and the laboratory, editable, at the pinned versions."""
    temporary = project / ".tmp" / "build"
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    log = project / ".tmp" / "install.log"
    pinned = "constraints.txt"  # relative: pip splits variables at spaces, which paths may have
    command = [str(environment / "bin" / "python"), "-m", "pip", "install", "--quiet", "--no-input"]
    # Modules are compiled on import; compiling all 7,000 files now takes longer than unpacking them.
    command += ["--no-compile"]
    command += ["--disable-pip-version-check", "--constraint", pinned]
    command += ["--editable", f".[{EXTRAS}]", "--editable", "lab"]
    surroundings = {key: value for key, value in os.environ.items() if key not in {"PYTHONPATH", "PYTHONHOME"}}
    # The pins hold for what packages are built with too: pip reads the first until 25.2, the second from then on.
    surroundings |= {"PIP_CONSTRAINT": pinned, "PIP_BUILD_CONSTRAINT": pinned}
    surroundings |= {"TMPDIR": str(temporary), "PIP_USER": "0", "PIP_REQUIRE_VIRTUALENV": "0"}
    with log.open("wb") as output:
        status = subprocess.run(
            command, cwd=project, env=surroundings, stdin=subprocess.DEVNULL, stdout=output, stderr=output, check=False
        ).returncode
    shutil.rmtree(temporary, ignore_errors=True)
    if status != 0:
        last = "\n".join("  " + line for line in log.read_text(errors="replace").splitlines()[-15:])
        raise SetupError(
            f"pip failed:\n{last}\nThe whole log: {log}. Is the package index reachable? Run make again to continue."
        )


@contextmanager
def phase(name: str) -> Iterator[None]:
    """Print the name of a phase and its duration."""
    start = time.monotonic()
    print(f"set-up: {name} … ", end="", flush=True)
    try:
        yield
    except BaseException:
        print("failed", flush=True)
        raise
    print(f"done in {time.monotonic() - start:.0f} s", flush=True)


@contextmanager
def one_at_a_time(folder: Path) -> Iterator[None]:
    """Hold the project's lock: a second set-up waits for the first and then finds its work done."""
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    sys.exit(main())
