"""XTrie's tables: how patterns are split into rows, and the pointers of the trie."""

from random import Random

import pytest

from pathcast.documents import Names
from pathcast.literature.xtrie.pattern_decomposition import NONE, Twigs
from pathcast.literature.xtrie.substring_trie_tables import build_tables
from pathcast.literature.xtrie.table_and_stack_layout_kernels import (
    ALWAYS,
    MOST_BRANCHES,
    N_IN,
    N_OUT,
    N_SUFFIX,
    NEVER,
    ONCE,
    R_ENTRY,
    R_LIVE,
)
from pathcast.matching.table.pattern_table import PatternTable
from pathcast.patterns import parse
from pathcast.patterns.parsing.plain_path_encoder import PathEncoder


def rows_of(xpath: str) -> list[tuple[str, str, int, str]]:
    """The rows of a twig: substring, levels below the row above (`+`: or more), that row, and the base of the first."""
    encoder = PathEncoder(Names())
    twigs = Twigs(encoder)
    twigs.add(0, parse(xpath))
    assert not twigs.delegated

    def text(symbols: tuple[int, ...]) -> str:
        return "".join(encoder.names[symbol - 1] for symbol in symbols)

    found = []
    for row in twigs.rows:
        base = text(tuple(step >> 1 for step in twigs.bases[row.base] if step > 1)) if row.base != NONE else ""
        found.append((text(row.substring), f"{row.reach >> 1}{'+' if row.reach & 1 else ''}", row.above, base))
    return found


@pytest.mark.parametrize(
    ("xpath", "rows"),
    [
        ("/a/b[@k]", [("ab", "2", -1, "")]),
        ("a/b[@k]", [("ab", "2+", -1, "")]),
        ("/a/*/b[@k]", [("b", "2", -1, "a")]),
        ("/x//a/b[c/d][@k]//e", [("ab", "2+", -1, "x"), ("e", "1+", 0, ""), ("abcd", "2", 0, "")]),
        ("/a[b/*/c][@k]", [("a", "1", -1, ""), ("ab", "1", 0, ""), ("c", "2", 1, "")]),
        ("/a[b//c/d][@k]", [("a", "1", -1, ""), ("ab", "1", 0, ""), ("cd", "2+", 1, "")]),
        ("/a[*/*/b][@k]", [("a", "1", -1, ""), ("b", "3", 0, "")]),
        ("/a[*][@k]", [("a", "1", -1, ""), ("", "1", 0, "")]),
        ("/a/*[@k]/b", [("", "1", -1, "a"), ("b", "1", 0, "")]),
        ("/a//*[@k]", [("", "1", -1, "a"), ("", "0+", 0, "")]),
        ("//*[a][b]", [("", "1+", -1, ""), ("a", "1", 0, ""), ("b", "1", 0, "")]),
        ("//a[@k]//a//a[@k]", [("a", "1+", -1, ""), ("a", "1+", 0, ""), ("a", "1+", 1, "")]),
    ],
)
def test_rows_end_where_a_pattern_branches_tests_or_leaves_its_names(
    xpath: str, rows: list[tuple[str, str, int, str]]
) -> None:
    assert rows_of(xpath) == rows


def test_a_node_with_more_branches_than_bits_is_delegated() -> None:
    twigs = Twigs(PathEncoder(Names()))
    most = "".join(f"[b{number}]" for number in range(MOST_BRANCHES))
    twigs.add(0, parse(f"/a{most}"))
    assert not twigs.delegated
    twigs.add(1, parse(f"/a{most}[c]"))
    twigs.add(2, parse("/a[b or c]"))
    assert twigs.delegated == [1, 2]


def test_paths_that_begin_alike_share_rows() -> None:
    table = PatternTable(None, 100)
    table.enter(["/a/b//c", "/a/b//d", "/a/b/*/e", "/a/b", "//c/*"])
    tables = build_tables(table.trie, Twigs(table.encoder))
    rows = tables["rows"]
    # The document, ab, c and d below it, e two below it, c from anywhere, and `*` below that.
    assert len(rows) == 7
    lasting = {int(row[R_ENTRY]): int(row[R_LIVE]) for row in rows}
    assert lasting == {-1: ONCE, 0: NEVER, 1: NEVER, 2: NEVER, 3: ALWAYS, 4: NEVER}


@pytest.mark.parametrize("seed", range(20))
def test_pointers_lead_to_the_longest_suffix_in_the_trie(seed: int) -> None:
    random = Random(seed)
    table = PatternTable(None, 100)
    paths = ["/" + "/".join(random.choice("ab") for _ in range(random.randint(1, 7))) for _ in range(12)]
    table.enter(paths)
    tables = build_tables(table.trie, Twigs(table.encoder))
    nodes, parent, symbol = tables["nodes"], tables["trie_parent"], tables["trie_symbol"]
    texts = [""]
    for node in range(1, len(nodes)):
        texts.append(texts[parent[node]] + table.names[symbol[node] - 1])
    assert sorted(texts) == sorted({"".join(path.split("/"))[:end] for path in paths for end in range(8)})
    for node, text in enumerate(texts[1:], 1):
        suffixes = [text[begin:] for begin in range(1, len(text) + 1)]
        assert texts[nodes[node, N_SUFFIX]] == next(suffix for suffix in suffixes if suffix in texts)
        for other, ending in enumerate(texts):
            is_suffix = nodes[other, N_IN] <= nodes[node, N_IN] < nodes[other, N_OUT]
            assert is_suffix == text.endswith(ending)
