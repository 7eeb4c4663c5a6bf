"""`join_subscriptions`: the messages of one server, ordered by key, from changes that come batch by batch."""

from collections import Counter, defaultdict
from random import Random

import pyarrow as pa
import pytest

from pathcast.errors import PipelineError
from pathcast.joins import Client, Schema, select
from pathcast.joins.partition.join_server_specification import StandingJoins
from pathcast.joins.partition.value_partitioned_join import Parts
from pathcast.joins.query.value_text_conversion import write_row
from pathcast.messages import decode
from pathcast.spark import (
    dead_letters,
    deliver_joins,
    initial_contents,
    join_subscriptions,
    open_joins,
    publish_joins,
    write_once,
)
from pathcast.spark.joins.table_change_fan_out import fanning
from pathcast.spark.joins.worker_join_subscriptions import Subscribed
from pathcast.spark.sessions.objects_sent_to_workers import ShippedObject
from tests.joins.test_value_partitioned_join import history
from tests.joins.world import JOINS, TABLES, draw_query

CHANGES = "sequence long, table string, change string, row string, values string"


def letter(sequence, change):
    verb, table, row, *more = change
    return (sequence, table, verb, write_row(row), write_row(more[0]) if more else None)


STANDING = StandingJoins(
    Schema({"A": "k int", "B": "k int, n float"}, joins=["A.k = B.k"]), ["select * from A, B where A.k = B.k"]
)


def fanned(letters):
    names = [part.split()[0] for part in CHANGES.split(",")]
    types = [pa.int64(), *[pa.string()] * 4]
    made = [dict(zip(names, each, strict=True)) for each in letters]
    batch = pa.RecordBatch.from_pylist(made, pa.schema(list(zip(names, types, strict=True))))
    function = fanning(Subscribed(ShippedObject.of(STANDING), None))
    return [row for found in function(iter([batch])) for row in found.to_pylist()]


def test_events_of_a_key_are_one_row():
    rows = fanned([(2, "A", "insert", '{"k": 1}', None), (1, "B", "insert", '{"k": 1, "n": 2}', None)])
    assert [(row["edge"], row["join_value"]) for row in rows] == [(0, "[1]")]
    events = Parts(STANDING).codec(0).read_events(rows[0]["events"])
    assert [event[:2] for event in events] == [(2, "A"), (1, "B")]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ((1, "A", "insert", None, None), "has no row"),
        ((None, "A", "insert", '{"k": 1}', None), "has no number"),
        ((1, "A", "insert", "{", None), "the column 'row' must be a JSON object, got {"),
        ((1, "A", "insert", "[1]", None), "must be a JSON object"),
        ((1, "A", "insert", '{"k": "x"}', None), "A.k: expected an int"),
        ((1, None, "insert", "{}", None), "unknown table ''"),
    ],
)
def test_a_change_that_cannot_be_made_is_a_row_with_its_reason(change, reason):
    good = (9, "A", "insert", '{"k": 1}', None)
    bad, fine = sorted(fanned([change, good]), key=lambda row: row["edge"])
    assert reason in bad["error"]["reason"]
    assert (bad["sequence"], bad["table"], bad["row"]) == (change[0], change[1], change[3])
    assert fine["error"] is None


def test_a_stream_of_changes_gives_the_messages_of_one_server(spark, tmp_path):
    random = Random(7)
    queries, more = ([draw_query(random.choice) for _ in range(count)] for count in (6, 3))
    world, changes, expected = history(random, 60, queries, "ref-sj-clu+", later=more)
    world.database.close()
    letters = [letter(*each) for each in changes]
    letters[20:20] = letters[15:18]  # repeated, with the same micro-batch
    letters[40:40] = letters[10:13]  # and with another
    letters.append((99, "R", "delete", '{"k": 5, "a": 1, "p": "x"}', None))
    letters.append((100, "R", "insert", '{"k": 5, "a": "x"}', None))
    schema, folder, versions, checkpoint = (
        Schema(TABLES, JOINS), tmp_path / "changes", tmp_path / "versions", tmp_path / "checkpoint"
    )  # fmt: skip

    def write(rows, batch):
        rows.persist()
        write_once(rows, batch, tmp_path / "messages")
        write_once(deliver_joins(rows, versions=versions, shards=2), batch, tmp_path / "deliveries")
        write_once(initial_contents(spark, versions, checkpoint, batch), batch, tmp_path / "contents")
        rows.unpersist()

    def run():
        stream = spark.readStream.schema(CHANGES).option("maxFilesPerTrigger", 1).parquet(str(folder))
        writer = join_subscriptions(stream, versions=versions).writeStream.foreachBatch(write)
        writer = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
        assert writer.start().awaitTermination(240)

    def add(first, last):
        part = spark.createDataFrame(letters[first:last], CHANGES).coalesce(1)
        part.write.mode("append").parquet(str(folder))

    assert publish_joins(versions, StandingJoins(schema, {"ada": queries})) == (1, range(1, 7))
    add(0, 33)
    run()
    assert publish_joins(versions, add={"bob": more}) == (2, range(7, 10))
    add(33, len(letters))
    run()  # started again: what it knows is in the checkpoint

    rows = spark.read.parquet(str(tmp_path / "messages"))
    found: defaultdict[int, Counter[bytes]] = defaultdict(Counter)
    by_key: defaultdict[tuple[int, str], list[tuple[int, int, bytes]]] = defaultdict(list)
    told: dict[tuple[int, str, int, int], bytes] = {}
    for row in rows.where("error is null").collect():
        found[row.sequence][bytes(row.message)] += 1
        by_key[row.edge, row.join_value].append((row.sequence, row.number, bytes(row.message)))
        told[row.edge, row.join_value, row.sequence, row.number] = bytes(row.message)
    assert found == {
        sequence: Counter(message.encode() for message in messages)
        for sequence, messages in expected.items()
        if messages
    }
    dead = dead_letters(rows).collect()
    assert sorted((row.sequence, row.table) for row in dead) == [(99, "R"), (100, "R")]
    check_clients(spark, tmp_path, world, open_joins(versions), by_key, told, expected)


def check_clients(spark, folder, world, standing, by_key, told, expected):
    """Contents and deliveries: a new subscriber begins with the one and continues with the other."""
    subscriptions = standing.server().subscriptions
    clients = {id: Client(standing.schema, subscriptions[id]) for id in standing}
    contents = spark.read.parquet(str(folder / "contents")).collect()
    assert {(row.batch, row.subscription > 6, row.subscriber) for row in contents} == {(1, True, "bob")}
    for row in contents:
        assert clients[row.subscription].receive(decode(bytes(row.message)))
    delivered = {
        (row.edge, row.join_value, row.sequence, row.number, row.subscription): row.subscriber
        for row in spark.read.parquet(str(folder / "deliveries")).collect()
    }
    wanted = {}
    for (edge, value), messages in by_key.items():
        for sequence, number, message in sorted(messages):
            for id, client in clients.items():
                if (id <= 6 or sequence > 30) and client.receive(decode(message)):
                    wanted[edge, value, sequence, number, id] = "ada" if id <= 6 else "bob"
    assert delivered == wanted
    for client, (_, subscription, there) in zip(clients.values(), world.clients.values(), strict=True):
        for sequence, messages in expected.items():
            for message in messages if subscription.id <= 6 or sequence > 30 else ():
                there.receive(message)
        assert Counter(client.rows()) == Counter(there.rows())


def test_what_is_asked_wrongly_is_said(spark, tmp_path):
    schema = Schema({"A": "k int"})
    changes = spark.createDataFrame([], CHANGES)
    with pytest.raises(PipelineError, match="changes have no column 'sequence'"):
        join_subscriptions(changes.drop("sequence"), StandingJoins(schema))
    with pytest.raises(PipelineError, match="'sequence' of changes is of type string; cast the column to bigint"):
        join_subscriptions(changes.selectExpr("table", "change", "row", "'1' as sequence"), StandingJoins(schema))
    with pytest.raises(PipelineError, match="no subscriptions given; give either"):
        join_subscriptions(changes)
    with pytest.raises(PipelineError, match="are both given; give either"):
        join_subscriptions(changes, StandingJoins(schema), versions=tmp_path)
    with pytest.raises(PipelineError, match="no version of subscriptions"):
        join_subscriptions(changes, versions=tmp_path)
    with pytest.raises(PipelineError, match="pins= and version= need versions"):
        join_subscriptions(changes, StandingJoins(schema), pins=tmp_path)
    messages = spark.createDataFrame([], "message binary, subscription long")
    with pytest.raises(PipelineError, match="'subscription' already exists"):
        deliver_joins(messages, StandingJoins(schema))
    with pytest.raises(PipelineError, match="no subscriptions given; give either"):
        deliver_joins(messages.drop("subscription"))
    with pytest.raises(PipelineError, match="no binary column 'message'"):
        deliver_joins(messages.drop("message"), StandingJoins(schema))
    with pytest.raises(PipelineError, match="is not the checkpoint of a stream"):
        initial_contents(spark, tmp_path, tmp_path, 1)


def test_versions_begin_with_one_and_are_changed_from_then_on(tmp_path):
    standing = StandingJoins(Schema({"A": "k int"}), ["select * from A"])
    with pytest.raises(PipelineError, match="publish the first version with publish_joins"):
        publish_joins(tmp_path, add=["select * from A"])
    assert publish_joins(tmp_path, standing) == (1, range(1, 2))
    with pytest.raises(PipelineError, match="give the changes with"):
        publish_joins(tmp_path, standing)
    ranges = {"k": ([1, 2], [3, 4])}
    assert publish_joins(tmp_path, remove=[1], batches=[(select("A"), ranges)]) == (2, range(2, 4))
    assert ([*open_joins(tmp_path)], [*open_joins(tmp_path, 1)]) == ([2, 3], [1])
