"""Registrations: who has registered which filter at which node, checked before anything is done about them.

Equal filters have one number, the same at all nodes (as a hash of their content would be), and one shape.

Invariant: a filter has a number while somebody has registered it.
Cost: a dictionary look-up or two a registration.
"""

from collections.abc import Hashable, Iterable

from pathcast.errors import MessageError, TopologyError
from pathcast.messages import Filter, Term
from pathcast.transmission import Topology

from .can.filter_points import Shaped, shape
from .delivery_trace import Registration

# A registration, and what nodes have of it: its filter's number and shape, and its own number.
Made = tuple[Registration, tuple[int, Shaped, int]]


def filter_of(given: Filter | Term) -> Filter:
    """A filter, or one with a term alone; anything else is refused."""
    terms: object = given.terms if isinstance(given, Filter) else (given,)
    if not isinstance(terms, tuple) or not all(isinstance(term, Term) for term in terms):
        raise MessageError(f"a filter is Filter((…,)) or a term, as compare('per', '>', 45), not {given!r:.80}")
    return given if isinstance(given, Filter) else Filter(terms)


class Registrations:
    """The registrations of one network, by their numbers."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self.all: dict[int, Registration] = {}
        self._numbers: dict[Filter, int] = {}
        self._shapes: dict[int, tuple[Shaped, int]] = {}
        self._next_filter = self._next_registration = 0

    def add(self, rows: Iterable[tuple[str | int, Filter | Term, Hashable]]) -> list[Made]:
        """Take up registrations: (node, filter, subscriber) each; none if one can't be."""
        return [self._add(*row) for row in [self._checked(*row) for row in rows]]

    def _checked(self, node: str | int, given: Filter | Term, subscriber: Hashable) -> tuple[str, Filter, Hashable]:
        try:
            hash(subscriber)
        except TypeError:
            raise TopologyError(f"a subscriber is known by its hash, and {subscriber!r:.60} has none") from None
        return self.topology.nodes[self.topology.number(node)], filter_of(given), subscriber

    def _add(self, node: str, one: Filter, subscriber: Hashable) -> Made:
        id = self._next_registration
        self._next_registration += 1
        found = self.all[id] = Registration(id, node, one, subscriber)
        return found, (*self._numbered(one), id)

    def _numbered(self, one: Filter) -> tuple[int, Shaped]:
        """A filter's number, the same for equal ones, and its shape."""
        number = self._numbers.get(one)
        if number is None:
            number = self._numbers[one] = self._next_filter
            self._next_filter += 1
            self._shapes[number] = shape(one), 0
        shaped, count = self._shapes[number]
        self._shapes[number] = shaped, count + 1
        return number, shaped

    def find(self, registration: Registration | int) -> Registration:
        """A registration of this network, itself or by its number."""
        number = registration.number if isinstance(registration, Registration) else registration
        found = self.all.get(number)
        if found is None:
            raise TopologyError(f"there is no registration {number}")
        if isinstance(registration, Registration) and found != registration:
            raise TopologyError(f"registration {number} is one of another network")
        return found

    def remove(self, found: Registration) -> tuple[int, Shaped]:
        """Forget a registration; its filter's number and shape."""
        del self.all[found.number]
        wanted = self._numbers[found.filter]
        shaped, count = self._shapes[wanted]
        if count > 1:
            self._shapes[wanted] = shaped, count - 1
        else:
            del self._numbers[found.filter], self._shapes[wanted]
        return wanted, shaped
