"""A subscription as clients write it: a CloudEvents Subscription object, with a filter dialect of ours.

    {"subscriber": "ada", "feeds": ["news"],
     "filters": [{"xpath": {"expression": "//f:quote[@price > 5]", "namespaces": {"f": "urn:f"}}}],
     "sink": "https://example.org/hook",
     "config": {"from": "now", "in_flight": 256, "ack_wait": 30, "max_deliver": 10}}

`{"xpath": "//title"}` is short for a filter without namespaces.
"""

from typing import Annotated, Any, Final, NotRequired, TypedDict

from msgspec import Meta, Struct, field

from pathcast.broker_log import StandingSubscription, SubscriptionRecord
from pathcast.errors import PathcastError
from pathcast.log import Log
from pathcast.patterns import parse

from ..problems import ProblemError, problem_of
from ..request_context import checked_name
from ..sender_access_rights import Access
from .delivery_start import sequence_of

# Bounds on one expression and its namespaces.
NAMESPACES: Final = 64
FEEDS: Final = 256


class XPathFilter(Struct, forbid_unknown_fields=True):
    """An XPath expression, and the namespaces of its prefixes."""

    expression: str
    namespaces: dict[str, str] = {}


class Filter(Struct, forbid_unknown_fields=True):
    """One filter; `xpath` is the only dialect."""

    xpath: XPathFilter


class Config(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """How deliveries are made. `from`: the first document, as `now`, a sequence or a time. `paused`: pulls and webhooks
    get nothing, and continue where they were; event streams have positions of their own.
    """

    begin: int | str = field(name="from", default="now")
    in_flight: Annotated[int, Meta(ge=1, le=65_536)] = 256
    ack_wait: Annotated[float, Meta(gt=0, le=43_200)] = 30.0
    max_deliver: Annotated[int, Meta(ge=1, le=1_000_000)] | None = None
    concurrency: Annotated[int, Meta(ge=1, le=64)] = 1
    paused: bool = False


class Definition(Struct, forbid_unknown_fields=True):
    """What a client sends to create or change a subscription."""

    id: str | None = None
    subscriber: str | None = None
    feeds: list[str] = []
    filters: list[Filter] | None = None
    xpath: str | None = None
    sink: str | None = None
    config: Config = field(default_factory=Config)

    def filter(self) -> XPathFilter:
        """The one filter of the definition."""
        if (self.xpath is None) == (self.filters is None):
            raise ProblemError(
                422,
                "a subscription must have exactly one of xpath and filters, got "
                f"{'neither' if self.xpath is None else 'both'}; send for example "
                '{"xpath": "//title"}',
            )
        if self.xpath is not None:
            return XPathFilter(self.xpath)
        if self.filters is None or len(self.filters) != 1:
            raise ProblemError(
                422, f"filters has {len(self.filters or [])} items; give one xpath filter (join tests with and)"
            )
        return self.filters[0].xpath


def record_of(definition: Definition, id: str, access: Access, log: Log) -> SubscriptionRecord:
    """The checked record of a subscription."""
    if definition.id not in (None, id):
        raise ProblemError(
            422,
            f"the body has id {definition.id!r}, but the path has id {id!r}; give the same id, or omit it in the body",
        )
    subscriber = checked_name(definition.subscriber or access.name, "subscriber")
    access.check_subscriber(subscriber)
    if len(definition.feeds) > FEEDS:
        raise ProblemError(422, f"feeds has {len(definition.feeds)} items; give at most {FEEDS}, or none for all feeds")
    for feed in definition.feeds:
        access.check_read(checked_name(feed, "feed"))
    if not definition.feeds and access.read is not None:
        raise ProblemError(
            403,
            "feeds is empty, which means all feeds, but this token reads only some; name feeds that the token reads",
        )
    wanted = definition.filter()
    if len(wanted.namespaces) > NAMESPACES:
        raise ProblemError(422, f"namespaces has {len(wanted.namespaces)} items; give at most {NAMESPACES}")
    try:
        pattern = str(parse(wanted.expression, wanted.namespaces or None))
    except PathcastError as error:
        raise problem_of(error) from None
    except (TypeError, ValueError) as error:
        raise ProblemError(422, str(error)) from None
    config = definition.config
    settings: dict[str, Any] = {"in_flight": config.in_flight, "ack_wait": config.ack_wait}
    if config.max_deliver is not None:
        settings["max_deliver"] = config.max_deliver
    if config.concurrency != 1:
        settings["concurrency"] = config.concurrency
    if config.paused:
        settings["paused"] = True
    return SubscriptionRecord(
        access.tenant,
        id,
        subscriber,
        wanted.expression,
        pattern,
        wanted.namespaces,
        tuple(dict.fromkeys(definition.feeds)),
        definition.sink,
        settings,
        sequence_of(config.begin, log, "config.from"),
    )


class ShownXPath(TypedDict):
    """An expression, and the namespaces of its prefixes."""

    expression: str
    namespaces: NotRequired[dict[str, str]]


class ShownFilter(TypedDict):
    """A filter as clients read it."""

    xpath: ShownXPath


class Subscription(TypedDict):
    """A subscription as clients read it: matched with documents from `valid_from` on, created by record `created`."""

    id: str
    subscriber: str
    feeds: list[str]
    filters: list[ShownFilter]
    sink: NotRequired[str]
    config: dict[str, Any]
    created: int
    valid_from: int
    ordinal: int
    dead_letters: NotRequired[int]
    disabled: NotRequired[str]  # why its webhook is sent nothing
    secret: NotRequired[str]  # when it is created, if it has a sink


def shown(id: str, standing: StandingSubscription) -> Subscription:
    """A subscription as clients read it."""
    record = standing.record
    xpath: ShownXPath = {"expression": record.expression}
    if record.namespaces:
        xpath["namespaces"] = record.namespaces
    found: Subscription = {
        "id": id,
        "subscriber": record.subscriber,
        "feeds": list(record.feeds),
        "filters": [{"xpath": xpath}],
        "config": record.config,
        "created": standing.created,
        "valid_from": standing.current.begin,
        "ordinal": standing.current.ordinal,
    }
    if record.sink is not None:
        found["sink"] = record.sink
    if standing.disabled is not None:
        found["disabled"] = standing.disabled
    if standing.dead is not None and standing.dead.letters:
        found["dead_letters"] = len(standing.dead.letters)
    return found
