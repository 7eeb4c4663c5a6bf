"""`/openapi.json`: it is valid, and real requests, some for every operation, are answered as it describes.

REQUESTS are carried out one after the other against one broker. A request has the body of the operation's own example,
unless the row gives another. Answers are validated strictly: a field that the schema lacks is an error, too.
"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from pathcast.broker import BrokerSettings, add_token
from pathcast.broker.api import application
from pathcast.broker.api.application import routes
from pathcast.broker.api.openapi import DescriptionError, describes
from pathcast.broker.api.openapi.document import openapi
from pathcast.broker.api.standby_application import standby_response
from pathcast.broker.settings.broker_sections import Quotas, TokensSection

from .served_broker import Served, served

DOCUMENT: Any = openapi(routes())
OPERATIONS = {
    operation["operationId"]: (method.upper(), path, operation)
    for path, operations in DOCUMENT["paths"].items()
    for method, operation in operations.items()
}


class Row(NamedTuple):
    """A request and the status of its answer. `{name.field}` in a path is a field of an earlier answer."""

    operation: str
    status: int
    path: Mapping[str, str] = {}
    query: Mapping[str, Any] = {}
    headers: Mapping[str, str] = {}
    body: Any = None
    media_type: str = ""


NEWS, ADA, LEASE = {"feed": "news"}, {"id": "ada-1"}, {"lease": "{post_lease.id}"}
SINK = {"xpath": "//title", "sink": "https://sink.invalid/hook", "subscriber": "ada", "feeds": ["news"]}
ONCE = {"xpath": "//title", "feeds": ["news"], "config": {"from": 1, "max_deliver": 1}}
BATCH = "application/cloudevents-batch+json"
MEDIATOR = {"schema": "a", "mappings": {"annex": 'name = "annex"\nschema = "a"'}}
REQUESTS = [
    Row("put_feed", 201, NEWS),
    Row("put_feed", 200, NEWS),
    Row("put_feed", 400, NEWS, body={"limit": {}}),
    Row("get_feed", 200, NEWS),
    Row("get_feed", 404, {"feed": "none"}),
    Row("get_feed", 400, {"feed": "a b"}),
    Row("list_feeds", 200),
    Row("check_subscription", 200),
    Row("check_subscription", 422, body={"xpath": "//title["}),
    Row("put_subscription", 201, ADA),
    Row("put_subscription", 412, ADA, headers={"if-none-match": "*"}),
    Row("put_subscription", 200, ADA, body=SINK),
    Row("get_secret", 200, ADA),
    Row("get_secret", 404, {"id": "none"}),
    Row("status", 200, ADA),
    Row("pull", 409, ADA),
    Row("put_subscription", 200, ADA, body={**SINK, "sink": None}),
    Row("put_subscription", 201, {"id": "hooked"}, body=SINK),
    Row("put_subscription", 400, {"id": "a b"}),
    Row("get_subscription", 200, ADA),
    Row("get_subscription", 404, {"id": "none"}),
    Row("post_subscriptions", 200),
    Row("post_subscriptions", 422, body="{}\n"),
    Row("list_subscriptions", 200, query={"limit": 1}),
    Row("list_subscriptions", 200, query={"q": "titl"}),
    Row("list_subscriptions", 200, query={"after": "ada-1", "subscriber": "ada"}),
    Row("list_subscriptions", 200, query={"trouble": "only"}),
    Row("list_deliveries", 200, ADA, {"limit": 2}),
    Row("list_deliveries", 404, {"id": "none"}),
    Row("list_costly", 200),
    Row("list_subscriptions", 400, query={"limit": "many"}),
    Row("publish", 202, NEWS, headers={"ce-id": "story-1", "ce-source": "desk", "ce-type": "story"}),
    Row("publish", 202, NEWS, media_type="application/cloudevents+json"),
    Row("publish", 202, NEWS, media_type=BATCH),
    Row("publish", 202, NEWS, {"invalid": "keep"}, body="<a>\n<b></a>"),
    Row("publish", 202, NEWS, {"invalid": "keep"}, media_type=BATCH, body=[{"id": "dead", "data": "<a>\n<b></a>"}]),
    Row("publish", 422, NEWS, body="<a>\n<b></a>"),
    Row("publish", 422, NEWS, media_type=BATCH, body=[{"id": "bad", "data": "<a>\n<b></a>"}]),
    Row("publish", 400, NEWS, {"invalid": "perhaps"}),
    Row("publish", 413, NEWS, body=f"<a>{' ' * 2_000_000}</a>"),
    Row("post_upload", 201),
    Row("post_upload", 422, body=[]),
    Row("delete_upload", 204, {"upload": "{post_upload.upload}"}),
    Row("delete_upload", 404, {"upload": "{post_upload.upload}"}),
    Row("commit_uploads", 404),
    Row("commit_uploads", 200, body={"uploads": [], "source": "nightly", "batch": "17"}),
    Row("commit_uploads", 422, body={"uploads": [], "batch": ""}),
    Row("get_document", 200, {"sequence": "{publish.sequence}"}),
    Row("get_document", 404, {"sequence": "1"}),
    Row("subscription_events", 200, ADA, {"after": 1}),
    Row("subscription_events", 200, ADA, headers={"last-event-id": "999999"}),
    Row("subscription_events", 404, {"id": "none"}),
    Row("subscription_events", 400, ADA, {"bodies": "no"}),
    Row("subscriber_events", 200, {"name": "ada"}, {"after": 1, "bodies": "links"}),
    Row("subscriber_events", 400, {"name": "ada"}, {"after": "x"}),
    Row("explain", 200, query={"sequence": "{publish.sequence}"}, body=""),
    Row("explain", 200, query={"feed": "news", "subscription": "ada-1"}),
    Row("explain", 200, query={"feed": "news", "limit": 1}),
    Row("explain", 404, query={"sequence": 1}, body=""),
    Row("explain", 400, body=""),
    Row("explain", 422, query={"feed": "news"}, body="<a>\n<b></a>"),
    Row("pull", 200, ADA, {"limit": 2}),
    Row("pull", 404, {"id": "none"}),
    Row("status", 200, ADA),
    Row("put_subscription", 201, {"id": "once"}, body=ONCE),
    Row("pull", 200, {"id": "once"}),
    Row("give_back", 200, {"id": "once"}, body={"sequences": ["{publish.sequence}"]}),
    Row("dead_letters", 200, {"id": "once"}, {"limit": 1}),
    Row("dead_letters", 404, {"id": "none"}),
    Row("acknowledge", 200, ADA, body={"sequences": ["{publish.sequence}"]}),
    Row("acknowledge", 422, ADA),
    Row("give_back", 200, ADA),
    Row("give_back", 422, ADA, body={"sequences": [], "delay": -1}),
    Row("replay", 200, ADA),
    Row("replay", 200, ADA, body={"from": "2026-01-31T12:00:00Z"}),
    Row("replay", 200, ADA, body={"dead_letters": True}),
    Row("replay", 422, ADA, body={"sequence": 0}),
    Row("delete_subscription", 200, {"id": "quotes"}),
    Row("delete_subscription", 404, {"id": "quotes"}),
    Row("post_lease", 201),
    Row("post_lease", 422, body={"from": 0}),
    Row("list_leases", 200),
    Row("put_lease", 200, LEASE),
    Row("put_lease", 404, {"lease": "none"}),
    Row("read_log", 200, query={"from": 1, "kinds": "document", "bodies": "none", "lease": "{post_lease.id}"}),
    Row("read_log", 422, query={"from": 999_999}),
    Row("read_checkpoint", 204),
    Row("read_work", 200),
    Row("read_patterns", 200, query={"feed": "news"}),
    Row("read_patterns", 400),
    Row("put_range", 409, body={"feed": "none", "from": 1, "to": 1, "matches": {}}),
    Row("put_range", 422, body={"feed": "news", "from": 2, "to": 1, "matches": {}}),
    Row("put_histories", 200, body={"feed": "news", "from": 1, "to": 1, "matches": {"//title": [1]}}),
    Row("put_histories", 422, body={"feed": "news", "from": 0, "to": 1, "matches": {}}),
    Row("delete_lease", 204, LEASE),
    Row("delete_lease", 404, LEASE),
    Row("put_tenant", 200, {"tenant": "desk"}),
    Row("put_tenant", 422, {"tenant": "desk"}, body={"guard": None, "from": 0}),
    Row("get_tenant", 200, {"tenant": "desk"}),
    Row("list_tenants", 200),
    Row("show_metrics", 200),
    Row("health", 200),
    Row("ready", 200),
    Row("show_openapi", 200),
    Row("get_session", 200),
    Row("post_session", 200),
    Row("delete_session", 204),
    Row("overview", 200),
    Row("list_documents", 200, query={"feed": "news", "limit": 2}),
    Row("list_documents", 200, query={"feed": "news", "dead": "only", "bodies": "inline"}),
    Row("list_documents", 400, query={"dead": "perhaps"}),
    Row("list_recipients", 200, {"sequence": "{publish.sequence}"}),
    Row("list_recipients", 404, {"sequence": "1"}),
    Row("try_expression", 200),
    Row("try_expression", 422, body={"xpath": "//a[b", "document": "<a/>"}),
    Row("count_matches", 200),
    Row("put_feed", 200, NEWS, body={"mediator": MEDIATOR}),
    Row("put_feed", 422, NEWS, body={"mediator": {**MEDIATOR, "schema": ""}}),
    Row("get_feed", 200, NEWS),
    Row("list_subscriptions", 200, query={"trouble": "only"}),
    Row("list_deliveries", 200, {"id": "once"}),
    Row("publish", 202, NEWS, {"schema": "annex"}, body="<a/>"),
    Row("publish", 422, NEWS, {"schema": "cellar"}, body="<a/>"),
    Row("get_document", 200, {"sequence": "{publish.sequence}"}),
    Row("pull", 200, ADA),
    Row("explain", 200, query={"feed": "news", "schema": "annex"}, body="<a/>"),
    Row("put_feed", 201, {"feed": "brief"}, body={"retention": {"age": 60}}),
    Row("delete_feed", 200, {"feed": "brief"}),
    Row("delete_feed", 404, {"feed": "brief"}),
]


class Given(NamedTuple):
    """An answer: status, media type, and the value that its schema describes."""

    status: int
    media_type: str
    values: list[Any]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("openapi")) as found:
        yield found


@pytest.fixture(scope="module")
def answers(broker: Served) -> list[Given]:
    """The answers to all requests."""
    earlier: dict[str, Any] = {}
    return [_answer(broker, row, earlier) for row in REQUESTS]


def _answer(broker: Served, row: Row, earlier: dict[str, Any], token: str = "") -> Given:
    method, path, operation = OPERATIONS[row.operation]
    for name, value in row.path.items():
        path = path.replace(f"{{{name}}}", str(_filled(value, earlier)))
    headers, content = {**row.headers, **({"authorization": f"Bearer {token}"} if token else {})}, None
    if contents := operation.get("requestBody", {}).get("content"):
        headers["content-type"] = media_type = row.media_type or next(iter(contents))
        body = contents[media_type]["example"] if row.body is None else _filled(row.body, earlier)
        content = body if isinstance(body, str) else json.dumps(body)
    options: Any = {"params": _filled(row.query, earlier), "headers": headers, "content": content}
    with broker.http.stream(method, path, **options) as answer:
        kind = answer.headers.get("content-type", "").partition(";")[0]
        if kind == "text/event-stream":
            return Given(answer.status_code, kind, [_first_event(answer.iter_lines())])
        answer.read()
    is_json = kind.endswith("json")
    if is_json and answer.is_success and row.operation not in earlier:
        earlier[row.operation] = answer.json()
    return Given(answer.status_code, kind, [answer.json() if is_json else answer.text] if answer.content else [])


def _filled(value: Any, earlier: dict[str, Any]) -> Any:
    """A value with fields of earlier answers in the place of `{name.field}`."""
    if isinstance(value, Mapping):
        return {key: _filled(each, earlier) for key, each in value.items()}
    if isinstance(value, list):
        return [_filled(each, earlier) for each in value]
    if isinstance(value, str) and (found := re.fullmatch(r"\{(\w+)\.(\w+)\}", value)):
        return earlier[found[1]][found[2]]
    return value


def _first_event(lines: Iterator[str]) -> Any:
    for line in lines:
        if line.startswith("data: "):
            return json.loads(line.removeprefix("data: "))
    raise EOFError


def _strict(schema: Any) -> Any:
    """A schema whose objects have no fields but those that it lists."""
    if isinstance(schema, list):
        return [_strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: _strict(value) for key, value in schema.items()}
    return {"additionalProperties": False, **found} if isinstance(found.get("properties"), dict) else found


def _errors(schema: Any, value: Any, *, strict: bool = True) -> list[str]:
    """What is wrong with a value by a schema of the document."""
    if "contentSchema" in schema:
        schema = schema["contentSchema"]
    components = DOCUMENT["components"]
    whole = {**schema, "components": _strict(components) if strict else components}
    return [error.message for error in Draft202012Validator(whole).iter_errors(value)]


def test_the_document_is_valid() -> None:
    OpenAPIV31SpecValidator(DOCUMENT).validate()


def test_every_operation_has_a_request() -> None:
    assert set(OPERATIONS) - {row.operation for row in REQUESTS} == set()


@pytest.mark.parametrize("number", range(len(REQUESTS)), ids=[f"{row.operation}-{row.status}" for row in REQUESTS])
def test_an_answer_is_as_described(answers: list[Given], number: int) -> None:
    _check(REQUESTS[number], answers[number], REQUESTS[number].status)


def _check(row: Row, given: Given, *statuses: int) -> None:
    """An answer has one of some statuses, and is as described."""
    assert given.status in statuses, given
    responses = OPERATIONS[row.operation][2]["responses"]
    assert str(given.status) in responses
    content = responses[str(given.status)].get("content", {})
    if not given.values:
        assert content == {}
        return
    described = content.get(given.media_type, content.get("*/*"))
    assert described is not None, given.media_type
    if schema := described.get("schema"):
        assert [_errors(schema, value) for value in given.values] == [[]]


# Without the scope, some answers are other ones: a document that may not be read does not exist, nor another token's
# upload; a batch without documents needs no feed.
REFUSALS = {
    "list_recipients": (404,),
    "get_document": (404,),
    "explain": (403, 404),
    "post_subscriptions": (422,),
    "delete_upload": (404,),
    "commit_uploads": (200,),
}


def test_the_described_scopes_are_needed_and_suffice(tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    other = add_token(file, "one", "other", ["publish:other", "read:other", "subscribe:other"])[0]
    tokens = {}
    for name, (_, _, operation) in OPERATIONS.items():
        needed = [scope for each in operation["security"] for scope in each.get("token", ())]
        scopes = [re.sub(r"\{(\w+)\}", lambda found: "news" if found[1] == "feed" else "ada", each) for each in needed]
        tokens[name] = add_token(file, "one", "ada", scopes or ["subscribe:ada"])[0]
    earlier: dict[str, Any] = {}
    with served(tmp_path / "log", BrokerSettings(tokens=TokensSection(file=str(file)))) as broker:
        # Rejected requests have no effect: each is sent without a token, with a weak one, and with one that suffices.
        session = {"token": tokens["get_session"]}
        for row in (each._replace(body=session) if each.operation == "post_session" else each for each in REQUESTS):
            if row.status < 300:
                operation = OPERATIONS[row.operation][2]
                needs = [scope for each in operation["security"] for scope in each.get("token", ())]
                if operation["security"]:
                    _check(row, _answer(broker, row, earlier), 401)
                if needs:
                    _check(row, _answer(broker, row, earlier, other), *REFUSALS.get(row.operation, (403,)))
                _check(row, _answer(broker, row, earlier, tokens[row.operation]), row.status)


def test_answers_beyond_a_quota_are_as_described(tmp_path: Path) -> None:
    settings = BrokerSettings(quotas=Quotas(publish_rate=1, subscriptions=1))
    rows = [
        Row("publish", 202, NEWS),
        Row("publish", 429, NEWS),
        Row("put_subscription", 201, ADA),
        Row("put_subscription", 429, {"id": "second"}),
    ]
    with served(tmp_path, settings) as broker:
        for row in rows:
            _check(row, _answer(broker, row, {}), row.status)


def test_the_answer_of_a_standby_is_a_described_problem() -> None:
    problem = {"$ref": "#/components/schemas/Problem"}
    for active in ("", "http://other.example:8080"):
        answer = standby_response("/v1/feeds", active)
        assert answer.status_code == 503
        assert _errors(problem, json.loads(bytes(answer.body))) == []


def test_examples_fit_their_schemas() -> None:
    checked = 0
    for name, (_, _, operation) in OPERATIONS.items():
        for content in operation.get("requestBody", {}).get("content", {}).values():
            if "schema" in content:
                is_lines = "contentSchema" in content["schema"]
                values = map(json.loads, content["example"].splitlines()) if is_lines else [content["example"]]
                for value in values:
                    assert _errors(content["schema"], value) == [], name
                    checked += 1
    assert checked >= 10


def test_the_document_is_served_without_a_token_on_loopback(broker: Served) -> None:
    answer = broker.http.get("/openapi.json")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    assert answer.json() == DOCUMENT


def test_only_open_paths_need_no_token() -> None:
    assert {name for name, (_, _, operation) in OPERATIONS.items() if operation["security"] == []} == {
        "health",
        "ready",
        "post_session",
        "delete_session",
    }


def test_endpoints_read_parameters_with_what_describes_them() -> None:
    """`LIMIT.of(request)`, with LIMIT in `parameters=` of @describes: what is read is described."""
    folder = Path(application.__file__).parent
    direct = re.compile(r"query_params|[^_]whole_number\(request|request\.headers(\[|\.get|\.items)")
    files = {
        path.name
        for place in (folder, folder / "endpoints", folder / "inspection")
        for path in place.glob("*.py")
        if direct.search(path.read_text())
    }
    # The two that are not endpoints, and publications: any ce- header is an attribute.
    assert files == {"request_bodies.py", "documents_api.py"}


async def undescribed(request: Request) -> Response:
    """GET /v1/new: do something new."""
    return Response()


@describes("feeds", responses={200: dict[str, int]})
async def misplaced(request: Request) -> Response:
    """GET /v1/new: do something new."""
    return Response()


def test_a_route_needs_a_description_that_fits() -> None:
    with pytest.raises(DescriptionError, match="undescribed has no description; decorate it with @describes"):
        openapi([Route("/v1/new", undescribed, methods=["GET"])])
    for path, method in (("/v1/old", "GET"), ("/v1/new", "POST")):
        with pytest.raises(DescriptionError, match=r"but its docstring describes GET /v1/new"):
            openapi([Route(path, misplaced, methods=[method])])
    assert "/v1/new" in openapi([Route("/v1/new", misplaced, methods=["GET"])])["paths"]


def test_a_description_that_lacks_something_is_rejected() -> None:
    async def silent(request: Request) -> Response:
        return Response()

    async def unknown(request: Request) -> Response:
        """GET /v1/{what}: show it."""
        return Response()

    with pytest.raises(DescriptionError, match="must begin 'METHOD /path: summary'"):
        describes("feeds", responses={})(silent)
    with pytest.raises(DescriptionError, match="the path has {'what'}; describe it in parameters"):
        describes("feeds", responses={})(unknown)
    with pytest.raises(DescriptionError, match="unknown tag 'new'"):
        describes("new", responses={})(misplaced)
