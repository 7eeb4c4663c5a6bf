"""A pipeline file: a valid file becomes a `Pipeline`, errors are reported with file, line and key."""

import pickle
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from pathcast.documents import Limits
from pathcast.spark.pipeline import plan
from pathcast.spark.pipeline.pipeline_file import PipelineFileError, Problem, read_pipeline
from pathcast.spark.pipeline.pipeline_sections import Pipeline, reference
from pathcast.toml_files import RefusedValueError
from pathcast.toml_files.declared_keys import Key, declared

DOCS = Path(__file__).parents[2] / "docs" / "guides" / "pipeline.md"
KEYS = Path(__file__).parents[2] / "docs" / "reference" / "pipeline-file.md"

SMALL = """
[source]
format = "parquet"
path = "documents"

[subscriptions]
index = "index"

[deliveries]
path = "deliveries"
"""

FULL = """
name = "news"

[source]
format = "json"
path = ["s3a://bucket/b"]
schema = "number long, text string"
document = "text"
options = { maxFilesPerTrigger = 1, recursiveFileLookup = true }

[subscriptions]
index = "/var/index"
table = "subscriptions.csv.gz"
changes = "changes"
namespaces = { f = "http://example.org/f" }
invalid = "invalid"
max_invalid = 0.25

[deliveries]
format = "delta"
path = "out"
per = "document"
by = "id"
columns = ["number"]

[deliveries.options]
mergeSchema = true

[dead_letters]
path = "dead"

[stream]
checkpoint = "file:///tmp/checkpoint"
trigger = "10 seconds"

[limits]
depth = 50

[spark]
spark.sql.shuffle.partitions = 8
"""


def written(folder: Path, text: str) -> Path:
    file = folder / "pipeline.toml"
    file.write_text(textwrap.dedent(text), encoding="utf-8")
    return file


def problems(folder: Path, text: str) -> list[tuple[int | None, str, str]]:
    with pytest.raises(PipelineFileError) as raised:
        read_pipeline(written(folder, text))
    return [(one.line, one.key, one.reason) for one in raised.value.problems]


def test_a_small_file_says_what_and_the_rest_follows(tmp_path):
    pipeline = read_pipeline(written(tmp_path, "\ufeff" + SMALL))  # as some editors write it
    assert pipeline.name == "pipeline"
    assert pipeline.source.path == (f"{tmp_path}/documents",)
    assert (pipeline.source.document_column, pipeline.source.path_column) == ("xml", None)
    assert pipeline.subscriptions.index == f"{tmp_path}/index"
    assert (pipeline.deliveries.format, pipeline.deliveries.per, pipeline.deliveries.mode) == (
        "parquet",
        "subscriber",
        "error",
    )
    assert pipeline.dead_letters is None
    assert pipeline.stream is None
    assert pipeline.limits == Limits()
    assert pipeline.spark == {}


def test_every_key_arrives(tmp_path):
    pipeline = read_pipeline(written(tmp_path, FULL))
    assert pipeline.name == "news"
    assert pipeline.source.path == ("s3a://bucket/b",)
    assert pipeline.source.schema == "number long, text string"
    assert pipeline.source.document == "text"
    assert pipeline.source.options == {"maxFilesPerTrigger": "1", "recursiveFileLookup": "true"}
    assert pipeline.subscriptions.index == "/var/index"
    assert pipeline.subscriptions.format_of_table == "csv"
    assert pipeline.subscriptions.format_of_changes == "parquet"
    assert pipeline.subscriptions.namespaces == {"f": "http://example.org/f"}
    assert pipeline.subscriptions.invalid == f"{tmp_path}/invalid"
    assert pipeline.subscriptions.max_invalid == 0.25
    assert (pipeline.deliveries.per, pipeline.deliveries.by) == ("document", "id")
    assert pipeline.deliveries.columns == ("number",)
    assert pipeline.deliveries.options == {"mergeSchema": "true"}
    assert pipeline.dead_letters is not None
    assert pipeline.dead_letters.path == f"{tmp_path}/dead"
    assert pipeline.stream is not None
    assert (pipeline.stream.checkpoint, pipeline.stream.trigger) == ("/tmp/checkpoint", "10 seconds")
    assert not pipeline.stream.ends
    assert pipeline.limits == Limits(depth=50)
    assert pipeline.spark == {"spark.sql.shuffle.partitions": "8"}


@pytest.mark.parametrize(
    ("given", "why"), [('{ "" = "urn:a" }', "no default namespace"), ('{ a = "" }', "the prefix 'a' is empty")]
)
def test_namespaces_have_prefixes_and_uris(tmp_path, given, why):
    text = SMALL.replace("[deliveries]", f'table = "a.csv"\nnamespaces = {given}\n[deliveries]')
    ((_, key, reason),) = problems(tmp_path, text)
    assert key == "subscriptions.namespaces" and why in reason


@pytest.mark.parametrize(
    ("form", "document", "document_path"),
    [("parquet", "xml", None), ("binaryFile", "content", None), ("text", "value", None), ("files", "xml", "path")],
)
def test_the_documents_column_follows_from_the_format(tmp_path, form, document, document_path):
    source = read_pipeline(written(tmp_path, SMALL.replace('"parquet"', f'"{form}"'))).source
    assert (source.document_column, source.path_column) == (document, document_path)


def test_nothing_is_written_where_something_else_is(tmp_path):
    text = SMALL.replace('"deliveries"', '"out/../documents/"') + '[dead_letters]\npath = "index"\n'
    assert problems(tmp_path, text) == [
        (10, "deliveries.path", "is also the folder of source.path; give each its own folder"),
        (12, "dead_letters.path", "is also the folder of subscriptions.index; give each its own folder"),
    ]


def test_an_unknown_key_is_named_with_its_line_and_what_is_near(tmp_path):
    text = SMALL.replace('path = "documents"', 'path = "documents"\nshema = "xml binary"')
    assert problems(tmp_path, text) == [
        (5, "source.shema", "unknown key; did you mean schema?"),
    ]


@pytest.mark.parametrize(
    ("change", "line", "key", "reason"),
    [
        (("[source]", "[sorce]"), 2, "sorce", "did you mean source"),
        (
            ('index = "index"', 'index = "index"\nmode = "append"'),
            8,
            "subscriptions.mode",
            "did you mean deliveries.mode or dead_letters.mode",
        ),
        (('format = "parquet"', "format = 3"), 3, "source.format", "must be text, got 3"),
        (('path = "documents"', "path = [1]"), 4, "source.path", "must be a path or list of paths, got [1]"),
        (
            ('path = "deliveries"', 'per = "reader"'),
            10,
            "deliveries.per",
            '"subscriber" or "subscription" or "document" or "message", got "reader"',
        ),
        (('path = "deliveries"', 'mode = "apend"'), 10, "deliveries.mode", 'did you mean "append"?'),
        (('path = "deliveries"', "columns = []"), 10, "deliveries.columns", "must be a list of names"),
        (('path = "deliveries"', "options = 1"), 10, "deliveries.options", "must be a table"),
        (
            ('path = "deliveries"', 'by = "id"'),
            10,
            "deliveries.by",
            'needs deliveries.per = "document", got "subscriber"',
        ),
        (('index = "index"', ""), 6, "subscriptions.index", "is missing: give the folder of the index"),
        (
            ('index = "index"', 'index = "i"\nchanges = "c"'),
            8,
            "subscriptions.changes",
            "needs subscriptions.table",
        ),
        (('path = "documents"', ""), 2, "source.path", "is missing"),
        (
            ('path = "documents"', 'path = "d"\ndocument = "a"\ndocument_path = "b"'),
            6,
            "source.document_path",
            "conflicts with",
        ),
        (
            ("[deliveries]", "[limits]\ndepth = 0\n[deliveries]"),
            10,
            "limits.depth",
            "whole number of at least 1, got 0",
        ),
        (("[deliveries]", "[stream]\n[deliveries]"), 9, "stream.checkpoint", "is missing"),
        (
            ("[deliveries]", "[spark]\na = [1]\n[deliveries]"),
            9,
            "spark",
            "option 'a' must be text, a number, true or false, got the list",
        ),
    ],
)
def test_a_wrong_value_is_named_with_its_line(tmp_path, change, line, key, reason):
    found = problems(tmp_path, SMALL.replace(*change))
    assert [(one[0], one[1]) for one in found if one[1] == key] == [(line, key)]
    assert any(reason in one[2] for one in found)


@pytest.mark.parametrize(
    ("stream", "key", "reason"),
    [
        ('trigger = "sometimes"', "stream.trigger", "an interval such as"),
        ('trigger = "availablenow"', "stream.trigger", 'did you mean "available-now"?'),
        ("", "source.schema", "a stream of parquet cannot infer its columns"),
        ('[dead_letters]\nmode = "overwrite"', "dead_letters.mode", "a stream appends"),
    ],
)
def test_what_a_stream_needs_is_said(tmp_path, stream, key, reason):
    found = problems(tmp_path, SMALL + f'[stream]\ncheckpoint = "c"\n{stream}\n')
    assert any(one[1] == key and reason in one[2] for one in found)


@pytest.mark.parametrize(
    ("source", "key", "reason"),
    [
        ('settle = "2s"', "source.settle", 'must be an interval such as "2 seconds", got "2s"'),
        ('schema = "content binary"', "source.schema", 'format = "files" has fixed columns in a stream'),
        ("options = { maxFileAge = 1 }", "source.options", "option 'maxFileAge' is not supported"),
        ("options = { latestfrist = true }", "source.options", "did you mean 'latestFirst'?"),
        (
            'options = { Settle = "1 second" }',
            "source.options",
            "option 'Settle' cannot be set in source.options: use the key source.settle instead",
        ),
    ],
)
def test_a_stream_over_files_has_keys_and_options_of_its_own(tmp_path, source, key, reason):
    stream = '[stream]\ncheckpoint = "c"\n'
    text = SMALL.replace('"parquet"', f'"files"\n{source}')
    found = problems(tmp_path, text + stream)
    assert any(one[1] == key and reason in one[2] for one in found)


def test_files_settle_in_a_stream_over_a_folder_and_nowhere_else(tmp_path):
    stream = '[stream]\ncheckpoint = "c"\n'
    text = SMALL.replace('"parquet"', '"files"\nsettle = "5 minutes"')
    assert read_pipeline(written(tmp_path, text + stream)).source.settle == "5 minutes"
    for other in (text, text.replace('"documents"', '"s3a://feed"') + stream, text.replace("files", "text") + stream):
        assert [one[1] for one in problems(tmp_path, other)] == ["source.settle"]


def test_a_checkpoint_behind_an_address_is_refused(tmp_path):
    text = SMALL.replace('path = "documents"', 'path = "d"\nschema = "xml binary"')
    found = problems(tmp_path, text + '[stream]\ncheckpoint = "s3a://bucket/c"\n')
    assert found == [
        (
            13,
            "stream.checkpoint",
            'must be a local or mounted folder, got the address "s3a://bucket/c"; give the path of a folder',
        )
    ]


def test_a_batch_takes_several_paths_and_a_stream_one(tmp_path):
    text = SMALL.replace('"documents"', '["a", "b"]\nschema = "xml binary"')
    assert read_pipeline(written(tmp_path, text)).source.path == (f"{tmp_path}/a", f"{tmp_path}/b")
    found = problems(tmp_path, text + '[stream]\ncheckpoint = "c"\n')
    assert [one[:2] for one in found] == [(4, "source.path")]


def test_all_problems_are_told_at_once_in_the_order_of_lines(tmp_path):
    text = SMALL.replace("parquet", "").replace('path = "deliveries"', "pth = 1")
    with pytest.raises(PipelineFileError) as raised:
        read_pipeline(written(tmp_path, text))
    assert str(raised.value).splitlines() == [
        f'{tmp_path}/pipeline.toml, line 3: source.format: must be text, got ""; it must not be empty',
        f"{tmp_path}/pipeline.toml, line 10: deliveries.pth: unknown key; did you mean path?",
    ]
    assert pickle.loads(pickle.dumps(raised.value)) == raised.value


def test_a_file_without_deliveries_is_refused(tmp_path):
    assert ("deliveries", "the section is missing: The output for matched documents.") in [
        one[1:] for one in problems(tmp_path, SMALL.partition("[deliveries]")[0])
    ]


def test_a_file_that_is_not_toml_has_its_line(tmp_path):
    found = problems(tmp_path, "[source]\nformat = parquet\n")
    assert found[0][0] == 2
    assert found[0][2].startswith("is not valid TOML: ")


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(PipelineFileError) as raised:
        read_pipeline(tmp_path / "nowhere.toml")
    assert raised.value.problems == (Problem(None, "", "cannot be read: No such file or directory; check the path"),)


def test_the_reference_in_the_documentation_is_that_of_the_code():
    """To fix: paste the output of `reference()` in `pathcast.spark.pipeline.pipeline_sections`."""
    page = KEYS.read_text(encoding="utf-8")
    begin, end = "<!-- keys -->\n", "<!-- end of keys -->"
    assert page.partition(begin)[2].partition(end)[0].strip() == reference().strip()


def test_the_example_and_the_errors_of_the_documentation_are_real(tmp_path):
    page = DOCS.read_text(encoding="utf-8")
    example = page.partition("```toml\n")[2].partition("```")[0]
    assert read_pipeline(written(tmp_path, example)).stream is not None
    spoilt = example.replace("schema =", "shema =").replace('path = "deliveries"', 'per = "reader"')
    with pytest.raises(PipelineFileError) as raised:
        read_pipeline(written(tmp_path, spoilt))
    shown = page.partition("```text\nerror: ")[2].partition("\n```")[0]
    assert str(raised.value).replace(f"{tmp_path}/", "") == shown


def test_a_choice_names_what_may_be_chosen():
    for name, section in declared(Pipeline).items():
        for key, each in declared(section.of).items() if not isinstance(section, Key) else ():
            assert isinstance(each, Key) and each.meaning and each.without, f"{name}.{key}"
            if each.kind.wanted == "one of the named":
                with pytest.raises(RefusedValueError) as refused:
                    each.kind.read("", Path())
                choices = str(refused.value).removeprefix("must be ").partition(", got")[0].split(" or ")
                assert not [one for one in choices if f"`{one.strip(chr(34))}`" not in each.meaning], f"{name}.{key}"


def test_reading_a_file_needs_no_spark(tmp_path):
    file = written(tmp_path, SMALL)
    program = (
        "import sys; sys.modules['pyspark'] = None\n"
        "from pathcast.spark.pipeline.pipeline_file import read_pipeline\n"
        f"print(read_pipeline({str(file)!r}).name)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("pipeline\n", "")


LOG = '[source]\nformat = "pathcast"\noptions = { url = "http://127.0.0.1:1" }\n[deliveries]\npath = "out"\n'


def test_a_source_in_a_log_needs_no_subscriptions(tmp_path):
    pipeline = read_pipeline(written(tmp_path, LOG))
    assert pipeline.takes_subscriptions_from_log
    assert pipeline.deliveries.per == "subscription"
    assert "the subscriptions of the log" in dict(plan(pipeline))["index"]
    indexed = read_pipeline(written(tmp_path, LOG + '[subscriptions]\nindex = "index"\n'))
    assert (indexed.takes_subscriptions_from_log, indexed.deliveries.per) == (False, "subscriber")


@pytest.mark.parametrize(
    ("more", "key", "reason"),
    [
        ('per = "message"\n', "deliveries.per", 'use "subscription" or "document"'),
        ("[mediation]\nmediator = 'm'\n", "mediation", "does not apply to the subscriptions of a log"),
        ("[limits]\ndepth = 3\n", "limits", "does not apply to the subscriptions of a log"),
        ("[subscriptions]\nshards = 2\n", "subscriptions.shards", "needs subscriptions.index"),
        ("[subscriptions]\nindex = 'i'\n", "deliveries.per", '"subscription" needs the subscriptions of a log'),
    ],
)
def test_what_a_log_decides_itself_is_refused(tmp_path, more, key, reason):
    per = 'per = "subscription"\n' if "index" in more else ""
    found = problems(tmp_path, LOG + per + more)
    assert [(one[1], reason in one[2]) for one in found] == [(key, True)]


@pytest.mark.parametrize(
    ("options", "stream", "key", "reason"),
    [
        (', expired = "keep"', "", "source.options", "option 'expired' must be"),
        (', to = "3"', "[stream]\ncheckpoint = 'c'\n", "source.options", "option 'to' does not apply"),
        (' }\nsplit = "/a/b"\n#', "", "source.split", "does not apply to the subscriptions of a log"),
    ],
)
def test_options_that_contradict_the_log_are_refused(tmp_path, options, stream, key, reason):
    found = problems(tmp_path, LOG.replace(" }\n", f"{options} }}\n") + stream)
    assert [(one[1], reason in one[2]) for one in found] == [(key, True)]
