"""Cores, memory and disk that this process may use, within the limits of its container.

Standard library only: the set-up script loads this file before anything is installed.

Not done: limits of a cgroup above our own (a container runtime mounts its own cgroup at the root of the tree, which is
the case that matters).
"""

import os
import shutil
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")
UNLIMITED = 1 << 60  # cgroup v1 writes "no limit" as a number close to 2**63


def cores(cgroups: Path = CGROUPS) -> int:
    """Number of cores that this process may use: at least 1."""
    present = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
    return max(1, min(present, _cpu_quota(cgroups) or present))


def memory(cgroups: Path = CGROUPS) -> int:
    """Bytes of memory that this process and its children may use; 0 if unknown."""
    try:
        installed = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        installed = 0
    limits = [size for size in (installed, memory_limit(cgroups)) if size]
    return min(limits, default=0)


def memory_limit(cgroups: Path = CGROUPS) -> int | None:
    """The container's memory limit in bytes, if it has one."""
    limits = (_number(cgroups / "memory.max"), _number(cgroups / "memory" / "memory.limit_in_bytes"))
    return min((limit for limit in limits if limit is not None and limit < UNLIMITED), default=None)


def free_disk(folder: Path) -> int:
    """Bytes free for this user on the disk of `folder`, which need not exist yet."""
    folder = folder.absolute()
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free


def gigabytes(size: int) -> str:
    """`4.2 GB`, as disks and memory are sold."""
    return f"{size / 1e9:.1f} GB"


def _cpu_quota(cgroups: Path) -> int | None:
    """Cores that the container's CPU quota amounts to, rounded up."""
    quota, period = None, None
    unified = _words(cgroups / "cpu.max")
    if len(unified) == 2 and all(word.isdigit() for word in unified):
        quota, period = int(unified[0]), int(unified[1])
    else:
        quota = _number(cgroups / "cpu" / "cpu.cfs_quota_us")
        period = _number(cgroups / "cpu" / "cpu.cfs_period_us")
    return -(-quota // period) if quota and period and quota > 0 else None


def _number(file: Path) -> int | None:
    words = _words(file)
    return int(words[0]) if len(words) == 1 and words[0].lstrip("-").isdigit() else None


def _words(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="ascii").split()
    except OSError:
        return []
