"""Declared TOML files: values and defaults, every mistake with its line, and the reference, from one declaration."""

import re
import textwrap
from dataclasses import dataclass
from pathlib import Path

import pytest

from pathcast.toml_files import (
    NUMBER,
    PATH,
    TEXT,
    TEXTS,
    TomlFile,
    choice,
    key,
    named_sections,
    reference,
    section,
    sections,
)
from pathcast.toml_files.toml_key_line_numbers import key_lines, line_of


@dataclass(frozen=True, kw_only=True)
class Wheel:
    size: int = key(NUMBER, "Inches.")


@dataclass(frozen=True, kw_only=True)
class Engine:
    fuel: str = key(choice("petrol", "diesel"), "`petrol` or `diesel`.", "diesel")


@dataclass(frozen=True, kw_only=True)
class Car:
    name: str = key(TEXT, "What it is called.")
    manual: str | None = key(PATH, "A file.", None, without="none is printed")
    parts: dict[str, str] = key(TEXTS, "Parts.", {})
    engine: Engine = section(Engine, "What drives it.", filled=True)
    spare: Engine | None = section(Engine, "Another one.")
    wheel: tuple[Wheel, ...] = sections(Wheel, "What it stands on.")
    door: dict[str, Wheel] = named_sections(Wheel, "What is opened.", "SIDE")


def read(folder: Path, text: str) -> tuple[Car | None, TomlFile]:
    (folder / "car.toml").write_text(textwrap.dedent(text))
    file = TomlFile(folder / "car.toml")
    return file.read(Car), file


@pytest.mark.parametrize("name", ["a\0b", "\ud800"])
def test_a_name_that_no_file_can_have_is_a_problem(name: str) -> None:
    file = TomlFile(name)
    assert file.read(Car) is None and file.told() == (
        f"{name!r}: the name contains a NUL or an invalid character; give another path"
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("name = " + "[" * 100_000, "values are nested too deeply"),
        ("name = " + "{a = " * 100_000, "values are nested too deeply"),
        ("name = " + "9" * 5000, "has a value that cannot be read: .*digits"),
    ],
    ids=["lists", "tables", "digits"],
)
def test_values_made_to_cost_are_problems(tmp_path: Path, text: str, reason: str) -> None:
    car, file = read(tmp_path, text)
    assert car is None and re.search(f"car.toml: {reason}", file.told())


def test_what_is_missing_has_its_default(tmp_path: Path) -> None:
    car, file = read(tmp_path, "name = 'Beetle'")
    assert car == Car(name="Beetle") and not file.problems
    assert car.engine == Engine(fuel="diesel") and car.spare is None


def test_sections_come_alone_in_lists_and_by_name(tmp_path: Path) -> None:
    car, file = read(
        tmp_path,
        """
        name = "Beetle"
        manual = "manual.pdf"
        [engine]
        fuel = "petrol"
        [[wheel]]
        size = 15
        [[wheel]]
        size = 16
        [door.left]
        size = 40
        """,
    )
    assert car is not None and car.manual == f"{tmp_path}/manual.pdf" and car.engine.fuel == "petrol"
    assert [wheel.size for wheel in car.wheel] == [15, 16] and car.door == {"left": Wheel(size=40)}
    assert file.has("door.left.size") and not file.has("door.right")


def test_every_mistake_is_told_with_its_line(tmp_path: Path) -> None:
    car, file = read(
        tmp_path,
        """\
        nam = "Beetle"
        wheels = 4
        engine = 3
        [[wheel]]
        size = 15
        [[wheel]]
        size = 0
        [[wheel]]
        [door.left]
        fuel = "petrol"
        size = 1
        [spare]
        fuel = "desel"
        """,
    )
    assert car is None
    assert [(one.line, one.key, one.reason) for one in file.problems] == [
        (None, "name", "is missing: What it is called."),
        (1, "nam", "unknown key; did you mean name?"),
        (2, "wheels", "unknown key; did you mean wheel?"),
        (3, "engine", "must be a section, got 3; write [engine]"),
        (7, "wheel[1].size", "must be a whole number of at least 1, got 0"),
        (8, "wheel[2].size", "is missing: Inches."),
        (10, "door.left.fuel", "unknown key in this section; did you mean engine.fuel or spare.fuel?"),
        (13, "spare.fuel", 'must be "petrol" or "diesel", got "desel"; did you mean "diesel"?'),
    ]
    assert file.told().splitlines()[1] == f"{tmp_path}/car.toml, line 1: nam: unknown key; did you mean name?"


def test_what_is_no_list_of_sections_is_told(tmp_path: Path) -> None:
    _, file = read(tmp_path, "name = 'Beetle'\nwheel = 4\ndoor = 2\n")
    assert [one.reason for one in file.problems] == [
        "must be a list of sections, got 4; write [[wheel]]",
        "must contain sections, got 2; write [door.SIDE]",
    ]


def test_the_reference_has_every_key() -> None:
    assert reference(Car, "A car.") == textwrap.dedent("""\
        ### At the top

        A car.

        | key | value | without it | meaning |
        |---|---|---|---|
        | `name` | text | an error | What it is called. |
        | `manual` | path | none is printed | A file. |
        | `parts` | table of texts | none | Parts. |

        ### `[engine]`

        What drives it.

        | key | value | without it | meaning |
        |---|---|---|---|
        | `fuel` | one of the named | `diesel` | `petrol` or `diesel`. |

        ### `[spare]`

        Another one.

        | key | value | without it | meaning |
        |---|---|---|---|
        | `fuel` | one of the named | `diesel` | `petrol` or `diesel`. |

        ### `[[wheel]]`

        What it stands on.

        | key | value | without it | meaning |
        |---|---|---|---|
        | `size` | whole number of at least 1 | an error | Inches. |

        ### `[door.SIDE]`

        What is opened.

        | key | value | without it | meaning |
        |---|---|---|---|
        | `size` | whole number of at least 1 | an error | Inches. |
        """)


def test_keys_are_found_behind_strings_lists_and_comments() -> None:
    text = textwrap.dedent('''\
        a = """
        b = 1
        """
        c = [ # [
          "]",
          { d = 1 },
        ]
        "quo.ted" = '#'
        [t . u] # heading
        e.f = 1
        [[list]]
        g = {h = 1}
        [[list]]
    ''')
    lines = key_lines(text)
    assert lines == {
        ("a",): 1,
        ("c",): 4,
        ("quo.ted",): 8,
        ("t", "u"): 9,
        ("t", "u", "e"): 10,
        ("t", "u", "e", "f"): 10,
        ("list",): 11,
        ("list", "0"): 11,
        ("list", "0", "g"): 12,
        ("list", "1"): 13,
    }
    assert line_of(lines, ("list", "0", "g", "h")) == 12
    assert line_of(lines, ("nothing",)) is None
