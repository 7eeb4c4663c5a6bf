"""Error messages: the reason, and the predicate to write instead of a condition, in the words of the expression."""

import pytest

from pathcast.errors import PatternError
from pathcast.patterns import parse
from tests import oracle

CONDITIONS = {
    "not(//ref-list)": "'not()' is allowed only in a predicate; write /*[not(//ref-list)]",
    " not( //a ) ": "'not()' is allowed only in a predicate; write /*[not( //a )]",
    "not(a[b and c] or *)": "'not()' is allowed only in a predicate; write /*[not(//a[b and c] or //*)]",
    "not(contains(a, 'and'))": "'not()' is allowed only in a predicate; write /*[not(contains(//a, 'and'))]",
    "not(//a) and @b = 5": "'not()' is allowed only in a predicate; write /*[not(//a) and //@b = 5]",
    "contains(., 'x')": "'contains()' is allowed only in a predicate; write /*[contains(., 'x')]",
    "starts-with(text(), 'x')": "'starts-with()' is allowed only in a predicate; write /*[starts-with(//text(), 'x')]",
    "//a = 5": "'=' is allowed only in a predicate; write /*[//a = 5]",
    "a or b": "'or' is allowed only in a predicate; write /*[//a or //b]",
}
"""Conditions outside a predicate, and the error message for each."""


@pytest.mark.parametrize("expression", CONDITIONS)
def test_the_advice_is_the_condition_as_a_predicate(expression: str) -> None:
    with pytest.raises(PatternError) as caught:
        parse(expression)
    assert caught.value.reason == CONDITIONS[expression]
    parse(CONDITIONS[expression].partition("; write ")[2])


@pytest.mark.parametrize("document", [b"<r/>", b"<r><a/></r>", b"<a>5</a>", b"<r>x<b>5</b></r>", b"<r b='5'/>"])
@pytest.mark.parametrize("expression", [text for text in CONDITIONS if "//" in text or "(." in text])
def test_the_advice_asks_what_the_condition_asks_of_a_document(expression: str, document: bytes) -> None:
    advice = CONDITIONS[expression].partition("; write ")[2]
    tree = oracle.read(document)
    asked = expression.replace("@b", "//@b").strip()
    assert oracle.matches(advice, document) == bool(tree.xpath(f"boolean({asked})"))


@pytest.mark.parametrize("expression", ["not(../a)", "not(", "contains(a)", "not(//a)/b", "not(a" + "/a" * 100 + ")"])
def test_no_advice_is_given_that_would_be_refused_or_is_long(expression: str) -> None:
    with pytest.raises(PatternError, match=r"is allowed only in a predicate; write /\*\[…\]"):
        parse(expression)


@pytest.mark.parametrize(("expression", "function"), [("count(//a) > 2", "count"), ("boolean(//a)", "boolean")])
def test_an_unknown_function_is_named(expression: str, function: str) -> None:
    with pytest.raises(PatternError) as caught:
        parse(expression)
    assert caught.value.reason == f"the function '{function}()' is not supported"
    assert caught.value.supported == "not(), contains() and starts-with()"


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
