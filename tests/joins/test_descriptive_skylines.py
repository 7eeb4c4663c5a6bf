"""Skylines cover, of the selected semijoins, exactly the affected ones; and some are small."""

from collections.abc import Sequence
from itertools import combinations, pairwise
from time import process_time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathcast.joins.index.scan_index import ScanIndex
from pathcast.joins.query.order_preserving_key_encoding import INT, STRING, Kind, TextKey
from pathcast.joins.server.sorted_row_views import Run
from pathcast.joins.skylines.descriptive_skylines import FLAVOURS, describe
from pathcast.joins.skylines.skyline_around_point import envelope, inside

AT = 5


def keys(kind: Kind) -> st.SearchStrategy[Any]:
    numbers = st.integers(0, 12)
    return numbers if kind is INT else numbers.map(lambda n: TextKey("abcdefg"[n // 2]))


def ends(kind: Kind) -> st.SearchStrategy[tuple[Any, Any]]:
    """Ranges; those of strings may end where no string is."""
    every = keys(kind)
    if kind is STRING:
        every |= st.integers(0, 6).flatmap(
            lambda n: st.sampled_from([TextKey("abcdefg"[n], -1), TextKey("abcdefg"[n], 1)])
        )
        every |= st.sampled_from([STRING.lowest, STRING.highest])
    return st.tuples(every, every).map(lambda pair: tuple(sorted(pair)))


@st.composite
def cases(draw: st.DrawFn, kind: Kind, axes: int) -> tuple[ScanIndex, ScanIndex, Run, list[tuple[bool, list]]]:
    """Two panels of semijoins (whether each is selected, and its filtering ranges), and filtering tuples."""
    panels = ScanIndex([INT], [kind] * axes), ScanIndex([], [kind] * axes)
    known = []
    for id, (box, selected, second) in enumerate(
        draw(
            st.lists(
                st.tuples(st.lists(ends(kind), min_size=axes, max_size=axes), st.booleans(), st.booleans()), max_size=12
            )
        )
    ):
        if second:
            panels[1].add(id, [], box)
        else:
            panels[0].add(id, [(AT, AT) if selected else (AT + 1, AT + 2)], box)
        known.append((selected or second, box))
    run = Run(numbers=axes == 1 and kind is INT)
    points = st.tuples(*[keys(kind)] * axes)
    for row, point in enumerate(draw(st.lists(points, max_size=7))):
        run.insert(point[0] if axes == 1 else point, row)
    return *panels, run, known


def covers(box: Sequence[tuple[Any, Any]], corner: Sequence[Any]) -> bool:
    return all(low <= x and high >= y for (low, high), x, y in zip(box, corner[::2], corner[1::2], strict=True))


def affected(box: list, run: Run, axes: int) -> bool:
    return any(inside(box, (point,) if axes == 1 else point) for point in run.keys)


def skyline(flavour: str, case: tuple, axes: int) -> list:
    first, second, run, _ = case
    return describe(flavour, [(first, AT), (second, ())], run, axes)


@pytest.mark.slow
@pytest.mark.parametrize("flavour", FLAVOURS)
@pytest.mark.parametrize(
    ("kind", "axes"), [(INT, 1), (STRING, 1), (INT, 2), (STRING, 2)], ids=lambda one: str(one)[:12]
)
def test_a_skyline_covers_exactly_the_affected_among_the_selected(flavour: str, kind: Kind, axes: int) -> None:
    @given(cases(kind, axes))
    @settings(max_examples=60)
    def check(case: tuple) -> None:
        corners = skyline(flavour, case, axes)
        for selected, box in case[3]:
            if selected:
                assert any(covers(box, corner) for corner in corners) == affected(box, case[2], axes)
        for corner in corners:
            assert not any(isinstance(key, TextKey) and (key.side or key.rank) for key in corner), "a corner is a value"

    check()


@pytest.mark.slow
@given(cases(INT, 1))
@settings(max_examples=100)
def test_the_smallest_skyline_is_the_smallest(case: tuple) -> None:
    sizes = {flavour: len(skyline(flavour, case, 1)) for flavour in FLAVOURS}
    assert sizes["min"] <= min(sizes["sub"], sizes["clu+"]) and sizes["clu+"] <= sizes["clu"] <= max(sizes["tup"], 0)
    wanted = [box for selected, box in case[3] if selected and affected(box, case[2], 1)]
    unwanted = [box for selected, box in case[3] if selected and not affected(box, case[2], 1)]
    corners = [(x, y) for x in range(13) for y in range(13)]
    right = [corner for corner in corners if not any(covers(box, corner) for box in unwanted)]
    fewer = sizes["min"] - 1
    if 0 <= fewer <= 1:
        assert not any(
            all(any(covers(box, corner) for corner in chosen) for box in wanted)
            for chosen in combinations(right, fewer)
        )


@pytest.mark.slow
@given(cases(INT, 1))
def test_points_of_a_skyline_are_in_order_and_none_covers_another(case: tuple) -> None:
    for flavour in FLAVOURS:
        corners = skyline(flavour, case, 1)
        assert corners == sorted(corners)
        assert all(one[0] < other[0] and one[1] < other[1] for one, other in pairwise(corners))


@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6))),
    st.tuples(st.integers(0, 6), st.integers(0, 6)),
    st.data(),
)
def test_a_box_around_the_center_holds_a_point_exactly_if_it_holds_one_of_the_envelope(points, center, data) -> None:
    near = envelope(points, center)
    assert set(near) <= set(points)
    box = [
        (center[axis] - data.draw(st.integers(0, 6)), center[axis] + data.draw(st.integers(0, 6))) for axis in range(2)
    ]
    assert any(inside(box, point) for point in near) == any(inside(box, point) for point in points)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [INT, STRING], ids=lambda kind: kind.name)
@given(st.data())
def test_an_envelope_is_what_its_definition_says(kind: Kind, data: st.DataObject) -> None:
    axes = data.draw(st.integers(1, 3))
    point = st.tuples(*[keys(kind) if kind is STRING else keys(kind) | st.sampled_from([-(2**63), 2**63 - 1])] * axes)
    points, center = data.draw(st.lists(point, max_size=9)), data.draw(point)

    def between(other: tuple, one: tuple) -> bool:
        return all(min(c, p) <= o <= max(c, p) for c, o, p in zip(center, other, one, strict=True))

    expected = [one for one in sorted(set(points)) if not any(o != one and between(o, one) for o in points)]
    assert envelope(points, center) == expected


def test_an_envelope_of_many_points_is_found_quickly() -> None:
    points = [(at * 7919 % 10_007, at * 104_729 % 10_009) for at in range(5_000)]
    began = process_time()
    assert 4 <= len(envelope(points, (5_000, 5_000))) < 200
    # Comparing all with all takes many seconds.
    assert process_time() - began < 2


def test_figure_2_d_points_with_nothing_between_them_become_one() -> None:
    panel = ScanIndex([INT], [INT])
    for id, (selecting, low, high) in enumerate([(AT, 1, 4), (AT, 3, 8), (AT, 6, 9), (AT + 1, 5, 6), (AT, 20, 30)]):
        panel.add(id, [(selecting, selecting)], [(low, high)])
    run = Run(numbers=True)
    for row, key in enumerate([2, 4, 7, 9, 22, 40]):
        run.insert(key, row)
    # The anchors are 4, 6 and 30. Between 4 and 7 lies only a range that is not selected, between 7 and 22 none.
    assert describe("clu", [(panel, AT)], run, 1) == [(4, 4), (7, 7), (22, 22), (40, 40)]
    assert describe("clu+", [(panel, AT)], run, 1) == [(40, 4)]
    panel.add(9, [(AT, AT)], [(5, 6)])
    assert describe("clu+", [(panel, AT)], run, 1) == [(4, 4), (40, 7)]
