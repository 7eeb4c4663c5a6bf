"""Schemas: valid declarations, and invalid ones."""

from pathlib import Path

import pytest

from pathcast import SchemaError
from pathcast.joins import Schema
from pathcast.joins.query.join_graph_schema import Draft
from pathcast.joins.query.table_schema_file import read_schema_file, reference


@pytest.mark.parametrize(
    ("tables", "joins", "reason"),
    [
        ({}, [], "the schema has no tables; give at least one"),
        ({"A": ""}, [], "a column of table 'A' must read 'name' or 'name kind', got ''"),
        ({"A": 5}, [], "the columns of 'A' must be given as 'name kind, …', got 5"),
        ({"A": [5]}, [], "the columns of 'A' must be given as 'name kind, …', got [5]"),
        ({"A": "x, X"}, [], "table 'A' has two columns 'X'"),
        ({"A": "x", "a": "y"}, [], "two tables are named 'a'"),
        ({"A": "x decimal"}, [], "column A.x has the unknown kind 'decimal'; use one of int, float, string"),
        ({"A b": "x"}, [], "the name of a table must consist of letters"),
        ({"A": "x", "B": "y"}, ["A.x = B.z"], "table 'B' has no column 'z'; use one of y"),
        ({"A": "x", "B": "y"}, ["A.x = C.y"], "unknown table 'C'; use one of A, B"),
        ({"A": "x", "B": "y"}, "A.x = B.y", "joins must be a list, such as ['A.x = B.y'], got 'A.x = B.y'"),
        ({"A": "x", "B": "y"}, 5, "joins must be a list"),
        ({"A": "x", "B": "y"}, [5], "joins must be a list, such as ['A.x = B.y'], got [5]"),
        ({"A": "x", "B": "y"}, ["A.x < B.y"], "a join must read 'A.x = B.y'"),
        ({"A": "x, y"}, ["A.x = A.y"], "joins 'A' with itself"),
        ({"A": "x", "B": "y", "C": "z"}, ["A.x = B.y and A.x = C.z"], "more than two tables"),
        ({"A": "x", "B": "y"}, ["A.x = B.y", "B.y = A.x"], "already declared"),
        ({"A": "x int", "B": "y string"}, ["A.x = B.y"], "A.x (int) and B.y (string) cannot be joined"),
        ({"A": {"x": 3}}, [], "column A.x has the unknown kind '3'; use one of int"),
        ({"A": "x bytes", "B": "y bytes"}, ["A.x = B.y"], "joins columns of bytes"),
    ],
)
def test_what_can_not_be_declared(tables: dict, joins: list[str], reason: str) -> None:
    with pytest.raises(SchemaError) as refused:
        Schema(tables, joins)
    assert reason in str(refused.value)


def test_columns_may_be_given_in_three_ways() -> None:
    ways = ["x int, y", {"x": "int", "y": None}, ["x int", "y"]]
    for columns in ways:
        schema = Schema({"A": columns})
        kind = schema.kind("A", "x")
        assert schema.columns == {"A": ("x", "y")} and kind is not None and kind.name == "int"
        assert schema.kind("A", "y") is None and str(schema) == "A(x, y)"


def test_an_edge_of_several_columns_may_be_written_either_way_round() -> None:
    schema = Schema({"A": "x, y", "B": "u, v"}, ["A.x = B.u and B.v = A.y"])
    (edge,) = schema.edges
    assert edge.columns_of("A") == ("x", "y") and edge.columns_of("B") == ("u", "v") and edge.other("A") == "B"
    assert str(edge) == "A.x = B.u and A.y = B.v"


def test_a_kind_spreads_along_joins() -> None:
    schema = Schema({"A": "x", "B": "y", "C": "z int"}, ["A.x = B.y"])
    draft = Draft(schema)
    assert draft.constant("A", "x", "text") is None
    assert schema.kind("B", "y") is None
    assert "cannot be compared with a number" in (draft.constant("B", "y", 5) or "")
    draft.settle()
    kind = schema.kind("B", "y")
    assert kind is not None and kind.name == "string"
    assert Draft(schema).constant("C", "z", 5.5) is None


@pytest.mark.parametrize(
    ("said", "line", "problem"),
    [
        ("columns = {x = 3}", 5, "rows.A.columns: must be a table of texts, got {'x': 3}"),
        ("columns = '@x'", 5, 'rows.A.columns: must be a table of texts, got "@x"'),
        ("columns = {x = '@x'}\nrequired = 3", 6, "rows.A.required: must be a list of texts, got 3"),
        ("columns = {x = '@x'}\nchanges = '@do'", 6, "rows.A.changes: unknown key; did you mean change?"),
        ("columns = {y = '@x'}", 5, "rows.A.columns: the column 'x' of A is missing; add x = \"path\""),
        ("columns = {x = '@x', y = '@y'}", 5, "rows.A.columns: 'y' is not a column of A; the columns are x"),
        (
            "columns = {x = '@x'}\n[rows.B]\nrows = '//b'\ncolumns = {}",
            6,
            "rows.B: unknown table 'B'; use one of A",
        ),
        ("", 3, "rows.A.columns: is missing: For each column of the table, its path relative to the row's element."),
    ],
)
def test_a_schema_file_says_how_rows_are_given(tmp_path: Path, said: str, line: int, problem: str) -> None:
    file = tmp_path / "schema.toml"
    file.write_text(f"[tables]\nA = 'x'\n[rows.A]\nrows = '//a'\n{said}\n")
    with pytest.raises(SchemaError) as raised:
        read_schema_file(file)
    assert f"{file}, line {line}: {problem}" in str(raised.value).splitlines()


def test_the_reference_of_schema_files_is_that_of_the_code() -> None:
    """To fix: paste the output of `reference()` in `pathcast.joins.query.table_schema_file`."""
    page = (Path(__file__).parents[2] / "docs" / "guides" / "joins.md").read_text(encoding="utf-8")
    assert page.partition("<!-- keys -->\n")[2].partition("<!-- end of keys -->")[0].strip() == reference().strip()
