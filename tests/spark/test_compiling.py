"""Large sets are compiled by workers, into the same index as the driver alone makes."""

import random

import pytest

import pathcast
from pathcast.matching import shards
from pathcast.spark import compile_subscriptions, compiling
from pathcast.spark.versions import version_folder
from pathcast.workloads import generate_documents, generate_subscriptions, news_schema

SCHEMA = "id long, subscriber string, xpath string"
WRONG = ["/a[", "//a[last()]", "/a[following::b]", "/", "", "//a[b = ]"]
LONG = ["//a[b < 0.1234567890123456789012345]", "//a[b < 0.12345678901234567890123450]"]
NEWS = list(generate_documents(news_schema(), 30, seed=5))


@pytest.fixture
def rows():
    draw = random.Random(5)
    xpaths = generate_subscriptions(news_schema(), 300, seed=5, predicates=2, nested=1)
    xpaths += generate_subscriptions(news_schema(), 300, seed=5) + 3 * WRONG + LONG
    drawn = [(number, f"reader-{draw.randrange(9)}", draw.choice(xpaths)) for number in range(1, 1201)]
    return [*drawn, (0, None, "/a[b]"), (7, "twice", "/a[b]"), *((2000 + at, None, x) for at, x in enumerate(LONG))]


@pytest.fixture
def merged(monkeypatch):
    """How many expressions came from workers, in shards that are small."""
    counts = []

    def counted(table, engine, arrays):
        found = shards.merge_shard(table, engine, arrays)
        counts.append(len(found.entries))
        return found

    monkeypatch.setattr(compiling, "SHARD", 60)
    monkeypatch.setattr(compiling, "ROUND", 130)
    monkeypatch.setattr(compiling, "merge_shard", counted)
    return counts


def described(report, folder):
    """An index by its subscriptions, what they match, and the rows that were refused."""
    matcher = pathcast.open_index(version_folder(folder, report.version))
    found = [(matches.ids.tolist(), matches.subscribers) for matches in matcher.match_many(NEWS)]
    refused = sorted(tuple(row) for row in report.invalid.na.fill(-1).collect())
    return list(matcher.subscriptions), found, refused, len(matcher.subscriptions.table)


def test_workers_and_the_driver_alone_make_the_same_index(spark, tmp_path, rows, merged):
    frame = spark.createDataFrame(rows, SCHEMA).coalesce(2)
    together = described(compile_subscriptions(frame, tmp_path / "together", many=100), tmp_path / "together")
    assert sum(merged) > 250 and max(merged) == 60
    merged.clear()
    alone = described(compile_subscriptions(frame, tmp_path / "alone"), tmp_path / "alone")
    assert not merged
    assert together == alone
    assert any(ids for ids, _ in alone[1]) and len(alone[2]) > 10


def test_changes_are_compiled_by_workers_too(spark, tmp_path, rows, merged):
    first = spark.createDataFrame(rows[:200], SCHEMA).coalesce(2)
    frame = spark.createDataFrame(
        [(*row, "removed" if row[0] in range(1, 100) else "added") for row in rows], f"{SCHEMA}, change string"
    ).coalesce(1)
    found = []
    for folder, many in (("together", 100), ("alone", 1 << 30)):
        compile_subscriptions(first, tmp_path / folder)
        report = compile_subscriptions(None, tmp_path / folder, changes=frame, many=many)
        found.append(described(report, tmp_path / folder))
        assert (sum(merged) > 200) == (many == 100)
        merged.clear()
    assert found[0] == found[1]


def test_without_ids_they_are_given_out_in_the_order_of_the_rows(spark, tmp_path, rows, merged):
    xpaths = [(xpath,) for _, _, xpath in rows]
    compile_subscriptions(spark.createDataFrame(xpaths, "xpath string").coalesce(1), tmp_path, many=100)
    one = pathcast.Subscriptions()
    one.add_many([xpath for (xpath,) in xpaths], errors="collect")
    assert list(pathcast.open_index(version_folder(tmp_path, 1)).subscriptions) == list(one)
    assert merged


def test_engines_that_cannot_merge_compile_alone(spark, tmp_path, rows, merged):
    report = compile_subscriptions(spark.createDataFrame(rows, SCHEMA), tmp_path, engine="reference", many=100)
    assert report.subscriptions > 1000 and not merged


def test_the_session_is_left_as_it_was(spark, tmp_path, rows, merged):
    key = "spark.sql.leafNodeDefaultParallelism"
    assert spark.conf.get(key, None) is None
    compile_subscriptions(spark.createDataFrame(rows, SCHEMA), tmp_path / "a", many=100)
    assert spark.conf.get(key, None) is None
    spark.conf.set(key, "3")
    try:
        compile_subscriptions(spark.createDataFrame(rows, SCHEMA), tmp_path / "b", many=100)
        assert spark.conf.get(key) == "3"
    finally:
        spark.conf.unset(key)


def test_one_worker_is_not_worth_it_unless_somebody_says_so(spark, tmp_path, rows, merged, monkeypatch):
    monkeypatch.setattr(compiling, "MANY", 100)
    monkeypatch.setattr(compiling, "_has_several_workers", lambda _: False)
    frame = spark.createDataFrame(rows, SCHEMA)
    compile_subscriptions(frame, tmp_path / "a")
    assert not merged
    monkeypatch.setattr(compiling, "_has_several_workers", lambda _: True)
    compile_subscriptions(frame, tmp_path / "b")
    assert merged
