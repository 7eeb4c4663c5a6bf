"""The savings of annotations: each kind in its own case, after the paper's examples, and all on random overlays."""

from collections import Counter
from random import Random

import numpy as np
import pytest

from pathcast.routing import Overlay
from pathcast.routing.advertising import subscription_advertisement
from pathcast.routing.annotations.data_pattern_occurrences import DataPatterns
from pathcast.routing.document_route_report import STEPS
from pathcast.transmission import Topology
from tests.routing.drawn import delivered, world_of

BOUND = ["/a/b/c/d", "/a/b/x/d", "/a/b/y/d"]


def chain(subscriptions: dict[str, list[str]], keep: float, nodes: int = 3) -> Overlay:
    overlay = Overlay(Topology.chain(nodes))
    for router, xpaths in subscriptions.items():
        for xpath in xpaths:
            overlay.subscribe(router, xpath, f"{xpath} at {router}")
    overlay.advertise(keep)
    return overlay


def who(overlay: Overlay, document: str, policy: str, engine: str = "yfilter") -> set[str]:
    return {subscriber for subscriber, _ in delivered(overlay.publish(document, policy, engine))}


def test_a_binding_forwards_a_document_without_a_look_at_it() -> None:
    overlay = chain({"r2": BOUND}, keep=0.4)
    assert [str(each) for each in overlay.router("r1").received["r2"].aggregates] == ["/a/b/*/d"]
    report = overlay.publish("<a><b><x><d/></x></b></a>", "L+s", "yfilter")
    assert delivered(report) == {("/a/b/x/d at r2", "r2")}
    assert report.per_router["r2"].annotations["+s"] > 0
    assert overlay.publish(b"<a><b><x><d/></x></b></a>", "L", "yfilter").per_router["r2"].annotations == {}


def test_when_bindings_tell_everything_the_document_is_not_parsed() -> None:
    overlay = chain({"r3": ["/a/b/c/d"], "r2": []}, keep=1.0)
    report = overlay.publish("<a><b><c><d/></c></b></a>", "L+s", "yfilter")
    assert delivered(report) == {("/a/b/c/d at r3", "r3")}
    assert [report.per_router[router].parsed for router in ("r1", "r2", "r3")] == [True, False, False]
    assert report.per_router["r2"].forwarding == "annotations"


@pytest.mark.parametrize("policy", ["L+s", "L+s-sd", "ES+s"])
def test_an_aggregate_that_holds_vouches_for_what_it_implies(policy: str) -> None:
    wanted = ["/a/b[@n = 5]", "/a[c or d]", "//e"]
    overlay = chain({"r2": wanted, "r4": wanted}, keep=1.0, nodes=4)
    report = overlay.publish('<a><b n="5"/><c/><e/></a>', policy, "yfilter")
    assert len(report.deliveries) == 6
    assert all(each.annotations.get("+s") for each in list(report.per_router.values())[1:])
    if policy != "ES+s":  # which lists the matches so far
        assert [each.parsed for each in report.per_router.values()] == [True, False, False, False]
    assert {name for name, _ in delivered(overlay.publish('<a><b n="6"/><e/></a>', policy, "yfilter"))} == {
        "//e at r2", "//e at r4",
    }  # fmt: skip


def test_what_only_contains_an_aggregate_is_not_vouched_for() -> None:
    overlay = chain({"r3": ["/a/b", "/a/b[c]", "/a/b[d]"]}, keep=0.3)
    assert [str(each) for each in overlay.router("r1").received["r2"].aggregates] == ["/a/b"]
    report = overlay.publish("<a><b><c/></b></a>", "L+s-sd", "yfilter")
    assert delivered(report) == {("/a/b at r3", "r3"), ("/a/b[c] at r3", "r3")}
    assert [report.per_router[router].parsed for router in ("r1", "r2", "r3")] == [True, False, True]
    first, second = report.deliveries
    assert (first.subscriber, second.subscriber) == ("/a/b at r3", "/a/b[c] at r3")
    assert first.time < second.time


def test_bindings_are_passed_on_without_parsing() -> None:
    overlay = chain({"r4": BOUND, "r2": ["/a/b/z/d"]}, keep=0.4, nodes=4)
    report = overlay.publish("<a><b><x><d/></x></b></a>", "L+s-sd", "yfilter")
    assert delivered(report) == {("/a/b/x/d at r4", "r4")}
    assert report.per_router["r3"].forwarding == "annotations"
    assert "+s" in report.per_router["r4"].annotations


def test_the_second_occurrence_is_bound_too() -> None:
    overlay = chain({"r2": BOUND}, keep=0.4)
    report = overlay.publish("<a><b><q><d/></q><y><d/></y></b></a>", "L+s", "yfilter")
    (delivery,) = report.deliveries
    assert delivery.subscriber == "/a/b/y/d at r2"
    assert report.per_router["r2"].arrived < delivery.time


def test_bindings_never_vouch_for_values() -> None:
    overlay = chain({"r2": ["/a/b[@n = 5]/d", "/a/c[@n = 5]/d", "/a/b/d", "/a/x[y]/d"]}, keep=0.3)
    for policy in ("L+s", "L+s-sd", "ES+s"):
        assert who(overlay, '<a><b n="6"><d/></b></a>', policy) == {"/a/b/d at r2"}
        assert who(overlay, '<a><x n="5"><d/></x></a>', policy) == set()


def test_what_an_aggregate_covers_is_skipped_when_it_fails() -> None:
    overlay = chain({"r2": [*BOUND, "/a/p/q", "/a/p/r", "/a/p/s"]}, keep=0.4)
    report = overlay.publish("<a><b><x><d/></x></b></a>", "L-s", "yfilter")
    assert report.per_router["r2"].skipped == {"-s": 3}
    assert report.per_router["r2"].wanted == 6


def test_what_contains_an_absent_pattern_is_skipped() -> None:
    overlay = chain({"r2": ["//b/d", "//x", "//c/d[.//q]"]}, keep=1.0)
    report = overlay.publish("<a><x/><b/><d/></a>", "L-d", "yfilter")
    assert report.per_router["r2"].skipped == {"-d": 2}
    assert {subscriber for subscriber, _ in delivered(report)} == {"//x at r2"}


def test_parts_under_or_and_not_exclude_nothing() -> None:
    overlay = chain({"r2": ["/a[b or c]", "/a[not(q)]", "/a[not(b/d)]/c"]}, keep=1.0)
    for policy in ("L-d", "L-s", "L+s-sd", "L+sd-sd"):
        assert who(overlay, "<a><c/></a>", policy) == {"/a[b or c] at r2", "/a[not(q)] at r2", "/a[not(b/d)]/c at r2"}


def test_a_pattern_that_is_over_ends_no_other_branch() -> None:
    """The paper's rule would lose it: x/y ends before w begins."""
    overlay = chain({"r2": ["/r[x/y]/w"], "r3": ["/r[x/y]/w", "//x/y"]}, keep=1.0)
    for policy in ("L+d", "L+sd-sd", "ES+d"):
        got = who(overlay, "<r><x><y/></x><w/></r>", policy)
        assert got == {"/r[x/y]/w at r2", "/r[x/y]/w at r3", "//x/y at r3"}
    report = overlay.publish("<r><x><y/></x><w/></r>", "L+d", "yfilter")
    assert report.per_router["r2"].annotations["+d"] > 0


def test_negative_annotations_are_derived_when_a_document_is_forwarded_at_once() -> None:
    overlay = chain({"r3": [*BOUND, "/a/p/q", "/a/p/r"]}, keep=0.6)
    report = overlay.publish("<a><b><x><d/></x></b></a>", "L+s-sd", "yfilter")
    assert report.per_router["r2"].forwarding == "annotations"
    assert {"-s", "-d"} <= set(report.per_router["r3"].annotations)
    assert sum(report.per_router["r3"].skipped.values()) == 2


@pytest.mark.slow
def test_every_kind_is_at_work_on_random_overlays() -> None:
    kinds: Counter[str] = Counter()
    spared: Counter[str] = Counter()
    unparsed = 0
    for seed in range(0, 60, 2):
        world = world_of(seed)
        world.overlay.advertise(0.5)
        for document in world.documents:
            for each in world.overlay.publish(document, "L+sd-sd", "yfilter").per_router.values():
                kinds.update(each.annotations.keys())
                spared.update(each.skipped)
                unparsed += not each.parsed
    assert min(kinds[kind] for kind in ("+s", "+d", "-s", "-d")) > 20
    assert min(spared[kind] for kind in ("-s", "-d")) > 20
    assert unparsed > 20


@pytest.mark.parametrize("policy", ["L", "L+s-sd", "ES+sd", "ES+t", "L+st-sd"])
def test_what_was_spent_by_the_time_of_a_copy_adds_up_to_it(policy: str) -> None:
    overlay = chain({"r1": ["//d", "//e"], "r2": ["//d", "/a/e"], "r3": ["//d", "//e[f]"]}, keep=1.0)
    report = overlay.publish("<a><d/><e><f/></e></a>", policy, "yfilter")
    for name, each in report.per_router.items():
        times = [delivery.time for delivery in report.deliveries if delivery.router == name]
        left = {*times, *each.forwarded.values()}
        assert left == set(each.moments)
        for time, spent in each.moments.items():
            assert each.arrived + sum(spent.values()) == pytest.approx(time)
            assert all(spent[step] <= each.spent[step] + 1e-9 for step in spent)
        assert each.processing == sum(each.spent.values())
        assert set(each.spent) <= set(STEPS)
        assert ("read" in each.spent and each.spent["read"] > 0) is each.parsed


@pytest.mark.parametrize("policy", ["L", "L+s-sd"])
def test_the_report_has_times_that_grow_along_the_way(policy: str) -> None:
    overlay = chain({"r1": ["//d"], "r2": ["//d"], "r3": ["//d"]}, keep=1.0)
    report = overlay.publish("<a><d/></a>", policy, "yfilter")
    assert list(report.per_router) == ["r1", "r2", "r3"]
    arrived = [each.arrived for each in report.per_router.values()]
    assert arrived == sorted(arrived)
    assert arrived[0] == 0
    assert report.response_time == pytest.approx(sum(each.time for each in report.deliveries) / 3)
    assert report.last_time == max(each.time for each in report.deliveries)


def test_entries_behind_numbers_are_marked_and_counted() -> None:
    random = np.random.default_rng(5)
    for count, entries, size in ((20, 70, 40), (3, 5, 1), (40, 129, 128), (0, 9, 0)):
        behind = [random.choice(entries, min(size, entries), replace=False).astype(np.int32) for _ in range(count)]
        numbers, idle, before = random.random(count) < 0.3, random.random(entries) < 0.2, random.random(entries) < 0.2
        expected = before.copy()
        for number in np.flatnonzero(numbers):
            expected[behind[number]] = True
        expected &= before | ~idle
        among = random.permutation(entries + 2)[: entries - 1].astype(np.int32)  # the last two have no number
        idle, before, expected = (np.append(mask, [False, False]) for mask in (idle, before, expected))
        marked = before[among]
        fresh = subscription_advertisement.EntriesBehind(behind).mark(numbers, among, idle, marked)
        assert np.array_equal(marked, expected[among])
        assert fresh == np.count_nonzero(expected[among]) - np.count_nonzero(before[among])


def test_entries_that_stand_behind_one_number_each_are_marked_and_listed() -> None:
    random = np.random.default_rng(7)
    over, numbers, idle = random.integers(0, 9, 50), random.random(9) < 0.4, random.random(50) < 0.2
    behind = subscription_advertisement.EntriesBehind(np.flatnonzero(over == number).tolist() for number in range(9))
    for among in (np.arange(50, dtype=np.int32), random.permutation(50)[:20].astype(np.int32)):
        marked = np.zeros(len(among), dtype=np.bool_)
        expected = (numbers[over] & ~idle)[among]
        assert behind.mark(numbers, among, idle, marked) == np.count_nonzero(expected) > 0
        assert np.array_equal(marked, expected)
    assert sorted(behind.entries(numbers).tolist()) == np.flatnonzero(numbers[over]).tolist()


def test_of_data_patterns_the_largest_of_an_entry_tell_what_all_do() -> None:
    random = Random(3)
    for _ in range(30):
        chains = [tuple(random.choices("abc", k=random.randrange(1, 5))) for _ in range(20)]
        inside = {each[low:high] for each in chains for low in range(4) for high in range(low + 1, len(each) + 1)}
        patterns = random.sample(sorted(inside), len(inside) // 2)
        entries = random.sample(chains, 12)
        containing = [[place for place, each in enumerate(entries) if is_in(some, each)] for some in patterns]
        gone = random.sample(patterns, len(patterns) // 3)  # and so are all that contain one
        absent = np.array([any(is_in(each, some) for each in gone) for some in patterns])
        idle, among = np.zeros(12, dtype=np.bool_), np.arange(12, dtype=np.int32)
        all_of_them, largest = np.zeros((2, 12), dtype=np.bool_)
        subscription_advertisement.EntriesBehind(containing).mark(absent, among, idle, all_of_them)
        narrowed = subscription_advertisement.EntriesBehind(containing, DataPatterns(patterns))
        narrowed.mark(absent, among, idle, largest)
        assert np.array_equal(all_of_them, largest)


def is_in(part: tuple[str, ...], whole: tuple[str, ...]) -> bool:
    return any(whole[begin : begin + len(part)] == part for begin in range(len(whole)))


def test_entries_expire_at_the_earliest_of_their_places() -> None:
    behind = subscription_advertisement.EntriesBehind([[0, 2], [1, 2], [3]])
    expiry = np.full(5, 100, dtype=np.int32)
    behind.expire(np.array([0, 1]), np.array([7, 4]), expiry)
    assert expiry.tolist() == [7, 4, 4, 100, 100]


def test_a_router_in_between_makes_nothing_looser() -> None:
    overlay = chain({"r3": BOUND}, keep=0.4)
    first, second = overlay.router("r1").received["r2"], overlay.router("r2").received["r3"]
    assert [str(each) for each in second.aggregates] == ["/a/b/*/d"]
    assert first.aggregates == second.aggregates


def test_aggregates_have_the_part_of_their_router_s_steps_that_is_kept() -> None:
    xpaths = [f"/a/{one}/{two}/{three}" for one in "bc" for two in "def" for three in "ghij"]
    overlay = chain({"r3": xpaths, "r2": [f"/x{xpath}" for xpath in xpaths]}, keep=0.25)
    first, second = overlay.router("r1").received["r2"], overlay.router("r2").received["r3"]
    assert second.steps <= 0.25 * 4 * len(xpaths)
    assert first.steps <= 0.25 * (5 * len(xpaths) + second.steps)
