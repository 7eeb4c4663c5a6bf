"""A pipeline file: TOML in, a checked `Pipeline` out, or all of its problems, each with file, line and key.

This module checks which keys go together; the declaration of a key checks its value (pipeline_sections.py). Problems
that depend on the machine (a missing index, an unreadable source) are reported when the pipeline is built.

Relative paths are relative to the folder of the file, so a pipeline runs the same from any folder; addresses such as
`s3a://…` stay as they are. Needs no Spark.
"""

import os
from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

from pathcast.documents import parse_entry_path
from pathcast.errors import PatternError, PipelineError
from pathcast.toml_files import Problem, TomlFile, is_address

from ..files.file_options import check_names
from .pipeline_sections import Joins, OverlayPart, Pipeline, Stream

__all__ = ["Pipeline", "PipelineFileError", "Problem", "Stream", "is_address", "read_pipeline"]

_WRITTEN = (
    "subscriptions.index",
    "subscriptions.invalid",
    "deliveries.path",
    "dead_letters.path",
    "overlay.links",
    "joins.path",
    "joins.versions",
    "joins.deliveries",
    "joins.contents",
    "joins.dead_letters",
    "stream.checkpoint",
)
_NEEDS_A_SCHEMA = ("parquet", "orc", "json", "csv", "avro", "xml")
_LOCAL = 'must be a local or mounted folder, got the address "{}"; give the path of a folder'
# A key and its problem.
Wrong = Iterator[tuple[str, str]]


class PipelineFileError(PipelineError):
    """A pipeline file that cannot be run; `problems` lists all of its problems, by line."""

    def __init__(self, reason: str, *, told: str = "", problems: tuple[Problem, ...] = ()) -> None:
        super().__init__(reason, line=problems[0].line if problems else None)
        self.told = told
        self.problems = problems

    def __str__(self) -> str:
        return self.told


def read_pipeline(file: str | os.PathLike[str]) -> Pipeline:
    """Read a pipeline file; raises a `PipelineFileError` that lists all of its problems."""
    given = TomlFile(file)
    pipeline = given.read(Pipeline)
    if pipeline is not None:
        for name, reason in _together(given, pipeline):
            given.wrong(name, reason)
    if pipeline is None or given.problems:
        raise PipelineFileError(given.problems[0].reason, told=given.told(), problems=given.problems)
    usual: Literal["subscriber", "subscription"] = "subscriber"
    if pipeline.takes_subscriptions_from_log:
        usual = "subscription"
    deliveries = replace(pipeline.deliveries, per=pipeline.deliveries.per or usual)
    return replace(pipeline, file=str(given.path), name=pipeline.name or given.path.stem, deliveries=deliveries)


def _together(file: TomlFile, pipeline: Pipeline) -> Wrong:
    """Problems that involve several keys."""
    yield from _source(pipeline)
    if pipeline.source.path_column is not None:
        yield from _documents_by_path(file, pipeline)
    yield from _subscriptions(file, pipeline)
    yield from _log(file, pipeline)
    if pipeline.overlay is not None:
        yield from _overlay(file, pipeline, pipeline.overlay)
    if pipeline.joins is not None:
        yield from _joins(file, pipeline, pipeline.joins)
    if pipeline.stream is not None:
        yield from _stream(file, pipeline, pipeline.stream)
    yield from _settling(file, pipeline)
    yield from _places(pipeline)


def _source(pipeline: Pipeline) -> Wrong:
    source, form, streams = pipeline.source, pipeline.source.format, pipeline.stream is not None
    if source.document is not None and source.document_path is not None:
        yield "source.document_path", "conflicts with source.document; give only one of them"
    if form == "files" and source.document is not None:
        yield (
            "source.document",
            'format = "files" has no column of documents, because the workers open the files; omit the key',
        )
    if source.split is not None:
        try:
            parse_entry_path(source.split, source.namespaces)
        except PatternError as error:
            yield "source.split", f"{error.reason} in {source.split!r}; supported: {error.supported or 'shorter paths'}"
    elif source.namespaces is not None:
        yield "source.namespaces", "needs source.split, which is missing; add it, or omit the key"
    if form in {"files", *_NEEDS_A_SCHEMA, "text", "binaryFile"} and not source.path:
        yield "source.path", f'is missing: format = "{form}" needs a path'
    if streams and len(source.path) > 1:
        count = len(source.path)
        yield "source.path", f"has {count} paths, but a stream reads one; use a pattern, such as news/*/*.parquet"
    if streams and form in _NEEDS_A_SCHEMA and source.schema is None:
        yield (
            "source.schema",
            f'is missing: a stream of {form} cannot infer its columns; list them, such as "number long, xml binary"',
        )


def _documents_by_path(file: TomlFile, pipeline: Pipeline) -> Wrong:
    by = 'format = "files"' if pipeline.source.document_path is None else "source.document_path"
    why = f'needs documents in a column, but {by} gives paths; use format = "binaryFile", or source.document'
    for key in ("mediation.mediator", "overlay.topology", "overlay.levels", "joins.schema", "subscriptions.shards"):
        if file.has(key):
            yield key, why
    if pipeline.deliveries.per == "message":
        yield "deliveries.per", f'"message" {why}'


def _subscriptions(file: TomlFile, pipeline: Pipeline) -> Wrong:
    given, deliveries = pipeline.subscriptions, pipeline.deliveries
    if deliveries.by == "id" and deliveries.per != "document":
        per = deliveries.per or "subscriber"
        yield "deliveries.by", f'"id" needs deliveries.per = "document", got "{per}"'
    for key in ("table_format", "changes", "namespaces", "invalid", "max_invalid"):
        if file.has(f"subscriptions.{key}") and given.table is None:
            yield f"subscriptions.{key}", "needs subscriptions.table, which is missing; add it, or omit the key"
    if given.changes_format is not None and given.changes is None:
        yield "subscriptions.changes_format", "needs subscriptions.changes, which is missing; add it, or omit the key"
    if given.shards is not None and deliveries.per == "document":
        yield (
            "deliveries.per",
            (
                '"document" does not work with subscriptions.shards, because each shard has only some subscribers; use '
                '"subscriber" or "message"'
            ),
        )


def _log(file: TomlFile, pipeline: Pipeline) -> Wrong:
    """Documents of a log are matched with its own subscriptions, as the broker does, unless there is an index."""
    if not pipeline.takes_subscriptions_from_log:
        if not pipeline.subscriptions.index:
            yield (
                "subscriptions.index",
                'is missing: give the folder of the index; only a source in format = "pathcast" needs none',
            )
        if pipeline.deliveries.per == "subscription":
            yield "deliveries.per", '"subscription" needs the subscriptions of a log; use "subscriber" or "document"'
        return
    if pipeline.deliveries.per not in (None, "subscription", "document") or pipeline.deliveries.by == "id":
        yield (
            "deliveries.per",
            'with the subscriptions of a log use "subscription" or "document", and omit deliveries.by',
        )
    for section in ("mediation", "overlay", "joins", "limits"):
        if file.has(section):
            yield section, "does not apply to the subscriptions of a log, which decides everything itself; omit it"
    for name in ("table", "shards", "changes"):
        if file.has(f"subscriptions.{name}"):
            yield f"subscriptions.{name}", "needs subscriptions.index, which is missing; add it, or omit the key"
    for name in ("document", "document_path", "split", "schema", "entities"):
        if file.has(f"source.{name}"):
            yield f"source.{name}", "does not apply to the subscriptions of a log; omit the key, or give an index"
    given = {name.lower(): value for name, value in pipeline.source.options.items()}
    if pipeline.stream is not None and "to" in given:
        yield "source.options", "option 'to' does not apply to a stream; omit it"
    if given.get("expired") == "keep":
        yield "source.options", "option 'expired' must be 'omit' or 'fail' where documents are delivered; omit it"


def _overlay(file: TomlFile, pipeline: Pipeline, overlay: OverlayPart) -> Wrong:
    given = pipeline.subscriptions
    if overlay.topology is not None and overlay.levels is not None:
        yield "overlay.levels", "conflicts with overlay.topology; give only one of them"
    if overlay.topology is None and overlay.levels is None and given.table is not None:
        yield (
            "overlay.topology",
            "is missing: subscriptions.table is compiled to an overlay; give overlay.topology or overlay.levels",
        )
    if file.has("overlay.fanout") and overlay.levels is None:
        yield "overlay.fanout", "needs overlay.levels, which is missing; add it, or omit the key"
    if given.shards is not None:
        yield (
            "subscriptions.shards",
            "does not work with [overlay], whose routers already divide the subscriptions; omit the key",
        )
    if pipeline.deliveries.by == "id":
        yield "deliveries.by", '"id" does not work with [overlay]: routers know subscribers only; use "subscriber"'


def _joins(file: TomlFile, pipeline: Pipeline, joins: Joins) -> Wrong:
    if joins.subscriptions is None and joins.versions is None:
        yield "joins.subscriptions", "is missing: give joins.subscriptions, a file, or joins.versions, a folder"
    if is_address(joins.versions or ""):
        yield "joins.versions", _LOCAL.format(joins.versions)
    for key in ("joins.per", "joins.shards"):
        if file.has(key) and joins.deliveries is None:
            yield key, "needs joins.deliveries, which is missing; add it, or omit the key"
    if joins.contents is not None and joins.versions is None:
        yield (
            "joins.contents",
            "needs joins.versions, without which no subscription is ever new; set joins.versions, or omit the key",
        )
    if joins.contents is not None and pipeline.stream is None:
        yield "joins.contents", "needs [stream]: in a batch, all tables are empty at the start; omit the key"


def _stream(file: TomlFile, pipeline: Pipeline, stream: Stream) -> Wrong:
    sinks = {"deliveries": pipeline.deliveries, "dead_letters": pipeline.dead_letters, "joins": pipeline.joins}
    for name, sink in sinks.items():
        if sink is not None and file.has(f"{name}.mode") and sink.mode != "append":
            yield f"{name}.mode", f'"{sink.mode}" is for batches only; a stream appends, so omit the key'
    if is_address(stream.checkpoint):
        yield "stream.checkpoint", _LOCAL.format(stream.checkpoint)


def _settling(file: TomlFile, pipeline: Pipeline) -> Wrong:
    """A stream over files in a folder waits until they are complete, and has its own options."""
    source = pipeline.source
    waits = pipeline.stream is not None and source.settles
    if not waits and file.has("source.settle"):
        yield (
            "source.settle",
            'needs [stream], format = "files" or "binaryFile", and a local or mounted folder; otherwise omit the key',
        )
    if waits and source.schema is not None:
        yield "source.schema", f'format = "{source.format}" has fixed columns in a stream; omit the key'
    try:
        check_names(source.options if waits else {}, arguments=False)
    except PipelineError as error:
        yield "source.options", error.reason


def _places(pipeline: Pipeline) -> Wrong:
    """No two keys may name the same folder: one output would replace the other or an input."""
    taken = {os.path.normpath(path): "source.path" for path in pipeline.source.path}
    for name in _WRITTEN:
        section, _, key = name.partition(".")
        path = getattr(getattr(pipeline, section), key, None)
        if path is not None:
            first = taken.setdefault(os.path.normpath(path), name)
            if first != name:
                yield name, f"is also the folder of {first}; give each its own folder"
