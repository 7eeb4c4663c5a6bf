"""The values of a pipeline file: each kind of key reads its own, or says what should stand there.

A value that is not right raises `RefusedValueError` with a sentence to follow the key's name.
"""

import difflib
import re
from collections.abc import Callable, Mapping
from typing import Any

from ..files.file_options import INTERVAL
from .pipeline_keys import KINDS, Key

TRIGGERS = ("available-now", "once")


_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")


def is_address(path: str) -> bool:
    """Whether a path of a pipeline is an address, such as `s3a://…`, rather than a place on this machine's disks."""
    return _ADDRESS.match(path) is not None


class RefusedValueError(Exception):
    """A value that can't stand where it stands."""


def flat(table: Any, prefix: str = "") -> dict[str, str]:
    """A table of options as Spark takes them: text, with dots in the names of nested ones."""
    if not isinstance(table, dict):
        raise RefusedValueError(f"must be a table, not {_said(table)}")
    found: dict[str, str] = {}
    for name, value in table.items():
        if isinstance(value, dict):
            found |= flat(value, f"{prefix}{name}.")
        elif isinstance(value, list):
            raise RefusedValueError(f"'{name}' is a list; options are text, numbers or true and false")
        else:
            found[prefix + name] = str(value).lower() if isinstance(value, bool) else str(value)
    return found


def _text(key: Key, value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise RefusedValueError(f"must be {KINDS[key.kind]}, not {_said(value)}")
    return value


def _texts(key: Key, value: Any) -> list[str]:
    values = [value] if isinstance(value, str) and key.kind == "paths" else value
    if not isinstance(values, list) or not values or not all(isinstance(one, str) and one for one in values):
        raise RefusedValueError(f"must be a {KINDS[key.kind]}, not {_said(value)}")
    return values


def _namespaces(key: Key, value: Any) -> Mapping[str, str] | str:
    if value == "ignore":
        return "ignore"
    if not isinstance(value, dict) or not all(isinstance(uri, str) for uri in value.values()):
        raise RefusedValueError(f"must be a {KINDS[key.kind]}, not {_said(value)}")
    if not all(value):
        raise RefusedValueError("XPath 1.0 has no default namespace; give it a prefix, and use that in expressions")
    if not all(value.values()):
        raise RefusedValueError("a prefix needs a URI that is not empty")
    return value


def _choice(key: Key, value: Any) -> str:
    if value not in key.choices:
        raise RefusedValueError(
            f"must be {' or '.join(map(_said, key.choices))}, not {_said(value)}{_near(value, key.choices)}"
        )
    return str(value)


def _trigger(_: Key, value: Any) -> str:
    if isinstance(value, str) and (value in TRIGGERS or INTERVAL.fullmatch(value)):
        return value
    choices = (*TRIGGERS, "10 seconds")
    wanted = 'must be "available-now", "once" or an interval such as "10 seconds"'
    raise RefusedValueError(f"{wanted}, not {_said(value)}{_near(value, choices)}")


def _interval(_: Key, value: Any) -> str:
    if isinstance(value, str) and INTERVAL.fullmatch(value):
        return value
    raise RefusedValueError(f'must be an interval such as "2 seconds", not {_said(value)}')


def _number(key: Key, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise RefusedValueError(f"must be a {KINDS[key.kind]}, not {_said(value)}")
    return value


def _share(key: Key, value: Any) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 <= value <= 1 or (value == 0 and key.kind != "share or 0"):
        raise RefusedValueError(f"must be a {KINDS[key.kind]}, not {_said(value)}")
    return float(value)


def _policy(_: Key, value: Any) -> str:
    from pathcast.routing import Policy

    if not isinstance(value, str):
        raise RefusedValueError(f'must be a policy, such as "L+s-sd", not {_said(value)}')
    try:
        return str(Policy.read(value))
    except ValueError as error:
        raise RefusedValueError(str(error)) from None


def _near(value: Any, choices: tuple[str, ...]) -> str:
    near = difflib.get_close_matches(value, choices, n=1, cutoff=0.5) if isinstance(value, str) else []
    return f"; did you mean {_said(near[0])}?" if near else ""


def _said(value: Any) -> str:
    """A value as it stands in TOML, cut short."""
    text = f'"{value}"' if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)
    return text if len(text) <= 60 else text[:60] + "…"


READERS: dict[str, Callable[[Key, Any], Any]] = {
    "text": _text,
    "path": _text,
    "paths": lambda key, value: tuple(_texts(key, value)),
    "names": lambda key, value: tuple(_texts(key, value)),
    "table": lambda _, value: flat(value),
    "namespaces": _namespaces,
    "choice": _choice,
    "trigger": _trigger,
    "interval": _interval,
    "number": _number,
    "share": _share,
    "share or 0": _share,
    "policy": _policy,
}
