"""Schema integration: the global schema covers each local one, and never loses nodes."""

import pytest

from pathcast.errors import MappingError
from pathcast.mediation import Mediator
from pathcast.mediation.mappings.schema_mapping import read_tree
from pathcast.mediation.schemas.schema_correspondence_pruning import borne_out
from pathcast.mediation.schemas.schema_integration import extended, integrate, integrate_with_doubts
from pathcast.mediation.schemas.similarity_flooding import nodes_of
from pathcast_lab.workloads.course_catalogues import generate_catalogues

STAFF = read_tree("staff\n  person+ @id\n    name #text\n    room #text")
OTHER = read_tree("staff\n  person* @id @since\n    name #text\n    phone+ #text\n      note? #text")


def test_what_only_one_has_is_optional() -> None:
    assert str(integrate([STAFF, OTHER])).splitlines() == [
        "staff",
        "  person* @id @since",
        "    name #text",
        "    phone* #text",
        "      note? #text",
        "    room? #text",
    ]


def test_schemas_that_say_the_same_integrate_to_the_first() -> None:
    assert integrate([STAFF, STAFF]) == STAFF
    with pytest.raises(MappingError, match="no schemas to integrate; give at least one"):
        integrate([])


def test_what_is_left_over_in_two_small_schemas_is_not_one_thing() -> None:
    books, prices = read_tree("book\n  title #text\n  author #text"), read_tree("book\n  title #text\n  price #text")
    tree, doubts = integrate_with_doubts([books, prices])
    assert str(tree).splitlines() == ["book", "  title #text", "  author? #text", "  price? #text"]
    assert [str(doubt) for doubt in doubts] == ["'book/price' was kept separate, but may be the same as 'book/author'"]


def test_enough_that_stands_around_it_bears_a_pair_out() -> None:
    ours, theirs = (read_tree(f"course\n  title #text\n  {name} #text\n  room #text") for name in ("tutor", "host"))
    tree, doubts = integrate_with_doubts([ours, theirs])
    assert tree == ours
    assert [str(doubt) for doubt in doubts] == [
        "'course/host' was matched with 'course/tutor', though their names differ"
    ]


def test_what_is_not_borne_out_keeps_its_children() -> None:
    stocks, reviews = (
        read_tree(f"feed\n  {name}\n    symbol #text\n    {value} #text")
        for name, value in (("stock", "per"), ("review", "grade"))
    )
    assert str(integrate([stocks, reviews])).splitlines() == [
        "feed", "  stock?", "    symbol? #text", "    per? #text", "  review?", "    symbol? #text", "    grade? #text",
    ]  # fmt: skip
    pairs = {"feed": "feed", "feed/review": "feed/stock", "feed/review/symbol": "feed/stock/symbol"}
    assert borne_out(reviews, stocks, pairs) == {"feed": "feed"}


def test_what_has_no_place_for_its_parent_is_left_out() -> None:
    local = read_tree("staff\n  robot\n    arm")
    assert "staff/robot/arm" in extended(STAFF, local, {"staff": "staff"})
    assert len(extended(STAFF, local, {})) == len(STAFF)


def test_a_global_schema_is_stable_when_schemas_are_added() -> None:
    schemas = [catalogue.schema for catalogue in generate_catalogues(8)]
    before = set(nodes_of(integrate(schemas[:1])))
    glob = schemas[0]
    for schema in schemas[1:]:
        glob = extended(glob, schema, {})
        assert before <= set(nodes_of(glob))
        before = set(nodes_of(glob))


def test_what_the_global_schema_has_stays_where_a_local_one_has_another_thing_of_that_name() -> None:
    glob, local = read_tree("r\n  a\n    b #text\n  c"), read_tree("r\n  a #text\n    d")
    assert extended(glob, local, {"r": "r"}) == read_tree("r\n  a?\n    b? #text\n    d?\n  c?")


def test_documents_of_integrated_schemas_are_matched_in_one() -> None:
    import pathcast

    mediator = Mediator.integrate({"one": STAFF, "other": OTHER})
    assert mediator.schemas == ["one", "other"]
    subscriptions = pathcast.Subscriptions()
    subscriptions.add_many(["//person[name = 'x']", "//person/phone"])
    matcher = mediator.compile(subscriptions)
    assert matcher.match("<staff><person><name>x</name></person></staff>", "one").ids.tolist() == [1]
    assert matcher.match("<staff><person><phone>1</phone></person></staff>", "other").ids.tolist() == [2]
    assert Mediator.integrate([STAFF, OTHER]).schemas == []


@pytest.mark.slow
def test_most_of_forty_catalogues_has_a_place_in_their_integration() -> None:
    catalogues = generate_catalogues(40)
    glob = integrate(catalogue.schema for catalogue in catalogues)
    # Not much larger than what they were all made from.
    assert len(nodes_of(glob)) < 90
