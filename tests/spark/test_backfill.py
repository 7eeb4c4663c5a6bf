"""`pathcast backfill` with a real Spark and a real broker: what the broker leaves to it, and nothing else."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import SparkSession

from pathcast.broker import Broker
from pathcast.broker_log import FeedRecord
from pathcast.client.matching_work import Found, MatchingWork, pieces
from pathcast.errors import PipelineError
from pathcast.log import ReadLeases, SqliteLog
from pathcast.spark.log.backfill import Round, run_backfill
from pathcast.spark.log.log_options import parse_log_options

from ..broker.broker_world import TENANT, published, subscription
from ..broker.served_broker import Served, served
from ..broker_log.log_history import History
from ..broker_log.test_match_logged_documents import Follower
from .kill.backfill_scene import run_scene


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    log = SqliteLog(tmp_path / "log", segment_bytes=4_096)
    with served(tmp_path, broker=Broker(log, leases=ReadLeases(log), backfill=3)) as found:
        yield found


@pytest.mark.slow
def test_feeds_and_histories_get_the_same_deliveries_from_spark(
    spark: SparkSession, server: Served, tmp_path: Path
) -> None:
    """Feeds go from broker to Spark and back, some documents are rewritten by mediators, histories are long."""
    options = parse_log_options({"url": server.address, "folder": str(tmp_path / "log")})
    rounds: list[Round] = []
    history = History(
        server.broker,
        3,
        ("broker", "spark"),
        lambda _: run_backfill(spark, options, rounds.append, most=40),
    )
    follower = Follower(server.broker.log, 3)
    server.broker.change([FeedRecord("news", matching="spark")]).result()
    for _ in range(70):
        history.add()
    assert follower.step(server.broker.log.head) == history.settle()
    assert {each.history for each in rounds} == {True, False}
    assert sum(each.matches for each in rounds) > 50
    assert server.broker.leases.held() == []


@pytest.mark.parametrize("most", [1, 40, 90, 10_000])
def test_matches_are_sent_in_pieces_that_cover_the_range(most: int) -> None:
    sequences, rows = np.array([7, 3, 3, 5, 5, 5]), np.array([0, 1, 0, 0, 1, 2])
    found = list(pieces(2, 9, Found(["//a", "//b", "//c"], sequences, rows), most))
    assert [begin for begin, _, _ in found] == [2, *(to + 1 for _, to, _ in found[:-1])]
    assert found[-1][1] == 9
    together = sorted((at, text) for _, _, each in found for text, of_text in each.items() for at in of_text)
    assert together == [(3, "//a"), (3, "//b"), (5, "//a"), (5, "//b"), (5, "//c"), (7, "//a")]
    assert all(begin <= at <= to for begin, to, each in found for of_text in each.values() for at in of_text)
    assert (len(found) == 1) == (most == 10_000)


def test_pieces_of_a_history_are_sent_backwards(server: Served) -> None:
    documents = published(server.broker, "news", *["<a/>"] * 6)
    server.broker.subscribe(subscription("s", "//a", ("news",), documents[0])).result()
    assert server.broker.pull(TENANT, "s", 9).deliveries == []
    with MatchingWork(server.address) as client:
        (work,) = client.work().histories
        found = Found(["//a"], np.array(documents), np.zeros(6, dtype=np.int64))
        client.send_histories("news", work.begin, work.to, found, most=70)
        client.send_histories("news", work.begin, work.to, found)  # again
        assert client.work().histories == []
    assert [each.entry.sequence for each in server.broker.pull(TENANT, "s", 9).deliveries] == documents


def test_a_backfill_without_a_broker_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="needs the address of a broker"):
        run_backfill(spark, parse_log_options({"folder": str(tmp_path)}), print)


@pytest.mark.slow
def test_broker_and_backfill_killed_at_any_moment_lose_and_repeat_nothing(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Both are killed with SIGKILL while documents are published; a reader acknowledges what it gets."""
    if not request.config.getoption("--long"):
        pytest.skip("kills processes that start Spark: minutes; needs --long")
    run_scene(tmp_path, kills=6)
