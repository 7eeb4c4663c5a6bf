"""The keys of a pipeline file, declared once: what may stand there, what it means, what holds without it.

The file is read by these declarations (pipeline_file.py), the reference in docs/reference/pipeline-file.md is written
from them (`reference()`; a test holds the two together), and a run reads its settings from them, with absolute paths.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pathcast.documents import Entities, Limits
from pathcast.toml_files import NAMES, NUMBER, OPTIONS, PATH, PATHS, TEXT, choice, is_address, key, section
from pathcast.toml_files import reference as reference_of

from ..files.file_options import SETTLE
from .pipeline_values import INTERVAL_TEXT, NAMESPACES, POLICY, SHARE, SHARE_OR_NONE, TRIGGER, TRIGGERS

# In a folder of these a micro-batch has a folder of its own, which is replaced when the micro-batch is repeated.
FILE_FORMATS = ("parquet", "orc", "json", "csv", "text", "xml", "avro")
# Formats whose rows come from files, so that Spark can tell which one.
SOURCE_FILE_FORMATS = (*FILE_FORMATS, "binaryFile")
# The column that holds the documents when the file does not say which.
_DOCUMENT_COLUMNS = {"binaryFile": "content", "text": "value"}
# Single mistakes make some subscriptions invalid; more than half are invalid when a setting, such as a prefix, is
# missing.
MAX_INVALID = 0.5
# The schemes that can be cut by join value (docs/guides/joins.md).
_SCHEMES = ("ref-sj-clu+", "ref-sj-clu", "ref-sj-min", "ref-sj-sub", "ref-sj-tup", "enum-sj")
_NO_OPTIONS: dict[str, str] = {}


@dataclass(frozen=True, kw_only=True)
class Source:
    """Where documents come from. One of `document_column` and `path_column` is the column that has them."""

    format: str = key(
        TEXT,
        "A format of Spark (`parquet`, `text`, `binaryFile`, `json`, `kafka`, …), or `files`: XML files, one document "
        "each, that the workers open themselves.",
    )
    path: tuple[str, ...] = key(PATHS, "A folder, file or pattern, or a list of them.", ())
    schema: str | None = key(
        TEXT,
        'The columns, as in SQL: `"number long, xml binary"`. A stream of `parquet`, `orc`, `json`, `csv` needs it.',
        None,
        without="what the source says",
    )
    document: str | None = key(
        TEXT,
        "The column that holds the documents, binary or string.",
        None,
        without="`content` for `binaryFile`, `value` for `text`, else `xml`",
    )
    document_path: str | None = key(
        TEXT,
        "The column that holds the documents' paths, in place of `document`.",
        None,
        without="`path` for `files`",
    )
    options: Mapping[str, str] = key(
        OPTIONS,
        "Options of the format. For streams: `maxFilesPerTrigger`, `maxOffsetsPerTrigger` bound a micro-batch. A "
        "stream of `files` or `binaryFile` in a folder takes `maxFilesPerTrigger` or `maxBytesPerTrigger`, "
        "`latestFirst`, `pathGlobFilter`, `recursiveFileLookup` and `minPartitions`, and rejects others.",
        _NO_OPTIONS,
    )
    settle: str = key(
        INTERVAL_TEXT,
        "A stream of `files` or `binaryFile` in a folder reads a file when its size and modification time have not "
        "changed for this long. Other files are deferred, and counted in reports.",
        SETTLE,
    )
    entities: Entities = key(
        choice("refuse", "expand"),
        "Documents whose DOCTYPE declares entities: `refuse` makes them dead letters, `expand` reads internal entities "
        "within `limits.amplification`. External entities are never read.",
        "refuse",
    )

    @property
    def path_column(self) -> str | None:
        """The column that has the paths of documents which the workers open themselves."""
        return self.document_path or ("path" if self.format == "files" else None)

    @property
    def document_column(self) -> str:
        """The column that has the documents, where no column has their paths."""
        usual = "xml" if self.path_column is not None else _DOCUMENT_COLUMNS.get(self.format, "xml")
        return self.document or usual

    @property
    def settles(self) -> bool:
        """Whether a stream reads these files with `stream_files`, which waits until they are complete."""
        return self.format in ("files", "binaryFile") and not any(map(is_address, self.path))


@dataclass(frozen=True, kw_only=True)
class Mediation:
    """Which mediator knows the documents' schemas, and the columns that name schema and version."""

    mediator: str = key(
        PATH,
        "The folder that `mediator.save` wrote: the global schema, and the mappings of all publishers' schemas to it.",
    )
    schema: str = key(TEXT, "The column that names the schema of each document.", "publisher")
    version: str | None = key(
        TEXT,
        "The column that has the version of its mapping; where it is null, the newest.",
        None,
        without="the newest",
    )


@dataclass(frozen=True, kw_only=True)
class OverlayPart:
    """An overlay: its topology (a file, or a tree), where documents are published, by which policy; its traffic."""

    topology: str | None = key(
        PATH,
        "A TOML file of routers and links ([topology files](../guides/routing.md#topology-files)).",
        None,
        without="a tree of `levels`, or that of the index",
    )
    levels: int | None = key(
        NUMBER, "A complete tree with this number of levels and the root `r1`, in place of a file.", None
    )
    fanout: int = key(NUMBER, "How many routers each router of the tree has below it.", 2)
    at: str | None = key(TEXT, "The router at which documents are published.", None, without="the root")
    policy: str = key(
        POLICY,
        "When routers forward, and with which annotations: `L`, `L+s-sd`, `L+t`, `ES+sd`, `adaptive`, …",
        "L",
        without="`L`, the quickest on one machine",
    )
    keep: float = key(SHARE, "The part of the subscriptions' steps that advertisements keep.", 0.25)
    links: str | None = key(
        PATH,
        "Where the traffic on links goes, as Parquet: `sender`, `router`, `messages`, `bytes`, of those `annotations`.",
        None,
        without="not kept",
    )


@dataclass(frozen=True, kw_only=True)
class SubscriptionSource:
    """An index, and the table that it is compiled from, if there is one."""

    index: str = key(
        PATH,
        "The folder of the index: a snapshot or one with versions. With `table`, the folder that versions are "
        "published to. A stream takes up a new version with its next micro-batch. With `[overlay]`, an overlay, as "
        "`publish_overlay` writes it.",
    )
    table: str | None = key(
        PATH,
        "A table of `id`, `subscriber`, `xpath`, and with `[overlay]` `router`, compiled when the run starts.",
        None,
    )
    shards: int | None = key(
        NUMBER,
        "The number of parts of the index; a worker needs the memory of one. With `table`, it is built in parts.",
        None,
        without="one piece",
    )
    table_format: str | None = key(TEXT, "Its format.", None, without="by its ending, else `parquet`")
    changes: str | None = key(
        PATH,
        "A table of `id`, `subscriber`, `xpath`, `change` (`added`, `removed`), and with `[overlay]` `router`.",
        None,
    )
    changes_format: str | None = key(TEXT, "Its format.", None, without="by its ending, else `parquet`")
    namespaces: Mapping[str, str] | Literal["ignore"] | None = key(
        NAMESPACES,
        'A table of prefix and URI for the table\'s expressions, or `"ignore"` to match local names.',
        None,
    )
    invalid: str | None = key(PATH, "Where invalid subscriptions go, as Parquet, with the reason.", None)
    max_invalid: float = key(
        SHARE_OR_NONE,
        "The share of the table that may be invalid. If more is, the run ends before it publishes anything. `0` "
        "accepts no invalid row, `1` accepts any table.",
        MAX_INVALID,
    )

    @property
    def format_of_table(self) -> str:
        return self.table_format or _format_of(self.table)

    @property
    def format_of_changes(self) -> str:
        return self.changes_format or _format_of(self.changes)


def _format_of(path: str | None) -> str:
    name = (path or "").removesuffix(".gz")
    return next((form for form in ("csv", "json", "orc") if name.endswith(f".{form}")), "parquet")


@dataclass(frozen=True, kw_only=True)
class Sink:
    """Where rows go."""

    format: str = key(TEXT, "A format that Spark writes.", "parquet")
    path: str | None = key(PATH, "The folder or table to write to.", None)
    mode: str = key(
        choice("append", "overwrite", "ignore", "error"),
        "For a batch whose output already exists: `error`: end before anything starts. `append`: add rows. "
        "`overwrite`: replace it. `ignore`: write nothing.",
        "error",
    )
    options: Mapping[str, str] = key(OPTIONS, "Options of the format.", _NO_OPTIONS)


@dataclass(frozen=True, kw_only=True)
class DocumentSink(Sink):
    """Where rows go with columns of the source."""

    columns: tuple[str, ...] = key(NAMES, "The columns of the source to keep.", (), without="all")


@dataclass(frozen=True, kw_only=True)
class Deliveries(DocumentSink):
    """Where matched documents go."""

    per: Literal["subscriber", "document", "message"] = key(
        choice("subscriber", "document", "message"),
        "`subscriber`: a row for each document and subscriber. `document`: a row for each document that somebody "
        "wants, with the list of them. `message`: RoXSum messages, each with documents of one subscriber.",
        "subscriber",
    )
    by: Literal["subscriber", "id"] = key(
        choice("subscriber", "id"),
        'What that list has with `per = "document"`: `subscriber`: names of subscribers. `id`: ids of subscriptions, '
        "in `matches`.",
        "subscriber",
    )


@dataclass(frozen=True, kw_only=True)
class Joins(Sink):
    """Standing joins over tables whose rows are cut out of documents: schema file, subscriptions, where messages go.

    `subscriptions` is a file of them, `versions` a folder in which they come and go; one of the two is there.
    """

    schema: str = key(PATH, "A [schema file](../guides/joins.md#schema-files).")
    subscriptions: str | None = key(
        PATH,
        "Standing joins: a CSV file of `subscriber` and `query`, or a text file with a query per line and comments "
        "that begin with `--`. With `versions` "
        "it is compared with the newest one when the run starts, and by `--publish`: what is new in it is subscribed, "
        "what is missing is not any more.",
        None,
        without="those of `versions`",
    )
    versions: str | None = key(
        PATH,
        "The folder that versions of the subscriptions are published to, by `subscriptions` or by a program "
        "(`publish_joins`). A stream takes up a new version with its next micro-batch. Local, or mounted on driver and "
        "workers alike.",
        None,
        without="none: subscriptions stay as they are when the run starts",
    )
    scheme: str = key(
        choice(*_SCHEMES),
        f"What is sent, [by scheme](../guides/joins.md#schemes): {', '.join(f'`{scheme}`' for scheme in _SCHEMES)}.",
        "ref-sj-clu+",
    )
    path: str = key(PATH, "The folder or table to write messages to.")
    deliveries: str | None = key(
        PATH,
        "Where messages go by subscription, as Parquet: the columns of messages, `subscription` and `subscriber`.",
        None,
        without="not kept",
    )
    per: Literal["subscription", "message"] = key(
        choice("subscription", "message"),
        "Of deliveries: `subscription`: a row for each message and subscription that it concerns. `message`: a row for "
        "each message that concerns somebody, and shard, with the list `subscriptions`.",
        "subscription",
    )
    shards: int | None = key(
        NUMBER,
        "For deliveries, the number of workers that share the subscriptions; each needs the memory of its part.",
        None,
        without="one piece",
    )
    contents: str | None = key(
        PATH,
        "Where the initial content goes of subscriptions that are new in a micro-batch, as Parquet: `subscription`, "
        "`subscriber`, `edge`, `join_value`, `message`.",
        None,
        without="not kept; `initial_contents` has it for the last 100 micro-batches",
    )
    dead_letters: str | None = key(
        PATH,
        "Where rows go that can't be cut out, and changes that can't be made, as Parquet, with the reason.",
        None,
        without="counted, not kept",
    )
    key: str = key(TEXT, "A column of whole numbers that tells documents apart, later ones with larger numbers.")


@dataclass(frozen=True, kw_only=True)
class Stream:
    """How far a stream is, and when it takes its next micro-batch."""

    checkpoint: str = key(
        PATH,
        "The folder in which the stream records its progress, and which version of the index each micro-batch uses. "
        "Local, or mounted on driver and workers alike.",
    )
    trigger: str = key(
        TRIGGER,
        "`available-now`: read all existing documents in micro-batches, then end. `once`: the same in one micro-batch. "
        'An interval, such as `"10 seconds"`: one micro-batch each, until stopped; `"0 seconds"`: one after the other.',
        "available-now",
    )

    @property
    def ends(self) -> bool:
        """Whether the stream ends by itself."""
        return self.trigger in TRIGGERS


@dataclass(frozen=True, kw_only=True)
class Pipeline:
    """A pipeline, checked as far as its file goes."""

    file: str = ""
    name: str = key(TEXT, "What Spark and the progress lines call it.", "", without="the file's name")
    spark: Mapping[str, str] = key(
        OPTIONS,
        "Settings of the Spark session that the run starts, such as `spark.sql.shuffle.partitions = 8`.",
        _NO_OPTIONS,
    )
    source: Source = section(Source, "Where documents come from: any format that Spark reads.", required=True)
    mediation: Mediation | None = section(
        Mediation,
        "For documents of several schemas: they are matched in one of their own, and delivered as they came.",
    )
    overlay: OverlayPart | None = section(
        OverlayPart, "Documents go through an overlay of routers, at one of which each subscriber has subscribed."
    )
    subscriptions: SubscriptionSource = section(
        SubscriptionSource,
        "Who wants what: an index, or a table that is compiled to one before the pipeline starts.",
        required=True,
    )
    deliveries: Deliveries = section(Deliveries, "Where matched documents go.", required=True)
    dead_letters: DocumentSink | None = section(
        DocumentSink,
        "Where documents go that can't be read. Without this section they are counted and not kept.",
    )
    joins: Joins | None = section(
        Joins, "Rows are cut out of the same documents, and standing joins over their tables get messages."
    )
    stream: Stream | None = section(Stream, "With this section the pipeline is a stream, without it one batch.")
    limits: Limits = section(
        Limits, "What a document may bring before it is refused and becomes a dead letter.", filled=True
    )


def reference() -> str:
    """The reference of all keys, in Markdown: a table per section."""
    return reference_of(Pipeline, "The pipeline as a whole.", "##")
