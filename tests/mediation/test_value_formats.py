"""Formats of values: kinds, and one spelling for equal values."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pathcast.mediation.correspondence.value_formats import KINDS, value_format


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["2023-06-30", "20230630", "30.06.2023", "30/06/2023", "30 June 2023", "June 30, 2023"], "date"),
        (["2023-06-30T10:15:00Z", "20230630T101500Z", "Fri, 30 Jun 2023 12:15:00 +0200", "2023-06-30 10:15"], "moment"),
        (["15:10", "03:10PM", "3:10 p.m.", "15:10:00"], "time"),
        (["1234", "1,234", "01234"], "integer"),
        (["1.5", "1,50", "+1.5"], "decimal"),
        (["1234.5", "1,234.50", "1.234,5"], "decimal"),
        (["7.50 EUR", "7,5 kg", "$7.50"], "measure"),
        (["true", "TRUE", "yes"], "boolean"),
        (["EUR"], "currency"),
        (["DE"], "country"),
        (["en", "en"], "language"),
        (["Ada@x.example", "mailto:ada@x.example"], "email"),
        (["https://x.example/a", "https://x.example/a/"], "address"),
        (["+49 40 123456", "tel:+49-40-123456"], "phone"),
        (["C62"], "code"),
        (["INV-00017", "inv-00017"], "identifier"),
        (["Hamburg", "hamburg"], "word"),
        (["Station Road 7"], "phrase"),
        (["One two three four five six seven"], "text"),
    ],
)
def test_equal_values_have_one_spelling(values: list[str], kind: str) -> None:
    found = {value_format(value) for value in values}
    assert {each.kind for each in found} == {kind}
    assert len({each.tokens for each in found}) == 1


@pytest.mark.parametrize("value", ["31.02.2023", "2023-13-01", "20231301", "99:99", "12345678901234567890"])
def test_what_only_looks_like_a_date_or_a_time_is_something_else(value: str) -> None:
    assert value_format(value).kind in ("integer", "identifier", "decimal", "phrase")


@given(st.text(max_size=60))
def test_every_text_has_a_format(text: str) -> None:
    found = value_format(text)
    assert found.kind in KINDS
    assert found.tokens


@given(st.from_regex(r"[0-9:.,/T +Z-]{1,30}", fullmatch=True))
def test_every_mix_of_digits_and_signs_has_a_format(text: str) -> None:
    assert value_format(text).kind in KINDS
