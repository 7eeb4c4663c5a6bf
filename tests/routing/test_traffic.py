"""An overlay records the traffic on its links, so that it can be drawn."""

import pytest

from pathcast.routing import Overlay


@pytest.mark.slow
def test_the_ledger_has_every_copy_and_its_annotations(tmp_path):
    overlay = Overlay.tree(levels=3, fanout=2)
    overlay.subscribe("r4", "/a/b", "ada")
    overlay.subscribe("r2", "//c", "bob")
    overlay.advertise(keep=1.0)
    document = b"<a><b/></a>"
    report = overlay.publish(document, "L+t")
    ledger = overlay.ledger
    assert ledger.kinds == ["document", "annotations"]
    assert [(each.source, each.target) for each in ledger.rows() if each.kind == "document"] == [
        ("r1", "r2"),
        ("r2", "r4"),
    ]
    assert ledger.total_bytes("document") == 2 * len(document) and ledger.total_messages() == 2
    assert ledger.total_bytes() == report.bytes
    overlay.router("r2").structures.forget()
    overlay.publish(document, "L+t")
    assert ledger.bytes_between("r2", "r1", "signal") == 9
    assert [path.name for path in ledger.draw(tmp_path / "traffic")] == ["traffic.png", "traffic.svg"]
