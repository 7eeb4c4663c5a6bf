"""A log with a damaged record: requests that need it fail, say so without naming files, and the others work."""

import json
from pathlib import Path

import pytest

from .broker_world import broker_in, published
from .served_broker import Events, served


def test_a_damaged_document_is_an_error_of_the_server_and_the_others_are_delivered(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "a folder that nobody may know"
    with broker_in(folder) as broker:
        sequences = published(broker, "news", "<a>one</a>", "<a>broken</a>", "<a>three</a>")
    (segment,) = folder.glob("segment-*.sqlite")
    content = segment.read_bytes()
    assert content.count(b"<a>broken</a>") == 1
    segment.write_bytes(content.replace(b"<a>broken</a>", b"<a>BROKEN</a>"))
    with served(folder) as found:
        found.http.put("/v1/subscriptions/s", json={"xpath": "//a", "config": {"from": 1}}).raise_for_status()
        answer = found.http.post("/v1/subscriptions/s:pull")
        assert (answer.status_code, answer.headers["content-type"]) == (500, "application/problem+json")
        assert str(folder) not in answer.text
        assert f"record {sequences[1]} in {segment} has a wrong checksum" in caplog.text
        events = Events(found, "/v1/subscriptions/s/events", after=sequences[1])
        assert json.loads(events.next_of_kind("document")["data"])["body"] == "<a>three</a>"
        events.close()
        before = Events(found, "/v1/subscriptions/s/events", after=0)
        with pytest.raises(EOFError):
            before.next_of_kind("gap")  # none: nothing was trimmed
        before.close()
        (sequence,) = published(found.broker, "news", "<a>four</a>")
        assert found.http.get(f"/v1/documents/{sequence}").text == "<a>four</a>"
