"""Declared keys: a file is a dataclass; each field is a key with its kind, meaning and default.

    @dataclass(frozen=True, kw_only=True)
    class Stream:
        checkpoint: str = key(PATH, "The folder where the stream notes how far it is.")
        trigger: str = key(TRIGGER, "When it takes its next micro-batch.", "available-now")

The declaration defines the checks of a file (`toml_reader.py`), the defaults of missing keys, and the table of keys
in the documentation (`reference`). A key without a default is required.
"""

from collections.abc import Iterator
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any

from .value_kinds import Kind

_DECLARED = "declared"


@dataclass(frozen=True, slots=True)
class Key:
    """A key and the kind of its value. `without`: the default as the reference shows it."""

    kind: Kind
    meaning: str
    required: bool
    without: str


@dataclass(frozen=True, slots=True)
class Section:
    """A table with its own keys: one table, a list of tables (`[[link]]`), or a table per name (`[rows.TABLE]`)."""

    of: type
    meaning: str
    required: bool = False
    repeated: bool = False
    named: str = ""


def key(kind: Kind, meaning: str, default: Any = MISSING, *, without: str | None = None) -> Any:
    """A key of a section. `without` replaces `default` in the reference, where the value alone is not clear."""
    required = default is MISSING
    shown = "an error" if required else _shown(default) if without is None else without
    declared = {_DECLARED: Key(kind, meaning, required, shown)}
    if isinstance(default, dict):
        return field(default_factory=lambda: default, metadata=declared)
    return field(metadata=declared) if required else field(default=default, metadata=declared)


def section(of: type, meaning: str, *, required: bool = False, filled: bool = False) -> Any:
    """A section. If it is missing and `required`, that is an error; if `filled`, all its keys have their defaults;
    otherwise the section is None.
    """
    declared = {_DECLARED: Section(of, meaning, required)}
    if filled:
        return field(default_factory=of, metadata=declared)
    return field(metadata=declared) if required else field(default=None, metadata=declared)


def sections(of: type, meaning: str) -> Any:
    """A section that may occur any number of times; read as a tuple."""
    return field(default=(), metadata={_DECLARED: Section(of, meaning, repeated=True)})


def named_sections(of: type, meaning: str, name: str) -> Any:
    """A section per name, read as a mapping; the reference shows the name as `name`."""
    return field(default_factory=dict, metadata={_DECLARED: Section(of, meaning, named=name)})


def declared(of: type) -> dict[str, Key | Section]:
    """The keys and sections of a declared section, by name."""
    found: dict[str, Key | Section] = {}
    each: Field[Any]
    for each in fields(of):
        if _DECLARED in each.metadata:
            found[each.name] = each.metadata[_DECLARED]
    return found


def keys_of(of: type, prefix: str = "") -> Iterator[str]:
    """The full names of all keys in a declared file."""
    for name, each in declared(of).items():
        if isinstance(each, Key):
            yield prefix + name
        elif not each.repeated and not each.named:
            yield from keys_of(each.of, f"{prefix}{name}.")


def reference(of: type, meaning: str, heading: str = "###") -> str:
    """The reference of all keys of a file, in Markdown: a table per section."""
    return "\n".join(_reference(of, meaning, f"{heading} At the top", heading)).strip() + "\n"


def _reference(of: type, meaning: str, title: str, heading: str, path: str = "") -> Iterator[str]:
    found = declared(of)
    keys = {name: each for name, each in found.items() if isinstance(each, Key)}
    yield f"{title}\n\n{meaning}\n"
    if keys:
        yield "| key | value | without it | meaning |\n|---|---|---|---|"
        for name, each in keys.items():
            wanted = each.kind.wanted.removeprefix("a ").removeprefix("an ")
            yield f"| `{name}` | {wanted} | {each.without} | {each.meaning} |"
        yield ""
    for name, inner in found.items():
        if isinstance(inner, Section):
            full = f"{path}{name}" + (f".{inner.named}" if inner.named else "")
            shown = f"[[{full}]]" if inner.repeated else f"[{full}]"
            yield from _reference(inner.of, inner.meaning, f"{heading} `{shown}`", heading, f"{full}.")


def _shown(default: Any) -> str:
    if default is None or default in ((), {}):
        return "none"
    if isinstance(default, str):
        return f"`{default}`"
    return f"{default:,}" if isinstance(default, int) else str(default)
