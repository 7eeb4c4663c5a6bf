"""Explanations compared with lxml and the reference: they report a match if there is one, and name existing nodes.

Documents and patterns are those of the differential test, over the whole fragment; plain paths are drawn by Hypothesis.
"""

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

import pathcast
from pathcast import Subscriptions
from pathcast.documents.expanded_name_table import local_part
from pathcast.matching.explain import Explanation, Finding, Place
from pathcast.matching.explain.condition_node_sets import path_of
from pathcast.matching.reference.pattern_embedding import Embedding
from pathcast.patterns import Pattern
from pathcast.patterns.parsing.xpath_parser import parse_printed
from pathcast.patterns.tree_pattern import Condition, Node
from tests import oracle
from tests.corpus import Namespaces, cases
from tests.generators import NAMESPACES, expression, random_document, random_pattern

seeds = st.integers(0, 1 << 32)
spaces = st.sampled_from([NAMESPACES, "ignore"])
_STEP = re.compile(r"/(@?)((?:Q\{[^}]*\})?[^/\[\]{}]+|text\(\))(\[\d+\])?")


class Asked:
    """A document, and explanations of some patterns on it."""

    def __init__(self, seed: int, namespaces: Namespaces, patterns: int = 12) -> None:
        random = Random(seed)
        source = random_document(random, odd=random.choice((0.3, 0.9)))
        self.data, self.encoding = source.data, source.encoding or "utf-8"
        self.namespaces = namespaces
        self.tree = oracle.read(self.data)
        root = self.tree.getroot()
        self.expressions = [expression(random_pattern(random, root), random) for _ in range(patterns)]
        subscriptions = Subscriptions(namespaces=namespaces)
        numbers = subscriptions.add_many(self.expressions)
        matcher = subscriptions.compile(engine="reference", entities="expand")
        self.explanations = [matcher.explain(self.data, number) for number in numbers]

    def found(self, path: str) -> list[etree._Element | str]:
        """The node that lxml finds at the path of a place."""
        steps = _STEP.findall(path)
        assert "".join("/" + "".join(step) for step in steps) == path
        result = self.tree.xpath("".join(map(self._step, steps)), namespaces=NAMESPACES)
        assert isinstance(result, list)
        return result

    def _step(self, step: tuple[str, str, str]) -> str:
        at, name, position = step
        if name == "text()":
            return f"/text(){position}"
        if name.startswith("Q{"):
            uri, _, local = name[2:].partition("}")
            return f"/{at}*[namespace-uri() = '{uri}' and local-name() = '{local}']{position}"
        if self.namespaces == "ignore":
            return f"/{at}*[local-name() = '{name}']{position}"
        return f"/{at}{name}{position}"


def all_findings(explanation: Explanation) -> Iterator[Finding]:
    waiting = list(explanation.steps)
    while waiting:
        finding = waiting.pop()
        yield finding
        waiting.extend(finding.parts)


def all_places(explanation: Explanation) -> Iterator[Place]:
    for finding in all_findings(explanation):
        yield from finding.places
        if finding.elsewhere is not None:
            yield finding.elsewhere.place


@pytest.mark.slow
def test_every_case_of_the_corpus_is_explained_as_it_should_be() -> None:
    for case in cases():
        subscriptions = Subscriptions(namespaces=case.namespaces)
        number = subscriptions.add(case.pattern)
        explanation = subscriptions.compile(engine="reference").explain(case.document, number)
        assert explanation.matches == case.expected, case.id
        assert explanation.matches == (explanation.nearest == "")


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(seeds, spaces)
def test_it_says_match_exactly_when_lxml_does(seed: int, namespaces: Namespaces) -> None:
    asked = Asked(seed, namespaces)
    for text, explanation in zip(asked.expressions, asked.explanations, strict=True):
        assert explanation.matches == oracle.answer(oracle.ask(text, namespaces), asked.tree), text
        assert explanation.matches == all(step.holds for step in explanation.steps)
        assert explanation.matches == (explanation.misses == ())
        assert str(explanation)
        shown = explanation.as_dict()
        assert json.loads(json.dumps(shown)) == shown


@pytest.mark.slow
@settings(deadline=None, max_examples=40)
@given(seeds, spaces)
def test_every_place_that_is_named_is_there(seed: int, namespaces: Namespaces) -> None:
    asked = Asked(seed, namespaces)
    text = asked.data.decode(asked.encoding)
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for explanation in asked.explanations:
        for place in all_places(explanation):
            nodes = asked.found(place.path)
            # If namespaces are ignored, several attributes can have one local name.
            assert len(nodes) == 1 or ("@" in place.path and namespaces == "ignore"), place
            if not isinstance(nodes[0], str):
                element = nodes[0]
            else:
                assert place.value is None or any(_shows(place.value, str(node)) for node in nodes)
                (element,) = asked.found(re.sub(r"/(@[^/]*|text\(\)(\[\d+\])?)$", "", place.path))
            assert place.value is None or isinstance(nodes[0], str) or _shows(place.value, element.xpath("string()"))
            tag = f"{element.prefix}:{local_part(element.tag)}" if element.prefix else element.tag
            begin = lines[place.line - 1][place.column - 1 :]
            if not begin.startswith("&"):  # the content of an entity has the location of its reference
                assert begin.startswith(f"<{local_part(tag)}"), place
                # libxml2 takes the line where the tag ends, and knows no line end but \n.
                assert element.sourceline == place.line or ">" not in begin or "\r" in text


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(seeds, spaces)
def test_steps_of_a_match_are_satisfied_by_nodes_below_each_other(seed: int, namespaces: Namespaces) -> None:
    for explanation in Asked(seed, namespaces).explanations:
        for finding in all_findings(explanation):
            if finding.kind == "step" and finding.places:
                name = finding.text.lstrip("./")
                labels = {re.sub(r"\[\d+\]$", "", _last(place.path)) for place in finding.places}
                assert name == "*" or not finding.holds or labels == {name}
                assert len(finding.places) == min(finding.count, 3)
        if explanation.matches:
            for above, below in pairwise(explanation.steps):
                outer, inner = above.places[0].path, below.places[0].path
                assert inner.startswith(outer + "/")
                if not below.text.startswith("//"):
                    assert inner == f"{outer}/{_last(inner)}"


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(seeds, spaces)
def test_a_miss_is_the_first_thing_that_nothing_satisfies(seed: int, namespaces: Namespaces) -> None:
    """The part before it can be satisfied, but not together with it: by the reference, on the truncated pattern."""
    asked = Asked(seed, namespaces)
    document = pathcast.documents.read(asked.data, entities="expand")

    def same_name(number: int, wanted: str) -> bool:
        name = document.batch.name_of(number)
        return (local_part(name) if namespaces == "ignore" else name) == wanted

    embedding = Embedding(document, same_name)
    for explanation in asked.explanations:
        if explanation.matches:
            continue
        *before, last = explanation.steps
        assert all(step.holds for step in before) and not last.holds
        pattern = parse_printed(explanation.xpath, namespaces)
        assert pattern.root is not None
        steps = path_of(pattern.root)[: len(explanation.steps)]
        predicates = [list(step.predicates) for step in steps]
        tried = len(last.parts)
        assert [part.holds for part in last.parts] == [True] * (tried - 1) + [False] * (tried > 0)
        with_it = [*predicates[:-1], predicates[-1][:tried]]
        without = [*predicates[:-1], predicates[-1][: tried - 1]] if tried else predicates[:-1]
        nodes = [step.node for step in steps]
        assert not embedding.matches(cut_short(nodes, with_it))
        assert not without or embedding.matches(cut_short(nodes[: len(without)], without))


def cut_short(nodes: list[Node], predicates: list[list[Condition]]) -> Pattern:
    below: tuple[Node, ...] = ()
    for node, conditions in zip(reversed(nodes), reversed(predicates), strict=True):
        below = (Node(node.axis, node.test, (*conditions, *below)),)
    return Pattern(below[0])


# Plain paths and small documents, by Hypothesis.

names = st.sampled_from("abc")
elements = st.recursive(
    names.map(lambda name: f"<{name}/>"),
    lambda inner: st.tuples(names, st.lists(inner, max_size=3)).map(lambda e: f"<{e[0]}>{''.join(e[1])}</{e[0]}>"),
    max_leaves=8,
)
paths = st.lists(st.tuples(st.sampled_from(["/", "//"]), st.sampled_from("abc*")), min_size=1, max_size=6)


@pytest.mark.slow
@settings(deadline=None, max_examples=400)
@given(elements, paths)
def test_of_a_plain_path_the_longest_prefix_that_is_there_is_found(document: str, path: list[tuple[str, str]]) -> None:
    subscriptions = Subscriptions()
    number = subscriptions.add("".join(axis + test for axis, test in path))
    explanation = subscriptions.compile(engine="reference").explain(document, number)
    steps = re.findall(r"//?[^/]+", explanation.pattern)
    there = [oracle.matches("".join(steps[:length]), document.encode()) for length in range(1, len(steps) + 1)]
    assert sum(step.holds for step in explanation.steps) == sum(there)
    assert explanation.matches == all(there)


@pytest.mark.slow
@settings(deadline=None, max_examples=200)
@given(st.lists(st.integers(-50, 50), min_size=1, max_size=8), st.integers(-60, 60), st.sampled_from(["@n", ".", "b"]))
def test_of_numbers_the_nearest_is_shown(values: list[int], wanted: int, where: str) -> None:
    written = {"@n": "<a n='{}'/>", ".": "<a>{}</a>", "b": "<a><b>{}</b></a>"}[where]
    document = "<r>" + "\n".join(written.format(value) for value in values) + "</r>"
    subscriptions = Subscriptions()
    number = subscriptions.add(f"//a[{where} = {wanted}]")
    explanation = subscriptions.compile(engine="reference").explain(document, number)
    assert explanation.matches == (wanted in values)
    if not explanation.matches:
        (miss,) = explanation.misses
        nearest = min(values, key=lambda value: abs(value - wanted))
        assert miss.places[0].value == str(nearest)
        assert miss.places[0].line == values.index(nearest) + 1


def _last(path: str) -> str:
    return re.split(r"/(?![^{]*\})", path)[-1]


def _shows(shown: str, value: str) -> bool:
    """Whether the shown value is the whole value, its beginning, or a piece of it."""
    if shown.startswith("…") and len(value) > 60:
        return len(shown) <= 202 and shown[1:].removesuffix("…") in value
    return shown == (value if len(value) <= 200 else value[:200] + "…")
