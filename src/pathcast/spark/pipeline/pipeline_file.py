"""A pipeline file: TOML in, a checked `Pipeline` out, or all that is wrong with it, each with file, line and key.

Checked here is what the file alone can tell: keys (pipeline_keys.py), kinds of values, and which keys go together.
What only the machine can tell (is there an index, can the source be read) is said when the pipeline is built.

Relative paths are taken from the folder of the file, so a pipeline runs the same from everywhere; addresses such as
`s3a://…` stay as they are. Needs no Spark.
"""

import difflib
import os
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pathcast.documents import Limits
from pathcast.errors import PipelineError

from ..files.file_options import SETTLE, check_names
from .pipeline_keys import BY_NAME, DOCUMENT_COLUMNS, KEYS, SECTIONS, Key
from .pipeline_sections import (
    MAX_INVALID,
    Joins,
    Mediation,
    OverlayPart,
    Pipeline,
    Sink,
    Source,
    Stream,
    SubscriptionSource,
)
from .pipeline_values import READERS, RefusedValueError, is_address
from .toml_lines import key_lines, line_of

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


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong: where, and what."""

    line: int | None
    key: str
    reason: str


class PipelineFileError(PipelineError):
    """A pipeline file that can't be run; `problems` has everything that is wrong, in the order of lines."""

    def __init__(self, reason: str, *, file: str = "", problems: tuple[Problem, ...] = ()) -> None:
        super().__init__(reason, line=problems[0].line if problems else None)
        self.file = file
        self.problems = problems

    def __str__(self) -> str:
        return "\n".join(
            f"{self.file}{f', line {one.line}' if one.line else ''}: {f'{one.key}: ' if one.key else ''}{one.reason}"
            for one in self.problems
        )


def read_pipeline(file: str | os.PathLike[str]) -> Pipeline:
    """Read a pipeline file; `PipelineFileError` tells all that is wrong with it."""
    path = Path(file)
    try:
        text = path.read_bytes().decode("utf-8-sig")
        given = tomllib.loads(text)
    except OSError as error:
        raise _refused(path, Problem(None, "", f"can't be read: {error.strerror}")) from None
    except UnicodeDecodeError:
        raise _refused(path, Problem(None, "", "is not UTF-8")) from None
    except tomllib.TOMLDecodeError as error:
        at = re.search(r"\(at line (\d+)", str(error))
        raise _refused(path, Problem(int(at[1]) if at else None, "", f"is not TOML: {error}")) from None
    reading = _Reading(path, given, key_lines(text.replace("\r\n", "\n")))
    values = reading.values()
    if not reading.problems:
        reading.check_together(values)
    if reading.problems:
        raise _refused(path, *sorted(reading.problems, key=lambda problem: problem.line or 0))
    return _pipeline(path, given, values)


def _refused(path: Path, *problems: Problem) -> PipelineFileError:
    return PipelineFileError(problems[0].reason, file=str(path), problems=problems)


class _Reading:
    """One reading of a file: values as they are found right, problems as they are found wrong."""

    def __init__(self, path: Path, given: dict[str, Any], lines: dict[tuple[str, ...], int]) -> None:
        self.given = given
        self.lines = lines
        self.folder = path.absolute().parent
        self.problems: list[Problem] = []

    def wrong(self, name: str, reason: str) -> None:
        self.problems.append(Problem(line_of(self.lines, tuple(name.split("."))), name, reason))

    def values(self) -> dict[str, Any]:
        """Every key that is there and right → its value."""
        found = {}
        for name, value in self._given_keys():
            key = BY_NAME.get(name)
            if key is None:
                self.wrong(name, _unknown(name))
                continue
            try:
                read = READERS[key.kind](key, value)
            except RefusedValueError as error:
                self.wrong(name, str(error))
                continue
            if key.kind == "path":
                read = self._path(read)
            elif key.kind == "paths":
                read = tuple(map(self._path, read))
            found[name] = read
        for key in KEYS:
            if key.required and key.name not in {name for name, _ in self._given_keys()}:
                if key.section in ("stream", "mediation", "joins") and key.section not in self.given:
                    continue
                self.wrong(key.name, f"is missing: {key.meaning}")
        if "deliveries" not in self.given:
            self.wrong("deliveries", f"the section is missing: {SECTIONS['deliveries']}")
        return found

    def _given_keys(self) -> Iterator[tuple[str, Any]]:
        for name, value in self.given.items():
            if name in SECTIONS and name not in BY_NAME and isinstance(value, dict):
                yield from ((f"{name}.{key}", inner) for key, inner in value.items())
            else:
                yield name, value

    def check_together(self, values: dict[str, Any]) -> None:
        """What no key can tell by itself."""
        form = values["source.format"]
        if "source.document" in values and "source.document_path" in values:
            self.wrong("source.document_path", "stands beside source.document; give one of them")
        if form == "files" and "source.document" in values:
            self.wrong("source.document", 'format = "files" has no such column: the workers open the files themselves')
        if form in {"files", *_NEEDS_A_SCHEMA, "text", "binaryFile"} and "source.path" not in values:
            self.wrong("source.path", f'is missing: format = "{form}" reads files')
        if "stream" in self.given and len(values.get("source.path", ())) > 1:
            self.wrong("source.path", "a stream takes one; a pattern, such as news/*/*.parquet, takes several")
        if "stream" in self.given and form in _NEEDS_A_SCHEMA and "source.schema" not in values:
            self.wrong("source.schema", f"is missing: a stream of {form} does not find out its columns by itself")
        if form == "files" or "source.document_path" in values:
            self._check_documents_by_path(values)
        self._check_subscriptions(values)
        if "overlay" in self.given:
            self._check_overlay(values)
        if "joins" in self.given:
            self._check_joins(values)
        if "stream" in self.given:
            self._check_stream(values)
        self._check_settling(values)
        self._check_places(values)

    def _check_places(self, values: dict[str, Any]) -> None:
        """Nothing is written where something else is read or written: one would replace the other."""
        taken = {os.path.normpath(path): "source.path" for path in values.get("source.path", ())}
        for key in _WRITTEN:
            if key in values:
                first = taken.setdefault(os.path.normpath(values[key]), key)
                if first != key:
                    self.wrong(key, f"is the place of {first}; give each a folder of its own")

    def _check_stream(self, values: dict[str, Any]) -> None:
        for sink in ("deliveries", "dead_letters", "joins"):
            mode = values.get(f"{sink}.mode")
            if mode is not None and mode != "append":
                self.wrong(f"{sink}.mode", f'"{mode}" is for batches; a stream appends')
        if is_address(values["stream.checkpoint"]):
            self.wrong("stream.checkpoint", "must be a folder that is local or mounted, not an address")

    def _check_settling(self, values: dict[str, Any]) -> None:
        """A stream over files in a folder waits until they are complete, and has options of its own."""
        waits = "stream" in self.given and values["source.format"] in ("files", "binaryFile")
        waits = waits and not any(map(is_address, values.get("source.path", ())))
        if not waits and "source.settle" in values:
            self.wrong(
                "source.settle", "goes with a stream of files or binaryFile in a folder that is local or mounted"
            )
        if waits and "source.schema" in values:
            self.wrong("source.schema", f'format = "{values["source.format"]}" has columns of its own in a stream')
        try:
            check_names(values.get("source.options", {}) if waits else {}, arguments=False)
        except PipelineError as error:
            self.wrong("source.options", error.reason)

    def _check_documents_by_path(self, values: dict[str, Any]) -> None:
        why = "goes with documents in a column, not with documents by path"
        for key in ("mediation.mediator", "overlay.topology", "overlay.levels", "joins.schema", "subscriptions.shards"):
            if key in values:
                self.wrong(key, why)
        if values.get("deliveries.per") == "message":
            self.wrong("deliveries.per", f'"message" {why}')

    def _check_subscriptions(self, values: dict[str, Any]) -> None:
        if values.get("deliveries.by") == "id" and values.get("deliveries.per", "subscriber") != "document":
            self.wrong("deliveries.by", '"id" goes with per = "document"')
        for key in ("table_format", "changes", "namespaces", "invalid", "max_invalid"):
            if f"subscriptions.{key}" in values and "subscriptions.table" not in values:
                self.wrong(f"subscriptions.{key}", "goes with subscriptions.table, which is not given")
        if "subscriptions.changes_format" in values and "subscriptions.changes" not in values:
            self.wrong("subscriptions.changes_format", "goes with subscriptions.changes, which is not given")
        if "subscriptions.shards" in values and values.get("deliveries.per") == "document":
            self.wrong(
                "deliveries.per", '"document" goes without subscriptions.shards: a shard knows its own subscribers'
            )

    def _check_overlay(self, values: dict[str, Any]) -> None:
        given = [key for key in ("overlay.topology", "overlay.levels") if key in values]
        if len(given) == 2:
            self.wrong("overlay.levels", "stands beside overlay.topology; give one of them")
        if not given and "subscriptions.table" in values:
            self.wrong(
                "overlay.topology", "is missing, and so is levels: subscriptions.table is compiled to an overlay"
            )
        if "overlay.fanout" in values and "overlay.levels" not in values:
            self.wrong("overlay.fanout", "goes with overlay.levels, which is not given")
        if "subscriptions.shards" in values:
            self.wrong("subscriptions.shards", "goes without [overlay]: an overlay's routers are its shards")
        if values.get("deliveries.by") == "id":
            self.wrong("deliveries.by", "goes without [overlay]: routers tell subscribers, not subscriptions")

    def _check_joins(self, values: dict[str, Any]) -> None:
        if "joins.subscriptions" not in values and "joins.versions" not in values:
            self.wrong(
                "joins.subscriptions",
                "is missing, and so is joins.versions: a file of subscriptions, or a folder of them",
            )
        if is_address(values.get("joins.versions", "")):
            self.wrong("joins.versions", "must be a folder that is local or mounted, not an address")
        for key in ("joins.per", "joins.shards"):
            if key in values and "joins.deliveries" not in values:
                self.wrong(key, "goes with joins.deliveries, which is not given")
        if "joins.contents" in values and "joins.versions" not in values:
            self.wrong("joins.contents", "goes with joins.versions: without it no subscription is new in a micro-batch")
        if "joins.contents" in values and "stream" not in self.given:
            self.wrong("joins.contents", "goes with [stream]: a batch begins with empty tables, and so does everybody")

    def _path(self, text: str) -> str:
        if text.startswith("file:"):
            text = text.removeprefix("file:").removeprefix("//")
        return text if is_address(text) else str(self.folder / text)


def _pipeline(path: Path, given: dict[str, Any], values: dict[str, Any]) -> Pipeline:
    get = values.get
    form = values["source.format"]
    by_path = get("source.document_path") or ("path" if form == "files" else None)
    return Pipeline(
        file=str(path),
        name=get("name") or path.stem,
        source=Source(
            format=form,
            paths=get("source.path") or (),
            schema=get("source.schema"),
            document=None if by_path else get("source.document") or DOCUMENT_COLUMNS.get(form, "xml"),
            document_path=by_path,
            options=get("source.options") or {},
            settle=get("source.settle") or SETTLE,
            entities=get("source.entities") or "refuse",
        ),
        mediation=Mediation(
            values["mediation.mediator"], get("mediation.schema") or "publisher", get("mediation.version")
        )
        if "mediation" in given
        else None,
        overlay=_overlay(values) if "overlay" in given else None,
        subscriptions=SubscriptionSource(
            index=values["subscriptions.index"],
            table=get("subscriptions.table"),
            table_format=get("subscriptions.table_format") or _format_of(get("subscriptions.table")),
            changes=get("subscriptions.changes"),
            changes_format=get("subscriptions.changes_format") or _format_of(get("subscriptions.changes")),
            namespaces=get("subscriptions.namespaces"),
            invalid=get("subscriptions.invalid"),
            shards=get("subscriptions.shards"),
            max_invalid=values.get("subscriptions.max_invalid", MAX_INVALID),
        ),
        deliveries=_sink("deliveries", values, per=get("deliveries.per") or "subscriber"),
        dead_letters=_sink("dead_letters", values) if "dead_letters" in given else None,
        joins=_joins(values) if "joins" in given else None,
        stream=Stream(values["stream.checkpoint"], get("stream.trigger") or "available-now")
        if "stream" in given
        else None,
        limits=Limits(**{key.name.partition(".")[2]: values[key.name] for key in _of("limits") if key.name in values}),
        spark=get("spark") or {},
    )


def _overlay(values: dict[str, Any]) -> OverlayPart:
    get = values.get
    return OverlayPart(
        topology=get("overlay.topology"),
        levels=get("overlay.levels"),
        fanout=get("overlay.fanout") or 2,
        at=get("overlay.at"),
        policy=get("overlay.policy") or "L",
        keep=get("overlay.keep") or 0.25,
        links=get("overlay.links"),
    )


def _joins(values: dict[str, Any]) -> Joins:
    get = values.get
    return Joins(
        schema=values["joins.schema"],
        subscriptions=get("joins.subscriptions"),
        scheme=get("joins.scheme") or "ref-sj-clu+",
        key=values["joins.key"],
        messages=_sink("joins", values),
        dead_letters=get("joins.dead_letters"),
        versions=get("joins.versions"),
        deliveries=get("joins.deliveries"),
        per=get("joins.per") or "subscription",
        shards=get("joins.shards"),
        contents=get("joins.contents"),
    )


def _sink(section: str, values: dict[str, Any], per: str = "document") -> Sink:
    get = values.get
    return Sink(
        format=get(f"{section}.format") or "parquet",
        path=get(f"{section}.path"),
        mode=get(f"{section}.mode") or "error",
        columns=get(f"{section}.columns") or (),
        options=get(f"{section}.options") or {},
        per=per,
        by=get(f"{section}.by") or "subscriber",
        document=get("source.document") or DOCUMENT_COLUMNS.get(values["source.format"], "xml"),
    )


def _of(section: str) -> list[Key]:
    return [key for key in KEYS if key.section == section]


def _format_of(path: str | None) -> str:
    name = (path or "").removesuffix(".gz")
    return next((form for form in ("csv", "json", "orc") if name.endswith(f".{form}")), "parquet")


def _unknown(name: str) -> str:
    if name in SECTIONS:
        return f"is a section: write [{name}]"
    section, _, last = name.rpartition(".")
    known = [key.name.rpartition(".")[2] for key in KEYS if key.section == section]
    known += [one for one in SECTIONS if one] if not section else []
    near = difflib.get_close_matches(last, known, n=2, cutoff=0.6)
    elsewhere = [key.name for key in KEYS if key.name.rpartition(".")[2] == last]
    if near:
        return f"there is no such key; did you mean {' or '.join(near)}?"
    if elsewhere:
        return f"there is no such key here; there is {' and '.join(elsewhere)}"
    return f"there is no such key; there are: {', '.join(known)}"
