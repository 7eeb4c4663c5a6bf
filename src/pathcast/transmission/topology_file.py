"""A topology as a TOML file: a shape by name, or links one by one, or both.

    kind = "tree"            # or "chain", "star", "random", "internet"; left out when all links are listed
    levels = 4               # what the shape needs: levels and fanout; nodes; degree, seed
    fanout = 2
    bandwidth = "10MB/s"     # of every link that says nothing else
    latency = "1ms"
    root = "r1"

    [[link]]                 # a link more, or, between two nodes that the shape has linked, another speed
    between = ["r1", "r2"]
    bandwidth = "1GB/s"

Every error names the file and the key; one that TOML itself finds has the line.
"""

import difflib
import tomllib
from collections.abc import Callable, Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np

from pathcast.errors import TopologyError

from . import units
from .topology import Topology

# The keys of each shape; the first one is needed.
_SHAPES: dict[str, tuple[str, ...]] = {
    "tree": ("levels", "fanout"),
    "chain": ("nodes",),
    "star": ("nodes",),
    "random": ("nodes", "degree", "seed"),
    "internet": ("nodes", "seed"),
}
_GENERAL = ("kind", "bandwidth", "latency", "root", "link")
_LINK = ("between", "bandwidth", "latency")
_NUMBERS = {"degree": (int, float)}


class _Refused(Exception):  # noqa: N818 - never leaves this file
    def __init__(self, key: str, reason: str) -> None:
        super().__init__(reason)
        self.key, self.reason = key, reason


def read_topology(file: str | PathLike[str]) -> Topology:
    """Read a file; what is wrong with it is a `TopologyError` that begins with the file's name and the key."""
    name = fspath(file)
    try:
        table = tomllib.loads(Path(file).read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise TopologyError(f"{name}: can't be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise TopologyError(f"{name}: is not UTF-8") from error
    except tomllib.TOMLDecodeError as error:
        raise TopologyError(f"{name}: is not TOML: {error}") from error
    try:
        return _topology(table)
    except _Refused as error:
        raise TopologyError(f"{name}: {error.key}: {error.reason}") from error
    except TopologyError as error:
        raise TopologyError(f"{name}: {error.reason}") from error


def _topology(table: Mapping[str, Any]) -> Topology:
    kind = table.get("kind")
    if kind is not None and kind not in _SHAPES:
        raise _Refused("kind", f"there is no shape {kind!r}; there are {', '.join(_SHAPES)}{_near(kind, _SHAPES)}")
    _check_keys(table, (*_GENERAL, *(_SHAPES[kind] if kind else ("nodes",))), "")
    shape = _shape(kind, table) if kind else _listed(table)
    root = table.get("root", shape.nodes[0])
    if not isinstance(root, str) or root not in shape.nodes:
        raise _Refused("root", f"there is no node {root!r}")
    return _with_links(shape, table, root)


def _shape(kind: str, table: Mapping[str, Any]) -> Topology:
    values = {}
    for key in _SHAPES[kind]:
        if key in table:
            kinds = _NUMBERS.get(key, int)
            if isinstance(table[key], bool) or not isinstance(table[key], kinds):
                raise _Refused(key, f"must be a {'number' if key in _NUMBERS else 'whole number'}, not {table[key]!r}")
            values[key] = table[key]
    first = _SHAPES[kind][0]
    if first not in values:
        raise _Refused(first, f'is missing; kind = "{kind}" needs it')
    make: Callable[..., Topology] = getattr(Topology, kind)
    try:
        shape = make(**values)
    except TopologyError as error:
        raise _Refused(f'kind = "{kind}"', error.reason) from error
    if kind == "internet" and "latency" not in table:
        return shape.with_speed(bandwidth=_speed(table, "bandwidth", "", "10MB/s"))
    return shape.with_speed(
        bandwidth=_speed(table, "bandwidth", "", "10MB/s"), latency=_speed(table, "latency", "", "0ms")
    )


def _listed(table: Mapping[str, Any]) -> Topology:
    """The nodes that `nodes` lists, and those that only links name, in the order in which they are named."""
    nodes = table.get("nodes", [])
    if not isinstance(nodes, list) or not all(isinstance(node, str) and node for node in nodes):
        raise _Refused("nodes", f"must be a list of names, not {nodes!r}; a number of nodes needs a kind")
    if len(set(nodes)) != len(nodes):
        raise _Refused("nodes", "a name stands there twice")
    names = list(dict.fromkeys([*nodes, *(end for link in _links(table) for end in link["between"])]))
    if not names:
        raise _Refused("link", "is missing; a topology has a kind, or links one by one")
    return Topology(
        names,
        [],
        bandwidth=_speed(table, "bandwidth", "", "10MB/s"),
        latency=_speed(table, "latency", "", "0ms"),
    )


def _links(table: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    links = table.get("link", [])
    if not isinstance(links, list) or not all(isinstance(link, dict) for link in links):
        raise _Refused("link", "links are written as [[link]], each with between = [one, other]")
    for number, link in enumerate(links):
        where = f"link[{number}]."
        _check_keys(link, _LINK, where)
        ends = link.get("between")
        if not isinstance(ends, list) or len(ends) != 2 or not all(isinstance(end, str) and end for end in ends):
            raise _Refused(f"{where}between", f"must be the names of two nodes, not {ends!r}")
        if ends[0] == ends[1]:
            raise _Refused(f"{where}between", f"'{ends[0]}' has a link to itself")
    return links


def _with_links(shape: Topology, table: Mapping[str, Any], root: str) -> Topology:
    ends, speeds = shape.ends.tolist(), list(zip(shape.bandwidth.tolist(), shape.latency.tolist(), strict=True))
    general = _speed(table, "bandwidth", "", "10MB/s"), _speed(table, "latency", "", "0ms")
    written: set[frozenset[str]] = set()
    for number, link in enumerate(_links(table)):
        where = f"link[{number}]."
        one, other = link["between"]
        if frozenset((one, other)) in written:
            raise _Refused(f"{where}between", f"'{one}' and '{other}' are linked twice")
        written.add(frozenset((one, other)))
        for end in (one, other):
            if end not in shape.nodes:
                raise _Refused(f"{where}between", f"there is no node '{end}'{_near(end, shape.nodes)}")
        if shape.linked(one, other):
            at = shape.lane(one, other) >> 1
        else:
            at = len(ends)
            ends.append([shape.number(one), shape.number(other)])
            speeds.append(general)
        speeds[at] = (
            _speed(link, "bandwidth", where, speeds[at][0]),
            _speed(link, "latency", where, speeds[at][1]),
        )
    columns = np.array(speeds, np.float64).reshape(-1, 2)
    return Topology(
        shape.nodes,
        np.array(ends, np.int32).reshape(-1, 2),
        bandwidth=columns[:, 0],
        latency=columns[:, 1],
        root=root,
        places=shape.places,
    )


def _speed(table: Mapping[str, Any], key: str, where: str, otherwise: Any) -> float:
    read = units.bandwidth if key == "bandwidth" else units.latency
    try:
        return read(table.get(key, otherwise))
    except TopologyError as error:
        raise _Refused(f"{where}{key}", error.reason) from error


def _check_keys(table: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
    for key in table:
        if key not in known:
            raise _Refused(f"{where}{key}", f"is not known here{_near(key, known)}")


def _near(word: Any, known: Any) -> str:
    near = difflib.get_close_matches(str(word), list(known), n=1)
    return f"; did you mean '{near[0]}'?" if near else ""
