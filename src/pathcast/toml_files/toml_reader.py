"""Read a TOML file by its declaration: return the values, or all problems, each with line and key.

This module checks each key by itself. The caller checks combinations of keys (`wrong` records a problem), and then
raises its own error with all problems.
"""

import difflib
import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from .declared_keys import Key, Section, declared, keys_of
from .toml_key_line_numbers import key_lines, line_of
from .value_kinds import RefusedValueError, as_written

T = TypeVar("T")
_INDEX = re.compile(r"\[(\d+)\]")


@dataclass(frozen=True)
class Problem:
    """One problem: its line, its key and the reason."""

    line: int | None
    key: str
    reason: str


class TomlFile:
    """A file that is read by a declaration; `problems` lists what is wrong with it, in order of lines."""

    def __init__(self, file: str | os.PathLike[str]) -> None:
        self.path = Path(file)
        self._problems: list[Problem] = []
        self._lines: dict[tuple[str, ...], int] = {}
        self._given: dict[str, Any] = {}
        try:
            text = self.path.read_bytes().decode("utf-8-sig")
        except OSError as error:
            self._problems.append(Problem(None, "", f"cannot be read: {error.strerror}; check the path"))
        except UnicodeDecodeError:
            self._problems.append(Problem(None, "", "is not UTF-8; convert it to UTF-8"))
        except ValueError:  # a NUL character, or a character that the file system's encoding lacks
            self._problems.append(
                Problem(None, "", "the name contains a NUL or an invalid character; give another path")
            )
        else:
            self._parse(text)

    def _parse(self, text: str) -> None:
        try:
            self._given = tomllib.loads(text)
            self._lines = key_lines(text.replace("\r\n", "\n"))
        except tomllib.TOMLDecodeError as error:
            at = re.search(r"\(at line (\d+)", str(error))
            self._problems.append(
                Problem(int(at[1]) if at else None, "", f"is not valid TOML: {error}; correct the syntax")
            )
        except RecursionError:
            self._problems.append(
                Problem(None, "", "values are nested too deeply; reduce the nesting of arrays and tables")
            )
        except ValueError as error:  # a number of thousands of digits
            self._problems.append(Problem(None, "", f"has a value that cannot be read: {error}; correct the value"))

    @property
    def problems(self) -> tuple[Problem, ...]:
        return tuple(sorted(self._problems, key=lambda problem: problem.line or 0))

    def told(self) -> str:
        """All problems, a line each."""
        file = _shown(self.path)
        return "\n".join(
            f"{file}{f', line {one.line}' if one.line else ''}: {f'{one.key}: ' if one.key else ''}{one.reason}"
            for one in self.problems
        )

    def wrong(self, name: str, reason: str) -> None:
        """Record a problem with a key."""
        parts = tuple(_INDEX.sub(r".\1", name).split("."))
        self._problems.append(Problem(line_of(self._lines, parts), name, reason))

    def has(self, name: str) -> bool:
        """Whether the file has a key or section."""
        table: Any = self._given
        for part in name.split("."):
            if not isinstance(table, Mapping) or part not in table:
                return False
            table = table[part]
        return True

    def read(self, of: type[T]) -> T | None:
        """The values of a file; None if there are problems."""
        if self._problems:
            return None
        return self._read(of, self._given, "", of)

    def _read(self, of: type[T], given: Mapping[str, Any], prefix: str, whole: type) -> T | None:
        before = len(self._problems)
        known, values = declared(of), dict[str, Any]()
        for name, value in given.items():
            each = known.get(name)
            if each is None:
                self.wrong(prefix + name, _unknown(name, known, list(keys_of(whole)), top=not prefix))
            elif isinstance(each, Key):
                try:
                    values[name] = each.kind.read(value, self.path.absolute().parent)
                except RefusedValueError as error:
                    self.wrong(prefix + name, str(error))
            else:
                values[name] = self._section(each, value, prefix + name, whole)
        for name, each in known.items():
            if each.required and name not in given:
                self._missing(each, prefix + name, whole)
        return None if len(self._problems) > before else of(**values)

    def _section(self, of: Section, value: Any, name: str, whole: type) -> Any:
        if of.repeated:
            if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
                self.wrong(name, f"must be a list of sections, got {as_written(value)}; write [[{name}]]")
                return ()
            return tuple(self._read(of.of, one, f"{name}[{at}].", whole) for at, one in enumerate(value))
        if of.named:
            if not isinstance(value, dict) or not all(isinstance(one, dict) for one in value.values()):
                self.wrong(name, f"must contain sections, got {as_written(value)}; write [{name}.{of.named}]")
                return {}
            return {inner: self._read(of.of, one, f"{name}.{inner}.", whole) for inner, one in value.items()}
        if not isinstance(value, dict):
            self.wrong(name, f"must be a section, got {as_written(value)}; write [{name}]")
            return None
        return self._read(of.of, value, f"{name}.", whole)

    def _missing(self, each: Key | Section, name: str, whole: type) -> None:
        if isinstance(each, Key):
            self.wrong(name, f"is missing: {each.meaning}")
        elif any(inner.required for inner in declared(each.of).values()):
            self._read(each.of, {}, f"{name}.", whole)
        else:
            self.wrong(name, f"the section is missing: {each.meaning}")


def _shown(path: Path) -> str:
    """A path as it is; quoted where it holds characters that can't be printed."""
    text = str(path)
    return text if text.isprintable() else repr(text)


def _unknown(name: str, known: Iterable[str], everywhere: list[str], *, top: bool) -> str:
    known = list(known)
    near = difflib.get_close_matches(name, known, n=2, cutoff=0.6)
    elsewhere = [full for full in everywhere if full.rpartition(".")[2] == name and (not top or "." in full)]
    if near:
        return f"unknown key; did you mean {' or '.join(near)}?"
    if elsewhere:
        return f"unknown key in this section; did you mean {' or '.join(elsewhere)}?"
    return f"unknown key; use one of {', '.join(known)}"
