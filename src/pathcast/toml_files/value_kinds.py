"""Kinds of values: how each kind is read from TOML, and the error for a value of another kind.

A reader gets the value and the folder of the file, which relative paths start from. An invalid value raises
`RefusedValueError`; its text completes a sentence that begins with the key's name.
"""

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
_QUANTITY = re.compile(r"(\d{1,15}(?:\.\d{1,9})?) ?([A-Za-z]+)", re.ASCII)
_SIZES = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_DURATIONS = {"second": 1, "minute": 60, "hour": 3_600, "day": 86_400}


class Kind(NamedTuple):
    """The kind of a key's value: `wanted` completes "must be …", and is shown in the reference."""

    wanted: str
    read: Callable[[Any, Path], Any]

    def refused(self, value: Any, hint: str = "") -> "RefusedValueError":
        """The error for a value that is not of this kind."""
        return RefusedValueError(f"must be {self.wanted}, got {as_written(value)}{hint}")


class RefusedValueError(Exception):
    """A value is invalid for its key."""


def is_address(path: str) -> bool:
    """Whether a path is an address (such as s3a://…) rather than a local path.

    >>> pathcast.toml_files.is_address("s3a://bucket/news"), pathcast.toml_files.is_address("news")
    (True, False)
    """
    return _ADDRESS.match(path) is not None


def as_written(value: Any) -> str:
    """A value as TOML writes it, shortened."""
    text = f'"{value}"' if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)
    return text if len(text) <= 60 else text[:60] + "…"


def suggestion(value: Any, choices: Iterable[str]) -> str:
    """The nearest valid choice, as the end of a sentence; empty if none is near."""
    near = difflib.get_close_matches(value, list(choices), n=1, cutoff=0.5) if isinstance(value, str) else []
    return f"; did you mean {as_written(near[0])}?" if near else ""


def choice(*choices: str) -> Kind:
    """One of some words."""

    def read(value: Any, _: Path) -> str:
        if value not in choices:
            wanted = " or ".join(map(as_written, choices))
            raise RefusedValueError(f"must be {wanted}, got {as_written(value)}{suggestion(value, choices)}")
        return str(value)

    return Kind("one of the named", read)


def _if_empty(value: Any) -> str:
    """The hint for an empty text or list."""
    return "; it must not be empty" if value == [] or (isinstance(value, str) and not value.strip()) else ""


def _text(value: Any, _: Path) -> str:
    if not isinstance(value, str) or not value.strip():
        raise TEXT.refused(value, _if_empty(value))
    return value


def _path(value: Any, folder: Path) -> str:
    if not isinstance(value, str) or not value.strip():
        raise PATH.refused(value, _if_empty(value))
    return _absolute(value, folder)


def _absolute(path: str, folder: Path) -> str:
    if path.startswith("file:"):
        path = path.removeprefix("file:").removeprefix("//")
    return path if is_address(path) else str(folder / path)


def _is_list_of_texts(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, str) and one for one in value)


def _paths(value: Any, folder: Path) -> tuple[str, ...]:
    values = [value] if isinstance(value, str) else value
    if not _is_list_of_texts(values):
        raise PATHS.refused(value, _if_empty(value))
    return tuple(_absolute(path, folder) for path in values)


def _names(value: Any, _: Path) -> tuple[str, ...]:
    if not _is_list_of_texts(value):
        raise NAMES.refused(value, _if_empty(value))
    return tuple(value)


def _texts(value: Any, _: Path) -> Mapping[str, str]:
    if not isinstance(value, dict) or not all(isinstance(one, str) for one in value.values()):
        raise TEXTS.refused(value)
    return value


def _number(value: Any, _: Path) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise NUMBER.refused(value)
    return value


def _port(value: Any, _: Path) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= 65_535:
        raise PORT.refused(value)
    return value


def _size(value: Any, _: Path) -> int:
    """Bytes: a number, or a text with a unit."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
        return value
    parts = _QUANTITY.fullmatch(value) if isinstance(value, str) else None
    if parts is None or parts[2] not in _SIZES or not (size := int(float(parts[1]) * _SIZES[parts[2]])):
        raise SIZE.refused(value)
    return size


def _duration(value: Any, _: Path) -> float:
    """Seconds: a number, or a text with a unit."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < float("inf"):
        return float(value)
    parts = _QUANTITY.fullmatch(value) if isinstance(value, str) else None
    unit = "" if parts is None else parts[2].removesuffix("s")
    if parts is None or unit not in _DURATIONS or not (seconds := float(parts[1]) * _DURATIONS[unit]):
        raise DURATION.refused(value)
    return seconds


def _flag(value: Any, _: Path) -> bool:
    if not isinstance(value, bool):
        raise FLAG.refused(value)
    return value


def _options(table: Any, _: Path) -> Mapping[str, str]:
    """Options as Spark takes them: text, with dots in the names of nested options."""
    if not isinstance(table, dict):
        raise OPTIONS.refused(table)
    return _flat(table, "")


def _flat(table: Mapping[str, Any], prefix: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in table.items():
        if isinstance(value, dict):
            found |= _flat(value, f"{prefix}{name}.")
        elif isinstance(value, list):
            raise RefusedValueError(
                f"option {prefix + name!r} must be text, a number, true or false, got the list {as_written(value)}"
            )
        else:
            found[prefix + name] = str(value).lower() if isinstance(value, bool) else str(value)
    return found


TEXT = Kind("text", _text)
PATH = Kind("a path", _path)
PATHS = Kind("a path or list of paths", _paths)
NAMES = Kind("a list of names", _names)
TEXTS = Kind("a table of texts", _texts)
NUMBER = Kind("a whole number of at least 1", _number)
PORT = Kind("a port from 0 to 65535", _port)
SIZE = Kind('a number of bytes, or a size such as "256 MiB"', _size)
DURATION = Kind('a number of seconds, or a duration such as "7 days"', _duration)
FLAG = Kind("true or false", _flag)
OPTIONS = Kind("a table", _options)
