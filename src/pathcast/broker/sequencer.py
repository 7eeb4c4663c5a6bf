"""The sequencer: one thread that gives everything its place in the log, and matches it.

    requests ──gather──▶ batch ──read, match──▶ records ──append──▶ log (durable)
                                                   │ apply
                                                   ├──▶ state: subscriptions, cursors, feeds
                                                   └──▶ delivery index ──▶ wake readers

A batch is what has arrived, and what arrives within 2 ms; the wait ends when nothing came for 0.3 ms, so a publisher
that is alone hardly waits. A batch ends at 64 documents, or at 512 if they are waiting already: its records are
appended in one transaction, so the busier the broker, the more documents share one fsync and one call of the matcher. A
record that changes the settings of feeds, or replays deliveries, is a batch of its own.

Invariant: a request is completed after its records are durable, applied and matched. A document is matched before it
is appended, so its record has the outcome, and reading the log again gives the same. Patterns that a batch adds are
indexed before its documents are matched, and those that it removes stay until after: a version's interval decides,
not the moment at which the index changed.
"""

import logging
import queue
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from pathcast.broker_log import (
    BrokerState,
    CursorRecord,
    DeadLetterRecord,
    DeadLetterReplayRecord,
    DocumentRecord,
    Failure,
    FeedRecord,
    SinkDisabledRecord,
    SubscriptionRecord,
    TenantRecord,
    UnsubscriptionRecord,
)
from pathcast.errors import PathcastError
from pathcast.log import Log, LogFullError

from .batch_records import Changes, FeedBatch, Settled
from .delivery_index import Batch
from .feed_index import FeedIndex
from .observation.batch_times import BatchTimes, Outcomes
from .requests import (
    Accepted,
    AcknowledgeRequest,
    ChangeRequest,
    DeadLetterRequest,
    PublishRequest,
    Rejected,
    Request,
    TaskRequest,
    complete,
    fail,
    parts,
    replays,
    weight,
)

# How long a batch waits for more requests, in seconds: in all, and after the last one.
GATHER_SECONDS: Final = 0.002
IDLE_SECONDS: Final = 0.0003
# How many documents end the wait; the most documents and bytes per batch, if they are waiting already.
GATHER_DOCUMENTS: Final = 64
MOST_DOCUMENTS: Final = 512
MOST_BYTES: Final = 4 << 20
_LOGGER: Final = logging.getLogger(__name__)


class StoppedError(PathcastError):
    """The broker is stopping or has failed: the request was not carried out, or nobody knows whether it was."""


class Processed(NamedTuple):
    """What a batch did: all records up to `head` are applied and matched."""

    head: int
    matches: dict[str, Batch]  # per feed
    changed: list[tuple[str, str, str]]  # subscriptions: tenant, id and subscriber
    unmatched: int  # documents that could be read, but not matched within the limits
    outcomes: Outcomes = Outcomes()
    times: BatchTimes | None = None  # None if the broker has failed


class Hooks(NamedTuple):
    """What the sequencer needs of the broker."""

    index_of: Callable[[str], FeedIndex]  # the index of a feed, created if it is new
    lock_of: Callable[[str, str], threading.Lock]  # the lock of a subscription's cursor
    processed: Callable[[Processed], None]  # called after each batch


class Sequencer:
    """The thread that appends to the log and matches what it appended."""

    def __init__(self, log: Log, state: BrokerState, indexes: dict[str, FeedIndex], hooks: Hooks) -> None:
        self._log = log
        self._state = state
        self._indexes = indexes
        self._hooks = hooks
        self._requests: queue.SimpleQueue[Request | None] = queue.SimpleQueue()
        self._failure: PathcastError | None = None
        self._stopped = False
        self._submitting = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="sequencer", daemon=True)

    def start(self) -> None:
        """Begin to work."""
        self._thread.start()

    @property
    def failure(self) -> PathcastError | None:
        """Why the sequencer no longer works."""
        return self._failure

    @property
    def waiting(self) -> int:
        """How many requests wait for a batch."""
        return self._requests.qsize()

    def submit(self, request: Request) -> None:
        """Queue a request; its future is completed by the sequencer."""
        with self._submitting:
            if self._stopped:
                raise self._failure or StoppedError("the broker is stopping; try again once it has started")
            self._requests.put(request)

    def stop(self) -> None:
        """Carry out what was submitted, then end."""
        with self._submitting:
            self._stopped = True
            self._requests.put(None)
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        going = True
        while going:
            batch, going = self._gather()
            if not batch:
                continue
            try:
                for part in parts(batch):
                    self._process(part)
            except BaseException as error:  # noqa: BLE001 - whatever it was, no request may wait forever
                self._give_up(batch, error)
                going = False

    def _give_up(self, batch: list[Request], error: BaseException) -> None:
        """Nobody knows what is in the log: fail everything; a restart reads the truth."""
        reason = f"the broker has stopped after an error: {error}; restart it"
        self._failure = StoppedError(reason)
        self._failure.__cause__ = error
        _LOGGER.critical("%s", reason, exc_info=error)
        with self._submitting:
            self._stopped = True
            waiting = batch
            while not self._requests.empty():
                request = self._requests.get()
                if request is not None:
                    waiting = [*waiting, request]
        for request in waiting:
            fail(request, self._failure)
        self._hooks.processed(Processed(self._state.head, {}, self._all_changed(), 0))

    def _all_changed(self) -> list[tuple[str, str, str]]:
        """Every subscription: all waiting readers must see that the broker has failed."""
        standing = self._state.subscriptions.items()
        return [(tenant, id, each.record.subscriber) for (tenant, id), each in standing]

    def _gather(self) -> tuple[list[Request], bool]:
        """The next batch, and whether there may be another."""
        first = self._requests.get()
        if first is None:
            return [], False
        batch = [first]
        documents, size = weight(first)
        deadline = time.monotonic() + GATHER_SECONDS
        slept = False
        while documents < MOST_DOCUMENTS and size < MOST_BYTES:
            try:
                request = self._requests.get_nowait()
            except queue.Empty:
                if slept or documents >= GATHER_DOCUMENTS or time.monotonic() >= deadline:
                    break
                # Not `get` with a timeout: before Python 3.12 it can miss a timeout this short and wait without end.
                time.sleep(IDLE_SECONDS)
                slept = True
                continue
            slept = False
            if request is None:
                return batch, False
            batch.append(request)
            more = weight(request)
            documents, size = documents + more[0], size + more[1]
        return batch, True

    def _process(self, batch: list[Request]) -> None:
        begun = time.perf_counter()
        results: list[tuple[Request, list[Accepted | Rejected | None]]] = []
        feeds: dict[str, FeedBatch] = defaultdict(FeedBatch)
        for request in batch:
            answers: list[Accepted | Rejected | None] = []
            if isinstance(request, PublishRequest):
                answers = [None] * len(request.documents)
                feed = feeds[request.feed]
                for place, document in enumerate(request.documents):
                    feed.bodies.append(document.body)
                    feed.places.append((answers, place))
            results.append((request, answers))
        changes = Changes(self._log.head)
        added = self._with_new_patterns(batch, feeds, changes.begin)
        matching = time.perf_counter()
        unmatched = sum(self._match(name, feed) for name, feed in feeds.items())
        matched = time.perf_counter()
        self._records_of(results, feeds, changes)
        appending = time.perf_counter()
        try:
            self._log.append(changes.records)
        except LogFullError as error:
            for index, pattern in added:
                index.remove(pattern)
            for request in batch:
                fail(request, error)
            return
        waits = [begun - request.submitted for request in batch if isinstance(request, PublishRequest)]
        times = BatchTimes(begun, matching, matched, appending, time.perf_counter(), waits, len(changes.records))
        done = self._apply(changes, feeds)._replace(unmatched=unmatched, outcomes=changes.outcomes(feeds), times=times)
        self._hooks.processed(done)
        for request, answers in results:
            if isinstance(request, PublishRequest):
                complete(request, answers)
            elif isinstance(request, TaskRequest):
                _perform(request)
            else:
                complete(request, changes.of.get(id(request), done.head))

    def _with_new_patterns(self, batch: list[Request], feeds: Iterable[str], begin: int) -> list[tuple[FeedIndex, str]]:
        """Index the patterns that a batch adds, before its documents are matched; returns what was added."""
        metas = [meta for request in batch if isinstance(request, ChangeRequest) for meta in request.metas]
        # All indexes first: a new one begins with the patterns that concern every feed as of now.
        for name in feeds:
            self._hooks.index_of(name)
        for meta in metas:
            if isinstance(meta, SubscriptionRecord):
                self._indexes_of(meta)
        added: list[tuple[FeedIndex, str]] = []
        for meta in metas:
            if isinstance(meta, SubscriptionRecord):
                added += [(index, meta.pattern) for index in self._indexes_of(meta)]
            elif isinstance(meta, TenantRecord) and meta.pattern is not None:
                # It stays when the guard is replaced: documents before that are still masked by it.
                added += [(index, meta.pattern) for index in self._indexes.values()]
        new: dict[int, tuple[FeedIndex, list[str]]] = {}
        for index, pattern in added:
            new.setdefault(id(index), (index, []))[1].append(pattern)
        for index, patterns in new.values():
            index.add(patterns, begin)
        return added

    def _match(self, name: str, feed: FeedBatch) -> int:
        """Read and match the documents of a batch for one feed; returns how many can be read, but not matched."""
        index = self._hooks.index_of(name)
        feed.read = index.read(feed.bodies)
        feed.sequences = [0] * len(feed.bodies)
        unreadable = len(feed.read.errors)
        feed.matched = index.match(feed.read)
        return len(feed.read.errors) - unreadable

    def _records_of(
        self,
        results: list[tuple[Request, list[Accepted | Rejected | None]]],
        feeds: dict[str, FeedBatch],
        changes: Changes,
    ) -> None:
        """Collect the records of all requests, in order; acknowledgements of a subscription become one record."""
        places: dict[str, int] = defaultdict(int)
        settled: dict[tuple[str, str], Settled] = defaultdict(Settled)
        ended: set[tuple[str, str]] = set()
        for request, answers in results:
            if isinstance(request, PublishRequest):
                begin = places[request.feed]
                places[request.feed] += len(answers)
                self._publish(request, answers, feeds[request.feed], begin, changes)
            elif isinstance(request, ChangeRequest):
                changes.of[id(request)] = changes.next
                for meta in request.metas:
                    if isinstance(meta, UnsubscriptionRecord):
                        # Another subscription may get the same name: what was acknowledged is not of that one.
                        ended.add((meta.tenant, meta.id))
                    changes.add(meta)
            elif isinstance(request, AcknowledgeRequest):
                settled[request.key].acknowledge(request.sequences)
            elif isinstance(request, DeadLetterRequest):
                settled[request.key].bury(request.letters)
        for key, of_one in settled.items():
            if key not in ended:
                self._settle(*key, of_one, changes)

    def _settle(self, tenant: str, id: str, settled: Settled, changes: Changes) -> None:
        """The records of what one subscription acknowledged, and of what is given up."""
        standing = self._state.subscriptions.get((tenant, id))
        if standing is None:
            return
        with self._hooks.lock_of(tenant, id):
            cursor = standing.own_cursor()
            letters = [each for each in settled.letters.values() if cursor.may_die(each.sequence, each.attempts)]
            sequences = settled.acknowledged.union(each.sequence for each in letters)
            floor, above = cursor.after_acknowledging(sequences)
            revived = tuple(sorted(sequences & cursor.revived))
        if letters:
            changes.add(DeadLetterRecord(tenant, id, tuple(letters)))
        if sequences:
            changes.add(CursorRecord(tenant, id, floor, above, revived))

    def _publish(
        self,
        request: PublishRequest,
        answers: list[Accepted | Rejected | None],
        feed: FeedBatch,
        begin: int,
        changes: Changes,
    ) -> None:
        assert feed.read is not None
        if request.feed not in self._state.feeds and request.feed not in changes.feeds:
            changes.feeds.add(request.feed)
            changes.add(FeedRecord(request.feed))
        for place, document in enumerate(request.documents):
            error = feed.read.errors.get(begin + place)
            if document.id is not None:
                key = request.publisher, document.id
                earlier = changes.published.get(key) or self._state.published.find(*key, changes.next - 1)
                if earlier is not None:
                    answers[place] = Accepted(earlier, duplicate=True)
                    changes.duplicate += 1
                    continue
            if error is not None and not request.keep_invalid:
                answers[place] = Rejected(error)
                changes.rejected += 1
                continue
            failure = None if error is None else Failure.of(error)
            changes.kept += failure is not None
            sequence = changes.add(
                DocumentRecord(
                    request.feed,
                    request.publisher,
                    document.id,
                    document.media_type,
                    document.attributes or {},
                    failure,
                ),
                document.body,
            )
            if document.id is not None:
                changes.published[key] = sequence
            if error is None:
                feed.sequences[begin + place] = sequence
            answers[place] = Accepted(sequence, error=failure)

    def _apply(self, changes: Changes, feeds: dict[str, FeedBatch]) -> Processed:
        """Apply durable records: settings, then matches, then patterns that nobody waits for any more."""
        removed: list[SubscriptionRecord] = []
        changed: list[tuple[str, str, str]] = []
        for sequence, meta in changes.metas:
            if isinstance(meta, SubscriptionRecord | UnsubscriptionRecord):
                before = self._state.subscriptions.get((meta.tenant, meta.id))
                if before is not None:
                    removed.append(before.record)
                    changed.append((meta.tenant, meta.id, before.record.subscriber))
                self._state.apply(sequence, meta)
                if isinstance(meta, SubscriptionRecord):
                    changed.append((meta.tenant, meta.id, meta.subscriber))
            elif isinstance(meta, CursorRecord | DeadLetterRecord | DeadLetterReplayRecord | SinkDisabledRecord):
                with self._hooks.lock_of(meta.tenant, meta.id):
                    self._state.apply(sequence, meta)
                found = self._state.subscriptions.get((meta.tenant, meta.id))
                if found is not None and (replays(meta) or isinstance(meta, SinkDisabledRecord)):
                    changed.append((meta.tenant, meta.id, found.record.subscriber))
            else:
                self._state.apply(sequence, meta)
                if isinstance(meta, FeedRecord):
                    self._hooks.index_of(meta.name).read_within(self._state.limits_of(meta.name))
        done = Processed(self._state.head, {}, changed, 0)
        for name, feed in feeds.items():
            if any(feed.sequences):
                assert feed.matched is not None
                done.matches[name] = feed.matched.at(feed.sequences)
                self._indexes[name].matches.append(done.matches[name])
        for record in removed:
            for index in self._indexes_of(record):
                index.remove(record.pattern)
        return done

    def _indexes_of(self, record: SubscriptionRecord) -> Iterable[FeedIndex]:
        if not record.feeds:
            return list(self._indexes.values())
        return [self._hooks.index_of(name) for name in record.feeds]


def _perform(request: TaskRequest) -> None:
    """Do the work of a request; its error is that request's alone."""
    try:
        result = request.work()
    except Exception as error:  # noqa: BLE001 - the caller gets it
        fail(request, error)
    else:
        complete(request, result)
