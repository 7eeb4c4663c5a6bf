"""Documents of local schemas match subscriptions to the global one; the original is delivered."""

from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pathcast
from pathcast.errors import DocumentError, MappingError, PathcastError
from pathcast.mediation import Mapping, Mediator, Rename
from pathcast.mediation.mappings.document_object_tree import to_bytes
from pathcast.mediation.mappings.schema_mapping import read_tree
from pathcast.mediation.mediated_matcher import REWRITINGS
from pathcast.mediation.mediator import Rewriting
from tests import oracle
from tests.generators import expression, random_pattern
from tests.mediation.drawn import drawn_document, drawn_operators, drawn_tree
from tests.mediation.test_operator_derivation import DOCUMENT, GLOBAL, LOCAL, REWRITTEN, SAME

XPATHS = [
    "/university/course[code = 'c1']/schedule[time = 9][place = 'R']",
    "//instructor/assistant",
    "//article[year = 2]/author[born = 1]",
    "/university/dept/head",
    "//faculty[@label = 'F']",
    "//teacher",  # a name that only the publisher uses
    "//course/time",  # a place that only the publisher has
]


def subscriptions(xpaths: list[str]) -> pathcast.Subscriptions:
    made = pathcast.Subscriptions()
    made.add_many(xpaths)
    return made


@pytest.fixture
def mediator() -> Mediator:
    made = Mediator(GLOBAL)
    made.register("u", LOCAL, correspondence=SAME)
    return made


@pytest.mark.parametrize("rewriting", REWRITINGS)
def test_documents_are_matched_in_the_global_schema(mediator: Mediator, rewriting: Rewriting) -> None:
    matcher = mediator.compile(subscriptions(XPATHS), rewriting)
    assert matcher.match(DOCUMENT, schema="u").ids.tolist() == [1, 2, 3, 4, 5]
    assert mediator.rewrite(DOCUMENT, schema="u").decode() == REWRITTEN


def test_a_publisher_that_comes_later_needs_no_new_matcher(mediator: Mediator) -> None:
    matcher = mediator.compile(subscriptions(["//dept/head"]))
    with pytest.raises(MappingError, match="schema 'v' is not registered \\(registered schemas: u"):
        matcher.match("<a/>", schema="v")
    local = read_tree("school\n  dept\n    boss #text")
    same = {"school": "university", "school/dept": "university/dept", "school/dept/boss": "university/dept/head"}
    mediator.register("v", local, correspondence=same)
    assert matcher.match("<school><dept><boss>x</boss></dept></school>", schema="v").ids.tolist() == [1]


def test_versions_stay_and_an_unknown_one_is_an_error(mediator: Mediator) -> None:
    matcher = mediator.compile(subscriptions(["/university/lesson", "/university/course"]))
    first = mediator.mapping("u")
    second = mediator.add(first.edited([*first.operators, Rename("university/course", "lesson")]))
    assert (first.version, second.version) == (1, 2)
    assert matcher.match(DOCUMENT, "u").ids.tolist() == [1]
    assert matcher.match(DOCUMENT, "u", version=1).ids.tolist() == [2]
    with pytest.raises(MappingError, match="schema 'u' has no version 3 \\(known versions: 1, 2\\);"):
        matcher.match(DOCUMENT, "u", version=3)


def test_pairs_that_are_none_are_named(mediator: Mediator) -> None:
    with pytest.raises(
        MappingError, match="invalid path in the local schema: the schema has no element 'university/dean'"
    ):
        mediator.register("x", LOCAL, correspondence={"university/dean": "university"})


def test_documents_without_a_schema_are_not_left_out(mediator: Mediator) -> None:
    matcher = mediator.compile(pathcast.Subscriptions())
    with pytest.raises(ValueError, match="no schema for the document at index 1; give one"):
        list(matcher.match_many([DOCUMENT, DOCUMENT], ["cmu"]))
    mediator.add(Mapping("", LOCAL, ()))
    assert len(list(matcher.match_many([DOCUMENT, DOCUMENT], ""))) == 2


def test_what_is_wrong_with_one_document_is_its_own_matter(mediator: Mediator) -> None:
    mediator.add(Mapping("plain", GLOBAL, ()))
    matcher = mediator.compile(subscriptions(XPATHS))
    documents = [DOCUMENT, "<university", "<other/>", REWRITTEN, DOCUMENT]
    found = list(matcher.match_many(documents, ["u", "u", "u", "plain", "w"], errors="return"))
    assert [type(each) if isinstance(each, PathcastError) else each.ids.tolist() for each in found] == [
        [1, 2, 3, 4, 5], DocumentError, MappingError, [1, 2, 3, 4, 5], MappingError
    ]  # fmt: skip
    with pytest.raises(DocumentError):
        list(matcher.match_many(documents, "u"))
    with pytest.raises(
        ValueError, match="rewriting must be one of 'events', 'engine', 'static', 'queries', got 'guesses'"
    ):
        mediator.compile(subscriptions([]), "guesses")  # type: ignore[arg-type]


@pytest.mark.parametrize("rewriting", REWRITINGS)
def test_texts_that_a_comment_parts_are_one_in_the_global_schema(rewriting: Rewriting) -> None:
    tree = read_tree("r\n  a #text")
    mediator = Mediator(tree)
    mediator.add(Mapping("x", tree, (Rename("r/a", "b"),)))
    matcher = mediator.compile(subscriptions(["/r/b[text() = 't']", "/r/b[text() = 'tu']"]), rewriting)
    assert matcher.match("<r><a>t<!-- -->u</a></r>", "x").ids.tolist() == [2]


@pytest.mark.slow
@settings(max_examples=60)
@given(st.integers(0, 2**32))
def test_every_way_of_bridging_finds_what_lxml_finds_in_the_rewritten_document(seed: int) -> None:
    random = Random(seed)
    tree = drawn_tree(random)
    mediator = Mediator(tree)
    mediator.add(Mapping("x", tree, tuple(drawn_operators(random, tree))))
    document = to_bytes(drawn_document(random, tree))
    try:
        rewritten = mediator.rewrite(document, "x")
    except MappingError:
        return  # more than one root
    sample = oracle.read(rewritten).getroot()
    xpaths = [expression(random_pattern(random, sample), random) for _ in range(8)]
    expected = [number for number, xpath in enumerate(xpaths, 1) if oracle.matches(xpath, rewritten)]
    for rewriting in REWRITINGS:
        matcher = mediator.compile(subscriptions(xpaths), rewriting)
        assert matcher.match(document, "x").ids.tolist() == expected, rewriting


def test_a_mediator_is_saved_and_opened(mediator: Mediator, tmp_path: Path) -> None:
    mediator.register("a/b c", GLOBAL)
    mediator.add(mediator.mapping("u"))
    mediator.save(tmp_path / "mediator")
    there = Mediator.open(tmp_path / "mediator")
    assert str(there.global_schema) == str(mediator.global_schema)
    assert sorted(there.schemas) == ["a/b c", "u"]
    assert there.mapping("u", 1) == mediator.mapping("u", 1)
    assert there.mapping("u").version == 2
    assert there.mapping("a/b c") == mediator.mapping("a/b c")
    with pytest.raises(MappingError, match="cannot read a mediator"):
        Mediator.open(tmp_path / "nowhere")
    (tmp_path / "file").touch()
    with pytest.raises(MappingError, match="cannot write .*file: File exists"):
        there.save(tmp_path / "file")


@pytest.mark.parametrize("name", ["a\0b", "\ud800"])
def test_a_name_that_no_file_can_have_is_an_error_of_the_mapping(name: str) -> None:
    for opening in (Mediator.open, Mapping.open):
        with pytest.raises(MappingError, match="the name contains a NUL"):
            opening(Path(name))


def test_a_global_schema_that_is_not_utf_8_is_an_error_of_the_mapping(mediator: Mediator, tmp_path: Path) -> None:
    mediator.save(tmp_path / "mediator")
    for file in (tmp_path / "mediator").iterdir():
        content = file.read_bytes()
        file.write_bytes(b"\xff" + content)
        with pytest.raises(MappingError, match="not UTF-8"):
            Mediator.open(tmp_path / "mediator")
        file.write_bytes(content)
    assert Mediator.open(tmp_path / "mediator").schemas == mediator.schemas


@pytest.mark.parametrize("value", ["[" * 100_000, "9" * 5000], ids=["nested", "digits"])
def test_a_mapping_made_to_cost_is_an_error_of_the_mapping(value: str) -> None:
    with pytest.raises(MappingError, match="not valid TOML"):
        Mapping.read(f"operators = {value}")
