"""Matching label paths without a document: which plain paths an element with this label path satisfies.

The state of a label path has the entries: it is computed as for a document, and read. All paths are walked as one
forest.

Invariant: the answer is that of one generation with all patterns in its base.
Cost: some microseconds per name of a path whose states are known, some 10 µs per name that is new.
"""

import numpy as np

from pathcast.documents import local_part
from pathcast.errors import LimitError
from pathcast.store import offsets_of

from ...engine_contract import Entries, Offsets
from ..updates.immutable_index_state import Generation


def entries_of_paths(made: Generation, paths: list[tuple[str, ...]], memory: int, work: int) -> tuple[Offsets, Entries]:
    """The entries of each path, ascending; the empty path has those that every document satisfies."""
    ids = _ids(made, {name for path in paths for name in path})
    names = np.array([ids[name] for path in paths for name in path], dtype=np.int32)
    lengths = np.array([len(path) for path in paths], dtype=np.int64)
    ends = np.cumsum(lengths)
    parents = np.arange(-1, len(names) - 1, dtype=np.int32)
    parents[(ends - lengths)[lengths > 0]] = -1
    symbols = np.append(made.symbols[: made.names], np.int32(0))  # the last is for names that no subscription mentions
    found = np.zeros(len(names), dtype=np.int32)
    states = made.base.states
    with states.lock:
        if not states.learn(names, parents, symbols, 0, len(names), found, memory, work):
            what = f"matching {len(paths):,} label paths takes more than {memory:,} bytes or {work:,} look-ups"
            raise LimitError(f"{what}; pass fewer label paths at a time")
        automaton = states.automaton
    last = np.where(lengths > 0, found[np.maximum(ends - 1, 0)] if len(found) else 0, 0)
    begins, stops = automaton.accepted_begin[last], automaton.accepted_begin[last + 1]
    offsets = offsets_of(stops - begins)
    parts = [
        np.sort(automaton.accepted[begin:stop]) for begin, stop in zip(begins.tolist(), stops.tolist(), strict=True)
    ]
    return offsets, np.concatenate([np.empty(0, dtype=np.int32), *parts]).astype(np.int32)


def _ids(made: Generation, names: set[str]) -> dict[str, int]:
    """The id of each name; an unknown name gets the number of names."""
    table = made.table
    spelled = {name: local_part(name) if table.namespaces == "ignore" else name for name in names}
    known = {name: table.names.get(text) for name, text in spelled.items()}
    return {
        name: number if number is not None and number < made.names else made.names for name, number in known.items()
    }
