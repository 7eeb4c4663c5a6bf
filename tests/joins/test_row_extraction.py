"""Extraction: rows and their columns are what lxml finds by the same paths."""

import json
from datetime import date, datetime
from math import inf
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from pathcast.documents import read_batch
from pathcast.errors import SchemaError
from pathcast.joins.query.order_preserving_key_encoding import kind_named
from pathcast.joins.query.row_extraction import Extraction, Extractor, Step, fits
from pathcast.joins.query.value_text_conversion import read_value, write_row

FEED = """<feed day='2026-01-31'>
  <stock symbol='GOOG'><per> 51.7 </per><name>Alpha<b>bet</b></name></stock>
  <stock symbol='X'><name/><stock symbol='Y'><per>many</per></stock></stock>
</feed>"""
STOCKS = Extraction(
    "Stocks", "//stock", {"symbol": "@symbol", "per": "per float", "name": "name", "day": "../@day date"}
)


def extracted(extraction, *documents):
    return Extractor(extraction).extract(read_batch(documents, errors="return"))


def test_rows_have_the_values_that_their_paths_lead_to():
    found = extracted(STOCKS, FEED)
    assert found.rows == [
        {"symbol": "GOOG", "per": 51.7, "name": "Alphabet", "day": date(2026, 1, 31)},
        {"symbol": "X", "per": None, "name": "", "day": date(2026, 1, 31)},
        {},
    ]
    assert found.changes == ["insert", "insert", ""]
    assert (found.documents, found.numbers) == ([0, 0, 0], [0, 1, 2])


def test_a_value_that_cannot_be_read_is_an_error_of_its_row():
    (error,) = extracted(STOCKS, FEED).errors.values()
    assert error.reason == "invalid value of column 'per': expected a float, got 'many'"
    assert (error.line, error.column) == (3, 28)


def test_a_required_value_may_not_be_missing():
    needs = Extraction("Stocks", "//stock", {"symbol": "@symbol", "per": "per float"}, required=["per"])
    found = extracted(needs, FEED)
    assert "is required" in found.errors[1].reason
    assert list(found.errors) == [1, 2]


def test_a_row_says_what_it_means():
    say = Extraction("T", "/a/b", {"n": ". int"}, change="@do")
    found = extracted(say, "<a><b do='insert'>1</b><b do=' delete'>2</b><b do='drop'>3</b><b>4</b></a>")
    assert found.changes == ["insert", "delete", "", ""]
    assert [row.get("n") for row in found.rows] == [1, 2, None, None]
    assert "got 'drop'" in found.errors[2].reason
    assert extracted(Extraction("T", "b", {"n": ". int"}, change="delete"), "<a><b>1</b></a>").changes == ["delete"]


def test_documents_that_cannot_be_read_have_no_rows():
    found = extracted(STOCKS, FEED, "<feed>", FEED, "<none/>")
    assert found.documents == [0, 0, 0, 2, 2, 2]
    assert found.rows[:3] == found.rows[3:]


PATHS = ["a", "*", "a/b", ".//b", "a//c", "@x", "b/@x", ".//@x", "text()", "a/text()", ".//text()", ".", "..", "../@x"]
PATHS += ["../b", "../..//c/@y", "*/*", "a/*/text()", "c/@y"]
ROWS = ["//a", "/a/b", "/a//b", "//*", "/*/*", "//b/c", "/a//*/b"]


def drawn(random, depth=0):
    name = random.choice("abc")
    attributes = "".join(f" {each}='{random.randrange(9)}'" for each in "xy" if random.random() < 0.4)
    inner = ""
    for _ in range(random.randrange(4) if depth < 5 else 0):
        inner += random.choice(["t&amp;", " ", "7", drawn(random, depth + 1), drawn(random, depth + 1)])
    return f"<{name}{attributes}>{inner}</{name}>"


def by_lxml(rows, path, root):
    values: list[str | None] = []
    for element in root.getroottree().xpath(rows):
        nodes = element.xpath(path)
        if not nodes:
            values.append(None)
        else:
            values.append(nodes[0] if isinstance(nodes[0], str) else nodes[0].xpath("string(.)"))
    return values


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from(ROWS), st.lists(st.sampled_from(PATHS), min_size=1, max_size=3))
def test_values_are_those_that_lxml_finds(seed, rows, paths):
    random = Random(seed)
    documents = [drawn(random) for _ in range(3)]
    extraction = Extraction("T", rows, {f"c{number}": path for number, path in enumerate(paths)})
    extractor = Extractor(extraction)
    extractor.extract(read_batch(["<c><a/><b/></c>"]))  # label paths that were known before
    found = extractor.extract(read_batch(documents))
    for number, path in enumerate(paths):
        expected = [value for each in documents for value in by_lxml(rows, path, etree.fromstring(each))]
        assert [row[f"c{number}"] for row in found.rows] == expected, (path, documents)


def test_steps_to_anywhere_below_take_no_longer_in_deep_documents():
    steps = (Step(deep=True, name="a"),) * 12
    assert fits(steps, ("a",) * 200)
    assert not fits((*steps, Step(deep=True, name="b")), ("a",) * 200)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("int", " 12 ", 12),
        ("int", "", None),
        ("int", 12.0, 12),
        ("float", "1e3", 1000.0),
        ("float", 3, 3.0),
        ("float", " -INF", -inf),
        ("float", "Infinity", inf),
        ("string", " ", " "),
        ("date", "2026-01-31", date(2026, 1, 31)),
        ("timestamp", "2026-01-31T12:30:00.5", datetime(2026, 1, 31, 12, 30, 0, 500000)),  # noqa: DTZ001
        ("timestamp", "2026-01-31T12:30:00+02:00", datetime(2026, 1, 31, 10, 30)),  # noqa: DTZ001
        ("bytes", "AAE=", b"\0\1"),
        ("bytes", "", b""),
    ],
)
def test_values_of_all_kinds_are_read_and_written(kind, text, value):
    assert read_value(kind_named(kind), text) == value
    assert read_value(kind_named(kind), json.loads(write_row({"v": value}))["v"]) == value


@pytest.mark.parametrize(
    ("kind", "text"),
    [("int", "1.5"), ("int", True), ("int", "9" * 20), ("int", 1.5), ("float", "nan"), ("float", True),
     ("float", "inf"), ("float", inf), ("int", "INF"), ("int", "1_000"), ("float", "1_0.5"), ("date", "31.1."),
     ("int", "٣"), ("float", "٣.5"), ("float", "\uff11"),
     ("timestamp", "noon"), ("bytes", "!"), ("string", 3), ("date", 3)],
)  # fmt: skip
def test_what_is_no_value_is_said(kind, text):
    with pytest.raises(ValueError, match="expected|is not|64 bits|whole number"):
        read_value(kind_named(kind), text)


def test_a_whole_number_that_no_float_equals_is_not_rounded():
    with pytest.raises(ValueError, match="a float cannot hold 9007199254740993 exactly"):
        read_value(kind_named("float"), 9007199254740993)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("T", "//a[b]", {"n": "."}), "rows has the unsupported path '//a[b]'"),
        (("T", "//a/@b", {"n": "."}), "does not select elements"),
        (("T", "../a", {"n": "."}), "does not select elements"),
        (("T", "//a", {"n": "/b"}), "column 'n' has the unsupported path '/b'"),
        (("T", "//a", {"n": "@b/c"}), "column 'n' has the unsupported path '@b/c'"),
        (("T", "//a", {"n": "b number of"}), "unknown kind 'number of'"),
        (("T", "//a", {}), "has no columns"),
        (("T", "//a", {"n": "."}, ["m"]), "names 'm', which is not a column"),
        (("T", "//a", {"n": "."}, (), "upsert!"), "change has the unsupported path 'upsert!'"),
        (("T", "", {"n": "."}), "has an empty path"),
        (("T", "//a", {"n": "b/.."}), "unsupported path"),
    ],
)
def test_what_is_described_wrongly_is_said(arguments, reason):
    with pytest.raises(SchemaError) as caught:
        Extraction(*arguments)
    assert reason in caught.value.reason
