"""Initial contents of new subscribers, part by part.

A subscriber's content of a table is a semijoin along one edge, and a part has all rows of a join value of an edge
(`value_partitioned_join.py`); so the contents of all parts together are the subscriber's content. Each part yields a
message to one subscription that lists rows (`row_listing_messages.py`). A client reads these messages in any order,
then the messages of all changes after the states.

Invariant: the lists of all parts together are the contents of the server with these tables.
Cost: one index look-up per row and form, plus the listed rows.
"""

from collections.abc import Iterator

from pathcast.messages import Message

from ..partition.join_server_specification import StandingJoins
from ..partition.value_partitioned_join import Parts
from ..query.join_graph_schema import Row
from ..schemes.row_listing_messages import Listing


class InitialContents:
    """Computes the initial contents of a description's subscriptions in parts of the tables."""

    def __init__(self, standing: StandingJoins) -> None:
        self._parts = Parts(standing)

    def of(self, edge: int, state: bytes) -> Iterator[tuple[int, Message]]:
        """Subscriptions that have rows of a part, ascending, each with the message that lists them."""
        site = self._parts.site(edge)
        rows, _ = self._parts.codec(edge).read_state(state)
        listings: dict[int, dict[str, list[tuple[int, Row]]]] = {}
        bags = site.server.bags
        site.clear()
        for table, listed in rows.items():
            for number, row in listed.items():
                bags[table].insert(number, row)
        try:
            for group in site.groups():
                for number, row in rows.get(group.form.base, {}).items():
                    for id in group.affected(row):
                        listings.setdefault(id, {}).setdefault(group.form.base, []).append((number, row))
        finally:
            site.clear()
        for id, tables in sorted(listings.items()):
            listing = Listing()
            for table, has in tables.items():
                listing.come(table, bags[table].columns, has)
            yield id, listing.message(id)
