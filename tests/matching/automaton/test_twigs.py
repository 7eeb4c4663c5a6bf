"""Twigs: found by the elements at which their branches hold, with the reference's results."""

import random
from pathlib import Path
from typing import Any

import pytest

import pathcast
from pathcast import Subscriptions
from pathcast.documents import Names
from pathcast.matching import Tuning
from pathcast.matching.automaton.state_test_joins.waiting_patterns_by_state_kernels import ANYWHERE, DOWN
from pathcast.matching.automaton.twigs import twig_join as twig_joins
from pathcast.matching.automaton.twigs.twig_branch_decomposition import twig_of
from pathcast.matching.automaton.verify.candidate_verifier import Verifier
from pathcast.patterns import parse
from pathcast.patterns.parsing.plain_path_encoder import PathEncoder

NAMES = ("a", "b", "c")


def some(seed: int, patterns: int = 300, documents: int = 25) -> tuple[list[str], list[str]]:
    """Random twigs and documents; few names, so that branches often hold, but not at the same element."""
    chance = random.Random(seed)

    def branch() -> str:
        begin = chance.choice([*NAMES, ".//a", ".//b"])
        rest = (chance.choice(["/", "/", "//"]) + chance.choice([*NAMES, "*"]) for _ in range(chance.randint(0, 2)))
        return f"[{begin}{''.join(rest)}]"

    def twig() -> str:
        steps = range(chance.randint(1, 4))
        axes, tests = ([chance.choice(of) for _ in steps] for of in (("/", "/", "//"), (*NAMES, "*")))
        branches = ("".join(branch() for _ in range(chance.choice([0, 1, 1, 2]))) for _ in steps)
        return "".join(map("".join, zip(axes, tests, branches, strict=True)))

    def element(depth: int) -> str:
        name = chance.choice(NAMES)
        inside = "".join(element(depth - 1) for _ in range(chance.randint(0, 3))) if depth else ""
        return f"<{name}>{inside}</{name}>"

    return [twig() for _ in range(patterns)], [element(chance.randint(1, 5)) for _ in range(documents)]


def equal_to_reference(subscriptions: Subscriptions, documents: list[str]) -> pathcast.Matcher:
    matcher, reference = subscriptions.compile(), subscriptions.compile(engine="reference")
    ours = [matches.ids.tolist() for matches in matcher.match_many(documents)]
    assert ours == [reference.match(document).ids.tolist() for document in documents]
    assert any(ours)
    return matcher


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_twigs_are_what_the_reference_finds(seed: int) -> None:
    patterns, documents = some(seed)
    subscriptions = Subscriptions()
    subscriptions.add_many(patterns)
    equal_to_reference(subscriptions, documents)


def test_nothing_is_verified_that_branches_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    patterns, documents = some(50)
    subscriptions = Subscriptions()
    trees = [pattern for pattern in patterns if twig_of(parse(pattern), PathEncoder(Names()))]
    assert len(trees) > 150
    subscriptions.add_many(trees)
    verified: list[int] = []
    verify = Verifier.verify

    def count_and_verify(*given: Any) -> Any:
        verified.append(len(given[3]))
        return verify(*given)

    monkeypatch.setattr(Verifier, "verify", count_and_verify)
    matcher = equal_to_reference(subscriptions, documents)
    assert set(verified) == {0}
    assert 0 < matcher.statistics()["candidates that match"] < matcher.statistics()["candidates"]


def test_with_hardly_any_room() -> None:
    patterns, documents = some(60, documents=8)
    subscriptions = Subscriptions(tuning=Tuning(listed_elements=1, twigs_found=1))
    subscriptions.add_many(patterns)
    equal_to_reference(subscriptions, documents)


def test_stamps_begin_again() -> None:
    patterns, documents = some(61)
    subscriptions = Subscriptions(tuning=Tuning(last_stamp=3))
    subscriptions.add_many(patterns)
    matcher = equal_to_reference(subscriptions, documents)
    together = [matches.ids.tolist() for matches in matcher.match_many(documents)]
    assert together == [matcher.match(document).ids.tolist() for document in documents]


@pytest.mark.slow
def test_documents_deeper_than_a_word_has_bits_are_verified() -> None:
    patterns, documents = some(62, documents=4)
    subscriptions = Subscriptions()
    subscriptions.add_many(patterns)
    deep = ["<a><b>" * half + document + "</b></a>" * half for half in (30, 31, 40) for document in documents[:2]]
    equal_to_reference(subscriptions, [*documents, *deep])


def test_programs_are_made_for_what_is_verified_alone(tmp_path: Path) -> None:
    patterns, documents = some(66, documents=4)
    trees = [pattern for pattern in patterns if twig_of(parse(pattern), PathEncoder(Names()))]
    subscriptions = Subscriptions()
    subscriptions.add_many(trees)
    matcher = equal_to_reference(subscriptions, documents)
    matcher.save(tmp_path / "index")
    deep = "<a><b>" * 40 + documents[0] + "</b></a>" * 40
    wanted = subscriptions.compile(engine="reference").match(deep).ids.tolist()
    for each in (matcher, pathcast.open_index(tmp_path / "index")):
        verifier = each.engine._updates.current.base.trees.verifier  # type: ignore[attr-defined]
        before = verifier._later
        assert before is None and not len(verifier._conditions)
        for _ in range(2):
            assert each.match(deep).ids.tolist() == wanted
            assert 0 < len(verifier._later) < len(verifier)


@pytest.mark.slow
def test_documents_without_states_are_verified() -> None:
    patterns, documents = some(63, documents=12)
    subscriptions = Subscriptions(tuning=Tuning(state_bytes=1))
    subscriptions.add_many([*patterns, *(f"//b{number}[a]//c" for number in range(1200))])
    closed = []
    for seed, document in enumerate(documents[:3]):
        names = [f"b{number}" for number in range(seed, 1200, 3)]
        ends = "".join(f"</{name}>" for name in reversed(names))
        closed.append("".join(f"<{name}>" for name in names) + document + ends)
    matcher = equal_to_reference(subscriptions, [*documents[:10], *closed, *documents[10:]])
    assert matcher.statistics()["simulated"] or matcher.statistics()["evictions"]


def test_gates_that_nobody_asks_for_are_open_when_everything_is_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    """Joins give up on every document here; the walk has not listed the gates of the patterns that joins decide."""
    found = twig_joins.TwigJoins.match

    def none(self: twig_joins.TwigJoins, *given: object) -> twig_joins.TwigsFound:
        answer = found(self, *given)  # type: ignore[arg-type]
        return answer._replace(offsets=answer.offsets * 0, entries=answer.entries[:0], unknown=~answer.unknown)

    monkeypatch.setattr(twig_joins.TwigJoins, "match", none)
    patterns, documents = some(64)
    subscriptions = Subscriptions()
    subscriptions.add_many([*patterns, "//a[@k = 1]/b", "//b[@k]"])
    equal_to_reference(subscriptions, documents)


def test_they_are_saved_opened_and_added_to(tmp_path: Path) -> None:
    patterns, documents = some(65)
    subscriptions = Subscriptions()
    subscriptions.add_many(patterns[:200])
    matcher = subscriptions.compile()
    for _ in range(30):
        matcher.match_many(documents[:10])  # so that twigs re-select the branch that they wait for
    matcher.save(tmp_path / "index")
    opened = pathcast.open_index(tmp_path / "index")
    for step in (lambda: None, lambda: opened.subscriptions.add_many(patterns[200:])):
        step()
        wanted = opened.subscriptions.compile(engine="reference")
        for document in documents[:8]:
            assert opened.match(document).ids.tolist() == wanted.match(document).ids.tolist()
    opened.save(tmp_path / "again")
    again = pathcast.open_index(tmp_path / "again")
    assert [again.match(document).ids.tolist() for document in documents] == [
        opened.match(document).ids.tolist() for document in documents
    ]


def test_twigs_wait_for_the_branch_that_documents_rarely_have() -> None:
    subscriptions = Subscriptions()
    subscriptions.add_many([f"/a[b]/c{number}" for number in range(50)] + ["/a[b/d]/c0", "/a[c0/d]/b"])
    matcher = subscriptions.compile()
    document = "<a><b/><c0/></a>"
    for _ in range(300):
        matcher.match(document)
    before = matcher.statistics()["candidates"]
    assert matcher.match(document).ids.tolist() == [1]
    assert matcher.statistics()["candidates"] == before + 1


@pytest.mark.parametrize(
    ("xpath", "places"),
    {
        "/a[b]/c": [1, 1],
        "/a[b//d]/c": [DOWN + 1, 1],
        "//a[b//d]/c": [ANYWHERE, 1],
        "//a[.//b]//c": [ANYWHERE, ANYWHERE, 0],
        "/a/b[x]/c[y]/z": [1, 1, "lift", 1, 1],
        "//b[x]//c[y]/z": [1, 1, "lift", ANYWHERE, 1],
        "//*[x]/y": [1, 1],
        "//a[*//*]/y": [2, 1],
        "//*[*]/y": [],
        "/a[b[c][d]][e]/f": [1, 1, "lift", 1, 1, 1],
        "/a[b[c][d]]/e[f][g]": [],
        "/a[b][@k]": [],
        "/a[b or c]/d": [],
        "/a[not(b)]/d": [],
        "//*[.//x]//y": [],
    }.items(),
)
def test_what_branches_decide(xpath: str, places: list[object]) -> None:
    twig = twig_of(parse(xpath), PathEncoder(Names()))
    found: list[object] = []
    for tie in [] if twig is None else twig.ties:
        found += [tie.place] if tie.path is not None else ["lift", tie.place]
    assert found == places
