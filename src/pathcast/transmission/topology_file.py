"""A topology as a TOML file: a shape by name, or links one by one, or both.

    kind = "tree"            # omitted if all links are listed
    levels = 4
    bandwidth = "10MB/s"     # the default for all links

    [[link]]                 # an additional link, or another speed for a link of the shape
    between = ["r1", "r2"]
    bandwidth = "1GB/s"

`TopologyFile` declares all keys; docs/guides/routing.md has the table. Every error names file, line and key.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from pathcast.errors import TopologyError
from pathcast.toml_files import NUMBER, TEXT, Kind, RefusedValueError, TomlFile, choice, key, sections, suggestion
from pathcast.toml_files import reference as reference_of

from . import bandwidth_units as units
from .topology import Topology

# The keys of each shape; the first is required.
_SHAPES: dict[str, tuple[str, ...]] = {
    "tree": ("levels", "fanout"),
    "chain": ("nodes",),
    "star": ("nodes",),
    "random": ("nodes", "degree", "seed"),
    "internet": ("nodes", "seed"),
}


def _between(value: Any, _: Path) -> tuple[str, str]:
    is_pair = isinstance(value, list) and len(value) == 2 and all(isinstance(end, str) and end for end in value)
    if not is_pair:
        raise _PAIR.refused(value)
    if value[0] == value[1]:
        raise RefusedValueError(f"must be two different nodes, got '{value[0]}' twice")
    return value[0], value[1]


def _nodes(value: Any, _: Path) -> int | tuple[str, ...]:
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    if not isinstance(value, list) or not all(isinstance(node, str) and node for node in value):
        raise _NODES.refused(value)
    if len(set(value)) != len(value):
        twice = next(node for at, node in enumerate(value) if node in value[:at])
        raise RefusedValueError(f"contains '{twice}' twice; node names must be distinct")
    return tuple(value)


def _numeric(value: Any, kinds: tuple[type, ...], kind: Kind) -> Any:
    if isinstance(value, bool) or not isinstance(value, kinds):
        raise kind.refused(value)
    return value


def _speed(read: Callable[[Any], float]) -> Callable[[Any, Path], float]:
    def speed(value: Any, _: Path) -> float:
        try:
            return read(value)
        except TopologyError as error:
            raise RefusedValueError(error.reason) from None

    return speed


_PAIR = Kind("the names of two nodes", _between)
_NODES = Kind("a whole number of at least 1, or without `kind` a list of names", _nodes)
_DEGREE: Kind = Kind("a number", lambda value, _: _numeric(value, (int, float), _DEGREE))
_SEED: Kind = Kind("a whole number", lambda value, _: _numeric(value, (int,), _SEED))
_BANDWIDTH = Kind('bytes per second, such as `"10MB/s"`', _speed(units.bandwidth))
_LATENCY = Kind('a time, such as `"1ms"`', _speed(units.latency))


@dataclass(frozen=True, kw_only=True)
class LinkPart:
    """A link between two nodes."""

    between: tuple[str, str] = key(_PAIR, "The nodes that the link joins.")
    bandwidth: float | None = key(_BANDWIDTH, "The bandwidth of the link, each way.", None, without="that of the file")
    latency: float | None = key(_LATENCY, "The latency of the link.", None, without="that of the file")


@dataclass(frozen=True, kw_only=True)
class TopologyFile:
    """The keys of a topology file."""

    kind: str | None = key(
        choice(*_SHAPES),
        "The shape: `tree`, `chain`, `star`, `random` (connected, with random links) or `internet` (nodes on a plane, "
        "latencies by distance).",
        None,
        without="all links are listed",
    )
    levels: int | None = key(NUMBER, "For `tree`, required: the number of levels, including the root.", None)
    fanout: int = key(NUMBER, "For `tree`: the number of children per node.", 2)
    nodes: int | tuple[str, ...] | None = key(
        _NODES, "For the other shapes, required: the number of nodes. Without `kind`: the names of nodes.", None
    )
    degree: float = key(_DEGREE, "For `random`: the average number of links per node.", 3.0)
    seed: int = key(_SEED, "For `random` and `internet`: the seed of the random generator.", 0)
    bandwidth: float = key(_BANDWIDTH, "The default bandwidth of links.", units.bandwidth("10MB/s"), without="`10MB/s`")
    latency: float | None = key(
        _LATENCY, "The default latency of links.", None, without="`0ms`; by distance for `internet`"
    )
    root: str | None = key(TEXT, "The node that publishes documents.", None, without="the first node")
    link: tuple[LinkPart, ...] = sections(
        LinkPart, "An additional link; or, between two nodes that the shape has linked, another speed."
    )


def reference() -> str:
    """The reference of all keys, in Markdown."""
    return reference_of(TopologyFile, "The shape, and defaults for all links.", "####")


def read_topology(file: str | PathLike[str]) -> Topology:
    """Read a file; `TopologyError` for problems, each with file, line and key."""
    given = TomlFile(file)
    said, made = given.read(TopologyFile), None
    if said is not None:
        for name, reason in _together(given, said):
            given.wrong(name, reason)
        if not given.problems:
            made = _topology(given, said)
    if made is None:
        raise TopologyError(given.told())
    return made


def _together(file: TomlFile, said: TopologyFile) -> Iterator[tuple[str, str]]:
    """Problems with combinations of keys."""
    wanted = _SHAPES.get(said.kind or "", ("nodes",))
    for name in dict.fromkeys(name for names in _SHAPES.values() for name in names):
        if file.has(name) and name not in wanted:
            shapes = " or ".join(f'"{shape}"' for shape, names in _SHAPES.items() if name in names)
            now = "kind is missing" if said.kind is None else f'kind is "{said.kind}"'
            yield name, f"is only valid with kind = {shapes}, but {now}; omit the key, or change kind"
    if said.kind is not None and getattr(said, wanted[0]) is None:
        yield wanted[0], f'is missing; kind = "{said.kind}" requires it'
    if said.kind is None and isinstance(said.nodes, int):
        yield (
            "nodes",
            f'is {said.nodes}, but kind is missing; set kind, such as "chain", or list the names of the nodes',
        )
    if said.kind is not None and isinstance(said.nodes, tuple):
        yield "nodes", f'must be a number with kind = "{said.kind}", got a list of names; omit kind to list nodes'
    if said.kind is None and not said.nodes and not said.link:
        yield "link", "is missing; set kind, or list the links under [[link]]"
    linked: set[frozenset[str]] = set()
    for number, link in enumerate(said.link):
        if frozenset(link.between) in linked:
            yield (
                f"link[{number}].between",
                f"'{link.between[0]}' and '{link.between[1]}' are linked twice; remove one link",
            )
        linked.add(frozenset(link.between))


def _topology(file: TomlFile, said: TopologyFile) -> Topology | None:
    shape = _listed(said) if said.kind is None else _shape(file, said, said.kind)
    if shape is None:
        return None
    if said.root is not None and said.root not in shape.nodes:
        file.wrong("root", _unknown(said.root, shape.nodes))
    for number, link in enumerate(said.link):
        for end in link.between:
            if end not in shape.nodes:
                file.wrong(f"link[{number}].between", _unknown(end, shape.nodes))
    return None if file.problems else _with_links(shape, said)


def _unknown(name: str, nodes: tuple[str, ...]) -> str:
    some = f"; the nodes are {', '.join(nodes[:5])}{', …' * (len(nodes) > 5)}"
    return f"unknown node '{name}'{suggestion(name, nodes) or some}"


def _shape(file: TomlFile, said: TopologyFile, kind: str) -> Topology | None:
    values = {name: getattr(said, name) for name in _SHAPES[kind] if file.has(name)}
    make: Callable[..., Topology] = getattr(Topology, kind)
    try:
        shape = make(**values)
    except TopologyError as error:
        file.wrong("kind", error.reason)
        return None
    if kind == "internet" and said.latency is None:
        return shape.with_speed(bandwidth=said.bandwidth)
    return shape.with_speed(bandwidth=said.bandwidth, latency=said.latency or 0.0)


def _listed(said: TopologyFile) -> Topology:
    """A topology of the nodes that `nodes` lists and the nodes that only links name, in the order of the file."""
    nodes = said.nodes if isinstance(said.nodes, tuple) else ()
    names = dict.fromkeys([*nodes, *(end for link in said.link for end in link.between)])
    return Topology(list(names), [], bandwidth=said.bandwidth, latency=said.latency or 0.0)


def _with_links(shape: Topology, said: TopologyFile) -> Topology:
    ends, speeds = shape.ends.tolist(), list(zip(shape.bandwidth.tolist(), shape.latency.tolist(), strict=True))
    for link in said.link:
        one, other = link.between
        if shape.linked(one, other):
            at = shape.lane(one, other) >> 1
        else:
            at = len(ends)
            ends.append([shape.number(one), shape.number(other)])
            speeds.append((said.bandwidth, said.latency or 0.0))
        bandwidth, latency = speeds[at]
        speeds[at] = (
            bandwidth if link.bandwidth is None else link.bandwidth,
            latency if link.latency is None else link.latency,
        )
    columns = np.array(speeds, np.float64).reshape(-1, 2)
    return Topology(
        shape.nodes,
        np.array(ends, np.int32).reshape(-1, 2),
        bandwidth=columns[:, 0],
        latency=columns[:, 1],
        root=said.root or shape.nodes[0],
        places=shape.places,
    )
