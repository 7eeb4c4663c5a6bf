"""Generated subscriptions: their shape, statistics and errors."""

import re
from collections import Counter
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathcast.documents.schema.document_schema import Schema
from pathcast.documents.schema.dtd_reader import read_dtd
from pathcast.errors import LimitError
from pathcast.patterns import parse
from pathcast.workloads import (
    SubscriptionOptions,
    Values,
    assign_subscribers,
    generate_subscriptions,
    news_schema,
    schema_from_dtd,
)
from pathcast.workloads.generation_options import PredicateSteps
from pathcast.workloads.plain_path_walks import plain_paths
from pathcast.workloads.schema_walks import Comparison, Walker
from tests.workloads.nasty import RECURSIVE

NITF = Path(__file__).resolve().parents[3] / "shared/data/nitf/nitf-2-5.dtd"

# Every element has the same four children: walks always reach the maximum depth, and every step is alike.
EVEN = read_dtd("<!ELEMENT r (a, b, c, d)>" + "".join(f"<!ELEMENT {name} (a, b, c, d)?>" for name in "abcd"))


def steps(expression: str) -> list[str]:
    """The steps of a path without predicates, with their axes."""
    return re.findall(r"//?[^/]+", expression)


def walker(schema: Schema, seed: int = 0, **options: Any) -> Walker:
    return Walker(schema, Values(schema), SubscriptionOptions(**options), seed=seed)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"wildcard": 1.0, "descendant": 1.0},
        {"predicates": 3, "nested": 2, "skew": 1.0},
        {"predicate_probability": 0.3, "nested_probability": 0.3},
        {"predicates": 2, "nested": 1, "text": "words"},
    ],
    ids=str,
)
def test_all_are_in_the_supported_fragment(options: dict[str, Any]) -> None:
    text = options.get("text", "integers")
    wanted = SubscriptionOptions(**{name: option for name, option in options.items() if name != "text"})
    for expression in generate_subscriptions(news_schema(), 400, wanted, text=text):
        parse(expression)


def test_plain_walks_follow_the_schema() -> None:
    schema = news_schema()
    for expression in generate_subscriptions(schema, 500, SubscriptionOptions(wildcard=0, descendant=0)):
        names = expression.split("/")[1:]
        assert names[0] == "news"
        assert all(child in schema.children[parent] for parent, child in pairwise(names))
        assert len(names) == 6 or not schema.children[names[-1]]


@pytest.mark.parametrize("depth", [1, 3, 6])
def test_no_path_is_deeper_than_the_maximum(depth: int) -> None:
    for expression in generate_subscriptions(
        EVEN, 300, SubscriptionOptions(max_depth=depth, wildcard=0.3, descendant=0.3)
    ):
        assert 1 <= len(steps(expression)) <= depth


def test_with_a_minimum_the_depth_is_uniform_between_the_two() -> None:
    expressions = generate_subscriptions(
        EVEN, 3_000, SubscriptionOptions(min_depth=3, max_depth=6, wildcard=0, descendant=0)
    )
    counts = Counter(len(steps(expression)) for expression in expressions)
    assert set(counts) == {3, 4, 5, 6}
    assert all(abs(count - 750) < 120 for count in counts.values())


def test_a_minimum_that_walks_often_miss_is_kept_by_drawing_again() -> None:
    schema = read_dtd("<!ELEMENT r (leaf, more)> <!ELEMENT leaf EMPTY> <!ELEMENT more (leaf, more?)>")
    expressions = generate_subscriptions(
        schema, 100, SubscriptionOptions(min_depth=4, max_depth=4, wildcard=0, descendant=0)
    )
    assert {len(steps(expression)) for expression in expressions} == {4}


@pytest.mark.parametrize("predicates", [0, 1])
def test_a_minimum_that_no_walk_reaches_is_refused(predicates: int) -> None:
    schema = read_dtd("<!ELEMENT r (leaf)> <!ELEMENT leaf (#PCDATA)>")
    with pytest.raises(
        LimitError, match="100,000 random walks in a row did not reach level 4 of the schema; lower min_depth"
    ):
        generate_subscriptions(schema, 1, SubscriptionOptions(min_depth=4, predicates=predicates))


@pytest.mark.parametrize("wildcard", [0.0, 0.2, 0.7, 1.0])
def test_the_share_of_wildcards_is_the_wanted_one(wildcard: float) -> None:
    paths = [
        steps(path)
        for path in generate_subscriptions(EVEN, 3_000, SubscriptionOptions(wildcard=wildcard, descendant=0))
    ]
    inner = [step for path in paths for step in path[:-1]]
    assert abs(inner.count("/*") / len(inner) - wildcard) < 0.02


def test_no_path_ends_in_a_wildcard() -> None:
    for wildcard, descendant in ((0.2, 0.2), (1.0, 0.2), (0.8, 0.8), (1.0, 1.0)):
        for path in generate_subscriptions(
            news_schema(), 500, SubscriptionOptions(wildcard=wildcard, descendant=descendant)
        ):
            assert not path.endswith("*")


@pytest.mark.parametrize("wildcard", [0.0, 0.2, 0.7, 1.0])
def test_the_last_step_may_be_a_wildcard_as_often_as_any_other(wildcard: float) -> None:
    options = SubscriptionOptions(wildcard=wildcard, descendant=0, last_wildcard=True)
    paths = generate_subscriptions(EVEN, 3_000, options)
    assert abs(sum(path.endswith("/*") for path in paths) / 3_000 - wildcard) < 0.03
    below = SubscriptionOptions(wildcard=wildcard, descendant=0.5, last_wildcard=True)
    for path in generate_subscriptions(EVEN, 500, below):
        assert "//*" not in path and not path.endswith("/")


@pytest.mark.parametrize("descendant", [0.0, 0.2, 0.7, 1.0])
def test_a_path_starts_below_with_the_wanted_probability(descendant: float) -> None:
    # A path whose first `//` skips all levels is drawn again: that happens in 1 of 12 cases here.
    paths = generate_subscriptions(EVEN, 4_000, SubscriptionOptions(max_depth=12, wildcard=0, descendant=descendant))
    kept = descendant * 11 / 12
    expected = kept / (kept + 1 - descendant)
    assert abs(sum(path.startswith("//") for path in paths) / 4_000 - expected) < 0.03


def test_a_descendant_axis_skips_a_uniformly_drawn_number_of_levels() -> None:
    paths = [
        steps(path)
        for path in generate_subscriptions(EVEN, 6_000, SubscriptionOptions(max_depth=5, wildcard=0, descendant=0.1))
    ]
    # One `//` at the very start and no other: what it skipped is what is missing from the depth.
    skipped = Counter(5 - len(path) for path in paths if path[0].startswith("//") and "//" not in "".join(path[1:]))
    assert set(skipped) >= {0, 1, 2, 3, 4}
    assert sum(skipped[n] for n in (1, 2, 3)) / 3 == pytest.approx(100, abs=40)


def test_a_wildcard_never_follows_a_descendant_axis_and_no_axis_is_doubled() -> None:
    for path in generate_subscriptions(EVEN, 1_000, SubscriptionOptions(wildcard=0.5, descendant=0.5)):
        assert "//*" not in path
        assert "///" not in path
        assert not path.endswith("/")


def test_a_wildcard_in_a_descendant_axis_moves_the_axis_behind_it() -> None:
    paths = generate_subscriptions(EVEN, 2_000, SubscriptionOptions(max_depth=3, wildcard=0.5, descendant=0.5))
    assert any(re.fullmatch(r"/\*//[a-d]", path) for path in paths)
    assert any(re.fullmatch(r"/\*/\*//[a-d]", path) for path in paths)


@pytest.mark.parametrize("skew", [0.0, 1.0, 2.0])
def test_children_are_drawn_by_zipfs_law(skew: float) -> None:
    paths = generate_subscriptions(EVEN, 2_000, SubscriptionOptions(wildcard=0, descendant=0, skew=skew))
    counts = Counter(name for path in paths for name in path.split("/")[2:])
    weights = {name: rank**-skew for rank, name in enumerate("abcd", 1)}
    for name, weight in weights.items():
        assert abs(counts[name] / counts.total() - weight / sum(weights.values())) < 0.02


def test_nested_paths_follow_zipfs_law_too() -> None:
    drawer = walker(EVEN, max_depth=2, nested=1, skew=2.0, wildcard=0, descendant=0)
    paths = (drawer.path() for _ in range(1_000))
    counts = Counter(
        condition[0] for path in paths for condition in path.conditions.get(0, []) if path.steps[1] == "/a"
    )
    assert counts["b"] > 1.5 * counts["c"] > 1.5 * counts["d"] > 0


@pytest.mark.parametrize("number", [1, 2, 20])
def test_each_has_the_wanted_number_of_predicates(number: int) -> None:
    schema = news_schema()
    drawer = walker(schema, predicates=number, wildcard=0, descendant=0)
    for path in (drawer.path() for _ in range(300)):
        targets = [(at, c.target) for at, each in path.conditions.items() for c in each if isinstance(c, Comparison)]
        elements = [schema[step.removeprefix("/")] for step in path.steps]
        free = sum(attribute.use != "fixed" for element in elements for attribute in element.attributes)
        assert len(targets) == min(number, free + sum(element.has_text for element in elements))
        assert len(set(targets)) == len(targets)


def test_a_predicate_probability_holds_for_each_attribute_and_text() -> None:
    schema = read_dtd("<!ELEMENT r (#PCDATA)> <!ATTLIST r " + " ".join(f"x{n} CDATA #IMPLIED" for n in range(9)) + ">")
    paths = generate_subscriptions(
        schema, 2_000, SubscriptionOptions(predicate_probability=0.3, wildcard=0, descendant=0)
    )
    assert abs(sum(path.count("[") for path in paths) / 20_000 - 0.3) < 0.02


VALUES = read_dtd(
    """<!ELEMENT r (#PCDATA)>
    <!ATTLIST r n CDATA #IMPLIED  e (red | blue) #IMPLIED  i ID #IMPLIED  p (1 | 2) #IMPLIED  f CDATA #FIXED 'x'
        q (a.b) #IMPLIED  xmlns:z CDATA #FIXED 'urn:z'  y ENTITY #IMPLIED>"""
)


def test_predicates_compare_numbers_in_order_and_names_for_equality() -> None:
    expressions = set(
        generate_subscriptions(VALUES, 3_000, SubscriptionOptions(predicates=1, wildcard=0, descendant=0))
    )
    (number,) = (attribute for attribute in VALUES["r"].attributes if attribute.name == "n")
    highest = {
        "@n": len(Values(VALUES).of_attribute("r", number).values),
        "text()": len(Values(VALUES).of_text("r").values),
        "@p": 2,
    }
    expected = {
        f"/r[{target}{operator}{value}]"
        for target, limit in highest.items()
        for operator in ("=", "<=", ">=")
        for value in range(1, limit + 1)
    }
    expected |= {"/r[@e='red']", "/r[@e='blue']", "/r[@q='a.b']"}
    identifiers = {expression for expression in expressions if "@i" in expression}
    assert expressions - identifiers == expected
    assert all(re.fullmatch(r"/r\[@i='i\d+'\]", expression) for expression in identifiers)


def test_operators_and_targets_can_be_chosen() -> None:
    expressions = generate_subscriptions(
        VALUES, 200, SubscriptionOptions(predicates=1, operators=["<="], predicate_targets=["attribute"], descendant=0)
    )
    assert {re.sub(r"\d+", "7", expression) for expression in expressions} == {"/r[@n<=7]", "/r[@p<=7]"}
    texts = generate_subscriptions(
        VALUES, 50, SubscriptionOptions(predicates=1, predicate_targets=["text"], descendant=0)
    )
    assert all(expression.startswith("/r[text()") for expression in texts)


def test_readable_text_is_asked_for_words() -> None:
    expressions = generate_subscriptions(
        news_schema(), 300, SubscriptionOptions(predicates=1, predicate_targets=["text"]), text="words"
    )
    asked = [expression for expression in expressions if "[" in expression]
    assert len(asked) > 100
    assert all(re.search(r"\[contains\(\., '[^']+'\)\]", expression) for expression in asked)


@pytest.mark.parametrize("number", [1, 3])
def test_each_has_the_wanted_number_of_nested_paths(number: int) -> None:
    drawer = walker(EVEN, nested=number)
    for path in (drawer.path() for _ in range(300)):
        nested = [(at, each[0]) for at, found in path.conditions.items() for each in found]
        # A lone step may lie on the last level; every other path has room for three.
        assert len(nested) == number or len(path.steps) == 1
        assert len(set(nested)) == len(nested)


def test_a_nested_path_starts_with_the_plain_name_of_another_child() -> None:
    schema = news_schema()
    seen = 0
    for expression in generate_subscriptions(schema, 500, SubscriptionOptions(nested=1, wildcard=0, descendant=0)):
        for name, first, after in re.findall(r"/([^/\[]+)\[([^/\]]+)[^\]]*\](?:/([^/\[]+))?", expression):
            assert first in schema.children[name]
            assert first != after
            seen += 1
    assert seen > 300
    for expression in generate_subscriptions(schema, 500, SubscriptionOptions(nested=1, wildcard=1.0, descendant=1.0)):
        assert re.fullmatch(r"[^\[]*(\[[a-z][^\]]*\][^\[]*)?", expression)


def test_nested_paths_stay_within_the_depth() -> None:
    for expression in generate_subscriptions(
        EVEN, 300, SubscriptionOptions(nested=2, max_depth=4, wildcard=0, descendant=0)
    ):
        trunk = ""
        for part in re.split(r"(\[[^\]]*\])", expression):
            if part.startswith("["):
                assert trunk.count("/") + 1 + part.count("/") <= 4
            else:
                trunk += part


def test_a_nested_probability_holds_for_each_step() -> None:
    drawer = walker(EVEN, nested_probability=0.4, wildcard=0, descendant=0)
    paths = [drawer.path() for _ in range(500)]
    # The last of six steps has no level left below it.
    assert abs(sum(len(path.conditions) for path in paths) / (500 * 5) - 0.4) < 0.05


def test_distinct_ones_are_distinct_and_in_drawing_order() -> None:
    distinct = generate_subscriptions(news_schema(), 3_000, SubscriptionOptions(distinct=True))
    assert len(set(distinct)) == 3_000
    mixed = generate_subscriptions(news_schema(), 10_000)
    assert len(set(mixed)) < 10_000
    assert list(dict.fromkeys(mixed))[:1_000] == distinct[:1_000]


def test_an_exhausted_space_is_refused_with_the_number_found() -> None:
    schema = read_dtd("<!ELEMENT r (a | b)> <!ELEMENT a EMPTY> <!ELEMENT b EMPTY>")
    with pytest.raises(
        LimitError, match=r"found only 2 of 3 distinct subscriptions before 100,000 repeats in a row; request fewer"
    ):
        generate_subscriptions(schema, 3, SubscriptionOptions(distinct=True, wildcard=0, descendant=0))
    assert sorted(generate_subscriptions(schema, 2, SubscriptionOptions(distinct=True, wildcard=0, descendant=0))) == [
        "/r/a",
        "/r/b",
    ]


def test_fewer_are_the_beginning_of_more() -> None:
    more = generate_subscriptions(news_schema(), 500, SubscriptionOptions(predicates=1), seed=2)
    assert generate_subscriptions(news_schema(), 100, SubscriptionOptions(predicates=1), seed=2) == more[:100]
    assert generate_subscriptions(news_schema(), 100, SubscriptionOptions(predicates=1), seed=3) != more[:100]
    assert generate_subscriptions(news_schema(), 0) == []


@given(
    st.integers(0, 1000),
    st.floats(0, 1),
    st.floats(0, 1),
    st.sampled_from([0.0, 0.9]),
    st.sampled_from([(1, None), (4, None), (7, 3)]),
    st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_plain_paths_are_those_of_the_walker(
    seed: int, wildcard: float, descendant: float, skew: float, depths: tuple[int, int | None], last: bool
) -> None:
    options: dict[str, Any] = {"seed": seed, "wildcard": wildcard, "descendant": descendant, "skew": skew}
    options |= {"max_depth": depths[0], "min_depth": depths[1], "last_wildcard": last}
    slow = walker(news_schema(), **options)
    assert list(islice(plain_paths(walker(news_schema(), **options)), 30)) == [str(slow.path()) for _ in range(30)]


@pytest.mark.parametrize("text", RECURSIVE.values(), ids=RECURSIVE)
def test_recursive_schemas_are_walked(text: str) -> None:
    schema = read_dtd(text, root="a")
    for expression in generate_subscriptions(schema, 50, SubscriptionOptions(max_depth=30, nested=1)):
        names = set(re.findall(r"[a-z]+", expression))
        assert all(schema.height(name) is not None for name in names)


@pytest.mark.skipif(not NITF.exists(), reason="the NITF DTD is not here")
def test_nitf_paths_are_like_the_fields() -> None:
    """The published 500,000 mixed queries of depth 6: 3.52 steps, 0.62 `//`, a fifth of them starting with `//`."""
    paths = [steps(path) for path in generate_subscriptions(schema_from_dtd(NITF), 20_000)]
    assert 3.3 < sum(map(len, paths)) / 20_000 < 3.8
    assert 0.5 < sum(step.startswith("//") for path in paths for step in path) / 20_000 < 0.7
    lengths = Counter(map(len, paths))
    field = {1: 0.100, 2: 0.116, 3: 0.306, 4: 0.257, 5: 0.079, 6: 0.141}
    assert all(abs(lengths[length] / 20_000 - share) < 0.03 for length, share in field.items())


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"max_depth": 0}, "min_depth <= max_depth"),
        ({"min_depth": 7}, "min_depth <= max_depth"),
        ({"wildcard": 1.1}, "wildcard"),
        ({"descendant": -0.1}, "descendant"),
        ({"skew": -1}, "skew"),
        ({"predicates": -1}, "predicates"),
        ({"predicate_probability": 2}, "predicate_probability"),
        ({"nested": -1}, "nested"),
        ({"nested_probability": 2}, "nested_probability"),
        ({"predicates": 1, "predicate_probability": 0.1}, "cannot be combined; give only one"),
        ({"nested": 1, "nested_probability": 0.1}, "cannot be combined; give only one"),
        ({"operators": ["!="]}, "operators"),
        ({"operators": []}, "operators"),
        ({"predicate_targets": ["comment"]}, "predicate_targets"),
        ({"match_rate": 1.5}, "match_rate"),
        ({"predicate_steps": "some"}, "predicate_steps"),
    ],
)
def test_settings_out_of_range_are_refused(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        SubscriptionOptions(**options)


def test_a_negative_count_is_refused() -> None:
    with pytest.raises(ValueError, match="count must be at least 0, got -1"):
        generate_subscriptions(EVEN, -1)


def test_subscribers_are_named_and_drawn_evenly() -> None:
    names = assign_subscribers(5_000, readers=50, seed=1)
    counts = Counter(names)
    assert set(counts) == {f"reader-{number:03}" for number in range(1, 51)}
    assert max(counts.values()) < 150
    assert assign_subscribers(10, readers=50, seed=1) == names[:10]
    assert all(len(name) == len("reader-00000") for name in assign_subscribers(5, readers=12_345))
    with pytest.raises(ValueError, match="readers must be at least 1"):
        assign_subscribers(1, readers=0)


def test_progress_reaches_the_end() -> None:
    reports: list[int] = []
    generate_subscriptions(EVEN, 2_500, progress=reports.append)
    assert reports == [1_000, 2_000, 2_500]


def test_predicates_can_keep_to_steps_with_a_name() -> None:
    def drawn(steps: PredicateSteps) -> list[str]:
        options = SubscriptionOptions(wildcard=0.5, predicates=2, predicate_steps=steps)
        return generate_subscriptions(news_schema(), 500, options)

    assert any("*[" in query for query in drawn("any"))
    named = drawn("named")
    assert not any("*[" in query for query in named) and sum("[" in query for query in named) > 400
    with pytest.raises(ValueError, match="predicate_steps must be 'any' or 'named', got 'some'"):
        drawn("some")  # type: ignore[arg-type]
