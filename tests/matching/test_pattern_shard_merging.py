"""Merging expressions that other processes compiled gives the index that one process would have built."""

import itertools
from pathlib import Path
from random import Random

import numpy as np
import pytest

import pathcast
from pathcast import LimitError, PatternError, Subscriptions
from pathcast.matching.engine_contract import Mergeable
from pathcast.matching.table import tree_pattern_texts as trees
from pathcast.matching.table.pattern_shard_merging import compile_shard, merge_shard, packed, unpacked
from pathcast.matching.table.pattern_table import EnteredPatterns
from pathcast.patterns.parsing.xpath_parser import MAX_STEPS
from pathcast.workloads import SubscriptionOptions, generate_documents, generate_subscriptions, news_schema
from tests.corpus import Namespaces
from tests.matching.automaton.test_opened_trees import answers, expected
from tests.matching.test_differential import drawn


def shards_of(expressions: list[str], namespaces: Namespaces, cuts: list[int]) -> list[tuple[int, bytes]]:
    edges = [0, *cuts, len(expressions)]
    return [
        (begin, packed(compile_shard(expressions[begin:end], namespaces, MAX_STEPS, "automaton")))
        for begin, end in itertools.pairwise(edges)
    ]


def add_merged(matcher: pathcast.Matcher, expressions: list[str], shards: list[tuple[int, bytes]]) -> dict[int, str]:
    """Add all valid expressions, with index + 1 as id; return the reasons why the others are invalid."""
    subscriptions = matcher.subscriptions
    known = len(subscriptions.table)
    assert isinstance(matcher.engine, Mergeable)
    entries = np.full(len(expressions), -1, dtype=np.int32)
    reasons: dict[int, str] = {}
    for begin, shard in shards:
        merged = merge_shard(subscriptions.table, matcher.engine, unpacked(shard))
        entries[begin : begin + len(merged.entries)] = merged.entries
        reasons |= {begin + place: f"{reason} ({column})" for place, reason, column in merged.refused}
        for place in merged.left:
            entries[begin + place] = subscriptions.table.enter([expressions[begin + place]]).entries[0]
    good = np.flatnonzero(entries >= 0).astype(np.int32)
    texts = {at: expressions[place] for at, place in enumerate(good.tolist())}
    nobody = np.full(len(good), -1, dtype=np.int32)
    subscriptions.add_entered(EnteredPatterns(entries[good], range(len(good)), texts), known, [], nobody, good + 1)
    return reasons


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_merged_shards_answer_as_lxml_does(seed: int, tmp_path: Path) -> None:
    this, random = drawn(seed), Random(seed)
    expressions = list(this.expressions)
    cuts = sorted(random.sample(range(1, len(expressions)), 3))
    shards = shards_of(expressions, this.namespaces, cuts)
    matcher = Subscriptions(this.namespaces).compile(entities="expand")
    assert add_merged(matcher, expressions, shards) == {}
    everything = set(range(len(expressions)))
    assert answers(matcher, this) == expected(this, everything)
    alone = Subscriptions(this.namespaces)
    alone.add_many(expressions)
    assert len(alone.table) == len(matcher.subscriptions.table), "equal patterns are one entry in whatever shards"
    matcher.save(tmp_path / "index")
    opened = pathcast.open_index(tmp_path / "index", entities="expand")
    assert answers(opened, this) == expected(this, everything)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5, 8))
def test_shards_are_merged_into_an_opened_index_and_changes_go_on(seed: int, tmp_path: Path) -> None:
    this = drawn(seed)
    expressions = list(this.expressions)
    subscriptions = Subscriptions(this.namespaces)
    subscriptions.add_many(expressions[::2], ids=range(1001, 1101))
    subscriptions.compile().save(tmp_path / "index")
    matcher = pathcast.open_index(tmp_path / "index", entities="expand")
    for place in (1, 3, 5):
        matcher.subscriptions.add(expressions[place], id=2000 + place)
    add_merged(matcher, expressions, shards_of(expressions, this.namespaces, [70, 71]))
    for id in [*range(1001, 1101), 2001, 2003, 2005]:
        matcher.subscriptions.remove(id)
    assert answers(matcher, this) == expected(this, set(range(200)))
    for place in range(0, 200, 3):
        matcher.subscriptions.replace(place + 1, expressions[place])
    assert answers(matcher, this) == expected(this, set(range(200)))


def test_what_is_refused_has_the_reason_and_column_of_a_single_process() -> None:
    expressions = ["/a[b]", "/a[", "//b[c = 1]", "/a[foot()]", "", "/a[sideways::b]", "/a" * 2000 + "[b]", "/a[b]/c"]
    reasons = add_merged(Subscriptions().compile(), expressions, shards_of(expressions, None, [3, 5]))
    errors = Subscriptions().add_many(expressions, errors="collect")
    assert all(isinstance(error, PatternError | LimitError) for error in errors)
    assert reasons == {error.index: f"{error.reason} ({error.column})" for error in errors} and len(reasons) == 5


def test_what_has_more_than_one_text_is_left_to_the_merging_process() -> None:
    first, second = "/a[b < 0.1234567890123456789012345]", "/a[b < 0.12345678901234567890123450]"
    expressions = ["/a[b]", first, "/a[", "/a[c]", second]
    assert compile_shard(expressions, None, MAX_STEPS, "automaton")["left"].tolist() == [1, 4]
    matcher = Subscriptions().compile()
    assert list(add_merged(matcher, expressions, shards_of(expressions, None, [3]))) == [2]
    assert len(matcher.subscriptions.table) == 3
    assert matcher.match("<a><b>0.12</b></a>").ids.tolist() == [1, 2, 5]


@pytest.mark.slow
def test_merging_makes_no_object_for_a_pattern(monkeypatch: pytest.MonkeyPatch) -> None:
    expressions = generate_subscriptions(news_schema(), 600, SubscriptionOptions(predicates=2, nested=1), seed=8)
    shards = shards_of(expressions, None, [200, 400])
    wanted = Subscriptions()
    wanted.add_many(expressions)
    documents = list(generate_documents(news_schema(), 30, seed=8))

    def refused(*_: object) -> None:
        pytest.fail("a pattern was parsed")

    monkeypatch.setattr(trees, "parse_printed", refused)
    matcher = Subscriptions().compile()
    add_merged(matcher, expressions, shards)
    found = [matches.ids.tolist() for matches in matcher.match_many(documents)]
    assert found == [matches.ids.tolist() for matches in wanted.compile().match_many(documents)]
    assert any(found)
