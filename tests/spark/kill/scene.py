"""A scene in which streams are killed: documents keep coming, subscriptions keep changing, processes keep dying.

A document comes as a row of a Parquet file, for the stream `filed`, and as a separate file, for `delivered`.
Every version of the index has its own subscription that matches every document, number 1000 + version, of the
subscriber `version-<version>`: a row in a sink shows which version it was matched with.
"""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import pathcast
from pathcast import Matcher
from pathcast.spark.publishing.index_versions import publish

from .stage import Stage

PER_FILE = 8
# At most this many files wait for the stream: some three micro-batches.
AHEAD = 30
VERSION = 1000


def document(number: int) -> bytes:
    """Document `number`; every seventh cannot be read."""
    return b"<doc>" if number % 7 == 0 else b"<doc><n%d/><a/></doc>" % (number % 5)


def matcher_of(version: int) -> Matcher:
    subscriptions = pathcast.Subscriptions()
    subscriptions.add_many([f"//n{n}" for n in range(5)], [f"reader-{n}" for n in range(5)])
    subscriptions.add_many(["/doc/a"] * (version % 3), ["reader-0"] * (version % 3))
    subscriptions.add("/doc", subscriber=f"version-{version}", id=VERSION + version)
    return subscriptions.compile()


class Scene(Stage):
    """Documents and versions of an index, for `program.py`."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.documents = 0
        (folder / "documents").mkdir()
        super().__init__(folder, seed, "program.py", "index", {"filed": None, "delivered": "pins"})

    def publish(self) -> None:
        with self._publishing:
            assert publish(matcher_of(self.version + 1), self.folder / "index", keep=2, grace=20) == self.version + 1
            self.version += 1

    def _feed(self) -> None:
        while not self._end.wait(0.25):
            if self.documents - min(PER_FILE * self._taken("filed"), self._taken("delivered")) > PER_FILE * AHEAD:
                continue  # a slow machine gets fewer documents, not a backlog that it cannot process in the end
            numbers = range(self.documents, self.documents + PER_FILE)
            table = pa.table({"id": pa.array(numbers, pa.int64()), "xml": [document(number) for number in numbers]})
            hidden = self.folder / "in" / f".{self.documents}"
            pq.write_table(table, hidden)
            hidden.rename(self.folder / "in" / f"{self.documents:08}.parquet")
            for number in numbers:
                hidden = self.folder / "documents" / f".{number}"
                hidden.write_bytes(document(number))
                hidden.rename(self.folder / "documents" / f"{number:08} [x].xml")
            self.documents += PER_FILE
            if self.documents % (6 * PER_FILE) == 0:
                self.publish()
