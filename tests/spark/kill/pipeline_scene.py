"""A scene in which a pipeline file with joins is killed: documents keep coming, subscribers come and go.

Rows are only inserted, a stock and two reviews per document. In the end every remaining subscriber must have the rows
that DuckDB gives for all documents, from its contents and deliveries alone.
"""

from collections import Counter
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

import pathcast
from pathcast.joins import Client
from pathcast.messages import decode
from pathcast.spark import open_joins, publish
from pathcast.spark.joins.join_definition_files import publish_file
from pathcast.spark.pipeline.pipeline_file import read_pipeline

from ..test_one_job import MARKET
from .program import SETTINGS
from .stage import Stage

PIPELINE = """
[source]
format = "parquet"
path = "in"
schema = "number long, xml binary"
options = { maxFilesPerTrigger = 2 }
[subscriptions]
index = "index"
[deliveries]
path = "out"
columns = ["number"]
[joins]
schema = "market.toml"
subscriptions = "joins.csv"
versions = "joins"
key = "number"
path = "messages"
deliveries = "delivered"
contents = "contents"
[stream]
checkpoint = "checkpoint"
trigger = "{trigger}"
[spark]
"""
# At most this many files wait for the stream.
AHEAD = 4
PINS = "checkpoint/joins/pathcast/pins"


class PipelineScene(Stage):
    """Documents and versions of subscriptions, for `pipeline_program.py`."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.documents = 0
        self.rows: dict[str, list[tuple[str, float]]] = {"Stocks": [], "Reviews": []}
        self.subscribed: list[tuple[str, str]] = []
        (folder / "market.toml").write_text(MARKET)
        for name, trigger in (("endless", "0 seconds"), ("ending", "available-now")):
            text = PIPELINE.replace("{trigger}", trigger)
            settings = {**SETTINGS, "spark.master": "local[1,4]"}
            (folder / f"{name}.toml").write_text(
                text + "".join(f'{key} = "{value}"\n' for key, value in settings.items())
            )
        (folder / "joined-checkpoint").symlink_to("checkpoint/joins")  # where a stage looks for the stream "joined"
        subscriptions = pathcast.Subscriptions()
        subscriptions.add("//stock", subscriber="eve")
        publish(subscriptions.compile(), folder / "index")
        super().__init__(folder, seed, "pipeline_program.py", "joins", {"joined": PINS})

    def publish(self) -> None:
        with self._publishing:
            for _ in range(2):
                low = self.random.randrange(6)
                query = f"select * from Stocks natural join Reviews where per >= {low} and rating >= {9 - low}"
                self.subscribed.append((f"reader-{self.version}", query))
            if self.version:
                self.subscribed.pop(0)
            lines = [f'{subscriber},"{query}"' for subscriber, query in self.subscribed]
            (self.folder / "joins.csv").write_text("\n".join(["subscriber,query", *lines]))
            joins = read_pipeline(self.folder / "endless.toml").joins
            assert joins is not None
            publish_file(joins)
            self.version += 1

    def _feed(self) -> None:
        while not self._end.wait(0.3):
            if self.documents - self._taken("joined") > AHEAD:
                continue
            symbol, per = self.random.choice("ABC"), float(self.random.randrange(10))
            ratings = [float(self.random.randrange(10)) for _ in range(2)]
            reviews = "".join(f"<review symbol='{symbol}'><rating>{one}</rating></review>" for one in ratings)
            xml = f"<shop><stock symbol='{symbol}'><per>{per}</per></stock>{reviews}</shop>".encode()
            self.rows["Stocks"].append((symbol, per))
            self.rows["Reviews"] += [(symbol, one) for one in ratings]
            hidden = self.folder / "in" / f".{self.documents}"
            self.documents += 1
            table = pa.table({"number": pa.array([self.documents], pa.int64()), "xml": pa.array([xml], pa.binary())})
            pq.write_table(table, hidden)
            hidden.rename(self.folder / "in" / f"{self.documents:08}.parquet")
            if self.documents % 3 == 0:
                self.publish()


def check(scene: PipelineScene) -> None:
    """Clients that read the sinks have the rows that DuckDB gives."""
    pins = scene.pins["joined"]
    standing = open_joins(scene.folder / "joins", pins[max(pins)])
    subscriptions = standing.server().subscriptions
    database = duckdb.connect()
    for table, second in (("Stocks", "per"), ("Reviews", "rating")):
        database.execute(f"create table {table} (symbol varchar, {second} double)")
        database.executemany(f"insert into {table} values (?, ?)", [list(row) for row in scene.rows[table]])
    found = 0
    for one in standing.asked:
        client = Client(standing.schema, subscriptions[one.id])
        order = [("batch", "ascending"), ("sequence", "ascending"), ("number", "ascending")]
        for sink, by in (("contents", order[:1]), ("delivered", order)):
            table = ds.dataset(scene.folder / sink, partitioning="hive").to_table(
                filter=ds.field("subscription") == one.id
            )
            for message in table.sort_by(by)["message"]:
                assert client.receive(decode(message.as_py()))
        answer = database.execute(str(one.query).replace("*", ", ".join(client.columns))).fetchall()
        assert Counter(client.rows()) == Counter(answer), f"subscription {one.id}"
        found += len(answer)
    assert found
    assert len(set(pins.values())) > 1, "subscriptions did not change"
