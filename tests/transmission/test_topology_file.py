"""A topology comes from a TOML file; problems are reported with file, line and key."""

from pathlib import Path

import pytest

from pathcast import TopologyError
from pathcast.transmission import Topology
from pathcast.transmission.topology_file import reference


def read(folder: Path, text: str) -> Topology:
    file = folder / "overlay.toml"
    file.write_text(text, encoding="utf-8")
    return Topology.from_file(file)


def test_a_shape_with_one_faster_link(tmp_path):
    tree = read(
        tmp_path,
        """
        kind = "tree"
        levels = 3
        bandwidth = "1MB/s"
        latency = "2ms"
        root = "r2"
        [[link]]
        between = ["r3", "r1"]
        bandwidth = "1GB/s"
        [[link]]
        between = ["r6", "r7"]
        """,
    )
    assert len(tree) == 7 and tree.root == "r2" and len(tree.ends) == 7
    assert tree.link("r1", "r3").bandwidth == 1e9 and tree.link("r1", "r3").latency == 0.002
    assert tree.link("r1", "r2").bandwidth == tree.link("r6", "r7").bandwidth == 1e6


def test_links_one_by_one(tmp_path):
    listed = read(tmp_path, '\ufeffnodes = ["lonely"]\n[[link]]\nbetween = ["b", "a"]\nlatency = "1s"\n')
    assert listed.nodes == ("lonely", "b", "a") and listed.link("a", "b").latency == 1 and not listed.is_connected


@pytest.mark.parametrize(
    ("text", "nodes"),
    [
        ('kind = "chain"\nnodes = 5', 5),
        ('kind = "star"\nnodes = 5', 5),
        ('kind = "random"\nnodes = 9\ndegree = 2.5\nseed = 4', 9),
        ('kind = "internet"\nnodes = 30\nseed = 4', 30),
    ],
)
def test_every_shape_has_a_name(tmp_path, text, nodes):
    assert len(read(tmp_path, text)) == nodes


def test_an_internet_keeps_its_own_latencies_unless_told(tmp_path):
    assert len(set(read(tmp_path, 'kind = "internet"\nnodes = 30').latency)) > 5
    assert set(read(tmp_path, 'kind = "internet"\nnodes = 30\nlatency = "1s"').latency) == {1.0}


@pytest.mark.parametrize(
    ("text", "key", "said"),
    [
        ('kind = "tre"', "kind", 'did you mean "tree"'),
        ('kind = "tree"', "levels", "is missing"),
        ('kind = "tree"\nlevels = "4"', "levels", "must be a whole number"),
        ('kind = "tree"\nlevels = 0', "levels", "must be a whole number of at least 1, got 0"),
        ('kind = "chain"\nnodes = 3\nlevels = 2', "levels", 'is only valid with kind = "tree"'),
        ('kind = "chain"\nnodes = ["a"]', "nodes", "must be a number with"),
        ('kind = "random"\nnodes = 3\ndegree = 9', "kind", "degree"),
        ('kind = "tree"\nlevels = 2\nfanuot = 3', "fanuot", "did you mean fanout"),
        ('kind = "chain"\nnodes = 2\nbandwidth = "10MB"', "bandwidth", "unit of time is missing"),
        ('kind = "chain"\nnodes = 2\nroot = "r9"', "root", "unknown node 'r9'"),
        ('kind = "chain"\nnodes = 2\n[[link]]\nbetween = ["r1", "x"]', r"link\[0\].between", "unknown node 'x'"),
        ('[[link]]\nbetween = ["a", "b"]\n[[link]]\nbetween = ["b", "a"]', r"link\[1\].between", "linked twice"),
        (
            '[[link]]\nbetween = ["a", "b"]\nlatency = "9"',
            r"link\[0\].latency",
            "expected a number of at least 0 and a unit",
        ),
        ('[[link]]\nbetween = ["a", "a"]', r"link\[0\].between", "two different nodes"),
        ('[[link]]\nbetween = "a"', r"link\[0\].between", "two nodes"),
        ('[[link]]\nfrom = "a"', r"link\[0\].from", "unknown key"),
        ("link = 3", "link", r"write \[\[link\]\]"),
        ("nodes = 5", "nodes", "kind is missing; set kind"),
        ('nodes = ["a", "a"]', "nodes", "contains 'a' twice"),
        ("", "link", "is missing"),
    ],
)
def test_what_is_wrong_is_said_with_file_and_key(tmp_path, text, key, said):
    with pytest.raises(TopologyError, match=rf"overlay\.toml(, line \d)?: {key}: .*{said}"):
        read(tmp_path, text)


def test_all_that_is_wrong_is_said_at_once_with_its_lines(tmp_path):
    with pytest.raises(TopologyError) as raised:
        read(tmp_path, 'kind = "tree"\nlevls = 3\n[[link]]\nbetween = ["r1", "r2"]\n[[link]]\nbetween = 3\n')
    assert str(raised.value).splitlines() == [
        f"{tmp_path}/overlay.toml, line 2: levls: unknown key; did you mean levels?",
        f"{tmp_path}/overlay.toml, line 6: link[1].between: must be the names of two nodes, got 3",
    ]


def test_the_reference_in_the_documentation_is_that_of_the_code():
    """To fix: paste the output of `reference()` in `pathcast.transmission.topology_file`."""
    page = (Path(__file__).parents[2] / "docs" / "guides" / "routing.md").read_text(encoding="utf-8")
    assert page.partition("<!-- keys -->\n")[2].partition("<!-- end of keys -->")[0].strip() == reference().strip()


def test_what_is_no_toml_has_the_line_and_a_missing_file_its_name(tmp_path):
    with pytest.raises(TopologyError, match=r"overlay\.toml, line 2: is not valid TOML: "):
        read(tmp_path, 'kind = "tree"\nlevels = = 3')
    (tmp_path / "bytes.toml").write_bytes(b"\xff")
    with pytest.raises(TopologyError, match=r"bytes\.toml: is not UTF-8"):
        Topology.from_file(tmp_path / "bytes.toml")
    with pytest.raises(TopologyError, match=r"nowhere\.toml: cannot be read"):
        Topology.from_file(tmp_path / "nowhere.toml")
