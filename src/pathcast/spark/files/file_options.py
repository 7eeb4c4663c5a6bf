"""The options of a stream over files (file_source.py): some of Spark's own file source, and ours.

An unknown option, or one of Spark's that this source does not have, is an error: no option is ignored. Needs no Spark.
"""

import difflib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

from pathcast.errors import PipelineError

# Long enough for a writer that does not pause, and for file systems that store times in whole seconds; shorter than the
# trigger interval of most streams.
SETTLE = "1 second"
_OPTIONS = {
    name.lower(): name
    for name in (
        "path",
        "checkpoint",
        "settle",
        "maxFilesPerTrigger",
        "maxBytesPerTrigger",
        "latestFirst",
        "pathGlobFilter",
        "recursiveFileLookup",
        "minPartitions",
        "content",
        "waitForDeferred",
    )
}
# Set by arguments of `stream_files`; a pipeline file has keys for them.
_ARGUMENTS = {"path", "checkpoint", "settle", "content", "waitForDeferred"}
_KEYS = {"path": "source.path", "checkpoint": "stream.checkpoint", "settle": "source.settle"}
_REFUSED = {
    "cleansource": "remove or move delivered files in your own job",
    "sourcearchivedir": "remove or move delivered files in your own job",
    "maxfileage": "files are read once, whatever their age",
    "filenameonly": "files are distinguished by their paths",
    "modifiedbefore": "a stream reads all files; filter by the column modificationTime",
    "modifiedafter": "a stream reads all files; filter by the column modificationTime",
    "ignoremissingfiles": "a file that is deleted before it is read becomes a dead letter",
    "ignorecorruptfiles": "a document that cannot be read becomes a dead letter",
}
_UNITS = {"millisecond": 10**6, "second": 10**9, "minute": 60 * 10**9, "hour": 3600 * 10**9, "day": 86400 * 10**9}
INTERVAL = re.compile(r"([0-9]+) (millisecond|second|minute|hour|day)s?")


@dataclass(frozen=True)
class FileOptions:
    """The options of a stream over files, read and checked.

    `settle` is in nanoseconds. `content` is whether rows have the files' bytes, `wait_for_deferred` whether the first
    listing waits for files that are deferred.
    """

    path: str
    checkpoint: str
    settle: int
    max_files: int | None
    max_bytes: int | None
    latest_first: bool
    name_filter: str | None
    recursive: bool
    min_partitions: int
    content: bool
    wait_for_deferred: bool


def read_options(given: Mapping[str, str]) -> FileOptions:
    """Check the options of a stream over files."""
    options = {name.lower(): value for name, value in given.items()}
    check_names(given, arguments=True)
    for name in ("path", "checkpoint"):
        if not options.get(name):
            raise PipelineError(
                f"option {name!r} is missing; use stream_files(spark, path, checkpoint=…), which sets it"
            )
    max_files, max_bytes = _count(options, "maxFilesPerTrigger"), _count(options, "maxBytesPerTrigger")
    if max_files is not None and max_bytes is not None:
        raise PipelineError(
            "options 'maxFilesPerTrigger' and 'maxBytesPerTrigger' cannot be combined; omit one of them"
        )
    return FileOptions(
        path=options["path"],
        checkpoint=options["checkpoint"],
        settle=nanoseconds(options.get("settle", SETTLE)),
        max_files=max_files,
        max_bytes=max_bytes,
        latest_first=_flag(options, "latestFirst", False),
        name_filter=options.get("pathglobfilter"),
        recursive=_flag(options, "recursiveFileLookup", False),
        min_partitions=_count(options, "minPartitions") or len(os.sched_getaffinity(0)),
        content=_flag(options, "content", True),
        wait_for_deferred=_flag(options, "waitForDeferred", False),
    )


def check_names(given: Mapping[str, str], *, arguments: bool) -> None:
    """Reject options that a stream over files does not have, and without `arguments` those that are arguments."""
    for name in given:
        if not arguments and _OPTIONS.get(name.lower()) in _ARGUMENTS:
            key = _KEYS.get(name.lower())
            advice = "Pathcast sets this option; omit it" if key is None else f"use the key {key} instead"
            raise PipelineError(f"option {name!r} cannot be set in source.options: {advice}")
        if name.lower() in _REFUSED:
            raise PipelineError(
                f"option {name!r} is not supported for a stream over files; omit it: {_REFUSED[name.lower()]}"
            )
        if name.lower() not in _OPTIONS:
            near = difflib.get_close_matches(name.lower(), _OPTIONS, n=1)
            known = ", ".join(option for option in _OPTIONS.values() if option not in _ARGUMENTS)
            advice = f"did you mean {_OPTIONS[near[0]]!r}?" if near else f"supported: {known}"
            raise PipelineError(f"option {name!r} is not supported for a stream over files; {advice}")


def nanoseconds(interval: str) -> int:
    """An interval such as `2 seconds`."""
    found = INTERVAL.fullmatch(interval)
    if found is None:
        raise PipelineError(f'malformed interval {interval!r}; write for example "2 seconds" or "500 milliseconds"')
    return int(found[1]) * _UNITS[found[2]]


def _count(options: Mapping[str, str], name: str) -> int | None:
    text = options.get(name.lower())
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal()) or int(text) < 1:
        raise PipelineError(f"option {name!r} must be a whole number of at least 1, got {text!r}")
    return int(text)


def _flag(options: Mapping[str, str], name: str, default: bool) -> bool:
    text = options.get(name.lower(), str(default)).lower()
    if text not in ("true", "false"):
        raise PipelineError(f"option {name!r} must be true or false, got {text!r}")
    return text == "true"
