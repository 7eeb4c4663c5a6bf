"""The check of our prose: it checks comments, docstrings, messages and Markdown, but no code."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

import check_language


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("# it has so many rows\n", "so many"),
        ('"""The caller is told\nof it."""\n', "is told"),
        ('raise ValueError("a key that there is not")\n', "that there is not"),
        ("# 3 µs a document\n", "µs a document"),
        ('"""A table, else a list."""\n', "else"),
        ('raise ValueError("unknown option x; known are a and b")\n', "known are"),
        ('raise ValueError(f"layout 3; this Pathcast reads {LAYOUT}")\n', "this Pathcast"),
        ('raise ValueError(f"it has 9 steps; at most {most:,} allowed")\n', "at most {most:,} allowed"),
        ('raise ValueError("the tenant has 9 sinks, the most allowed")\n', "the most allowed"),
        ('raise ValueError("the path of entries is empty")\n', "path of entries"),
        ('raise ValueError("not a path; give one such as /a")\n', "give one such as"),
        ('raise ValueError("unknown id 7 (never added, or removed)")\n', "never added, or removed"),
        ('raise ValueError("the file is damaged; restore a backup")\n', "restore a backup"),
    ],
)
def test_habits_are_found_in_python(text: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    file.write_text(text)
    (line,) = check_language.report(file)
    assert repr(words) in line and line.startswith(f"{file}:1: ")


@pytest.mark.parametrize(
    "text", ["told = so_many = 1\n", 'entities = "refuse"\n', "x = 1 if y else 2\n", "# `so many`\n"]
)
def test_code_is_no_prose(text: str, tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    file.write_text(text)
    assert list(check_language.report(file)) == []


def test_markdown_is_read_outside_code(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("so many\n\n```python\nanew = 1\n```\n\n    anew\n\nIt goes on.\n")
    assert [line.split(":")[1] for line in check_language.report(page)] == ["1", "9"]


def test_the_exit_status_says_whether_anything_was_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.md"
    page.write_text("It works.\n")
    assert check_language.main([str(page)]) == 0
    page.write_text("It works anew.\n")
    assert check_language.main([str(page)]) == 1
    assert "1 places to reword" in capsys.readouterr().out
