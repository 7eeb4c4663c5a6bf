"""Large sets are compiled by workers, into the same index as one task alone makes."""

import random
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import pathcast
from pathcast.spark import compile_subscriptions
from pathcast.spark.publishing import compile_subscriptions as subscriptions
from pathcast.spark.publishing import parallel_pattern_compilation as compiling
from pathcast.spark.publishing.index_versions import parts_folder, publish, version_folder, versions
from pathcast.spark.publishing.parallel_pattern_compilation import Compiling, Settings, default_settings, merge_pieces
from pathcast.workloads import SubscriptionOptions, generate_documents, generate_subscriptions, news_schema

SCHEMA = "id long, subscriber string, xpath string"
WRONG = ["/a[", "//a[foot()]", "/a[sideways::b]", "/", "", "//a[b = ]"]
LONG = ["//a[b < 0.1234567890123456789012345]", "//a[b < 0.12345678901234567890123450]"]
NEWS = list(generate_documents(news_schema(), 30, seed=5))


@pytest.fixture
def rows():
    draw = random.Random(5)
    xpaths = generate_subscriptions(news_schema(), 300, SubscriptionOptions(predicates=2, nested=1), seed=5)
    xpaths += generate_subscriptions(news_schema(), 300, seed=5) + 3 * WRONG + LONG
    drawn = [(number, f"reader-{draw.randrange(9)}", draw.choice(xpaths)) for number in range(1, 1201)]
    return [*drawn, (0, None, "/a[b]"), (7, "twice", "/a[b]"), *((2000 + at, None, x) for at, x in enumerate(LONG))]


@pytest.fixture
def asked(monkeypatch):
    """The number of expressions that workers compiled, in small pieces."""
    counts = []

    def noted(rows, work, count):
        counts.append(count)
        return compiling.compiled_pieces(rows, replace(work, size=60), count)

    monkeypatch.setattr(subscriptions, "compiled_pieces", noted)
    return counts


def described(report, folder):
    """An index by its subscriptions, what they match, and the rejected rows."""
    matcher = pathcast.open_index(version_folder(folder, report.version))
    found = [(matches.ids.tolist(), matches.subscribers) for matches in matcher.match_many(NEWS)]
    refused = sorted(tuple(row) for row in report.invalid.na.fill(-1).collect())
    return list(matcher.subscriptions), found, refused, len(matcher.subscriptions.table)


def test_workers_together_and_one_alone_make_the_same_index(spark, tmp_path, rows, asked):
    frame = spark.createDataFrame(rows, SCHEMA).coalesce(2)
    together = described(compile_subscriptions(frame, tmp_path / "together", many=100), tmp_path / "together")
    assert asked.pop() > 250
    alone = described(compile_subscriptions(frame, tmp_path / "alone"), tmp_path / "alone")
    assert not asked
    assert together == alone
    assert any(ids for ids, _ in alone[1]) and len(alone[2]) > 10
    assert not list((tmp_path / "together" / "versions").glob(".parts-*"))


def test_changes_are_compiled_by_workers_too(spark, tmp_path, rows, asked):
    first = spark.createDataFrame(rows[:200], SCHEMA).coalesce(2)
    frame = spark.createDataFrame(
        [(*row, "removed" if row[0] in range(1, 100) else "added") for row in rows], f"{SCHEMA}, change string"
    ).coalesce(1)
    found = []
    for folder, many in (("together", 100), ("alone", 1 << 30)):
        compile_subscriptions(first, tmp_path / folder, many=1 << 30)
        report = compile_subscriptions(None, tmp_path / folder, changes=frame, many=many)
        found.append(described(report, tmp_path / folder))
        assert (sum(asked) > 200) == (many == 100)
        asked.clear()
    assert found[0] == found[1]


def test_without_ids_they_are_given_out_in_the_order_of_the_rows(spark, tmp_path, rows, asked):
    xpaths = [(xpath,) for _, _, xpath in rows]
    compile_subscriptions(spark.createDataFrame(xpaths, "xpath string").coalesce(1), tmp_path, many=100)
    one = pathcast.Subscriptions()
    one.add_many([xpath for (xpath,) in xpaths], errors="collect")
    assert list(pathcast.open_index(version_folder(tmp_path, 1)).subscriptions) == list(one)
    assert asked


def test_engines_that_cannot_merge_compile_alone(spark, tmp_path, rows, asked):
    report = compile_subscriptions(spark.createDataFrame(rows, SCHEMA), tmp_path, engine="reference", many=100)
    assert report.subscriptions > 1000 and not asked


def test_one_worker_is_not_worth_it_unless_somebody_says_so(spark, monkeypatch):
    assert compiling.bound_of(spark, None) == compiling.MANY
    monkeypatch.setattr(compiling, "_has_several_workers", lambda _: False)
    assert compiling.bound_of(spark, None) is None
    assert [compiling.bound_of(spark, many) for many in (0, 1, 7)] == [1, 1, 7]


def compiled(folder: Path, xpaths: list[str], settings: Settings, *, fresh: bool, size: int = 2) -> list[str]:
    """The names of the pieces that a worker makes of the rows of a table."""
    work = Compiling(str(folder), "token", settings, fresh=fresh, size=size)
    batch = pa.RecordBatch.from_pydict({"xpath": xpaths, "of": pa.array([1] * len(xpaths), pa.int32())})
    return [name for each in work.function()(iter([batch])) for name in each["part"].to_pylist()]


def test_pieces_give_entries_and_reasons_and_leave_the_rest(tmp_path):
    matcher = pathcast.Subscriptions().compile()
    xpaths = ["/a[b]", "//c[@d = 1]", "/e[", "//c[@d = 1 and f]", LONG[0]]
    names = compiled(tmp_path, xpaths, default_settings(None, None), fresh=True)
    assert len(names) == 2
    home = parts_folder(tmp_path, "token")
    expressions = pa.array(["/plain", *xpaths[::-1], "//g[h]"])
    found = merge_pieces(home, names, matcher, expressions)
    assert found.left.tolist() == [0, 1, 6]
    assert list(found.refused) == [3] and found.refused[3][1] is not None
    texts = [matcher.subscriptions.table.text(entry) for entry in found.entries[[2, 4, 5]].tolist()]
    plain = pathcast.Subscriptions().table
    assert texts == [plain.text(plain.enter_one(xpath)[0]) for xpath in (xpaths[3], xpaths[1], xpaths[0])]
    assert (found.entries[[0, 1, 3, 6]] == -1).all()


def test_pieces_for_another_index_are_not_taken(tmp_path):
    """A version that was published while workers compiled for the one before."""
    publish(pathcast.Subscriptions({"n": "urn:n"}).compile(), tmp_path)
    xpaths = ["/n:a[b]", "//c[d]"]
    names = compiled(tmp_path, xpaths, default_settings(None, None), fresh=False)
    home = parts_folder(tmp_path, "token")
    same = merge_pieces(home, names, pathcast.Subscriptions({"n": "urn:n"}).compile(), pa.array(xpaths))
    assert same.left.tolist() == [] and (same.entries >= 0).all()
    other = merge_pieces(home, names, pathcast.Subscriptions({"n": "urn:other"}).compile(), pa.array(xpaths))
    assert other.left.tolist() == [0, 1]
    assert versions(tmp_path) == [1]
