"""Every engine gives the expected answer to every case of the corpus, one by one and all at once."""

from collections import defaultdict
from operator import attrgetter
from pathlib import Path

import pytest

import pathcast
from pathcast.matching import engines
from tests.corpus import Case, Refusal, cases, refusals


@pytest.mark.slow
@pytest.mark.parametrize("case", cases(), ids=attrgetter("id"))
def test_a_case_has_its_answer_from_every_engine(case: Case) -> None:
    found = {}
    for engine in engines():
        subscriptions = pathcast.Subscriptions(namespaces=case.namespaces)
        number = subscriptions.add(case.pattern)
        found[engine] = subscriptions.compile(engine=engine).match(case.document).ids.tolist()
    assert found == dict.fromkeys(engines(), [number] if case.expected else []), case.why


@pytest.mark.slow
@pytest.mark.parametrize("engine", engines())
@pytest.mark.parametrize("kept", ["in memory", "on disk"])
def test_all_patterns_together_leave_each_case_its_answer(engine: str, kept: str, tmp_path: Path) -> None:
    """Patterns that share names, prefixes and branches must not change each other's answers."""
    wrong = []
    for at, group in enumerate(_by_namespaces()):
        subscriptions = pathcast.Subscriptions(namespaces=group[0].namespaces)
        numbers = subscriptions.add_many([case.pattern for case in group])
        matcher = subscriptions.compile(engine=engine)
        if kept == "on disk":
            matcher.save(tmp_path / str(at))
            matcher = pathcast.open_index(tmp_path / str(at))
        documents = list(dict.fromkeys(case.document for case in group))
        found = dict(zip(documents, matcher.match_many(documents), strict=True))
        for case, number in zip(group, numbers, strict=True):
            matches = found[case.document]
            if (number in matches) is not case.expected:
                wrong.append(case.id)
    assert wrong == []


def _by_namespaces() -> list[list[Case]]:
    groups: dict[str, list[Case]] = defaultdict(list)
    for case in cases():
        groups[str(case.namespaces)].append(case)
    return list(groups.values())


@pytest.mark.parametrize("refusal", refusals(), ids=attrgetter("id"))
def test_a_refused_pattern_leaves_the_subscriptions_as_they_were(refusal: Refusal) -> None:
    subscriptions = pathcast.Subscriptions(namespaces=refusal.namespaces)
    subscriptions.add("/a")
    with pytest.raises(pathcast.PatternError) as caught:
        subscriptions.add(refusal.pattern)
    assert caught.value.column == refusal.column
    assert [subscription.xpath for subscription in subscriptions] == ["/a"]
