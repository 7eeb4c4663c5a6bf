"""Readable documents of the log, in groups that are large enough to amortise reading and matching."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from pathcast.log import Log

from .broker_records import DOCUMENT, DocumentRecord, meta_of

_COUNT: Final = 256
_BYTES: Final = 1 << 20


class LoggedDocuments(NamedTuple):
    """Documents of a feed. `schemas`: by place, the schema of each document that is matched by a mapping."""

    sequences: list[int]
    bodies: list[bytes]
    schemas: dict[int, str]


# Per feed.
Group = dict[str, LoggedDocuments]


def groups_of_documents(log: Log, begin: int, end: int) -> Iterator[Group]:
    """The readable documents from `begin` to before `end`, in groups; dead letters are left out."""
    group: Group = {}
    count = size = 0
    for entry in log.read(begin, end, kinds=(DOCUMENT,)):
        meta = meta_of(entry)
        if not isinstance(meta, DocumentRecord) or meta.error is not None:
            continue
        found = group.get(meta.feed)
        if found is None:
            found = group[meta.feed] = LoggedDocuments([], [], {})
        if meta.schema is not None:
            found.schemas[len(found.bodies)] = meta.schema
        found.sequences.append(entry.sequence)
        found.bodies.append(entry.body)
        count, size = count + 1, size + len(entry.body)
        if count == _COUNT or size >= _BYTES:
            yield group
            group, count, size = {}, 0, 0
    if group:
        yield group
