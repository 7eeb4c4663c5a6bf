"""The assertions of derived information hold in every document, compared with lxml."""

from random import Random

import numpy as np
import pytest
from lxml import etree

from pathcast.documents import Document, read_batch
from pathcast.patterns import Pattern, parse
from pathcast.patterns.containment.pattern_containment import contains
from pathcast.routing import Overlay, aggregate
from pathcast.routing.advertising.subscription_aggregation import Aggregation
from pathcast.routing.advertising.subscriptions_by_wildcard_bindings import Simple, SimpleAggregates
from pathcast.routing.annotations.advertised_annotation_hints import Budget, Derived, derive
from pathcast.routing.annotations.commonly_required_paths import benefit, contained, data_table
from pathcast.routing.annotations.document_annotations import Bound, Labels
from pathcast.routing.annotations.wildcard_substitution import Bindings, Wildcards, bound
from pathcast.transmission import Topology
from tests import oracle
from tests.generators.rounds import drawn
from tests.routing.plain_bindings import document_bindings

NAMES = "abcd"
SEEDS = range(8)


class Small:
    """Subscriptions over few names, many of them similar, and documents over the same names."""

    def __init__(self, seed: int) -> None:
        random = Random(seed)
        self.texts = [self._path(random) for _ in range(70)]
        self.patterns = [parse(text) for text in self.texts]
        self.trees = [etree.fromstring(self._element(random, 1)).getroottree() for _ in range(25)]
        self.documents = [etree.tostring(tree) for tree in self.trees]
        self.matched = [self.asked(pattern) for pattern in self.patterns]
        self.derived = derive(aggregate(self.patterns, 0.25), self.patterns, budget=Budget(data=60), version=3)

    @staticmethod
    def _path(random: Random) -> str:
        text = ""
        for _ in range(random.randint(2, 4)):
            text += random.choice(("/", "/", "//")) + random.choice((*NAMES, *NAMES, "*"))
            if random.random() < 0.12:
                text += random.choice(("[a]", "[.//b]", "[@x = 5]", "[not(c)]", "[//d]", "[*/a]", "[contains(b, '5')]"))
        return text

    @staticmethod
    def _element(random: Random, depth: int) -> str:
        name = random.choice(NAMES)
        inside = (
            "".join(Small._element(random, depth + 1) for _ in range(random.choice((0, 1, 1, 2, 3))))
            if depth < 6
            else ""
        )
        attribute = random.choice(("", "", ' x="5"', ' x="4"'))
        return f"<{name}{attribute}>{random.choice(('', '5'))}{inside}</{name}>"

    def asked(self, pattern: Pattern) -> set[int]:
        question = oracle.ask(str(pattern))
        return {number for number, tree in enumerate(self.trees) if oracle.answer(question, tree)}


@pytest.fixture(scope="module", params=SEEDS)
def small(request: pytest.FixtureRequest) -> Small:
    return Small(request.param)


def found_in(document: Document, pattern: Pattern, wanted: tuple[int, ...], most: int = 4) -> list[Bindings]:
    batch = document.batch
    return document_bindings(
        pattern, wanted, document, lambda name, wanted: batch.name_of(name) == wanted, batch.name_of, most
    )


def label_paths(tree: etree._ElementTree) -> set[tuple[str, ...]]:
    return {
        tuple(reversed([each.tag, *(above.tag for above in each.iterancestors())])) for each in tree.getroot().iter("*")
    }


def last_end(tree: etree._ElementTree, labels: tuple[str, ...]) -> etree._Element | None:
    """The first element of the occurrence that ends last; None if there is none."""
    firsts = tree.xpath(f"//{labels[0]}[{'/'.join(labels[1:]) or '.'}]")
    order = {each: place for place, (_, each) in enumerate(etree.iterwalk(tree, events=("end",)))}
    return max(firsts, key=order.__getitem__, default=None)


def without_the_rest(tree: etree._ElementTree, last: etree._Element) -> etree._ElementTree:
    """The document up to the end tag of an element of it, closed there."""
    path = tree.getpath(last)
    copy = etree.fromstring(etree.tostring(tree)).getroottree()
    current = copy.xpath(path)[0]
    while (parent := current.getparent()) is not None:
        for later in list(current.itersiblings()):
            parent.remove(later)
        current.tail = None
        current = parent
    return copy


# Positive subscriptions.


@pytest.mark.slow
def test_bindings_in_documents_are_such_that_the_bound_aggregate_matches(small: Small) -> None:
    batch = read_batch(small.documents)
    told = 0
    for simple in small.derived.simple:
        aggregate = small.derived.aggregation.aggregates[simple.aggregate]
        matched = small.asked(aggregate)
        for number, document in enumerate(batch):
            found = found_in(document, aggregate, simple.wildcards)
            assert bool(found) == (number in matched)
            for bindings in found:
                assert number in small.asked(bound(aggregate, bindings))
                for index in small.derived.known(simple.aggregate, bindings).tolist():
                    assert number in small.matched[index], (str(aggregate), bindings, small.texts[index])
                    told += 1
    assert told > 20


def test_all_bindings_of_an_aggregate_tell_all_that_it_is_simple_for(small: Small) -> None:
    """With all bindings of all wildcards, every simple subscription that matches is known to match."""
    batch = read_batch(small.documents)
    for simple in small.derived.simple:
        aggregate = small.derived.aggregation.aggregates[simple.aggregate]
        if aggregate.linear is None:
            continue
        ever: set[tuple[int, int]] = set()
        for number, document in enumerate(batch):
            for bindings in found_in(document, aggregate, simple.wildcards, most=1000):
                ever.update((number, index) for index in small.derived.known(simple.aggregate, bindings).tolist())
        for index in small.derived.aggregation.covered[simple.aggregate].tolist():
            told = {number for number, other in ever if other == index}
            assert not told or told == small.matched[index], (str(aggregate), small.texts[index])


def one_aggregate(aggregate: str, *subscriptions: str) -> SimpleAggregates:
    patterns = [parse(text) for text in subscriptions]
    return SimpleAggregates.of(Aggregation([parse(aggregate)], [np.arange(len(patterns), dtype=np.int32)]), patterns)


def test_the_papers_example_of_bindings() -> None:
    found = one_aggregate("//a/*/c", "//a/b/c", "//a/x/c")
    assert found.simple == [Simple(aggregate=0, count=2, wildcards=(1,))]  # not the //, which both have
    assert found.known(0, ((1, ("x",)),)).tolist() == [1]
    assert found.known(0, ((1, ("y",)),)).tolist() == []
    assert found.known(0, ()).tolist() == []


def test_a_descendant_step_is_bound_to_a_path() -> None:
    found = one_aggregate("/a/*//d", "/a/b/c/d", "/a/b//e/d", "/a/*/d")
    assert found.simple == [Simple(0, 3, (0, 1))]
    assert found.known(0, ((0, ("b",)), (1, ("c",)))).tolist() == [0]
    assert found.known(0, ((0, ("b",)), (1, ("x", "y", "e")))).tolist() == [1]
    assert found.known(0, ((0, ("z",)), (1, ()))).tolist() == [2]


@pytest.mark.parametrize("subscription", ["/a/b[x]/d", "/a/b/d[@n = 5]", "/a/b[not(x)]/d", "/a/b/d/e", "/a/b[. = 5]/d"])
def test_nothing_is_vouched_for_that_the_bindings_do_not_carry(subscription: str) -> None:
    assert one_aggregate("/a/*/d", subscription).simple == []


def test_a_condition_that_the_aggregate_itself_has_is_carried() -> None:
    found = one_aggregate("/a/*/d[@n = 5][//t]", "/a/b/d[@n = 5][//t]", "/a/b/d[@n = 5]")
    assert found.known(0, ((0, ("b",)),)).tolist() == [0, 1]


def test_an_aggregate_that_is_a_subscription_needs_no_binding() -> None:
    found = one_aggregate("/a/b", "/a/b", "/a/b[c]")
    assert found.simple == [Simple(0, 1, ())]
    assert found.known(0, ()).tolist() == [0]


def test_steps_that_look_alike_are_told_apart_by_their_place() -> None:
    found = one_aggregate("/a[*/x]/*", "/a[b/x]/c", "/a[c/x]/b")
    wildcards = found.simple[0].wildcards
    tables = {
        index: labels
        for index in (0, 1)
        for labels in (("b", "c"), ("c", "b"))
        if index in found.known(0, tuple(zip(wildcards, ((each,) for each in labels), strict=True))).tolist()
    }
    assert len(tables) == 2 and tables[0] != tables[1]


@pytest.mark.parametrize(
    ("aggregate", "subscription", "labels"),
    [
        ("/*//z", "/*/*/b//z", ()),
        ("/*//z", "/*/*/b//z", ("b", "b")),
        *(("/a//z", "/a/*/b//z", (odd,)) for odd in ("", "*", "@x", "text()")),
    ],
)
def test_bindings_that_can_be_none_tell_nothing(aggregate: str, subscription: str, labels: Labels) -> None:
    simple = SimpleAggregates()
    simple.follow(0, parse(aggregate), {1: parse(subscription), 2: parse(aggregate)})
    assert simple.known(0, ()).tolist() == [2]
    assert not len(simple.known(0, ((0, labels),)))
    assert not len(simple.known(0, ((9, ("b",)),)))


def test_long_bindings_are_not_passed_on() -> None:
    overlay = Overlay(Topology.chain(3))
    overlay.subscribe_many("r3", ["/a/b/z", "/a/b/c/z", "/a/z"], "someone")
    overlay.advertise(keep=0.3)
    router = overlay.router("r2")
    binder, made, numbers = router.binder("r3"), router.made["r1"], router.numbers_of("r3")
    assert [str(each) for each in made.aggregates] == ["/a//z"]
    for length, told in ((1, True), (5000, False)):
        came = Bound(0, ((0, ("b",) * length),))
        assert bool(binder.following(made, came, np.array([*numbers], np.int32), numbers)) == told


def test_benefit_is_the_papers() -> None:
    assert Simple(0, 6, (1, 2)).benefit(3) == 2.0
    assert benefit(10, 1) == pytest.approx(10 * np.log(2))


def test_a_budget_keeps_the_most_beneficial() -> None:
    patterns = [parse(text) for text in ("/a/b/c", "/a/x/c", "/a/y/c", "/p/q/r", "/p/s/r")]
    covered = [np.arange(3, dtype=np.int32), np.arange(3, 5, dtype=np.int32)]
    aggregation = Aggregation([parse("/a/*/c"), parse("/p/*/r")], covered)
    found = derive(aggregation, patterns, budget=Budget(simple=1, data=2), version=7)
    assert [each.aggregate for each in found.simple] == [0]
    assert found.counts.tolist() == [3, 2]
    assert found.version == 7
    assert len(found.data.patterns) == 2


def test_wildcards_are_numbered_from_the_root() -> None:
    wildcards = Wildcards(parse("//a/*[b]//c/*"))
    assert wildcards.count == 4
    pattern = bound(wildcards.pattern, ((0, ("r",)), (3, ("e",))))
    assert contains(wildcards.pattern, pattern)
    assert pattern == parse("/r/a/*[b]//c/e")


# Negative subscriptions and data.


def every_derived() -> list[tuple[Derived, list[Pattern], list[set[int]], list[etree._ElementTree]]]:
    rounds = []
    for seed in (11, 12, 13):
        this = drawn(seed)
        rounds.append((derive(aggregate(this.patterns), this.patterns), this.patterns, this.matched, this.trees))
    return rounds


def test_an_absent_data_pattern_excludes_what_contains_it(small: Small) -> None:
    checked = 0
    data = small.derived.data
    for labels, containing in zip(data.patterns, data.containing, strict=True):
        assert len(containing) > 0
        present = small.asked(parse("//" + "/".join(labels)))
        for index in containing.tolist():
            checked += 1
            assert small.matched[index] <= present, (labels, small.texts[index])
    assert checked > 100


def test_absent_data_patterns_exclude_over_the_whole_fragment() -> None:
    for derived, patterns, matched, trees in every_derived():
        paths = [label_paths(tree) for tree in trees]
        for labels, containing in zip(derived.data.patterns, derived.data.containing, strict=True):
            present = {
                number for number, these in enumerate(paths) if any(each[-len(labels) :] == labels for each in these)
            }
            for index in containing.tolist():
                assert matched[index] <= present, (labels, str(patterns[index]))


def test_after_the_last_occurrence_nothing_changes_for_what_expires(small: Small) -> None:
    data = small.derived.data
    assert any(len(expiring) for expiring in data.expiring)
    assert any(
        len(expiring) < len(containing) for expiring, containing in zip(data.expiring, data.containing, strict=True)
    )
    for labels, expiring in zip(data.patterns, data.expiring, strict=True):
        for number, tree in enumerate(small.trees[:8]):
            last = last_end(tree, labels)
            if last is None:
                continue
            cut = without_the_rest(tree, last)
            for index in expiring.tolist():
                matches = oracle.answer(oracle.ask(small.texts[index]), cut)
                assert matches == (number in small.matched[index]), (labels, small.texts[index])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/a/b//c", {"a", "b", "a/b", "c"}),
        ("/a/*/c", {"a", "c"}),
        ("/a[b or c]/d", {"a", "d", "a/d"}),
        ("/a[not(b)]", {"a"}),
        ("/a[b/c]/@x", {"a", "b", "c", "a/b", "b/c", "a/b/c"}),
        ("/a[//b/c]", {"a", "b", "c", "b/c"}),
        ("/a[contains(b, 'x')]", {"a", "b", "a/b"}),
        ("/", set()),
    ],
)
def test_only_what_is_demanded_outright_is_contained(text: str, expected: set[str]) -> None:
    assert {"/".join(labels) for labels, _ in contained(parse(text))} == expected


def test_a_branch_elsewhere_keeps_a_subscription_alive() -> None:
    """The paper's way loses `/r[x/y]/w` on `<r><x><y/></x><w/></r>` with x/y as positive data."""
    table = data_table([parse("/r[x/y]/w"), parse("/r/x/y")])
    number = table.patterns.index(("x", "y"))
    assert table.containing[number].tolist() == [0, 1]
    assert table.expiring[number].tolist() == [1]


@pytest.mark.parametrize("text", ["/a/b[//d]", "/a/b[not(//d)]", "/a/b[contains(//d, '5')]", "/a[. = 5]/b"])
def test_what_looks_elsewhere_does_not_expire(text: str) -> None:
    assert not any(expires for labels, expires in contained(parse(text)) if labels == ("b",))
