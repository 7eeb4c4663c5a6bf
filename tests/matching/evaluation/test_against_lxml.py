"""Full evaluation agrees with lxml on any expression of XPath 1.0, drawn from its grammar."""

import itertools
from random import Random

import pytest

import pathcast
from pathcast.documents import read_batch
from pathcast.matching.evaluation import CompiledExpression, NodesOfBatch
from pathcast.patterns.xpath import ExpressionParser
from tests import oracle
from tests.generators.xpath import NAMESPACES, Expressions, document

DOCUMENTS, EXPRESSIONS, ROUNDS_A_TEST = 12, 60, 20
# In long runs, more documents per expression: compiling an expression takes longer than evaluating it.
MORE_DOCUMENTS, ROUNDS = 50, 3_400
WORK = 1 << 22


def differences(seed: int, count: int = DOCUMENTS) -> list[tuple[str, str, bool]]:
    """Expressions and documents on which the answers differ, with that of lxml."""
    random = Random(seed)
    documents = [document(random) for _ in range(count)]
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


def differences_of_the_engine(seed: int) -> list[tuple[str, set[str]]]:
    """Documents for which the default engine does not find the expressions that lxml finds, with these."""
    random = Random(seed)
    documents = [document(random) for _ in range(MORE_DOCUMENTS)]
    texts = [Expressions(random).subscription() for _ in range(EXPRESSIONS)]
    subscriptions = pathcast.Subscriptions(NAMESPACES)
    subscriptions.add_many(texts)
    asked = [oracle.ask(text, NAMESPACES) for text in texts]
    found = []
    for text, matches in zip(documents, subscriptions.compile().match_many(documents), strict=True):
        tree = oracle.read(text.encode())
        right = {number for number, question in enumerate(asked, 1) if oracle.answer(question, tree)}
        if wrong := right ^ set(matches.ids.tolist()):
            found.append((text, {texts[number - 1] for number in wrong}))
    return found


@pytest.mark.slow
def test_full_evaluation_agrees_with_lxml_on_millions_of_pairs(request: pytest.FixtureRequest) -> None:
    for seed in range(10_000, 10_000 + (ROUNDS if request.config.getoption("--long") else 5)):
        assert not differences(seed, MORE_DOCUMENTS), f"seed {seed}"


@pytest.mark.slow
def test_the_default_engine_agrees_with_lxml_on_millions_of_pairs(request: pytest.FixtureRequest) -> None:
    for seed in range(100_000, 100_000 + (ROUNDS if request.config.getoption("--long") else 5)):
        assert not differences_of_the_engine(seed), f"seed {seed}"
