"""Single subscriptions to standing joins as arrays: one entry per subscription, ascending by id.

    ids                              whole numbers
    subscribers, …_offsets, …_kinds  bytes one after the other: nothing, a name, or the digits of a number
    queries, …_offsets, …_kinds      the same: SQL, or a selection as a message

A selection is a message (`pathcast.messages`) of its tables, the joins that it names, and its ranges as a filter.

Invariant: `StoredAsked` returns the subscriptions that were written; a range of a selection has become an `Interval`.
Lengths, offsets and kinds are checked on construction, the bytes of an entry on access.
Cost: 27 bytes per subscription beside its text; some 4 µs per access to an entry.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from pathcast.errors import MessageError, QueryError, SnapshotError
from pathcast.kernels import AnyArray, Int64s, UInt8s
from pathcast.messages import Filter, In, Interval, Message, Points, decode, decode_filter, encode, encode_filter
from pathcast.store import check_pieces

from ..partition.join_server_specification import Query, SingleSubscription
from .select_join_query import Selection

NOBODY, NAME, NUMBER = range(3)
SQL, SELECTION = range(2)
# The arrays and their kinds.
ASKED_ARRAYS: dict[str, npt.DTypeLike] = {
    "ids": np.int64,
    "subscribers_kinds": np.uint8,
    "subscribers": np.uint8,
    "subscribers_offsets": np.int64,
    "queries_kinds": np.uint8,
    "queries": np.uint8,
    "queries_offsets": np.int64,
}

Bytes = UInt8s
Numbers = Int64s


def asked_arrays(asked: Sequence[SingleSubscription]) -> dict[str, AnyArray]:
    """The arrays of some subscriptions; `QueryError` for a subscriber that cannot be stored."""
    arrays: dict[str, AnyArray] = {"ids": np.array([one.id for one in asked], np.int64)}
    subscribers = [_subscriber(one.subscriber) for one in asked]
    queries = [_query(one.query) for one in asked]
    for name, pieces in (("subscribers", subscribers), ("queries", queries)):
        arrays[f"{name}_kinds"] = np.array([kind for kind, _ in pieces], np.uint8)
        arrays[f"{name}_offsets"] = np.cumsum([0, *(len(data) for _, data in pieces)], dtype=np.int64)
        arrays[name] = np.frombuffer(b"".join(data for _, data in pieces), np.uint8)
    return arrays


def _subscriber(given: Any) -> tuple[int, bytes]:
    if given is None:
        return NOBODY, b""
    if type(given) is int:
        return NUMBER, str(given).encode()
    if type(given) is not str:
        raise QueryError(f"a stored subscriber must be a string, an int or None, got {given!r:.60}")
    return NAME, _utf8(given)


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise QueryError(
            f"cannot encode {text!r:.60} as UTF-8: {error.reason}; remove the invalid characters"
        ) from None


def _query(query: Query) -> tuple[int, bytes]:
    if isinstance(query, str):
        return SQL, _utf8(query)
    ranges = Filter(tuple(In(name, _interval(wanted)) for name, wanted in query.where.items()))
    said: dict[str, Any] = {"tables": _names(query.tables), "where": encode_filter(ranges)}
    if query.on is not None:
        said["on"] = _names(query.on)
    return SELECTION, encode(Message(said))


def _interval(wanted: Any) -> Interval:
    """The condition of a selection on a column as an interval; the server has already accepted it."""
    if isinstance(wanted, Interval):
        return wanted
    return Interval(*wanted) if isinstance(wanted, tuple) else Interval.only(wanted)


def _names(names: Sequence[str]) -> Points:
    return Points.of(("name",), [[name] for name in names])


class StoredAsked(Sequence[SingleSubscription]):
    """Single subscriptions in a snapshot, ascending by id; an entry is decoded on access."""

    def __init__(self, arrays: Mapping[str, Any], next_id: int) -> None:
        """`arrays` must have the names and types of `ASKED_ARRAYS`; ids must be below `next_id`."""
        ids: Numbers = arrays["ids"]
        count = len(ids)
        if count and (ids[0] < 1 or ids[-1] >= next_id or bool((ids[1:] <= ids[:-1]).any())):
            raise SnapshotError(
                f"the snapshot is damaged: its subscription ids must ascend and be from 1 to {next_id - 1}; "
                "publish the subscriptions again"
            )
        self._ids = ids
        self._subscribers = self._pieces(arrays, "subscribers", NUMBER)
        self._queries = self._pieces(arrays, "queries", SELECTION)

    def _pieces(self, arrays: Mapping[str, Any], name: str, most: int) -> tuple[Bytes, Bytes, Numbers]:
        kinds, data, offsets = arrays[f"{name}_kinds"], arrays[name], arrays[f"{name}_offsets"]
        if len(kinds) and (kind := int(kinds.max())) > most:
            raise SnapshotError(
                f"the snapshot is damaged: its {name} have unknown kind {kind}; publish the subscriptions again"
            )
        if len(kinds) != len(self):
            raise SnapshotError(
                f"the snapshot is damaged: it has {len(kinds):,} {name} for {len(self):,} subscriptions; publish "
                "the subscriptions again"
            )
        check_pieces(data, offsets, len(self), f"the {name}")
        return kinds, data, offsets

    def __len__(self) -> int:
        return len(self._ids)

    @overload
    def __getitem__(self, index: int) -> SingleSubscription: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[SingleSubscription, ...]: ...

    def __getitem__(self, index: int | slice) -> SingleSubscription | tuple[SingleSubscription, ...]:
        places = range(len(self))[index]
        return tuple(map(self._at, places)) if isinstance(places, range) else self._at(places)

    def __iter__(self) -> Iterator[SingleSubscription]:
        return map(self._at, range(len(self)))

    def _at(self, place: int) -> SingleSubscription:
        id = int(self._ids[place])
        try:
            subscriber = _read_subscriber(*_piece(place, *self._subscribers))
            return SingleSubscription(id, subscriber, _read_query(*_piece(place, *self._queries)))
        except (ValueError, MessageError) as error:
            raise SnapshotError(
                f"the snapshot is damaged: subscription {id} cannot be decoded ({str(error).partition('; ')[0]}); "
                "publish the subscriptions again"
            ) from None


def _piece(place: int, kinds: Bytes, data: Bytes, offsets: Numbers) -> tuple[int, bytes]:
    return int(kinds[place]), data[offsets[place] : offsets[place + 1]].tobytes()


def _read_subscriber(kind: int, data: bytes) -> Any:
    return None if kind == NOBODY else int(data) if kind == NUMBER else data.decode()


def _read_query(kind: int, data: bytes) -> Query:
    if kind == SQL:
        return data.decode()
    said = decode(data)
    where = said.get("where")
    if not isinstance(where, bytes):
        raise MessageError("the stored query lacks its ranges")
    ranges: dict[str, Interval] = {}
    for term in decode_filter(where).terms:
        if not isinstance(term, In):
            raise MessageError(f"the stored query has a condition that is not a range: {term!r:.60}")
        ranges[term.attribute] = term.interval
    return Selection(_read_names(said.get("tables")), ranges, None if "on" not in said else _read_names(said.get("on")))


def _read_names(given: Any) -> tuple[str, ...]:
    if not isinstance(given, Points) or given.axes != ("name",) or given.pairs:
        raise MessageError("the stored query lacks its list of tables or joins")
    names = tuple(row[0] for row in given.rows)
    if not all(isinstance(name, str) for name in names):
        raise MessageError("a table or join of the stored query is not a string")
    return names  # type: ignore[return-value]
