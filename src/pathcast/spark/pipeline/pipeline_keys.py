"""The keys of a pipeline file, in one table: what may stand there, what it means, what holds without it.

The file is read by this table (pipeline_file.py) and the reference in docs/pipeline.md is written from it
(`reference()`; a test holds the two together), so a key can't be accepted and not documented.

A name is `section.key`. A key of the kind `table` holds further keys of the user's own choosing.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from ..files.file_options import SETTLE

# In a folder of these a micro-batch has a folder of its own, which is replaced when the micro-batch is repeated.
FILE_FORMATS = ("parquet", "orc", "json", "csv", "text", "xml", "avro")
# Formats whose rows come from files, so that Spark can tell which one.
SOURCE_FILE_FORMATS = (*FILE_FORMATS, "binaryFile")
# The column that holds the documents when the file does not say which.
DOCUMENT_COLUMNS = {"binaryFile": "content", "text": "value"}
MODES = ("append", "overwrite", "ignore", "error")
_OF_MODES = (
    "Of a batch, when there is something already: `error`: it ends before it begins. `append`: rows are added. "
    "`overwrite`: they replace what is there. `ignore`: nothing is written."
)
# The schemes that can be cut by join value (docs/joins.md).
_SCHEMES = ("ref-sj-clu+", "ref-sj-clu", "ref-sj-min", "ref-sj-sub", "ref-sj-tup", "enum-sj")

SECTIONS = {
    "": "The pipeline as a whole.",
    "source": "Where documents come from: any format that Spark reads.",
    "mediation": "For documents of several schemas: they are matched in one of their own, and delivered as they came.",
    "overlay": "Documents go through an overlay of routers, at one of which each subscriber has subscribed.",
    "subscriptions": "Who wants what: an index, or a table that is compiled to one before the pipeline starts.",
    "deliveries": "Where matched documents go.",
    "dead_letters": "Where documents go that can't be read. Without this section they are counted and not kept.",
    "joins": "Rows are cut out of the same documents, and standing joins over their tables get messages.",
    "stream": "With this section the pipeline is a stream, without it one batch.",
    "limits": "What a document may bring before it is refused and becomes a dead letter.",
}


@dataclass(frozen=True)
class Key:
    """One key: `kind` says how its value is read, `default` what holds without it, as the reference shows it."""

    name: str
    kind: str
    meaning: str
    default: str = ""
    required: bool = False
    choices: tuple[str, ...] = ()

    @property
    def section(self) -> str:
        return self.name.rpartition(".")[0]


KEYS = (
    Key("name", "text", "What Spark and the progress lines call it.", "the file's name"),
    Key(
        "spark",
        "table",
        "Settings of the Spark session that the run starts, such as `spark.sql.shuffle.partitions = 8`.",
        "none",
    ),
    # source
    Key(
        "source.format",
        "text",
        "A format of Spark (`parquet`, `text`, `binaryFile`, `json`, `kafka`, …), or `files`: XML files, one document "
        "each, that the workers open themselves.",
        required=True,
    ),
    Key("source.path", "paths", "A folder, file or pattern, or a list of them.", "none"),
    Key(
        "source.schema",
        "text",
        'The columns, as in SQL: `"number long, xml binary"`. A stream of `parquet`, `orc`, `json`, `csv` needs it.',
        "what the source says",
    ),
    Key(
        "source.document",
        "text",
        "The column that holds the documents, binary or string.",
        "`content` for `binaryFile`, `value` for `text`, else `xml`",
    ),
    Key(
        "source.document_path",
        "text",
        "The column that holds the documents' paths, in place of `document`.",
        "`path` for `files`",
    ),
    Key(
        "source.options",
        "table",
        "Options of the format. For streams: `maxFilesPerTrigger`, `maxOffsetsPerTrigger` bound a micro-batch. A "
        "stream of `files` or `binaryFile` in a folder takes `maxFilesPerTrigger` or `maxBytesPerTrigger`, "
        "`latestFirst`, `pathGlobFilter`, `recursiveFileLookup` and `minPartitions`, and rejects others.",
        "none",
    ),
    Key(
        "source.settle",
        "interval",
        "A stream of `files` or `binaryFile` in a folder reads a file when its size and modification time have not "
        "changed for this long. Other files are deferred, and counted in reports.",
        f"`{SETTLE}`",
    ),
    Key(
        "source.entities",
        "choice",
        "Documents whose DOCTYPE declares entities: `refuse` makes them dead letters, `expand` reads internal entities "
        "within `limits.amplification`. External entities are never read.",
        "`refuse`",
        choices=("refuse", "expand"),
    ),
    # mediation
    Key(
        "mediation.mediator",
        "path",
        "The folder that `mediator.save` wrote: the global schema, and the mappings of all publishers' schemas to it.",
        required=True,
    ),
    Key("mediation.schema", "text", "The column that names the schema of each document.", "`publisher`"),
    Key(
        "mediation.version",
        "text",
        "The column that has the version of its mapping; where it is null, the newest.",
        "the newest",
    ),
    # overlay
    Key(
        "overlay.topology",
        "path",
        "A TOML file of routers and links, as the transmission room reads it.",
        "a tree of `levels`, or that of the index",
    ),
    Key("overlay.levels", "number", "A complete tree of so many levels, its root `r1`, in place of a file.", "none"),
    Key("overlay.fanout", "number", "How many routers each router of the tree has below it.", "2"),
    Key("overlay.at", "text", "The router at which documents are published.", "the root"),
    Key(
        "overlay.policy",
        "policy",
        "When routers forward, and with which annotations: `L`, `L+s-sd`, `L+t`, `ES+sd`, `adaptive`, …",
        "`L`, the quickest on one machine",
    ),
    Key("overlay.keep", "share", "The part of the subscriptions' steps that advertisements keep.", "0.25"),
    Key(
        "overlay.links",
        "path",
        "Where the traffic on links goes, as Parquet: `sender`, `router`, `messages`, `bytes`, of those `annotations`.",
        "not kept",
    ),
    # subscriptions
    Key(
        "subscriptions.index",
        "path",
        "The folder of the index: a snapshot or one with versions. With `table`, the folder that versions are "
        "published to. A stream takes up a new version with its next micro-batch. With `[overlay]`, an overlay, as "
        "`publish_overlay` writes it.",
        required=True,
    ),
    Key(
        "subscriptions.table",
        "path",
        "A table of `id`, `subscriber`, `xpath`, and with `[overlay]` `router`, compiled when the run starts.",
        "none",
    ),
    Key(
        "subscriptions.shards",
        "number",
        "The index is in so many pieces, of which a worker needs the memory of one; with `table`, it is made so.",
        "one piece",
    ),
    Key("subscriptions.table_format", "text", "Its format.", "by its ending, else `parquet`"),
    Key(
        "subscriptions.changes",
        "path",
        "A table of `id`, `subscriber`, `xpath`, `change` (`added`, `removed`), and with `[overlay]` `router`.",
        "none",
    ),
    Key("subscriptions.changes_format", "text", "Its format.", "by its ending, else `parquet`"),
    Key(
        "subscriptions.namespaces",
        "namespaces",
        'A table of prefix and URI for the table\'s expressions, or `"ignore"` to match local names.',
        "none",
    ),
    Key(
        "subscriptions.invalid",
        "path",
        "Where invalid subscriptions go, as Parquet, with the reason.",
        "none",
    ),
    Key(
        "subscriptions.max_invalid",
        "share or 0",
        "The share of the table that may be invalid. If more is, the run ends before it publishes anything. `0` "
        "accepts no invalid row, `1` accepts any table.",
        "0.5",
    ),
    # deliveries
    Key("deliveries.format", "text", "A format that Spark writes.", "`parquet`"),
    Key("deliveries.path", "path", "The folder or table to write to.", "none"),
    Key(
        "deliveries.per",
        "choice",
        "`subscriber`: a row for each document and subscriber. `document`: a row for each document that somebody "
        "wants, with the list of them. `message`: RoXSum messages, each with documents of one subscriber.",
        "`subscriber`",
        choices=("subscriber", "document", "message"),
    ),
    Key(
        "deliveries.by",
        "choice",
        'What that list has with `per = "document"`: `subscriber`: names of subscribers. `id`: ids of subscriptions, '
        "in `matches`.",
        "`subscriber`",
        choices=("subscriber", "id"),
    ),
    Key("deliveries.columns", "names", "The columns of the source that are delivered.", "all"),
    Key("deliveries.mode", "choice", _OF_MODES, "`error`", choices=MODES),
    Key("deliveries.options", "table", "Options of the format.", "none"),
    # dead letters
    Key("dead_letters.format", "text", "A format that Spark writes.", "`parquet`"),
    Key("dead_letters.path", "path", "The folder or table to write to.", "none"),
    Key("dead_letters.columns", "names", "The columns of the source that are kept beside `error`.", "all"),
    Key("dead_letters.mode", "choice", _OF_MODES, "`error`", choices=MODES),
    Key("dead_letters.options", "table", "Options of the format.", "none"),
    # joins
    Key(
        "joins.schema",
        "path",
        "A schema file in TOML: `joins`, `[tables]`, and `[rows.TABLE]` for each table whose rows documents hold.",
        required=True,
    ),
    Key(
        "joins.subscriptions",
        "path",
        "Standing joins: a CSV file of `subscriber` and `query`, or a text file with a query per line and comments "
        "that begin with `--`. With `versions` "
        "it is compared with the newest one when the run starts, and by `--publish`: what is new in it is subscribed, "
        "what is missing is not any more.",
        "those of `versions`",
    ),
    Key(
        "joins.versions",
        "path",
        "The folder that versions of the subscriptions are published to, by `subscriptions` or by a program "
        "(`publish_joins`). A stream takes up a new version with its next micro-batch. Local, or mounted on driver and "
        "workers alike.",
        "none: subscriptions stay as they are when the run starts",
    ),
    Key(
        "joins.scheme",
        "choice",
        f"What is sent, [by scheme](joins.md#schemes): {', '.join(f'`{scheme}`' for scheme in _SCHEMES)}.",
        "`ref-sj-clu+`",
        choices=_SCHEMES,
    ),
    Key(
        "joins.key",
        "text",
        "A column of whole numbers that tells documents apart, later ones with larger numbers.",
        required=True,
    ),
    Key("joins.format", "text", "A format that Spark writes.", "`parquet`"),
    Key("joins.path", "path", "The folder or table to write messages to.", required=True),
    Key("joins.mode", "choice", _OF_MODES, "`error`", choices=MODES),
    Key("joins.options", "table", "Options of the format.", "none"),
    Key(
        "joins.deliveries",
        "path",
        "Where messages go by subscription, as Parquet: the columns of messages, `subscription` and `subscriber`.",
        "not kept",
    ),
    Key(
        "joins.per",
        "choice",
        "Of deliveries: `subscription`: a row for each message and subscription that it concerns. `message`: a row for "
        "each message that concerns somebody, and shard, with the list `subscriptions`.",
        "`subscription`",
        choices=("subscription", "message"),
    ),
    Key(
        "joins.shards",
        "number",
        "For deliveries, the subscriptions are dealt to so many workers, of which each needs the memory of its own.",
        "one piece",
    ),
    Key(
        "joins.contents",
        "path",
        "Where the initial content goes of subscriptions that are new in a micro-batch, as Parquet: `subscription`, "
        "`subscriber`, `edge`, `join_value`, `message`.",
        "not kept; `initial_contents` has it for the last 100 micro-batches",
    ),
    Key(
        "joins.dead_letters",
        "path",
        "Where rows go that can't be cut out, and changes that can't be made, as Parquet, with the reason.",
        "counted, not kept",
    ),
    # stream
    Key(
        "stream.checkpoint",
        "path",
        "The folder where the stream notes how far it is, and which version of the index each micro-batch uses. "
        "Local, or mounted on driver and workers alike.",
        required=True,
    ),
    Key(
        "stream.trigger",
        "trigger",
        "`available-now`: all that is there, in micro-batches, then end. `once`: the same in one micro-batch. An "
        'interval, such as `"10 seconds"`: one micro-batch each, until stopped; `"0 seconds"`: one after the other.',
        "`available-now`",
    ),
    # limits
    Key("limits.depth", "number", "Elements nested in one another.", "1,000"),
    Key("limits.size", "number", "Bytes of a document.", "134,217,728"),
    Key("limits.attributes", "number", "Attributes of one element.", "4,096"),
    Key("limits.names", "number", "Different names of elements and attributes.", "65,536"),
    Key("limits.name_length", "number", "Characters of a name, and of a namespace if more than 16,384.", "4,096"),
    Key("limits.amplification", "number", "Bytes of text that entities may make out of one byte.", "20"),
    Key("limits.work", "number", "Look-ups in the subscriptions' paths, where too many to remember.", "134,217,728"),
)

BY_NAME = {key.name: key for key in KEYS}
KINDS = {
    "text": "text",
    "path": "path",
    "paths": "path or list of paths",
    "names": "list of names",
    "table": "table",
    "namespaces": 'table, or `"ignore"`',
    "choice": "one of the named",
    "trigger": "text",
    "interval": 'interval, such as `"2 seconds"`',
    "number": "whole number from 1 up",
    "share": "number above 0, at most 1",
    "share or 0": "number from 0 to 1",
    "policy": "policy",
}


def reference() -> str:
    """The reference of all keys, in Markdown: a table per section."""
    return "\n".join(_reference()).strip() + "\n"


def _reference() -> Iterator[str]:
    for section, meaning in SECTIONS.items():
        yield f"### {f'`[{section}]`' if section else 'At the top'}\n\n{meaning}\n"
        keys = [key for key in KEYS if key.section == section]
        if keys:
            yield "| key | value | without it | meaning |\n|---|---|---|---|"
            for key in keys:
                without = "an error" if key.required else key.default
                yield f"| `{key.name.rpartition('.')[2]}` | {KINDS[key.kind]} | {without} | {key.meaning} |"
            yield ""
