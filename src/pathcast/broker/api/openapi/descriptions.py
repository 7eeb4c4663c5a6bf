"""Descriptions of operations, beside the functions that carry them out.

    @describes("feeds", scope="administer", body=FeedSettings, responses={200: Feed, 201: Feed}, errors=(422, 507))
    async def put_feed(request: Request) -> Response:
        \"\"\"PUT /v1/feeds/{feed}: set a feed's settings; they are in force when this answers.\"\"\"

Types are those that the code itself uses: Structs that it decodes, TypedDicts and Structs that it answers with. Method
and path in the docstring must be those of the route. Errors that follow from the rest need not be listed: 401, 403 and
503 for every operation that needs a token, 400 with parameters or a body, 408 and 413 with a body.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import cleandoc
from typing import Any, Final, NamedTuple, TypeVar

from .parameters import IN_PATHS, Parameter

JSON: Final = "application/json"
NDJSON: Final = "application/x-ndjson"
# Groups of operations, in the order in which a reader needs them.
TAGS: Final = {
    "documents": "Publish documents to feeds, and read them.",
    "subscriptions": "Choose the documents that a subscriber receives.",
    "deliveries": "Receive the documents that match: as server-sent events, or by pulling and acknowledging.",
    "feeds": "List and configure feeds.",
    "tenants": "Set guards, which limit the documents that a tenant sees.",
    "log": "Read the records of the broker's log, as an administrator.",
    "sessions": "Begin and end a browser's session, and ask what a token may do.",
    "operation": "Check health and read metrics.",
}
# What an error means, unless the operation describes it better.
ERRORS: Final = {
    400: "The request is malformed: `detail` names the parameter, or the place in the body.",
    401: "The access token is missing, unknown, revoked or expired.",
    403: "The token lacks a scope that `detail` names.",
    404: "The path names something that does not exist.",
    408: "The client disconnected, or was too slow, before the end of its body.",
    409: "Another request changed the same resource at the same time.",
    410: "The log has trimmed the record. `first` is its oldest record.",
    412: "The resource already exists, and the request has `If-None-Match: *`.",
    413: "The body is too large.",
    422: "The request is well-formed, but invalid: `detail` has the reason.",
    429: "The request exceeds a quota; try again after `Retry-After` seconds.",
    503: "The broker is temporarily unable to answer; try again after `Retry-After` seconds.",
    507: "The disk is full.",
}
_DOCSTRING: Final = re.compile(r"(GET|PUT|POST|DELETE|PATCH) (/\S*): (.+)", re.DOTALL)
Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])


class DescriptionError(Exception):
    """An operation whose description is missing or does not fit."""


class Content(NamedTuple):
    """The content of a body or answer. `kind` None: bytes. `line`: of each line (NDJSON) or event's `data`."""

    kind: Any
    media_type: str = JSON
    example: Any = None
    line: bool = False


class Answer(NamedTuple):
    """An answer other than an error."""

    content: Any = None
    text: str = ""
    headers: Mapping[str, str] = {}

    def contents(self) -> tuple[Content, ...]:
        """The contents it may have."""
        return contents_of(self.content)


@dataclass(frozen=True, slots=True)
class Description:
    """What an operation takes and answers."""

    name: str
    tag: str
    method: str
    path: str
    summary: str
    text: str
    scope: str | None = None
    parameters: tuple[Parameter, ...] = ()
    body: tuple[Content, ...] = ()
    body_is_optional: bool = False
    responses: Mapping[int, Answer] = field(default_factory=dict)
    errors: Mapping[int, str] = field(default_factory=dict)


_descriptions: dict[Callable[..., Any], Description] = {}


def describes(
    tag: str,
    *,
    responses: Mapping[int, Any],
    scope: str | None = None,
    parameters: Sequence[Parameter] = (),
    body: Any = None,
    body_is_optional: bool = False,
    errors: Sequence[int] | Mapping[int, str] = (),
) -> Callable[[Endpoint], Endpoint]:
    """Describe the operation that a function carries out.

    body: a type, a `Content`, or a tuple of `Content`s; None without a body. responses: per status, an `Answer` or its
    content. scope: what the token needs, such as `publish:{feed}`, separated by spaces; None if any token does. errors:
    statuses, with what they mean here if that is special.
    """

    def described(endpoint: Endpoint) -> Endpoint:
        method, path, summary, text = _docstring(endpoint)
        if tag not in TAGS:
            raise DescriptionError(f"{endpoint.__name__}: unknown tag {tag!r}; use one of {', '.join(TAGS)}")
        known = [IN_PATHS[name] for name in names_in(path) if name in IN_PATHS]
        names = {parameter.name for parameter in parameters}
        taken = (*(each for each in known if each.name not in names), *parameters)
        if missing := set(names_in(path)) - {each.name for each in taken if each.place == "path"}:
            raise DescriptionError(f"{endpoint.__name__}: the path has {missing}; describe it in parameters")
        given = errors if isinstance(errors, Mapping) else dict.fromkeys(errors, "")
        bodies = contents_of(body)
        implied = (400,) * bool(taken) + (400, 408, 413) * bool(bodies)
        statuses = sorted({*implied, *given})
        _descriptions[endpoint] = Description(
            endpoint.__name__,
            tag,
            method,
            path,
            summary,
            text,
            scope,
            taken,
            bodies,
            body_is_optional,
            {status: each if isinstance(each, Answer) else Answer(each) for status, each in responses.items()},
            {status: given.get(status) or ERRORS[status] for status in statuses},
        )
        return endpoint

    return described


def description_of(endpoint: Callable[..., Any]) -> Description:
    """The description of an endpoint; `DescriptionError` if there is none."""
    found = _descriptions.get(endpoint)
    if found is None:
        raise DescriptionError(
            f"endpoint {getattr(endpoint, '__qualname__', endpoint)} has no description; decorate it with @describes"
        )
    return found


def contents_of(given: Any) -> tuple[Content, ...]:
    """Contents that are given as a type, a `Content`, or a tuple of `Content`s."""
    if given is None:
        return ()
    if isinstance(given, Content):
        return (given,)
    return given if isinstance(given, tuple) else (Content(given),)


def names_in(path: str) -> list[str]:
    """The names of a path's parameters."""
    return re.findall(r"\{(\w+)", path)


def _docstring(endpoint: Callable[..., Any]) -> tuple[str, str, str, str]:
    """Method, path, summary and further text of an endpoint's docstring."""
    text = cleandoc(endpoint.__doc__ or "")
    found = _DOCSTRING.fullmatch(text)
    if found is None:
        raise DescriptionError(f"{endpoint.__name__}: the docstring must begin 'METHOD /path: summary', got {text!r}")
    method, path, rest = found.groups()
    summary, _, more = rest.partition("\n\n")
    summary = " ".join(summary.split()).removesuffix(".")
    return method, path, summary[0].upper() + summary[1:], more
