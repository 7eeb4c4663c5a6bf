"""Calls about subscriptions: create, read, list, check and end them."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from msgspec import Struct, json

from .calls import JSON, Answer, Call, begin_of, path_of
from .results import Subscription

_PAGE: Final = 1_000


class _XPath(Struct):
    expression: str
    namespaces: dict[str, str] = {}


class _Filter(Struct):
    xpath: _XPath


class _Subscription(Struct):
    id: str
    subscriber: str
    feeds: tuple[str, ...]
    filters: tuple[_Filter, ...]
    valid_from: int
    created: int
    config: dict[str, Any] = {}
    sink: str | None = None

    def result(self) -> Subscription:
        xpath = self.filters[0].xpath
        return Subscription(
            self.id, self.subscriber, xpath.expression, xpath.namespaces, self.feeds, self.valid_from, self.created,
            self.config, self.sink,
        )  # fmt: skip


class _Page(Struct):
    subscriptions: list[_Subscription]
    next: str | None = None


def _filters(xpath: str, namespaces: Mapping[str, str] | None) -> dict[str, Any]:
    return {"filters": [{"xpath": {"expression": xpath, "namespaces": dict(namespaces or {})}}]}


def subscribe(
    id: str,
    xpath: str,
    feeds: Iterable[str] | str,
    namespaces: Mapping[str, str] | None,
    start: int | str | datetime,
    subscriber: str | None,
    sink: str | None,
    config: Mapping[str, float | None],
) -> Call[Subscription]:
    """Create or change a subscription."""
    begin = begin_of(start)
    definition: dict[str, Any] = _filters(xpath, namespaces)
    definition["feeds"] = [feeds] if isinstance(feeds, str) else list(feeds)
    definition["config"] = {"from": begin, **{key: value for key, value in config.items() if value is not None}}
    if subscriber is not None:
        definition["subscriber"] = subscriber
    if sink is not None:
        definition["sink"] = sink
    return Call(
        "PUT", path_of(id), lambda answer: answer.decoded(_Subscription).result(), json.encode(definition), JSON
    )


def subscription(id: str) -> Call[Subscription]:
    """Read a subscription."""
    return Call("GET", path_of(id), lambda answer: answer.decoded(_Subscription).result())


def secret(id: str) -> Call[str]:
    """Read what the webhooks of a subscription are signed with."""
    return Call("GET", path_of(id, "/secret"), lambda answer: answer.decoded(dict[str, str])["secret"])


def unsubscribe(id: str) -> Call[None]:
    """End a subscription."""

    def read(answer: Answer) -> None:
        # An earlier attempt may have ended the subscription without its answer coming through.
        if answer.status != 404 or answer.attempt == 1:
            answer.decoded(dict)

    return Call("DELETE", path_of(id), read)


def subscriptions(after: str, subscriber: str | None) -> Call[tuple[list[Subscription], str | None]]:
    """A page of subscriptions, and where the next begins."""

    def read(answer: Answer) -> tuple[list[Subscription], str | None]:
        page = answer.decoded(_Page)
        return [each.result() for each in page.subscriptions], page.next

    query = {"limit": str(_PAGE), "after": after}
    if subscriber is not None:
        query["subscriber"] = subscriber
    return Call("GET", "/v1/subscriptions", read, query=query)


def check(xpath: str, namespaces: Mapping[str, str] | None) -> Call[str]:
    """Parse an expression without saving it."""

    def read(answer: Answer) -> str:
        return answer.decoded(dict[str, str])["normal_form"]

    return Call("POST", "/v1/subscriptions:check", read, json.encode(_filters(xpath, namespaces)), JSON)
