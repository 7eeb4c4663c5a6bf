"""Steps of a pipeline through a log: what is recorded, and what a repetition and a restart find."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pathcast.broker import Broker
from pathcast.broker_log import ExpiryRecord
from pathcast.errors import PathcastError
from pathcast.log import SqliteLog
from pathcast.spark.log.log_options import LogOptions, parse_log_options
from pathcast.spark.log.match_by_step import MatchingStep
from pathcast.spark.log.subscription_steps import SubscriptionSteps, state_at

from ..broker.broker_world import published, subscription
from ..broker_log.log_history import History


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    broker = Broker(SqliteLog(tmp_path / "log", segment_bytes=4_096))
    yield broker
    broker.close()


@pytest.fixture
def options(broker: Broker, tmp_path: Path) -> LogOptions:
    return parse_log_options({"folder": str(tmp_path / "log")})


def steps(tmp_path: Path, options: LogOptions, few: int = 1_000) -> SubscriptionSteps:
    return SubscriptionSteps(tmp_path / "steps", options, few)


def valid(step: MatchingStep) -> list[tuple[str, int, int]]:
    """The spans of a step that came since its base."""
    return [(row.id, row.begin, row.end) for row in step.rows]


def put(broker: Broker, id: str, xpath: str = "//a", begin: int | None = None) -> int:
    return broker.subscribe(subscription(id, xpath, begin=begin)).result()


def test_a_repeated_step_is_the_recorded_one(broker: Broker, options: LogOptions, tmp_path: Path) -> None:
    put(broker, "s")
    documents = published(broker, "news", *["<a/>"] * 3)
    ours = steps(tmp_path, options)
    assert ours.begin == 1
    first = ours.step(0, broker.log.head)
    put(broker, "t", begin=documents[1])
    second = ours.step(1, broker.log.head)
    assert (second.history, second.history_begin) == ((1,), documents[1])
    # What happens later changes no step, even if it concerns the step's documents.
    broker.change([ExpiryRecord("news", documents[2])]).result()
    broker.unsubscribe("test", "t").result()
    for again in (ours, steps(tmp_path, options)):
        assert again.step(1, broker.log.head) == second
    assert first.expired == second.expired == {}
    assert valid(steps(tmp_path, options).step(2, broker.log.head))[1:] == [("t", documents[1], broker.log.head)]


@pytest.mark.parametrize("few", [0, 3, 1_000])
def test_steps_are_the_same_in_one_process_and_in_many(
    broker: Broker, options: LogOptions, tmp_path: Path, few: int
) -> None:
    """Whenever a process ends and another continues, and however often a base is written again."""
    history = History(broker, few)
    one = SubscriptionSteps(tmp_path / "one", options, few)
    bases = set()
    for number in range(8):
        for _ in range(12):
            history.add()
        history.settle()
        history.retract()
        head = broker.log.head
        found, other = one.step(number, head), steps(tmp_path, options, few).step(number, head)
        assert found.base is not None
        assert other.base is not None
        assert Path(found.base).name == Path(other.base).name
        assert found.__dict__ | {"base": other.base} == other.__dict__
        bases.add(other.base)
        kept = sorted(each.name.split("-")[0] for each in (tmp_path / "steps").iterdir())
        assert kept.count("step") == min(number + 1, 2)
        assert kept.count("base") <= 2
    assert (len(bases) > 3) == (few < 1_000)


def test_from_now_is_when_the_pipeline_ran_first(broker: Broker, options: LogOptions, tmp_path: Path) -> None:
    put(broker, "s")
    now = parse_log_options({"folder": str(tmp_path / "log"), "from": "now"})
    assert steps(tmp_path, now).begin == broker.log.head + 1
    begin = broker.log.head + 1
    published(broker, "news", "<a/>")
    assert steps(tmp_path, now).begin == begin
    assert steps(tmp_path, now).step(0, broker.log.head).begin == begin


def test_subscriptions_whose_records_were_trimmed_are_an_error(
    broker: Broker, options: LogOptions, tmp_path: Path
) -> None:
    put(broker, "s")
    documents = [published(broker, "news", "<a/>" + " " * 3_000)[0] for _ in range(4)]
    assert sorted(key[1] for key in state_at(options, documents[0]).subscriptions) == ["s"]
    assert broker.trim(documents[2]) > 2
    checkpoint = broker.log.checkpoint()
    assert checkpoint is not None
    with pytest.raises(PathcastError, match=rf"unknown: .* read from record {checkpoint.sequence + 1} or later"):
        steps(tmp_path, options).step(0, broker.log.head)
    put(broker, "t")
    later = parse_log_options({"folder": str(tmp_path / "log"), "from": str(checkpoint.sequence + 1)})
    step = steps(tmp_path / "later", later).step(0, broker.log.head)
    assert valid(step) == [("t", broker.log.head, (1 << 63) - 1)]
    assert [key[1] for key in state_at(later, checkpoint.sequence).subscriptions] == ["s"]


def test_history_that_was_trimmed_is_left_out_with_a_warning(
    broker: Broker, options: LogOptions, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    documents = [published(broker, "news", "<a/>" + " " * 3_000)[0] for _ in range(4)]
    ours = steps(tmp_path, options)
    ours.step(0, broker.log.head)
    first = broker.trim(documents[2])
    put(broker, "s", begin=documents[0])
    step = ours.step(1, broker.log.head)
    assert step.history_begin == first
    assert f"begin at record {documents[0]}, but the log begins at {first}" in caplog.text


def test_a_missing_or_damaged_step_is_an_error(broker: Broker, options: LogOptions, tmp_path: Path) -> None:
    put(broker, "s")
    ours = steps(tmp_path, options)
    ours.step(0, broker.log.head)
    place = tmp_path / "steps" / "step-0"
    place.write_bytes(b"\x00")
    with pytest.raises(PathcastError, match="cannot read .*step-0.*; restore"):
        steps(tmp_path, options).step(1, broker.log.head)
    place.unlink()
    with pytest.raises(PathcastError, match="step-0 is missing"):
        steps(tmp_path, options).step(1, broker.log.head)
