"""Every index returns the answers of a loop over all semijoins, after any history of changes."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathcast.joins.index.clustered_semijoin_index import stabbing_index
from pathcast.joins.index.scan_index import ScanIndex
from pathcast.joins.index.semijoin_index_protocol import SemijoinIndex
from pathcast.joins.query.order_preserving_key_encoding import INT, STRING, Kind, TextKey

Maker = Callable[[Sequence[Kind], Sequence[Kind]], SemijoinIndex]
INDEXES: dict[str, Maker] = {"scan": ScanIndex, "stabbing": stabbing_index}
SHAPES = [(1, 1), (0, 1), (1, 0), (2, 0), (2, 1), (1, 2), (0, 0)]


def keys(kind: Kind) -> st.SearchStrategy[Any]:
    numbers = st.integers(0, 12)
    return numbers if kind is INT else numbers.map(lambda n: TextKey(chr(97 + n // 3), n % 3 - 1))


def ranges(kinds: Sequence[Kind]) -> st.SearchStrategy[list[tuple[Any, Any]]]:
    return st.tuples(*(st.tuples(keys(kind), keys(kind)).map(lambda ends: tuple(sorted(ends))) for kind in kinds)).map(
        list
    )


def point(kinds: Sequence[Kind]) -> st.SearchStrategy[Any]:
    return keys(kinds[0]) if len(kinds) == 1 else st.tuples(*map(keys, kinds))


def holds(box: Sequence[tuple[Any, Any]], at: Any) -> bool:
    coordinates = (at,) if len(box) == 1 else at
    return all(low <= key <= high for (low, high), key in zip(box, coordinates, strict=True))


def neighbours(keys: list, at: int, anchors: Sequence[Any]) -> bool:
    """Whether a key is the next on either side of an anchor."""
    before, after = (keys[at - 1] if at else None), (keys[at + 1] if at + 1 < len(keys) else None)
    return any(
        (keys[at] <= anchor and (after is None or anchor < after))
        or (keys[at] >= anchor and (before is None or anchor > before))
        for anchor in anchors
    )


# Panels that an index leaves to the plain one are not tested again.
CASES = [
    pytest.param(name, kind, shape, id=f"{name}-{kind.name}-{shape}")
    for name, make in INDEXES.items()
    for kind in (INT, STRING)
    for shape in SHAPES
    if name == "scan" or not isinstance(make([kind] * shape[0], [kind] * shape[1]), ScanIndex)
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "kind", "shape"), CASES)
def test_an_index_answers_as_a_loop_does(name: str, kind: Kind, shape: tuple[int, int]) -> None:
    base, filtering = [kind] * shape[0], [kind] * shape[1]
    change = st.tuples(st.integers(0, 30), ranges(base), ranges(filtering))

    @given(st.lists(change, max_size=60), st.data())
    @settings(max_examples=40)
    def check(changes, data) -> None:
        index = INDEXES[name](base, filtering)
        known: dict[int, tuple[list, list]] = {}
        for id, one, other in changes:
            if id in known:
                index.remove(id)
                del known[id]
            else:
                index.add(id, one, other)
                known[id] = (one, other)
        at, joining = data.draw(point(base)), sorted(data.draw(st.lists(point(filtering), max_size=6)))
        selected = [id for id, (box, _) in sorted(known.items()) if holds(box, at)]
        assert len(index) == len(known)
        assert all([tuple(ends) for ends in index.filtering(id)] == box for id, (_, box) in known.items())
        assert all([tuple(ends) for ends in index.base(id)] == box for id, (box, _) in known.items())
        assert index.selected(at).tolist() == selected
        assert index.affected(at, joining).tolist() == [
            id for id in selected if any(holds(known[id][1], one) for one in joining)
        ]
        anchors = index.anchors()
        assert list(anchors) == sorted(set(anchors))
        assert all(any(holds(box, anchor) for anchor in anchors) for _, box in known.values())
        if shape[1] == 1:
            some = sorted(set(joining))
            boxes = [known[id][1][0] for id in selected]
            assert list(index.disposable(at, some)) == [
                not any(low < box[0] and box[1] < high for box in boxes) for low, high in pairwise(some)
            ]
            distinct = [some[at] for at in range(len(some)) if neighbours(some, at, anchors)]
            assert list(index.nearest(joining)) == distinct
            touched = {tuple(known[id][1][0]) for id in index.affected(at, joining).tolist()}
            assert index.minimal(at, joining) == sorted(
                one for one in touched if not any(o != one and one[0] <= o[0] and o[1] <= one[1] for o in touched)
            )
            low, high = data.draw(keys(kind)), data.draw(keys(kind))
            apart = [box for box in boxes if not any(holds([box], one) for one in joining)]
            reaching = any(box[0] <= low and box[1] >= high for box in apart)
            assert index.unaffected(at, joining, low, high) == reaching
        other = data.draw(st.none() | point(base))
        for through in (None, joining):
            affected = [
                {
                    id
                    for id, (box, ends) in known.items()
                    if where is not None and holds(box, where)
                    and (through is None or any(holds(ends, one) for one in through))
                }
                for where in (at, other)
            ]  # fmt: skip
            old, new = affected
            assert index.compare(at, other, through) == (bool(old & new), bool(new - old), bool(old - new))
        event = data.draw(point(filtering))
        exposed = [
            id
            for id, (_, box) in sorted(known.items())
            if holds(box, event) and not any(holds(box, one) for one in joining)
        ]
        assert index.exposed(event, joining).tolist() == exposed
        spans = index.spans(event, joining)
        for probe in [at, *data.draw(st.lists(point(base), max_size=8))]:
            assert any(holds(span, probe) for span in spans) == any(holds(known[id][0], probe) for id in exposed)
        if shape[0] == 1:
            rows = sorted(data.draw(st.lists(point(base), max_size=8)))
            reached = [at for at, row in enumerate(rows) if any(holds(known[id][0], row) for id in exposed)]
            assert index.reached(event, joining, rows) == reached
            assert len(index.reached(event, joining, rows, 1)) == min(1, len(reached))

    check()


@pytest.mark.parametrize("name", INDEXES)
def test_many_at_once_are_as_if_added_one_by_one(name: str) -> None:
    random = np.random.default_rng(3)
    ends = np.sort(random.integers(0, 50, (2, 2, 100)), axis=1)
    one, many = INDEXES[name]([INT], [INT]), INDEXES[name]([INT], [INT])
    one.add(1000, [(3, 9)], [(4, 6)])
    many.add(1000, [(3, 9)], [(4, 6)])
    many.add_many(np.arange(100), [(ends[0, 0], ends[0, 1])], [(ends[1, 0], ends[1, 1])])
    for id in range(100):
        one.add(id, [(int(ends[0, 0, id]), int(ends[0, 1, id]))], [(int(ends[1, 0, id]), int(ends[1, 1, id]))])
    for index in (one, many):
        index.remove(7)
    for at in range(50):
        assert one.affected(at, [10, 20, 30]).tolist() == many.affected(at, [10, 20, 30]).tolist()
        assert one.exposed(at, [10, 20, 30]).tolist() == many.exposed(at, [10, 20, 30]).tolist()
    with pytest.raises(KeyError):
        many.add_many(np.array([200, 50]), [(ends[0, 0][:2], ends[0, 1][:2])], [(ends[1, 0][:2], ends[1, 1][:2])])
    assert len(many) == 100


@pytest.mark.parametrize("name", INDEXES)
def test_an_unknown_semijoin_can_not_be_removed_nor_one_be_added_twice(name: str) -> None:
    index = INDEXES[name]([INT], [INT])
    index.add(1, [(1, 2)], [(1, 2)])
    with pytest.raises(KeyError):
        index.add(1, [(1, 2)], [(1, 2)])
    with pytest.raises(KeyError):
        index.remove(2)
    assert index.selected(1).tolist() == [1]


@pytest.mark.parametrize("name", INDEXES)
def test_anchors_on_one_axis_are_the_fewest(name: str) -> None:
    index = INDEXES[name]([], [INT])
    for id, ends in enumerate([(1, 5), (4, 9), (5, 6), (8, 12), (12, 20)]):
        index.add(id, [], [ends])
    assert list(index.anchors()) == [5, 12]
