"""What the broker writes to its log: the kinds of records, each with a typed `meta` in JSON.

    document        a document; the body is its bytes as they came. `error` if it cannot be matched (a dead letter)
    batch           a publisher's batch was published: the documents of the same append, all or none
    subscription    a subscription begins, or changes
    unsubscription  a subscription ends
    cursor          a subscriber acknowledged deliveries
    dead_letter     deliveries are given up; dead_letter_replay: they are due again
    feed            a feed's settings, with the mappings by which its documents are matched, if there are any
    expiry          documents of a feed that are no longer delivered
    sink_disabled   a subscription's webhook is sent nothing more, until the subscription is put again
    settings        the settings of all feeds, and the version of what matching means
    tenant          a tenant's settings: its guard

JSON, so that an operator can read the log with nothing but `sqlite3`. Readers ignore fields that they do not know.
"""

from typing import Any, Final

from msgspec import DecodeError, Struct, ValidationError, field, json

from pathcast.errors import PathcastError
from pathcast.log import LogEntry, LogError, LogRecord

from .dead_letters import DeadLetterRecord, DeadLetterReplayRecord

# Raised when a document may match other patterns than before: a newer reading of XML, a newer meaning of XPath.
SEMANTICS: Final = 1
# What is in force before the first settings record of a log.
ORIGINAL_LIMITS: Final = {
    "depth": 1_000,
    "size": 128 << 20,
    "attributes": 4_096,
    "names": 65_536,
    "name_length": 4_096,
    "amplification": 20,
    "work": 1 << 27,
    "evaluation": 1 << 22,
}


class Failure(Struct, frozen=True, omit_defaults=True):
    """Why a document cannot be read or matched."""

    reason: str
    line: int | None = None
    column: int | None = None

    @classmethod
    def of(cls, error: PathcastError) -> "Failure":
        """The failure that an error describes."""
        return cls(error.reason, error.line, error.column)


class DocumentRecord(Struct, frozen=True, omit_defaults=True):
    """A document of a feed. `id` is the publisher's own, for deduplication; `attributes` are the CloudEvent's.

    `schema`: it is matched by the mapping of this name that is in force at its sequence (feed_mediators.py).
    """

    feed: str
    publisher: str = ""
    id: str | None = None
    media_type: str = "application/xml"
    attributes: dict[str, str] = {}
    error: Failure | None = None
    schema: str | None = None


class BatchRecord(Struct, frozen=True, omit_defaults=True):
    """A publisher's batch: its documents are the records before this one, in the same append.

    documents: how many the log has got; duplicates: how many it had already, under the same ids; kept: how many of
    `documents` cannot be read and were kept as dead letters.
    """

    publisher: str
    batch: str
    documents: int
    duplicates: int = 0
    kept: int = 0


class SubscriptionRecord(Struct, frozen=True, omit_defaults=True, gc=False):
    """A version of a subscription. `pattern` is the expression in normal form, without prefixes."""

    tenant: str
    id: str
    subscriber: str
    expression: str
    pattern: str
    namespaces: dict[str, str] = {}
    feeds: tuple[str, ...] = ()
    sink: str | None = None
    config: dict[str, Any] = {}
    begin: int | None = None  # the first sequence that it matches, if that is not its own


class SinkDisabledRecord(Struct, frozen=True):
    """The webhook of a subscription is disabled; without effect if its sink has changed since."""

    tenant: str
    id: str
    sink: str
    reason: str


class UnsubscriptionRecord(Struct, frozen=True):
    """A subscription ends."""

    tenant: str
    id: str


class CursorRecord(Struct, frozen=True, omit_defaults=True):
    """A subscription's cursor: all deliveries up to `floor` are acknowledged, and those in `acknowledged`."""

    tenant: str
    id: str
    floor: int
    acknowledged: tuple[int, ...] = ()
    settled: tuple[int, ...] = ()  # revived dead letters that are acknowledged, or dead again
    replay: bool = False  # everything above the floor is delivered again, whatever was acknowledged or is out


class FeedMediator(Struct, frozen=True):
    """The schema that a feed's subscriptions use, and by the names of publishers' schemas, their mappings to it.

    The schema is an indented text, as `str(SchemaTree)`; a mapping is a text in TOML, as `Mapping.write` makes it.
    """

    schema: str
    mappings: dict[str, str]


class FeedRecord(Struct, frozen=True, omit_defaults=True):
    """The settings of a feed. A limit that is missing is that of all feeds.

    keep_seconds, keep_bytes: how long, and how much of it, documents are delivered; expiry records carry that out.
    mediator: documents from here on are matched in its schema; None matches them as they are.
    matching: who matches documents from here on (feed_matching.py): "broker", or "spark".
    creator: the tenant whose request created the feed, if it is known; a quota counts it.
    """

    name: str
    limits: dict[str, int] = {}
    removed: bool = False
    keep_seconds: float | None = None
    keep_bytes: int | None = None
    mediator: FeedMediator | None = None
    matching: str = "broker"
    creator: str | None = None


class ExpiryRecord(Struct, frozen=True, omit_defaults=True):
    """The documents of a feed before a sequence are no longer delivered to anybody; `before` None is its own."""

    feed: str
    before: int | None = None


class SettingsRecord(Struct, frozen=True):
    """The settings of all feeds. `semantics`: the version of what matching means."""

    limits: dict[str, int] = field(default_factory=ORIGINAL_LIMITS.copy)
    semantics: int = SEMANTICS


class TenantRecord(Struct, frozen=True, omit_defaults=True):
    """The settings of a tenant. Documents that do not match `pattern` are hidden from it; None hides nothing."""

    tenant: str
    guard: str | None = None
    pattern: str | None = None  # the guard in normal form, without prefixes
    namespaces: dict[str, str] = {}
    begin: int | None = None  # the first document that it applies to, if that is not the next one


Meta = (
    DocumentRecord
    | BatchRecord
    | SubscriptionRecord
    | UnsubscriptionRecord
    | CursorRecord
    | FeedRecord
    | ExpiryRecord
    | SettingsRecord
    | TenantRecord
    | DeadLetterRecord
    | DeadLetterReplayRecord
    | SinkDisabledRecord
)
DOCUMENT: Final = "document"
KINDS: Final[dict[str, type[Meta]]] = {
    DOCUMENT: DocumentRecord,
    "batch": BatchRecord,
    "subscription": SubscriptionRecord,
    "unsubscription": UnsubscriptionRecord,
    "cursor": CursorRecord,
    "feed": FeedRecord,
    "expiry": ExpiryRecord,
    "settings": SettingsRecord,
    "tenant": TenantRecord,
    "dead_letter": DeadLetterRecord,
    "dead_letter_replay": DeadLetterReplayRecord,
    "sink_disabled": SinkDisabledRecord,
}
_KIND_OF: Final = {of: kind for kind, of in KINDS.items()}
_DECODERS: Final = {kind: json.Decoder(of) for kind, of in KINDS.items()}
_encode = json.Encoder().encode


def log_record(meta: Meta, body: bytes = b"") -> LogRecord:
    """The record of a log with this content."""
    return LogRecord(_KIND_OF[type(meta)], _encode(meta), body)


def meta_of(entry: LogEntry) -> Meta | None:
    """The content of a log's record; None if a later version of Pathcast wrote a kind that this one does not know."""
    decoder = _DECODERS.get(entry.kind)
    if decoder is None:
        return None
    try:
        return decoder.decode(entry.meta)
    except (DecodeError, ValidationError) as error:
        raise LogError(
            f"record {entry.sequence} of the log ({entry.kind}) is malformed: {error}; restore the log from a backup"
        ) from None
