"""The deduplication window: what is a duplicate depends on the last records of the log alone."""

import random
from pathlib import Path

import pytest

from pathcast.broker import Accepted, Broker, Publication
from pathcast.broker.restart_snapshot import Restored
from pathcast.broker_log import BrokerState
from pathcast.broker_log.deduplication_window import SIZE, DeduplicationWindow
from pathcast.log import SqliteLog

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "broker.md"


@pytest.mark.parametrize("seed", range(5))
def test_the_window_is_the_last_records_of_a_list(seed: int) -> None:
    draw = random.Random(seed)
    size = draw.randrange(1, 30)
    window, records = DeduplicationWindow(size), list[tuple[str, str] | None]()
    for _ in range(500):
        key = draw.choice("pq"), draw.choice("123456789")
        begin = max(0, len(records) - size)
        expected = max((at + 1 for at in range(begin, len(records)) if records[at] == key), default=None)
        assert window.find(*key, len(records)) == expected
        if draw.random() < 0.5:
            records.append(None)  # another kind of record
        elif expected is None:
            records.append(key)
            window.add(*key, len(records))
        assert len(window) <= size + 1  # until the next look


@pytest.mark.parametrize("others", [0, 6, 7, 8, 20])
def test_a_publication_is_a_duplicate_as_long_as_the_first_is_in_the_window(tmp_path: Path, others: int) -> None:
    with_window = BrokerState(window=8)
    broker = Broker(SqliteLog(tmp_path), before=Restored(with_window, {}))
    (first,) = broker.publish("news", [Publication(b"<a/>", id="1")]).result()
    for _ in range(others):
        broker.publish("news", [Publication(b"<b/>")]).result()
    (again,) = broker.publish("news", [Publication(b"<a/>", id="1")]).result()
    broker.close()
    assert isinstance(first, Accepted)
    assert again == (Accepted(first.sequence, duplicate=True) if others < 8 else Accepted(first.sequence + others + 1))


def test_the_window_has_the_size_that_the_guide_states() -> None:
    assert BrokerState().published.size == SIZE
    assert f"last {SIZE:,} records" in " ".join(GUIDE.read_text(encoding="utf-8").split())
