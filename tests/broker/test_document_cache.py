"""Documents in front of a log: each in its place, read together, in bounded memory."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pathcast.broker import Accepted, Broker, Publication
from pathcast.broker.api.document_events import DocumentEvents
from pathcast.broker.deliveries.document_cache import AppendedBatch, RecentDocuments
from pathcast.broker_log import DocumentRecord, FeedRecord, Meta, SubscriptionRecord, log_record, meta_of
from pathcast.log import LogEntry, LogError, SqliteLog, TrimmedError


class CountedLog(SqliteLog):
    """A log that counts how often somebody reads it."""

    reads = 0

    def read(
        self, begin: int, end: int | None = None, *, kinds: Sequence[str] | None = None, bodies: bool = True
    ) -> Iterator[LogEntry]:
        """The records of a range."""
        self.reads += 1
        return super().read(begin, end, kinds=kinds, bodies=bodies)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[CountedLog]:
    """A log of 100 documents; every tenth record is another."""
    log = CountedLog(tmp_path / "log")
    for sequence in range(1, 101):
        if sequence % 10 == 0:
            log.append([log_record(FeedRecord(f"feed{sequence}"))])
        else:
            record = DocumentRecord("news", "ada", None, "application/xml", {}, None)
            log.append([log_record(record, b"<a>%d</a>" % sequence)])
    yield log
    log.close()


def test_documents_come_in_the_order_in_which_they_were_asked_for(log: CountedLog) -> None:
    recent = RecentDocuments(log)
    for wanted in ([5, 3, 71, 4, 3], [72, 5], [1, 99], []):
        assert [entry.body for entry, _ in recent.entries(wanted)] == [b"<a>%d</a>" % each for each in wanted]


def test_neighbours_are_read_together_and_once(log: CountedLog) -> None:
    recent = RecentDocuments(log)
    recent.entries([1, 2, 3, 9, 11, 12, 51, 52])
    assert log.reads == 3  # 1 to 3, 9 to 12, 51 to 52
    recent.entries([2, 9, 52])
    assert log.reads == 3
    assert recent.cached([1, 2, 3]) is not None
    assert recent.cached([9, 13]) is None


def test_streams_that_want_the_same_documents_wait_for_one_read(log: CountedLog) -> None:
    recent, events = RecentDocuments(log), DocumentEvents()

    async def together() -> list[list[tuple[LogEntry, DocumentRecord]]]:
        return await asyncio.gather(*(events.documents(recent, [1, 2, 3]) for _ in range(20)))

    assert [[entry.sequence for entry, _ in each] for each in asyncio.run(together())] == [[1, 2, 3]] * 20
    assert log.reads == 1


def test_all_streams_that_wait_for_a_read_get_its_error_and_the_next_reads_again(log: CountedLog) -> None:
    recent, events = RecentDocuments(log), DocumentEvents()

    async def together() -> list[object]:
        return await asyncio.gather(*(events.documents(recent, [9, 10]) for _ in range(5)), return_exceptions=True)

    for reads in (1, 2):
        assert [type(each) for each in asyncio.run(together())] == [LogError] * 5
        assert log.reads == reads


def test_a_record_that_is_no_document_is_an_error(log: CountedLog) -> None:
    with pytest.raises(LogError, match="record 10 of the log is not a document"):
        RecentDocuments(log).entries([9, 10, 11])


def test_the_memory_is_bounded(log: CountedLog) -> None:
    recent = RecentDocuments(log, capacity=100)
    wanted = [each for each in range(1, 100) if each % 10]
    assert [entry.sequence for entry, _ in recent.entries(wanted)] == wanted
    assert recent.bytes <= 100
    assert recent.cached([98, 99]) is not None


def appended(log: SqliteLog, recent: RecentDocuments, bodies: list[bytes]) -> int:
    """Append documents, and a record of another kind after them, as one batch; the first sequence."""
    metas: list[Meta] = [DocumentRecord("news", "ada", f"{log.head}-{at}") for at in range(len(bodies))]
    records = [(log_record(meta, body), meta) for meta, body in zip(metas, bodies, strict=True)]
    records.append((log_record(FeedRecord("news")), FeedRecord("news")))
    begin = log.append([record for record, _ in records])
    recent.append(AppendedBatch(begin, log.time, records))
    return begin


@given(
    sizes=st.lists(st.lists(st.integers(0, 30), max_size=4), min_size=1, max_size=12),
    reads=st.lists(st.tuples(st.integers(0, 11), st.lists(st.integers(1, 60), max_size=6)), max_size=10),
    trims=st.dictionaries(st.integers(0, 11), st.integers(1, 60), max_size=2),
    capacity=st.sampled_from([0, 200, 400, 1 << 20]),
)
def test_a_document_is_the_same_from_memory_and_from_the_log(
    sizes: list[list[int]], reads: list[tuple[int, list[int]]], trims: dict[int, int], capacity: int
) -> None:
    with TemporaryDirectory() as folder, closing(SqliteLog(folder)) as log:
        recent = RecentDocuments(log, capacity)
        for at, lengths in enumerate(sizes):
            appended(log, recent, [bytes([65 + at]) * length for length in lengths])
            if at in trims:
                recent.drop_before(trims[at])
            for _, wanted in (read for read in reads if read[0] == at):
                entries = {entry.sequence: entry for entry in log.read(1) if entry.kind == "document"}
                known = [sequence for sequence in wanted if sequence in entries]
                for found in (recent.cached(known) or [], recent.entries(known)):
                    assert [entry for entry, _ in found] in ([], [entries[sequence] for sequence in known])
                    assert all(meta_of(entry) == meta for entry, meta in found)
                assert len(found) == len(known)
            assert recent.bytes <= capacity + 30
    assert recent.bytes >= 0


def test_documents_that_were_appended_just_now_are_not_read_from_the_log(log: CountedLog) -> None:
    recent = RecentDocuments(log)
    begin = appended(log, recent, [b"<a/>", b"<b/>"])
    assert [entry.body for entry, _ in recent.entries([begin + 1, begin])] == [b"<b/>", b"<a/>"]
    assert recent.cached([begin]) is not None and log.reads == 0
    with pytest.raises(LogError, match=f"record {begin + 2} of the log is not a document"):
        recent.entries([begin + 2])


def test_a_broker_delivers_new_documents_from_memory(log: CountedLog) -> None:
    broker = Broker(log)
    broker.subscribe(SubscriptionRecord("default", "all", "ada", expression="//a", pattern="//a")).result()
    results = broker.publish("news", [Publication(b"<a/>"), Publication(b"<b/>"), Publication(b"<a>2</a>")]).result()
    broker.rebuild.wait()
    reads = log.reads
    found = broker.pull("default", "all", 10).deliveries
    assert log.reads == reads
    accepted = [result.sequence for result in results if isinstance(result, Accepted)]
    assert [each.entry for each in found] == [entry for entry in log.read(1) if entry.sequence in accepted[::2]]
    broker.close()


def test_what_was_read_of_a_batch_stays_longer_than_the_batch(log: CountedLog) -> None:
    recent = RecentDocuments(log, capacity=80)
    begin = appended(log, recent, [b"<a/>", b"<b/>"])
    assert recent.cached([begin]) is not None
    appended(log, recent, [b"<c/>", b"<d/>"])
    assert recent.cached([begin]) is not None
    assert recent.cached([begin + 1]) is None


def test_a_document_that_was_trimmed_is_not_in_memory(log: CountedLog) -> None:
    recent = RecentDocuments(log)
    begin = appended(log, recent, [b"<a/>"])
    recent.entries([5, 6])
    recent.drop_before(6)
    assert recent.cached([5]) is None and recent.cached([6]) is not None and recent.cached([begin]) is not None
    recent.drop_before(begin + 1)
    assert recent.cached([begin]) is None and recent.bytes == 0


def test_a_document_that_was_trimmed_is_an_error(tmp_path: Path) -> None:
    with_segments = SqliteLog(tmp_path / "log", segment_bytes=1)
    record = DocumentRecord("news", "ada", None, "application/xml", {}, None)
    for _ in range(20):
        with_segments.append([log_record(record, b"<a/>")])
    with_segments.write_checkpoint(20, b"")
    first = with_segments.trim(10)
    assert first > 1
    with pytest.raises(TrimmedError):
        RecentDocuments(with_segments).entries([first - 1, first])
    with_segments.close()
