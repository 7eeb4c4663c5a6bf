"""An opened index with predicates answers like the built one, before and after changes, without compiling again."""

from pathlib import Path
from random import Random

import numpy as np
import pytest

import pathcast
from pathcast import SnapshotError, Subscriptions
from pathcast.documents import Names
from pathcast.matching import Tuning
from pathcast.matching import stored_index as index
from pathcast.matching.automaton.values.value_test_table import DemandTable
from pathcast.matching.automaton.verify.candidate_verifier import renumbered
from pathcast.matching.automaton.verify.shared_pattern_conditions import Conditions
from pathcast.matching.automaton.verify.tree_pattern_store import TreeStore
from pathcast.matching.table import tree_pattern_texts as trees
from pathcast.patterns import Pattern, parse
from pathcast.store import open_snapshot, write_snapshot
from pathcast.workloads import SubscriptionOptions, generate_documents, generate_subscriptions, news_schema
from tests.matching.test_differential import Round, drawn

# With this tuning, a few unused entries count as many.
FEW = Tuning(unused_entries=20)
PATTERNS = [
    "/a[@x = 'one'][b > 5]/c",
    "//a[contains(., 'some text')][not(b = 7 or @x)]/c",
    "/a/b[text() = 'two'][//c]//d[e/@f < 3.5]",
    "//a[starts-with(@x, 'ü')]",
    "/a[b[c = 1][d]]",
    "/a[@x != 'one']",
    "//*[@x = 'one']//*[. = 3]",
]


def answers(matcher: pathcast.Matcher, this: Round) -> list[tuple[int, ...]]:
    """For each document the indices of the expressions that it matches."""
    documents = [document.data for document in this.documents]
    return [tuple(id - 1 for id in found.ids.tolist()) for found in matcher.match_many(documents)]


def expected(this: Round, kept: set[int]) -> list[tuple[int, ...]]:
    return [tuple(sorted(kept.intersection(matched))) for matched in this.expected]


@pytest.mark.slow
@pytest.mark.parametrize("memo", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_opened_changed_and_opened_again_it_agrees_with_lxml(seed: int, memo: bool, tmp_path: Path) -> None:
    this, random = drawn(seed), Random(seed)
    subscriptions = Subscriptions(namespaces=this.namespaces)
    subscriptions.add_many(this.expressions[:80])
    kept = set(range(80))
    matcher = subscriptions.compile(entities="expand")
    assert answers(matcher, this) == expected(this, kept)
    for begin in range(80, 200, 40):
        matcher.save(tmp_path / "index", memo=memo)
        matcher = pathcast.open_index(tmp_path / "index", entities="expand")
        assert answers(matcher, this) == expected(this, kept)
        subscriptions = matcher.subscriptions
        subscriptions.table.tuning = FEW
        subscriptions.add_many(this.expressions[begin : begin + 20], ids=range(begin + 1, begin + 21))
        for place in range(begin + 20, begin + 40):
            subscriptions.add(this.expressions[place], id=place + 1)
        kept |= set(range(begin, begin + 40))
        assert answers(matcher, this) == expected(this, kept)
        # In the end most patterns are gone, and the table is compacted.
        for place in random.sample(sorted(kept), 15 if begin < 160 else len(kept) - 20):
            subscriptions.remove(place + 1)
            kept.remove(place)
        assert answers(matcher, this) == expected(this, kept)
    matcher.save(tmp_path / "index", memo=memo)
    assert answers(pathcast.open_index(tmp_path / "index", entities="expand"), this) == expected(this, kept)


def test_to_open_and_match_no_pattern_is_parsed_or_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    subscriptions = Subscriptions()
    xpaths = generate_subscriptions(news_schema(), 500, SubscriptionOptions(predicates=2, nested=1), seed=3)
    subscriptions.add_many(xpaths)
    matcher = subscriptions.compile()
    documents = list(generate_documents(news_schema(), 30, seed=3))
    wanted = [found.ids.tolist() for found in matcher.match_many(documents)]
    matcher.save(tmp_path / "index")

    def refused(*_: object) -> None:
        pytest.fail("a pattern was looked at")

    monkeypatch.setattr(trees, "parse_printed", refused)
    monkeypatch.setattr(TreeStore, "_add_joined", refused)
    opened = pathcast.open_index(tmp_path / "index")
    assert [found.ids.tolist() for found in opened.match_many(documents)] == wanted
    assert any(wanted)
    opened.save(tmp_path / "index")
    assert opened.statistics()["candidates"] > 0 == opened.statistics()["new label paths"]


@pytest.mark.slow
def test_when_the_table_is_compacted_no_pattern_is_compiled_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    xpaths = generate_subscriptions(
        news_schema(), 600, SubscriptionOptions(predicates=2, nested=1, distinct=True), seed=4
    )
    documents = list(generate_documents(news_schema(), 30, seed=4))
    compiled(xpaths).save(tmp_path / "index")
    opened = pathcast.open_index(tmp_path / "index")
    before = opened.subscriptions.table
    before.tuning = FEW
    taken_up: list[int] = []
    add = TreeStore._add_joined

    def counted(self: TreeStore, patterns: dict[int, Pattern]) -> dict[int, Pattern]:
        taken_up.extend(patterns)
        return add(self, patterns)

    monkeypatch.setattr(TreeStore, "_add_joined", counted)
    opened.match(documents[0])
    for id in range(1, 401):
        opened.subscriptions.remove(id)
    opened.subscriptions.add("/news[@kind = 'never seen']", id=700)
    assert opened.subscriptions.table is not before
    wanted = compiled(xpaths[400:])
    found = [[id - 400 for id in matches.ids.tolist()] for matches in opened.match_many(documents)]
    assert found == [matches.ids.tolist() for matches in wanted.match_many(documents)]
    assert any(found) and opened.match("<news kind='never seen'/>").ids.tolist()[-1] == 700
    assert len([entry for entry in taken_up if entry > 200]) <= 1
    sizes = [
        len(matcher.engine._updates._trees._verifier._conditions)  # type: ignore[attr-defined]
        for matcher in (opened, compiled(xpaths))
    ]
    assert sizes[0] < 0.6 * sizes[1], "unused conditions are gone"


def test_what_documents_have_shown_travels_with_the_index(tmp_path: Path) -> None:
    matcher = compiled([f"//a[@x = 'one'][@y = '{number}']" for number in range(20)])
    for number in range(600):
        matcher.match(f"<r><a x='one' y='n{number}'/></r>")
    matcher.save(tmp_path / "index")
    opened = pathcast.open_index(tmp_path / "index")
    assert opened.statistics()["values"] == matcher.statistics()["values"] == 20
    opened.match("<a x='one' y='n'/>")
    assert opened.statistics()["candidates"] == 0, "all wait for @y, which is the rarer"


def test_an_index_of_another_layout_is_refused_with_advice(tmp_path: Path) -> None:
    compiled(PATTERNS).save(tmp_path / "index")
    saved = open_snapshot(tmp_path / "index", index.KIND)
    assert saved.facts["layout"] == index.LAYOUT
    for layout, advice in ((index.LAYOUT - 1, "again"), (index.LAYOUT + 1, "update Pathcast")):
        write_snapshot(tmp_path / "other", index.KIND, {**saved.facts, "layout": layout}, saved.arrays)
        with pytest.raises(
            SnapshotError,
            match=f"has layout {layout}, but this version of Pathcast reads layout {index.LAYOUT}; .*{advice}",
        ):
            pathcast.open_index(tmp_path / "other")


def test_conditions_of_a_snapshot_are_found_by_what_they_say() -> None:
    names = Names()
    built = Conditions(names)
    programs = [built.add(parse(xpath)) for xpath in PATTERNS]
    opened = Conditions.restore(names, built.saved())
    assert [opened.add(parse(xpath)) for xpath in PATTERNS] == programs
    assert len(opened) == len(built)
    more = "/a[@x = 'one'][b > 6]/c"
    assert opened.add(parse(more)) == built.add(parse(more))
    assert all(np.array_equal(column, built.saved()[name]) for name, column in opened.saved().items())


def test_conditions_of_another_process_are_taken_over_once() -> None:
    ours, theirs = Conditions(Names(["q", "x", "d", "a"])), Conditions(Names())
    for xpath in PATTERNS[3:]:
        ours.add(parse(xpath))
    programs = [theirs.add(parse(xpath)) for xpath in PATTERNS]
    names = np.array([ours.names.add(name) for name in theirs.names], dtype=np.int32)
    moved = ours.merge(theirs.saved(), names)
    for xpath, program in zip(PATTERNS, programs, strict=True):
        assert ours.add(parse(xpath)) == renumbered(np.array(program, dtype=np.int32), moved, names).tolist()
    count = len(ours)
    assert ours.merge(theirs.saved(), names).tolist() == moved.tolist() and len(ours) == count == len(theirs)


def test_value_tests_are_found_and_taken_over_once() -> None:
    names = Names()
    built = DemandTable(names)
    numbers = [built.add(parse(xpath)) for xpath in PATTERNS]
    opened = DemandTable.restore(names, built.saved())
    assert [opened.add(parse(xpath)) for xpath in PATTERNS] == numbers
    ours = DemandTable(Names(["q", "x", "d", "a"]))
    for xpath in PATTERNS[3:]:
        ours.add(parse(xpath))
    other = np.array([ours._names.add(name) for name in names], dtype=np.int32)
    moved = ours.merge(built.saved(), other)
    assert [ours.add(parse(xpath)) for xpath in PATTERNS] == [sorted(moved[some].tolist()) for some in numbers]
    assert len(ours) == len(built) == len(opened) and ours.groups == built.groups
    assert np.allclose(ours.prior()[moved], built.prior()) and ours.longest == built.longest
    opened.add(parse("//a[z > 1][z < 9][z = 5]"))
    assert len(opened) == len(built) + 3 and opened.groups == built.groups + 2


@pytest.mark.slow
@pytest.mark.parametrize("form", ["//a[@b = {}]", "//a[@b = 'x{}']", "//a[@b > {}]", "//a[b{0}/c][d = 'y{0}']"])
@pytest.mark.parametrize("kind", [Conditions, DemandTable])
def test_many_that_differ_in_little_are_told_apart(form: str, kind: type[Conditions] | type[DemandTable]) -> None:
    names = Names()
    built = kind(names)
    numbers = [built.add(parse(form.format(number))) for number in range(1500)]
    opened = kind.restore(names, built.saved())
    for number in range(0, 3000, 2):
        found = opened.add(parse(form.format(number)))
        assert (found == numbers[number]) if number < 1500 else (found not in numbers)
    assert len(opened) > len(built)


def compiled(xpaths: list[str]) -> pathcast.Matcher:
    subscriptions = Subscriptions()
    subscriptions.add_many(xpaths)
    return subscriptions.compile()
