"""The plan of a pipeline as text, for `--dry-run`, without starting Spark.

Local inputs are checked (does the index exist, are there files); remote addresses are not.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from pathcast.errors import PathcastError, PipelineError
from pathcast.store import MANIFEST
from pathcast.toml_files import is_address
from pathcast.transmission import Topology

from ..files.file_listing import roots
from ..joins.join_definition_files import check_joins
from ..publishing.index_versions import is_versioned, versions
from .checkpoint_reader import begun
from .pipeline_sections import FILE_FORMATS, Joins, OverlayPart, Pipeline, Sink

_ROWS = {
    "subscriber": "a row per document and subscriber",
    "subscription": "a row per document and subscription",
    "document": "a row per document",
    "message": "messages per subscriber",
}


def plan(pipeline: Pipeline) -> Iterator[tuple[str, str]]:
    """The inputs, matching and outputs of a run, as (heading, text); raises `PipelineError` if an input is missing."""
    source, stream = pipeline.source, pipeline.stream
    yield "pipeline", f"{pipeline.name}, {'a stream' if stream else 'a batch'}"
    by_path = source.file_column
    what = f"the files that column {by_path} names" if by_path else f"column {source.document_column}"
    if source.split is not None:
        what = f"entries {source.split} of {what}"
    yield "documents", f"{source.format}{_places(source.path)}: {what}"
    if pipeline.mediation is not None:
        given = pipeline.mediation
        if not Path(given.mediator).is_dir() and not is_address(given.mediator):
            raise PipelineError(
                f"{pipeline.file}: mediation.mediator: {given.mediator} does not exist; create it with mediator.save(…)"
            )
        version = f", version in column {given.version}" if given.version else ""
        yield "mediation", f"{given.mediator}: schema in column {given.schema}{version}"
    yield "index", _index(pipeline)
    if pipeline.overlay is not None:
        yield "overlay", _overlay(pipeline, pipeline.overlay)
    table = pipeline.subscriptions.table
    if table is not None:
        if not _exists(table):
            raise PipelineError(f"{pipeline.file}: subscriptions.table: {table} does not exist; correct the path")
        changes = pipeline.subscriptions.changes
        yield "compiled from", f"{table}{f' and its changes {changes}' if changes else ''}"
    yield (
        "deliveries",
        f"{_sink(pipeline.deliveries, stream is not None)}: {_ROWS[pipeline.deliveries.per or 'subscriber']}",
    )
    dead = pipeline.dead_letters
    yield "dead letters", "counted, not kept" if dead is None else _sink(dead, stream is not None)
    if pipeline.joins is not None:
        yield from _joins(pipeline, pipeline.joins)
    if stream is not None:
        state = "continues where it stopped" if begun(stream.checkpoint) else "new"
        yield "checkpoint", f"{stream.checkpoint} ({state})"
        if source.settles:
            yield "new files", f"read when they have not changed for {source.settle}"
        ends = "until all existing input is processed" if stream.ends else "until stopped"
        yield "trigger", f"{stream.trigger}, {ends}"
    for key, value in pipeline.spark.items():
        yield "Spark setting", f"{key} = {value}"
    for path in source.path:
        if not _exists(path):
            raise PipelineError(f"{pipeline.file}: source.path: {path} does not exist; correct the path")


def _index(pipeline: Pipeline) -> str:
    index, table = pipeline.subscriptions.index, pipeline.subscriptions.table
    if pipeline.takes_subscriptions_from_log:
        return "the subscriptions of the log, each for the documents for which it is valid"
    if is_versioned(index):
        return f"{index}, version {versions(index)[-1]}"
    if Path(index, MANIFEST).is_file():
        return f"{index}, without versions"
    if table is None and not is_address(index):
        raise PipelineError(
            f"{pipeline.file}: subscriptions.index: no index at {index}; create it in Python with "
            f"Subscriptions(…).compile().save('{index}'), or set the key subscriptions.table"
        )
    return f"{index}, new"


def _overlay(pipeline: Pipeline, overlay: OverlayPart) -> str:
    index = pipeline.subscriptions.index
    links = f", traffic to {overlay.links}" if overlay.links is not None else ""
    if pipeline.subscriptions.table is None:
        if is_address(index):
            return f"policy {overlay.policy}{links}"
        from ..overlay.published_overlays import check_overlay  # the rest needs no Spark

        found = check_overlay(index, None, overlay.at)
        return f"{len(found.routers)} routers from {found.source}, policy {overlay.policy}{links}"
    topology = topology_of(overlay)
    try:
        source = topology.name(overlay.at if overlay.at is not None else topology.root)
    except PathcastError as error:
        raise PipelineError(f"{pipeline.file}: overlay.at: {error.reason}") from None
    return f"{len(topology)} routers from {source}, policy {overlay.policy}{links}"


def _joins(pipeline: Pipeline, joins: Joins) -> Iterator[tuple[str, str]]:
    found = check_joins(joins)
    tables = f"rows of {found.tables} tables, from {joins.schema}"
    yield "joins", f"{found.subscriptions:,} subscriptions ({joins.scheme}) over {tables}"
    if joins.versions is not None:
        version = f"version {versions(joins.versions)[-1]}" if found.newest is not None else "new"
        added, removed = sum(map(len, found.add.values())), len(found.remove)
        change = f"; {added:,} added, {removed:,} removed when the run starts" if added or removed else ""
        yield "join versions", f"{joins.versions}, {version}{change}"
    yield "join messages", _sink(joins, pipeline.stream is not None)
    if joins.deliveries is not None:
        rows = "a row per message and subscription" if joins.per == "subscription" else "a row per message"
        shards = f", in {joins.shards} shards" if joins.shards is not None else ""
        yield "join deliveries", f"parquet {joins.deliveries}: {rows}{shards}"
    if joins.versions is not None and pipeline.stream is not None:
        yield "initial contents", "not kept" if joins.contents is None else f"parquet {joins.contents}"
    yield "dead changes", "counted, not kept" if joins.dead_letters is None else f"parquet {joins.dead_letters}"


def topology_of(overlay: OverlayPart) -> Topology:
    """The routers and links of an overlay."""
    if overlay.topology is not None:
        return Topology.from_file(overlay.topology)
    return Topology.tree(overlay.levels or 1, overlay.fanout)


def _sink(sink: Sink, streaming: bool) -> str:
    if streaming:
        how = "a folder per micro-batch" if sink.format in FILE_FORMATS else "appended, column batch"
    else:
        how = f"mode {sink.mode}"
    return f"{sink.format}{_places((sink.path,) if sink.path else ())} ({how})"


def _places(paths: tuple[str, ...]) -> str:
    return f" {', '.join(paths)}" if paths else ""


def _exists(path: str) -> bool:
    return is_address(path) or any(map(os.path.exists, roots(path)))
