"""A pipeline file with mediation, an overlay, shards and joins: values, errors, and keys that conflict."""

import re

import pytest

from pathcast.errors import SchemaError
from pathcast.joins.query.table_schema_file import read_schema_file
from pathcast.spark.pipeline.pipeline_file import read_pipeline

from .test_pipeline_file import DOCS, SMALL, problems, written


def test_mediation_and_messages_arrive(tmp_path):
    text = SMALL + 'per = "message"\n\n[mediation]\nmediator = "mediator"\nversion = "edition"\n'
    pipeline = read_pipeline(written(tmp_path, text))
    assert pipeline.mediation is not None
    assert pipeline.mediation.mediator == f"{tmp_path}/mediator"
    assert (pipeline.mediation.schema, pipeline.mediation.version) == ("publisher", "edition")
    assert (pipeline.deliveries.per, pipeline.source.document_column) == ("message", "xml")
    assert read_pipeline(written(tmp_path, SMALL)).mediation is None


def test_mediation_and_messages_need_documents_in_a_column(tmp_path):
    text = SMALL.replace('"parquet"', '"files"') + 'per = "message"\n\n[mediation]\nmediator = "mediator"\n'
    found = problems(tmp_path, text)
    assert [key for _, key, _ in found] == ["deliveries.per", "mediation.mediator"]
    assert all('but format = "files" gives paths' in reason for *_, reason in found)


def test_mediation_needs_a_mediator(tmp_path):
    ((_, key, reason),) = problems(tmp_path, SMALL + '\n[mediation]\nschema = "source"\n')
    assert (key, reason[:10]) == ("mediation.mediator", "is missing")


def test_overlay_shards_and_joins_arrive(tmp_path):
    overlay = read_pipeline(
        written(tmp_path, SMALL + '\n[overlay]\nlevels = 4\npolicy = "L-ds+s"\nlinks = "l"\n')
    ).overlay
    assert overlay is not None
    assert (overlay.levels, overlay.fanout, overlay.policy, overlay.keep) == (4, 2, "L+s-sd", 0.25)
    assert (overlay.topology, overlay.at, overlay.links) == (None, None, f"{tmp_path}/l")
    sharded = read_pipeline(written(tmp_path, SMALL.replace('"index"', '"index"\nshards = 3')))
    assert (sharded.subscriptions.shards, sharded.overlay, sharded.joins) == (3, None, None)
    wanted = 'schema = "s.toml"\nsubscriptions = "j.csv"\nkey = "number"\npath = "m"\ndead_letters = "d"\n'
    joins = read_pipeline(written(tmp_path, SMALL + f"\n[joins]\n{wanted}")).joins
    assert joins is not None
    assert (joins.schema, joins.subscriptions, joins.key) == (f"{tmp_path}/s.toml", f"{tmp_path}/j.csv", "number")
    assert (joins.scheme, joins.path, joins.dead_letters) == ("ref-sj-clu+", f"{tmp_path}/m", f"{tmp_path}/d")


@pytest.mark.parametrize(
    ("more", "line", "key", "reason"),
    [
        ('[overlay]\nlevels = 2\npolicy = "M"', 15, "overlay.policy", "invalid policy 'M': use 'ES', 'L'"),
        ('[overlay]\nlevels = 2\npolicy = "ES-s"', 15, "overlay.policy", "'ES' does not support negative annotations"),
        ("[overlay]\nlevels = 2\nkeep = 0", 15, "overlay.keep", "must be a number above 0 and at most 1, got 0"),
        ('[overlay]\ntopology = "t"\nlevels = 2', 15, "overlay.levels", "conflicts with overlay.topology"),
        (
            "[overlay]\nfanout = 2",
            14,
            "overlay.fanout",
            "needs overlay.levels, which is missing; add it, or omit the key",
        ),
        ("[overlay]\n[subscriptions2]", 14, "subscriptions2", "unknown key; did you mean subscriptions"),
        ('[joins]\nschema = "s"', 13, "joins.key", "is missing: A column of whole numbers"),
        ('[joins]\nscheme = "ref-j"', 14, "joins.scheme", 'must be "ref-sj-clu+" or'),
        ('[joins]\ndead_leters = "d"', 14, "joins.dead_leters", "did you mean dead_letters?"),
    ],
)
def test_what_is_wrong_with_overlay_and_joins_is_named_with_its_line(tmp_path, more, line, key, reason):
    found = problems(tmp_path, SMALL + f"\n\n{more}\n")
    assert [each[0] for each in found if each[1] == key] == [line]
    assert any(reason in each[2] for each in found if each[1] == key)


@pytest.mark.parametrize(
    ("more", "line", "key", "reason"),
    [
        ("", 13, "joins.subscriptions", "is missing: give joins.subscriptions"),
        ('versions = "s3a://bucket/v"', 17, "joins.versions", 'mounted folder, got the address "s3a://bucket/v"'),
        (
            'versions = "v"\nper = "message"',
            18,
            "joins.per",
            "needs joins.deliveries, which is missing; add it, or omit the key",
        ),
        (
            'versions = "v"\nshards = 2',
            18,
            "joins.shards",
            "needs joins.deliveries, which is missing; add it, or omit the key",
        ),
        ('versions = "v"\nper = "document"', 18, "joins.per", 'must be "subscription" or "message"'),
        ('versions = "v"\ncontents = "c"', 18, "joins.contents", "needs [stream]: in a batch"),
        ('subscriptions = "j"\ncontents = "c"', 18, "joins.contents", "needs joins.versions, without which no"),
    ],
)
def test_what_is_wrong_with_versions_and_deliveries_of_joins_is_named_with_its_line(tmp_path, more, line, key, reason):
    found = problems(tmp_path, SMALL + f'\n\n[joins]\nschema = "s"\nkey = "n"\npath = "m"\n{more}\n')
    assert any(each[0] == line and each[1] == key and reason in each[2] for each in found)


def test_versions_and_deliveries_of_joins_arrive(tmp_path):
    wanted = 'schema = "s"\nkey = "n"\npath = "m"\nversions = "v"\ndeliveries = "d"\nper = "message"\nshards = 4\n'
    joins = read_pipeline(written(tmp_path, SMALL + f"\n[joins]\n{wanted}")).joins
    assert joins is not None
    assert (joins.subscriptions, joins.versions, joins.deliveries) == (None, f"{tmp_path}/v", f"{tmp_path}/d")
    assert (joins.per, joins.shards, joins.contents) == ("message", 4, None)


def documented(first: str) -> str:
    """The file in the documentation that begins with this line."""
    page = DOCS.read_text(encoding="utf-8")
    examples: list[str] = re.findall(rf"```toml\n({re.escape(first)}\n.*?)```", page, re.DOTALL)
    (example,) = examples
    return example


def test_the_joins_of_the_documentation_are_real(tmp_path):
    example = documented("[joins]")
    text = SMALL.replace('path = "documents"', 'path = "d"\nschema = "number long, xml binary"')
    joins = read_pipeline(written(tmp_path, text + example + '[stream]\ncheckpoint = "c"\n')).joins
    assert joins is not None
    assert (joins.versions, joins.contents) == (f"{tmp_path}/join-versions", f"{tmp_path}/join-contents")


def test_what_does_not_go_together_is_said(tmp_path):
    text = SMALL.replace('"index"', '"index"\ntable = "t.csv"\nshards = 2') + 'per = "document"\n\n[overlay]\n'
    said = {key: reason for _, key, reason in problems(tmp_path, text)}
    assert said.keys() == {"overlay.topology", "subscriptions.shards", "deliveries.per"}
    assert "is compiled to an overlay" in said["overlay.topology"]
    assert "whose routers already divide the subscriptions" in said["subscriptions.shards"]
    by_path = SMALL.replace('"parquet"', '"files"') + "\n[overlay]\nlevels = 2\n"
    assert [key for _, key, _ in problems(tmp_path, by_path)] == ["overlay.levels"]


def test_the_whole_job_of_the_documentation_is_real(tmp_path):
    job, market = documented("# shop.toml"), documented("# market.toml")
    pipeline = read_pipeline(written(tmp_path, job))
    assert pipeline.overlay is not None
    assert pipeline.mediation is not None
    assert pipeline.joins is not None
    (tmp_path / "market.toml").write_text(market, encoding="utf-8")
    schema = read_schema_file(pipeline.joins.schema)
    assert [one.table for one in schema.extractions] == ["Stocks", "Reviews"]
    for table, wrong in (("[rows.Stocks]", "[rows.Stock]"), ("rating = ", "rate = "), ("[tables]", "[table]")):
        (tmp_path / "market.toml").write_text(market.replace(table, wrong), encoding="utf-8")
        with pytest.raises(SchemaError, match="market.toml, line "):
            read_schema_file(pipeline.joins.schema)
