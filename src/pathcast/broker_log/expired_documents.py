"""Expired documents in a log: which documents of which feeds are beyond their feed's retention.

An expiry record concerns only documents before itself, so as long as an expired document is in the log, so is the
record: the records of the log alone tell, without a checkpoint.

Cost: one pass over the log for records of that kind.
"""

from pathcast.log import Log

from .broker_records import ExpiryRecord, meta_of


def expired_before(log: Log) -> dict[str, int]:
    """Per feed with expired documents, the first sequence that is not expired."""
    found: dict[str, int] = {}
    for entry in log.read(log.first, kinds=("expiry",), bodies=False):
        record = meta_of(entry)
        if isinstance(record, ExpiryRecord):
            before = entry.sequence if record.before is None else min(record.before, entry.sequence)
            found[record.feed] = max(before, found.get(record.feed, 0))
    return {feed: before for feed, before in found.items() if before > log.first}
