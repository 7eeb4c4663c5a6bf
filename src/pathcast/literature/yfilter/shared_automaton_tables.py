"""Tables: the shared automaton of all paths as arrays.

A state is a node of the trie of paths, or the state below one that a `//` step enters by an empty move and that loops
on every name (YFilter's "//-child"):

    /a/b, /a//c      0 ──a──▶ 1 ──b──▶ 2
                              └──ε──▶ 4 ──c──▶ 3        4 loops on *

Invariant: the children of a state by name are contiguous and sorted by name, so that a transition is a search in a few
neighbouring numbers and leads to the position where it was found. The child by `*` is stored separately.
Cost: 36 bytes per state; some 2 s to build a million paths.
"""

import numpy as np

from pathcast.kernels import AnyArray, Int32s
from pathcast.matching.table import Trie, flat

from .document_matching_kernels import (
    S_BEGIN,
    S_COLUMNS,
    S_DEEP,
    S_END,
    S_ENTRY,
    S_HIGH,
    S_LOW,
    S_STAR,
    S_TASKS,
    Network,
    YFilterTables,
)
from .nested_path_join_kernels import Joins
from .pattern_decomposition import Queries
from .postponed_selection_kernels import Queries as KernelQueries

NONE = -1
Arrays = dict[str, AnyArray]


def build_network(trie: Trie, queries: Queries) -> Arrays:
    """`states`, the `state_symbol` that leads to each, and the tasks of the accepting ones."""
    # A separate trie: the table's is shared with other engines.
    own = Trie.restore({name: column.copy() for name, column in trie.arrays().items()})
    ends = own.insert(*flat(queries.paths))
    count = own.count
    parent, step, entry = own.parent[1:count], own.step[1:count], own.entry[:count]
    deep_parents = np.unique(parent[step & 1 == 1])
    group_of_deep = np.full(count, NONE, dtype=np.int32)
    group_of_deep[deep_parents] = count + np.arange(len(deep_parents), dtype=np.int32)
    group = np.where(step & 1, group_of_deep[parent], parent).astype(np.int64)
    order = np.argsort(group << 32 | step >> 1, kind="stable")
    # Nodes are renumbered in the order of their edges; the looping states keep their places after them.
    number = np.zeros(count + len(deep_parents), dtype=np.int32)
    number[1 + order] = 1 + np.arange(count - 1, dtype=np.int32)
    number[count:] = np.arange(count, count + len(deep_parents), dtype=np.int32)
    states = np.full((count + len(deep_parents), S_COLUMNS), NONE, dtype=np.int32)
    states[:, [S_BEGIN, S_END, S_LOW, S_HIGH]] = 0
    states[number[deep_parents], S_DEEP] = group_of_deep[deep_parents]
    states[number[:count], S_ENTRY] = entry
    symbols = np.zeros(len(states), dtype=np.int32)
    symbols[1:count] = step[order] >> 1
    _link(states, symbols[1:count], number[group[order]])
    return {"states": states, "state_symbol": symbols} | _attach(states, number[ends], queries.tasks)


def kernel_tables(arrays: Arrays) -> YFilterTables:
    """The tables in the form that the kernel reads."""
    return YFilterTables(
        network=Network(
            states=arrays["states"],
            symbols=arrays["state_symbol"],
            task_begins=arrays["task_begin"],
            task_kinds=arrays["task_kind"],
            task_numbers=arrays["task_number"],
        ),
        queries=KernelQueries(arrays["query_begin"], arrays["query_entry"], arrays["steps"]),
        joins=Joins(arrays["nodes"], arrays["join_entry"], arrays["join_late"]),
    )


def _link(states: Int32s, symbols: Int32s, sources: Int32s) -> None:
    """Set the range of children of each state, given the edges in order."""
    if not len(sources):
        return
    begin = np.flatnonzero(np.concatenate([[True], sources[1:] != sources[:-1]]))
    end = np.append(begin[1:], len(sources))
    by_star = symbols[begin] == 0
    source = sources[begin]
    states[source, S_STAR] = np.where(by_star, begin + 1, NONE)
    states[source, S_BEGIN] = begin + 1 + by_star
    states[source, S_END] = end + 1
    # The bits usually show that a symbol leads nowhere, without a search of the children.
    bits = np.left_shift(np.uint32(1), symbols.astype(np.uint32) & 31)
    high = symbols & 32 != 0
    for column, those in ((S_LOW, ~high), (S_HIGH, high)):
        states[source, column] = np.bitwise_or.reduceat(np.where(those, bits, np.uint32(0)), begin).view(np.int32)


def _attach(states: Int32s, ends: Int32s, tasks: list[tuple[int, int]]) -> Arrays:
    """Attach the tasks of paths to the states where the paths end."""
    order = np.argsort(ends, kind="stable")
    found = np.array(tasks, dtype=np.int32).reshape(-1, 2)[order]
    accepting, begin = np.unique(ends[order], return_index=True)
    states[accepting, S_TASKS] = np.arange(len(accepting), dtype=np.int32)
    task_begin = np.append(begin, len(ends)).astype(np.int32)
    return {"task_begin": task_begin, "task_kind": found[:, 0].copy(), "task_number": found[:, 1].copy()}
