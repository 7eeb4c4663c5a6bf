"""The sections of a pipeline file (pipeline_file.py), checked: what each says, with paths made absolute."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pathcast.documents import Entities, Limits

from ..files.file_options import SETTLE
from .pipeline_values import TRIGGERS, is_address

# Single mistakes make some subscriptions invalid; more than half are invalid when a setting, such as a prefix, is
# missing.
MAX_INVALID = 0.5


@dataclass(frozen=True)
class Source:
    """Where documents come from. One of `document` and `document_path` is the column that has them.

    A stream reads a file when it has not changed for `settle`.
    """

    format: str
    paths: tuple[str, ...]
    schema: str | None
    document: str | None
    document_path: str | None
    options: Mapping[str, str]
    settle: str = SETTLE
    entities: Entities = "refuse"

    @property
    def settles(self) -> bool:
        """Whether a stream reads these files with `stream_files`, which waits until they are complete."""
        return self.format in ("files", "binaryFile") and not any(map(is_address, self.paths))


@dataclass(frozen=True)
class Mediation:
    """Which mediator knows the documents' schemas, and the columns that name schema and version."""

    mediator: str
    schema: str
    version: str | None


@dataclass(frozen=True)
class OverlayPart:
    """An overlay: its topology (a file, or a tree), where documents are published, by which policy; where the traffic
    on its links goes.
    """

    topology: str | None
    levels: int | None
    fanout: int
    at: str | None
    policy: str
    keep: float
    links: str | None


@dataclass(frozen=True)
class SubscriptionSource:
    """An index, and the table that it is compiled from, if there is one; `shards`: it is in so many pieces.

    If more than the share `max_invalid` of the table is invalid, the run ends before it publishes anything.
    """

    index: str
    table: str | None
    table_format: str
    changes: str | None
    changes_format: str
    namespaces: Mapping[str, str] | Literal["ignore"] | None
    invalid: str | None
    shards: int | None = None
    max_invalid: float = MAX_INVALID


@dataclass(frozen=True)
class Sink:
    """Where rows go; `columns` are those of the source that go along, all when there are none."""

    format: str
    path: str | None
    mode: str
    columns: tuple[str, ...]
    options: Mapping[str, str]
    per: str = "document"
    by: str = "subscriber"
    document: str = "xml"


@dataclass(frozen=True)
class Stream:
    """How far a stream is, and when it takes its next micro-batch."""

    checkpoint: str
    trigger: str

    @property
    def ends(self) -> bool:
        """Whether the stream ends by itself."""
        return self.trigger in TRIGGERS


@dataclass(frozen=True)
class Joins:
    """Standing joins over tables whose rows are cut out of documents: schema file, subscriptions, sinks.

    `subscriptions` is a file of them, `versions` a folder in which they come and go; one of the two is there. `key` is
    the column of whole numbers that tells documents apart. `deliveries` has rows `per` subscription or message, by
    filters in so many `shards`; `contents` what new subscriptions have to begin with.
    """

    schema: str
    subscriptions: str | None
    scheme: str
    key: str
    messages: Sink
    dead_letters: str | None
    versions: str | None = None
    deliveries: str | None = None
    per: str = "subscription"
    shards: int | None = None
    contents: str | None = None


@dataclass(frozen=True)
class Pipeline:
    """A pipeline, checked as far as its file goes."""

    file: str
    name: str
    source: Source
    mediation: Mediation | None
    overlay: OverlayPart | None
    subscriptions: SubscriptionSource
    deliveries: Sink
    dead_letters: Sink | None
    joins: Joins | None
    stream: Stream | None
    limits: Limits
    spark: Mapping[str, str]
