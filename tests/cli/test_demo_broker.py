"""The broker of `pathcast demo`: the lines that it prints work, and what it recovers after a kill is counted."""

import shlex
import socket
import subprocess
from pathlib import Path

import pytest

from pathcast.cli.demo.broker_scenario import BrokerStory, DemoBroker, curl_lines
from pathcast.cli.demo.synthetic_market import Market
from pathcast.errors import PipelineError


@pytest.mark.slow
def test_its_curl_lines_work_and_nothing_is_lost_when_it_is_killed(tmp_path: Path) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as busy,
        DemoBroker(tmp_path, port=busy.getsockname()[1]) as broker,
    ):
        broker.wait()  # on another port than the busy one
        receive, publish = map(shlex.split, curl_lines(broker.address))
        with subprocess.Popen([*receive, "-sS", "--max-time", "100"], stdout=subprocess.PIPE, text=True) as events:
            assert events.stdout is not None
            try:
                assert events.stdout.readline()  # it receives: what is published from now on comes
                answer = subprocess.run([*publish, "-sS"], capture_output=True, text=True, check=True, timeout=60)
                assert '"sequence"' in answer.stdout
                seen = iter(events.stdout.readline, "")
                assert any("<stock/>" in line for line in seen)
            finally:
                events.kill()
        story = BrokerStory(broker, Market(0), reports=300)
        documents, deliveries = story.run()
        assert (documents.expected, documents.found, documents.right) == (300, 300, True)
        assert deliveries.expected == deliveries.found > 50
        assert deliveries.right
        assert story.before > 150
        # What is lost, comes twice or was not asked for shows in the counts.
        (first, *_) = (one for one in story._received if one[1] != "archive")
        story._received[first] += 1
        story._received[0, first[1]] = 1
        del story._received[300, "archive"]
        documents, deliveries = story._lines()
        assert (documents.lost, deliveries.twice, deliveries.wrong) == (1, 1, 1)


@pytest.mark.slow
def test_a_broker_that_does_not_start_is_reported_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "broker").write_text("a file, not a folder")
    with (
        DemoBroker(tmp_path) as broker,
        pytest.raises(PipelineError, match=r"(?s)did not start.*broker\.log.*\n  error: "),
    ):
        broker.wait()
