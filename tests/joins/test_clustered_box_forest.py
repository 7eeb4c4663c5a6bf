"""Forests of boxes: invariants of trees and clusters after many insertions and removals."""

from collections.abc import Iterator
from random import Random

import numpy as np
import pytest

from pathcast.joins.index.clustered_box_forest import Forest
from pathcast.joins.index.clustered_box_forest_kernels import BLOCK, CELL, CHILD, GREATEST, LEAST, PARENT, SIZE
from pathcast.joins.index.clustered_semijoin_index import StabbingIndex
from pathcast.joins.index.scan_index import ScanIndex
from pathcast.joins.query.order_preserving_key_encoding import INT

Box = tuple[int, int, int, int]


def check(forest: Forest, known: dict[int, Box]) -> None:
    """Check the invariants of `box_forest_kernels`, the boxes, and that every range contains its cluster's anchor."""
    anchors = forest.anchors.tolist()
    assert anchors == sorted(set(anchors)) and len(forest) == len(known)
    found: dict[int, Box] = {}
    for anchor, root in zip(anchors, forest.roots.tolist(), strict=True):
        assert forest.arrays.links[root, PARENT] == -1
        boxes = dict(below(forest, root, 0))
        assert boxes and all(box[2] <= anchor <= box[3] for box in boxes.values())
        found |= boxes
    assert found == known
    assert all(tuple(forest.box(id)) == box for id, box in known.items())


def below(forest: Forest, node: int, depth: int) -> Iterator[tuple[int, Box]]:
    assert depth < 100
    child, size = int(forest.arrays.links[node, CHILD]), int(forest.arrays.links[node, SIZE])
    if child < 0:
        assert 0 < size <= BLOCK
        places = range((-1 - child) * CELL, (-1 - child) * CELL + size)
        boxes = [(int(forest.arrays.ids[place]), tuple(forest.arrays.boxes[place].tolist())) for place in places]
    else:
        assert all(forest.arrays.links[one, PARENT] == node for one in (child, child + 1))
        boxes = [pair for one in (child, child + 1) for pair in below(forest, one, depth + 1)]
    assert len(boxes) == size
    ends = np.array([box for _, box in boxes])
    assert forest.arrays.bounds[node, 0::2].tolist() == ends.min(axis=0).tolist()
    assert forest.arrays.bounds[node, 1::2].tolist() == ends.max(axis=0).tolist()
    yield from boxes


def draw_box(random: Random, width: int) -> Box:
    x, y = random.randrange(1000), random.randrange(1000)
    return (x, x + random.randrange(100), y, y + random.randrange(1, width))


def least_anchors(boxes: list[Box]) -> int:
    count, last = 0, None
    for _, _, low, high in sorted(boxes, key=lambda box: box[3]):
        if last is None or low > last:
            count, last = count + 1, high
    return count


@pytest.mark.parametrize("width", [3, 60, 900])
def test_a_forest_holds_what_came_and_did_not_go(width: int) -> None:
    random, forest = Random(width), Forest()
    known: dict[int, Box] = {}
    for phase, share in enumerate([1.0, 0.5, 0.1, 0.9, 0.0]):
        for step in range(700):
            if known and random.random() >= share:
                id = random.choice(list(known))
                forest.remove(id)
                del known[id]
            elif share:
                known[id := 10_000 * phase + step] = draw_box(random, width)
                forest.add(id, known[id])
        check(forest, known)
    for id in list(known):
        forest.remove(id)
    assert len(forest) == len(forest.anchors) == 0


@pytest.mark.slow
@pytest.mark.parametrize("order", ["up", "down", "nested", "equal", "wide"])
def test_trees_stay_shallow_in_any_order(order: str) -> None:
    forest, known = Forest(), {}
    for at in range(3000):
        step = {"up": at, "down": -at, "nested": 0, "equal": 0, "wide": at % 7}[order]
        reach = at if order == "nested" else 3
        box = (step, step + 3, -reach, reach)
        known[at] = (int(LEAST), int(GREATEST), int(LEAST), int(GREATEST)) if order == "wide" and at % 2 else box
        forest.add(at, known[at])
    check(forest, known)
    for at in range(0, 3000, 3):
        forest.remove(at)
        del known[at]
    check(forest, known)


@pytest.mark.parametrize("first", [0, 30, 2000])
def test_many_come_to_few_and_few_to_many(first: int) -> None:
    random, forest = Random(first), Forest()
    known = {id: draw_box(random, 80) for id in range(first)}
    for id, box in known.items():
        forest.add(id, box)
    more = {id: draw_box(random, 80) for id in range(5000, 5400)}
    forest.add_many(np.array(list(more)), np.array(list(more.values())))
    check(forest, known | more)
    with pytest.raises(KeyError):
        forest.add_many(np.array([9000, 5001]), np.array([(0, 1, 0, 1)] * 2))
    check(forest, known | more)


def test_clusters_stay_near_the_fewest() -> None:
    """Ranges that have the same two points, in an order in which each two of them look like a cluster of their own."""
    forest, known = Forest(), {}
    for at in range(400):
        for id, ends in ((2 * at, (0, 2 * at + 1)), (2 * at + 1, (2 * at, 1000))):
            known[id] = (0, 1, *ends)
            forest.add(id, known[id])
    assert least_anchors(list(known.values())) == 2 and len(forest.anchors) <= 2 * 3 // 2 + 8
    check(forest, known)
    # And when all but a few go.
    random = Random(1)
    boxes = np.array([draw_box(random, 10) for _ in range(4000)])
    forest.add_many(np.arange(10_000, 14_000), boxes)
    known |= {10_000 + at: tuple(box) for at, box in enumerate(boxes.tolist())}
    for id in range(10_000, 13_950):
        forest.remove(id)
        del known[id]
    for _ in range(len(forest.anchors)):
        forest.remove(0)
        forest.add(0, known[0])
    check(forest, known)
    fewest = least_anchors(list(known.values()))
    assert len(forest.anchors) <= fewest + fewest // 2 + 8


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_many_boxes_answer_as_the_plain_index_does(seed: int) -> None:
    random = np.random.default_rng(seed)
    lows = random.integers(0, 1000, (2, 4000))
    highs = lows + random.integers(0, [[200], [40]], (2, 4000))
    ends = [(low, high) for low, high in zip(lows, highs, strict=True)]
    plain, forest = ScanIndex([INT], [INT]), StabbingIndex(1, 1)
    for index in (plain, forest):
        index.add_many(np.arange(4000), ends[:1], ends[1:])
        for id in range(0, 1500, 2):
            index.remove(id)
        for id in range(0, 700, 2):
            index.add(id, [(id, id + 50)], [(id, id + 5)])
    for _ in range(60):
        at, y = (int(key) for key in random.integers(0, 1100, 2))
        joining = np.sort(random.integers(0, 1100, random.integers(1, 60))).tolist()
        held = [key for key in joining if key != y]
        assert forest.affected(at, joining).tolist() == plain.affected(at, joining).tolist()
        assert forest.disposable(at, sorted(set(joining))) == plain.disposable(at, sorted(set(joining)))
        assert forest.minimal(at, joining) == plain.minimal(at, joining)
        assert forest.compare(at, y, joining) == plain.compare(at, y, joining)
        assert forest.exposed(y, held).tolist() == plain.exposed(y, held).tolist()
        assert forest.reached(y, held, joining) == plain.reached(y, held, joining)
        assert forest.spans(y, held) == plain.spans(y, held)


def test_ranges_that_lie_apart_take_little() -> None:
    boxes = np.array([(0, 1, 10 * at, 10 * at + 5) for at in range(2000)])
    forest = Forest()
    forest.add_many(np.arange(2000), boxes)
    assert len(forest.anchors) == 2000
    assert forest.arrays.boxes.nbytes + forest.arrays.bounds.nbytes + forest.arrays.links.nbytes < 320 * 2000
    known = dict(enumerate(map(tuple, boxes.tolist())))
    for id in range(2000, 2300):
        known[id] = (1, 2, 10 * (id % 50), 10 * (id % 50) + 3)
        forest.add(id, known[id])
    for id in range(100, 1900):
        forest.remove(id)
        del known[id]
    check(forest, known)
