"""The encoding: the paper's examples, and that it is equivalent to the pattern."""

from random import Random

import pytest

from pathcast.documents import Document, DocumentBatch, read_batch
from pathcast.literature.gpx.step_positions import Place, Tag, Unencodable
from pathcast.literature.gpx.xpath_as_boolean_predicates import (
    Distance,
    Filter,
    FromEnd,
    Length,
    Position,
    Predicate,
    matches,
    predicates,
    publications,
)
from pathcast.matching.reference.pattern_embedding import Embedding
from pathcast.patterns import parse
from tests.literature.gpx.drawn import random_element, random_path
from tests.test_readme import PROJECT, of_language, run_python

A1, A2, B1, B2, C1, X1 = Tag("a"), Tag("a", 2), Tag("b"), Tag("b", 2), Tag("c"), Tag("x")


def document(text: str) -> Document:
    return read_batch([text])[0]


# Section 3.1.3. X7 and X8 are printed without a //, and X8 without its second a, as their predicates show.
EXAMPLES: dict[str, tuple[Predicate, ...]] = {
    "/b/c": (Position(B1, "=", 1), Distance(B1, C1, "=", 1)),
    "a/a/*/b": (Distance(A1, A2, "=", 1), Distance(A2, B1, "=", 2)),
    "/a/a/*/*": (Position(A1, "=", 1), Distance(A1, A2, "=", 1), FromEnd(A2, 2)),
    "/*/*/*/a/b": (Position(A1, "=", 4), Distance(A1, B1, "=", 1)),
    "a//b/c": (Distance(A1, B1, ">=", 1), Distance(B1, C1, "=", 1)),
    "a/b/*//a": (Distance(A1, B1, "=", 1), Distance(B1, A2, ">=", 2)),
    "a/b/*/*//*/a": (Distance(A1, B1, "=", 1), Distance(B1, A2, ">=", 4)),
    "x/a/b/*/*/*//a/*": (
        Distance(X1, A1, "=", 1),
        Distance(A1, B1, "=", 1),
        Distance(B1, A2, ">=", 4),
        FromEnd(A2, 1),
    ),
}


@pytest.mark.parametrize("xpath", EXAMPLES)
def test_the_papers_examples_have_the_papers_predicates(xpath: str) -> None:
    assert predicates(parse(xpath)) == EXAMPLES[xpath]


@pytest.mark.parametrize(
    ("xpath", "expected"),
    [
        ("/", (Length(0),)),
        ("/*/*/*", (Length(3),)),
        ("//*/*", (Length(2),)),
        ("//a", (Position(A1, ">=", 1),)),
        ("a/*", (FromEnd(A1, 1),)),
        ("*/a", (Position(A1, ">=", 2),)),
        ("/*//a/b", (Position(A1, ">=", 2), Distance(A1, B1, "=", 1))),
        ("/a/*//*/b", (Position(A1, "=", 1), Distance(A1, B1, ">=", 3))),
        ("//a[@k]", (Position(A1, ">=", 1), Filter(Place(A1), "k", None))),
        ("/*/*[@k]/*", (Length(3), Filter(Place(None, 2), "k", None))),
    ],
)
def test_wildcards_at_the_ends_and_nothing_but_wildcards(xpath: str, expected: tuple[Predicate, ...]) -> None:
    assert predicates(parse(xpath)) == expected


def test_a_filter_belongs_to_the_occurrence_of_its_step() -> None:
    conjunction = predicates(parse("/a/a[@k = 2]/b"))
    found = [each for each in conjunction if isinstance(each, Filter)]
    assert [(each.place, each.attribute) for each in found] == [(Place(A2), "k")]
    assert matches(conjunction, document("<a k='1'><a k='2'><b/></a></a>"))
    assert not matches(conjunction, document("<a k='2'><a k='1'><b/></a></a>"))
    assert matches(conjunction, document("<a><a k='2'><a/><b/></a></a>"))


@pytest.mark.parametrize(
    "xpath",
    ["//a[. = 1]", "//a[b or c]", "//a[not(b)]", "//*[@k]", "a//*[@k]//b", "//a//@k", "//@k", "/a[contains(@k, 'v')]",
     "/a/text()", "/a[b]/c", "/a[/b/c]/d", f"/a[@k > {'9' * 400}]"],
)  # fmt: skip
def test_what_the_calculus_lacks_is_refused(xpath: str) -> None:
    with pytest.raises(Unencodable):
        predicates(parse(xpath))


@pytest.mark.parametrize(
    ("xpath", "place"),
    [
        ("/a/*[@k]//b", Place(A1, 1)),
        ("a//*[@k]/*/b", Place(B1, -2)),
        ("/*/*[@k]//a", Place(None, 2)),
        ("a/a/*/*[@k]", Place(A2, 2)),
    ],
)
def test_a_filter_on_a_wildcard_has_a_place_beside_a_tag(xpath: str, place: Place) -> None:
    assert [each.place for each in predicates(parse(xpath)) if isinstance(each, Filter)] == [place]


def test_table_1_the_publications_of_a_path_that_repeats_a_tag() -> None:
    whole, without = publications(document("<a><b><b><c/></b></b></a>"))
    assert list(whole.tuples()) == [
        ("length", 4),
        (A1, 1), (B1, 2), (B2, 3), (C1, 4),
        (A1, B1, 1), (A1, B2, 2), (A1, C1, 3), (B1, B2, 1), (B1, C1, 2), (B2, C1, 1),
    ]  # fmt: skip
    assert list(without.tuples()) == [
        ("length", 4),
        (A1, 1), (B1, 3), (C1, 4),
        (A1, B1, 2), (A1, C1, 3), (B1, C1, 1),
    ]  # fmt: skip
    assert list(without.elements.values()) == [0, 2, 3]


def test_table_2_which_publication_satisfies_which_predicate() -> None:
    both = list(publications(document("<a><b><b><c/></b></b></a>")))
    asked: list[Predicate] = [Position(B1, "=", 1), Distance(B1, C1, "=", 1), Distance(A1, B1, ">=", 1)]
    assert [[each.satisfies(predicate) for each in both] for predicate in asked] == [
        [False, False],
        [False, True],
        [True, True],
    ]


def test_the_distance_to_the_end_is_the_whole_paths_also_where_tags_are_left_out() -> None:
    # §3.3 adds one: then the path a would satisfy /a/*.
    assert not matches(predicates(parse("/a/*")), document("<a/>"))
    whole, without = publications(document("<a><b><b/></b></a>"))
    assert whole.length == without.length == 3
    assert without.satisfies(FromEnd(A1, 2)) and not without.satisfies(FromEnd(B1, 1))


def test_publications_double_with_each_repetition() -> None:
    text = "<a>" * 4 + "</a>" * 4
    assert len(list(publications(document(text)))) == 8
    assert len(list(publications(document("<a><b><a><b/></a></b></a>")))) == 4
    assert len(list(publications(document("<a><b/><b/><b/></a>")))) == 3


def test_local_names_forget_namespaces() -> None:
    text = "<p:a xmlns:p='u' xmlns:q='v' p:k='1' q:k='2'/>"
    (each,) = publications(document(text), local=True)
    assert each.positions == {A1: 1} and sorted(each.attributes[1, "k"]) == ["1", "2"]
    assert list(next(publications(document(text))).positions) == [Tag("{u}a")]


@pytest.mark.slow
def test_a_document_matches_when_a_publication_satisfies_all_predicates() -> None:
    random = Random(1)
    answers = []
    for _ in range(100):
        text = random_element(random)
        read = document(text)

        def same_name(number: int, name: str, batch: DocumentBatch = read.batch) -> bool:
            return batch.name_of(number) == name

        embedding = Embedding(read, same_name)
        for _ in range(8):
            xpath = random_path(random, filtered=random.random() < 0.5)
            pattern = parse(xpath)
            try:
                conjunction = predicates(pattern)
            except Unencodable:
                continue
            answers.append(embedding.matches(pattern))
            assert matches(conjunction, read) == answers[-1], (xpath, text)
    assert 0.1 < sum(answers) / len(answers) < 0.8


def test_the_rooms_example_gives_what_it_shows() -> None:
    (block,) = of_language(PROJECT / "src/pathcast/literature/gpx/README.md", "python")
    assert block.text.count("→") == 2
    assert run_python(block, {}) == ""
