"""Advertisements as arrays, for routers on disk (`stored_overlay.py`): those that a router made, and those it received.

An advertisement that the router made has the tables of §5, which interpret annotations: entries behind aggregates and
data patterns as arrays, including those that match for any bindings; entries behind bindings as JSON, with patterns as
text. A received advertisement has the entries of its aggregates in the receiver's table and stores no patterns.

Invariant: a restored advertisement behaves like the stored one; patterns and bindings are read on first use.
"""

import json
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from typing import Any, overload

import numpy as np

from pathcast.kernels import AnyArray, Int32s, UInt8s
from pathcast.matching.arrays import part_of
from pathcast.patterns import Namespaces, Pattern
from pathcast.patterns.parsing import parse_printed
from pathcast.store import Texts, pack

from ..advertising.subscription_advertisement import Advertisement, BoundEntries, EntriesBehind
from ..advertising.subscriptions_by_wildcard_bindings import Simple, States, StoredSimple
from ..annotations.data_pattern_occurrences import DataPatterns
from ..table.needed_document_values import Needs
from ..table.routing_table import RoutingTable

Arrays = dict[str, AnyArray]
_BEHIND = ("covered", "containing", "expiring")


class StoredPatterns(Sequence[Pattern]):
    """Patterns that are read on access."""

    def __init__(self, count: int, read: Callable[[int], Pattern]) -> None:
        self._count, self._read = count, read
        self._known: dict[int, Pattern] = {}

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, number: int) -> Pattern: ...

    @overload
    def __getitem__(self, number: slice) -> Sequence[Pattern]: ...

    def __getitem__(self, number: int | slice) -> Pattern | Sequence[Pattern]:
        if isinstance(number, slice):
            return [self[each] for each in range(*number.indices(self._count))]
        at = range(self._count)[number]
        if at not in self._known:
            self._known[at] = self._read(at)
        return self._known[at]


class StoredAdvertisements(MutableMapping[str, Advertisement]):
    """Advertisements by neighbour, each restored on first use."""

    def __init__(self, neighbours: Sequence[str], restore: Callable[[str], Advertisement]) -> None:
        self._restore = restore
        self._known: dict[str, Advertisement | None] = dict.fromkeys(neighbours)

    def __getitem__(self, neighbour: str) -> Advertisement:
        found = self._known[neighbour]
        if found is None:
            found = self._known[neighbour] = self._restore(neighbour)
        return found

    def __setitem__(self, neighbour: str, advertisement: Advertisement) -> None:
        self._known[neighbour] = advertisement

    def __delitem__(self, neighbour: str) -> None:
        del self._known[neighbour]

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)


def made_arrays(made: Advertisement) -> Arrays:
    """The arrays of an advertisement, with the tables that its maker keeps."""
    texts, offsets = pack(map(str, made.aggregates))
    arrays = _arrays(made) | {"aggregates": texts, "aggregate_offsets": offsets, "known": _json(made.known.state())}
    for name, behind in (("unbound", made.known.unbound), *((name, getattr(made, name)) for name in _BEHIND)):
        arrays |= {f"{name}_{part}": array for part, array in behind.arrays().items()}
    return arrays


def received_arrays(received: Advertisement, entries: Int32s) -> Arrays:
    """The arrays of a received advertisement; `entries` are those of its aggregates in the receiver's table."""
    return _arrays(received) | {"entries": entries}


def restore_made(ends: tuple[str, str], arrays: Arrays, namespaces: Namespaces) -> Advertisement:
    """The advertisement from `made_arrays`, between these routers: upstream and downstream."""
    texts = Texts(arrays["aggregates"], arrays["aggregate_offsets"])
    aggregates = StoredPatterns(len(texts), lambda number: parse_printed(texts[number], namespaces))
    behind = [EntriesBehind.restore(part_of(arrays, f"{name}_")) for name in _BEHIND]
    simple = StoredSimple(lambda: _states(arrays["known"]), aggregates, lambda text: parse_printed(text, namespaces))
    known = BoundEntries(simple, range(len(aggregates)), unbound=EntriesBehind.restore(part_of(arrays, "unbound_")))
    return _restored(ends, arrays, aggregates, behind, known)


def restore_received(ends: tuple[str, str], arrays: Arrays, table: RoutingTable) -> Advertisement:
    """The advertisement from `received_arrays`."""
    entries = arrays["entries"]
    aggregates = StoredPatterns(len(entries), lambda number: table.patterns.pattern(int(entries[number])))
    nothing = StoredSimple(dict, aggregates, lambda text: parse_printed(text, None))
    return _restored(ends, arrays, aggregates, [EntriesBehind(())] * 3, BoundEntries(nothing, range(len(entries))))


def _arrays(one: Advertisement) -> Arrays:
    facts = {
        "simple": [(each.aggregate, each.count, each.wildcards) for each in one.simple],
        "data": one.data.patterns,
        "needs": one.needs.encode().decode(),
    }
    numbers = np.array([one.version, one.steps], dtype=np.int64)
    return {"version": numbers, "facts": _json(facts), "frequencies": one.frequencies}


def _restored(
    ends: tuple[str, str],
    arrays: Arrays,
    aggregates: Sequence[Pattern],
    behind: Sequence[EntriesBehind],
    known: BoundEntries,
) -> Advertisement:
    facts = _read(arrays["facts"])
    version, steps = arrays["version"].tolist()
    return Advertisement(
        *ends,
        version,
        steps,
        aggregates,
        tuple(Simple(aggregate, count, tuple(wildcards)) for aggregate, count, wildcards in facts["simple"]),
        DataPatterns([tuple(labels) for labels in facts["data"]]),
        arrays["frequencies"],
        behind[0],
        known,
        behind[1],
        behind[2],
        Needs.decode(facts["needs"].encode()),
    )


def _states(data: UInt8s) -> States:
    return {int(place): state for place, state in _read(data).items()}


def _json(value: Any) -> UInt8s:
    return np.frombuffer(json.dumps(value, ensure_ascii=False).encode(), dtype=np.uint8)


def _read(data: UInt8s) -> Any:
    return json.loads(data.tobytes())
