"""The ledger: the traffic of each lane of a topology, in bytes and messages, by kind.

The sender names the kinds ("document", "annotations", "payload"). A message of several kinds (a document with its
annotations) counts as one message, of the first kind.

Cost: two numbers per lane and kind; an entry takes two additions.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pathcast.errors import TopologyError
from pathcast.kernels import Int64s

if TYPE_CHECKING:
    from .topology import Node, Topology


@dataclass(frozen=True, slots=True)
class LaneTraffic:
    """The traffic of one kind on one lane."""

    source: str
    target: str
    kind: str
    bytes: int
    messages: int


class Ledger:
    """Counts per lane and kind, for one topology.

    >>> ledger = pathcast.transmission.Ledger(pathcast.transmission.Topology.chain(3))
    >>> ledger.carry("r1", "r2", 700)
    >>> ledger.total_bytes()
    700
    """

    def __init__(self, topology: "Topology") -> None:
        self.topology = topology
        self._bytes: dict[str, Int64s] = {}
        self._messages: dict[str, Int64s] = {}

    @property
    def kinds(self) -> list[str]:
        """The kinds of traffic, in order of first occurrence."""
        return list(self._bytes)

    def carry(self, source: "Node", target: "Node", sizes: int | Mapping[str, int], kind: str = "message") -> None:
        """Count one message between neighbours, given its bytes, or its bytes by kind."""
        self.carry_on(self.topology.lane(source, target), sizes, kind)

    def carry_on(self, lane: int, sizes: int | Mapping[str, int], kind: str = "message") -> None:
        """Count one message on a lane."""
        parts = sizes if isinstance(sizes, Mapping) else {kind: sizes}
        for number, (name, size) in enumerate(parts.items()):
            if size < 0:
                raise TopologyError(f"the size of a message of kind '{name}' must be at least 0 bytes, got {size}")
            sums, counts = self._columns(name)
            sums[lane] += size
            counts[lane] += number == 0

    def carry_many(self, lanes: npt.ArrayLike, sizes: npt.ArrayLike, kind: str = "message") -> None:
        """Count one message per given lane; a lane may be given several times."""
        sums, counts = self._columns(kind)
        where = np.asarray(lanes, np.int64)
        np.add.at(sums, where, np.asarray(sizes, np.int64))
        np.add.at(counts, where, 1)

    def bytes_of(self, kind: str | None = None) -> Int64s:
        """Bytes per lane, of one kind or of all."""
        return self._sum(self._bytes, kind)

    def messages_of(self, kind: str | None = None) -> Int64s:
        """Messages per lane, of one kind or of all."""
        return self._sum(self._messages, kind)

    def link_bytes(self, kind: str | None = None) -> Int64s:
        """Bytes per link, both directions together."""
        both: Int64s = self.bytes_of(kind).reshape(-1, 2).sum(axis=1)
        return both

    def bytes_between(self, source: "Node", target: "Node", kind: str | None = None) -> int:
        """Bytes sent from a node to its neighbour."""
        return int(self.bytes_of(kind)[self.topology.lane(source, target)])

    def messages_between(self, source: "Node", target: "Node", kind: str | None = None) -> int:
        """Messages sent from a node to its neighbour."""
        return int(self.messages_of(kind)[self.topology.lane(source, target)])

    def total_bytes(self, kind: str | None = None) -> int:
        """Bytes on all lanes together."""
        return int(self.bytes_of(kind).sum())

    def total_messages(self, kind: str | None = None) -> int:
        """Messages on all lanes together."""
        return int(self.messages_of(kind).sum())

    def node_bytes(self, kind: str | None = None) -> Int64s:
        """Bytes per node, in and out: the stress of a node."""
        found = np.zeros(len(self.topology.nodes), np.int64)
        for side in (0, 1):
            np.add.at(found, self.topology.ends[:, side], self.link_bytes(kind))
        return found

    def rows(self) -> Iterator[LaneTraffic]:
        """The traffic of every lane and kind with messages, ordered by lane."""
        for lane in np.flatnonzero(self.messages_of() + self.bytes_of()).tolist():
            source, target = self.topology.lane_ends(lane)
            for kind in self._bytes:
                size, count = int(self._bytes[kind][lane]), int(self._messages[kind][lane])
                if size or count:
                    yield LaneTraffic(source, target, kind, size, count)

    def add(self, other: "Ledger") -> None:
        """Add the traffic of another ledger of the same topology."""
        if other.topology is not self.topology and not (
            other.topology.nodes == self.topology.nodes and np.array_equal(other.topology.ends, self.topology.ends)
        ):
            raise TopologyError(
                f"cannot add a ledger of {other.topology!r} to a ledger of {self.topology!r}; both must have the same "
                "nodes and links"
            )
        for kind in other._bytes:
            sums, counts = self._columns(kind)
            sums += other._bytes[kind]
            counts += other._messages[kind]

    def clear(self) -> None:
        """Reset all counts."""
        self._bytes.clear()
        self._messages.clear()

    def draw(self, file: Any, **options: Any) -> Any:
        """Draw the topology with this traffic on its links: see topology_picture.py."""
        from .topology_picture import draw

        return draw(self.topology, file, ledger=self, **options)

    def __repr__(self) -> str:
        return f"Ledger({self.total_messages():,} messages, {self.total_bytes():,} bytes; {', '.join(self.kinds)})"

    def _columns(self, kind: str) -> tuple[Int64s, Int64s]:
        if kind not in self._bytes:
            self._bytes[kind] = np.zeros(2 * len(self.topology.ends), np.int64)
            self._messages[kind] = np.zeros(2 * len(self.topology.ends), np.int64)
        return self._bytes[kind], self._messages[kind]

    def _sum(self, columns: dict[str, Int64s], kind: str | None) -> Int64s:
        if kind is not None and kind in columns:
            return columns[kind].copy()
        found = np.zeros(2 * len(self.topology.ends), np.int64)
        for column in columns.values() if kind is None else ():
            found += column
        return found
