"""Matching left to Spark, for administrators: what to match, and the matches.

    GET  /v1/matching                      ranges of feeds with `"matching": "spark"`; histories that readers wait for
    GET  /v1/matching/patterns?feed=news   the patterns of a feed; ask for them after the ranges
    PUT  /v1/matching/ranges               {"feed": "news", "from": 5, "to": 9, "matches": {"//title": [5, 8]}}
    PUT  /v1/matching/histories            the same, for the patterns that `matches` names

A range is sent with all matches of all patterns, after the ranges before it. What was sent before is ignored.
"""

from typing import Any, Final, TypedDict

from msgspec import Struct, field
from starlette.requests import Request
from starlette.responses import Response

from ...deliveries.computed_matches import RangeError
from ...deliveries.computed_matches import decoded as as_arrays
from ...left_to_spark import Work, patterns_of, take_histories, take_range, work_of
from ..openapi import Content, Text, describes
from ..problems import ProblemError
from ..request_bodies import answer, body_of, decoded
from ..request_context import access_of, broker_of, checked_name, result_of
from .log_api import whole_log

MATCHES_BYTES: Final = 64 << 20
_FEED: Final = Text("feed", "The feed.")
_EXAMPLE: Final = {"feed": "news", "from": 1, "to": 2, "matches": {"//title": [1, 2]}}


class ComputedMatches(Struct, forbid_unknown_fields=True):
    """The documents from `from` to `to` (both inclusive) that each pattern matches, ascending."""

    feed: str
    begin: int = field(name="from")
    to: int
    matches: dict[str, list[int]]


class Patterns(TypedDict):
    """The patterns of a feed, in normal form."""

    feed: str
    patterns: list[str]


class Taken(TypedDict):
    """How many matches, or patterns, were new."""

    taken: int


@describes("log", scope="administer", responses={200: Work})
async def read_work(request: Request) -> Response:
    """GET /v1/matching: list what the broker leaves to Spark and has not got yet."""
    return answer(work_of(whole_log(request)))


@describes("log", scope="administer", parameters=(_FEED,), responses={200: Patterns}, errors=(400,))
async def read_patterns(request: Request) -> Response:
    """GET /v1/matching/patterns: list the patterns that the documents of a feed are matched with."""
    broker = whole_log(request)
    text = _FEED.of(request)
    if text is None:
        raise ProblemError(400, "the parameter feed is missing; name a feed with ?feed=…")
    feed = checked_name(text, "feed")
    return answer({"feed": feed, "patterns": await result_of(request, patterns_of(broker, feed))})


@describes(
    "log",
    scope="administer",
    body=Content(ComputedMatches, example=_EXAMPLE),
    responses={200: Taken},
    errors={409: "The range before this one is missing, or the range is beyond the end of the log.", 422: ""},
)
async def put_range(request: Request) -> Response:
    """PUT /v1/matching/ranges: give the broker all matches of a range of a feed with `"matching": "spark"`."""
    broker, found = whole_log(request), await _matches(request)
    future = take_range(broker, found.feed, found.begin, found.to, as_arrays(found.matches))
    try:
        return answer({"taken": await result_of(request, future)})
    except RangeError as error:
        raise ProblemError(409, error.reason) from None


@describes(
    "log",
    scope="administer",
    body=Content(ComputedMatches, example=_EXAMPLE),
    responses={200: Taken},
    errors=(422,),
)
async def put_histories(request: Request) -> Response:
    """PUT /v1/matching/histories: give the broker the documents of a range that match some patterns."""
    broker, found = whole_log(request), await _matches(request)
    future = take_histories(broker, found.feed, found.begin, found.to, as_arrays(found.matches))
    return answer({"taken": await result_of(request, future)})


async def _matches(request: Request) -> ComputedMatches:
    access_of(request).check_administer()
    head = broker_of(request).matched_to
    found: Any = decoded(await body_of(request, MATCHES_BYTES), ComputedMatches, "the matches")
    checked_name(found.feed, "feed")
    if not 1 <= found.begin <= found.to <= head:
        raise ProblemError(
            422, f"the range is {found.begin} to {found.to}; give a range within 1 to {head}, the last record"
        )
    for pattern, sequences in found.matches.items():
        if sequences and not found.begin <= min(sequences) <= max(sequences) <= found.to:
            raise ProblemError(
                422, f"the matches of pattern {pattern[:80]!r} have sequences outside of {found.begin} to {found.to}"
            )
    return found  # type: ignore[no-any-return]
