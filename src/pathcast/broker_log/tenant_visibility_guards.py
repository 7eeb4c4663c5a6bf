"""Guards: which documents a tenant may see at all.

    sequences    1 ───────── 100 ───────── 250 ─────────▶
    guard        none        //public      //public[@level < 3]

A tenant's guard is an expression. A document that does not match the guard in force at its place in the log does not
exist for the tenant: no delivery, replay or read shows it, and the answers are those for a record that is no document.
An unreadable document matches no guard.

A guard is a record of the log, in force from its own sequence on, or from an earlier one that the record names. Its
pattern is in the index of every feed, so a document is matched against it once, and deliveries are those of the
subscription's pattern that are also matches of the guard's (delivery_search.py).
"""

from collections.abc import Iterator

from msgspec import Struct

from .broker_records import TenantRecord


class GuardSpan(Struct, frozen=True, gc=False):
    """A guard, in force from `begin` up to the begin of the next."""

    begin: int
    record: TenantRecord


# In order; before the first there is no guard.
GuardSpans = tuple[GuardSpan, ...]


def with_guard(spans: GuardSpans, sequence: int, record: TenantRecord) -> GuardSpans:
    """The spans once the record at a sequence is in force; it replaces whatever was in force from its begin on."""
    begin = sequence if record.begin is None else record.begin
    return (*(each for each in spans if each.begin < begin), GuardSpan(begin, record))


def guard_at(spans: GuardSpans, sequence: int) -> str | None:
    """The pattern that masks a document; None if nothing does."""
    for span in reversed(spans):
        if span.begin <= sequence:
            return span.record.pattern
    return None


def pieces(spans: GuardSpans, begin: int, end: int) -> Iterator[tuple[int, int, str | None]]:
    """A range, cut where the guard changes: begin, end and the pattern of each piece."""
    cuts = [span.begin for span in spans if begin < span.begin < end]
    for first, last in zip([begin, *cuts], [*cuts, end], strict=True):
        yield first, last, guard_at(spans, first)


def since(spans: GuardSpans, first: int) -> GuardSpans:
    """The spans that concern documents from `first` on."""
    ended = sum(1 for span in spans[1:] if span.begin <= first)
    return spans[ended:]
