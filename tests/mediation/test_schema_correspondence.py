"""Correspondences follow from values, names and places; one optimal assignment chooses."""

from itertools import permutations
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathcast.mediation import Pair, SchemaTree, correspond, infer_tree
from pathcast.mediation.correspondence.optimal_assignment import optimal_assignment
from pathcast.mediation.correspondence.twin_documents import find_twins, twin_likeness
from pathcast.mediation.mappings import to_bytes as bytes_of
from pathcast.mediation.mappings.schema_mapping import read_tree
from pathcast.mediation.schemas import nodes_of
from tests.mediation.drawn import drawn_document, drawn_tree

PEOPLE = [
    ("Ada Bell", "Hamburg", "2023-01-05", "ada@x.example"),
    ("Kim Moss", "Lyon", "2023-02-07", "kim@y.example"),
    ("Lee Ross", "Leeds", "2023-03-09", "lee@z.example"),
    ("Jo Lind", "Oslo", "2023-04-11", "jo@w.example"),
]
OURS = [f"<r><p><f1>{n}</f1><f2>{c}</f2><f3>{d}</f3><f4>{e}</f4></p></r>" for n, c, d, e in PEOPLE]
THEIRS = [
    f"<s><q g1='{e}'><g2>{'.'.join(reversed(d.split('-')))}</g2><g3>{c}</g3><g4>{n}</g4></q></s>"
    for n, c, d, e in PEOPLE
]


def found(pairs: list[Pair]) -> dict[str, str]:
    return {pair.local: pair.glob for pair in pairs}


def test_values_alone_show_what_corresponds() -> None:
    pairs = correspond(infer_tree(THEIRS), infer_tree(OURS))
    assert found(pairs) == {
        "s": "r", "s/q": "r/p", "s/q/@g1": "r/p/f4", "s/q/g2": "r/p/f3", "s/q/g3": "r/p/f2", "s/q/g4": "r/p/f1"
    }  # fmt: skip
    assert "values in common 100%" in pairs[2].why()


def test_without_values_names_decide() -> None:
    local = read_tree("order\n  seller\n    town #text\n  buyer\n    town #text")
    glob = read_tree("purchase\n  customer\n    city #text\n  vendor\n    city #text")
    assert found(correspond(local, glob)) == {
        "order": "purchase", "order/seller": "purchase/vendor", "order/seller/town": "purchase/vendor/city",
        "order/buyer": "purchase/customer", "order/buyer/town": "purchase/customer/city",
    }  # fmt: skip


def test_documentation_is_evidence() -> None:
    glob = read_tree("r\n  x1 #text\n  x2 #text")
    documented = SchemaTree(glob.root, {}, {"r/x1": "Date of the invoice", "r/x2": "Name of the supplier"})
    local = read_tree("r\n  supplierName #text\n  invoiceDate #text")
    evidence = {pair.local: pair.evidence["documentation"] for pair in correspond(local, documented, least=0.0)[1:]}
    assert all(much > 0.3 for much in evidence.values())
    assert evidence.keys() <= {"r/supplierName", "r/invoiceDate"}


def test_a_root_corresponds_to_the_root_only() -> None:
    local = read_tree("rss\n  channel\n    title #text")
    glob = read_tree("feed\n  entry\n    rss\n      title #text\n    title #text")
    pairs = found(correspond(local, glob, least=0.0))
    assert pairs["rss"] == "feed"
    assert "feed/entry/rss" not in pairs.values()


def test_pairs_that_are_known_are_kept_and_exclude_others() -> None:
    pairs = correspond(infer_tree(THEIRS), infer_tree(OURS), known={"s/q/g3": "r/p/f1"})
    assert found(pairs)["s/q/g3"] == "r/p/f1"
    assert found(pairs).get("s/q/g4") != "r/p/f1"
    assert {pair.confidence for pair in pairs if pair.local == "s/q/g3"} == {1.0}


def test_documents_that_say_the_same_are_recognised() -> None:
    ours, theirs = infer_tree(OURS), infer_tree(THEIRS[::-1])
    here, there = (list(tree.samples.values()) for tree in (ours, theirs))
    assert find_twins(here, there) == {0: 3, 1: 2, 2: 1, 3: 0}
    assert find_twins(here, list(infer_tree(["<s><a>other</a></s>"]).samples.values())) == {}
    agree, much = twin_likeness([ours.samples["r/p/f2"]], [theirs.samples["s/q/g3"], theirs.samples["s/q/g4"]], {0: 3})
    assert (agree[0, 0], agree[0, 1]) == (1, 0)
    assert 0 < much[0, 0] < 1
    assert much[0, 1] == 0


@pytest.mark.slow
@settings(max_examples=30)
@given(st.integers(0, 2**32))
def test_a_correspondence_is_one_to_one_and_the_same_each_time(seed: int) -> None:
    random = Random(seed)
    trees = []
    for _ in range(2):
        tree = drawn_tree(random)
        trees.append(infer_tree([bytes_of(drawn_document(random, tree)) for _ in range(3)]))
    pairs = correspond(*trees, least=0.0)
    assert len({pair.glob for pair in pairs}) == len({pair.local for pair in pairs}) == len(pairs)
    assert {pair.local for pair in pairs} <= set(nodes_of(trees[0]))
    assert all(0 <= pair.confidence <= 1 for pair in pairs)
    assert correspond(*trees, least=0.0) == pairs


@given(st.lists(st.lists(st.integers(-5, 9), min_size=4, max_size=4), min_size=3, max_size=4))
def test_no_other_choice_has_a_greater_sum(rows: list[list[int]]) -> None:
    scores = np.array(rows, dtype=float)
    best = max(
        sum(max(0.0, scores[row, column]) for row, column in enumerate(columns))
        for columns in permutations(range(4), len(rows))
    )
    chosen = optimal_assignment(scores)
    assert sum(scores[pair] for pair in chosen) == best
    assert all(scores[pair] > 0 for pair in chosen)
