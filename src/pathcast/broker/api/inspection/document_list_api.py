"""Documents of the log for people: the newest ones, those that just came, dead letters, and who gets one.

    GET /v1/documents?feed=news&limit=50               newest first; `before` continues with older ones
    GET /v1/documents?after=4711&wait=20               what came after a document, as soon as something does
    GET /v1/documents?dead=only                        documents that could not be read
    GET /v1/documents/4711/recipients                  whose subscriptions get it, in the order of their ids

Nothing is acknowledged and no cursor moves. What the token may not read, or the tenant's guard masks, is left out.
"""

import asyncio
from collections.abc import Iterator
from typing import Final, NotRequired, TypedDict

from starlette.requests import Request
from starlette.responses import Response

from pathcast.broker_log import DocumentRecord, StandingSubscription
from pathcast.log import LogEntry, LogError, TrimmedError

from ...broker import Broker
from ...deliveries.newest_documents import WantedDocuments, newest_documents
from ..document_events import ShownDocument, shown_document
from ..endpoints.health_and_stored_document_api import not_a_document
from ..endpoints.subscription_search import EXAMINED, page, wanted_by
from ..openapi import Choice, Text, WholeNumber, describes
from ..openapi.parameters import IN_PATHS
from ..problems import ProblemError
from ..request_bodies import answer
from ..request_context import access_of, broker_of, checked_name, wakeups_of
from ..sender_access_rights import Access

PAGE: Final = 1_000
# Bytes of bodies in one answer: further documents come with the next page.
_BYTES: Final = 16 << 20
_MOST: Final = (1 << 63) - 1
_LOOK_SECONDS: Final = 0.2

FEED: Final = Text("feed", "Only documents of this feed; the default is all that the token reads.")
LIMIT: Final = WholeNumber("limit", "The largest number of documents to return.", 100, PAGE)
BEFORE: Final = WholeNumber("before", "Only documents before this sequence: `next` of the previous page.", None, _MOST)
AFTER: Final = WholeNumber("after", "Only documents after this sequence.", 0, _MOST)
WAIT: Final = WholeNumber("wait", "Seconds to wait for a document after `after`.", 0, 60)
DEAD: Final = Choice("dead", "All documents, only dead letters, or only readable documents.", ("any", "only", "none"))
BODIES: Final = Choice("bodies", "Return links to the documents, or their bodies.", ("links", "inline"))
RECIPIENTS: Final = WholeNumber("limit", "The largest number of recipients to return.", 100, PAGE)
LAST_ID: Final = Text("after", "The last id of the previous page.")


class ListedDocument(ShownDocument):
    """A document of the log; `size` in bytes."""

    size: int


class DocumentPage(TypedDict):
    """Documents, newest first. `head`: the end of the log as of now. `next`: the `before` of the next page."""

    documents: list[ListedDocument]
    head: int
    next: NotRequired[int]


class Recipient(TypedDict):
    """A subscription that gets a document."""

    id: str
    subscriber: str
    expression: str


class RecipientPage(TypedDict):
    """Recipients in the order of their ids; `next` is the `after` of the next page."""

    recipients: list[Recipient]
    next: NotRequired[str]


@describes(
    "documents",
    scope="read:{feed}",
    parameters=(FEED, LIMIT, BEFORE, AFTER, WAIT, DEAD, BODIES),
    responses={200: DocumentPage},
    errors=(403,),
)
async def list_documents(request: Request) -> Response:
    """GET /v1/documents: list documents of the log, newest first, or wait for new ones.

    A page looks at a bounded part of the log: continue while there is a `next`.
    """
    access, broker, wakeups = access_of(request), broker_of(request), wakeups_of(request)
    feed = FEED.of(request)
    if feed is not None:
        access.check_read(checked_name(feed, "feed"))
    feeds = access.read if feed is None else frozenset({feed})
    dead = {"any": None, "only": True, "none": False}[DEAD.of(request)]
    limit, after, before = max(1, LIMIT.of(request)), AFTER.of(request), BEFORE.of(request, _MOST)
    inline = BODIES.of(request) == "inline"
    deadline = asyncio.get_running_loop().time() + WAIT.of(request)
    looked_at = after
    while True:
        head = broker.matched_to
        wanted = WantedDocuments(feeds, dead, broker.state.expired.copy())
        found: DocumentPage = {"documents": [], "head": head}
        if head > looked_at:
            found = await asyncio.to_thread(_page, access, broker, wanted, (after, before, limit), inline=inline)
            looked_at = head
        left = deadline - asyncio.get_running_loop().time()
        if found["documents"] or left <= 0 or wakeups.closing:
            return answer(found, headers={"cache-control": "no-store"})
        await asyncio.sleep(min(left, _LOOK_SECONDS))


def _page(
    access: Access, broker: Broker, wanted: WantedDocuments, place: tuple[int, int, int], *, inline: bool
) -> DocumentPage:
    after, before, limit = place
    head = broker.matched_to
    end = min(before, head + 1)
    newest = newest_documents(broker.log, wanted, end, limit, after=after)
    shown: list[ListedDocument] = []
    searched_from, size = newest.searched_from, 0
    for entry, document in _documents(access, broker, newest.sequences):
        size += len(entry.body)
        if inline and size > _BYTES and shown:
            searched_from = entry.sequence + 1
            break
        shown.append({**shown_document(entry, document, inline=inline), "size": len(entry.body)})
    content: DocumentPage = {"documents": shown, "head": head}
    if searched_from > max(broker.log.first, after + 1):
        content["next"] = searched_from
    return content


def _documents(access: Access, broker: Broker, sequences: list[int]) -> Iterator[tuple[LogEntry, DocumentRecord]]:
    """The documents that the tenant's guard allows, as long as the log has them."""
    is_guarded = bool(broker.state.guards.get(access.tenant))
    for sequence in sequences:
        try:
            (found,) = broker.recent.entries([sequence])
        except TrimmedError:
            return
        if not is_guarded or broker.is_visible(access.tenant, found[1].feed, sequence):
            yield found


@describes(
    "documents",
    scope="read:{feed} subscribe:{subscriber}",
    parameters=(IN_PATHS["sequence"], RECIPIENTS, LAST_ID),
    responses={200: RecipientPage},
    errors=(404, 410),
)
async def list_recipients(request: Request) -> Response:
    """GET /v1/documents/{sequence}/recipients: list the subscriptions that get a document.

    Only those for which the token may act are listed. A page looks at a bounded number of subscriptions: continue while
    there is a `next`.
    """
    access, broker = access_of(request), broker_of(request)
    text = request.path_params["sequence"]
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise ProblemError(404, f"{text[:40]!r} is not a sequence; documents have paths such as /v1/documents/4711")
    limit, after = max(1, RECIPIENTS.of(request)), LAST_ID.of(request) or ""
    return answer(await asyncio.to_thread(_recipients, access, broker, int(text), after, limit))


def _recipients(access: Access, broker: Broker, sequence: int, after: str, limit: int) -> RecipientPage:
    try:
        ((_, document),) = broker.recent.entries([sequence])
    except TrimmedError:
        raise
    except LogError:
        raise not_a_document(sequence) from None
    may_read = access.read is None or document.feed in access.read
    if not (may_read and broker.is_visible(access.tenant, document.feed, sequence)):
        raise not_a_document(sequence)
    broker.check_not_expired(document.feed, sequence)
    wanted = wanted_by(access, None, "")
    found: list[Recipient] = []
    looked_at = 0
    while looked_at < EXAMINED:
        listed = page(broker.state, access.tenant, wanted, after, PAGE)
        looked_at += PAGE
        quiet = broker.quiet([standing for _, standing in listed.subscriptions], sequence - 1)
        for (id, standing), is_quiet in zip(listed.subscriptions, quiet, strict=True):
            if not is_quiet and _gets(broker, standing, sequence):
                record = standing.record
                found.append({"id": id, "subscriber": record.subscriber, "expression": record.expression})
                if len(found) == limit:
                    return {"recipients": found, "next": id}
        if listed.next is None:
            return {"recipients": found}
        after = listed.next
    return {"recipients": found, "next": after}


def _gets(broker: Broker, standing: StandingSubscription, sequence: int) -> bool:
    return broker.search.after(standing, sequence - 1, 1, sequence).sequences == [sequence]
