"""Paths without predicates select by label paths what they select step by step."""

from random import Random

import pytest

from pathcast import Subscriptions
from pathcast.documents import read_batch
from pathcast.matching.evaluation import CompiledExpression, NodesOfBatch, label_path_index
from pathcast.matching.evaluation.document_nodes import DocumentNodes
from pathcast.patterns.xpath import ExpressionParser
from tests.generators.xpath import document

NAMES = ("a", "b", "c", "*")
WORK = 1 << 20


def path(random: Random) -> str:
    return "".join(random.choice(("/", "//")) + random.choice(NAMES) for _ in range(random.randint(1, 4)))


def selected(nodes: DocumentNodes, text: str) -> list[int]:
    expression = CompiledExpression(ExpressionParser(text, None, 256, 64).subscription())
    return expression.selected(nodes, WORK)


@pytest.mark.parametrize("seed", range(10))
def test_a_path_selects_the_same_nodes_step_by_step(seed: int) -> None:
    random = Random(seed)
    batch = NodesOfBatch(read_batch([document(random) for _ in range(10)]), ignore_namespaces=False)
    any_ = CompiledExpression(ExpressionParser("/a", None, 256, 64).subscription())
    for number in range(10):
        nodes = batch.of(number, any_)
        for _ in range(40):
            text = path(random)
            # The parentheses make it a path from the document node: no path from the document.
            steps = f"(/){text}"
            assert selected(nodes, text) == selected(nodes, steps), text
            assert selected(nodes, f"{text}[@x]") == selected(nodes, f"{steps}[@x]"), text
            assert selected(nodes, f"{text}[@x]/*[2]") == selected(nodes, f"{steps}[@x]/*[2]"), text


def test_label_paths_of_many_documents_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(label_path_index, "_MOST_PATHS", 50)
    paths = label_path_index.LabelPaths()
    first = paths.for_document(30)
    assert paths.for_document(20) is first
    second = paths.for_document(1)
    assert second is not first
    assert paths.for_document(1) is second


def test_answers_are_right_where_label_paths_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(label_path_index, "_MOST_PATHS", 50)
    monkeypatch.setattr(label_path_index, "_MOST_REMEMBERED", 5)
    subscriptions = Subscriptions()
    subscriptions.add("//b[@x = @y]")
    matcher = subscriptions.compile()
    for number in range(100):
        text = f"<r><n{number % 30}><b x='1' y='{number % 2}'/></n{number % 30}></r>"
        assert len(matcher.match(text)) == number % 2
