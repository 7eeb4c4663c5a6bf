"""Positions and counts are decided by computed attributes: the answers are lxml's, without an evaluation."""

from collections import Counter
from itertools import pairwise
from pathlib import Path
from random import Random

import numpy as np
import pytest

import pathcast
from pathcast import Subscriptions
from pathcast.documents import Names, pack, read_batch, unpack
from pathcast.matching import Tuning
from pathcast.matching.automaton.places.element_places import ElementPlaces
from pathcast.matching.table.pattern_shard_merging import compile_shard, merge_shard, packed, unpacked
from pathcast.matching.table.pattern_table import PatternTable
from pathcast.patterns import parse
from pathcast.patterns.parsing import MAX_STEPS
from tests import oracle
from tests.corpus import Namespaces
from tests.generators.xpath import NAMESPACES, document

NAMES = ("a", "b", "c", "f:a", "*")
PLACES = (
    "2", "3", "last()", "last() - 1", "position() > 1", "position() != 2", "position() < last()", "2 <= position()",
    "position() >= last() - 1", "last() > 2", "last() = 2", "position() = 1 and @x", "position() = 2 or b",
    "not(position() = 2)", "position() + 1 < last()", "position() > 1.5", "1",
)  # fmt: skip
OPERATORS = ("=", "!=", "<", "<=", ">", ">=")


class Counted:
    """Draws expressions that have counted trees."""

    def __init__(self, random: Random) -> None:
        self.random = random

    def subscription(self) -> str:
        random = self.random
        text = self.steps(random.choice(("/", "//", "//")), 1)
        match random.randrange(8):
            case 0:
                return f"(//{random.choice(NAMES)})[{random.choice(PLACES)}]{self.steps('/', 0)}"
            case 1:
                return f"count(//{random.choice(NAMES)}) {random.choice(OPERATORS)} {self.number()}"
            case 2:
                return f"/descendant::{random.choice(NAMES)}[{random.choice(PLACES)}]"
            case 3:
                return f"{text} = '{random.choice(('', '1', 'x'))}'"
            case 4:
                return f"not({text})"
            case _:
                return text

    def number(self) -> str:
        return self.random.choice(("0", "1", "2", "3", "1.5"))

    def steps(self, begin: str, depth: int) -> str:
        random, text = self.random, begin + self.step(depth)
        while random.random() < 0.5:
            axis = random.choice(("/", "/", "//"))
            text += axis + self.step(depth)
        return text

    def step(self, depth: int) -> str:
        random, name = self.random, self.random.choice(NAMES)
        text = name
        if random.random() < 0.5:
            text += f"[{random.choice(PLACES)}]"
        if depth and random.random() < 0.5:
            text += f"[{self.condition(depth - 1, name)}]"
        return text

    def condition(self, depth: int, name: str) -> str:
        random = self.random
        sibling = random.choice(("following-sibling", "preceding-sibling"))
        match random.randrange(6):
            case 0:
                return f"count({random.choice(NAMES)}) {random.choice(OPERATORS)} {self.number()}"
            case 1:
                return f"{sibling}::{random.choice((name, '*'))}"
            case 2:
                axis = f"{sibling}::{random.choice((name, '*'))}"
                return f"count({axis}) {random.choice(OPERATORS)} {self.number()}"
            case 3:
                return f"not({self.step(depth)})"
            case 4:
                return f"{self.step(depth)} and @x"
            case _:
                return self.step(depth)


class Drawn:
    """Documents and expressions of a seed, with lxml's answers."""

    def __init__(self, seed: int, expressions: int = 60, namespaces: Namespaces = NAMESPACES) -> None:
        random = Random(seed)
        self.documents = [document(random) for _ in range(12)]
        counted, drawn = Counted(random), list[str]()
        while len(drawn) < expressions:
            text = counted.subscription()
            if parse(text, namespaces).counted is not None:
                drawn.append(text)
        self.expressions = drawn
        trees = [oracle.read(text.encode()) for text in self.documents]
        asked = [oracle.ask(text, namespaces) for text in drawn]
        self.expected = [
            [number for number, question in enumerate(asked, 1) if oracle.answer(question, tree)] for tree in trees
        ]


def answers(matcher: pathcast.Matcher, documents: list[str]) -> list[list[int]]:
    return [matches.ids.tolist() for matches in matcher.match_many(documents)]


def test_most_expressions_with_positions_have_counted_trees() -> None:
    counted = Counted(Random(1))
    drawn = [parse(counted.subscription(), NAMESPACES) for _ in range(1_000)]
    opaque = [pattern for pattern in drawn if pattern.expression]
    assert len(opaque) > 600
    assert sum(pattern.counted is not None for pattern in opaque) > 0.9 * len(opaque)


@pytest.mark.parametrize("seed", range(12))
def test_answers_are_those_of_lxml_without_an_evaluation(seed: int, tmp_path: Path) -> None:
    namespaces: Namespaces = "ignore" if seed % 3 == 0 else NAMESPACES
    drawn = Drawn(seed, namespaces=namespaces)
    subscriptions = Subscriptions(namespaces)
    subscriptions.add_many(drawn.expressions)
    matcher = subscriptions.compile()
    assert answers(matcher, drawn.documents) == drawn.expected
    assert [matcher.match(text).ids.tolist() for text in drawn.documents] == drawn.expected
    assert matcher.statistics()["full evaluations"] == 0
    matcher.save(tmp_path / "index")
    opened = pathcast.open_index(tmp_path / "index")
    assert answers(opened, drawn.documents) == drawn.expected
    assert opened.statistics()["full evaluations"] == 0


@pytest.mark.slow
def test_more_answers_are_those_of_lxml(request: pytest.FixtureRequest) -> None:
    for seed in range(1_000, 1_000 + (20_000 if request.config.getoption("--long") else 20)):
        drawn = Drawn(seed)
        subscriptions = Subscriptions(NAMESPACES)
        subscriptions.add_many(drawn.expressions)
        assert answers(subscriptions.compile(), drawn.documents) == drawn.expected, f"seed {seed}"


def test_changes_leave_the_answers_exact() -> None:
    drawn = Drawn(105, 80)
    subscriptions = Subscriptions(NAMESPACES, tuning=Tuning(unused_entries=10, pending_trees=8))
    matcher = subscriptions.compile()
    random, present = Random(5), set[int]()
    for round_ in range(60):
        for number in random.sample(range(1, 81), 12):
            if number in present:
                subscriptions.remove(number)
                present.remove(number)
            else:
                subscriptions.add(drawn.expressions[number - 1], id=number)
                present.add(number)
        at = round_ % len(drawn.documents)
        wanted = [number for number in drawn.expected[at] if number in present]
        assert matcher.match(drawn.documents[at]).ids.tolist() == wanted


def test_patterns_of_another_process_count_in_ours() -> None:
    drawn = Drawn(107)
    subscriptions = Subscriptions(NAMESPACES)
    matcher = subscriptions.compile()
    subscriptions.add_many(["//z[2]", *drawn.expressions[:5]])
    shard = unpacked(packed(compile_shard(drawn.expressions, NAMESPACES, MAX_STEPS, "automaton")))
    merged = merge_shard(subscriptions.table, matcher.engine, shard)  # type: ignore[arg-type]
    matcher.engine.refresh()
    offsets, entries = matcher.engine.match_batch(read_batch(drawn.documents, names=subscriptions.table.names))
    left = set(merged.left)
    for index, expected in enumerate(drawn.expected):
        found = set(entries[offsets[index] : offsets[index + 1]].tolist())
        wanted = {number for number in expected if number - 1 not in left}
        assert {n for n, e in enumerate(merged.entries.tolist(), 1) if e in found and n - 1 not in left} == wanted
    assert matcher.statistics()["full evaluations"] == 0


@pytest.mark.parametrize("known", ["none", "earlier", "own"])
def test_batches_that_were_read_with_other_names_have_the_same_answers(known: str) -> None:
    drawn = Drawn(109)
    subscriptions = Subscriptions(NAMESPACES)
    earlier = read_batch(drawn.documents, names=subscriptions.table.names)
    subscriptions.add_many(drawn.expressions)
    matcher = subscriptions.compile()
    batch = earlier if known == "earlier" else read_batch(drawn.documents)
    if known == "own":
        batch = unpack(*pack(batch), batch.data, batch.data_offsets, subscriptions.table.names)
    offsets, ids = matcher.match_batch(batch)
    assert [sorted(ids[begin:end].tolist()) for begin, end in pairwise(offsets)] == drawn.expected


def places(text: str, name: str) -> list[dict[str, str]]:
    """By the plainest count: the computed attributes of all elements of a document, for one name or `*`."""
    tree = oracle.read(text.encode()).getroot()
    elements = [each for each in tree.iter() if isinstance(each.tag, str)]
    of_name = [each for each in elements if name in ("*", each.tag)]
    found = []
    for element in elements:
        parent = element.getparent()
        every = [each for each in ([tree] if parent is None else parent) if isinstance(each.tag, str)]
        siblings = [each for each in every if name in ("*", each.tag)]
        values = dict[str, str]()
        if element in of_name:
            for prefix, suffix, among in (("", "", siblings), ("document-", "", of_name), ("", "-of-all", every)):
                place = among.index(element)
                for measure, value in (
                    ("position", place + 1),
                    ("from-end", len(among) - place),
                    ("total", len(among)),
                ):
                    values[f"{prefix}{measure}{suffix}({name})"] = str(value)
        found.append(values)
    return found


@pytest.mark.parametrize("seed", range(30))
def test_computed_attributes_are_those_of_a_plain_count(seed: int) -> None:
    random = Random(seed)
    texts = [document(random) for _ in range(6)]
    table = PatternTable(None, MAX_STEPS)
    for name in (wanted := random.sample(["a", "{urn:f}a", "*"], 2)):
        table.names.add(name)
        for measure in ("position", "from-end", "total"):
            for attribute in (measure, f"document-{measure}", f"{measure}-of-all"):
                table.names.add(f"{attribute}({name})")
    batch = read_batch(texts, names=table.names)
    counted = ElementPlaces(table).added_to(batch, table.translation(batch))
    for index, text in enumerate(texts):
        expected = [left | right for left, right in zip(*[places(text, name) for name in wanted], strict=True)]
        for element, values in enumerate(expected):
            assert counted[index].attributes(element) == batch[index].attributes(element) | values


def test_an_attribute_of_a_message_is_no_computed_attribute() -> None:
    subscriptions = Subscriptions()
    subscriptions.add_many(["//b[2]", "//b[@x = 2]"])
    batch = read_batch(["<a><b x='2'/></a>"])
    forged = read_batch(["<a><b x='2'/></a>"], names=Names(["a", "b", "position(b)"]))
    forged.attribute_name[:] = 2
    matcher = subscriptions.compile()
    assert matcher.match_batch(batch)[1].tolist() == [2]
    assert matcher.match_batch(forged)[1].tolist() == []


def test_documents_without_counted_patterns_are_left_alone() -> None:
    subscriptions = Subscriptions()
    subscriptions.add_many(["//b[@x = 2]", "//c"])
    batch = read_batch(["<a><b x='2'/></a>"], names=subscriptions.table.names)
    places = ElementPlaces(subscriptions.table)
    assert places.added_to(batch, subscriptions.table.translation(batch)) is batch


def test_large_documents_are_counted() -> None:
    subscriptions = Subscriptions()
    subscriptions.add_many(
        ["//b[40000]", "//b[40001]", "count(//*) = 40001", "//b[last()][not(@x)]", "//b[last() = 7]"]
    )
    text = "<a>" + "<b/>" * 39_999 + "<b x=''/></a>"
    matcher = subscriptions.compile()
    assert matcher.match(text).ids.tolist() == [1, 3]
    assert matcher.match("<a><b/><c><b/></c></a>").ids.tolist() == [4]


def test_unreadable_documents_in_a_batch_match_nothing() -> None:
    subscriptions = Subscriptions()
    subscriptions.add_many(["//b[2]", "count(//*) < 9"])
    documents = ["<a><b/><b/></a>", "<a>", "<a><b/></a>"]
    first, wrong, last = subscriptions.compile().match_many(documents, errors="return")
    assert isinstance(wrong, pathcast.DocumentError)
    assert [list(each) for each in (first, last) if not isinstance(each, pathcast.PathcastError)] == [[1, 2], [2]]


def test_counters_are_counted_per_parent_and_document() -> None:
    counts = Counter[int]()
    subscriptions = Subscriptions()
    subscriptions.add_many([f"//b[{place}]" for place in range(1, 5)])
    matcher = subscriptions.compile()
    for ids in answers(matcher, ["<a><b/><b><b/></b><c><b/></c></a>"] * 3):
        counts.update(ids)
    assert counts == {1: 3, 2: 3}
    assert np.all(matcher.match("<b/>").ids == 1)
