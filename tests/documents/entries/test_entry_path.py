"""Entry paths: what is accepted, what it means, and the error for anything else."""

import pytest

from pathcast import PatternError
from pathcast.documents import parse_entry_path
from pathcast.documents.entries.entry_path import Step


@pytest.mark.parametrize(
    ("text", "namespaces", "steps"),
    [
        ("/feed", None, [Step("", "feed")]),
        ("/feed/entry", None, [Step("", "feed"), Step("", "entry")]),
        ("/*/é-1.2", None, [Step(None, None), Step("", "é-1.2")]),
        ("/a:feed/a:*/*", {"a": "urn:a"}, [Step("urn:a", "feed"), Step("urn:a", None), Step(None, None)]),
        ("/Q{http://x/y}feed/Q{}e", None, [Step("http://x/y", "feed"), Step("", "e")]),
        ("/a:feed/Q{u}e", "ignore", [Step(None, "feed"), Step(None, "e")]),
        ("/xml:x", None, [Step("http://www.w3.org/XML/1998/namespace", "x")]),
    ],
)
def test_steps_of_a_path(text: str, namespaces: dict[str, str] | None, steps: list[Step]) -> None:
    assert list(parse_entry_path(text, namespaces).steps) == steps


@pytest.mark.parametrize(
    ("text", "column", "offending", "reason"),
    [
        ("", 1, "", "empty"),
        ("feed/entry", 1, "feed", "must begin with '/'"),
        ("//entry", 1, "//", "'//' is not supported"),
        ("/feed//entry", 6, "//", "'//' is not supported"),
        ("/feed/", 6, "/", "a step is missing"),
        ("/", 1, "/", "a step is missing"),
        ("/feed/entry[1]", 6, "/entry[1]", "'entry[1]' is not a supported step"),
        ("/feed/@id", 6, "/@id", "'@id'"),
        ("/feed/text()", 6, "/text()", "'text()'"),
        ("/feed/child::entry", 6, "/child::entry", "'child::entry'"),
        ("/feed/. ", 6, "/. ", "'. '"),
        ("/feed | /x", 1, "/feed | ", "'feed | '"),
        ("/a:feed", 2, "a", "prefix 'a' is not declared"),
        ("/feed/1", 6, "/1", "'1'"),
    ],
)
def test_other_paths_are_rejected_with_their_place(text: str, column: int, offending: str, reason: str) -> None:
    with pytest.raises(PatternError) as found:
        parse_entry_path(text)
    assert reason in found.value.reason
    assert (found.value.column, found.value.offending, found.value.expression) == (column, offending, text)
    assert found.value.supported


def test_a_long_path_is_rejected() -> None:
    with pytest.raises(PatternError, match="at most 4,096"):
        parse_entry_path("/a" * 3000)
    with pytest.raises(PatternError, match="at most 256"):
        parse_entry_path("/a" * 257)


def test_arguments_of_other_types_are_rejected() -> None:
    with pytest.raises(TypeError, match="must be a str"):
        parse_entry_path(b"/a")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="namespaces must map"):
        parse_entry_path("/a", "all")  # type: ignore[arg-type]
