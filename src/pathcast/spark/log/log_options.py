"""The options of the data source `pathcast`, checked.

Spark passes options as text. Its UI hides the values of options whose names contain `token`.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from pathcast.client import LogReader
from pathcast.errors import PipelineError
from pathcast.log import SqliteLog

# Sequences per task: some 40 MB of documents of 4 KB.
TASK: Final = 10_000
_LARGEST: Final = (1 << 63) - 2
_EXPIRED: Final = ("omit", "fail", "keep")
_KNOWN: Final = (
    "url",
    "token",
    "tokenFile",
    "folder",
    "feeds",
    "expired",
    "from",
    "to",
    "maxDocumentsPerTrigger",
    "sequencesPerTask",
    "patience",
)


@dataclass(frozen=True, kw_only=True)
class LogOptions:
    """Where the log is, and which part of it is read."""

    url: str | None = None
    token: str | None = None
    folder: str | None = None
    feeds: tuple[str, ...] = ()
    expired: str = "omit"  # documents beyond their feed's retention: "omit", "fail" or "keep"
    begin: int | Literal["first", "now"] = "first"
    to: int | None = None
    most: int | None = None  # sequences per micro-batch
    task: int = TASK
    patience: float = 60.0

    def reader(self) -> LogReader:
        """A reader of the broker's log."""
        assert self.url is not None
        return LogReader(self.url, self.token, patience=self.patience)

    def opened(self) -> SqliteLog:
        """The log in the folder, to be read only."""
        assert self.folder is not None
        return SqliteLog(self.folder, read_only=True)


def parse_log_options(given: Mapping[str, str]) -> LogOptions:
    """The checked options; `PipelineError` for unknown or wrong ones."""
    options = {name.lower(): value for name, value in given.items()}
    if unknown := sorted(options.keys() - {name.lower() for name in _KNOWN}):
        raise PipelineError(f"unknown option {unknown[0]!r} of format pathcast; use one of {', '.join(_KNOWN)}")
    if "url" not in options and "folder" not in options:
        raise PipelineError(
            "format pathcast needs the option 'url' (the address of a broker) or 'folder' (the folder of its "
            "log); set one of them"
        )
    if "token" in options and "tokenfile" in options:
        raise PipelineError("options 'token' and 'tokenFile' cannot be combined; omit one of them")
    begin = options.get("from", "first")
    feeds = tuple(each.strip() for each in options.get("feeds", "").split(",") if each.strip())
    expired = options.get("expired", "omit")
    if expired not in _EXPIRED:
        raise PipelineError(f"option 'expired' must be one of {', '.join(_EXPIRED)}, got {expired[:40]!r}")
    return LogOptions(
        url=options.get("url"),
        token=token_of(options),
        folder=None if "folder" not in options else os.path.abspath(options["folder"]),  # noqa: PTH100 - `..` stays text
        feeds=feeds,
        expired=expired,
        begin="first" if begin == "first" else "now" if begin == "now" else number_of(options, "from", 1),
        to=None if "to" not in options else number_of(options, "to", 0),
        most=None if "maxdocumentspertrigger" not in options else number_of(options, "maxDocumentsPerTrigger", 1),
        task=TASK if "sequencespertask" not in options else number_of(options, "sequencesPerTask", 1),
        patience=60.0 if "patience" not in options else float(number_of(options, "patience", 0)),
    )


def number_of(options: Mapping[str, str], name: str, least: int) -> int:
    """An option that is a number."""
    text = options[name.lower()].strip()
    if not (text.isascii() and text.isdigit() and least <= int(text[:20]) <= _LARGEST):
        allowed = f"a number of at least {least}" + (", 'first' or 'now'" if name == "from" else "")
        raise PipelineError(f"option {name!r} must be {allowed}, got {text[:40]!r}")
    return int(text)


def token_of(options: Mapping[str, str]) -> str | None:
    """The token, or the content of the file that holds it, which is read where the query is planned."""
    if "tokenfile" not in options:
        return options.get("token")
    try:
        return Path(options["tokenfile"]).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise PipelineError(
            f"cannot read tokenFile {options['tokenfile']!r}: {error}; give a file that contains a token"
        ) from None
