"""Explanations: which subscriptions get a document, and why the others do not.

    document, subscription ──▶ interval ──▶ feed ──▶ guard ──▶ readable ──▶ pattern ──▶ matched
                                  └────────────┴────────┴──────────┴──────────┴──▶ the reason

A document is one of the log, or one that would be published now. The first check that fails is the reason. Whether the
pattern matches is decided by `matching.explain`, which no engine is part of. A document that a mediator maps is
explained as rewritten into the global schema, where its matches are decided; positions are those in that document.

Invariant: a document that the tenant's guard masks is never looked at for an explanation; the answer has the word
`guard` and nothing of the document.
Cost: some milliseconds per distinct expression; equal ones are explained once. `seconds` bounds one call.
"""

import time
from collections.abc import Iterable
from typing import Final, NamedTuple

from pathcast.broker_log import (
    UNLIMITED,
    DocumentRecord,
    Failure,
    StandingSubscription,
    SubscriptionRecord,
    guard_at,
    mediator_at,
)
from pathcast.documents import Document, read
from pathcast.errors import PathcastError
from pathcast.log import TrimmedError
from pathcast.matching import Subscriptions
from pathcast.matching.explain import Explanation, explain

from .broker import Broker

SECONDS: Final = 2.0


class Explained(NamedTuple):
    """Whether a subscription gets the document; `reason` is one word, `detail` a sentence.

    reason: `matched`, `interval`, `feed`, `guard`, `unreadable` or `pattern`. explanation: the steps, if the pattern
    was looked at.
    """

    id: str
    subscriber: str
    reason: str
    detail: str = ""
    explanation: Explanation | None = None

    @property
    def matches(self) -> bool:
        """Whether the subscription gets the document."""
        return self.reason == "matched"


class Explanations:
    """Explains one document to one tenant. `sequence` is its place in the log, or the next one."""

    def __init__(
        self,
        tenant: str,
        feed: str,
        sequence: int,
        document: Document | Failure,
        *,
        is_visible: bool,
        schema: str | None = None,
    ) -> None:
        """`schema`: that of the document before it was rewritten."""
        self.tenant = tenant
        self.feed = feed
        self.sequence = sequence
        self.schema = schema
        self._document = document
        self._is_visible = is_visible
        self._known: dict[tuple[str, tuple[tuple[str, str], ...]], Explanation] = {}

    @classmethod
    def of_logged(cls, broker: Broker, tenant: str, sequence: int) -> "Explanations | None":
        """About a document of the log; None if the tenant's guard masks it. `LogError` if it is no document."""
        ((entry, record),) = broker.recent.entries([sequence])
        if not broker.is_visible(tenant, record.feed, sequence):
            return None
        broker.check_not_expired(record.feed, sequence)
        # An accepted document stays accepted, whatever the limits are now.
        document = record.error or _as_matched(broker, sequence, record, read(entry.body, limits=UNLIMITED))
        return cls(tenant, record.feed, sequence, document, is_visible=True, schema=record.schema)

    @classmethod
    def of_new(cls, broker: Broker, tenant: str, feed: str, body: bytes, schema: str | None = None) -> "Explanations":
        """About a document as if it were published now; the error with which it would be rejected."""
        document = read(body, limits=broker.state.limits_of(feed))
        mediator = broker.state.mediator_of(feed)
        if mediator is not None or schema is not None:
            from pathcast.broker_log import rewritten, schema_of

            schema = schema_of(mediator, schema, None)
            assert mediator is not None
            document = rewritten(document, mediator.mappings[schema])
        sequence = broker.state.head + 1
        guard = guard_at(broker.state.guards.get(tenant, ()), sequence)
        is_visible = guard is None or _explanation(document, guard, {}).matches
        return cls(tenant, feed, sequence, document, is_visible=is_visible, schema=schema)

    def page(
        self, subscriptions: Iterable[tuple[str, StandingSubscription]], *, seconds: float = SECONDS
    ) -> list[Explained]:
        """Explanations in order, at least one; those that would take longer than `seconds` are left out."""
        end = time.monotonic() + seconds
        found: list[Explained] = []
        for id, standing in subscriptions:
            found.append(self.explained(id, standing))
            if time.monotonic() >= end:
                break
        return found

    def explained(self, id: str, standing: StandingSubscription) -> Explained:
        """Whether one subscription of the tenant gets the document, and why."""
        version = next(
            (each for each in reversed(standing.versions) if _covers(each.begin, each.end, self.sequence)), None
        )
        if version is None:
            detail = (
                f"the subscription begins at sequence {standing.begin}, but the document has sequence {self.sequence}"
            )
            return Explained(id, standing.record.subscriber, "interval", detail)
        record = version.record
        if record.feeds and self.feed not in record.feeds:
            detail = (
                f"the subscription is for feeds {', '.join(record.feeds[:10])}, but the document is in feed {self.feed}"
            )
            return Explained(id, record.subscriber, "feed", detail)
        if not self._is_visible:
            return Explained(id, record.subscriber, "guard", "the guard of this tenant masks the document")
        if isinstance(self._document, Failure):
            error = PathcastError(self._document.reason, line=self._document.line, column=self._document.column)
            return Explained(id, record.subscriber, "unreadable", f"the document is a dead letter: {error}")
        explanation = self._explained(self._document, record)
        reason = "matched" if explanation.matches else "pattern"
        return Explained(id, record.subscriber, reason, explanation.nearest, explanation)

    def _explained(self, document: Document, record: SubscriptionRecord) -> Explanation:
        key = record.expression, tuple(sorted(record.namespaces.items()))
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = _explanation(document, record.expression, record.namespaces)
        return found


def _as_matched(broker: Broker, sequence: int, record: DocumentRecord, document: Document) -> Document:
    """A document of the log as it was matched."""
    if record.schema is None:
        return document
    from pathcast.broker_log import rewritten

    mediator = mediator_at(broker.state.mediators.get(record.feed, ()), sequence)
    if mediator is None:  # forgotten since the document was read
        raise TrimmedError.before(sequence, broker.log.first)
    return rewritten(document, mediator.mappings[record.schema])


def _covers(begin: int, end: int | None, sequence: int) -> bool:
    return begin <= sequence and (end is None or sequence < end)


def _explanation(document: Document, expression: str, namespaces: dict[str, str]) -> Explanation:
    subscriptions = Subscriptions(namespaces or None)
    return explain(document, subscriptions, subscriptions.add(expression))
