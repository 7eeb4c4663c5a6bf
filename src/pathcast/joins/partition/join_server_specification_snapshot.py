"""Standing joins on disk: a snapshot of plain arrays; opening a description does not read all of it.

    facts     layout, schema, scheme, axes, next_id, forms with their numbers, and for each batch of subscriptions its
              first id, size, query, columns with the kinds of their ends, and the number of removed ones
    arrays    single subscriptions as in subscription_snapshot_codec.py; whole and real, the ends of the ranges of
              all batches, one after the other; gone, ids

Invariant: an opened description has the ids, queries and form numbers of the saved one, so that its server is the same.
A snapshot is not trusted: lengths, places, kinds and names are checked, and a mismatch is a `SnapshotError`; the server
checks SQL and ranges.
Cost: opening maps arrays and checks each in a few passes; a single subscription is decoded on access.
"""

import json
import os
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pathcast.errors import PathcastError, SnapshotError
from pathcast.kernels import AnyArray
from pathcast.store import open_snapshot, read_manifest, reading_snapshot, write_snapshot

from ..query.join_graph_schema import Schema
from ..query.select_join_query import Selection
from ..query.subscription_snapshot_codec import ASKED_ARRAYS, StoredAsked, asked_arrays
from ..schemes.semijoin_templates import Form
from .join_server_specification import StandingJoins, SubscriptionSeries

KIND = "standing joins"
LAYOUT = 2
_ENDS = {"i": "whole", "f": "real"}
_ADVICE = "; publish the subscriptions again"
_DTYPES = {"whole": np.dtype(np.int64), "real": np.dtype(np.float64)}

AnyPath = str | os.PathLike[str]


# Saving.


def save_standing(standing: StandingJoins, folder: AnyPath) -> None:
    """Write a description to a folder; `QueryError` for a subscriber that cannot be stored."""
    write_snapshot(folder, KIND, *_described(standing))


def save_standing_under(standing: StandingJoins, home: AnyPath) -> tuple[Path, str]:
    """Write a description to a folder in `home` that is named by its content, unless the folder exists.

    Returns the folder, and the digest for `open_standing`.
    """
    facts, arrays = _described(standing)
    digest = _digest(facts, arrays)
    folder = Path(home).absolute() / f"{digest}.pathcast"
    if not folder.exists():
        write_snapshot(folder, KIND, facts, arrays)
    return folder, digest


def _digest(facts: Mapping[str, Any], arrays: Mapping[str, AnyArray]) -> str:
    found = blake2b(json.dumps(facts, sort_keys=True).encode(), digest_size=16)
    for name, array in sorted(arrays.items()):
        found.update(f"{name} {array.dtype.str} {array.shape} ".encode())
        found.update(np.ascontiguousarray(array).data)
    return found.hexdigest()


def _described(standing: StandingJoins) -> tuple[dict[str, Any], dict[str, AnyArray]]:
    """The facts and arrays of a description."""
    batches, arrays = _batches(standing.many)
    arrays |= asked_arrays(standing.asked)
    forms = [
        [number, form.base, None if form.edge is None else form.edge.number, list(form.axes)]
        for form, number in standing.numbers.items()
    ]
    facts = {
        "layout": LAYOUT,
        "schema": describe(standing.schema),
        "scheme": standing.scheme,
        "axes": standing.axes,
        "next_id": standing.next_id,
        "forms": forms,
        "batches": batches,
    }
    return facts, arrays


def describe(schema: Schema) -> dict[str, Any]:
    """A schema as JSON: tables with their columns' kinds, in order, and joins."""
    tables = [
        [table, [[column, kind.name if (kind := schema.kind(table, column)) else None] for column in columns]]
        for table, columns in schema.columns.items()
    ]
    return {"tables": tables, "joins": [str(edge) for edge in schema.edges]}


def _batches(many: Sequence[SubscriptionSeries]) -> tuple[list[dict[str, Any]], dict[str, AnyArray]]:
    described: list[dict[str, Any]] = []
    parts: dict[str, list[AnyArray]] = {"whole": [], "real": [], "gone": []}
    for each in many:
        columns: list[list[str]] = []
        for name, ends in each.ranges.items():
            columns.append([name, *(_ENDS[end.dtype.kind] for end in ends)])
            for end in ends:
                parts[_ENDS[end.dtype.kind]].append(end)
        parts["gone"].append(np.array(sorted(each.gone), np.int64))
        on = None if each.query.on is None else list(each.query.on)
        described.append(
            {
                "first": each.first,
                "size": each.size,
                "tables": list(each.query.tables),
                "on": on,
                "columns": columns,
                "gone": len(each.gone),
            }
        )
    dtypes = {**_DTYPES, "gone": np.dtype(np.int64)}
    return described, {
        name: np.concatenate([np.empty(0, dtypes[name]), *given]).astype(dtypes[name]) for name, given in parts.items()
    }


# Opening.


def open_standing(folder: AnyPath, digest: str | None = None) -> StandingJoins:
    """The description in a folder; `SnapshotError` when it is damaged, of another kind, too old or too new.

    With a `digest` (`save_standing_under`), any other description is an error, too.
    """
    _check_layout(folder, read_manifest(folder))
    snapshot = open_snapshot(folder, KIND)
    if digest is not None and _digest(snapshot.facts, snapshot.arrays) != digest:
        raise SnapshotError(
            f"{folder} does not hold the subscriptions that the stage was planned with; delete the folder and start "
            "the stage again"
        )
    with reading_snapshot(folder):
        try:
            return _restored(_Facts(snapshot.facts), snapshot.arrays)
        except PathcastError as error:
            raise SnapshotError(
                f"cannot read the standing joins in {folder}: {error.reason.partition('; ')[0]}{_ADVICE}"
            ) from None


def next_id_in(folder: AnyPath) -> int:
    """The next subscription id of the joins in a folder; reads nothing else."""
    manifest = read_manifest(folder)
    _check_layout(folder, manifest)
    return _Facts(manifest["facts"]).whole("next_id", 1)


def _check_layout(folder: AnyPath, manifest: Mapping[str, Any]) -> None:
    if manifest["kind"] != KIND:
        raise SnapshotError(
            f"{folder} holds a snapshot of kind {manifest['kind']!r}, expected {KIND!r}; choose another folder"
        )
    layout = manifest["facts"].get("layout")
    if layout != LAYOUT:
        newer = type(layout) is int and layout > LAYOUT
        again = "publish the subscriptions again, to another folder"
        advice = "update Pathcast" if newer else again
        raise SnapshotError(
            f"the snapshot in {folder} has layout {layout or 1!r}, but this version of Pathcast reads layout "
            f"{LAYOUT}; {advice}"
        )


def _damaged(what: str) -> SnapshotError:
    return SnapshotError(f"the snapshot is damaged: {what}{_ADVICE}")


class _Facts:
    """The JSON of a snapshot, with checked types."""

    def __init__(self, given: Any) -> None:
        if not isinstance(given, dict):
            raise _damaged(f"the manifest has {given!r:.60} instead of a JSON object")
        self._given = given

    def of(self, name: str, *kinds: type) -> Any:
        """The value of a name, which must have one of these types."""
        found = self._given.get(name)
        if type(found) not in kinds:
            wanted = " or ".join(kind.__name__ for kind in kinds)
            raise _damaged(f"'{name}' in the manifest must be {wanted}, got {found!r:.60}")
        return found

    def whole(self, name: str, least: int) -> int:
        """A 64-bit integer."""
        found: int = self.of(name, int)
        if not least <= found < 1 << 62:
            raise _damaged(f"'{name}' in the manifest must be from {least} to 2**62 - 1, got {found}")
        return found

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of strings."""
        return _texts(self.of(name, list), name)


def _texts(given: Any, name: str) -> tuple[str, ...]:
    if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
        raise _damaged(f"'{name}' in the manifest must be a list of strings, got {given!r:.60}")
    return tuple(given)


def _restored(facts: _Facts, arrays: Mapping[str, AnyArray]) -> StandingJoins:
    schema = _schema(_Facts(facts.of("schema", dict)))
    next_id = facts.whole("next_id", 1)
    axes = facts.of("axes", int, type(None))
    asked = StoredAsked({name: _array(arrays, name, dtype) for name, dtype in ASKED_ARRAYS.items()}, next_id)
    many = _Batches(arrays, next_id).read(facts.of("batches", list))
    forms = _forms(schema, facts.of("forms", list))
    return StandingJoins.restored(schema, facts.of("scheme", str), axes, asked, many, next_id, forms)


def _array(arrays: Mapping[str, AnyArray], name: str, kind: npt.DTypeLike) -> Any:
    found = arrays.get(name)
    if found is None or found.dtype != kind or found.ndim != 1:
        shape = "missing" if found is None else f"{found.ndim}-dimensional {found.dtype}"
        raise _damaged(f"the array '{name}' is {shape}, expected 1-dimensional {np.dtype(kind)}")
    return found.view(np.ndarray)


def _schema(facts: _Facts) -> Schema:
    tables: dict[str, dict[str, str | None]] = {}
    for given in facts.of("tables", list):
        match given:
            case [str(table), list(columns)] if all(
                isinstance(one, list) and [type(part) for part in one] == [str, str] for one in columns
            ):
                tables[table] = dict(columns)
            case _:
                raise _damaged(f"the schema has a malformed table: {given!r:.60}")
    return Schema(tables, facts.texts("joins"))


def _forms(schema: Schema, given: Sequence[Any]) -> dict[Form, int]:
    found: dict[Form, int] = {}
    for one in given:
        match one:
            case [int(number), str(base), None | int() as place, list(axes)] if base in schema.columns:
                edge = None
                if place is not None:
                    edge = next((edge for edge in schema.edges_of(base) if edge.number == place), None)
                names = _texts(axes, "forms")
                columns = schema.columns[edge.other(base)] if edge is not None else ()
                if (edge is None) != (place is None) or not set(names) <= set(columns):
                    raise _damaged(f"semijoin {number} of table '{base}' does not fit the schema")
                found[Form(base, edge, names)] = number
            case _:
                raise _damaged(f"malformed semijoin in 'forms': {one!r:.60}")
    if sorted(found.values()) != list(range(1, len(given) + 1)):
        raise _damaged("the semijoins ('forms') are not numbered from 1 without gaps")
    return found


class _Batches:
    """Reads batches of subscriptions, whose range ends are stored consecutively."""

    def __init__(self, arrays: Mapping[str, AnyArray], next_id: int) -> None:
        self._left = {name: _array(arrays, name, dtype) for name, dtype in _DTYPES.items()}
        self._left["gone"] = _array(arrays, "gone", np.int64)
        self._next_id = next_id

    def read(self, given: Sequence[Any]) -> tuple[SubscriptionSeries, ...]:
        """All batches; an error if range ends are left over."""
        found = tuple(self._batch(_Facts(one)) for one in given)
        if left := sum(map(len, self._left.values())):
            raise _damaged(f"{left:,} range ends belong to no batch of subscriptions")
        return found

    def _batch(self, facts: _Facts) -> SubscriptionSeries:
        first, size = facts.whole("first", 1), facts.whole("size", 1)
        if first + size > self._next_id:
            raise _damaged(f"subscription id {first + size - 1} is not below the next id, {self._next_id}")
        on = None if facts.of("on", list, type(None)) is None else facts.texts("on")
        ranges: dict[str, tuple[AnyArray, AnyArray]] = {}
        for column in facts.of("columns", list):
            name, low, high = _texts(column, "columns") if isinstance(column, list) and len(column) == 3 else ("",) * 3
            ranges[name] = self._take(low, size), self._take(high, size)
        if not ranges:
            raise _damaged(f"the batch of subscriptions from id {first} on has no ranges")
        gone = self._take("gone", facts.whole("gone", 0))
        if len(gone) and (gone[0] < first or gone[-1] >= first + size or bool((gone[1:] <= gone[:-1]).any())):
            raise _damaged(
                f"the batch of subscriptions {first} to {first + size - 1} must list removed subscriptions in "
                "ascending order, and only those of the batch"
            )
        return SubscriptionSeries(first, Selection(facts.texts("tables"), {}, on), ranges, frozenset(gone.tolist()))

    def _take(self, name: str, count: int) -> Any:
        left = self._left.get(name)
        if left is None or len(left) < count:
            kept = 0 if left is None else len(left)
            raise _damaged(f"a batch needs {count:,} values of '{name}', but only {kept:,} are left")
        self._left[name] = left[count:]
        return left[:count]
