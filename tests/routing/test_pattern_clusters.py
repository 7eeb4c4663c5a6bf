"""Clusters found by hashing equal those found by applying every change and comparing."""

from collections import defaultdict

import pytest

from pathcast.patterns import Pattern, parse
from pathcast.patterns.containment.generalisation_steps import Change, generalisations, generalised, size
from pathcast.routing.advertising.pattern_clusters import LOSSES, clusters
from tests.generators.rounds import drawn


def plain_clusters(patterns: list[Pattern]) -> dict[Pattern, set[int]]:
    """The definition: for each result of a change, the patterns that the change turns into it."""
    found: dict[Pattern, set[int]] = defaultdict(set)
    for index, pattern in enumerate(patterns):
        for _, _, looser in generalisations(pattern):
            found[looser].add(index)
    return found


PATHS = (
    "/a/b/c /a/b/d /a/b/e /a/x/c /a//b/c /a/*/c //a/b /a/b[c]/d /a/b[x]/d /a/b[@x=5]/c /a/b[@x=6]/c /a/b[@x]/c "
    "/a/b[not(x)]/c /a[b|c]/d /a/d /a/*[b]/c /a/*/* /a"
)


@pytest.mark.parametrize(
    "patterns",
    [[parse(text.replace("|", " or ")) for text in PATHS.split()], *(drawn(seed).patterns for seed in range(5, 9))],
)
def test_hashing_finds_the_clusters_that_comparing_finds(patterns: list[Pattern]) -> None:
    patterns = list(dict.fromkeys(patterns))
    sizes = list(map(size, patterns))
    expected = plain_clusters(patterns)
    found: dict[Pattern, set[int]] = defaultdict(set)
    for cluster in clusters(patterns, sizes, [0.0] * len(patterns)):
        index, place, change = cluster.members[0]
        looser = generalised(patterns[index], place, change)
        assert {generalised(patterns[index], place, change) for index, place, change in cluster.members} == {looser}
        assert size(looser) <= cluster.size  # branches that have become equal are one
        found[looser] |= {index for index, _, _ in cluster.members}
    for looser, indices in expected.items():
        if sum(sizes[index] for index in indices) > size(looser) and not _is_rewritten(looser):
            assert found[looser] == indices, str(looser)
    assert all(found[looser] <= expected[looser] for looser in found if looser in expected)


def _is_rewritten(pattern: Pattern) -> bool:
    """Whether the normal form may have made one of several patterns with different hashes: `//*/x` is `/*//x`."""
    text = str(pattern)
    return any(part in text for part in ("*//", "*/*", "[*]")) or text.endswith("/*")


def test_the_best_cluster_saves_much_for_little() -> None:
    patterns = [parse(text) for text in ("/a/b/c/d", "/a/b/c/e", "/a/b/c/f", "/p/q", "/p/r")]
    best = clusters(patterns, list(map(size, patterns)), [0.0] * 5)[0]
    assert [index for index, _, _ in best.members] == [0, 1, 2]
    assert best.members[0][2] == "wildcard"
    assert best.loss == LOSSES["wildcard"]


def test_what_was_lost_before_counts() -> None:
    patterns = [parse(text) for text in ("/a/b/c", "/a/b/d", "/p/q/r", "/p/q/s")]
    best = clusters(patterns, [3, 3, 3, 3], [5.0, 5.0, 0.0, 0.0])[0]
    assert [index for index, _, _ in best.members] == [2, 3]


def test_equal_conditions_are_one_label_and_different_ones_are_not() -> None:
    changes: set[Change] = set()
    patterns = [parse("/a/b[@x = 5]"), parse("/a/b[@x = 6]")]
    for cluster in clusters(patterns, [3, 3], [0.0, 0.0]):
        if len(cluster.members) == 2:
            changes.add(cluster.members[0][2])
    assert changes == {"condition", "leaf"}


def test_no_patterns_have_no_clusters() -> None:
    assert clusters([], [], []) == []
    assert clusters([parse("/")], [0], [0.0]) == []
