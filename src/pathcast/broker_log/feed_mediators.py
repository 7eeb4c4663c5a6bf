"""Mediators of feeds: the mappings by which the documents of a feed are matched.

    sequences    1 ───────── 100 ───────────────── 250 ─────────▶
    mappings     none        annex, main           none

A feed with a mediator has one global schema, which subscriptions and guards use, and a mapping for the schema of each
publisher. The record of a document names its schema. The document is matched as the mapping of that name, in force at
the document's sequence, rewrites it; what is delivered are the bytes that were published.

A mediator is part of the feed's record, in force from its own sequence on. The sequencer processes such a record as a
batch of its own, so all documents of a batch have the same mappings. A document that its mapping cannot rewrite has an
error, and a document with an error is never matched: so a reader of the log needs the mappings and nothing else.

Invariant: spans are kept as long as the log has documents that they concern.
"""

from msgspec import Struct

from .broker_records import FeedMediator


class MediatorSpan(Struct, frozen=True):
    """A mediator, in force from `begin` up to the begin of the next; None if documents are matched as they are."""

    begin: int
    mediator: FeedMediator | None


# In order; before the first there is no mediator.
MediatorSpans = tuple[MediatorSpan, ...]


def with_mediator(spans: MediatorSpans, sequence: int, mediator: FeedMediator | None) -> MediatorSpans:
    """The spans once a feed's record at a sequence is in force."""
    return spans if mediator == mediator_at(spans, sequence) else (*spans, MediatorSpan(sequence, mediator))


def mediator_at(spans: MediatorSpans, sequence: int) -> FeedMediator | None:
    """The mediator in force at a sequence."""
    for span in reversed(spans):
        if span.begin <= sequence:
            return span.mediator
    return None


def mediators_since(spans: MediatorSpans, first: int) -> MediatorSpans:
    """The spans that concern documents from `first` on."""
    kept = spans[sum(1 for span in spans[1:] if span.begin <= first) :]
    return () if len(kept) == 1 and kept[0].mediator is None else kept
