"""Subscriptions rewritten for a schema match its documents as the originals match the rewritten documents."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pathcast
from pathcast.documents import read
from pathcast.mediation import Downgrade, Exchange, Insert, Mapping, Mediator, Operator, Rename, ToElement, Upgrade
from pathcast.mediation.mappings.document_object_tree import item_of, to_bytes
from pathcast.mediation.mappings.object_tree_rewriter import rewrite
from pathcast.mediation.mappings.operators_by_schema_node import Plan
from pathcast.mediation.rewriting.query_rewriter import NotExpressible, QueryRewriting
from pathcast.patterns import parse
from tests import oracle
from tests.generators import expression, random_pattern
from tests.mediation.drawn import drawn_document, drawn_operators, drawn_tree
from tests.mediation.test_mapping_operators import TREE

OPERATORS: list[Operator] = [
    Rename("r/a", "A"),
    ToElement("r/a", "k"),
    Insert("r/a", ("p",), frozenset({"b"})),
    Upgrade("r/a", frozenset({"c"})),
]


@pytest.mark.parametrize(
    ("xpath", "local"),
    [
        ("/r/A", "/r[a]"),
        ("/r/a", None),
        ("//k[. = 1]", "/r[a[(@k and @k = 1)]]"),
        ("//p/b/e", "/r[a[(b and b[e])]]"),
        ("/r[c = 'x'][A]", "/r[(a and a/c[. = 'x'])]"),
        ("//*[not(b)]", "/r"),
        ("/", "/"),
        ("//A/@l", "/r[a[@l]]"),
        ("//A/@k", None),
    ],
)
def test_a_pattern_has_its_form_in_the_local_schema(xpath: str, local: str | None) -> None:
    found = QueryRewriting(Plan(TREE, OPERATORS)).rewrite(parse(xpath))
    assert found == local or (found is not None and local is not None and parse(found) == parse(local)), found


@pytest.mark.parametrize("xpath", ["//A[. = 'x']", "//A[text() = 'x']", "//A[contains(p, 'x')]"])
def test_what_depends_on_content_that_was_moved_is_not_expressible(xpath: str) -> None:
    with pytest.raises(NotExpressible):
        QueryRewriting(Plan(TREE, OPERATORS)).rewrite(parse(xpath))


@given(st.integers(0, 2**32))
def test_a_rewritten_pattern_finds_what_the_pattern_finds_in_the_rewritten_document(seed: int) -> None:
    random = Random(seed)
    tree = drawn_tree(random)
    plan = Plan(tree, drawn_operators(random, tree, without=(Exchange, Downgrade)))
    document = to_bytes(drawn_document(random, tree))
    if b"unknown" in document:
        return
    rewritten = to_bytes(rewrite(item_of(read(document)), plan))
    sample = oracle.read(rewritten).getroot()
    for _ in range(5):
        xpath = expression(random_pattern(random, sample), random)
        try:
            local = QueryRewriting(plan).rewrite(parse(xpath))
        except NotExpressible:
            continue
        found = local is not None and oracle.matches(local, document)
        assert found == oracle.matches(xpath, rewritten), (plan.operators, xpath, local)


def test_subscriptions_that_change_are_followed() -> None:
    mediator = Mediator(TREE)
    mediator.add(Mapping("x", TREE, tuple(OPERATORS)))
    subscriptions = pathcast.Subscriptions()
    first = subscriptions.add("/r/A/k")
    matcher = mediator.compile(subscriptions, "queries")
    document = "<r><a k='1'>x</a></r>"
    assert matcher.match(document, "x").ids.tolist() == [first]
    second = subscriptions.add("//A[. = '1x']")  # not expressible
    assert matcher.match(document, "x").ids.tolist() == [first, second]
    subscriptions.remove(first)
    assert matcher.match(document, "x").ids.tolist() == [second]
    assert matcher.match("<r><z/></r>", "x").ids.tolist() == []
