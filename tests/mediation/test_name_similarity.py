"""Names are compared by their words: synonyms, abbreviations, spellings, and the names around them."""

from pathlib import Path

import pytest

from pathcast.errors import MappingError
from pathcast.mediation import SynonymDictionary
from pathcast.mediation.correspondence.name_similarity import NameSimilarity, words_of


def likeness(one: str, other: str, synonyms: SynonymDictionary | None = None) -> float:
    return float(NameSimilarity([one], [other], synonyms or SynonymDictionary.open()).names()[0, 0])


def test_words_of_names() -> None:
    assert (
        words_of("courseTitle") == words_of("COURSE_TITLE") == words_of("{urn:x}course-titles") == ("course", "title")
    )
    assert words_of("ItemIDs") == ("item", "id")
    assert words_of("of") == ("of",)
    assert words_of("_") == ("_",)


def test_names_that_look_alike() -> None:
    assert likeness("courseTitle", "course_title") == 1
    assert likeness("credits", "credit") == 1
    assert likeness("{urn:x}room", "room") == 1
    assert likeness("dept", "department") > 0.9
    assert likeness("desc", "description") > 0.9
    assert likeness("lecturer", "instructor") > 0.9
    assert likeness("colour", "color") > 0.5
    assert likeness("price", "author") == 0


def test_a_word_that_many_names_have_counts_little() -> None:
    here = ["r", "r/tradeParty", "r/tradeTax", "r/tradeTerms", "r/tradeLine"]
    found = NameSimilarity(here, ["s", "s/tradeTax", "s/tradeUnit", "s/tradeName"], SynonymDictionary.open()).names()
    assert found[2, 1] == 1
    assert found[1, 2] < 0.4


def test_the_names_around_tell_equal_names_apart() -> None:
    here, there = ["o/seller/city", "o/buyer/city"], ["i/vendor/town", "i/customer/town"]
    found = NameSimilarity(here, there, SynonymDictionary.open()).contexts()
    assert found[0, 0] > found[0, 1] + 0.2
    assert found[1, 1] > found[1, 0] + 0.2


def test_a_user_adds_synonyms(tmp_path: Path) -> None:
    file = tmp_path / "ours.txt"
    file.write_text("# our words\nzorb gadget\nquux = qx\nfoo ~ bar\n")
    ours = SynonymDictionary.open(file)
    assert likeness("zorb", "gadget") == 0
    assert likeness("zorb", "gadget", ours) > 0.9
    assert likeness("qx", "quux", ours) > 0.95
    assert 0.5 < likeness("foo", "bar", ours) < 0.8
    assert likeness("seller", "vendor", ours) > 0.9


@pytest.mark.parametrize("text", ["alone", "a b ~ c", "= a b"])
def test_a_malformed_line_of_synonyms_is_named(tmp_path: Path, text: str) -> None:
    file = tmp_path / "ours.txt"
    file.write_text(f"a b\n{text}\n")
    with pytest.raises(MappingError, match="line 2 of the synonyms is malformed"):
        SynonymDictionary.open(file)
    with pytest.raises(MappingError, match="cannot read .*nowhere"):
        SynonymDictionary.open(tmp_path / "nowhere")
