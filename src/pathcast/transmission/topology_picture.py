"""A picture of a topology, with the traffic of a ledger on its links: wider and darker links carried more.

Trees are drawn level by level from the root. Other graphs are drawn at the positions of their nodes; without positions,
in rings around the root, by the spanning tree of fewest hops. Small topologies have names, speeds and bytes.

The same input gives the same bytes (no clock, no random ids). matplotlib is imported when something is drawn.
"""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pathcast.errors import TopologyError
from pathcast.extras import extra
from pathcast.kernels import Floats, Int32s, Int64s

from .bandwidth_units import shown_bandwidth, shown_bytes, shown_seconds
from .topology import Topology

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from .traffic_ledger import Ledger

INK, FAINT, PAPER = "#1f2328", "#6b7280", "#ffffff"
FORMATS = (".png", ".svg")
NAMED, LABELLED = 80, 40  # label nodes and links up to these numbers
_SETTINGS: Any = {"font.family": "DejaVu Sans", "svg.hashsalt": "pathcast", "svg.fonttype": "none"}


def draw(
    topology: Topology,
    file: str | PathLike[str],
    *,
    ledger: "Ledger | None" = None,
    kind: str | None = None,
    title: str | None = None,
    labels: Sequence[str] | None = None,
) -> list[Path]:
    """Draw into a `.png` or `.svg` file, or into both if the name has no ending; return the files.

    `kind` selects one kind of the ledger's traffic; `labels` are texts for the links, in place of their bytes.
    """
    path = Path(file)
    if path.suffix and path.suffix not in FORMATS:
        raise TopologyError(f"unknown picture format: '{path.name}'; use a name that ends in {' or '.join(FORMATS)}")
    files = [path] if path.suffix else [path.with_name(path.name + ending) for ending in FORMATS]
    with extra("plots"):
        import matplotlib as mpl
        from matplotlib.figure import Figure
    with mpl.rc_context(_SETTINGS):
        places = layout(topology)
        width = min(16.0, max(6.4, 0.72 * _widest(places)))
        figure = Figure(figsize=(width, 0.62 * width), facecolor=PAPER, layout="constrained")
        axes = figure.add_subplot()
        axes.set_axis_off()
        carried = None if ledger is None else ledger.link_bytes(kind)
        _links(axes, topology, places, carried, labels)
        _nodes(axes, topology, places)
        axes.set_title(title or _title(topology, ledger, kind), fontsize=11, color=INK, loc="left", fontweight="bold")
        for one in files:
            figure.savefig(one, dpi=144, metadata={"Date": None} if one.suffix == ".svg" else {"Software": None})
    return files


def layout(topology: Topology) -> Floats:
    """A position for each node."""
    if topology.is_tree and topology.places is None:
        return _levels(topology)
    if topology.places is not None:
        return topology.places
    return _rings(topology)


def _levels(topology: Topology) -> Floats:
    """The root on top; leaves side by side, a parent above the middle of its children."""
    across, depth, _ = _spread(topology)
    return np.stack([across, -depth.astype(np.float64)], axis=1)


def _rings(topology: Topology) -> Floats:
    """The root in the middle, a ring per hop, a sector per subtree; unreachable nodes are on an outer ring."""
    apart = np.flatnonzero(topology.components != topology.components[topology.number(topology.root)])
    across, depth, leaves = _spread(topology)
    outer = depth.max(initial=0) + 1
    across[apart], depth[apart] = np.arange(len(apart)) * leaves / max(1, len(apart)), outer
    angle = across / max(1.0, leaves) * 2 * np.pi
    return np.stack([depth * np.cos(angle), depth * np.sin(angle)], axis=1)


def _spread(topology: Topology) -> tuple[Floats, Int32s, int]:
    """The horizontal position and the level of each node, and the number of leaves of the tree of fewest hops."""
    root = topology.number(topology.root)
    paths = topology.shortest_paths("hops")
    lanes, depth = paths.lanes_from(root), paths.hops_from(root).copy()
    across = np.zeros(len(topology.nodes))
    children: list[list[int]] = [[] for _ in topology.nodes]
    for node in range(len(topology.nodes)):
        if (lane := lanes[node]) >= 0:
            children[topology.ends[lane >> 1, lane & 1]].append(node)
    leaves, waiting = 0, [(root, False)]
    while waiting:
        node, done = waiting.pop()
        if not children[node]:
            across[node] = leaves
            leaves += 1
        elif done:
            across[node] = (across[children[node][0]] + across[children[node][-1]]) / 2
        else:
            waiting.append((node, True))
            waiting.extend((child, False) for child in reversed(children[node]))
    return across, depth, leaves


def _widest(places: Floats) -> int:
    return int(np.unique(np.round(places[:, 1], 3), return_counts=True)[1].max())


def _links(
    axes: "Axes", topology: Topology, places: Floats, carried: Int64s | None, labels: Sequence[str] | None
) -> None:
    from matplotlib import colormaps
    from matplotlib.collections import LineCollection

    count = len(topology.ends)
    share = np.zeros(count) if carried is None else np.sqrt(carried / max(1, carried.max(initial=0)))
    thin = 0.25 if count > 2000 else 0.8
    order = np.argsort(share, kind="stable")
    colours = colormaps["viridis_r"](0.25 + 0.7 * share)
    if carried is not None:
        colours[carried == 0] = (0.8, 0.82, 0.85, 1.0)
    segments: Any = places[topology.ends[order]]
    axes.add_collection(LineCollection(segments, linewidths=thin + 5.0 * share[order], colors=colours[order], zorder=1))
    if count > LABELLED:
        return
    for link, (a, b) in enumerate(topology.ends):
        x, y = (places[a] + places[b]) / 2
        one = topology.link_at(link)
        speed = f"{shown_bandwidth(one.bandwidth)}, {shown_seconds(one.latency)}"
        text = speed if carried is None else shown_bytes(float(carried[link]))
        text = text if labels is None else labels[link]
        box = {"facecolor": PAPER, "edgecolor": "none", "pad": 0.8, "alpha": 0.85}
        axes.text(x, y, text, fontsize=6.5, color=FAINT, ha="center", va="center", bbox=box, zorder=2)


def _nodes(axes: "Axes", topology: Topology, places: Floats) -> None:
    named = len(topology.nodes) <= NAMED
    size = 420.0 if named else max(0.5, 4000.0 / len(topology.nodes))
    root = topology.number(topology.root)
    edges = np.full(len(topology.nodes), FAINT, object)
    edges[root] = "#d62f0f"
    axes.scatter(places[:, 0], places[:, 1], s=size, c=PAPER if named else edges, edgecolors=edges.tolist(), zorder=3)
    for name, (x, y) in zip(topology.nodes if named else (), places, strict=False):
        shown = name if len(name) <= 6 else name[:5] + "…"
        axes.text(x, y, shown, fontsize=7, color=INK, ha="center", va="center", zorder=4)
    axes.margins(0.06)


def _title(topology: Topology, ledger: "Ledger | None", kind: str | None) -> str:
    text = f"{len(topology.nodes):,} nodes, {len(topology.ends):,} links"
    if ledger is not None:
        text += f", {shown_bytes(ledger.total_bytes(kind))} carried" + (f" ({kind})" if kind else "")
    return text
