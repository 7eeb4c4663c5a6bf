"""Mediation on Spark: documents of many publishers, read once, become structures in the global schema.

    documents (publisher, xml) ──▶ (publisher, xml, structure, error) ──match_documents(structure=…)──▶ matches

The original document stays unchanged, to be delivered. The structure next to it holds its element arrays in the global
schema (`pathcast.documents.pack`), so that matching neither parses nor rewrites. Package mediation does the rewriting
(Ni, Chan: Dissemination of Heterogeneous XML Data, CIKM 2009).

Invariant: a document matches by its structure what package mediation's matcher finds for it. A document that is of an
unknown schema or version, does not fit its schema, or cannot be read has an error and no structure.
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

from pathcast.documents import Entities, Limits, Names, pack
from pathcast.errors import MappingError, PathcastError, PipelineError
from pathcast.kernels import Int64s
from pathcast.mediation import Mapping, Mediator
from pathcast.mediation.rewriting import EventRewriter

from ..sessions.objects_sent_to_workers import ShippedObject
from .arrow_document_columns import Part, binary_column, error_column, parts_of_values
from .document_batch_reader import PartReader
from .input_column_checks import ERROR, check_columns, check_entities
from .parse_documents import STRUCTURE
from .row_groups_by_key import one_batch, take_rows

Batches = Iterator[pa.RecordBatch]
# Turns the rows of a part into other rows, each with the number of the row that it comes from.
Stage = Callable[[Part, pa.RecordBatch], tuple[pa.RecordBatch, Int64s]]


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

    The column `schema` names the schema of each document, as it was registered with the mediator; the column `version`,
    if given, has the version of its mapping; otherwise, or if it is null, the newest is used. Keeps all columns and
    adds `structure` (binary, null if there is an error) and `error` (reason, line, column).

    `limits` and `entities` are as for `match_documents`. Works on streams too; it uses the mappings that the
    mediator has when the stage is created.
    """
    check_columns(documents.schema, document, None, [STRUCTURE, "error"])
    given = Mediating(mediator, schema, version)
    added = [t.StructField(STRUCTURE, t.BinaryType()), t.StructField("error", ERROR)]
    function = given.function(documents, document, limits, entities)
    return documents.mapInArrow(function, t.StructType([*documents.schema.fields, *added]))


@dataclass(frozen=True, slots=True)
class Mediating:
    """How a stage mediates its documents before it processes them, in the same worker.

    The columns `schema` and `version` are as for `mediate`. The stage gets the documents as element arrays;
    no structures are made.
    """

    mediator: Mediator
    schema: str = "publisher"
    version: str | None = None

    def function(
        self,
        documents: DataFrame,
        document: str,
        limits: Limits | None,
        entities: Entities,
        stage: Callable[[], Stage] | None = None,
    ) -> Callable[[Batches], Batches]:
        """The function that workers run: it mediates documents and passes them on to a stage, made in the worker.

        Raises `PipelineError` if the frame lacks a column.
        """
        check_entities(entities)
        names = documents.columns
        if STRUCTURE in names:
            raise PipelineError(
                f"the column '{STRUCTURE}' already exists, but the result needs this name; rename the column first"
            )
        whole = (t.ShortType, t.IntegerType, t.LongType)
        wanted = [
            (self.schema, (t.StringType,), "names of schemas must be strings: cast the column"),
            (self.version, whole, "versions must be whole numbers: cast the column to int"),
        ]
        for name, kinds, expected in wanted:
            if name is not None and name not in names:
                raise PipelineError(f"the input has no column '{name}'; the columns are {', '.join(names)}")
            if name is not None and not isinstance(documents.schema[name].dataType, kinds):
                found = documents.schema[name].dataType.simpleString()
                raise PipelineError(f"the column '{name}' is of type {found}; {expected}")
        return mediating(ShippedObject.of(self.mediator), document, self.schema, self.version, limits, entities, stage)


def mediating(
    mediator: ShippedObject,
    document: str,
    schema: str,
    version: str | None = None,
    limits: Limits | None = None,
    entities: Entities = "refuse",
    stage: Callable[[], Stage] | None = None,
) -> Callable[[Batches], Batches]:
    """The function that a worker runs on the rows of a partition; without a stage it adds structures and errors."""

    def mediate_batches(batches: Batches) -> Batches:
        rewriting = mediator.open(Rewriting, limits, entities)
        handle = _packed if stage is None else stage()
        for batch in batches:
            schemas = batch.column(schema).to_pylist()
            versions = [None] * len(batch) if version is None else batch.column(version).to_pylist()
            yield from _mediated(batch, document, _together(schemas, versions), rewriting, handle)

    return mediate_batches


def row_by_row(made: pa.RecordBatch) -> tuple[pa.RecordBatch, Int64s]:
    """The result of a stage that returns one row per input row."""
    return made, np.arange(len(made))


class Rewriting:
    """A mediator's mappings in a worker, each with the reader and rewriter of its documents."""

    def __init__(self, mediator: Mediator, limits: Limits | None, entities: Entities) -> None:
        self._mediator = mediator
        self._entities: Entities = entities
        self._limits = Limits.given(limits)
        self._bridges: dict[bytes, tuple[PartReader, EventRewriter]] = {}

    def mapping(self, schema: str | None, version: int | None) -> Mapping:
        """The mapping of a row; raises `MappingError` if there is none."""
        if schema is None:
            raise MappingError(
                "unknown schema: the column with the name of the schema is null; fill in the name of a "
                "registered schema"
            )
        return self._mediator.mapping(schema, version)

    def bridge(self, mapping: Mapping) -> tuple[PartReader, EventRewriter]:
        """The reader and the rewriter of a mapping's documents."""
        found = self._bridges.get(mapping.fingerprint)
        if found is None:
            names = Names()
            rewriter = EventRewriter(mapping.plan, names)
            found = self._bridges[mapping.fingerprint] = (PartReader(self._limits, self._entities, names), rewriter)
        return found


def _together(schemas: list[Any], versions: list[Any]) -> dict[tuple[Any, Any], list[int]]:
    """The row numbers of the documents of each schema and version."""
    places: dict[tuple[Any, Any], list[int]] = {}
    for place, key in enumerate(zip(schemas, versions, strict=True)):
        places.setdefault(key, []).append(place)
    return places


def _mediated(
    batch: pa.RecordBatch, document: str, groups: dict[tuple[Any, Any], list[int]], rewriting: Rewriting, stage: Stage
) -> Batches:
    """The output of a stage for a batch of mediated documents, in the order of its rows."""
    made: list[pa.RecordBatch] = []
    order: list[Int64s] = []
    for (schema, version), places in groups.items():
        rows = batch if len(groups) == 1 else take_rows(batch, places)
        for part in _parts(rows.column(document), schema, version, rewriting):
            found, origins = stage(part, rows.slice(part.begin, part.end - part.begin))
            if len(groups) == 1:
                yield found
            else:
                made.append(found)
                order.append(np.array(places)[part.begin + origins])
    if made:
        yield take_rows(one_batch(made), np.argsort(np.concatenate(order), kind="stable").tolist())


def _parts(column: pa.Array, schema: Any, version: Any, rewriting: Rewriting) -> Iterator[Part]:
    """The documents of one schema, read and rewritten; without a mapping all have an error."""
    try:
        reader, rewriter = rewriting.bridge(rewriting.mapping(schema, version))
    except PathcastError as error:
        for part in parts_of_values(column):
            yield part._replace(failed=dict.fromkeys(range(part.end - part.begin), error))
        return
    for part in parts_of_values(column):
        yield part._replace(documents=rewriter.rewrite(reader.read(part)).batch)


def _packed(part: Part, rows: pa.RecordBatch) -> tuple[pa.RecordBatch, Int64s]:
    """The rows of a part with structures and errors."""
    if part.documents is None:
        structures, errors = pa.nulls(len(rows), pa.binary()), part.failed
    else:
        errors = part.documents.errors
        structures = binary_column(*pack(part.documents), errors)
    rows = rows.append_column(STRUCTURE, structures)
    return row_by_row(rows.append_column("error", error_column(len(rows), errors)))
