"""Entry paths: which elements of a file become documents of their own. `/feed/entry`, `/a:feed/*`, `/*/Q{urn:r}row`.

    path ::= ("/" step)+        step ::= [prefix ":" | "Q{" uri "}"] (name | "*")

A path has child steps from the root only, so an entry never lies inside another one. Names mean what they mean in
subscriptions: a prefix stands for the namespace that `namespaces` gives it, `Q{uri}name` needs no prefix, a name
without prefix is in no namespace, and with `namespaces="ignore"` only local names count. `*` alone allows any name.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pathcast.errors import PatternError

Namespaces = Mapping[str, str] | Literal["ignore"] | None

_SUPPORTED = "child steps from the root, each a name, prefix:name, Q{uri}name or *, such as /feed/entry or /a:feed/*"
_NAME = r"[^\W\d][\w.·\-]*"
_STEP = re.compile(rf"/(?:(?P<prefix>{_NAME}):|Q\{{(?P<uri>[^{{}}]*)\}})?(?P<local>\*|{_NAME})(?=/|$)")
_XML = "http://www.w3.org/XML/1998/namespace"
# Characters and steps of a path.
_LONGEST, MOST_STEPS = 4_096, 256


@dataclass(frozen=True, slots=True)
class Step:
    """A test of a name; None allows any namespace, or any local name."""

    uri: str | None
    local: str | None

    def selects(self, uri: str, local: str) -> bool:
        """Whether the step selects an element with this name."""
        return self.uri in (None, uri) and self.local in (None, local)


@dataclass(frozen=True, slots=True)
class EntryPath:
    """A path that has been checked, and its steps."""

    text: str
    steps: tuple[Step, ...]


def parse_entry_path(text: str, namespaces: Namespaces = None) -> EntryPath:
    """Parse a path; raise `PatternError` if it is not one.

    >>> from pathcast.documents.entries.entry_path import parse_entry_path
    >>> parse_entry_path("/a:feed/*", {"a": "urn:a"}).steps
    (Step(uri='urn:a', local='feed'), Step(uri=None, local=None))
    """
    if not isinstance(text, str):
        raise TypeError(f"the entry path must be a string, such as '/feed/entry', got {text!r}")
    if namespaces is not None and namespaces != "ignore" and not isinstance(namespaces, Mapping):
        raise TypeError(f"namespaces must map prefixes to URIs, or be 'ignore' or None, got {namespaces!r}")
    if len(text) > _LONGEST:
        raise PatternError(
            f"entry path {text!r:.60} has {len(text):,} characters; at most {_LONGEST:,} are allowed; shorten the path"
        )
    steps: list[Step] = []
    at = 0
    while at < len(text) or not steps:
        found = _STEP.match(text, at)
        if found is None:
            raise _wrong(text, at)
        steps.append(_step(text, found, namespaces))
        at = found.end()
    if len(steps) > MOST_STEPS:
        raise PatternError(
            f"entry path {text!r:.60} has {len(steps):,} steps; at most {MOST_STEPS:,} are allowed; shorten the path"
        )
    return EntryPath(text, tuple(steps))


def _step(text: str, found: re.Match[str], namespaces: Namespaces) -> Step:
    prefix, local = found["prefix"], None if found["local"] == "*" else found["local"]
    if namespaces == "ignore":
        return Step(None, local)
    if found["uri"] is not None:
        return Step(found["uri"], local)
    if prefix is None:
        return Step(None if local is None else "", local)
    declared = {"xml": _XML, **(namespaces or {})}
    if prefix not in declared:
        known = ", ".join(sorted(namespaces or {})) or "none"
        raise PatternError(
            f"the prefix '{prefix}' is not declared",
            column=found.start() + 2,
            expression=text,
            offending=prefix,
            supported=f"prefixes given with namespaces={{'{prefix}': 'http://…'}} (declared: {known})",
        )
    return Step(declared[prefix], local)


def _wrong(text: str, at: int) -> PatternError:
    rest = text[at:]
    offending = (re.match(r"//|/?[^/]*", rest) or [rest])[0]
    if not text:
        reason = "the entry path is empty"
    elif not rest.startswith("/"):
        reason = "the entry path must begin with '/'" if at == 0 else f"'{offending}' is not supported here"
    elif rest.startswith("//"):
        reason = "'//' is not supported in an entry path"
    else:
        reason = f"'{offending[1:]}' is not a supported step" if offending[1:] else "a step is missing after '/'"
    return PatternError(reason, column=at + 1, expression=text, offending=offending, supported=_SUPPORTED)
