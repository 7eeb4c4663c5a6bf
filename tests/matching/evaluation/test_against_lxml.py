"""Full evaluation agrees with lxml on any expression of XPath 1.0, drawn from its grammar."""

import itertools
from random import Random

import pytest

from pathcast.documents import read_batch
from pathcast.matching.evaluation import CompiledExpression, NodesOfBatch
from pathcast.patterns.xpath import ExpressionParser
from tests import oracle
from tests.generators.xpath import NAMESPACES, Expressions, document

DOCUMENTS, EXPRESSIONS, ROUNDS_A_TEST = 12, 60, 20
WORK = 1 << 22


def differences(seed: int) -> list[tuple[str, str, bool]]:
    """Expressions and documents on which the answers differ, with that of lxml."""
    random = Random(seed)
    documents = [document(random) for _ in range(DOCUMENTS)]
    trees = [oracle.read(text.encode()) for text in documents]
    nodes = NodesOfBatch(read_batch(documents), ignore_namespaces=False)
    texts = [Expressions(random).subscription() for _ in range(EXPRESSIONS)]
    compiled = [CompiledExpression(ExpressionParser(text, NAMESPACES, 256, 64).subscription()) for text in texts]
    asked = [oracle.ask(text, NAMESPACES) for text in texts]
    found = []
    for (number, tree), (text, expression, question) in itertools.product(
        enumerate(trees), zip(texts, compiled, asked, strict=True)
    ):
        right = oracle.answer(question, tree)
        if expression.holds(nodes.of(number, expression), WORK) != right:
            found.append((text, documents[number], right))
    return found


@pytest.mark.parametrize("first", range(0, 140, ROUNDS_A_TEST))
def test_full_evaluation_agrees_with_lxml(first: int) -> None:
    for seed in range(first, first + ROUNDS_A_TEST):
        assert not differences(seed), f"seed {seed}"


@pytest.mark.slow
def test_full_evaluation_agrees_with_lxml_on_millions_of_pairs(request: pytest.FixtureRequest) -> None:
    rounds = 14_000 if request.config.getoption("--long") else 20
    for seed in range(10_000, 10_000 + rounds):
        assert not differences(seed), f"seed {seed}"
