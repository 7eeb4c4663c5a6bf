"""Absolute paths that all subscriptions require are required by every aggregate."""

import pytest

from pathcast.patterns import parse
from pathcast.patterns.containment.pattern_containment import contains
from pathcast.routing import Overlay
from pathcast.routing.advertising.paths_required_by_all_patterns import having, shared_by, without
from pathcast.routing.advertising.subscription_aggregation import aggregate


@pytest.mark.parametrize(
    ("patterns", "shared"),
    [
        (["/a/b[//t]", "//c[//t]/d", "/a[x][//t][//u]"], ["//t"]),
        (["/a/b[//t]", "/a/b"], []),
        (["/a/b[//t]", "//t"], ["//t"]),
        (["/a/b[//t]", "//t/u"], []),
        (["/a/b", "/a/b"], []),
        (["/a/b[//t or x]", "/a[//t]"], []),
        (["/a/b[not(//t)]", "/a[//t]"], []),
        (["/a[//t[@x = '1']/u]", "/b[//t[@x = '1']/u]"], ["//t[@x = '1']/u"]),
        ([], []),
    ],
)
def test_what_all_demand_is_found_taken_off_and_put_back(patterns, shared):
    parsed = [parse(pattern) for pattern in patterns]
    found = shared_by(parsed)
    assert {str(parse(f"/x[{path}]")) for path in shared} == {
        str(having(parse("/x"), frozenset([each]))) for each in found
    }
    for pattern in parsed:
        bare = without(pattern, found)
        assert not shared_by([bare]) & found
        again = having(bare, found)
        assert contains(again, pattern) and contains(pattern, again)


def test_a_pattern_without_steps_gets_them():
    shared = shared_by([parse("/a[//t][/u/v]"), parse("/b[/u/v][//t]")])
    assert str(having(parse("/"), shared)) in {"//t[/u/v]", "/u[//t]/v"}


def test_aggregates_keep_it():
    overlay = Overlay.tree(levels=2, fanout=1)
    names = "abcdefgh"
    overlay.subscribe_many("r2", [f"/{x}/{y}/z[//test]" for x in names for y in names], "ada")
    overlay.advertise(keep=0.1)
    aggregates = overlay.router("r1").received["r2"].aggregates
    assert len(aggregates) < 20 and all("//test" in str(each) for each in aggregates)
    assert not overlay.publish("<a><b><z/></b></a>").deliveries
    assert overlay.publish("<a><b><z/></b><test/></a>").deliveries


def test_what_all_demand_is_given_up_when_it_does_not_fit():
    found = aggregate([parse("/a[//t/u/v]"), parse("/b[//t/u/v]")], keep=0.2)
    assert found.steps <= 0.2 * 8
    assert all(len(each) for each in found.covered)
