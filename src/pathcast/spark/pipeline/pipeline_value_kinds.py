"""Kinds of values that only pipeline files have (`pathcast.toml_files` has the others)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pathcast.toml_files import Kind, RefusedValueError, as_written, suggestion

from ..files.file_options import INTERVAL

TRIGGERS = ("available-now", "once")


def _namespaces(value: Any, _: Path) -> Mapping[str, str] | str:
    if value == "ignore":
        return "ignore"
    if not isinstance(value, dict) or not all(isinstance(uri, str) for uri in value.values()):
        raise NAMESPACES.refused(value)
    if not all(value):
        raise RefusedValueError(
            "XPath 1.0 has no default namespace; give the namespace a prefix, and use the prefix in expressions"
        )
    for prefix, uri in value.items():
        if not uri:
            raise RefusedValueError(f"the URI of the prefix '{prefix}' is empty; give a URI, or remove the prefix")
    return value


def _trigger(value: Any, _: Path) -> str:
    if isinstance(value, str) and (value in TRIGGERS or INTERVAL.fullmatch(value)):
        return value
    raise TRIGGER.refused(value, suggestion(value, (*TRIGGERS, "10 seconds")))


def _interval(value: Any, _: Path) -> str:
    if isinstance(value, str) and INTERVAL.fullmatch(value):
        return value
    raise INTERVAL_TEXT.refused(value)


def _share(value: Any, least: float) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not least <= value <= 1:
        raise (SHARE if least else SHARE_OR_NONE).refused(value)
    return float(value)


def _policy(value: Any, _: Path) -> str:
    from pathcast.routing import Policy

    if not isinstance(value, str):
        raise RefusedValueError(f'must be a policy, such as "L+s-sd", got {as_written(value)}')
    try:
        return str(Policy.read(value))
    except ValueError as error:
        raise RefusedValueError(str(error)) from None


NAMESPACES = Kind('a table, or `"ignore"`', _namespaces)
TRIGGER = Kind('"available-now", "once" or an interval such as "10 seconds"', _trigger)
INTERVAL_TEXT = Kind('an interval such as "2 seconds"', _interval)
SHARE = Kind("a number above 0 and at most 1", lambda value, _: _share(value, 5e-324))
SHARE_OR_NONE = Kind("a number from 0 to 1", lambda value, _: _share(value, 0.0))
POLICY = Kind("a policy", _policy)
