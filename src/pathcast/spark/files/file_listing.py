r"""Listing files: which files a path of a stream names now, with size and modification time.

A path is a file, a folder, or a pattern with the wildcards of Hadoop: `*`, `?`, `[a-c]`, `[^a]`, `{a,b}`; `\*` is a
plain asterisk. A folder stands for the files in it and in its `name=value` folders; with `recursive`, for the files
in all of its folders. Files whose names begin with `_` or `.` are hidden. These are Spark's rules, so a stream reads
the files that a batch reads. A file's own name is never a pattern.

Invariant: a file is listed once, under one path, whatever its name contains.
Cost: one `scandir` per folder, and one `stat` per file that `known` does not have.
"""

import errno
import os
import re
import stat
from collections.abc import Container, Iterator
from itertools import pairwise
from typing import NamedTuple

from pathcast.errors import PipelineError

_COPYING = "._COPYING_"  # what `hadoop fs -put` is still writing
# The file does not exist: it was removed, or it is a broken or circular link.
_GONE = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}


class FoundFile(NamedTuple):
    """A file: its absolute path, size in bytes, and time of modification in nanoseconds."""

    path: str
    size: int
    modified: int


def list_files(
    pattern: str, *, recursive: bool = False, name_filter: str | None = None, known: Container[str] = ()
) -> Iterator[FoundFile]:
    """The files that an absolute path or pattern names, without those that `known` has."""
    wanted = _matching(name_filter) if name_filter is not None else None
    given: set[str] = set()
    certain = not is_pattern(pattern)
    for root in roots(pattern):
        if certain and not os.path.exists(root):  # noqa: PTH110
            raise PipelineError(
                f"the source folder or file {root!r} does not exist; correct the path, or create the folder"
            )
        for path in _files(root, recursive):
            if path in known or path in given:
                continue
            name = os.path.basename(path)  # noqa: PTH119 - a hundred thousand times
            if _hidden(name) or (wanted and not wanted.fullmatch(name)):
                continue
            found = look_at(path)
            if found is not None:
                given.add(path)
                yield found


def look_at(path: str) -> FoundFile | None:
    """The file as it is now; None if it is gone or not a regular file."""
    try:
        facts = os.stat(path)  # noqa: PTH116 - a hundred thousand times
    except OSError as error:
        if error.errno in _GONE:
            return None
        raise
    return FoundFile(path, facts.st_size, facts.st_mtime_ns) if stat.S_ISREG(facts.st_mode) else None


def is_pattern(path: str) -> bool:
    """Whether a path is a pattern, which may match nothing yet."""
    alternatives = _alternatives(path)
    return len(alternatives) > 1 or any(_matching(part) is not None for part in alternatives[0].split("/"))


def _hidden(name: str) -> bool:
    return name.startswith(".") or (name.startswith("_") and "=" not in name) or name.endswith(_COPYING)


def _files(root: str, recursive: bool, around: tuple[tuple[int, int], ...] = ()) -> Iterator[str]:
    """The paths of files in a folder, or of the file itself; `around` are the folders that led to this one."""
    try:
        with os.scandir(root) as entries:
            facts = os.stat(root)  # noqa: PTH116
            if (facts.st_dev, facts.st_ino) in around:
                return  # a link to a folder around it would list its files again
            folders = []
            for entry in entries:
                if not _is_folder(entry):
                    yield entry.path
                elif not _hidden(entry.name) and (recursive or "=" in entry.name):
                    folders.append(entry.path)
    except NotADirectoryError:
        yield root
        return
    except FileNotFoundError:
        return  # removed since its parent was listed
    for folder in folders:
        yield from _files(folder, recursive, (*around, (facts.st_dev, facts.st_ino)))


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # `look_at` finds out why
        return False


def roots(pattern: str) -> list[str]:
    """The files and folders that an absolute pattern matches; a path without wildcards is returned unchecked."""
    found: dict[str, None] = {}
    for one in _alternatives(pattern):
        here = ["/"]
        for part in one.strip("/").split("/"):
            wanted = _matching(part)
            if wanted is None:
                name = re.sub(r"\\(.)", r"\1", part, flags=re.DOTALL)
                here = [os.path.join(root, name) for root in here]  # noqa: PTH118
            else:
                here = [os.path.join(root, name) for root in here for name in _names(root) if wanted.fullmatch(name)]  # noqa: PTH118
        if is_pattern(pattern):
            here = [root for root in here if os.path.exists(root)]  # noqa: PTH110
        found |= dict.fromkeys(here)
    return list(found)


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208
    except (FileNotFoundError, NotADirectoryError):
        return []


def _alternatives(pattern: str) -> list[str]:
    """A pattern without braces for each way to choose among alternatives in braces."""
    depth, begin, cuts, place = 0, 0, [], 0
    while place < len(pattern):
        character = pattern[place]
        if character == "\\":
            place += 1
        elif character == "{":
            begin = place if depth == 0 else begin
            depth += 1
        elif character == "," and depth == 1:
            cuts.append(place)
        elif character == "}" and depth:
            depth -= 1
            if depth == 0:
                edges = [begin, *cuts, place]
                chosen = [pattern[low + 1 : high] for low, high in pairwise(edges)]
                return [
                    one for choice in chosen for one in _alternatives(pattern[:begin] + choice + pattern[place + 1 :])
                ]
        place += 1
    if depth:
        raise PipelineError(f"the path {pattern!r} has a '{{' without '}}'; write '\\{{' for the character itself")
    return [pattern]


def _matching(part: str) -> re.Pattern[str] | None:
    """The expression that a name must match; None where the part is a name without wildcards."""
    parts, wild, place = [], False, 0
    while place < len(part):
        character = part[place]
        if character == "\\" and place + 1 < len(part):
            place += 1
            parts.append(re.escape(part[place]))
        elif character in "*?":
            wild = True
            parts.append("." + character.replace("?", ""))
        elif character == "[":
            end = part.find("]", place + 2)
            if end < 0:
                raise PipelineError(
                    f"the name {part!r} in the path has a '[' without ']'; write '\\[' for the character itself"
                )
            wild = True
            inner = part[place + 1 : end].replace("\\", "\\\\").replace("[", "\\[")
            parts.append(f"[^{inner[1:]}]" if inner[0] in "^!" else f"[{inner}]")
            place = end
        else:
            parts.append(re.escape(character))
        place += 1
    try:
        return re.compile("".join(parts), re.DOTALL) if wild else None
    except re.error as error:
        raise PipelineError(
            f"the name {part!r} in the path has an invalid '[…]': {error.msg}; correct it, or write "
            "'\\[' for a literal '['"
        ) from None
