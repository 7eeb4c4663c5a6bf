"""An overlay on Spark: documents travel from router to router, hop by hop, to their subscribers.

    documents ── source ──▶ messages for its neighbours, deliveries ── next routers ──▶ … ──▶ a row per delivery

Package routing has the algorithms of routers (Chan, Ni: Efficient XML Data Dissemination with Piggybacking, SIGMOD
2007; `routing/document_batch_forwarding.py`). A document is read once, however many routers it reaches. A worker takes
its documents through all hops and opens the routers that they reach (`routing_worker_tasks.py`); with `spread` each hop
is a separate stage, messages are rows, and go to the worker that has their router.

Invariant: deliveries, bytes and annotations are those of the overlay in one process. With `t`, the ends of links start
again in every task, so that their definitions are sent once per partition.
Cost: a router's work per message, and the transfer of a document through one Python worker; with `spread` the transfer
of all messages through one worker per hop, and a shuffle.
"""

import os
from dataclasses import replace
from typing import TypedDict, Unpack

from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t
from pyspark.sql.utils import is_remote

from pathcast.documents import Entities, Limits
from pathcast.errors import PipelineError
from pathcast.routing import Overlay, Policy, engine_for

from ..arrow_to_spark_types import spark_fields, spark_type
from ..matching.input_column_checks import ERROR, check_columns, check_entities, check_structure
from ..matching.mediate_documents import Mediating, mediate
from ..matching.parse_documents import STRUCTURE, parse_documents
from ..matching.worker_index import ARTIFACT, PublishedIndex, find_index
from .published_overlays import check_overlay, ship_overlay
from .router_visits import VISITS_TYPE
from .routing_worker_tasks import (
    ADDED_COLUMNS,
    OPEN,
    ROUTER,
    SUBSCRIBER,
    VISITS,
    Way,
    hopping,
    routing,
    routing_stage,
)

_ADDED = spark_fields(ADDED_COLUMNS)
_NEW = [field.name for field in _ADDED]


AnyOverlay = Overlay | str | os.PathLike[str]


class RoutingOptions(TypedDict, total=False):
    """Further options of `disseminate` and `route_documents`."""

    document: str
    structure: str | None
    mediation: Mediating | None
    at: str | None
    engine: str | None
    links: bool
    version: int | None
    pins: str | os.PathLike[str] | None
    entities: Entities


_DEFAULTS: RoutingOptions = {
    "document": "xml",
    "structure": None,
    "mediation": None,
    "at": None,
    "engine": None,
    "links": False,
    "version": None,
    "pins": None,
    "entities": "refuse",
}


def disseminate(
    documents: DataFrame,
    overlay: AnyOverlay,
    policy: str | Policy = "L+s-sd",
    *,
    spread: bool = False,
    **options: Unpack[RoutingOptions],
) -> DataFrame:
    """Send documents through an overlay, from a router (the root, unless `at` names another) to their subscribers.

    `overlay` is an overlay, or a folder that `publish_overlay` wrote, with versions as those of an index
    (`match_documents`). With `structure`, documents are not parsed: that column has their structures, as `mediate`
    makes them, and is dropped from the output. With `mediation`, they are mediated in the same worker first.

    A row per document and subscriber: the document's columns, the `router` where it subscribed, the `sender` that the
    router had the document from (null at the source), `subscriber`, the `annotations` that came along and the `bytes`
    of the message. With `links`, also a row for each message that came to a router, whose `subscriber` is null. A
    document that cannot be read is one row with `error`.

    `document` is the column of documents; `at` and `engine` are those of `Overlay.publish`, `version`, `pins` and
    `entities` those of `match_documents`.

    With `spread`, every hop is a stage, and messages go to the worker that has their router: for overlays that are too
    large for one worker. Works on streams too; an overlay that is given as an object does not change then.
    """
    given = _given(options)
    if not spread:
        routed = route_documents(documents, overlay, policy, adding=_NEW, **given)
        return visits_as_rows(routed, links=given["links"])
    mediation = given["mediation"]
    if mediation is not None:
        documents = mediate(
            documents,
            mediation.mediator,
            mediation.schema,
            version=mediation.version,
            document=given["document"],
            entities=given["entities"],
        )
        given["structure"] = STRUCTURE
    return _spread(documents, overlay, Policy.read(policy), given)


def route_documents(
    documents: DataFrame,
    overlay: AnyOverlay,
    policy: str | Policy = "L+s-sd",
    *,
    adding: list[str] | None = None,
    **options: Unpack[RoutingOptions],
) -> DataFrame:
    """As `disseminate`, but one row per document: `visits` lists the routers where it was delivered, or with `links`
    all that it reached, each with `router`, `sender`, `annotations`, `bytes`, `error` and `subscribers`.

    `adding` are columns that a later stage adds, and that the frame must not have.
    """
    given = _given(options)
    document, structure, mediation = given["document"], given["structure"], given["mediation"]
    had = _check(documents, document, structure, adding or [VISITS])
    way = _way(documents, overlay, Policy.read(policy), given)
    gone = [structure, *(["error"] if had else [])]
    kept = [field for field in documents.schema.fields if field.name not in gone]
    function = routing(way)
    if mediation is not None:
        function = mediation.function(documents, document, way.limits, way.entities, routing_stage(way))
    return documents.mapInArrow(function, t.StructType([*kept, t.StructField(VISITS, spark_type(VISITS_TYPE))]))


def _given(options: RoutingOptions) -> RoutingOptions:
    """Options with defaults for those that are not given."""
    for name in options.keys() - _DEFAULTS.keys():
        raise TypeError(f"unknown option '{name}'; use one of {', '.join(_DEFAULTS)}")
    given: RoutingOptions = {**_DEFAULTS, **options}
    if given["mediation"] is not None and given["structure"] is not None:
        raise PipelineError(
            "mediation= cannot be combined with structure=: mediation= already creates the structures; omit structure="
        )
    check_entities(given["entities"])
    return given


def visits_as_rows(routed: DataFrame, *, links: bool = False) -> DataFrame:
    """A row for each delivery of what `route_documents` made; with `links` also one for each visit."""
    kept = [f.col(f"`{name}`") for name in routed.columns if name != VISITS]
    visits = routed.select(*kept, f.explode(VISITS).alias("_visit"))
    names = f.col("_visit.subscribers")
    if links:
        nobody = f.array(f.lit(None).cast("string"))
        subscriber = f.explode(f.concat(nobody, names))
    else:
        subscriber = f.explode_outer(names)  # visits without subscribers only have errors
    return visits.select(
        *kept,
        "_visit.router",
        "_visit.sender",
        subscriber.alias(SUBSCRIBER),
        "_visit.annotations",
        "_visit.bytes",
        "_visit.error",
    )


def _check(documents: DataFrame, document: str, structure: str | None, added: list[str]) -> bool:
    """Reject a frame that cannot be routed; return whether it has errors of an earlier stage."""
    had = structure is not None and "error" in documents.columns
    if structure is not None:
        check_structure(documents.schema, structure, None)
    check_columns(documents.schema, document, None, [name for name in added if not (had and name == "error")])
    return had


def _way(documents: DataFrame, overlay: AnyOverlay, policy: Policy, given: RoutingOptions) -> Way:
    name, at, version = engine_for(policy, given["engine"]), given["at"], given["version"]
    if isinstance(overlay, Overlay):
        limits: Limits | None = overlay.limits
        at = overlay.router(overlay.root if at is None else at).name
        overlay = ship_overlay(documents.sparkSession, overlay, at=at, policy=policy, engine=name)
    else:
        remote = is_remote() or str(overlay).startswith(ARTIFACT)
        limits = None if remote else check_overlay(overlay, version, at).limits
    found = find_index(
        PublishedIndex(overlay, version, given["pins"]), streaming=documents.isStreaming, remote=is_remote()
    )
    return Way(found, policy, name, given["document"], given["links"], given["structure"], limits, given["entities"])


def _spread(documents: DataFrame, overlay: AnyOverlay, policy: Policy, given: RoutingOptions) -> DataFrame:
    """Route with one stage per hop."""
    document, structure = given["document"], given["structure"]
    _check(documents, document, structure, [*_NEW, OPEN])
    hops = _hops(overlay, given["version"], given["at"])
    way = _way(documents, overlay, policy, given)
    if structure is None:
        documents = parse_documents(documents, document=document, limits=way.limits, entities=way.entities)
        way = replace(way, structure=STRUCTURE)
    if "error" not in documents.columns:
        documents = documents.withColumn("error", f.lit(None).cast(ERROR))
    kept = [field for field in documents.schema.fields if field.name != "error"]
    schema = t.StructType([*kept, *_ADDED, t.StructField(OPEN, t.BooleanType())])
    added = [f.lit(None).cast(field.dataType).alias(field.name) for field in _ADDED if field.name != "error"]
    names = [f.col(f"`{field.name}`") for field in kept]
    rows = documents.select(*names, *added, "error", f.lit(True).alias(OPEN))
    for number in range(hops):
        rows = rows.repartition(ROUTER) if number else rows
        rows = rows.mapInArrow(hopping(way, last=number == hops - 1), schema)
    return rows.drop(OPEN, *([STRUCTURE] if structure is None else [structure]))


def _hops(overlay: AnyOverlay, version: int | None, at: str | None) -> int:
    if isinstance(overlay, Overlay):
        return int(overlay.topology.rooted(overlay.root if at is None else at).depth.max()) + 1
    if is_remote() or str(overlay).startswith(ARTIFACT):
        raise PipelineError(
            f"spread=True needs the number of hops, but the driver cannot read the overlay {str(overlay)!r}; "
            "omit spread=True, "
            "or give a folder on a disk of the driver, without Spark Connect"
        )
    return check_overlay(overlay, version, at).hops
