"""Groups: all semijoins of one form, and the effect of events at either table on them.

A form R^S (§4 of the select-join paper) is a base table R, a filtering table S, the edge that joins them, and the
attributes of S that are tested, the *axes*. A semijoin of the form is σ(R) ⋉ σ(S): the R tuples in its base ranges that
join an S tuple in its filtering ranges. A range on a join column needs no axis: the base tuple is tested for it, and
the filtering tuple has the same value. A *selection* is a form without filtering table. Within a group, semijoins
with ranges on the same base attributes form a panel, with an index.

Events at the filtering table all have one shape, and so do their proofs. Let T be the S tuples of a join value that
the event leaves alone, and c the inserted or deleted tuple. A semijoin with filtering box I has the base tuples of this
join value exactly if I contains some S tuple of it. If c is inserted, the semijoin lacks them before and has them after
iff I contains c and none of T: *expose*. If c is deleted, it has them before and lacks them after iff I contains c and
none of T: *withdraw*. An update c → c′ is both, once with T before the event (which contains c), once with T after it
(which contains c′): clients that have the tuples before and after receive nothing, and clients that gain or lose them
receive one message. For an insertion T is S before, for a deletion S after.

On one axis, with c in I, "I contains none of T" means "I contains neither neighbour of c in T"; on several, "none of
Sky(T, c)" (`skyline_around_point.py`); with no axis every I contains everything.

Invariant: every semijoin is in one panel; a panel is never empty.
Cost: O(log n) to find c's neighbours, plus the index.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pathcast.messages import Interval

from ..index.semijoin_index_protocol import Comparison, Ends, Ids, Ranges, SemijoinIndex
from ..query.join_graph_schema import Row
from ..query.order_preserving_key_encoding import Kind
from ..server.row_multisets import Bag
from ..server.sorted_row_views import Run, View
from ..skylines.skyline_around_point import envelope, inside
from .semijoin_templates import Form

IndexMaker = Callable[[Sequence[Kind], Sequence[Kind]], SemijoinIndex]


@dataclass
class Panel:
    """Semijoins with ranges on the same base attributes, and those attributes of a base row."""

    index: SemijoinIndex
    places: list[int]
    kinds: list[Kind]
    view: View | None

    def at(self, row: Row) -> Any | None:
        """A base row as a point of the panel; None when it has a NULL there, which no range contains."""
        if len(self.places) == 1:
            value = row[self.places[0]]
            return None if value is None else self.kinds[0].key(value)
        values = [row[place] for place in self.places]
        if any(value is None for value in values):
            return None
        return tuple(kind.key(value) for kind, value in zip(self.kinds, values, strict=True))


class FilterEvent(NamedTuple):
    """An inserted or deleted filtering tuple: its point, and the points next to it that stay."""

    join_value: tuple[Any, ...]
    at: Any
    held: tuple[Any, ...]
    below: Any = None
    above: Any = None


class Group:
    """All semijoins of one form."""

    def __init__(self, form: Form, number: int, bags: Mapping[str, Bag], index: IndexMaker) -> None:
        self.form = form
        self.number = number
        self.base = bags[form.base]
        self._index = index
        self.panels: dict[tuple[str, ...], Panel] = {}
        # A cache for schemes of values that depend on the panels' axes; cleared when axes change.
        self.derived: dict[Any, Any] = {}
        self.filter_view: View | None = None
        self._filter_bag = bags[form.filtering] if form.filtering else None
        if form.edge and self._filter_bag is not None:
            self.filter_view = self._filter_bag.view(form.edge.columns_of(form.edge.other(form.base)), form.axes, self)
        self.base_view = self.base.view(form.join, (), self) if form.edge else None

    def __len__(self) -> int:
        return sum(len(panel.index) for panel in self.panels.values())

    def close(self) -> None:
        """Release the views; the group must not be used afterwards."""
        self.base.release(self)
        if self._filter_bag is not None:
            self._filter_bag.release(self)

    # Semijoins.

    def add(self, id: int, base: Mapping[str, Interval], filtering: Mapping[str, Interval]) -> None:
        """Add a subscription's semijoin."""
        axes = tuple(sorted(base))
        panel = self.panels.get(axes)
        if panel is None:
            panel = self._panel(axes)
            self._open(axes, panel)
        ends = self.filter_ends(filtering)
        panel.index.add(id, self._ends(panel.kinds, [base[axis] for axis in axes]), ends)

    def add_many(self, ids: Ids, base: Mapping[str, Ends], filtering: Mapping[str, Ends]) -> None:
        """Add semijoins with ranges on the same columns, as keys."""
        axes = tuple(sorted(base))
        panel = self.panels.get(axes) or self._panel(axes)
        panel.index.add_many(ids, [base[axis] for axis in axes], [filtering[axis] for axis in self.form.axes])
        self._open(axes, panel)

    def remove(self, id: int, base: Mapping[str, Interval]) -> None:
        """Remove a subscription's semijoin, which has these base ranges."""
        axes = tuple(sorted(base))
        self.panels[axes].index.remove(id)
        if not len(self.panels[axes].index):
            del self.panels[axes]
            self.derived = {}

    def _open(self, axes: tuple[str, ...], panel: Panel) -> None:
        self.panels[axes] = panel
        self.derived = {}

    def _panel(self, axes: tuple[str, ...]) -> Panel:
        kinds = [kind for axis in axes if (kind := self.base.schema.kind(self.form.base, axis)) is not None]
        index = self._index(kinds, self.filter_kinds)
        view = self.base.view(self.form.join, axes, self) if len(axes) == 1 and self.form.edge else None
        return Panel(index, self.base.places(axes), kinds, view)

    def filter_ends(self, filtering: Mapping[str, Interval]) -> Ranges:
        """Filtering ranges as keys."""
        return self._ends(self.filter_kinds, [filtering[axis] for axis in self.form.axes])

    @staticmethod
    def _ends(kinds: Sequence[Kind], intervals: Sequence[Interval]) -> list[tuple[Any, Any]]:
        ends = [kind.ends(interval) for kind, interval in zip(kinds, intervals, strict=True)]
        assert None not in ends, "an empty query has no semijoins"
        return [one for one in ends if one is not None]

    @property
    def filter_kinds(self) -> Sequence[Kind]:
        """The kinds of the filtering axes."""
        return self.filter_view.kinds if self.filter_view is not None else ()

    @property
    def ranged(self) -> list[str]:
        """The base attributes that some semijoin has a range on."""
        found: list[str] | None = self.derived.get("ranged")
        if found is None:
            found = self.derived["ranged"] = sorted({axis for axes in self.panels for axis in axes})
        return found

    # Base events.

    def placed(self, row: Row) -> list[tuple[SemijoinIndex, Any]]:
        """The panels that may select a base row, each with the row's point in it."""
        return [(panel.index, at) for panel in self.panels.values() if (at := panel.at(row)) is not None]

    def joining(self, row: Row) -> Run | None:
        """The filtering tuples that join a base row; None for a selection."""
        if self.filter_view is None or self.base_view is None:
            return None
        return self.filter_view.run(self.base_view.join_value(row))

    def affected(self, row: Row) -> list[int]:
        """The semijoins that have an existing base row."""
        run = self.joining(row)
        if run is not None and not len(run):
            return []
        found = [
            (index.selected(at) if run is None else index.affected(at, run.keys)).tolist()
            for index, at in self.placed(row)
        ]
        return found[0] if len(found) == 1 else sorted(id for ids in found for id in ids)

    def compared(self, old: Row, new: Row) -> Comparison:
        """Whether some semijoin has both of two versions of a base row, the new one only, the old one only.

        The versions join the same filtering tuples.
        """
        run = self.joining(new)
        joining = None if run is None else run.keys if self.form.axes else [()] * len(run)
        points = [(panel.index, panel.at(old), panel.at(new)) for panel in self.panels.values()]
        answers = [index.compare(before, after, joining) for index, before, after in points]
        return any(one[0] for one in answers), any(one[1] for one in answers), any(one[2] for one in answers)

    # Filter events.

    def filter_event(self, row: Row) -> FilterEvent | None:
        """The event of a row that is not in the filtering table now; None when it cannot concern any semijoin."""
        assert self.filter_view is not None
        at = self.filter_view.key(row)
        if at is None:
            return None
        value = self.filter_view.join_value(row)
        run = self.filter_view.run(value)
        if len(self.form.axes) == 1:
            below, above = run.neighbours(at)
            held = tuple(key for key in (below, above) if key is not None)
            return None if at in held else FilterEvent(value, at, held, below, above)
        held = tuple(envelope(run.keys, at))
        return None if at in held else FilterEvent(value, at, held)

    def exposed(self, event: FilterEvent) -> list[int]:
        """The semijoins that gain or lose the base tuples of the event's join value."""
        found = [panel.index.exposed(event.at, event.held).tolist() for panel in self.panels.values()]
        return found[0] if len(found) == 1 else sorted(id for ids in found for id in ids)

    def exposed_contents(self, event: FilterEvent) -> Iterator[tuple[int, tuple[int, ...]]]:
        """The semijoins that gain or lose base tuples of the event's join value, each with their numbers, ascending."""
        for panel in self.panels.values():
            index = panel.index
            for id in index.exposed(event.at, event.held).tolist():
                rows = self._selected(panel, event, index.base(id))
                if rows:
                    yield id, rows

    def _selected(self, panel: Panel, event: FilterEvent, ranges: Ranges) -> tuple[int, ...]:
        """The base rows of an event's join value in the base ranges of a semijoin."""
        if panel.view is not None:
            return tuple(sorted(panel.view.run(event.join_value).between(*ranges[0])))
        return tuple(sorted(number for number in self.joined_rows(event) if self._inside(panel, ranges, number)))

    def _inside(self, panel: Panel, ranges: Ranges, number: int) -> bool:
        at = panel.at(self.base.rows[number])
        return at is not None and inside(ranges, (at,) if len(panel.places) == 1 else at)

    def exposed_rows(self, event: FilterEvent, most: int | None = None) -> list[int]:
        """The base rows that at least one semijoin gains or loses; if there are more than `most`, some of them."""
        found: set[int] = set()
        for panel in self.panels.values():
            if len(self.panels) == 1:
                return sorted(self._reached(panel, event, most))
            found.update(self._reached(panel, event, most))
            if most is not None and len(found) >= most:
                break
        return sorted(found)

    def _reached(self, panel: Panel, event: FilterEvent, most: int | None) -> Iterable[int]:
        if panel.view is not None:
            run = panel.view.run(event.join_value)
            return [run.rows[place] for place in panel.index.reached(event.at, event.held, run.keys, most)]
        spans = panel.index.spans(event.at, event.held)
        return {
            number
            for number in (self.joined_rows(event) if spans else ())
            if any(self._inside(panel, span, number) for span in spans)
        }

    def joined_rows(self, event: FilterEvent) -> Sequence[int]:
        """The base rows of the event's join value."""
        assert self.base_view is not None
        return self.base_view.run(event.join_value).rows

    def lets_through(self, ranges: Ranges, row: Row) -> bool:
        """Whether a base row passes the filtering table for a semijoin with these filtering ranges."""
        run = self.joining(row)
        if run is None:
            return True
        if len(ranges) == 1:
            return bool(len(run.between(*ranges[0])))
        return any(inside(ranges, point) for point in run.keys)
