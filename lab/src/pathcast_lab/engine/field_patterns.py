"""Field patterns over JSON events, as quamina and event-ruler have them, and what they are in XPath over XML.

A pattern is an object shaped like the events that it matches. Each of its leaves is a list of alternatives, and all
leaves must hold:

    {"source": ["aws.ec2", "aws.s3"], "detail": {"state": [{"anything-but": ["off"]}], "error": [{"exists": false}]}}

    an alternative           holds if the event's leaf
    "text", 5, true          equals the value
    {"prefix": "i-0"}        is a text that begins with it
    {"anything-but": [...]}  exists and equals none of the values
    {"exists": true|false}   exists, or does not

An event becomes a document with an element per field, below the element `event`; a pattern becomes a path with a
condition per leaf. Invariant: `to_xpath(p)` matches `to_xml(e)` exactly if `matches(p, e)`, provided that a field holds
either texts or other values in all events (XML does not tell 5 from "5").

Not done: arrays in events; other alternatives (numeric ranges, suffixes, wildcards); fields whose names are not names
of XML.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from xml.sax.saxutils import escape

Fields = Mapping[str, Any]

ROOT = "event"
_NAME = re.compile(r"[A-Za-z_][\w.-]*", re.ASCII)
_MISSING = object()


def matches(pattern: Fields, event: Fields) -> bool:
    """Whether an event matches a pattern, by the definition: the plain twin of the translation."""
    return all(
        any(_holds(alternative, _leaf(event, path)) for alternative in alternatives)
        for path, alternatives in _leaves(pattern)
    )


def to_xpath(pattern: Fields) -> str:
    """The pattern as XPath, for documents of `to_xml`."""
    conditions = (
        " or ".join(_condition("/".join(path), alternative) for alternative in alternatives)
        for path, alternatives in _leaves(pattern)
    )
    return f"/{ROOT}" + "".join(f"[{condition}]" for condition in conditions)


def to_xml(event: Fields) -> bytes:
    """The event as an XML document."""
    return f"<{ROOT}>{_elements(event)}</{ROOT}>".encode()


def _leaves(pattern: Fields, above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Sequence[Any]]]:
    for name, below in pattern.items():
        if isinstance(below, Mapping):
            yield from _leaves(below, (*above, _checked(name)))
        elif isinstance(below, list) and below:
            yield (*above, _checked(name)), below
        else:
            raise ValueError(f"field {name!r}: expected an object or a list of alternatives, got {below!r}")


def _leaf(event: Fields, path: Sequence[str]) -> Any:
    found: Any = event
    for name in path:
        if not isinstance(found, Mapping) or name not in found:
            return _MISSING
        found = found[name]
    return _MISSING if isinstance(found, Mapping) else found


def _holds(alternative: Any, leaf: Any) -> bool:
    if not isinstance(alternative, Mapping):
        return _same(alternative, leaf)
    [(kind, given)] = alternative.items()
    if kind == "exists":
        return (leaf is not _MISSING) == bool(given)
    if kind == "prefix":
        return isinstance(leaf, str) and leaf.startswith(given)
    if kind == "anything-but":
        return leaf is not _MISSING and not any(_same(value, leaf) for value in given)
    raise ValueError(f"unknown kind of alternative {kind!r}; the kinds are exists, prefix and anything-but")


def _same(one: Any, other: Any) -> bool:
    """Equality of JSON values, where true is not 1."""
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def _condition(path: str, alternative: Any) -> str:
    if not isinstance(alternative, Mapping):
        return f"{path} = {_literal(alternative)}"
    [(kind, given)] = alternative.items()
    if kind == "exists":
        return path if given else f"not({path})"
    if kind == "prefix":
        return f"starts-with({path}, {_literal(given)})"
    if kind == "anything-but":
        parts = " and ".join(f"{path} != {_literal(value)}" for value in given)
        return parts if len(given) == 1 else f"({parts})"
    raise ValueError(f"unknown kind of alternative {kind!r}; the kinds are exists, prefix and anything-but")


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return f"'{str(value).lower()}'"
    if isinstance(value, int):
        return str(value)
    if not isinstance(value, str):
        raise TypeError(f"expected a text, an integer, true or false, got {value!r}")
    quote = '"' if "'" in value else "'"
    if quote in value:
        raise ValueError(f"XPath has no literal for a text with both kinds of quotes: {value!r}")
    return f"{quote}{value}{quote}"


def _elements(fields: Fields) -> str:
    return "".join(f"<{_checked(name)}>{_content(below)}</{name}>" for name, below in fields.items())


def _content(value: Any) -> str:
    if isinstance(value, Mapping):
        return _elements(value)
    if not isinstance(value, str | int):
        raise TypeError(f"expected an object, a text, an integer, true or false, got {value!r}")
    return escape(str(value).lower() if isinstance(value, bool) else str(value), {"\r": "&#13;"})


def _checked(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError(f"field {name!r} is not a name of XML elements")
    return name
