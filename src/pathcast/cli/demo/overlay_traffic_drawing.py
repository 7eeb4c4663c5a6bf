"""The demo's picture: the overlay with the traffic of its links, as PNG and SVG.

The traffic is read from `links/`, which has a row per link and micro-batch; package transmission draws it.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .pipeline_inputs import FANOUT, LEVELS
from .stream_output_reader import columns_of

if TYPE_CHECKING:
    from pathcast.transmission import Ledger

NAME = "overlay"
_COLUMNS = ("sender", "router", "messages", "bytes")


def ledger_of(folder: Path) -> "Ledger":
    """The traffic of each link of the overlay, from the rows that the stream wrote."""
    from pathcast.transmission import Ledger, Topology

    ledger = Ledger(Topology.tree(LEVELS, FANOUT, bandwidth="10MB/s", latency="5ms"))
    for sender, router, messages, size in zip(*columns_of(folder / "links", *_COLUMNS), strict=True):
        sizes = np.zeros(messages, np.int64)
        sizes[0] = size
        ledger.carry_many(np.full(messages, ledger.topology.lane(sender, router)), sizes, "document")
    return ledger


def draw(folder: Path) -> "Ledger":
    """Draw the overlay into the folder if matplotlib is installed; return the traffic."""
    from importlib.util import find_spec

    from pathcast.transmission import shown_bytes

    ledger = ledger_of(folder)
    title = (
        f"{len(ledger.topology.nodes)} routers: {ledger.total_messages():,} messages, "
        f"{shown_bytes(ledger.total_bytes())} on {len(ledger.topology.ends)} links"
    )
    if find_spec("matplotlib") is not None:
        ledger.draw(folder / NAME, title=title)
    return ledger
