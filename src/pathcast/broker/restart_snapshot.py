"""The restart snapshot: a broker's state and compiled indexes as of a sequence of its log, in a folder beside the log.

    log ──as of a sequence──▶ state, indexes ──arrays──▶ folder ──mapped──▶ state, indexes ──records after it──▶ ready

The log alone decides: a snapshot is derived from it, and without one a restart takes longer and gives the same. A
snapshot names the record that it ends with, so that of another log, or of a log that was since replaced by a backup,
is not taken for one of this log.

Invariant: what `opened` returns is what the log's records up to its sequence add up to. A folder that is
missing, damaged (every byte has a checksum), from another version of Pathcast or of another log is not used; a line in
the process's log says why. A crash while it is written leaves the one before (pathcast.store).
Cost: opening reads the checksums, 0.3 ms per MB, and 0.4 µs per publication in the deduplication window. A million
subscriptions take some 400 MB on disk. Feeds with few patterns are stored as texts and compiled again.
"""

import logging
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

import pathcast
from pathcast.broker_log import SEMANTICS, BrokerState
from pathcast.errors import PathcastError
from pathcast.kernels import AnyArray
from pathcast.log import Log, LogEntry
from pathcast.store import Texts, open_snapshot, pack, reading_snapshot, write_snapshot

from .feed_index import FeedIndex

KIND: Final = "broker"
# The version of the arrays' names and meaning: increase it when any of these change.
FORMAT: Final = 2
COMPILED: Final = 4_096
FEW_CHANGES: Final = 1_000
# Reading as many records takes half a second, even if they are documents.
MANY_RECORDS: Final = 4_000_000
_LOGGER: Final = logging.getLogger(__name__)
_STATE: Final = "state_"


class Restored(NamedTuple):
    """A broker's state, and the index of each feed, both as of the state's head."""

    state: BrokerState
    indexes: dict[str, FeedIndex]


class RestartSnapshot:
    """The snapshot in a folder. Calls of one process come one at a time."""

    def __init__(self, folder: Path, few: int = FEW_CHANGES, compiled: int = COMPILED) -> None:
        """`few`: with fewer changes than these, reading them is cheaper than a snapshot.

        `compiled`: feeds with fewer patterns are stored as texts and compiled again; a file per array costs more.
        """
        self.folder = folder
        self._few, self._compiled = few, compiled

    def opened(self, log: Log) -> Restored | None:
        """State and indexes as of the snapshot's sequence; None if it cannot be used for this log."""
        if not self.folder.exists():
            return None
        try:
            snapshot = open_snapshot(self.folder, KIND)
            with reading_snapshot(self.folder):
                reason = _unusable(snapshot.facts["stamp"], log)
                if reason is None:
                    return _opened(snapshot.facts, snapshot.arrays)
        except PathcastError as error:
            reason = error.reason
        _LOGGER.warning("the start takes longer without the snapshot in %s: %s", self.folder, reason)
        return None

    def is_due(self, changes: int, records: int) -> bool:
        """Whether to write a snapshot after this many changes and records since the last one."""
        return changes >= self._few or records >= MANY_RECORDS

    def write(self, restored: Restored, log: Log) -> None:
        """Write a snapshot; neither state nor indexes may change meanwhile. `SnapshotError` if that fails."""
        state, indexes = restored
        last = _record(log, state.head)
        if last is None:
            return
        arrays = {_STATE + name: array for name, array in state.arrays().items()}
        few: list[tuple[str, int]] = []
        texts: list[str] = []
        uses: list[int] = []
        many: list[tuple[str, dict[str, Any]]] = []
        for name, index in indexes.items():
            if len(index) >= max(1, self._compiled):
                facts, stored = index.stored()
                arrays |= {f"feed{len(many)}_{array}": content for array, content in stored.items()}
                many.append((name, facts))
                continue
            few.append((name, len(index)))
            for text, _, used in index.patterns():
                texts.append(text)
                uses.append(used)
        arrays["texts"], arrays["text_offsets"] = pack(texts)
        arrays["uses"] = np.array(uses, dtype=np.int32)
        stamp = {**_stamp(), "sequence": state.head, "record": _fingerprint(last)}
        write_snapshot(self.folder, KIND, {"stamp": stamp, "few": few, "many": many}, arrays)


def _stamp() -> dict[str, Any]:
    return {"format": FORMAT, "pathcast": pathcast.__version__, "semantics": SEMANTICS}


def _unusable(stamp: Mapping[str, Any], log: Log) -> str | None:
    """Why a snapshot with this stamp does not belong to this log and this version of Pathcast; None if it does."""
    for name, wanted in _stamp().items():
        if stamp[name] != wanted:
            return f"its {name} is {stamp[name]!r}, but this version of Pathcast needs {wanted!r}"
    sequence = stamp["sequence"]
    last = _record(log, sequence)
    if last is None:
        return f"the snapshot ends with record {sequence}, which the log does not have"
    return (
        None
        if stamp["record"] == _fingerprint(last)
        else f"record {sequence} of the log differs from the last record of the snapshot"
    )


def _record(log: Log, sequence: int) -> LogEntry | None:
    if not log.first <= sequence <= log.head:
        return None
    return next(log.read(sequence, sequence + 1, bodies=False), None)


def _fingerprint(entry: LogEntry) -> str:
    """What no record of another log has: above all its time, in microseconds."""
    return sha256(repr((entry.sequence, entry.time, entry.kind, entry.meta)).encode()).hexdigest()


def _opened(facts: Mapping[str, Any], arrays: Mapping[str, AnyArray]) -> Restored:
    state = BrokerState.opened(facts["stamp"]["sequence"], _part(arrays, _STATE))
    return Restored(state, dict(_indexes(state, facts, arrays)))


def _indexes(
    state: BrokerState, facts: Mapping[str, Any], arrays: Mapping[str, AnyArray]
) -> Iterator[tuple[str, FeedIndex]]:
    for number, (name, of_matcher) in enumerate(facts["many"]):
        yield name, FeedIndex.opened(of_matcher, _part(arrays, f"feed{number}_"), state.limits_of(name))
    texts = iter(zip(Texts(arrays["texts"], arrays["text_offsets"]), arrays["uses"].tolist(), strict=True))
    for name, count in facts["few"]:
        index = FeedIndex(state.limits_of(name))
        index.restore([next(texts) for _ in range(count)])
        yield name, index


def _part(arrays: Mapping[str, AnyArray], prefix: str) -> dict[str, AnyArray]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
