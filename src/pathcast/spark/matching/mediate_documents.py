"""Mediation on Spark: documents of many publishers, read once, become structures in the global schema.

    documents (publisher, xml) ──▶ (publisher, xml, structure, error) ──match_documents(structure=…)──▶ matches

The original stays as it is, to be delivered. What stands beside it is its element arrays as the global schema has them
(`pathcast.documents.pack`), so that matching neither parses nor rewrites. The rewriting is the mediation
room's (Ni, Chan: Dissemination of Heterogeneous XML Data, CIKM 2009).

Invariant: what a document matches by its structure is what the mediation room's matcher says of it. A document of an
unknown schema or version, of another schema than it says, or that can't be read has an error and no structure.
Cost: reading, rewriting, and some 3 bytes per element and 4 per value to the next stage, besides names. Mappings travel
with the stage's function.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as t

from pathcast.documents import Entities, Limits, Names, Reader, pack
from pathcast.errors import MappingError, PathcastError, PipelineError
from pathcast.mediation import Mapping, Mediator
from pathcast.mediation.rewriting import EventRewriter

from ..sessions.shipped_objects import Shipped
from .column_checks import ERROR, check_columns, check_entities
from .document_columns import binary_column, error_column, parts_of_values
from .parse_documents import STRUCTURE
from .row_groups import one_batch, take_rows

Batches = Iterator[pa.RecordBatch]


def mediate(
    documents: DataFrame,
    mediator: Mediator,
    schema: str = "publisher",
    *,
    version: str | None = None,
    document: str = "xml",
    limits: Limits | None = None,
    entities: Entities = "refuse",
) -> DataFrame:
    """Documents with their structure in the global schema, for `match_documents(…, structure="structure")`.

    The column `schema` names the schema that each document is written in, as it was registered with the mediator; the
    column `version`, if given, which version of its mapping, else or where it is null the newest. Keeps all columns
    and adds `structure` (binary, null where there is an error) and `error` (reason, line, column).

    `limits` and `entities` are as for `match_documents`. Works on streams too; mappings are those that the mediator has
    when the stage is made.
    """
    check_columns(documents.schema, document, None, [STRUCTURE, "error"])
    given = Mediating(mediator, schema, version)
    added = [t.StructField(STRUCTURE, t.BinaryType()), t.StructField("error", ERROR)]
    function = given.function(documents, document, limits, entities)
    return documents.mapInArrow(function, t.StructType([*documents.schema.fields, *added]))


@dataclass(frozen=True, slots=True)
class Mediating:
    """How a stage is to mediate its documents before it does anything else with them, in the same worker.

    The columns `schema` and `version` are as for `mediate`. Structures are neither sent to Spark nor kept.
    """

    mediator: Mediator
    schema: str = "publisher"
    version: str | None = None

    def function(
        self, documents: DataFrame, document: str, limits: Limits | None, entities: Entities = "refuse"
    ) -> Callable[[Batches], Batches]:
        """The function that workers run; `PipelineError` when the frame lacks a column."""
        check_entities(entities)
        names = documents.columns
        if STRUCTURE in names:
            raise PipelineError(f"the column '{STRUCTURE}' is taken, and would be made; rename it first")
        whole = (t.ShortType, t.IntegerType, t.LongType)
        wanted = [
            (self.schema, (t.StringType,), "names of schemas are strings"),
            (self.version, whole, "versions are whole numbers"),
        ]
        for name, kinds, expected in wanted:
            if name is not None and name not in names:
                raise PipelineError(f"there is no column '{name}'; the columns are {', '.join(names)}")
            if name is not None and not isinstance(documents.schema[name].dataType, kinds):
                found = documents.schema[name].dataType.simpleString()
                raise PipelineError(f"the column '{name}' is of type {found}; {expected}")
        return mediating(Shipped.of(self.mediator), document, self.schema, self.version, limits, entities)


def fused(first: Callable[[Batches], Batches], then: Callable[[Batches], Batches]) -> Callable[[Batches], Batches]:
    """One function after the other, in one worker."""
    return lambda batches: then(first(batches))


def mediating(
    mediator: Shipped,
    document: str,
    schema: str,
    version: str | None = None,
    limits: Limits | None = None,
    entities: Entities = "refuse",
) -> Callable[[Batches], Batches]:
    """The function that a worker runs on the rows of a partition."""

    def mediate_batches(batches: Batches) -> Batches:
        rewriting = mediator.open(Rewriting, limits, entities)
        for batch in batches:
            schemas = batch.column(schema).to_pylist()
            versions = [None] * len(batch) if version is None else batch.column(version).to_pylist()
            yield _mediated(batch, document, _together(schemas, versions), rewriting)

    return mediate_batches


class Rewriting:
    """A mediator's mappings in a worker, each with what reads and rewrites its documents."""

    def __init__(self, mediator: Mediator, limits: Limits | None, entities: Entities) -> None:
        self._mediator = mediator
        self._entities: Entities = entities
        self._limits = Limits.given(limits)
        self._bridges: dict[bytes, tuple[Reader, EventRewriter]] = {}

    def mapping(self, schema: str | None, version: int | None) -> Mapping:
        """The mapping of a row; `MappingError` when there is none."""
        if schema is None:
            raise MappingError("the document does not say which schema it is written in: the column is null")
        return self._mediator.mapping(schema, version)

    def bridge(self, mapping: Mapping) -> tuple[Reader, EventRewriter]:
        """What reads the documents of a mapping, and what rewrites them."""
        found = self._bridges.get(mapping.fingerprint)
        if found is None:
            names = Names()
            rewriter = EventRewriter(mapping.plan, names)
            found = self._bridges[mapping.fingerprint] = (Reader(names, self._limits, self._entities), rewriter)
        return found


def _together(schemas: list[Any], versions: list[Any]) -> dict[tuple[Any, Any], list[int]]:
    """The places of the documents of each schema and version."""
    places: dict[tuple[Any, Any], list[int]] = {}
    for place, key in enumerate(zip(schemas, versions, strict=True)):
        places.setdefault(key, []).append(place)
    return places


def _mediated(
    batch: pa.RecordBatch, document: str, groups: dict[tuple[Any, Any], list[int]], rewriting: Rewriting
) -> pa.RecordBatch:
    """A batch with structures and errors, its rows in their order."""
    done: list[pa.RecordBatch] = []
    for (schema, version), places in groups.items():
        rows = batch if len(groups) == 1 else take_rows(batch, places)
        try:
            mapping = rewriting.mapping(schema, version)
        except PathcastError as error:
            done.append(_with(rows, pa.nulls(len(rows), pa.binary()), dict.fromkeys(range(len(rows)), error)))
        else:
            done.extend(_structured(rows, document, *rewriting.bridge(mapping)))
    if len(groups) <= 1:
        return one_batch(done) if done else _with(batch, pa.nulls(0, pa.binary()), {})
    order = np.concatenate([np.array(places) for places in groups.values()])
    return take_rows(one_batch(done), np.argsort(order, kind="stable").tolist())


def _structured(rows: pa.RecordBatch, document: str, reader: Reader, rewriter: EventRewriter) -> Batches:
    """Rows of one schema with their structures."""
    for part in parts_of_values(rows.column(document)):
        encodings = dict.fromkeys(range(part.end - part.begin), "utf-8") if part.text else None
        batch = reader.scanner.read_data(
            part.data, part.offsets, encodings=encodings, failed=part.failed, borrowed=True
        )
        rewritten = rewriter.rewrite(batch).batch
        structures = binary_column(*pack(rewritten), rewritten.errors)
        yield _with(rows.slice(part.begin, part.end - part.begin), structures, rewritten.errors)


def _with(rows: pa.RecordBatch, structures: pa.Array, errors: dict[int, PathcastError]) -> pa.RecordBatch:
    rows = rows.append_column(STRUCTURE, structures)
    return rows.append_column("error", error_column(len(rows), errors))
