"""Decomposition: which neighbour filters each base table of a multi-way join (§4, appendices D and E of the paper).

Per-semijoin cost of a form R^S by the parametric model, with p the shares of insertions and j the tuples per join
value:

    c(R^S) = 1/3 · [ p_R · j_S/(j_S + 2)  +  p_S · j_R · 2/((j_S + 2)(j_S + 3)) ]

First part: an R tuple comes; the share of ranges on R that hold it is 1/3 (∫(1 − x) x dx over the area 1/2 of all
ranges), the share of ranges on S that hold one of j_S random points is j_S/(j_S + 2). Second: an S tuple comes, and
each of j_R tuples is exposed to the ranges that lie in its gap. j_S points and the new one split the domain so that
the two pieces next to it are x and y; of all ranges, 2xy begin in one and end in the other, in the mean 2/((j_S +
2)(j_S + 3)).

The other estimate replays recent rows with a sample of subscriptions: each row is removed from its table, and the
tuples that its insertion would send are counted.

Greedy: every base table takes the cheapest of the query's edges. No choice depends on another, and the total is a sum
over semijoins, so the cheapest choices together are the cheapest decomposition (appendix E).

Invariant: costs are fixed from one regrouping to the next, so that equal queries share groups.
Cost: O(edges) per query; a simulation O(sampled rows × sampled subscriptions) per edge.
"""

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pathcast.errors import QueryError

from ..schemes.semijoin_group_deltas import Group, IndexMaker
from ..schemes.semijoin_scheme import SemijoinScheme
from ..server.row_multisets import Bag
from ..server.sorted_row_views import View
from .join_graph_schema import Edge, Schema
from .select_join_query import Query

# A base table and the edge to the table that filters it.
Option = tuple[str, int]
# For each table, the neighbours that should filter it, the preferred one first.
Preferences = Mapping[str, Sequence[str]]
SAMPLED_ROWS = 256
SAMPLED_SUBSCRIPTIONS = 256
# Statistics cover this many events; earlier ones count half, those before them a quarter.
REMEMBERED_EVENTS = 10_000


def semijoin_cost(
    insert_base: float, insert_filtering: float, per_value_base: float, per_value_filtering: float
) -> float:
    """c(R^S): shares of insertions into R and S, tuples per join value of R and S."""
    j = per_value_filtering
    arrivals = insert_base * j / (j + 2)
    exposures = insert_filtering * per_value_base * 2 / ((j + 2) * (j + 3))
    return (arrivals + exposures) / 3


@dataclass
class Statistics:
    """Input of the model: events per table and tuples per join value; recent rows for the simulation."""

    schema: Schema
    bags: Mapping[str, Bag]
    events: Counter[str] = field(default_factory=Counter)
    recent: deque[tuple[str, int]] = field(default_factory=lambda: deque(maxlen=SAMPLED_ROWS))

    def __post_init__(self) -> None:
        self._views = {
            (table, edge.number): self.bags[table].view(edge.columns_of(table), (), self)
            for edge in self.schema.edges
            for table in edge.tables
        }

    def payload_view(self, table: str) -> View:
        """The rows of a table by the payload that they refer to, the last column."""
        edge = next(edge for edge in self.schema.edges_of(table) if edge.other(table) == f"{table}_payload")
        return self._views[table, edge.number]

    def note(self, table: str, number: int) -> None:
        """Record the arrival of a row."""
        self.events[table] += 1
        if self.events.total() >= 2 * REMEMBERED_EVENTS:
            self.events = Counter({name: count // 2 for name, count in self.events.items()})
        self.recent.append((table, number))

    def share(self, table: str) -> float:
        """The share of a table in all insertions; equal shares to begin with."""
        return (self.events[table] + 1) / (sum(self.events.values()) + len(self.bags))

    def per_value(self, table: str, edge: Edge) -> float:
        """Rows of a table per join value."""
        values = len(self._views[table, edge.number].runs)
        return len(self.bags[table]) / values if values else 0.0

    def cost(self, table: str, edge: Edge) -> float:
        """The model's cost of a base table filtered along an edge."""
        other = edge.other(table)
        return semijoin_cost(
            self.share(table), self.share(other), self.per_value(table, edge), self.per_value(other, edge)
        )

    def costs(self) -> dict[Option, float]:
        """The model's cost of every option."""
        return {(table, edge.number): self.cost(table, edge) for edge in self.schema.edges for table in edge.tables}


def preferences(schema: Schema, given: Mapping[str, str | Sequence[str]]) -> Preferences:
    """For each table, the neighbours that should filter it, the preferred one first; `QueryError` for other tables."""
    found: dict[str, tuple[str, ...]] = {}
    if not isinstance(given, Mapping):
        raise QueryError(f"filtered_by must map tables to neighbours, such as {{'A': 'B'}}, got {given!r}")
    for table, names in given.items():
        if table not in schema.columns:
            raise QueryError(f"filtered_by names the unknown table '{table}'; use one of {', '.join(schema.columns)}")
        found[table] = (names,) if isinstance(names, str) else tuple(names)
        known = [edge.other(table) for edge in schema.edges_of(table)]
        for name in found[table]:
            if name not in known:
                neighbours = ", ".join(known) or "none"
                raise QueryError(
                    f"filtered_by assigns '{name}' to '{table}', but they are not joined; use one of {neighbours}"
                )
    return found


def choose(query: Query, costs: Mapping[Option, float], preferred: Preferences | None = None) -> dict[str, Edge | None]:
    """The edge of each of a query's tables: the preferred one, or the cheapest; None where it has a single table."""
    return {table: _choose(query, table, costs, (preferred or {}).get(table, ())) for table in query.tables}


def _choose(query: Query, table: str, costs: Mapping[Option, float], order: Sequence[str]) -> Edge | None:
    def rank(edge: Edge) -> tuple[int, float]:
        other = edge.other(table)
        return order.index(other) if other in order else len(order), costs[table, edge.number]

    return min(query.edges_of(table), key=rank, default=None)


def total(choices: Iterable[Mapping[str, Edge | None]], costs: Mapping[Option, float]) -> float:
    """The cost of a decomposition."""
    return sum(costs[table, edge.number] for choice in choices for table, edge in choice.items() if edge)


def simulated(
    statistics: Statistics, queries: Sequence[tuple[int, Query]], scheme: SemijoinScheme, index: IndexMaker
) -> dict[Option, float]:
    """Costs by replaying recent rows: tuples sent per row and semijoin; the model's where no query has the choice."""
    costs = statistics.costs()
    for edge in statistics.schema.edges:
        sample = [(id, query) for id, query in queries if edge in query.edges]
        for table in edge.tables if sample else ():
            sent = sum(
                _told(statistics, group) for group in _groups(table, edge, sample, statistics.bags, scheme, index)
            )
            costs[table, edge.number] = sent / (len(sample) * max(1, len(statistics.recent)))
    return costs


def _groups(
    table: str,
    edge: Edge,
    sample: Sequence[tuple[int, Query]],
    bags: Mapping[str, Bag],
    scheme: SemijoinScheme,
    index: IndexMaker,
) -> list[Group]:
    """The groups that a sample of subscriptions would form if all chose one option."""
    groups: dict[tuple[str, ...], Group] = {}
    for id, query in sample:
        form = scheme.form(query, table, edge)
        if form.axes not in groups:
            groups[form.axes] = Group(form, 0, bags, index)
        groups[form.axes].add(id, query.ranges[table], form.ranges(query))
    return list(groups.values())


def _told(statistics: Statistics, group: Group) -> int:
    """The number of tuples sent to semijoins if the recent rows were inserted now; closes the group."""
    sent = 0
    for table, number in statistics.recent:
        bag = statistics.bags[table]
        if number not in bag.rows or table not in {group.form.base, group.form.filtering}:
            continue
        row = bag.rows[number]
        if table == group.form.base:
            sent += len(group.affected(row))
            continue
        bag.delete(number)
        event = group.filter_event(row)
        if event is not None:
            exposed = set(group.exposed(event))
            rows = (
                [bag_row for one in group.joined_rows(event) for bag_row in [group.base.rows[one]]] if exposed else []
            )
            sent += sum(
                len(exposed.intersection(ids.tolist()))
                for base_row in rows
                for panel, at in group.placed(base_row)
                for ids in [panel.selected(at)]
            )
        bag.insert(number, row)
    group.close()
    return sent
