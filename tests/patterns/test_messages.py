"""Error messages: the reason, in the words of the expression."""

import pytest

from pathcast.errors import PatternError
from pathcast.patterns import parse


def test_an_unknown_function_is_named() -> None:
    with pytest.raises(PatternError) as caught:
        parse("string-join(//a) = 'x'")
    assert caught.value.reason == "unknown function 'string-join()'"


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("contains(a)", "contains() takes 2 arguments"),
        ("count(5)", "count() takes a set of nodes; '5' is none"),
        ("not(", "expected a path, a literal or a function, but the expression ends"),
        ("not(//a)/b", "a path continues from a set of nodes; 'not(//a)' is none"),
        ("/a[@x = $v]", "the variable '$v' has no value"),
        ("/a/sideways::b", "unknown axis 'sideways::'"),
    ],
)
def test_what_is_not_xpath_is_rejected_with_a_reason(expression: str, reason: str) -> None:
    with pytest.raises(PatternError) as caught:
        parse(expression)
    assert caught.value.reason == reason


def test_a_prefix_that_is_not_declared_is_named_with_the_way_to_declare_it() -> None:
    with pytest.raises(PatternError) as caught:
        parse("//dc:creator", {"f": "urn:f"})
    assert str(caught.value) == (
        "column 3: the prefix 'dc:' is not declared\n"
        "    //dc:creator\n"
        "      ^^^\n"
        "  supported: prefixes given with namespaces={'dc': 'http://…'} (declared: f)"
    )


@pytest.mark.parametrize(("character", "shown"), [("#", "'#'"), ("\\", "'\\'"), ("\0", r"'\x00'"), ("\x1b", r"'\x1b'")])
def test_a_character_without_meaning_is_named_and_acts_on_no_terminal(character: str, shown: str) -> None:
    with pytest.raises(PatternError) as caught:
        parse(f"/a{character}b")
    assert caught.value.reason == f"unexpected character {shown}"
    assert character.isprintable() or character not in str(caught.value)
