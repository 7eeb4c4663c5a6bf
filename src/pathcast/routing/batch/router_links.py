"""A router of a stored overlay as arrays: what it advertised to its sender, its table, its neighbours' aggregates."""

from functools import cached_property

import numpy as np

from pathcast.kernels import Int32s, Int64s

from ..advertising.subscription_advertisement import Advertisement
from ..router import Router
from .link_annotations_kernels import Advertised, Behind, Neighbours, Over, Table

_NONE: Int32s = np.zeros(0, dtype=np.int32)
_NO_BEHIND = Behind(np.zeros(1, dtype=np.int64), _NONE)
_NO_OVER = Over(np.zeros(1, dtype=np.int32), _NONE)


class RouterLinks:
    """A router for documents from one sender, and its links to the neighbours that they go to."""

    def __init__(self, router: Router, sender: str | None) -> None:
        self.router = router
        self.view = router.table.view(sender)
        self.made: Advertisement | None = None if sender is None else router.made.get(sender)
        self.trusted = self.made is not None and sender not in router.untrusted
        self.neighbours = [target.name for target in self.view.targets[: self.view.routers]]
        self.table = self._table()
        self.advertised = self._advertised()
        self.aggregates = 0 if self.made is None else len(self.made.aggregates)

    @property
    def patterns(self) -> int:
        """The number of data patterns that it advertised."""
        return 0 if self.made is None else len(self.made.data)

    def _table(self) -> Table:
        view = self.view
        offsets, members = view.sets
        sizes = np.bincount(view.group[~view.idle], minlength=len(offsets) - 1)
        return Table(view.group, offsets, members, sizes, view.routers, view.busy)

    def _advertised(self) -> Advertised:
        if self.made is None:
            return Advertised(_NO_BEHIND, _NO_OVER, _NO_BEHIND, _NO_OVER, _NONE)
        over = Over(*self.made.covered.over())
        group = self.view.group
        counts = np.zeros(len(group), dtype=np.int64)
        some = min(len(counts), len(over.begins) - 1)
        counts[:some] = np.diff(over.begins)[:some]
        return Advertised(
            Behind(*self.made.covered.behind()),
            over,
            Behind(*self.made.known.unbound.behind()),
            Over(*self.made.containing.over()),
            np.flatnonzero((counts == 0) & (group >= 0)).astype(np.int32),
        )

    @cached_property
    def aggregates_of(self) -> Neighbours:
        """The neighbours' aggregates by entry."""
        columns = [self.router.entries_of(neighbour) for neighbour in self.neighbours]
        entries = np.concatenate([_NONE, *columns])
        numbers = np.concatenate([_NONE, *(np.arange(len(column), dtype=np.int32) for column in columns)])
        neighbours = np.repeat(np.arange(len(columns), dtype=np.int32), [len(column) for column in columns])
        order = np.argsort(entries, kind="stable")
        begins: Int64s = np.zeros(len(self.view.group) + 1, dtype=np.int64)
        np.cumsum(np.bincount(entries, minlength=len(self.view.group)), out=begins[1:])
        return Neighbours(begins, neighbours[order], numbers[order])
