"""For plain paths, matches follow from the set of schema nodes of a document."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pathcast
from pathcast.mediation import Downgrade, Exchange, Insert, Mapping, Mediator, Operator, Rename, ToElement, Upgrade
from pathcast.mediation.mappings.document_object_tree import to_bytes
from pathcast.mediation.mappings.operators_by_schema_node import Plan
from pathcast.mediation.rewriting.label_path_rewriting import global_paths, is_by_paths
from tests.mediation.drawn import drawn_document, drawn_operators, drawn_tree
from tests.mediation.test_mapping_operators import TREE

OPERATORS: list[Operator] = [
    Rename("r/a", "A"),
    ToElement("r/a", "k"),
    Insert("r/a", ("p", "q"), frozenset({"b"})),
    Upgrade("r/a", frozenset({"c"})),
]


def test_each_node_has_one_path_in_the_global_schema() -> None:
    nodes, attributes = global_paths(Plan(TREE, OPERATORS))
    assert dict(zip(TREE.paths, map("/".join, nodes), strict=True)) == {
        "r": "r", "r/a": "r/A", "r/a/b": "r/A/p/q/b", "r/a/b/e": "r/A/p/q/b/e", "r/a/c": "r/c", "r/a/d": "r/A/d",
        "r/x": "r/x",
    }  # fmt: skip
    assert attributes == [("r", "A", "k")]


def test_places_that_depend_on_what_stands_beside_them_are_left_to_rewriting() -> None:
    assert is_by_paths(Plan(TREE, OPERATORS))
    assert not is_by_paths(Plan(TREE, [Downgrade("r/a", frozenset({"c"}), "b")]))
    assert not is_by_paths(Plan(TREE, [Exchange("r/a", "b")]))


def matcher_of(xpaths: list[str]):
    mediator = Mediator(TREE)
    mediator.add(Mapping("x", TREE, tuple(OPERATORS)))
    subscriptions = pathcast.Subscriptions()
    subscriptions.add_many(xpaths)
    return mediator.compile(subscriptions)


def test_documents_are_not_rewritten_unless_they_have_to_be() -> None:
    matcher = matcher_of(["/r/A/k", "//q/b", "/r/c", "//unknown", "/r/a"])
    document = "<r><a k='1'><b/></a><a><c/></a></r>"
    assert matcher.match(document, "x").ids.tolist() == [1, 2, 3]
    assert matcher.match(document, "x").ids.tolist() == [1, 2, 3]
    assert matcher.statistics() == {"documents": 2, "by paths": 2, "held": 0, "delegated": 0}
    assert matcher.match("<r><a><b><unknown/></b></a></r>", "x").ids.tolist() == [2, 4]
    assert matcher.statistics()["by paths"] == 2
    found = list(matcher.match_many(["<r>", document, "<r><unknown/></r>", "<s/>"], "x", errors="return"))
    assert [found[1].ids.tolist(), found[2].ids.tolist()] == [[1, 2, 3], [4]]
    assert all(isinstance(found[place], pathcast.PathcastError) for place in (0, 3))


def test_subscriptions_that_change_are_followed() -> None:
    matcher = matcher_of(["/r/A/k"])
    document = "<r><a k='1'/></r>"
    assert matcher.match(document, "x").ids.tolist() == [1]
    subscriptions = matcher.matcher.subscriptions
    second = subscriptions.add("//A")
    assert matcher.match(document, "x").ids.tolist() == [1, second]
    subscriptions.remove(1)
    assert matcher.match(document, "x").ids.tolist() == [second]
    third = subscriptions.add("//A[k = 1]")
    assert matcher.match(document, "x").ids.tolist() == [second, third]


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["automaton", "reference", "yfilter"])
@settings(max_examples=40)
@given(seed=st.integers(0, 2**32))
def test_answers_are_those_of_the_rewritten_document(engine: str, seed: int) -> None:
    random = Random(seed)
    tree = drawn_tree(random)
    operators = drawn_operators(random, tree, 10, without=(Exchange, Downgrade))
    mediator = Mediator(tree)
    mediator.add(Mapping("x", tree, tuple(operators)))
    names = [*"abcrABPQN*", "unknown"]
    subscriptions = pathcast.Subscriptions()
    for _ in range(12):
        steps = (random.choice(("/", "//")) + random.choice(names) for _ in range(random.randint(1, 4)))
        subscriptions.add("".join(steps))
    by_paths, static = mediator.compile(subscriptions, engine=engine), mediator.compile(subscriptions, "static")
    for _ in range(3):
        document = to_bytes(drawn_document(random, tree))
        assert by_paths.match(document, "x").ids.tolist() == static.match(document, "x").ids.tolist(), operators
