"""Rewriting element arrays agrees with the reference semantics of the operators."""

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pathcast.documents import Names, pack, unpack
from pathcast.documents.document_limits import Limits
from pathcast.documents.document_reader import Reader
from pathcast.errors import LimitError, MappingError, PathcastError
from pathcast.mediation import Exchange, Insert, Operator, SchemaTree
from pathcast.mediation.mappings.document_object_tree import item_of, to_bytes
from pathcast.mediation.mappings.object_tree_rewriter import rewrite
from pathcast.mediation.mappings.operators_by_schema_node import Plan
from pathcast.mediation.rewriting.element_array_rewriter import EventRewriter
from tests.documents.equivalence import differences
from tests.mediation.drawn import drawn_document, drawn_operators, drawn_tree
from tests.mediation.test_mapping_operators import EXAMPLES, TREE


def by_events(plan: Plan, documents: list[bytes], limit: int = 10_000) -> list[bytes | PathcastError]:
    """Each document rewritten as arrays, in one batch, and written out again."""
    names = Names()
    rewriter = EventRewriter(plan, names, limit=limit)
    batch = rewriter.rewrite(Reader(names, Limits(), "refuse").read(documents)).batch
    return [batch.errors.get(index) or to_bytes(item_of(batch[index])) for index in range(len(batch))]


def statically(plan: Plan, document: bytes, limit: int = 10_000) -> bytes | PathcastError:
    try:
        found = rewrite(item_of(Reader(Names(), Limits(), "refuse").read([document])[0]), plan, limit=limit)
    except PathcastError as error:
        return error
    return to_bytes(found)


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_operator_does_what_it_says(name: str) -> None:
    document, expected, operators = EXAMPLES[name]
    assert by_events(Plan(TREE, operators), [document.encode()]) == [expected.encode()]


@pytest.mark.slow
@given(st.integers(0, 2**32))
def test_documents_become_what_static_rewriting_makes_of_them(seed: int) -> None:
    random = Random(seed)
    tree = drawn_tree(random)
    plan = Plan(tree, drawn_operators(random, tree))
    documents = [to_bytes(drawn_document(random, tree)) for _ in range(3)]
    for found, document in zip(by_events(plan, documents), documents, strict=True):
        expected = statically(plan, document)
        if isinstance(expected, MappingError):  # more than one root
            assert isinstance(found, MappingError)
        else:
            assert found == expected, (plan.operators, document)


@given(st.integers(0, 2**32))
def test_the_arrays_are_those_of_the_document_that_they_stand_for(seed: int) -> None:
    random = Random(seed)
    tree = drawn_tree(random)
    plan = Plan(tree, drawn_operators(random, tree))
    names = Names()
    rewriter = EventRewriter(plan, names)
    reader = Reader(names, Limits(), "refuse")
    rewritten = rewriter.rewrite(reader.read([to_bytes(drawn_document(random, tree)) for _ in range(2)])).batch
    for index in range(2):
        if index in rewritten.errors:
            continue
        ours = rewritten[index].alone()
        again = reader.read([to_bytes(item_of(rewritten[index]))])
        for key in (
            "parent",
            "depth",
            "end",
            "attribute_begin",
            "text_begin",
            "text_end",
            "text_parent",
            "text_length",
        ):
            assert np.array_equal(getattr(ours, key), getattr(again, key)), key
        assert [ours.name_of(name) for name in ours.name] == [again.name_of(name) for name in again.name]
        assert [ours.text_node(k) for k in range(len(ours.text_start))] == [
            again.text_node(k) for k in range(len(again.text_start))
        ]


@given(st.integers(0, 2**32))
def test_rewritten_documents_are_packed_and_unpacked(seed: int) -> None:
    random = Random(seed)
    tree = drawn_tree(random)
    names = Names()
    rewriter = EventRewriter(Plan(tree, drawn_operators(random, tree)), names)
    documents = [to_bytes(drawn_document(random, tree)) for _ in range(3)]
    rewritten = rewriter.rewrite(Reader(names, Limits(), "refuse").read(documents)).batch
    found = unpack(*pack(rewritten), rewritten.data, rewritten.data_offsets, names, rewritten.errors)
    assert differences(rewritten, found) == []


@given(st.integers(0, 2**32))
def test_texts_that_a_comment_parts_are_one_once_they_are_rewritten(seed: int) -> None:
    random = Random(seed)
    tree = drawn_tree(random)
    plan = Plan(tree, drawn_operators(random, tree, random.randrange(3)))
    document = to_bytes(drawn_document(random, tree)).replace(b">t", b">t<!-- c -->v").replace(b"><", b"><?p?><")
    expected = statically(plan, document)
    if not isinstance(expected, MappingError):
        assert by_events(plan, [document]) == [expected]


def test_buffers_are_used_again() -> None:
    names = Names()
    rewriter = EventRewriter(Plan(TREE, [Insert("r/a", ("p",), frozenset({"b"}))]), names)
    reader = Reader(names, Limits(), "refuse")
    others = Names(["c", "p"])  # those of an engine
    for count in (1, 300, 2):  # small, too large for the buffers, small again
        batch = reader.read([b"<r>" + b'<a><b/>t<c new="1"/>u</a>' * count + b"</r>"] * 2)
        with rewriter.lent(batch, others) as (lent, _):
            assert lent.known is others
            assert lent.known_count == len(others)
            found = [to_bytes(item_of(lent[index])) for index in range(2)]
        assert found == [b"<r>" + b'<a>t<c new="1"/>u<p><b/></p></a>' * count + b"</r>"] * 2
        others.add(f"more {count}")
    assert len(rewriter._rooms) == 1


def rewritten(operators: list[Operator], documents: list[str], tree: SchemaTree = TREE, limit: int = 1000):
    names = Names()
    rewriter = EventRewriter(Plan(tree, operators), names, limit=limit)
    return rewriter.rewrite(Reader(names, Limits(), "refuse").read([document.encode() for document in documents]))


def test_a_document_that_can_t_be_rewritten_is_an_error_alone() -> None:
    large = f"<r><a>{'<b/>' * 40}{'<c/>' * 40}</a></r>"
    found = rewritten([Exchange("r/a", "b")], ["<r><a><b/></a></r>", "<s/>", large, "<r", "<r><x/></r>"]).batch
    assert {index: type(error) for index, error in found.errors.items() if index != 3} == {
        1: MappingError,
        2: LimitError,
    }
    assert 3 in found.errors
    assert to_bytes(item_of(found[0])) == b"<r><b><a/></b></r>"
    assert to_bytes(item_of(found[4])) == b"<r><x/></r>"
    assert "several children 'x'" in str(rewritten([Exchange("r", "x")], ["<r><x/><x/></r>"]).batch.errors[0])


def test_what_a_stream_would_hold_back_is_counted() -> None:
    document = "<r><a><b><e/><e/></b><c/><d/></a><a><b/></a></r>"
    assert rewritten([], [document]).held == 0
    assert rewritten([Insert("r/a", ("p",), frozenset({"b"}))], [document]).held == 3
    assert rewritten([Insert("r/a", ("p",))], [document]).held == 0, "all children can be passed on at once"
    assert rewritten([Exchange("r/a", "b")], [document]).held == 6


def test_batches_of_another_table_of_names_are_refused() -> None:
    rewriter = EventRewriter(Plan(TREE, []), Names())
    with pytest.raises(ValueError, match="was not read with the names of this EventRewriter"):
        rewriter.rewrite(Reader(Names(), Limits(), "refuse").read([b"<r/>"]))
