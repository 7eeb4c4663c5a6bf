"""Parameters of an experiment: a frozen dataclass, with one instance per scale and changes given as text.

`changed(parameters, ["documents=100", "engines=gpx,yfilter"])` reads each value by the field's type: `int`, `float`,
`bool` (true, false, yes, no), `str`, and tuples of these (comma-separated). Numbers must not be negative: they are
sizes, times and shares. Anything else raises a `ParameterError` that lists the parameters.
"""

import dataclasses
import types
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from pathcast.errors import PathcastError

P = TypeVar("P")

_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_READERS: dict[Any, Callable[[str], Any]] = {int: int, float: float, str: str, bool: lambda text: _TRUTH[text.lower()]}


class ParameterError(PathcastError):
    """A change names no parameter, or its value cannot be read as that parameter's type."""


def changed(parameters: P, changes: Iterable[str]) -> P:
    """The same parameters with these `key=value` changes."""
    kinds = get_type_hints(type(parameters))
    values: dict[str, Any] = {}
    for change in changes:
        key, equals, text = change.partition("=")
        key = key.strip().replace("-", "_")
        if not equals:
            raise ParameterError(f"malformed parameter {change!r}; write key=value, such as documents=100")
        if key not in as_dict(parameters):
            known = ", ".join(f"{name}={as_text(value)}" for name, value in as_dict(parameters).items())
            raise ParameterError(f"unknown parameter '{key}'; the parameters are {known or 'none'}")
        values[key] = _read(key, text.strip(), kinds[key])
    return dataclasses.replace(parameters, **values)  # type: ignore[type-var]


def as_dict(parameters: object) -> dict[str, Any]:
    """Field → value, in the order of the dataclass."""
    return {field.name: getattr(parameters, field.name) for field in dataclasses.fields(parameters)}  # type: ignore[arg-type]


def as_text(value: object) -> str:
    """A value in the form that `changed` reads."""
    if isinstance(value, tuple):
        return ",".join(map(as_text, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _read(key: str, text: str, kind: Any) -> Any:
    several = get_origin(kind) is tuple
    one = get_args(kind)[0] if several else kind
    parts = [part.strip() for part in text.split(",") if part.strip()] if several else [text]
    reader = _READERS[one]
    try:
        values = tuple(reader(part) for part in parts)
    except (ValueError, KeyError):
        raise ParameterError(f"{key}: expected {_describe(kind)}, got {text!r}") from None
    if one in (int, float) and not all(value >= 0 for value in values):
        raise ParameterError(f"{key}: must be at least 0, got {text!r}")
    return values if several else values[0]


def _describe(kind: Any) -> str:
    if isinstance(kind, types.GenericAlias):
        return f"comma-separated {_describe(get_args(kind)[0])} values"
    return str(kind.__name__)
