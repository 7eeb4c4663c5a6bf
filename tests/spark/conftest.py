"""One Spark for all tests that need it: starting one takes longer than any of them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import pathcast
from pathcast.spark import session
from pathcast.spark.sessions.spark_session import LOCAL_SETTINGS

HERE = Path(__file__).parent

TEST_SETTINGS = {
    # Two workers are enough to test that work is distributed, and all that a small machine has.
    "spark.master": "local[2]",
    # Tables have a handful of rows: more partitions are more tasks, not more speed.
    "spark.sql.shuffle.partitions": "2",
    # Short queries gain nothing from the second compiler or collector threads; Spark starts a second earlier.
    "spark.driver.extraJavaOptions": LOCAL_SETTINGS["spark.driver.extraJavaOptions"]
    + " -XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    # Batches of three rows: a partition spans several.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "3",
}


@pytest.hookimpl(tryfirst=True)  # before xdist reads the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """With several test processes, one of them gets all of these, and with them the only shared Spark."""
    for item in items:
        if item.path.is_relative_to(HERE) and item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    shared = session("tests", TEST_SETTINGS)
    yield shared
    shared.stop()


@pytest.fixture(scope="session")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four subscriptions: ada has two, bob one, and one belongs to nobody."""
    subscriptions = pathcast.Subscriptions()
    subscriptions.add("/news/title", subscriber="ada")
    subscriptions.add("//p", subscriber="bob")
    subscriptions.add("/news[@lang='en']", subscriber="ada")
    subscriptions.add("//orphan")
    folder = tmp_path_factory.mktemp("index") / "index"
    subscriptions.compile().save(folder)
    return folder
