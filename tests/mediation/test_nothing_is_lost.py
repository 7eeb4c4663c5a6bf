"""Integrated schemas: every document can be rewritten, and keeps every value at a place of the global schema."""

from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pathcast
from pathcast.documents import read
from pathcast.mediation import Mediator, SchemaNode, SchemaTree, infer_tree
from pathcast.mediation.mappings import item_of, to_bytes
from pathcast.mediation.mappings.document_object_tree import Item
from pathcast.mediation.mappings.schema_mapping import read_tree
from pathcast.mediation.schemas import nodes_of
from tests.mediation.drawn import drawn_tree

WORDS = ("ada", "kim", "2023-01-05", "17", "3.50", "EUR", "x@y.example")


def valid_document(random: Random, tree: SchemaTree) -> Item:
    """A document that the tree allows; every value is different."""
    count = 0

    def value() -> str:
        nonlocal count
        count += 1
        return f"{random.choice(WORDS)} {count}"

    def item(node: SchemaNode) -> Item:
        made = Item(node.name, {name: value() for name in node.attributes})
        if node.has_text:
            made.content.append(value())
        for child in node.children:
            least, most = (0 if child.cardinality in ("?", "*") else 1), (3 if child.repeats else 1)
            made.content.extend(item(child) for _ in range(random.randint(least, most)))
        return made

    return item(tree.root)


def values_of(root: Item) -> Counter[str]:
    values = Counter(value for item in root.walk() for value in item.attributes.values())
    return values + Counter(text for item in root.walk() for text in item.content if isinstance(text, str))


def paths_of(item: Item, above: str = "") -> set[str]:
    path = f"{above}/{item.name}" if above else item.name
    found = {path, *(f"{path}/@{name}" for name in item.attributes)}
    return found.union(*(paths_of(child, path) for child in item.elements))


def check(mediator: Mediator, documents: dict[str, list[Item]]) -> None:
    places = set(nodes_of(mediator.global_schema))
    for name, items in documents.items():
        for item in items:
            rewritten = item_of(read(mediator.rewrite(to_bytes(item), name)))
            assert values_of(item).keys() <= values_of(rewritten).keys()
            assert paths_of(rewritten) <= places


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32), st.booleans())
def test_every_value_of_any_document_has_a_place(seed: int, with_samples: bool) -> None:
    random = Random(seed)
    trees = {name: drawn_tree(random) for name in ("one", "two", "three")}
    if random.random() < 0.5:
        root = trees["two"].root
        trees["two"] = SchemaTree(SchemaNode("other", "", root.has_text, root.attributes, root.children))
    documents = {name: [valid_document(random, tree) for _ in range(3)] for name, tree in trees.items()}
    schemas = {name: infer_tree(map(to_bytes, items)) for name, items in documents.items()} if with_samples else trees
    check(Mediator.integrate(schemas), documents)


def test_unrelated_schemas_become_two_subtrees() -> None:
    staff = read_tree("staff\n  person+ @id\n    name #text\n    room #text\n    phone #text")
    plant = read_tree("greenhouse @since\n  orchid*\n    soil @ph\n    humidity #text")
    mediator = Mediator.integrate({"staff": staff, "plants": plant})
    assert str(mediator.global_schema).splitlines()[-5:] == [
        "  greenhouse?", "    since? #text", "    orchid*", "      soil? @ph", "      humidity? #text"
    ]  # fmt: skip
    document = "<greenhouse since='1900'><orchid><soil ph='6'/><humidity>80</humidity></orchid></greenhouse>"
    assert mediator.rewrite(document, "plants") == (
        b'<staff><greenhouse><since>1900</since><orchid><soil ph="6"/><humidity>80</humidity></orchid>'
        b"</greenhouse></staff>"
    )
    subscriptions = pathcast.Subscriptions()
    subscriptions.add_many(["//orchid[humidity > 70]", "//greenhouse[since = 1900]/orchid", "//person"])
    for rewriting in ("events", "engine", "static", "queries"):
        assert mediator.compile(subscriptions, rewriting).match(document, "plants").ids.tolist() == [1, 2]
