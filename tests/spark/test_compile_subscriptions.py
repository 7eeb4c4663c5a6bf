"""`compile_subscriptions`: a table becomes a version of the index; an invalid row gets a reason."""

import csv
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pathcast
from pathcast.errors import PipelineError
from pathcast.spark import compile_subscriptions
from pathcast.spark.publishing.index_versions import latest, version_folder, versions
from pathcast.spark.publishing.subscription_row_parser import read_table
from pathcast.workloads import SubscriptionOptions, generate_documents, generate_subscriptions, news_schema

SCHEMA = "id long, subscriber string, xpath string"
ROWS = [(1, "ada", "/news/title"), (2, "bob", "//p"), (7, "", "//p"), (9, None, "/news[@lang='en']")]


def opened(folder) -> pathcast.Subscriptions:
    return pathcast.open_index(version_folder(folder, latest(folder))).subscriptions


def reasons(report) -> dict[object, str]:
    return {row.id: row.reason for row in report.invalid.collect()}


def test_a_table_becomes_the_first_version(spark, tmp_path):
    report = compile_subscriptions(spark.createDataFrame(ROWS, SCHEMA), tmp_path)
    assert (report.version, report.subscriptions, report.added, report.removed) == (1, 4, 4, 0)
    assert (report.invalid_count, report.invalid.count()) == (0, 0)
    assert sorted(opened(tmp_path)) == [(number, xpath, name or None) for number, name, xpath in ROWS]
    assert "version 1: 4 subscriptions" in report.line


def test_a_table_gives_what_a_single_process_makes_of_its_rows(spark, tmp_path):
    draw = random.Random(5)
    paths = generate_subscriptions(news_schema(), 300, SubscriptionOptions(predicate_probability=0.3), seed=5)
    rows = [(number, f"reader-{draw.randrange(9)}", draw.choice(paths)) for number in range(1, 601)]
    one = pathcast.Subscriptions()
    one.add_many([xpath for *_, xpath in rows], [name for _, name, _ in rows], [number for number, *_ in rows])
    table = pa.table({name: [row[at] for row in rows] for at, name in enumerate(("id", "subscriber", "xpath"))})
    pq.write_table(table, tmp_path / "table.parquet")
    report = compile_subscriptions(tmp_path / "table.parquet", tmp_path / "index")
    assert report.subscriptions == 600
    found = opened(tmp_path / "index")
    assert list(found) == list(one)
    assert [found.table.text(entry) for entry in range(len(found.table))] == [
        one.table.text(entry) for entry in range(len(one.table))
    ]
    news = list(generate_documents(news_schema(), 20, seed=5))
    matchers = pathcast.open_index(version_folder(tmp_path / "index", 1)), one.compile()
    ours, theirs = ([matches.ids.tolist() for matches in matcher.match_many(news)] for matcher in matchers)
    assert ours == theirs
    assert any(ours)


def test_an_id_belongs_to_the_first_row_that_is_not_wrong(spark, tmp_path):
    rows = [(1, "ada", "//["), (1, "bob", "//b"), (1, "cyd", "//c")]
    report = compile_subscriptions(spark.createDataFrame(rows, SCHEMA).coalesce(1), tmp_path)
    assert list(opened(tmp_path)) == [(1, "//b", "bob")]
    assert sorted(row.subscriber for row in report.invalid.collect()) == ["ada", "cyd"]


def test_what_is_wrong_stops_nothing_and_is_told_with_its_reason(spark, tmp_path):
    wrong = [
        (3, "ada", "//p["),
        (4, "ada", "/a/sideways::b"),
        (2, "eve", "//twice"),
        (0, "ada", "//a"),
        (1 << 31, "ada", "//a"),
        (None, "ada", "//a"),
        (5, "ada", None),
    ]
    report = compile_subscriptions(spark.createDataFrame([*ROWS, *wrong], SCHEMA), tmp_path)
    assert report.subscriptions == 4
    assert sorted(opened(tmp_path)) == [(number, xpath, name or None) for number, name, xpath in ROWS]
    rows = report.invalid.collect()
    assert report.invalid_count == len(rows) == len(wrong)
    told = {(row.id, row.subscriber, row.xpath): row for row in rows}
    assert told[3, "ada", "//p["].column == 5
    with pytest.raises(pathcast.PatternError) as raised:
        pathcast.Subscriptions().add("/a/sideways::b")
    assert (told[4, "ada", "/a/sideways::b"].reason, told[4, "ada", "/a/sideways::b"].column) == (
        raised.value.reason,
        raised.value.column,
    )
    assert "already in use" in told[2, "eve", "//twice"].reason
    for number in (0, 1 << 31, None):
        assert "whole number from 1 to 2,147,483,647" in told[number, "ada", "//a"].reason
    assert told[5, "ada", ""].reason


def test_without_ids_they_are_given_out_in_order(spark, tmp_path):
    rows = spark.createDataFrame([("//a",), ("//b[",), ("//c",)], "xpath string").coalesce(1)
    report = compile_subscriptions(rows, tmp_path)
    assert list(opened(tmp_path)) == [(1, "//a", None), (2, "//c", None)]
    assert report.invalid_count == 1


def test_changes_make_the_next_version_of_what_is_there(spark, tmp_path):
    compile_subscriptions(spark.createDataFrame(ROWS, SCHEMA), tmp_path)
    changes = [
        (1, None, None, "removed"),
        (3, "cyd", "//q[@a]", "added"),
        (2, "bob", "//new", "added"),
        (77, None, None, "removed"),
        (8, "cyd", "//[", "added"),
        (7, None, "//p", "change"),
    ]
    frame = spark.createDataFrame(changes, f"{SCHEMA}, change string")
    report = compile_subscriptions(None, tmp_path, changes=frame)
    assert (report.version, report.subscriptions, report.added, report.removed, report.changed) == (2, 4, 1, 1, 1)
    assert sorted(opened(tmp_path)) == [
        (2, "//new", "bob"),
        (3, "//q[@a]", "cyd"),
        (7, "//p", None),
        (9, "/news[@lang='en']", None),
    ]
    told = reasons(report)
    assert set(told) == {77, 8, 7}
    assert "cannot remove subscription 77" in told[77]
    assert "'added' or 'removed'" in told[7]


def test_changes_that_were_made_already_change_nothing(spark, tmp_path):
    compile_subscriptions(spark.createDataFrame(ROWS, SCHEMA), tmp_path)
    changes = spark.createDataFrame(
        [(3, "cyd", "//q", "added"), (1, None, None, "removed")], f"{SCHEMA}, change string"
    )
    first = compile_subscriptions(None, tmp_path, changes=changes)
    again = compile_subscriptions(None, tmp_path, changes=changes)
    assert (first.version, again.version) == (2, 2)
    assert (again.added, again.removed, again.subscriptions) == (0, 0, first.subscriptions)
    assert versions(tmp_path) == [1, 2]


@pytest.mark.parametrize("sequence", [False, True])
def test_of_several_changes_to_an_id_the_last_counts(spark, tmp_path, sequence):
    changes = [
        (1, "a", "//one", "added", 1),
        (1, None, None, "removed", 2),
        (2, "b", "//old", "added", 3),
        (2, "b", "//new", "added", 4),
        (3, None, None, "removed", 5),
        (3, "c", "//three", "added", 6),
    ]
    frame = spark.createDataFrame(
        changes[::-1] if sequence else changes, f"{SCHEMA}, change string, {'sequence' if sequence else 'other'} int"
    ).coalesce(1)
    compile_subscriptions(None, tmp_path, changes=frame)
    assert list(opened(tmp_path)) == [(2, "//new", "b"), (3, "//three", "c")]


def test_a_line_of_csv_with_fields_too_many_is_invalid_and_one_with_too_few_lacks_them(spark, tmp_path):
    lines = ("id,subscriber,xpath", "1,ada,//a,//b", "2,bob,//c", '3,eve,"//d[. = ""x,y""]"', "4,,//e,", "5")
    (tmp_path / "table.csv").write_text("\n".join(lines))
    found = read_table(spark, tmp_path / "table.csv").select("id", "xpath").collect()
    assert [tuple(row) for row in found] == [
        ("1", "1,ada,//a,//b"), ("2", "//c"), ("3", '//d[. = "x,y"]'), ("4", "4,,//e,"), ("5", None)
    ]  # fmt: skip


def test_a_table_that_is_not_there_is_named(spark, tmp_path):
    with pytest.raises(PipelineError, match=r"cannot read the table .*nothing.csv as csv: .*does not exist"):
        compile_subscriptions(tmp_path / "nothing.csv", tmp_path / "index")


def test_tables_are_read_from_parquet_and_csv(spark, tmp_path):
    spark.createDataFrame(ROWS, SCHEMA).write.parquet(str(tmp_path / "table"))
    with (tmp_path / "table.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("id", "subscriber", "xpath"), *ROWS, ("x", "ada", '//a[@b="c,d"]')])
    assert compile_subscriptions(tmp_path / "table", tmp_path / "one").subscriptions == 4
    report = compile_subscriptions(str(tmp_path / "table.csv"), tmp_path / "two")
    assert sorted(opened(tmp_path / "two")) == sorted(opened(tmp_path / "one"))
    [row] = report.invalid.collect()
    assert (row.xpath, row.reason) == ('//a[@b="c,d"]', "id must be a whole number from 1 to 2,147,483,647, got 'x'")


def test_prefixes_of_the_set_hold_for_its_changes(spark, tmp_path):
    table = spark.createDataFrame([(1, "ada", "//n:a")], SCHEMA)
    assert compile_subscriptions(table, tmp_path, namespaces={"n": "urn:n"}).invalid_count == 0
    changes = spark.createDataFrame(
        [(2, "ada", "//n:b", "added"), (3, "a", "//m:b", "added")], f"{SCHEMA}, change string"
    )
    report = compile_subscriptions(None, tmp_path, changes=changes)
    assert list(reasons(report)) == [3]
    matcher = pathcast.open_index(version_folder(tmp_path, 2))
    assert matcher.match("<b xmlns='urn:n'/>").ids.tolist() == [2]


def test_a_table_without_what_it_needs_is_refused(spark, tmp_path):
    with pytest.raises(PipelineError, match="subscriptions have no column 'xpath' \\(the columns are id"):
        compile_subscriptions(spark.createDataFrame([(1,)], "id int"), tmp_path)
    with pytest.raises(PipelineError, match="changes have no column 'change'"):
        compile_subscriptions(None, tmp_path, changes=spark.createDataFrame(ROWS, SCHEMA))
    with pytest.raises(PipelineError, match="neither subscriptions nor changes= is given"):
        compile_subscriptions(None, tmp_path)
    assert versions(tmp_path) == []
