"""Pictures of topologies show their traffic; the same input gives the same bytes."""

import pytest

from pathcast import TopologyError
from pathcast.transmission import Ledger, Topology, draw
from pathcast.transmission.topology_picture import layout


@pytest.mark.parametrize(
    "topology",
    [
        Topology.tree(4, 2),
        Topology.chain(1),
        Topology.random(30, seed=1),
        Topology.internet(300, seed=1),
        Topology(["a", "b", "c", "d"], [(0, 1)]),
    ],
    ids=["tree", "node", "random", "internet", "apart"],
)
def test_a_picture_is_the_same_each_time(topology, tmp_path):
    ledger = Ledger(topology)
    for number, (a, b) in enumerate(topology.ends.tolist()):
        ledger.carry(a, b, 1000 * (number % 7), "document")
    first = ledger.draw(tmp_path / "one")
    second = ledger.draw(tmp_path / "two")
    assert [path.name for path in first] == ["one.png", "one.svg"]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
    assert first[0].read_bytes().startswith(b"\x89PNG") and b"<svg" in first[1].read_bytes()


def test_what_a_link_carried_is_written_on_it(tmp_path):
    tree = Topology.tree(2, 2)
    ledger = Ledger(tree)
    ledger.carry("r1", "r2", 7000, "document")
    (file,) = ledger.draw(tmp_path / "traffic.svg")
    text = file.read_text(encoding="utf-8")
    assert "7 kB" in text and "r3" in text
    (labelled,) = draw(tree, tmp_path / "labels.svg", labels=[f"link {at}" for at in range(len(tree.ends))])
    assert all(f">link {at}<" in labelled.read_text(encoding="utf-8") for at in range(len(tree.ends)))
    (plain,) = draw(tree, tmp_path / "plain.svg", title="A tree")
    assert "10 MB/s, 0 s" in plain.read_text(encoding="utf-8") and "A tree" in plain.read_text(encoding="utf-8")


def test_a_tree_is_laid_out_by_levels():
    places = layout(Topology.tree(3, 2))
    assert places[:, 1].tolist() == [0, -1, -1, -2, -2, -2, -2]
    assert places[0, 0] == (places[1, 0] + places[2, 0]) / 2


def test_a_picture_has_one_of_two_endings(tmp_path):
    with pytest.raises(TopologyError, match=r"ends in .png or .svg"):
        draw(Topology.chain(2), tmp_path / "tree.gif")
