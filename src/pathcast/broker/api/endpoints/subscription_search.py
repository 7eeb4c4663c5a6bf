"""Pages of subscriptions: in the order of their ids, all or those that contain a text.

A search among many takes candidates from an index of texts (package broker_log) and compares them; among few it
compares all. It reads a bounded number of subscriptions per page, so a page may be short, or empty, although there are
more: `next` is where to continue. While subscriptions come and go, each that stays is on exactly one page, since a page
continues behind an id, not behind a number of ids.
"""

from collections.abc import Iterable
from heapq import merge
from itertools import islice
from typing import Final, NamedTuple

from pathcast.broker_log import BrokerState, StandingSubscription

from ..sender_access_rights import Access

# Subscriptions that one page reads, and how many ids are fetched at a time.
EXAMINED: Final = 20_000
_CHUNK: Final = 1_024


class Page(NamedTuple):
    """Some subscriptions, and the id behind which the next page continues; None at the end."""

    subscriptions: list[tuple[str, StandingSubscription]]
    next: str | None


class Wanted(NamedTuple):
    """Whose subscriptions (None: everybody's), and what their id, subscriber or expression contains."""

    subscribers: frozenset[str] | None
    text: str = ""


def wanted_by(access: Access, subscriber: str | None, text: str) -> Wanted:
    """What a sender asks for, and may see."""
    if subscriber is not None:
        access.check_subscriber(subscriber)
        return Wanted(frozenset({subscriber}), text)
    return Wanted(None if access.subscribers is None else frozenset(access.subscribers), text)


def count(state: BrokerState, tenant: str, wanted: Wanted) -> int:
    """How many subscriptions there are, whatever they contain."""
    directory = state.directory
    if wanted.subscribers is None:
        return directory.count(tenant)
    return sum(directory.count(tenant, each) for each in wanted.subscribers)


def page(state: BrokerState, tenant: str, wanted: Wanted, after: str, limit: int, *, examined: int = EXAMINED) -> Page:
    """The next subscriptions behind an id."""
    if wanted.text and count(state, tenant, wanted) > examined:
        return _searched(state, tenant, wanted, after, limit, examined)
    found: list[tuple[str, StandingSubscription]] = []
    text, looked_at = wanted.text.casefold(), 0
    while True:
        size = min(max(limit - len(found), _CHUNK if text else 0), examined - looked_at) + 1
        ids = _ids(state, tenant, wanted, after, size)
        for id in ids[: size - 1]:
            if len(found) == limit:
                return Page(found, after)
            standing = state.subscriptions.get((tenant, id))
            after, looked_at = id, looked_at + 1
            if standing is not None and _is_wanted(id, standing, wanted.subscribers, text):
                found.append((id, standing))
        if len(ids) < size:
            return Page(found, None)
        if len(found) == limit or looked_at >= examined:
            return Page(found, after)


def _searched(state: BrokerState, tenant: str, wanted: Wanted, after: str, limit: int, examined: int) -> Page:
    found: list[tuple[str, StandingSubscription]] = []
    text, looked_at = wanted.text.casefold(), 0
    while looked_at < examined:
        candidates = state.texts.candidates(tenant, text, after)
        looked_at += candidates.read
        for id in candidates.ids:
            standing = state.subscriptions.read((tenant, id))
            after, looked_at = id, looked_at + 1
            if standing is not None and _is_wanted(id, standing, wanted.subscribers, text):
                found.append((id, standing))
            if len(found) == limit or looked_at >= examined:
                return Page(found, after)
        if candidates.next is None:
            return Page(found, None)
        after = candidates.next
    return Page(found, after)


def page_of_troubled(state: BrokerState, tenant: str, wanted: Wanted, after: str, limit: int) -> Page:
    """The next subscriptions behind an id that have dead letters or a disabled webhook."""
    found: list[tuple[str, StandingSubscription]] = []
    for id in sorted(id for of, id in state.troubled.copy() if of == tenant and id > after):
        standing = state.subscriptions.get((tenant, id))
        if standing is not None and _is_wanted(id, standing, wanted.subscribers, wanted.text.casefold()):
            if len(found) == limit:
                return Page(found, found[-1][0] if found else None)
            found.append((id, standing))
    return Page(found, None)


def _ids(state: BrokerState, tenant: str, wanted: Wanted, after: str, most: int) -> list[str]:
    directory = state.directory
    if wanted.subscribers is None:
        return directory.after(tenant, after, most)
    each: Iterable[list[str]] = (directory.after(tenant, after, most, name) for name in wanted.subscribers)
    return list(islice(merge(*each), most))


def _is_wanted(id: str, standing: StandingSubscription, subscribers: frozenset[str] | None, text: str) -> bool:
    record = standing.record
    if subscribers is not None and record.subscriber not in subscribers:
        return False  # it has changed hands since the ids were fetched
    return not text or any(text in each.casefold() for each in (id, record.subscriber, record.expression))
