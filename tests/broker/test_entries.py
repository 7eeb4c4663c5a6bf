"""Publishing the entries of a file: a result for each, all durable together, nothing twice."""

from collections.abc import Iterator
from typing import Any

import pytest

from .served_broker import Served, served

FILE = """<feed xmlns:x='u'>
<entry>1</entry><entry><y:b/></entry>
<entry><x:c/></entry></feed>"""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("broker")) as found:
        yield found


def post(broker: Served, feed: str, file: str | bytes, split: str = "/feed/entry", **more: Any) -> tuple[int, Any]:
    query = {"split": split, **more.pop("params", {})}
    found = broker.http.post(f"/v1/feeds/{feed}/documents", content=file, params=query, **more)
    return found.status_code, found.json()


def test_each_entry_has_a_result_and_the_accepted_ones_follow_each_other(broker: Served) -> None:
    status, found = post(broker, "a", FILE)
    first, second, third = found["results"]
    assert status == 202
    assert third["sequence"] == first["sequence"] + 1
    assert (second["error"]["status"], "undeclared prefix 'y:'" in second["error"]["detail"]) == (422, True)
    assert [each["offset"] for each in found["results"]] == [
        FILE.index("<entry>1"),
        FILE.index("<entry><y"),
        FILE.index("<entry><x"),
    ]
    body = broker.http.get(f"/v1/documents/{third['sequence']}").content
    assert body == b'<entry xmlns:x="u"><x:c/></entry>'


def test_entries_of_a_request_that_comes_again_are_duplicates(broker: Served) -> None:
    first = post(broker, "again", FILE, headers={"ce-id": "f"})[1]["results"]
    again = post(broker, "again", FILE, headers={"idempotency-key": "f"})[1]["results"]
    assert [each.get("duplicate") for each in first] == [False, None, False]
    assert [each.get("duplicate") for each in again] == [True, None, True]
    assert [each.get("sequence") for each in again] == [each.get("sequence") for each in first]


def test_unreadable_entries_can_be_kept_as_dead_letters(broker: Served) -> None:
    status, found = post(broker, "kept", FILE, params={"invalid": "keep"})
    assert status == 202
    assert ["sequence" in each for each in found["results"]] == [True] * 3
    assert "undeclared prefix" in found["results"][1]["error"]["reason"]


def test_a_file_that_ends_early_gives_the_entries_before_its_end(broker: Served) -> None:
    status, found = post(broker, "cut", "<feed><entry/><entry>")
    assert status == 202
    assert "sequence" in found["results"][0]
    assert "the file ends before the end of its root element" in found["results"][1]["error"]["detail"]
    assert post(broker, "cut", "<other/>")[0] == 422
    assert post(broker, "cut", "<feed/>") == (202, {"results": []})


def test_more_entries_than_a_batch_may_have_are_rejected_together(broker: Served) -> None:
    head = broker.broker.log.head
    status, found = post(broker, "many", "<feed>" + "<entry/>" * 1025 + "</feed>")
    assert (status, "more than 1,024 entries" in found["detail"]) == (413, True)
    assert broker.broker.log.head == head
    status, found = post(broker, "many", "<feed>" + "<entry/>" * 1024 + "</feed>")
    sequences = [each["sequence"] for each in found["results"]]
    assert (status, sequences) == (202, list(range(sequences[0], sequences[0] + 1024)))


def test_a_wrong_path_is_a_problem(broker: Served) -> None:
    status, found = post(broker, "wrong", FILE, "//entry")
    assert (status, "'//' is not supported" in found["detail"]) == (400, True)
