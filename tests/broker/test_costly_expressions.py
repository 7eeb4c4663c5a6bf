"""Subscribers share documents: an expression that takes too many steps matches nothing, and costs nobody a document."""

import logging
from pathlib import Path

import pytest

from pathcast.broker.settings.broker_file import BrokerFileError, read_settings
from pathcast.matching.evaluation.opaque_patterns import steps_allowed

from .broker_world import broker_in, delivered, published, subscription

# Cubic in the number of elements.
HOSTILE = "//*[count(.//*[count(.//*) >= 0]) > 1]"
SMALL = "<r><a><b/><b/></a></r>"
WIDE = "<r>" + "<c>" * 300 + "<a/>" * 3_000 + "</c>" * 300 + "</r>"


def test_it_matches_small_documents_and_takes_no_large_one_from_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with broker_in(tmp_path) as broker, caplog.at_level(logging.ERROR):
        broker.change([subscription("hostile", HOSTILE, ("news",)), subscription("plain", "//a", ("news",))]).result()
        broker.change([subscription("second", "//a[2]", ("news",))]).result()
        small, wide = published(broker, "news", SMALL, WIDE)
        live = {id: delivered(broker, id) for id in ("hostile", "plain", "second")}
        assert live == {"hostile": [small], "plain": [small, wide], "second": [wide]}
        assert "takes too many steps on a document" in caplog.text
        assert HOSTILE in caplog.text
        broker.change([subscription("late", HOSTILE + " or false()", ("news",), 1)]).result()
        assert delivered(broker, "late") == [small], "found in the log"
    with broker_in(tmp_path) as broker:
        assert {id: delivered(broker, id) for id in live} == live, "matched again"
        assert delivered(broker, "late") == [small]


def test_an_expression_whose_cost_is_proportional_to_the_document_is_never_too_expensive(tmp_path: Path) -> None:
    large = "<r>" + "<a><b x='1'/></a>" * 80_000 + "<a><b/><b/></a></r>"
    expressions = ("//b[2]", "//a[count(b) = 2]", "//b/following-sibling::b", "//b[last()]/preceding-sibling::*")
    with broker_in(tmp_path) as broker:
        broker.change([subscription(f"s{n}", text, ("news",)) for n, text in enumerate(expressions)]).result()
        sequences = published(broker, "news", large)
        assert [delivered(broker, f"s{n}") for n in range(len(expressions))] == [sequences] * len(expressions)


def test_the_allowance_grows_with_the_document() -> None:
    assert steps_allowed(0) == 262_144
    assert steps_allowed(1_000) - steps_allowed(0) == 64_000


def test_a_broker_file_cannot_set_the_limit(tmp_path: Path) -> None:
    file = tmp_path / "broker.toml"
    file.write_text("[limits]\nevaluation = 5\n")
    with pytest.raises(BrokerFileError, match="does not apply to a broker") as error:
        read_settings(file)
    assert "line 2: limits.evaluation" in error.value.report
