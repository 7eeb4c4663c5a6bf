"""The OpenAPI document of the application: its routes, and the descriptions of their endpoints.

Invariant: every route is described, with the method and path that it has; otherwise the application is not built.
Cost: once per application, some milliseconds.
"""

import re
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from types import UnionType
from typing import Any, Final, NotRequired, TypedDict, get_args

from msgspec import json
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from pathcast import __version__

from ..middleware.access_control import OPEN_PATHS
from ..middleware.browser_session import OPEN_OPERATIONS
from ..request_bodies import answer
from .descriptions import ERRORS, TAGS, Answer, Content, Description, DescriptionError, describes, description_of

_ALWAYS: Final = (401, 403, 503)  # errors of every operation that needs a token
_RETRY: Final = frozenset({429, 503, 507})
_PROBLEM: Final = {"$ref": "#/components/schemas/Problem"}
_TEXT: Final = """\
Publish XML documents to feeds, and receive those that match XPath subscriptions.

On the loopback address without configured tokens, requests need no token. Otherwise every request has the header
`Authorization: Bearer TOKEN`. Every error is `application/problem+json`. Sequences are places in the broker's log.
"""
_TOKEN: Final = {
    "type": "http",
    "scheme": "bearer",
    "description": """\
An access token of a tenant (`pathcast token add`). Its scopes:

- `publish:FEED` publishes to a feed, `publish:*` to all feeds;
- `read:FEED` reads documents of a feed, `read:*` of all feeds;
- `subscribe:NAME` acts as a subscriber, `subscribe:*` as any subscriber of the tenant;
- `administer` changes feeds, tenants and guards, and reads the log;
- `*` is all of these.

Not needed on the loopback address if the broker has no token file.
""",
}


class Problem(TypedDict):
    """An error (RFC 9457): `detail` says what is wrong and what to do; `line` and `column` where, if that is known.

    `first` is the oldest record of a trimmed log, `active` the broker that a standby refers to, `unknown` the sequences
    that are no deliveries, `document` the place of a document in the body or in the upload `upload`.
    """

    title: str
    status: int
    detail: str
    line: NotRequired[int]
    column: NotRequired[int]
    explanation: NotRequired[str]
    supported: NotRequired[str]
    first: NotRequired[int]
    unknown: NotRequired[list[int]]
    active: NotRequired[str]
    upload: NotRequired[str]
    document: NotRequired[int]


def openapi(routes: Iterable[BaseRoute]) -> dict[str, Any]:
    """The document of some routes."""
    described = [(route, description_of(route.endpoint)) for route in routes if isinstance(route, Route)]
    for route, description in described:
        _check(route, description)
    references, schemas = _schemas([description for _, description in described])
    paths: dict[str, dict[str, Any]] = {}
    for _, description in described:
        operations = paths.setdefault(description.path, {})
        operations[description.method.lower()] = _operation(description, references)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Pathcast broker", "version": __version__, "description": _TEXT},
        "servers": [{"url": "/"}],
        "tags": [{"name": name, "description": text} for name, text in TAGS.items()],
        "paths": paths,
        "components": {"schemas": schemas, "securitySchemes": {"token": _TOKEN}},
    }


def _check(route: Route, description: Description) -> None:
    path = re.sub(r"\{(\w+):\w+\}", r"{\1}", route.path)
    methods = (route.methods or set()) - {"HEAD"}
    if (methods, path) != ({description.method}, description.path):
        raise DescriptionError(
            f"{description.name} is the endpoint of {' '.join(methods)} {path}, but its docstring describes "
            f"{description.method} {description.path}"
        )


def _schemas(descriptions: list[Description]) -> tuple[dict[int, Any], dict[str, Any]]:
    """References to the schemas of all contents, by the identity of their types, and the schemas."""
    contents = [content for each in descriptions for content in each.body]
    contents += [content for each in descriptions for given in each.responses.values() for content in given.contents()]
    kinds = list({id(kind): kind for content in contents for kind in _kinds(content)}.values())
    found, schemas = json.schema_components([*kinds, Problem], ref_template="#/components/schemas/{name}")
    return {id(kind): schema for kind, schema in zip(kinds, found, strict=False)}, schemas


def _kinds(content: Content) -> tuple[Any, ...]:
    """The types of a content: those of a union are described one by one, since it may have several objects."""
    if content.kind is None:
        return ()
    return get_args(content.kind) if isinstance(content.kind, UnionType) else (content.kind,)


def _operation(description: Description, references: Mapping[int, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "operationId": description.name,
        "tags": [description.tag],
        "summary": description.summary,
    }
    scopes = description.scope.split() if description.scope else []
    needs = f"Needs a token with {' and '.join(f'`{scope}`' for scope in scopes)}." if scopes else ""
    if text := "\n\n".join(filter(None, (description.text, needs))):
        found["description"] = text
    if description.parameters:
        found["parameters"] = [parameter.shown() for parameter in description.parameters]
    if description.body:
        found["requestBody"] = {
            "required": not description.body_is_optional,
            "content": _contents(description.body, references),
        }
    errors = dict(description.errors)
    if description.path in OPEN_PATHS or (description.method, description.path) in OPEN_OPERATIONS:
        found["security"] = []
    else:
        # An empty requirement: on the loopback address, no token may be needed.
        found["security"] = [{"token": scopes}, {}]
        errors = {**{status: ERRORS[status] for status in _ALWAYS}, **errors}
    answers = {str(status): _answer(status, each, references) for status, each in description.responses.items()}
    for status in sorted(errors):
        error = _error(status, errors[status])
        if (other := answers.get(str(status))) is not None:
            error["content"] |= other["content"]
            error["description"] = f"{other['description']} Or: {error['description']}"
        answers[str(status)] = error
    found["responses"] = answers
    return found


def _answer(status: int, given: Answer, references: Mapping[int, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {"description": given.text or HTTPStatus(status).phrase}
    if given.headers:
        found["headers"] = {
            name: {"description": text, "schema": {"type": "string"}} for name, text in given.headers.items()
        }
    if contents := given.contents():
        found["content"] = _contents(contents, references)
    return found


def _error(status: int, text: str) -> dict[str, Any]:
    found: dict[str, Any] = {"description": text, "content": {"application/problem+json": {"schema": _PROBLEM}}}
    if status in _RETRY:
        found["headers"] = {
            "retry-after": {"description": "Seconds to wait before the next try.", "schema": {"type": "integer"}}
        }
    return found


def _contents(contents: Iterable[Content], references: Mapping[int, Any]) -> dict[str, Any]:
    return {content.media_type: _content(content, references) for content in contents}


def _content(content: Content, references: Mapping[int, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if kinds := [references[id(kind)] for kind in _kinds(content)]:
        schema = kinds[0] if len(kinds) == 1 else {"anyOf": kinds}
        if content.line:
            schema = {"type": "string", "contentMediaType": "application/json", "contentSchema": schema}
        found["schema"] = schema
    if content.example is not None:
        found["example"] = content.example
    return found


@describes("operation", responses={200: Answer(dict[str, Any], "This document.")})
async def show_openapi(request: Request) -> Response:
    """GET /openapi.json: describe the HTTP surface in OpenAPI 3.1."""
    return answer(request.app.state.openapi)
