"""The tables: the trie of substrings, the rows of plain paths and the rows of twigs, as arrays.

A plain path is split into the same rows as a twig (`pattern_decomposition.py`), each below the previous one. Paths with
common prefixes share their rows: a row is a node of the table's trie of steps at which a run of names ends, or a last
`*`. Row 0 is the document. XTrie's table has a row for each substring of each expression; sharing them changes no
answer, since what is below a row of a plain path depends only on the levels at which the row is live.

Invariant: the rows of a substring are contiguous, and so are the leaf rows of twigs with one substring, the rows `*`
below a row, and the leaf rows `*` below rows with one substring. So a node of the trie has ranges of them.
Cost: 32 bytes per row of plain paths, 44 per row of a twig, 56 per node of the trie; about 1 s for a million paths.
"""

from typing import Any

import numpy as np

from pathcast.kernels import AnyArray, Int32s, Int64s
from pathcast.matching.table import Trie, flat

from ..streaming.streaming_engine_frame import Arrays
from .pattern_decomposition import NONE, Twigs
from .substring_trie_tables_kernels import NewSubstrings, StepRuns, link_runs, link_suffixes
from .table_and_stack_layout_kernels import (
    ALWAYS,
    N_COLUMNS,
    N_LEAF,
    N_LEAF_END,
    N_OPEN,
    N_PLAIN,
    N_PLAIN_END,
    N_WILD,
    N_WILD_END,
    NEVER,
    ONCE,
    R_COLUMNS,
    R_ENTRY,
    R_LIVE,
    R_TASKS,
    R_TASKS_END,
    R_WILD,
    R_WILD_END,
    T_ABOVE,
    T_ABOVE_NODE,
    T_BASE,
    T_COLUMNS,
    T_CREDIT,
    T_EARLY,
    T_ENTRY,
    T_LATE,
    T_LATE_END,
    T_NEEDS,
    T_REACH,
)


def build_tables(trie: Trie, twigs: Twigs) -> Arrays:
    """All tables for the plain paths of a trie and for twigs."""
    # A separate trie: the table's is shared with other engines.
    own = Trie.restore({name: column.copy() for name, column in trie.arrays().items()})
    gates = own.insert(*flat(twigs.gates))
    bases = own.insert(*flat(twigs.bases))
    plain, numbers, strings = _plain_rows(own, gates, bases)
    branched, substrings, depths = _twig_rows(twigs, strings, numbers[bases])
    substring = plain.pop("row_substring")
    _set_lasting(plain, len(substring), branched["twigs"])
    nodes = _nodes(strings, {"plain": substring[1:], **substrings})
    wild = np.concatenate([plain["row_reach"][len(substring) :] >> 1, depths, [0]])
    return {
        "slots": strings.slots,
        "trie_parent": strings.parent[: strings.count].copy(),
        "trie_symbol": strings.step[: strings.count].copy(),
        "nodes": nodes,
        "delegated": np.array(twigs.delegated, dtype=np.int32),
        "selects": np.array(twigs.selects, dtype=np.int32),
        "longest_wild": np.array([wild.max()], dtype=np.int64),
        **plain,
        **branched,
        **twigs.selections.arrays(),
    }


def _plain_rows(own: Trie, gates: Int32s, bases: Int32s) -> tuple[Arrays, Int32s, Trie]:
    """The rows of plain paths, the row of each node of their trie (-1: none), and the trie of their substrings."""
    count = own.count
    entry = own.entry[:count]
    base, reach, substring = np.zeros((3, count), dtype=np.int32)
    named, needed = np.zeros((2, count), dtype=np.uint8)
    needed[entry >= 0] = 1
    needed[gates], needed[bases], needed[0] = 1, 1, 1
    size = 256
    while size < 2 * count + 2:
        size *= 2
    slots = np.full(size, NONE, dtype=np.int32)
    parent, symbol = np.zeros((2, count + 1), dtype=np.int32)
    runs = StepRuns(base, reach, named, needed, substring)
    used = link_runs(own.parent, own.step, count, runs, NewSubstrings(slots, parent, symbol))
    strings = Trie.restore(
        {"slots": slots, "parent": parent[:used], "step": symbol[:used], "entry": np.full(used, NONE, dtype=np.int32)}
    )
    picked = np.flatnonzero(needed)
    is_wild = (named[picked] == 0) & (picked > 0)
    # The document, then rows by substring, then rows `*` by the row above them and the distance.
    nodes, wild = picked[~is_wild], picked[is_wild]
    nodes = nodes[np.argsort(substring[nodes], kind="stable")]
    numbers = np.full(count, NONE, dtype=np.int32)
    numbers[nodes] = np.arange(len(nodes), dtype=np.int32)
    wild = wild[np.lexsort((reach[wild], numbers[base[wild]]))]
    first_wild = len(nodes)
    nodes = np.concatenate([nodes, wild])
    numbers[wild] = np.arange(first_wild, len(nodes), dtype=np.int32)
    row_parent = numbers[base[nodes]]
    row_parent[0] = NONE
    rows = np.zeros((len(nodes), R_COLUMNS), dtype=np.int32)
    rows[:, R_ENTRY] = entry[nodes]
    by_row = np.argsort(numbers[gates], kind="stable").astype(np.int32)
    rows[:, R_TASKS], rows[:, R_TASKS_END] = _ranges(numbers[gates][by_row], len(nodes))
    begins, ends = _ranges(row_parent[first_wild:], len(nodes))
    rows[:, R_WILD], rows[:, R_WILD_END] = first_wild + begins, first_wild + ends
    arrays = {
        "row_parent": row_parent,
        "row_reach": reach[nodes],
        "row_substring": substring[nodes][:first_wild],
        "row_entry": entry[nodes],
        "inner": numbers[np.unique(base[nodes[1:]])[::-1]],
        "gate_row": numbers[gates],
        "rows": rows,
        "task_number": by_row,
    }
    return arrays, numbers, strings


def _twig_rows(twigs: Twigs, strings: Trie, bases: Int32s) -> tuple[Arrays, Arrays, Int64s]:
    """The rows of twigs: leaves, leaves `*` without tests, the others; their substrings; the reaches of leaves `*`."""
    given = twigs.rows
    columns: dict[str, Any] = {
        name: np.array([row[at] for row in given], dtype=np.int32)
        for at, name in enumerate(given[0]._fields if given else ())
        if name != "substring"
    }
    table = np.zeros((len(given), T_COLUMNS), dtype=np.int32)
    if not given:
        nothing = np.zeros(0, dtype=np.int32)
        empty = {"twigs": table, "top_entry": nothing, "top_base": nothing}
        return empty, {"leaf": nothing, "wild": nothing, "open": nothing}, np.zeros(0, dtype=np.int64)
    node = strings.insert(*flat([row.substring for row in given]))
    above, base, reach = columns["above"], columns["base"], columns["reach"]
    above_node = np.where(above >= 0, node[above], 0)
    leaf = columns["needs"] == 0
    wild = leaf & (node == 0) & (columns["early"] == columns["late_end"])
    kind = np.where(wild, 1, np.where(leaf, 0, 2))
    order = np.lexsort((reach, np.where(wild, above_node, node), kind))
    moved = np.empty(len(given), dtype=np.int32)
    moved[order] = np.arange(len(given), dtype=np.int32)
    table[moved, T_ENTRY], table[moved, T_REACH] = columns["entry"], reach
    table[moved, T_ABOVE] = np.where(above >= 0, moved[above], NONE)
    table[moved, T_ABOVE_NODE] = above_node
    table[moved, T_BASE] = np.where(base >= 0, bases[base], 0)
    table[moved, T_CREDIT], table[moved, T_NEEDS] = columns["credit"], columns["needs"]
    table[moved, T_EARLY], table[moved, T_LATE] = columns["early"], columns["late"]
    table[moved, T_LATE_END] = columns["late_end"]
    leaves = int(np.count_nonzero(kind == 0))
    wilds = int(np.count_nonzero(wild))
    substrings = {
        "leaf": node[order][:leaves],
        "wild": above_node[order][leaves : leaves + wilds],
        "open": np.unique(above_node[(above >= 0) & (reach & 1 == 1)]),
    }
    tops = np.flatnonzero(table[:, T_ABOVE] < 0)
    arrays = {"twigs": table, "top_entry": table[tops, T_ENTRY], "top_base": table[tops, T_BASE]}
    return arrays, substrings, (reach[wild] >> 1).astype(np.int64)


def _set_lasting(plain: Arrays, first_wild: int, twigs: Int32s) -> None:
    """Set for each row whether it becomes live, depending on what is below it."""
    rows, parent = plain["rows"], plain["row_parent"]
    # An element that far below a row is also that far below any row above it: a last `*` does not need every level.
    exact = plain["row_reach"] & 1 == 0
    exact[first_wild:] = False
    tops = twigs[twigs[:, T_ABOVE] < 0]
    rows[:, R_LIVE] = NEVER
    rows[parent[1:], R_LIVE] = ONCE
    rows[tops[:, T_BASE], R_LIVE] = ONCE
    rows[parent[1:][exact[1:]], R_LIVE] = ALWAYS
    rows[tops[tops[:, T_REACH] & 1 == 0, T_BASE], R_LIVE] = ALWAYS
    rows[0, R_LIVE] = ALWAYS


def _nodes(strings: Trie, substrings: Arrays) -> Int32s:
    """The columns of the trie's nodes, given the substrings of rows in their order."""
    count = strings.count
    nodes = np.zeros((count, N_COLUMNS), dtype=np.int32)
    begins, ends = _ranges(substrings["plain"], count)
    nodes[:, N_PLAIN], nodes[:, N_PLAIN_END] = 1 + begins, 1 + ends
    nodes[:, N_LEAF], nodes[:, N_LEAF_END] = _ranges(substrings["leaf"], count)
    begins, ends = _ranges(substrings["wild"], count)
    leaves = len(substrings["leaf"])
    nodes[:, N_WILD], nodes[:, N_WILD_END] = leaves + begins, leaves + ends
    nodes[:, N_OPEN] = NONE
    kept = substrings["open"][substrings["open"] > 0]
    nodes[kept, N_OPEN] = np.arange(len(kept), dtype=np.int32)
    reports = nodes[:, N_OPEN] >= 0
    for begin, end in ((N_PLAIN, N_PLAIN_END), (N_LEAF, N_LEAF_END), (N_WILD, N_WILD_END)):
        reports |= nodes[:, begin] < nodes[:, end]
    parent, symbol = strings.parent[:count], strings.step[:count]
    depth, current = np.zeros(count, dtype=np.int32), np.arange(count, dtype=np.int32)
    while np.any(current):
        depth += current > 0
        current = parent[current]
    order = np.argsort(depth, kind="stable").astype(np.int32)
    link_suffixes(order, parent, symbol, strings.slots, reports, nodes, np.zeros(count, dtype=np.int32))
    return nodes


def _ranges(values: AnyArray, count: int) -> tuple[Int64s, Int64s]:
    """The start and end of each value, among ascending values below `count`."""
    edges = np.searchsorted(values, np.arange(count + 1))
    return edges[:-1], edges[1:]
