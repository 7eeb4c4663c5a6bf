"""Expressions on trial: what one selects in a document, how it is handled, and how many recent documents it matches.

    POST /v1/expressions:try     {"xpath", "document" | "sequence"}   parts, explanation, normal form, handling
    POST /v1/expressions:count   {"xpath", "feeds"}                   of the newest 1,000 documents, how many match

Nothing is saved. One request at a time is tried and one is counted, so trials never take more than two processors.
"""

import asyncio
import re
import time
from collections.abc import Iterator
from typing import Any, Final, NotRequired, TypedDict

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from pathcast.broker_log import UNLIMITED, StandingSubscription, SubscriptionRecord, Version
from pathcast.documents import Document, Limits, read
from pathcast.errors import PathcastError
from pathcast.log import LogError, TrimmedError
from pathcast.matching import Subscriptions
from pathcast.matching.explain import explain, find_parts
from pathcast.patterns import AllOf, AnyOf, Compare, Condition, First, Node, Not, Pattern, Root, StringTest, parse

from ...broker import Broker
from ...deliveries.newest_documents import WantedDocuments, newest_documents
from ..endpoints.health_and_stored_document_api import not_a_document
from ..endpoints.subscription_definition import FEEDS, NAMESPACES
from ..openapi import Content, describes
from ..problems import ProblemError, problem_of
from ..request_bodies import answer, body_of, decoded
from ..request_context import access_of, broker_of, checked_name
from ..sender_access_rights import Access

# Parts that a trial returns, documents that a count looks at, and seconds that it takes at most.
PARTS: Final = 500
COUNTED: Final = 1_000
SECONDS: Final = 2.0
_EXPRESSION: Final = 64 << 10
# The encoding that a document declares, which is not the one of its text.
_ENCODING: Final = re.compile(
    r"""<\?xml[^?>]{1,200}?(\s{1,9}encoding\s{0,9}=\s{0,9}(?:"[\w.-]{1,40}"|'[\w.-]{1,40}'))""", re.ASCII
)
# JSON may spell each byte of a document with six.
_ESCAPED: Final = 6
HANDLING: Final = {
    "path": "A plain path. One look-up per element finds it, together with all other paths, however many there are.",
    "value": "Found by look-ups of its path and of a value. Only documents that have both are looked at again.",
    "branches": "A twig. Found by the paths of its branches; documents that have them all are checked for their place.",
    "trial": "No value can be looked up, so it is tried on every document that has its path. This is the costly kind.",
    "evaluation": "More than a tree pattern. Documents that have what it demands are candidates; each is evaluated.",
    "everything": "Matches every readable document, without a look at it.",
}


class Trial(Struct, forbid_unknown_fields=True):
    """An expression, and the document to try it on: a text, or the sequence of a document in the log."""

    xpath: str
    namespaces: dict[str, str] = {}
    document: str | None = None
    sequence: int | None = None


class CountRequest(Struct, forbid_unknown_fields=True):
    """An expression, and the feeds whose documents are counted; none means all that the token reads."""

    xpath: str
    namespaces: dict[str, str] = {}
    feeds: list[str] = []


class SelectedPart(TypedDict):
    """Bytes of the document in UTF-8, from `begin` to before `end`; `kind`: element, attribute or text."""

    kind: str
    begin: int
    end: int


class Handling(TypedDict):
    """How the engine handles the expression: a word, a sentence, and the seconds for this document, alone."""

    kind: str
    text: str
    read_seconds: float
    match_seconds: float


class Tried(TypedDict):
    """What an expression does with a document. `parts`: the first 500 of `selected`; `steps`: the explanation."""

    matches: bool
    normal_form: str
    nearest: NotRequired[str]
    selected: int
    parts: list[SelectedPart]
    steps: list[dict[str, Any]]
    handling: Handling


class Counted(TypedDict):
    """How many of the newest documents match; `newest`: the newest of those. `complete`: there was time for all."""

    documents: int
    matched: int
    newest: list[int]
    complete: bool


_STORY: Final = "<nitf><title>Rain</title></nitf>"


@describes(
    "subscriptions",
    body=Content(Trial, example={"xpath": "//title[. = 'Rain']", "document": _STORY}),
    responses={200: Tried},
    errors=(404, 410, 422),
)
async def try_expression(request: Request) -> Response:
    """POST /v1/expressions:try: try an expression on a document, without saving anything.

    The answer has the parts of the document that are selected, and why it matches or what comes nearest. A document of
    the log needs the scope `read:FEED`.
    """
    access, broker = access_of(request), broker_of(request)
    limits = broker.state.limits_of("")
    wanted: Trial = decoded(await body_of(request, _ESCAPED * limits.size), Trial, "the trial", distinct=False)
    pattern = _parsed(wanted.xpath, wanted.namespaces)
    if (wanted.document is None) == (wanted.sequence is None):
        raise ProblemError(
            422,
            "exactly one of document and sequence must be given, got "
            f"{'neither' if wanted.document is None else 'both'}; send a text, or the sequence of a document",
        )
    async with request.app.state.trying:
        if wanted.sequence is not None:
            body, limits = await asyncio.to_thread(_logged, access, broker, wanted.sequence), UNLIMITED
        else:
            assert wanted.document is not None
            body = _as_utf8(wanted.document)
        content = await asyncio.to_thread(_tried, wanted, pattern, body, limits)
    return answer(content)


def _as_utf8(text: str) -> bytes:
    """A text in UTF-8, with blanks instead of a declared encoding: places in it stay where they are."""
    declared = _ENCODING.match(text)
    if declared is not None:
        begin, end = declared.span(1)
        text = text[:begin] + " " * (end - begin) + text[end:]
    return text.encode("utf-8", "surrogatepass")


@describes(
    "subscriptions",
    scope="read:{feed}",
    body=Content(CountRequest, example={"xpath": "//title[. = 'Rain']", "feeds": ["news"]}),
    responses={200: Counted},
    errors=(422,),
)
async def count_matches(request: Request) -> Response:
    """POST /v1/expressions:count: count how many of the newest 1,000 documents an expression would have matched.

    Only documents that the token may read, and that the tenant's guard allows, are counted.
    """
    access, broker = access_of(request), broker_of(request)
    wanted: CountRequest = decoded(await body_of(request, 4 * _EXPRESSION), CountRequest, "the count", distinct=False)
    pattern = _parsed(wanted.xpath, wanted.namespaces)
    if len(wanted.feeds) > FEEDS:
        raise ProblemError(422, f"feeds has {len(wanted.feeds)} items; give at most {FEEDS}, or none for all feeds")
    for feed in wanted.feeds:
        access.check_read(checked_name(feed, "feed"))
    feeds = frozenset(wanted.feeds) if wanted.feeds else access.read
    async with request.app.state.counting:
        return answer(await asyncio.to_thread(_counted, access, broker, str(pattern), feeds))


def _parsed(xpath: str, namespaces: dict[str, str]) -> Pattern:
    if len(xpath) > _EXPRESSION or len(namespaces) > NAMESPACES:
        raise ProblemError(
            422,
            f"the expression has {len(xpath):,} characters and {len(namespaces)} namespaces; at most {_EXPRESSION:,} "
            f"and {NAMESPACES} allowed",
        )
    try:
        return parse(xpath, namespaces or None)
    except PathcastError as error:
        raise problem_of(error) from None
    except (TypeError, ValueError) as error:
        raise ProblemError(422, str(error)) from None


def _logged(access: Access, broker: Broker, sequence: int) -> bytes:
    """A document of the log that the sender may read; the answers for masked and for missing documents are the same."""
    try:
        ((entry, record),) = broker.recent.entries([sequence])
    except TrimmedError:
        raise
    except LogError:
        raise not_a_document(sequence) from None
    may_read = access.read is None or record.feed in access.read
    if not (may_read and broker.is_visible(access.tenant, record.feed, sequence)):
        raise not_a_document(sequence)
    broker.check_not_expired(record.feed, sequence)
    return entry.body


def _tried(wanted: Trial, pattern: Pattern, body: bytes, limits: Limits) -> Tried:
    begin = time.perf_counter()
    document = read(body, limits=limits)
    reading = time.perf_counter() - begin
    namespaces = wanted.namespaces or None
    subscriptions = Subscriptions(namespaces)
    explanation = explain(document, subscriptions, subscriptions.add(wanted.xpath))
    found = find_parts(document, pattern, namespaces, PARTS)
    kind, matching = _handling(subscriptions, pattern, document)
    content: Tried = {
        "matches": explanation.matches,
        "normal_form": str(pattern),
        "selected": found.total,
        "parts": [{"kind": each.kind, "begin": each.begin, "end": each.end} for each in found.parts],
        "steps": explanation.as_dict()["steps"],
        "handling": {
            "kind": kind,
            "text": HANDLING[kind],
            "read_seconds": reading,
            "match_seconds": matching,
        },
    }
    if not explanation.matches:
        content["nearest"] = explanation.nearest
    return content


def _handling(subscriptions: Subscriptions, pattern: Pattern, document: Document) -> tuple[str, float]:
    """The kind of work that the engine has with a pattern, and the seconds for a document whose paths are known."""
    matcher = subscriptions.compile()
    batch = document.alone()
    matcher.match_batch(batch)
    begin = time.perf_counter()
    matcher.match_batch(batch)
    seconds = time.perf_counter() - begin
    if pattern.expression:
        return "evaluation", seconds
    if pattern.root is None:
        return "everything", seconds
    if pattern.linear is not None:
        return "path", seconds
    if matcher.statistics().get("values"):
        return "value", seconds
    return ("trial" if any(map(_is_test, _conditions(pattern.root))) else "branches"), seconds


def _is_test(condition: Condition) -> bool:
    return isinstance(condition, Compare | StringTest | First | Not | AnyOf)


def _conditions(root: Node) -> Iterator[Condition]:
    """All conditions of a pattern."""
    waiting: list[Condition] = [root]
    while waiting:
        condition = waiting.pop()
        yield condition
        match condition:
            case Node() | AllOf() | AnyOf():
                waiting += condition.conditions
            case Root():
                waiting.append(condition.node)
            case Not():
                waiting.append(condition.condition)


def _counted(access: Access, broker: Broker, pattern: str, feeds: frozenset[str] | None) -> Counted:
    head = broker.matched_to
    wanted = WantedDocuments(feeds, dead=False, expired=broker.state.expired.copy())
    newest = newest_documents(broker.log, wanted, head + 1, COUNTED).sequences
    if not newest:
        return {"documents": 0, "matched": 0, "newest": [], "complete": True}
    names = tuple(sorted(broker.indexes.keys() if feeds is None else feeds))
    end = time.monotonic() + SECONDS
    matched, matched_to = _found(broker, _standing(access, pattern, names), newest[-1], head, end)
    visible = newest
    if broker.state.guards.get(access.tenant):
        seen, seen_to = _found(broker, _standing(access, "/", names), newest[-1], head, end)
        visible, matched_to = sorted(seen, reverse=True), min(seen_to, matched_to)
    looked_at = [each for each in visible if each <= matched_to]
    hits = sorted(set(matched).intersection(looked_at), reverse=True)
    return {
        "documents": len(looked_at),
        "matched": len(hits),
        "newest": hits[:10],
        "complete": matched_to >= head,
    }


def _standing(access: Access, pattern: str, feeds: tuple[str, ...]) -> StandingSubscription:
    """A subscription that exists for one search only."""
    record = SubscriptionRecord(access.tenant, "", "", pattern, pattern, {}, feeds)
    return StandingSubscription(0, 1, (Version(0, 1, None, record),))


def _found(broker: Broker, standing: StandingSubscription, first: int, head: int, end: float) -> tuple[list[int], int]:
    """The documents from `first` on that a subscription gets, and how far there was time to search."""
    found: list[int] = []
    position = first - 1
    while position < head:
        try:
            some, position, _ = broker.search.after(standing, position, COUNTED, head, patient=False)
        except TrimmedError as error:
            position = error.first - 1
            continue
        found += some
        if time.monotonic() >= end:
            break
    return found, position
