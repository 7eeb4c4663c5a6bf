"""What a batch of requests does: its documents are read and matched, its records appended, applied and answered.

    batch ──read, match──▶ records ──append──▶ log (durable)
                              │ apply
                              ├──▶ state: subscriptions, cursors, feeds
                              └──▶ delivery index ──▶ wake readers

Invariant: a request is completed after its records are durable, applied and matched. A document is matched before it
is appended, so its record has the outcome, and reading the log again gives the same. Patterns that a batch adds are
indexed before its documents are matched, and those that it removes stay until after: a version's interval decides,
not the moment at which the index changed.
"""

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from pathcast.broker_log import (
    BatchRecord,
    BrokerState,
    CursorRecord,
    DeadLetterRecord,
    DeadLetterReplayRecord,
    DocumentRecord,
    Failure,
    FeedRecord,
    SavedBatch,
    SinkDisabledRecord,
    SubscriptionRecord,
    TenantRecord,
    UnsubscriptionRecord,
)
from pathcast.log import Log, LogFullError

from ..deliveries.delivery_index import Batch
from ..feed_index import FeedIndex
from ..observation.batch_times import BatchTimes, Outcomes
from .batch_records import Changes, FeedBatch, Settled
from .sequencer_requests import (
    Accepted,
    AcknowledgeRequest,
    ChangeRequest,
    CommitRequest,
    Committed,
    DeadLetterRequest,
    NotCommitted,
    PublishRequest,
    Rejected,
    Request,
    TaskRequest,
    complete,
    fail,
    replays,
)

# Requests, and an answer for each document of a publication.
Results = list[tuple[Request, list[Accepted | Rejected | None]]]


class Processed(NamedTuple):
    """What a batch did: all records up to `head` are applied and matched."""

    head: int
    matches: list[tuple[str, Batch]]  # of feeds; a large batch has several of one feed
    changed: list[tuple[str, str, str]]  # subscriptions: tenant, id and subscriber
    unmatched: int  # documents that could be read, but not matched within the limits
    has_feeds: bool = False  # whether feeds were created, deleted or changed
    outcomes: Outcomes = Outcomes()
    times: BatchTimes | None = None  # None if the broker has failed


class Hooks(NamedTuple):
    """What the sequencer needs of the broker."""

    index_of: Callable[[str], FeedIndex]  # the index of a feed, created if it is new
    lock_of: Callable[[str, str], threading.Lock]  # the lock of a subscription's cursor
    appended: Callable[[Changes], None]  # called when the records of a batch are durable
    processed: Callable[[Processed], None]  # called after each batch


class BatchProcessing:
    """Carries out batches, one after the other, in the sequencer's thread."""

    def __init__(self, log: Log, state: BrokerState, indexes: dict[str, FeedIndex], hooks: Hooks) -> None:
        self._log = log
        self._state = state
        self._indexes = indexes
        self._hooks = hooks

    def process(self, batch: list[Request]) -> None:
        """Carry out the requests of a batch, and complete or fail each."""
        if isinstance(batch[0], CommitRequest):
            self._commit(batch[0])
            return
        begun = time.perf_counter()
        results, feeds = self._documents_of(batch)
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
            self._drop_unnamed(tuple(self._indexes))
            for request in batch:
                fail(request, error)
            return
        self._hooks.appended(changes)
        waits = [begun - request.submitted for request in batch if isinstance(request, PublishRequest)]
        times = BatchTimes(begun, matching, matched, appending, time.perf_counter(), waits, len(changes.records))
        done = self._apply(changes, feeds.items())._replace(
            unmatched=unmatched, outcomes=changes.outcomes(feeds.values()), times=times
        )
        self._hooks.processed(done)
        for request, answers in results:
            if isinstance(request, PublishRequest):
                complete(request, answers)
            elif isinstance(request, TaskRequest):
                _perform(request)
            else:
                complete(request, changes.of.get(id(request), done.head))

    def _commit(self, request: CommitRequest) -> None:
        """Publish the documents of a batch, all or none: its records are one append."""
        earlier = self._state.batches.find(request.publisher, request.batch)
        if earlier is not None:
            complete(request, Committed(earlier, repeated=True))
            return
        begun = time.perf_counter()
        changes = Changes(self._log.head)
        parts: list[tuple[str, FeedBatch]] = []
        wrong: list[NotCommitted] = []
        unmatched = 0
        for publication in request.publications:
            for place, piece in publication.pieces():
                results, feeds = self._documents_of([piece])
                self._with_new_patterns([], feeds, changes.begin)
                unmatched += self._match(piece.feed, feeds[piece.feed])
                self._records_of(results, feeds, changes)
                parts.append((piece.feed, feeds[piece.feed]))
                wrong += _rejected(piece.feed, place, results[0][1])
        matched = time.perf_counter()
        if wrong:
            self._forget_new_feeds(parts)
            complete(request, wrong[0]._replace(rejected=len(wrong)))
            return
        documents = sum(isinstance(meta, DocumentRecord) for _, meta in changes.metas)
        record = BatchRecord(request.publisher, request.batch, documents, changes.duplicate, changes.kept)
        sequence = changes.add(record)
        try:
            self._log.append(changes.records)
        except LogFullError as error:
            self._forget_new_feeds(parts)
            fail(request, error)
            return
        waits = [begun - each.submitted for each in request.publications]
        # Documents are read, matched and made into records piece by piece; all of that counts as matching.
        times = BatchTimes(begun, begun, matched, matched, time.perf_counter(), waits, len(changes.records))
        outcomes = changes.outcomes(feed for _, feed in parts)
        done = self._apply(changes, parts)._replace(unmatched=unmatched, outcomes=outcomes, times=times)
        self._hooks.processed(done)
        complete(request, Committed(SavedBatch(sequence, record)))

    def _forget_new_feeds(self, parts: Iterable[tuple[str, FeedBatch]]) -> None:
        """Nothing was published: not even new feeds."""
        self._drop_unnamed(name for name, _ in parts)

    def _drop_unnamed(self, feeds: Iterable[str]) -> None:
        """Drop the indexes of feeds that do not exist, and that no subscription names any more."""
        for name in feeds:
            if name in self._indexes and not self._state.is_named(name):
                del self._indexes[name]

    def _documents_of(self, requests: Sequence[Request]) -> tuple[Results, dict[str, FeedBatch]]:
        """The documents of requests, by feed, and a place for the answer to each."""
        results: Results = []
        feeds: dict[str, FeedBatch] = defaultdict(FeedBatch)
        for request in requests:
            answers: list[Accepted | Rejected | None] = []
            if isinstance(request, PublishRequest):
                answers = [None] * len(request.documents)
                feed = feeds[request.feed]
                mediator = self._state.mediator_of(request.feed)
                if mediator is not None or request.schema is not None:
                    feed.mediate(request, mediator)
                for place, document in enumerate(request.documents):
                    feed.bodies.append(document.body)
                    feed.places.append((answers, place))
            results.append((request, answers))
        return results, feeds

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
        feed.sequences = [0] * len(feed.bodies)
        if self._state.is_matched_by_spark(name):
            feed.errors = index.read_only(feed.bodies, feed.mappings)
            return 0
        if feed.mappings:
            feed.matched, feed.errors, unmatched = index.match_mediated(feed.bodies, feed.mappings)
            return unmatched
        read = index.read(feed.bodies)
        unreadable = len(read.errors)
        feed.matched = index.match(read)
        feed.errors = read.errors
        return len(read.errors) - unreadable

    def _records_of(
        self,
        results: Results,
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
                standing = self._state.subscriptions.get(request.key)
                if standing is not None and standing.created == request.created:
                    settled[request.key].acknowledge(request.sequences, request.passed)
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
            floor, above = cursor.after_acknowledging(sequences, settled.fetched(cursor))
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
        if request.feed not in self._state.feeds and request.feed not in changes.feeds:
            changes.feeds.add(request.feed)
            changes.add(FeedRecord(request.feed, creator=request.tenant))
        for place, document in enumerate(request.documents):
            error = feed.errors.get(begin + place)
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
                    None if error is not None else feed.schemas.get(begin + place),
                ),
                document.body,
            )
            if document.id is not None:
                changes.published[key] = sequence
            if error is None:
                feed.sequences[begin + place] = sequence
            answers[place] = Accepted(sequence, error=failure)

    def _apply(self, changes: Changes, feeds: Iterable[tuple[str, FeedBatch]]) -> Processed:
        """Apply durable records: settings, then matches, then patterns that nobody waits for any more."""
        removed: list[SubscriptionRecord] = []
        changed: list[tuple[str, str, str]] = []
        for sequence, meta in changes.metas:
            if isinstance(meta, DocumentRecord):  # nearly all are documents
                self._state.apply(sequence, meta)
            elif isinstance(meta, SubscriptionRecord | UnsubscriptionRecord):
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
                    index = self._hooks.index_of(meta.name)
                    index.read_within(self._state.limits_of(meta.name))
                    index.computed.follow(self._state.spark.get(meta.name, ()))
                    self._drop_unnamed([meta.name])  # if it was deleted
        has_feeds = any(isinstance(meta, FeedRecord) for _, meta in changes.metas)
        done = Processed(self._state.head, [], changed, 0, has_feeds)
        for name, feed in feeds:
            if feed.matched is None:
                self._indexes[name].computed.leave(self._state.spark.get(name, ()), max(feed.sequences, default=0))
            elif any(feed.sequences):
                matched = feed.matched.at(feed.sequences)
                done.matches.append((name, matched))
                self._indexes[name].matches.append(matched)
        for record in removed:
            for index in self._indexes_of(record):
                index.remove(record.pattern)
        self._drop_unnamed(name for record in removed for name in record.feeds)
        return done

    def _indexes_of(self, record: SubscriptionRecord) -> Iterable[FeedIndex]:
        if not record.feeds:
            return list(self._indexes.values())
        return [self._hooks.index_of(name) for name in record.feeds]


def _rejected(feed: str, begin: int, answers: Iterable[Accepted | Rejected | None]) -> Iterator[NotCommitted]:
    """The documents that were rejected, the first of which is at a place of the feed's."""
    for place, each in enumerate(answers, begin):
        if isinstance(each, Rejected):
            yield NotCommitted(feed, place, each.error, 1)


def _perform(request: TaskRequest) -> None:
    """Do the work of a request; its error is that request's alone."""
    try:
        result = request.work()
    except Exception as error:  # noqa: BLE001 - the caller gets it
        fail(request, error)
    else:
        complete(request, result)
