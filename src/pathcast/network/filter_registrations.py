"""Registrations: subscriber, filter and node of each, checked before the network changes.

Equal filters share one number, the same at all nodes (as a hash of their content would be), and one shape.

Invariant: a filter has a number while at least one registration has it.
Cost: one or two dictionary look-ups per registration.
"""

from collections.abc import Hashable, Iterable

from pathcast.errors import MessageError, TopologyError
from pathcast.messages import Filter, Term
from pathcast.transmission import Topology

from .content_addressable.filter_point_transformation import Shaped, shape
from .publication_trace import Registration

# A registration, and the data that nodes store: the number and shape of its filter, and its own number.
Made = tuple[Registration, tuple[int, Shaped, int]]


def filter_of(given: Filter | Term) -> Filter:
    """A filter, from a filter or a single term; `MessageError` for anything else."""
    terms: object = given.terms if isinstance(given, Filter) else (given,)
    if not isinstance(terms, tuple) or not all(isinstance(term, Term) for term in terms):
        raise MessageError(f"filter must be Filter((…,)) or a term such as compare('per', '>', 45), got {given!r:.80}")
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
        """Add registrations, (node, filter, subscriber) each: all, or none if one is invalid."""
        return [self._add(*row) for row in [self._checked(*row) for row in rows]]

    def _checked(self, node: str | int, given: Filter | Term, subscriber: Hashable) -> tuple[str, Filter, Hashable]:
        try:
            hash(subscriber)
        except TypeError:
            raise TopologyError(f"subscriber must be hashable, such as a string, got {subscriber!r:.60}") from None
        return self.topology.nodes[self.topology.number(node)], filter_of(given), subscriber

    def _add(self, node: str, one: Filter, subscriber: Hashable) -> Made:
        id = self._next_registration
        self._next_registration += 1
        found = self.all[id] = Registration(id, node, one, subscriber)
        return found, (*self._numbered(one), id)

    def _numbered(self, one: Filter) -> tuple[int, Shaped]:
        """The number of a filter, which equal filters share, and its shape."""
        number = self._numbers.get(one)
        if number is None:
            number = self._numbers[one] = self._next_filter
            self._next_filter += 1
            self._shapes[number] = shape(one), 0
        shaped, count = self._shapes[number]
        self._shapes[number] = shaped, count + 1
        return number, shaped

    def find(self, registration: Registration | int) -> Registration:
        """A registration of this network, from the registration or its number."""
        number = registration.number if isinstance(registration, Registration) else registration
        found = self.all.get(number)
        if found is None:
            raise TopologyError(
                f"unknown registration {number!r}: it was removed, or belongs to another network; give an "
                "existing registration of this network"
            )
        if isinstance(registration, Registration) and found != registration:
            raise TopologyError(
                f"registration {number} belongs to another network; call the method of that network instead"
            )
        return found

    def remove(self, found: Registration) -> tuple[int, Shaped]:
        """Remove a registration; return the number and shape of its filter."""
        del self.all[found.number]
        wanted = self._numbers[found.filter]
        shaped, count = self._shapes[wanted]
        if count > 1:
            self._shapes[wanted] = shaped, count - 1
        else:
            del self._numbers[found.filter], self._shapes[wanted]
        return wanted, shaped
