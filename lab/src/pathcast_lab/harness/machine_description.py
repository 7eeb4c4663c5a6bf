"""The machine that a result was measured on: what readers need to judge figures, nothing that identifies it."""

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from pyexpat import EXPAT_VERSION

LIBRARIES = ("numpy", "numba", "pyarrow", "lxml", "pyspark", "pyroaring", "zstandard")


def machine() -> dict[str, str]:
    """The properties of the machine and their values, in the order of the report."""
    return {
        "processor": _processor(),
        "cores": _cores(),
        "memory": _memory(),
        "load": f"{load():.1f} when the run began",
        "system": _system(),
        "Python": f"{platform.python_implementation()} {platform.python_version()}",
        "libraries": ", ".join(f"{name} {number}" for name, number in _libraries().items()),
    }


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        for line in cpuinfo.read_text(errors="replace").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name" and value.strip():
                return f"{value.strip()} ({platform.machine()})"
    if platform.system() == "Darwin":
        command = ["sysctl", "-n", "machdep.cpu.brand_string"]
        asked = subprocess.run(command, capture_output=True, text=True, check=False)
        if asked.stdout.strip():
            return asked.stdout.strip()
    return platform.processor() or platform.machine() or "unknown"


def _cores() -> str:
    present = os.cpu_count() or 1
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else present
    return str(present) if usable == present else f"{usable} of {present}"


def _memory() -> str:
    try:
        size = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return "unknown"
    return f"{size / 2**30:.0f} GiB"


def load() -> float:
    """The system's load average; 0 if the system does not report it."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0


def is_busy() -> bool:
    """Whether other work is likely to take time from a measurement: no core is free for it."""
    return load() > (os.cpu_count() or 1) - 0.5


def _system() -> str:
    kernel = f"{platform.system()} {'.'.join(platform.release().split('.')[:2])}"
    try:
        return f"{platform.freedesktop_os_release()['PRETTY_NAME']}, {kernel}"
    except (OSError, KeyError):
        return kernel


def _libraries() -> dict[str, str]:
    found = {"expat": EXPAT_VERSION.removeprefix("expat_")}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
