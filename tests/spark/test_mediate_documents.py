"""`mediate`: documents of many publishers match subscriptions to the global schema; originals are delivered."""

import pickle
from random import Random

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pathcast
from pathcast.errors import PathcastError, PipelineError
from pathcast.matching import Matcher
from pathcast.mediation import Mapping, Mediator, infer_tree
from pathcast.mediation.mappings.document_object_tree import to_bytes
from pathcast.spark import dead_letters, deliver, match_documents, mediate
from pathcast.spark.matching import document_batch_reader, mediate_documents
from pathcast.spark.matching import match_documents as match_documents_module
from pathcast.spark.matching.match_documents import matching, matching_stage
from pathcast.spark.matching.mediate_documents import mediating
from pathcast.spark.matching.worker_index import Index
from pathcast.spark.sessions.objects_sent_to_workers import ShippedObject
from tests.mediation.drawn import drawn_document, drawn_operators, drawn_tree

SCHEMA = pa.schema([("publisher", pa.string()), ("version", pa.int32()), ("xml", pa.binary())])
XPATHS = ["/staff/person[room = 2]/name", "//person/@age", "//name[text() = 'y']", "/staff//room", "//office"]
PEOPLE = [
    ("annex", None, b"<staff><person name='y'><office>2</office></person></staff>"),
    ("main", None, b"<staff><person age='3'><name>x &amp; z</name><room>1</room></person></staff>"),
    ("annex", 2, b"<staff><person name='y'><office>2</office></person></staff>"),
    ("annex", 1, "<?xml version='1.0' encoding='UTF-16'?><staff><person name='y'/></staff>".encode("utf-16")),
    ("nobody", None, b"<staff/>"),
    ("annex", 7, b"<staff/>"),
    ("main", None, b"<other/>"),
    ("main", None, b"<staff>"),
    ("main", None, None),
    (None, None, b"<staff/>"),
]


@pytest.fixture(scope="module")
def mediator():
    wanted = infer_tree(["<staff><person age='1'><name>x</name><room>1</room></person></staff>"])
    made = Mediator(wanted)
    theirs = infer_tree(["<staff><person name='y'><office>2</office></person></staff>"])
    made.register("annex", theirs, correspondence={"staff/person/office": "staff/person/room"})
    made.register("main", wanted)
    made.register("annex", theirs, correspondence={"staff/person": "staff/person"})
    return made


@pytest.fixture(scope="module")
def subscriptions():
    made = pathcast.Subscriptions()
    for number, xpath in enumerate(XPATHS):
        made.add(xpath, subscriber=f"s{number}")
    return made


def arrow(rows, cut=4):
    made = [dict(zip(SCHEMA.names, row, strict=True)) for row in rows]
    return [pa.RecordBatch.from_pylist(made[at : at + cut], SCHEMA) for at in range(0, len(made), cut)]


def in_workers(rows, mediator, folder, cut=4):
    """The result of the two stages, without Spark: ids or the reason of each row."""
    structured = mediating(ShippedObject.of(mediator), "xml", "publisher", "version")(iter(arrow(rows, cut)))
    found = matching(Index(str(folder)), "xml", "id", structure="structure")(structured)
    return [row for batch in found for row in batch.to_pylist()]


def in_one_worker(rows, mediator, folder, cut=4):
    """The result of mediation and matching in one worker, without Spark."""
    stage = matching_stage(Index(str(folder)), "id", measure=False)
    found = mediating(ShippedObject.of(mediator), "xml", "publisher", "version", stage=stage)(iter(arrow(rows, cut)))
    return [row for batch in found for row in batch.to_pylist()]


def in_process(rows, mediator, subscriptions):
    matcher = mediator.compile(subscriptions)
    answers = []
    for publisher, version, xml in rows:
        try:
            answers.append(matcher.match(xml, publisher, version).ids.tolist())
        except PathcastError as error:
            answers.append(error.reason)
    return answers


@pytest.fixture(scope="module")
def folder(subscriptions, tmp_path_factory):
    place = tmp_path_factory.mktemp("mediated") / "index"
    subscriptions.compile().save(place)
    return place


def test_rows_say_what_the_matcher_in_one_process_says(mediator, subscriptions, folder):
    rows = in_workers(PEOPLE, mediator, folder)
    known = [row for row in PEOPLE if row[0] is not None and row[2] is not None]
    expected = in_process(known, mediator, subscriptions)
    found = [row["matches"] if row["error"] is None else row["error"]["reason"] for row in rows]
    assert found[: len(known)] == expected
    assert expected[0] == [1, 3, 4]
    assert "version 7" in found[5]
    assert "schema 'nobody' is not registered" in found[4]
    assert [bool(row["error"]) for row in rows] == [False] * 4 + [True] * 6
    assert [row["xml"] for row in rows] == [xml for _, _, xml in PEOPLE]
    assert all(row["matches"] is None for row in rows if row["error"])


def test_a_stage_in_the_same_worker_gets_the_documents_without_their_bytes(mediator, folder, monkeypatch):
    expected = in_workers(PEOPLE, mediator, folder)

    def no_bytes(*_):
        raise AssertionError("documents were packed or unpacked")

    for module in (mediate_documents, match_documents_module, document_batch_reader):
        for name in ("pack", "unpack"):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, no_bytes)
    assert in_one_worker(PEOPLE, mediator, folder) == expected


def test_a_document_that_breaks_the_matcher_is_an_error_alone_in_the_same_worker(mediator, folder, monkeypatch):
    expected = in_one_worker(PEOPLE, mediator, folder)
    whole = Matcher.match_arrays

    def breaks_on_several(self, batch, by, **options):
        if len(batch) > 1:
            raise RuntimeError("broken")
        return whole(self, batch, by, **options)

    monkeypatch.setattr(Matcher, "match_arrays", breaks_on_several)
    assert in_one_worker(PEOPLE, mediator, folder) == expected


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 2**32))
def test_drawn_mappings_and_documents_match_as_in_one_process(tmp_path_factory, seed):
    random = Random(seed)
    trees = [drawn_tree(random) for _ in range(3)]
    mediator = Mediator(trees[0])
    for number, tree in enumerate(trees):
        mediator.add(Mapping(f"p{number}", tree, tuple(drawn_operators(random, tree))))
    subscriptions = pathcast.Subscriptions()
    subscriptions.add_many(["//A", "//b[@x]", "/r//c[. != '']", "//N", "/r[b or A]/*", "//d/text()", "//*[@X = '1']"])
    place = tmp_path_factory.mktemp("drawn") / "index"
    subscriptions.compile().save(place)
    rows = []
    for _ in range(12):
        number = random.randrange(3)
        rows.append((f"p{number}", random.choice([None, 1]), to_bytes(drawn_document(random, trees[number]))))
    found = in_workers(rows, mediator, place, cut=5)
    assert in_one_worker(rows, mediator, place, cut=5) == found
    answers = [row["matches"] if row["error"] is None else row["error"]["reason"] for row in found]
    assert answers == in_process(rows, mediator, subscriptions)


def test_a_mediator_travels_with_all_versions(mediator):
    there = pickle.loads(pickle.dumps(mediator))
    assert there.schemas == mediator.schemas
    for name, version in (("annex", 1), ("annex", 2), ("annex", None), ("main", 1)):
        assert there.mapping(name, version) == mediator.mapping(name, version)
    there.register("new", there.global_schema)


def test_what_is_shipped_is_unpacked_once():
    made = []

    def make(value, more):
        made.append((value, more))
        return [value]

    shipped = ShippedObject.of({"a": 1})
    assert shipped.open(make, 2) is ShippedObject.of({"a": 1}).open(make, 2)
    assert made == [({"a": 1}, 2)]


def test_on_spark_the_original_is_delivered(spark, mediator, subscriptions, folder):
    documents = spark.createDataFrame(PEOPLE, "publisher string, version int, xml binary")
    mediated = mediate(documents, mediator, version="version")
    assert mediated.columns == ["publisher", "version", "xml", "structure", "error"]
    matched = match_documents(mediated, folder, structure="structure", by="subscriber").persist()
    assert matched.columns == ["publisher", "version", "xml", "subscribers", "error"]
    rows = deliver(matched).collect()
    matcher = mediator.compile(subscriptions)
    expected = [
        (xml, name)
        for publisher, version, xml in PEOPLE[:4]
        for name in matcher.match(xml, publisher, version).subscribers
    ]
    assert sorted((bytes(row.xml), row.subscriber) for row in rows) == sorted(expected)
    dead = dead_letters(matched).collect()
    assert sorted((row.publisher or "", row.version or 0) for row in dead) == [
        ("", 0), ("annex", 7), ("main", 0), ("main", 0), ("main", 0), ("nobody", 0)
    ]  # fmt: skip
    matched.unpersist()


def test_what_is_asked_wrongly_is_said(spark, mediator, folder):
    documents = spark.createDataFrame(PEOPLE, "publisher string, version int, xml binary")
    with pytest.raises(PipelineError, match="no column 'source'; the columns are"):
        mediate(documents, mediator, schema="source")
    with pytest.raises(PipelineError, match="names of schemas must be strings"):
        mediate(documents, mediator, schema="version")
    with pytest.raises(PipelineError, match="versions must be whole numbers"):
        mediate(documents, mediator, version="publisher")
    with pytest.raises(PipelineError, match="no binary column 'structure'"):
        match_documents(documents, folder, structure="structure")
    with pytest.raises(PipelineError, match="is of type int, so Pathcast did not make the column"):
        match_documents(documents.selectExpr("xml", "xml as structure", "1 as error"), folder, structure="structure")
