"""Line numbers of the keys of a TOML file: `tomllib` reads values and does not report positions.

The scanner recognises only comments, strings (nothing inside them is a key), brackets (a list or inline table may span
lines), table headings and keys. The text must be valid TOML; `tomllib` has checked it.

Not done: keys inside inline tables; they get the line of the key that holds the table.
"""

import re
from collections import Counter
from collections.abc import Iterator

_PART = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|'[^']*')"""
_NAME = rf"{_PART}(?:\s*\.\s*{_PART})*"
_HEADING = re.compile(rf"\s*(\[\[?)\s*({_NAME})\s*\]\]?")
_KEY = re.compile(rf"\s*({_NAME})\s*=")
# Comments and strings, whose brackets, quotes and line ends have no meaning; and brackets outside them.
_PIECE = re.compile(
    r'"""(?:[^\\]|\\.)*?"""|\'\'\'.*?\'\'\'|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'|#[^\n]*|[\[{]|[\]}]|\n', re.DOTALL
)


def key_lines(text: str) -> dict[tuple[str, ...], int]:
    """Key → line, from 1; a key is a tuple of the parts of its full name. A table has the line of its heading.

    For tables of a list (`[[link]]`), the index is a part: `link`, `0`, `between`.
    """
    lines: dict[tuple[str, ...], int] = {}
    table: tuple[str, ...] = ()
    listed: Counter[tuple[str, ...]] = Counter()
    for number, line in _statements(text):
        if heading := _HEADING.match(line):
            table = _parts(heading[2])
            lines.setdefault(table, number)
            if heading[1] == "[[":
                name, table = table, (*table, str(listed[table]))
                listed[name] += 1
                lines[table] = number
        elif key := _KEY.match(line):
            name = table + _parts(key[1])
            for length in range(len(table) + 1, len(name) + 1):
                lines.setdefault(name[:length], number)
    return lines


def line_of(lines: dict[tuple[str, ...], int], name: tuple[str, ...]) -> int | None:
    """The line of a key, or of the nearest enclosing table; None for the file as a whole."""
    while name and name not in lines:
        name = name[:-1]
    return lines.get(name)


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Headings and assignments, each with its first line."""
    begin, first, number, depth = 0, 1, 1, 0
    text += "\n"
    for piece in _PIECE.finditer(text):
        found = piece[0]
        if found == "\n":
            number += 1
            if depth == 0:
                yield first, text[begin : piece.start()]
                begin, first = piece.end(), number
        elif found in "[{":
            depth += 1
        elif found in "]}":
            depth -= 1
        else:
            number += found.count("\n")


def _parts(name: str) -> tuple[str, ...]:
    found = (part.strip() for part in re.findall(_PART, name))
    return tuple(part[1:-1] if part[0] in "\"'" else part for part in found)
