"""Untrusted indexes: reads the subscriptions of an index from an untrusted source, so that they can be compiled again.

Kernels follow an engine's arrays without bounds checks, so a forged number in them ends the process, or worse. Checking
that a hundred arrays agree takes as long as building them, and each engine would need its own checks, with a hole for
every forgotten one. Compiled arrays are therefore neither trusted nor read: only the subscriptions are read, as text,
and the caller compiles them.

Invariant: no kernel sees an array of the snapshot. All references are checked against the lengths of the arrays that
they refer to; an expression is parsed like any added one. A mismatch is a `SnapshotError`.
Cost: as much as adding the subscriptions, some 3 µs for a plain path, in addition to compiling; memory for the result,
and for the text of some 100,000 at a time.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from pathcast.documents import Names
from pathcast.errors import PathcastError, SnapshotError
from pathcast.kernels import AnyArray, Int32s
from pathcast.patterns.parsing import path_text
from pathcast.store import Texts, check_pieces

from .arrays.ragged_arrays import part_of
from .subscriptions.subscriber_names import NOBODY
from .subscriptions.subscription_column_store import GONE
from .subscriptions.subscription_files import LARGEST_ID
from .subscriptions.subscriptions import Subscriptions
from .table.path_trie_kernels import NONE

# The most subscriptions, or characters, that are added at a time.
_GROUP, _CHARACTERS = 1 << 17, 1 << 25


def read_distrusting(facts: Mapping[str, Any], arrays: Mapping[str, AnyArray]) -> Subscriptions:
    """The subscriptions in the facts and arrays of `Subscriptions.state`, from an untrusted source."""
    try:
        steps, next_id = _whole(facts, "max_steps"), _whole(facts, "next_id")
        subscriptions = Subscriptions(facts.get("namespaces"), max_steps=steps, first_id=next_id)
        for xpaths, owners, ids in _groups(_Rows(arrays, steps)):
            subscriptions.add_many(xpaths, owners, ids)
    except (PathcastError, ValueError, TypeError) as error:
        # The reason without its advice, which is for a caller who adds subscriptions.
        reason = (error.reason if isinstance(error, PathcastError) else str(error)).partition("; ")[0]
        raise SnapshotError(f"the index is damaged: {reason}; compile the subscriptions again") from None
    return subscriptions


def _groups(rows: "_Rows") -> Iterator[tuple[list[str], list[str | None], list[int]]]:
    xpaths: list[str] = []
    owners: list[str | None] = []
    ids: list[int] = []
    size = 0
    for xpath, owner, id in rows:
        xpaths.append(xpath)
        owners.append(owner)
        ids.append(id)
        size += len(xpath)
        if len(ids) >= _GROUP or size >= _CHARACTERS:
            yield xpaths, owners, ids
            xpaths, owners, ids, size = [], [], [], 0
    if ids:
        yield xpaths, owners, ids


class _Rows:
    """The subscriptions one after the other: text, subscriber and id."""

    def __init__(self, arrays: Mapping[str, AnyArray], max_steps: int) -> None:
        table = part_of(dict(arrays), "table_")
        self._entries = _Entries(table, max_steps)
        self._ids, self._of, self._owners = (_column(arrays, name) for name in ("ids", "entries", "owners"))
        self._names = list(_texts(arrays, "owner_names", "owner_name_offsets"))
        slots = _column(arrays, "text_slots")
        self._own = _texts(arrays, "texts", "text_offsets")
        if len(slots) != len(self._own) or not len(self._ids) == len(self._of) == len(self._owners):
            of_rows = f"{len(self._ids):,} ids, {len(self._of):,} patterns, {len(self._owners):,} subscribers"
            of_texts = f"{len(slots):,} places, {len(self._own):,} texts"
            raise SnapshotError(f"the arrays of subscriptions differ in length ({of_rows}, {of_texts})")
        _check_within(self._of, GONE, len(self._entries), "subscriptions refer to patterns")
        _check_within(self._owners, NOBODY, len(self._names), "subscriptions refer to subscribers")
        _check_within(slots, 0, len(self._ids), "texts refer to subscriptions")
        self._place = dict(zip(slots.tolist(), range(len(slots)), strict=True))

    def __iter__(self) -> Iterator[tuple[str, str | None, int]]:
        columns = (self._ids.tolist(), self._of.tolist(), self._owners.tolist())
        for slot, (id, entry, owner) in enumerate(zip(*columns, strict=True)):
            if entry != GONE:
                place = self._place.get(slot)
                text = self._entries[entry] if place is None else self._own[place]
                yield text, None if owner == NOBODY else self._names[owner], id


class _Entries:
    """The patterns of a table by entry, as text."""

    def __init__(self, arrays: Mapping[str, AnyArray], max_steps: int) -> None:
        listed = list(_texts(arrays, "names", "name_offsets"))
        self._names, self._max_steps = Names(listed), max_steps
        parent, step, nodes = (_column(arrays, name) for name in ("trie_parent", "trie_step", "nodes"))
        trees, self._trees = _column(arrays, "trees_entries"), _texts(arrays, "trees_texts", "trees_offsets")
        if len(self._names) != len(listed):
            twice = Counter(listed).most_common(1)[0][0]
            raise SnapshotError(f"the name {twice!r:.60} of an element or attribute occurs twice")
        if len(parent) != len(step) or len(trees) != len(self._trees):
            lengths = f"{len(parent):,} parents, {len(step):,} steps, {len(trees):,} trees, {len(self._trees):,} texts"
            raise SnapshotError(f"the arrays of patterns differ in length ({lengths})")
        _check_within(nodes, NONE, len(parent), "patterns refer to steps")
        _check_within(trees, 0, len(nodes), "texts refer to patterns")
        _check_within(step, 0, 2 * (len(listed) + 1), "steps refer to names")
        wrong = parent < 0
        wrong[1:] |= parent[1:] >= np.arange(1, len(parent))
        if bool(wrong.any()):
            at = int(np.flatnonzero(wrong)[0])
            raise SnapshotError(f"the parent of step {at}, {parent[at]}, does not precede the step")
        self._parent, self._step, self._nodes = parent.tolist(), step.tolist(), nodes.tolist()
        self._place = dict(zip(trees.tolist(), range(len(trees)), strict=True))

    def __len__(self) -> int:
        return len(self._nodes)

    def __getitem__(self, entry: int) -> str:
        node = self._nodes[entry]
        if node == NONE:
            place = self._place.get(entry)
            if place is None:
                raise SnapshotError(f"pattern {entry} has neither steps nor a text")
            return self._trees[place]
        steps: list[int] = []
        while node:
            steps.append(self._step[node])
            node = self._parent[node]
            if len(steps) > self._max_steps:
                raise SnapshotError(f"the path of pattern {entry} has more than {self._max_steps} steps")
        return path_text(tuple(reversed(steps)), self._names)


def _whole(facts: Mapping[str, Any], name: str) -> int:
    found = facts.get(name)
    if type(found) is not int or not 0 < found <= LARGEST_ID + 1:
        raise SnapshotError(
            f"'{name}' in the manifest must be a whole number from 1 to {LARGEST_ID + 1:,}, got {found!r:.60}"
        )
    return found


def _column(arrays: Mapping[str, AnyArray], name: str) -> Int32s:
    found = arrays.get(name)
    if found is None or found.dtype != np.int32 or found.ndim != 1:
        kind = "missing" if found is None else f"{found.ndim}-dimensional {found.dtype}"
        raise SnapshotError(f"the array '{name}' is {kind}, expected 1-dimensional int32")
    return found.view(np.ndarray)


def _texts(arrays: Mapping[str, AnyArray], data: str, offsets: str) -> Texts:
    pieces, edges = arrays.get(data), arrays.get(offsets)
    if pieces is None or edges is None or edges.size == 0:
        raise SnapshotError(f"array '{data}' or its offsets '{offsets}' are missing or empty")
    check_pieces(pieces, edges, len(edges) - 1 if edges.ndim else 0, f"'{data}'")
    return Texts(pieces, edges)


def _check_within(column: Int32s, least: int, end: int, what: str) -> None:
    if len(column) and not least <= int(column.min()) <= int(column.max()) < end:
        found = f"from {column.min()} to {column.max()}"
        raise SnapshotError(f"{what} that do not exist (numbers {found}, expected {least} to {end - 1})")
