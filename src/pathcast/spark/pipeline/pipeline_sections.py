"""The keys of a pipeline file, declared once: its kind of value, its meaning, its default.

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
from .pipeline_value_kinds import INTERVAL_TEXT, NAMESPACES, POLICY, SHARE, SHARE_OR_NONE, TRIGGER, TRIGGERS

# File formats: each micro-batch is written to its own folder, which a repetition replaces.
FILE_FORMATS = ("parquet", "orc", "json", "csv", "text", "xml", "avro")
# Delta tables, each with the rows of micro-batches once (delta_tables.py).
DELTA = "delta"
# Formats whose rows come from files, so that Spark knows the file of a row.
SOURCE_FILE_FORMATS = (*FILE_FORMATS, "binaryFile")
# The documents of a broker's log (log/log_data_source.py).
LOG_FORMAT = "pathcast"
# The column of documents if the pipeline file does not name one.
_DOCUMENT_COLUMNS = {"binaryFile": "content", "text": "value", LOG_FORMAT: "body"}
# Typing errors make a few subscriptions invalid; more than half are invalid when a setting, such as a prefix, is
# missing.
MAX_INVALID = 0.5
# The schemes that can be cut by join value (docs/guides/joins.md).
_SCHEMES = ("ref-sj-clu+", "ref-sj-clu", "ref-sj-min", "ref-sj-sub", "ref-sj-tup", "enum-sj")
_NO_OPTIONS: dict[str, str] = {}


@dataclass(frozen=True, kw_only=True)
class Source:
    """Where documents come from. Either `document_column` or `path_column` holds them."""

    format: str = key(
        TEXT,
        "A format of Spark (`parquet`, `text`, `binaryFile`, `json`, `kafka`, …), or `files`: XML files, one document "
        "each, that the workers open themselves. `pathcast`: the [log of a broker](../guides/log-on-spark.md).",
    )
    path: tuple[str, ...] = key(PATHS, "A folder, file or pattern, or a list of them.", ())
    schema: str | None = key(
        TEXT,
        'The columns, as in SQL: `"number long, xml binary"`. A stream of `parquet`, `orc`, `json`, `csv` needs it.',
        None,
        without="from the source",
    )
    document: str | None = key(
        TEXT,
        "The column that holds the documents, binary or string.",
        None,
        without="`content` for `binaryFile`, `value` for `text`, `body` for `pathcast`, otherwise `xml`",
    )
    document_path: str | None = key(
        TEXT,
        "The column that holds the documents' paths, instead of `document`.",
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
        "Documents whose DOCTYPE declares entities: `refuse` turns them into dead letters, `expand` reads internal "
        "entities within `limits.amplification`. External entities are never read.",
        "refuse",
    )
    split: str | None = key(
        TEXT,
        "Make a document of each [entry](../guides/entries.md) of a file: the path that selects the entries, such as "
        '`"/feed/entry"`. Adds the columns `entry` (its number) and `offset`; the entry is in the column of documents, '
        "or in `xml` if the column of documents is one of paths.",
        None,
        without="a file is one document",
    )
    namespaces: Mapping[str, str] | Literal["ignore"] | None = key(
        NAMESPACES,
        'A table of prefix and URI for `split`, or `"ignore"` to match local names.',
        None,
    )

    @property
    def file_column(self) -> str | None:
        """The column of paths, if the workers open the files of documents or entries themselves."""
        return self.document_path or ("path" if self.format == "files" else None)

    @property
    def path_column(self) -> str | None:
        """The column of paths, if the workers open the documents themselves when they match them."""
        return self.file_column if self.split is None else None

    @property
    def document_column(self) -> str:
        """The column of documents, if there is no column of paths."""
        usual = "xml" if self.file_column is not None else _DOCUMENT_COLUMNS.get(self.format, "xml")
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
        "The column with the version of its mapping; null means the newest.",
        None,
        without="the newest",
    )


@dataclass(frozen=True, kw_only=True)
class OverlayPart:
    """An overlay: its topology (a file, or a tree), the router of publication, the policy, and the traffic."""

    topology: str | None = key(
        PATH,
        "A TOML file of routers and links ([topology files](../guides/routing.md#topology-files)).",
        None,
        without="a tree of `levels`, or the topology of the index",
    )
    levels: int | None = key(
        NUMBER, "A complete tree with this number of levels and the root `r1`, in place of a file.", None
    )
    fanout: int = key(NUMBER, "The number of children of each router in the tree.", 2)
    at: str | None = key(TEXT, "The router at which documents are published.", None, without="the root")
    policy: str = key(
        POLICY,
        "The forwarding policy of the routers, with its annotations: `L`, `L+s-sd`, `L+t`, `ES+sd`, `adaptive`, …",
        "L",
        without="`L`, the fastest on one machine",
    )
    keep: float = key(SHARE, "The share of the subscriptions' steps that advertisements keep.", 0.25)
    links: str | None = key(
        PATH,
        "The folder for the traffic on links, as Parquet: `sender`, `router`, `messages`, `bytes`, of those "
        "`annotations`, and what annotations saved: the `patterns` of the receiving router, summed over messages, "
        "those `skipped`, and the messages that it passed on `unread`.",
        None,
        without="not kept",
    )


@dataclass(frozen=True, kw_only=True)
class SubscriptionSource:
    """An index, and the table that it is compiled from, if any."""

    index: str = key(
        PATH,
        "The folder of the index: a snapshot, or a folder with versions. With `table`, versions are published to this "
        "folder. A stream uses a new version from its next micro-batch on. With `[overlay]`, an overlay, as "
        "`publish_overlay` writes it.",
        "",
        without="of a source in format `pathcast`: the subscriptions of the log; otherwise needed",
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
    table_format: str | None = key(TEXT, "Its format.", None, without="by its suffix, otherwise `parquet`")
    changes: str | None = key(
        PATH,
        "A table of `id`, `subscriber`, `xpath`, `change` (`added`, `removed`), and with `[overlay]` `router`.",
        None,
    )
    changes_format: str | None = key(TEXT, "Its format.", None, without="by its suffix, otherwise `parquet`")
    namespaces: Mapping[str, str] | Literal["ignore"] | None = key(
        NAMESPACES,
        'A table of prefix and URI for the table\'s expressions, or `"ignore"` to match local names.',
        None,
    )
    invalid: str | None = key(PATH, "The folder for invalid subscriptions, as Parquet, with the reason.", None)
    max_invalid: float = key(
        SHARE_OR_NONE,
        "The share of the table that may be invalid. If it is exceeded, the run ends before it publishes anything. `0` "
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

    format: str = key(
        TEXT,
        "A format that Spark writes. `delta` with a folder as path: a Delta table that gets each micro-batch exactly "
        "once, without jars (`pathcast[delta]`).",
        "parquet",
    )
    path: str | None = key(PATH, "The folder or table to write to.", None)
    mode: str = key(
        choice("append", "overwrite", "ignore", "error"),
        "For a batch whose output already exists: `error`: end before anything starts. `append`: add rows. "
        "`overwrite`: replace it. `ignore`: write nothing.",
        "error",
    )
    options: Mapping[str, str] = key(OPTIONS, "Options of the format.", _NO_OPTIONS)

    @property
    def is_delta_folder(self) -> bool:
        """Whether the sink is a Delta table in a folder; Spark writes those at remote addresses, with Delta's jars."""
        return self.format == DELTA and self.path is not None and not is_address(self.path)


@dataclass(frozen=True, kw_only=True)
class DocumentSink(Sink):
    """Where rows go, together with columns of the source."""

    columns: tuple[str, ...] = key(NAMES, "The columns of the source to keep.", (), without="all")


@dataclass(frozen=True, kw_only=True)
class Deliveries(DocumentSink):
    """The output for matched documents."""

    per: Literal["subscriber", "subscription", "document", "message"] | None = key(
        choice("subscriber", "subscription", "document", "message"),
        "`subscriber`: a row for each document and subscriber. `document`: a row for each document that matches, with "
        "the list of its subscribers. `message`: RoXSum messages, each with documents of one subscriber. "
        "With the subscriptions of a log, `subscription`: a row for each document and subscription, with `tenant`, "
        "`subscription`, `subscriber`; `document`: with the list `subscriptions` of these.",
        None,
        without="`subscriber`; with the subscriptions of a log `subscription`",
    )
    by: Literal["subscriber", "id"] = key(
        choice("subscriber", "id"),
        'The content of this list with `per = "document"`: `subscriber`: names of subscribers. `id`: ids of '
        "subscriptions, in `matches`.",
        "subscriber",
    )


@dataclass(frozen=True, kw_only=True)
class Joins(Sink):
    """Standing joins over tables whose rows are extracted from documents: schema file, subscriptions, output.

    `subscriptions` is a file, `versions` a folder of versions that change while a stream runs; one of them is given.
    """

    schema: str = key(PATH, "A [schema file](../guides/joins.md#schema-files).")
    subscriptions: str | None = key(
        PATH,
        "Standing joins: a CSV file of `subscriber` and `query`, or a text file with a query per line and comments "
        "that begin with `--`. With `versions` the file is compared with the newest version when the run starts, and "
        "by `--publish`: new lines are subscribed, missing lines are unsubscribed.",
        None,
        without="those of `versions`",
    )
    versions: str | None = key(
        PATH,
        "The folder that versions of the subscriptions are published to, by `subscriptions` or by a program "
        "(`publish_joins`). A stream uses a new version from its next micro-batch on. Local, or mounted on driver and "
        "all workers.",
        None,
        without="none: subscriptions do not change during a run",
    )
    scheme: str = key(
        choice(*_SCHEMES),
        f"The [scheme](../guides/joins.md#schemes) of the messages: {', '.join(f'`{scheme}`' for scheme in _SCHEMES)}.",
        "ref-sj-clu+",
    )
    path: str = key(PATH, "The folder or table to write messages to.")
    deliveries: str | None = key(
        PATH,
        "The folder for messages by subscription, as Parquet: the columns of messages, `subscription` and "
        "`subscriber`.",
        None,
        without="not kept",
    )
    per: Literal["subscription", "message"] = key(
        choice("subscription", "message"),
        "For deliveries: `subscription`: a row for each message and subscription that it concerns. `message`: a row "
        "for each message that concerns a subscription, and shard, with the list `subscriptions`.",
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
        "The folder for the initial contents of subscriptions that are new in a micro-batch, as Parquet: "
        "`subscription`, `subscriber`, `edge`, `join_value`, `message`.",
        None,
        without="not kept; `initial_contents` has it for the last 100 micro-batches",
    )
    dead_letters: str | None = key(
        PATH,
        "The folder for rows that cannot be extracted and changes that cannot be applied, as Parquet, with the reason.",
        None,
        without="counted, not kept",
    )
    key: str = key(TEXT, "A column of whole numbers that identifies documents; later documents have larger numbers.")


@dataclass(frozen=True, kw_only=True)
class Stream:
    """The progress of a stream, and when it starts its next micro-batch."""

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
        """Whether the stream ends without being stopped."""
        return self.trigger in TRIGGERS


@dataclass(frozen=True, kw_only=True)
class Pipeline:
    """A pipeline whose file has been checked."""

    file: str = ""
    name: str = key(TEXT, "The name in Spark and in progress lines.", "", without="the file's name")
    spark: Mapping[str, str] = key(
        OPTIONS,
        "Settings of the Spark session that the run starts, such as `spark.sql.shuffle.partitions = 8`.",
        _NO_OPTIONS,
    )
    source: Source = section(Source, "The source of the documents: any format that Spark reads.", required=True)
    mediation: Mediation | None = section(
        Mediation,
        "For documents of several schemas: they are matched in one global schema, and delivered unchanged.",
    )
    overlay: OverlayPart | None = section(
        OverlayPart, "Documents pass through an overlay of routers; each subscriber is subscribed at one of them."
    )
    subscriptions: SubscriptionSource = section(
        SubscriptionSource,
        "The subscriptions: an index, or a table that is compiled to one before the pipeline starts. Without this "
        "section, those of the broker whose log is the source.",
        filled=True,
    )
    deliveries: Deliveries = section(Deliveries, "The output for matched documents.", required=True)
    dead_letters: DocumentSink | None = section(
        DocumentSink,
        "The output for unreadable documents. Without this section the pipeline only counts them.",
    )
    joins: Joins | None = section(
        Joins, "Rows are extracted from the same documents, and standing joins over their tables get messages."
    )
    stream: Stream | None = section(Stream, "With this section the pipeline is a stream, without it one batch.")
    limits: Limits = section(
        Limits, "Limits per document; a document beyond a limit becomes a dead letter.", filled=True
    )

    @property
    def takes_subscriptions_from_log(self) -> bool:
        """Whether the subscriptions are those of the log that the documents come from."""
        return self.source.format == LOG_FORMAT and not self.subscriptions.index


def reference() -> str:
    """The reference of all keys, in Markdown: a table per section."""
    return reference_of(Pipeline, "The pipeline as a whole.", "##")
