"""Rewriting inside the engine: a repeated subtree is walked once, and matches are those of the rewritten document."""

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pathcast
from pathcast.errors import LimitError, MappingError
from pathcast.literature.xtrie import XTrieEngine
from pathcast.mediation import Exchange, Mapping, Mediator, Operator, Rename, ToElement
from pathcast.mediation.mappings.document_object_tree import Item, to_bytes
from pathcast.mediation.mappings.operators_by_schema_node import Plan
from pathcast.mediation.mappings.schema_mapping import read_tree
from pathcast.mediation.mediator import Rewriting
from pathcast.mediation.rewriting.element_array_rewriter import EventRewriter
from pathcast.mediation.rewriting.rewriting_xtrie_engine import MediatedEngine
from tests.mediation.drawn import drawn_document, drawn_operators, drawn_tree

AUTHORS = read_tree(
    "r\n  author*\n    name #text\n      first\n    born #text\n    article*\n      title #text\n      note"
)


def matcher_of(tree, operators: list[Operator], xpaths: list[str], rewriting: Rewriting = "engine"):
    mediator = Mediator(tree)
    mediator.add(Mapping("x", tree, tuple(operators)))
    subscriptions = pathcast.Subscriptions()
    subscriptions.add_many(xpaths)
    return mediator.compile(subscriptions, rewriting)


def drawn_path(random: Random) -> str:
    """A path with predicates about structure."""
    steps = []
    for _ in range(random.randint(1, 4)):
        step = random.choice(("/", "//")) + random.choice("abcderABPQN*")
        step += f"[{random.choice('abcdABPQN*')}]" if random.random() < 0.3 else ""
        step += f"[.//{random.choice('abcdABPQN')}/{random.choice('abN*')}]" if random.random() < 0.2 else ""
        steps.append(step)
    return "".join(steps)


@pytest.mark.slow
@settings(max_examples=60)
@given(st.integers(0, 2**32))
def test_answers_are_those_of_the_rewritten_document(seed: int) -> None:
    random = Random(seed)
    tree = drawn_tree(random)
    operators = drawn_operators(random, tree, 8)
    xpaths = [drawn_path(random) for _ in range(20)]
    engine, static = (matcher_of(tree, operators, xpaths, way) for way in ("engine", "static"))
    for _ in range(3):
        document = to_bytes(drawn_document(random, tree))
        try:
            expected = static.match(document, "x").ids.tolist()
        except MappingError:
            with pytest.raises(MappingError):
                engine.match(document, "x")
            continue
        assert engine.match(document, "x").ids.tolist() == expected, operators


@pytest.mark.slow
@settings(max_examples=60)
@given(st.integers(0, 2**32))
def test_what_is_kept_of_an_exchanged_element_is_what_each_of_its_copies_means(seed: int) -> None:
    random = Random(seed)
    names = ("name", "first", "born", "title", "note", "article", "author", "*")

    def element(name: str, depth: int) -> Item:
        content: list[Item | str] = [
            element(random.choice(names[:5]), depth + 1) for _ in range(random.randrange(3) if depth < 3 else 0)
        ]
        return Item(name, content=content)

    authors = []
    for _ in range(2):
        articles = [element("article", 1) for _ in range(random.randrange(5))]
        rest = [element(name, 1) for name in ("name", "born")]
        authors.append(Item("author", content=random.sample([*articles, *rest], len(articles) + 2)))
    document = to_bytes(Item("r", content=list(authors)))
    xpaths = [
        f"/r/article[{random.choice(names)}][.//{random.choice(names)}]//{random.choice(names)}[{random.choice(names)}]"
        for _ in range(10)
    ] + [f"//{random.choice(names)}[*/{random.choice(names)}]/author[{random.choice(names)}//*]" for _ in range(10)]
    operators: list[Operator] = [Exchange("r/author", "article")]
    expected = matcher_of(AUTHORS, operators, xpaths, "static").match(document, "x").ids.tolist()
    assert matcher_of(AUTHORS, operators, xpaths).match(document, "x").ids.tolist() == expected


def test_a_repeated_subtree_is_walked_once() -> None:
    operators: list[Operator] = [Exchange("r/author", "article")]
    matcher = matcher_of(AUTHORS, operators, ["/r/article[title]/author/name"])
    author = "<author><name><first/></name><born/>%s</author>"
    for count in (1, 8):
        before = matcher.matcher.statistics()["rows looked at"]
        document = f"<r>{author % ('<article><title/></article>' * count)}</r>"
        assert matcher.match(document, "x").ids.tolist() == [1]
        looked = matcher.matcher.statistics()["rows looked at"] - before
        assert looked <= 4 * count + 4, "the name of an author is looked at for the first article alone"


def test_values_that_moving_has_changed_are_decided_on_the_rewritten_document() -> None:
    tree = read_tree("r\n  a* @k @l #text\n    b #text\n    c #text")
    operators: list[Operator] = [ToElement("r/a", "k"), Rename("r/a/@l", "m")]
    xpaths = ["//a[k = '1']", "//a[@m = '2']", "//a[@l]", "//a[. = '1xy']", "//b[. = 'x']", "//k[@z]", "//a/b[not(@q)]"]
    matcher = matcher_of(tree, operators, xpaths)
    assert matcher.match("<r><a k='1' l='2'><b>x</b><c>y</c></a></r>", "x").ids.tolist() == [1, 2, 4, 5, 7]
    assert matcher.statistics()["delegated"] == 1
    plain = matcher_of(tree, [Rename("r/a", "A")], ["//A[@k = 1][b = 'x']", "//A[c]"])
    assert plain.match("<r><a k='1'><b>x</b><c/></a></r>", "x").ids.tolist() == [1, 2]
    assert plain.statistics()["delegated"] == 0, "nothing that is tested has moved"


def test_a_batch_may_hold_documents_that_can_t_be_rewritten() -> None:
    tree = read_tree("r\n  a?\n    b")
    matcher = matcher_of(tree, [Exchange("r", "a")], ["/a/r", "//b"])
    found = list(
        matcher.match_many(["<r><a><b/></a></r>", "<r><a/><a/></r>", "<s/>", "<r", "<r><b/></r>"], "x", "return")
    )
    assert [found[0].ids.tolist(), found[4].ids.tolist()] == [[1, 2], [2]]
    assert "several children 'a'" in str(found[1])
    assert "its schema has the root 'r'" in str(found[2])
    assert isinstance(found[3], pathcast.PathcastError)


def test_documents_that_would_become_too_large_or_very_deep() -> None:
    subscriptions = pathcast.Subscriptions()
    subscriptions.add("//first")
    matcher = subscriptions.compile("xtrie")
    names = matcher.subscriptions.table.names
    rewriter = EventRewriter(Plan(AUTHORS, [Exchange("r/author", "article")]), names, limit=50)
    reader = matcher._reader
    assert isinstance(matcher.engine, XTrieEngine)
    engine = MediatedEngine(matcher.engine)
    large = b"<r><author>" + b"<article><title/><note/></article>" * 40 + b"<name/></author></r>"
    deep = b"<r>" + b"<x>" * 40 + b"<first/>" + b"</x>" * 40 + b"</r>"
    found = engine.match(reader.read([large, deep]), rewriter)
    assert isinstance(found.errors[0], LimitError)
    assert np.diff(found.offsets).tolist() == [0, 1]


def test_another_engine_is_refused() -> None:
    mediator = Mediator(AUTHORS)
    with pytest.raises(ValueError, match="rewriting='engine' needs engine='xtrie' or None, got engine='automaton'"):
        mediator.compile(pathcast.Subscriptions(), "engine", engine="automaton")
