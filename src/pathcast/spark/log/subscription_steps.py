"""Steps of a pipeline through a broker's log: the subscriptions, guards and mappings of each micro-batch.

    checkpoint/pathcast/subscriptions/begin       the first sequence that the pipeline reads
                                      base-4711/  the spans that were open after record 4711, compiled; the state there
                                      step-17     micro-batch 17: its range, its base, and the changes since the base

A step is recorded before its micro-batch is matched, and is all that the micro-batch needs beside its documents. So a
repetition gives the same rows, whatever was trimmed, has expired or was changed meanwhile. Workers map the base and get
the spans since with the function that they run.

Invariant: a step's spans are what the records up to its last sequence add up to. Files are complete before they get
their names. Spark repeats only the last micro-batch, so the last two steps are kept, with their bases.
Cost: per micro-batch one request for the records that are no documents; a base is written again when a sixteenth of it,
or `_FEW` spans, have changed: 15 µs per subscription.
"""

import logging
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa
from msgspec import Struct, msgpack

from pathcast import Subscriptions
from pathcast.broker_log import BrokerState, SubscriptionSpan, SubscriptionSpans, meta_of
from pathcast.errors import PathcastError, PipelineError
from pathcast.log import Checkpoint, LogEntry, LogError

from .log_data_source import bounds, expired_documents
from .log_options import LogOptions
from .match_by_step import NAMES, MatchingStep, names_of

# What decides who gets which document.
_KINDS: Final = ("subscription", "unsubscription", "tenant", "feed", "expiry")
_FEW: Final = 1_000
_LOGGER: Final = logging.getLogger(__name__)
_BASE: Final = re.compile(r"base-(\d+)")
_STEP: Final = re.compile(r"step-(\d+)")
_INDEX, _ROWS, _STATE, _NAMES = "index", "rows", "state", "names.arrow"

# Sequence, kind and meta.
Change = tuple[int, str, bytes]


class Step(Struct):
    """A recorded step: records `begin` to `end` of the log, `base` its base, `changes` the records since the base."""

    begin: int
    end: int
    base: int
    expired: dict[str, int]
    history: int  # the first document of the subscriptions that begin in the past; `begin` if there are none
    changes: list[Change]


class _Followed(NamedTuple):
    """Where this process is in a log."""

    base: int
    spans: SubscriptionSpans
    changes: list[Change]
    read_to: int


class SubscriptionSteps:
    """The steps of one pipeline, recorded in a folder beside its checkpoint."""

    def __init__(self, folder: Path, options: LogOptions, few: int = _FEW) -> None:
        """`few`: how many spans change before a base is written again."""
        self._folder = folder
        self._options = options
        self._few = few
        self._followed: _Followed | None = None

    @property
    def begin(self) -> int:
        """The first sequence of the pipeline, chosen once: `from=now` means when the pipeline ran first."""
        place = self._folder / "begin"
        if not place.exists():
            self._folder.mkdir(parents=True, exist_ok=True)
            _write(place, str(first_of(self._options)).encode())
        return int(place.read_text(encoding="ascii"))

    def step(self, number: int, end: int) -> MatchingStep:
        """The step of a micro-batch whose last sequence is `end`; recorded unless it is already."""
        place = self._folder / f"step-{number}"
        if place.exists():
            step = _decoded(place)
            return self._matching(step, self._at(step.base, step.changes, step.end))
        followed, self._followed = self._before(number), None
        followed = self._with_base(followed)
        begin = followed.read_to + 1
        changes = list(_changes(self._options, begin, end + 1))
        followed = _advanced(followed, changes, end)
        rows = followed.spans.rows
        history = min((rows[at].begin for at in followed.spans.history(begin)), default=begin)
        history = self._kept(min(history, begin), begin)
        expired = expired_documents(self._options, min(history, begin))
        step = Step(begin, end, followed.base, expired, history, followed.changes)
        _write(place, msgpack.encode(step))
        self._followed = followed
        self._forget(number - 1)
        return self._matching(step, followed)

    def _kept(self, history: int, begin: int) -> int:
        """The first document of a history that the log still has."""
        first = bounds(self._options).first
        if history < first:
            _LOGGER.warning(
                "subscriptions begin at record %d, but the log begins at %d: the documents between were trimmed, and "
                "are not delivered",
                history,
                first,
            )
        return min(begin, max(history, first))

    def _before(self, number: int) -> _Followed:
        """Where the log was left by the micro-batch before."""
        place = self._folder / f"step-{number - 1}"
        if not place.exists():
            if number > 0:
                raise PipelineError(
                    f"{place} is missing: the subscriptions of micro-batch {number} are unknown; restore the folder "
                    "from a backup, or start with a new checkpoint"
                )
            begin = self.begin
            if self._followed is None or self._followed.read_to != begin - 1:
                spans = SubscriptionSpans(state_at(self._options, begin - 1))
                self._followed = _Followed(0, spans, [], begin - 1)
            return self._followed
        step = _decoded(place)
        return self._at(step.base, step.changes, step.end)

    def _at(self, base: int, changes: list[Change], end: int) -> _Followed:
        """The spans as of a recorded step: those of this process, or read again."""
        known = self._followed
        if known is not None and (known.base, known.read_to) == (base, end):
            return known
        home = self._folder / f"base-{base}"
        try:
            state = BrokerState.restored(base, (home / _STATE).read_bytes())
            spans = SubscriptionSpans(state, msgpack.decode((home / _ROWS).read_bytes(), type=list[SubscriptionSpan]))
        except (OSError, PathcastError) as error:
            raise PipelineError(
                f"cannot read the subscriptions in {home}: {error}; restore the folder from a backup, or start with a "
                "new checkpoint"
            ) from None
        self._followed = _advanced(_Followed(base, spans, [], base), changes, end)
        return self._followed

    def _with_base(self, followed: _Followed) -> _Followed:
        """The same place, with a new base there if the one in use is missing or much has changed since."""
        base = followed.base
        few = max(self._few, followed.spans.base // 16)
        if (self._folder / f"base-{base}").exists() and followed.spans.changed <= few:
            return followed
        spans, base = followed.spans.rebased(), followed.read_to
        home = self._folder / f"base-{base}"
        fresh = self._folder / f".base-{base}-{secrets.token_hex(8)}"
        if not home.exists():
            fresh.mkdir(parents=True)
            subscriptions = Subscriptions()
            subscriptions.add_many([row.pattern for row in spans.rows])
            subscriptions.compile().save(fresh / _INDEX)
            with pa.ipc.new_file(str(fresh / _NAMES), NAMES) as writer:
                writer.write_table(names_of(spans.rows))
            _write(fresh / _STATE, spans.state.checkpoint())
            _write(fresh / _ROWS, msgpack.encode(spans.rows))
            fresh.rename(home)
        else:
            spans = SubscriptionSpans(
                spans.state, msgpack.decode((home / _ROWS).read_bytes(), type=list[SubscriptionSpan])
            )
        return _Followed(base, spans, [], base)

    def _matching(self, step: Step, followed: _Followed) -> MatchingStep:
        """What workers need for a step."""
        spans, state = followed.spans, followed.spans.state
        return MatchingStep(
            base=str(self._folder / f"base-{step.base}"),
            rows=tuple(spans.rows[spans.base :]),
            ends=dict(spans.ends),
            guards=dict(state.guards),
            mediators=dict(state.mediators),
            expired=step.expired,
            begin=step.begin,
            end=step.end,
            history=tuple(spans.history(step.begin)) if step.history < step.begin else (),
            history_begin=step.history,
        )

    def _forget(self, number: int) -> None:
        """Remove the steps before `number`, and bases that no step names."""
        kept: set[int] = set()
        for place in sorted(self._folder.iterdir()):
            if found := _STEP.fullmatch(place.name):
                if int(found[1]) < number:
                    place.unlink()
                else:
                    kept.add(_decoded(place).base)
        for place in sorted(self._folder.iterdir()):
            found = _BASE.fullmatch(place.name)
            if place.name.startswith(".") or (found and int(found[1]) not in kept):
                shutil.rmtree(place) if place.is_dir() else place.unlink()


def step_of_batch(options: LogOptions) -> MatchingStep:
    """The step of a batch that reads a range of the log, with the subscriptions as of its last record."""
    begin = first_of(options)
    head = bounds(options).head
    end = head if options.to is None else options.to
    if end > head:
        raise PipelineError(
            f"option 'to' is {end}, but the log ends with record {head}; give at most {head}, or omit it"
        )
    spans = SubscriptionSpans(state_at(options, begin - 1))
    _advanced(_Followed(0, spans, [], begin - 1), list(_changes(options, begin, end + 1)), end)
    expired = expired_documents(options, begin) if begin <= end else {}
    state = spans.state
    # Subscriptions that began before the range are rows like the others: there is no base.
    return MatchingStep(
        None, tuple(spans.rows), {}, dict(state.guards), dict(state.mediators), expired, begin, end, (), begin
    )


def first_of(options: LogOptions) -> int:
    """The first sequence that the options name."""
    first, head = bounds(options)
    return first if options.begin == "first" else head + 1 if options.begin == "now" else options.begin


def state_at(options: LogOptions, sequence: int) -> BrokerState:
    """What the records up to a sequence add up to; `LogError` if some of them were trimmed and no checkpoint helps."""
    found = _checkpoint(options)
    first = bounds(options).first
    if found is not None and found.sequence <= sequence:
        state = BrokerState.restored(found.sequence, found.data)
    elif first == 1:
        state = BrokerState()
    else:
        oldest = first if found is None else found.sequence + 1
        raise LogError(
            f"the subscriptions before record {sequence + 1} are unknown: their records were trimmed; read from record "
            f"{oldest} or later with the option 'from', or from 'now'"
        )
    for number, kind, meta in _changes(options, state.head + 1, sequence + 1):
        state.apply(number, meta_of(LogEntry(number, 0, kind, meta, b"")))
    state.head = sequence
    return state


def _checkpoint(options: LogOptions) -> Checkpoint | None:
    if options.url is not None:
        with options.reader() as reader:
            return reader.checkpoint()
    log = options.opened()
    try:
        return log.checkpoint()
    finally:
        log.close()


def _changes(options: LogOptions, begin: int, end: int) -> Iterator[Change]:
    """The records of a range that decide who gets which document."""
    if begin >= end:
        return
    if options.url is not None:
        with options.reader() as reader:
            for batch in reader.batches(begin, end, kinds=_KINDS):
                columns = (batch.column(0), batch.column(2), batch.column(3))
                yield from zip(*(column.to_pylist() for column in columns), strict=True)
        return
    log = options.opened()
    try:
        for entry in log.read(begin, end, kinds=_KINDS, bodies=False):
            yield entry.sequence, entry.kind, entry.meta
    finally:
        log.close()


def _advanced(followed: _Followed, changes: list[Change], end: int) -> _Followed:
    for sequence, kind, meta in changes:
        followed.spans.apply(sequence, meta_of(LogEntry(sequence, 0, kind, meta, b"")))
    followed.spans.state.head = end
    return followed._replace(changes=[*followed.changes, *changes], read_to=end)


def _decoded(place: Path) -> Step:
    try:
        return msgpack.decode(place.read_bytes(), type=Step)
    except (OSError, ValueError) as error:
        raise PipelineError(
            f"cannot read {place}: {error}; restore the file from a backup, or start with a new checkpoint"
        ) from None


def _write(place: Path, data: bytes) -> None:
    """Write a file that is complete and on disk before it gets its name."""
    fresh = place.with_name(f".{place.name}-{secrets.token_hex(8)}")
    with fresh.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    fresh.rename(place)
