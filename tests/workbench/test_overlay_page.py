"""The overlay: the demo's routers, their traffic, and its story, while it runs."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from playwright.sync_api import Page, expect

from pathcast.cli.demo.delivery_check import Line
from pathcast.cli.demo.workbench_story import WorkbenchStory, overlay_document
from pathcast.client import connect
from tests.broker.served_broker import Served

from .browser import ready

pytestmark = pytest.mark.slow

SCRIPT = "<script>alert(1)</script>"


def _traffic(folder: Path, batch: int = 0) -> None:
    """What the stream writes: a row per link and micro-batch."""
    place = folder / "links" / f"batch={batch}"
    place.mkdir(parents=True)
    columns = {
        "sender": ["r1", "r1", "r1"],
        "router": ["r2", "r2", "r3"],
        "messages": [1_000, 234, 7],
        "bytes": [40_000, 2_000, 900],
        "annotations": [300, 20, 1],
        "patterns": [50, 5, 1],
        "skipped": [40, 2, 0],
        "unread": [9, 1, 0],
    }
    pq.write_table(pa.table(columns), place / "part-0.parquet")


def test_the_page_tells_the_story_of_the_demo_while_it_runs(page: Page, broker: Served, tmp_path: Path) -> None:
    page.on("dialog", lambda dialog: pytest.fail("a script of a document ran"))
    ready(page, "/overlay")
    expect(page.get_by_text("No overlay yet.")).to_be_visible()
    with connect(broker.address) as client:
        story = WorkbenchStory(client, tmp_path)
        story.begin(6_000, 1_200)
        expect(page.get_by_text("15 routers; no traffic yet.")).to_be_visible()
        expect(page.locator(".story li")).to_have_count(4)
        story.tell("kill", f"All processes were killed {SCRIPT} & more.")
        expect(page.locator(".story li.kill")).to_contain_text(f"were killed {SCRIPT} & more.")
        _traffic(tmp_path, 0)
        story.tell("batch", "micro-batch 0: 500 documents")
        expect(page.get_by_role("img", name="15 routers; their links carried 1,241 messages, 42.9 KB.")).to_be_visible()
        story.tell("batch", "micro-batch 0 of joins")  # changes no traffic
        _traffic(tmp_path, 1)
        story.tell("batch", "micro-batch 1: 500 documents")
        expect(page.get_by_role("img", name="15 routers; their links carried 2,482 messages, 85.8 KB.")).to_be_visible()
        expect(page.locator(".story li", has_text="3 micro-batches")).to_contain_text("micro-batch 1: 500 documents")
        expect(page.locator(".story li", has_text="micro-batch")).to_have_count(1)
        assert len(broker.http.get("/v1/documents?feed=overlay").json()["documents"]) == 3
        story.check([Line("documents", 6_000, 6_000, 0, 0, 0)])
        expect(page.locator(".story li.good")).to_contain_text(
            "Nothing was lost or repeated: documents: 6,000 of 6,000"
        )
        story.check_broker([Line("broker: documents", 10, 9, 1, 0, 0)], 5)
        expect(page.locator(".story li").last).to_contain_text("Wrong: broker: documents: 9 of 10")
    page.get_by_text("Links as a table").click()
    expect(page.get_by_role("row", name="r1 r2 2,468 84 KB 640 B")).to_be_visible()
    assert page.locator("main script").count() == 0


def test_the_overlay_document_has_every_link_also_without_traffic(tmp_path: Path) -> None:
    assert overlay_document(tmp_path).count("<link ") == 14
    (tmp_path / "links").mkdir()  # as a stream leaves it that was killed before its first micro-batch
    assert overlay_document(tmp_path).count('messages="0"') == 14
    _traffic(tmp_path)
    link = '<link sender="r1" router="r2" messages="1234" bytes="42000" annotations="320" patterns="55" skipped="42"'
    assert link in overlay_document(tmp_path)
