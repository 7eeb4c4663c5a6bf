"""Schema integration: the global schema covers each local one, and never loses nodes."""

import pytest

from pathcast.errors import MappingError
from pathcast.mediation import Mediator, infer_tree
from pathcast.mediation.mappings.schema_mapping import read_tree
from pathcast.mediation.schemas.schema_integration import extended, integrate
from pathcast.mediation.schemas.schema_tree import nodes_of
from pathcast_lab.workloads.course_catalogues import generate_catalogues

STAFF = read_tree("staff\n  person+ @id\n    name #text\n    room #text")
OTHER = read_tree("staff\n  person* @id @since\n    name #text\n    phone+ #text\n      note? #text")


def test_what_only_one_has_is_optional() -> None:
    assert str(integrate([STAFF, OTHER]).tree).splitlines() == [
        "staff",
        "  person* @id @since",
        "    name #text",
        "    phone* #text",
        "      note? #text",
        "    room? #text",
    ]


def test_schemas_that_say_the_same_integrate_to_the_first() -> None:
    assert integrate([STAFF, STAFF]).tree == STAFF
    with pytest.raises(MappingError, match="no schemas to integrate; give at least one"):
        integrate([])


def test_what_is_left_over_in_two_small_schemas_is_not_one_thing() -> None:
    books, prices = read_tree("book\n  title #text\n  author #text"), read_tree("book\n  title #text\n  price #text")
    found = integrate([books, prices])
    assert str(found.tree).splitlines() == ["book", "  title #text", "  author? #text", "  price? #text"]
    assert found.places[1]["book/price"] == "book/price"
    assert not any(each.merged for each in found.decisions if each.local == "book/price")


def test_values_decide_what_is_merged() -> None:
    ours = infer_tree([f"<course><title>{text}</title><tutor>{name}</tutor></course>" for text, name in _TAUGHT])
    theirs = infer_tree([f"<course><host>{name}</host><name>{text}</name></course>" for text, name in _TAUGHT])
    found = integrate([ours, theirs])
    assert str(found.tree) == str(ours)
    assert found.places[1] == {
        "course": "course",
        "course/host": "course/tutor",
        "course/name": "course/title",
    }
    assert {each.local: each.merged for each in found.decisions} == {"course/host": True, "course/name": True}


_TAUGHT = [("Logic", "Ada Bell"), ("Graph theory", "Kim Moss"), ("Sets", "Lee Ross"), ("Number theory", "Jo Lind")]


def test_what_is_not_merged_keeps_its_children() -> None:
    stocks, reviews = (
        read_tree(f"feed\n  {name}\n    symbol #text\n    {value} #text")
        for name, value in (("stock", "per"), ("review", "grade"))
    )
    tree, places = extended(stocks, reviews, {"feed": "feed"})
    assert str(tree).splitlines() == [
        "feed", "  stock?", "    symbol? #text", "    per? #text", "  review?", "    symbol? #text", "    grade? #text",
    ]  # fmt: skip
    assert set(places) == set(nodes_of(reviews))


def test_two_local_nodes_never_get_one_place() -> None:
    glob, local = read_tree("r @k\n  a #text"), read_tree("r @j @k\n  b #text\n  a #text")
    tree, places = extended(glob, local, {"r": "r", "r/b": "r/a", "r/@j": "r/@k"})
    assert places["r/a"] == "r/a-2"
    assert places["r/@k"] == "r/@k-2"
    assert len(set(places.values())) == len(places) == len(nodes_of(tree))


def test_a_global_schema_is_stable_when_schemas_are_added() -> None:
    schemas = [catalogue.schema for catalogue in generate_catalogues(8)]
    before = set(nodes_of(integrate(schemas[:1]).tree))
    glob = schemas[0]
    for schema in schemas[1:]:
        glob, _ = extended(glob, schema, {glob.root.name: glob.root.name})
        assert before <= set(nodes_of(glob))
        before = set(nodes_of(glob))


def test_what_the_global_schema_has_stays_where_a_local_one_has_another_thing_of_that_name() -> None:
    glob, local = read_tree("r\n  a\n    b #text\n  c"), read_tree("r\n  a #text\n    d")
    assert extended(glob, local, {"r": "r"})[0] == read_tree("r\n  a #text\n    b? #text\n    d?\n  c?")


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
    glob = integrate(catalogue.schema for catalogue in catalogues).tree
    # Not much larger than what they were all made from.
    assert len(nodes_of(glob)) < 90
