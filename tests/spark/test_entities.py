"""Documents that declare entities on Spark: rejected, or expanded by every stage that parses."""

from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any, TypedDict

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame
from pyspark.sql.functions import lit

import pathcast
from pathcast.documents import Entities
from pathcast.errors import PipelineError
from pathcast.joins import Extraction
from pathcast.mediation import Mediator, infer_tree
from pathcast.routing import Overlay, Policy
from pathcast.routing.snapshot import save_overlay
from pathcast.spark import (
    PublishedIndex,
    disseminate,
    expand,
    extract_rows,
    match_documents,
    mediate,
    publish,
    summarize,
)
from pathcast.spark.joins.extract_rows import extracting
from pathcast.spark.matching.match_documents import matching
from pathcast.spark.matching.mediate_documents import Mediating, mediating
from pathcast.spark.matching.parse_documents import parsing
from pathcast.spark.matching.roxsum_messages import expanding, summarizing
from pathcast.spark.matching.worker_index import Index
from pathcast.spark.overlay.routing_worker_tasks import Way, routing
from pathcast.spark.pipeline.run_pipeline import run
from pathcast.spark.sessions.objects_sent_to_workers import ShippedObject
from tests.spark.test_pipeline_dataframes import delivered, folder, ignored, pipeline, rows, write_news

from .test_pipeline_file import SMALL, problems

__all__ = ["folder"]

DECLARED = b"<!DOCTYPE news [<!ENTITY t '<title>Rain</title>'>]><news>&t;</news>"
BOMB = b"<!DOCTYPE news [<!ENTITY a '%b'>]><news>%b</news>" % (b"x" * 50_000, b"&a;" * 60)
OUTSIDE = b"<!DOCTYPE news [<!ENTITY x SYSTEM 'file:///etc/passwd'>]><news>&x;</news>"
DOCUMENTS = [DECLARED, b"<news><title/></news>", BOMB, OUTSIDE]
WAYS = ["refuse", "expand"]


def batch(**columns: list[object]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"xml": pa.array(DOCUMENTS, pa.binary()), **columns})


def read(found: list[dict]) -> list[bool]:
    return [row["error"] is None for row in found]


def expected(entities: str) -> list[bool]:
    return [entities == "expand", True, False, False]


def listed(batches) -> list[dict]:
    return [row for one in batches for row in one.to_pylist()]


@pytest.mark.parametrize("entities", WAYS)
def test_a_worker_matches_documents_with_entities_if_it_is_told_to(entities, index):
    found = listed(matching(Index(str(index), entities=entities), "xml", "id")(iter([batch()])))
    assert read(found) == expected(entities)
    assert found[0]["matches"] == ([1] if entities == "expand" else None)
    structured = parsing("xml", None, entities)(iter([batch()]))
    again = listed(matching(Index(str(index)), "xml", "id", structure="structure")(structured))
    assert [row["matches"] for row in again] == [row["matches"] for row in found]


@pytest.mark.parametrize("entities", WAYS)
def test_a_worker_mediates_documents_with_entities_if_it_is_told_to(entities):
    mediator = Mediator(infer_tree(["<news><title>x</title></news>"]))
    mediator.register("main", infer_tree(["<news><title>x</title></news>"]))
    given = batch(publisher=["main"] * len(DOCUMENTS))
    found = listed(mediating(ShippedObject.of(mediator), "xml", "publisher", None, None, entities)(iter([given])))
    assert read(found) == expected(entities)


@pytest.mark.parametrize("entities", WAYS)
def test_a_worker_cuts_rows_out_of_documents_with_entities_if_it_is_told_to(entities):
    titles = Extraction("Titles", "//title", {"title": "."})
    found = listed(extracting(ShippedObject.of(titles), "xml", entities=entities)(iter([batch()])))
    assert read(found) == expected(entities)


@pytest.mark.parametrize("entities", WAYS)
def test_a_worker_routes_documents_with_entities_if_it_is_told_to(entities, tmp_path):
    overlay = Overlay.tree(levels=2, fanout=2)
    overlay.subscribe("r3", "//title", "ada")
    save_overlay(overlay, tmp_path, engines=["automaton"])
    way = Way(Index(str(tmp_path)), Policy.read("L"), "automaton", "xml", links=False, entities=entities)
    visits = [row["visits"] for row in listed(routing(way)(iter([batch()])))]
    assert [all(visit["error"] is None for visit in each) for each in visits] == expected(entities)
    names = [visit["subscribers"] for visit in visits[0]]
    assert names == ([["ada"]] if entities == "expand" else [[]])


@pytest.mark.parametrize("entities", WAYS)
def test_a_worker_summarises_and_expands_messages_with_entities_if_it_is_told_to(entities):
    made = list(summarizing([], "xml", 100, 1 << 20, 3, None, entities)(iter([batch()])))
    good = [document for document, ok in zip(DOCUMENTS, expected(entities), strict=True) if ok]
    found = listed(expanding("xml", None, None, entities)(iter(made)))
    assert [row["xml"] for row in found if row["error"] is None] == good
    if entities == "expand":
        refused = listed(expanding("xml")(iter(made)))
        assert not any(row["error"] is None for row in refused)


class Given(TypedDict):
    mediation: Mediating | None
    entities: Entities


def test_every_stage_on_spark_has_its_workers_expand_entities(spark, index, tmp_path):
    declared = [(1, "main", DECLARED)]
    documents = spark.createDataFrame(declared, "number long, publisher string, xml binary").coalesce(1)
    publish(pathcast.open_index(index), tmp_path / "shards", shards=2)
    mediator = Mediator(infer_tree(["<news><title>x</title></news>"]))
    mediator.register("main", infer_tree(["<news><title>x</title></news>"]))
    titles = Extraction("Titles", "//title", {"title": "."})
    overlay = Overlay.tree(levels=2, fanout=2)
    overlay.subscribe("r3", "//title", "ada")
    stages = {}
    for name, first in (("", None), (" after mediation", Mediating(mediator))):
        given: Given = {"mediation": first, "entities": "expand"}
        stages[f"match{name}"] = match_documents(documents, index, **given)
        stages[f"match shards{name}"] = match_documents(
            documents, PublishedIndex(tmp_path / "shards", shards=2), **given
        )
        stages[f"extract{name}"] = extract_rows(documents, titles, key="number", **given)
        stages[f"disseminate{name}"] = disseminate(documents, overlay, "L", **given)
        stages[f"disseminate hop by hop{name}"] = disseminate(documents, overlay, "L", spread=True, **given)
    stages["mediate"] = mediate(documents, mediator, entities="expand")
    stages["summarize"] = summarize(documents, entities="expand")
    stages["expand"] = expand(stages["summarize"].select("message"), entities="expand")
    errors = [frame.select(lit(name).alias("stage"), "error") for name, frame in stages.items()]
    found = reduce(DataFrame.unionAll, errors).collect()
    assert {row["stage"] for row in found} == stages.keys()
    assert {row["stage"] for row in found if row["error"] is not None} == set()


def test_a_pipeline_expands_entities(spark, folder):
    write_news(folder / "news" / "2.parquet", [(5, DECLARED), (6, BOMB), (7, OUTSIDE)])
    source = 'format = "parquet"\npath = "news"\nentities = "expand"'
    run(spark, pipeline(folder, source=source), ignored)
    assert (5, "ada") in delivered(folder)
    dead = {row["number"]: row["error"]["reason"] for row in rows(folder / "dead")}
    assert dead.keys() == {3, 6, 7}
    assert "Limits(amplification=…)" in dead[6]
    assert "which is never read" in dead[7]


def test_a_pipeline_refuses_entities_unless_it_says_otherwise(tmp_path: Path):
    text = SMALL.replace('format = "parquet"', 'format = "parquet"\nentities = "{}"')
    ((_, key, reason),) = problems(tmp_path, text.format("allow"))
    assert (key, reason) == ("source.entities", 'must be "refuse" or "expand", got "allow"')


def test_another_way_with_entities_is_refused_before_anything_runs(spark, index):
    documents = spark.createDataFrame([("main", b"<a/>")], "publisher string, xml binary")
    allow: Any = "allow"
    stages: list[Callable[[], DataFrame]] = [
        lambda: match_documents(documents, index, entities=allow),
        lambda: match_documents(documents, PublishedIndex(index, shards=2), entities=allow),
        lambda: mediate(documents, Mediator(infer_tree(["<a/>"])), entities=allow),
        lambda: extract_rows(documents, Extraction("A", "//a", {"a": "."}), entities=allow),
        lambda: summarize(documents, entities=allow),
        lambda: expand(documents, entities=allow),
        lambda: disseminate(documents, Overlay.tree(levels=1), entities=allow),
    ]
    for stage in stages:
        with pytest.raises(PipelineError, match="entities must be 'refuse' or 'expand', got 'allow'"):
            stage()
