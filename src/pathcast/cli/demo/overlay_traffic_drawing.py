"""The demo's picture: the overlay with the traffic of its links, and what annotations saved, as PNG and SVG.

The traffic is read from `links/`, which has a row per link and micro-batch; package transmission draws it.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pathcast.kernels import Int64s

from .pipeline_inputs import FANOUT, LEVELS, POLICY
from .stream_output_reader import columns_of

if TYPE_CHECKING:
    from pathcast.transmission import Ledger

NAME = "overlay"
_SUMS = ("messages", "bytes", "annotations", "patterns", "skipped", "unread")


@dataclass(frozen=True)
class OverlayTraffic:
    """The traffic of each link, in both directions, and the sums of `links/` by column and link."""

    ledger: "Ledger"
    sums: dict[str, Int64s]

    def total(self, column: str) -> int:
        """The sum over all links."""
        return int(self.sums[column].sum())

    @property
    def spared(self) -> str:
        """The share of the routers' patterns that annotations made needless."""
        return f"{self.total('skipped') / max(1, self.total('patterns')):.0%}"

    @property
    def unread(self) -> str:
        """The share of messages that routers passed on unread."""
        return f"{self.total('unread') / max(1, self.total('messages')):.0%}"

    @property
    def saved(self) -> str:
        """What annotations saved, as a sentence."""
        from pathcast.transmission import shown_bytes

        size = shown_bytes(self.total("annotations"))
        return (
            f"Annotations ({size}) made {self.spared} of the routers' patterns needless; "
            f"routers passed on {self.unread} of the messages unread."
        )


def traffic_of(folder: Path) -> OverlayTraffic:
    """The traffic of the overlay, from the rows that the stream wrote."""
    from pathcast.transmission import Ledger, Topology

    topology = Topology.tree(LEVELS, FANOUT, bandwidth="10MB/s", latency="5ms")
    ledger = Ledger(topology)
    sums = {name: np.zeros(len(topology.ends), dtype=np.int64) for name in _SUMS}
    for sender, router, *counts in zip(*columns_of(folder / "links", "sender", "router", *_SUMS), strict=True):
        lane = topology.lane(sender, router)
        row = dict(zip(_SUMS, counts, strict=True))
        for name, count in row.items():
            sums[name][lane >> 1] += count
        for kind, size in (("document", row["bytes"] - row["annotations"]), ("annotations", row["annotations"])):
            sizes = np.zeros(row["messages"], np.int64)
            sizes[0] = size
            ledger.carry_many(np.full(row["messages"], lane), sizes, kind)
    return OverlayTraffic(ledger, sums)


def draw(folder: Path) -> OverlayTraffic:
    """Draw the overlay into the folder if matplotlib is installed; return the traffic."""
    from importlib.util import find_spec

    from pathcast.transmission import shown_bytes

    traffic = traffic_of(folder)
    ledger = traffic.ledger
    notes = shown_bytes(traffic.total("annotations"))
    title = (
        f"{len(ledger.topology.nodes)} routers, policy {POLICY}: {traffic.total('messages'):,} messages, "
        f"{shown_bytes(ledger.total_bytes())}\n"
        f"A: annotations ({notes}). P: patterns they made needless ({traffic.spared}).\n"
        f"{traffic.unread} of the messages were passed on unread."
    )
    if find_spec("matplotlib") is not None:
        ledger.draw(
            folder / NAME, title=title, labels=[_label(traffic, link) for link in range(len(traffic.sums["bytes"]))]
        )
    return traffic


def _label(traffic: OverlayTraffic, link: int) -> str:
    from pathcast.transmission import shown_bytes

    size, notes, patterns, skipped = (
        int(traffic.sums[name][link]) for name in ("bytes", "annotations", "patterns", "skipped")
    )
    if not notes:
        return shown_bytes(size)
    return f"{shown_bytes(size)}\nA {shown_bytes(notes)}\nP {skipped / max(1, patterns):.0%}"
