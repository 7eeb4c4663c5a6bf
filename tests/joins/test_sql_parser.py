"""SQL: accepted queries have DuckDB's answers; errors point at the rejected words."""

from collections import Counter
from collections.abc import Iterator
from datetime import date, datetime
from typing import Any

import duckdb
import pytest

from pathcast import QueryError
from pathcast.joins import Client, JoinServer, Schema, select
from pathcast.joins.query.sql_parser import read_sql
from pathcast.messages import Interval

TABLES = {
    "Stocks": "symbol string, per float, name string",
    "Reviews": "symbol string, rating float, day date, text string",
    "Trades": "symbol string, day date, moment timestamp, volume int",
}
JOINS = [
    "Stocks.symbol = Reviews.symbol",
    "Stocks.symbol = Trades.symbol",
    "Reviews.symbol = Trades.symbol",
    "Reviews.symbol = Trades.symbol and Reviews.day = Trades.day",
]
ROWS: dict[str, list[tuple[Any, ...]]] = {
    "Stocks": [("GOOG", 51.7, "Alphabet"), ("YHOO", 51.2, "Yahoo"), ("AMZN", 92.8, None), ("HUGE", 2.0**53, "")],
    "Reviews": [
        ("GOOG", 5.5, date(2026, 1, 1), "so"),
        ("GOOG", 7.0, date(2026, 1, 2), "it's good"),
        ("GOOG", 7.0, date(2026, 1, 2), "it's good"),
        ("AMZN", 7.2, date(2026, 1, 1), None),
    ],
    "Trades": [
        ("GOOG", date(2026, 1, 1), datetime.fromisoformat("2026-01-01T09:30"), 100),
        ("GOOG", date(2026, 1, 2), datetime.fromisoformat("2026-01-02T09:30"), 5),
        ("AMZN", date(2026, 1, 3), datetime.fromisoformat("2026-01-03T00:00"), 7),
        ("AMZN", date(2026, 1, 4), datetime.fromisoformat("2026-01-04T00:00"), 9007199254740993),
        ("AMZN", date(2026, 1, 5), datetime.fromisoformat("2026-01-05T00:00"), 9007199254740994),
        ("AMZN", date(2026, 1, 5), datetime.fromisoformat("2026-01-05T00:00"), -(1 << 63)),
    ],
}


def schema() -> Schema:
    return Schema(TABLES, JOINS)


@pytest.fixture(scope="module")
def both() -> Iterator[tuple[JoinServer, duckdb.DuckDBPyConnection]]:
    server, database = JoinServer(schema()), duckdb.connect()
    types = {"string": "varchar", "float": "double", "int": "bigint"}
    for table, columns in TABLES.items():
        parts = [part.split() for part in columns.split(",")]
        database.execute(f"create table {table} ({', '.join(f'{n} {types.get(k, k)}' for n, k in parts)})")
        for row in ROWS[table]:
            server.insert(table, dict(zip([n for n, _ in parts], row, strict=True)))
            database.execute(f"insert into {table} values ({', '.join('?' for _ in row)})", row)
    yield server, database
    database.close()


@pytest.mark.parametrize(
    "query",
    [
        "select * from Stocks",
        "SELECT * FROM stocks WHERE PER > 51.5;",
        "select * from Stocks natural join Reviews where per between 45 and 70 and rating >= 6",
        "select * from Stocks s inner join Reviews as r on s.symbol = r.symbol where 6 < r.rating",
        "select * from Stocks join Reviews using (symbol) where text = 'it''s good' and symbol >= 'B'",
        "select * from Stocks, Reviews where Stocks.symbol = Reviews.symbol and (per = 51.7 and (rating <= 7))",
        "select * from Reviews natural join Trades",
        "select * from Reviews join Trades using (symbol, day) where volume > 4.5",
        "select * from Reviews r join Trades t on r.symbol = t.symbol",
        "select * from Trades where volume >= 9007199254740993.0",
        "select * from Trades where volume > 9007199254740993.0",
        "select * from Trades where volume < 9007199254740993.5",
        "select * from Trades where volume between 7.0000000000000001 and 9007199254740993.5",
        "select * from Trades where volume = 7.0000000000000001",
        "select * from Trades where volume > -9223372036854775808.5 and volume < 92233720368547758070.5",
        "select * from Trades where volume <= -9223372036854775808.5",
        "select * from Stocks where per >= 9007199254740993",
        "select * from Stocks where per > 9007199254740993.0",
        "select * from Reviews r join Trades t on r.symbol = t.symbol and r.day = t.day where moment < '2026-01-02'",
        "select * from Stocks natural join Reviews join Trades using (symbol) where Trades.day = date '2026-01-02'",
        "select * from Trades where moment >= timestamp '2026-01-02 09:30:00' and day <= '2026-01-03'",
        "select * from Trades where moment = date '2026-01-03'",
        'select * from "Trades" where "volume" >= -1e1 and volume < 100',
        "select * from Trades where volume between 7 and 5",
        "select * from Trades where day > date '2026-01-01' and day < date '2026-01-02'",
        "select * from Stocks where name > 'A' and name < 'Yahoo'",
        "select * from Stocks s join Trades t on s.symbol = t.symbol join Reviews r on r.symbol = t.symbol",
    ],
)
def test_an_accepted_query_means_what_duckdb_makes_of_it(query: str, both) -> None:
    server, database = both
    client = Client(server.schema, server.subscribe(query))
    answer = database.execute(query)
    names = [column[0] for column in answer.description]
    assert [name.rpartition(".")[2] for name in client.columns] == names
    assert Counter(client.rows()) == Counter(answer.fetchall())


@pytest.mark.parametrize(
    ("query", "column", "words", "reason"),
    [
        ("select per from Stocks", 8, "per", "'per' cannot be selected; select whole rows"),
        ("select *, per from Stocks", 11, "per", "'per' cannot be selected; select whole rows"),
        ("select distinct * from Stocks", 8, "distinct", "'distinct' is not supported"),
        ("select * from Stocks where per > 5 or per < 3", 36, "or", "'or' is not supported"),
        ("select * from Stocks where not per > 5", 28, "not", "'not' is not supported"),
        ("select * from Stocks left join Reviews using (symbol)", 22, "left", "'left' is not supported"),
        ("select * from Stocks order by per", 22, "order by", "'ORDER BY' is not supported"),
        ("select * from Stocks where per in (1, 2)", 32, "in", "'in' is not supported"),
        ("select * from Stocks where per is null", 32, "is", "'is' is not supported"),
        ("select * from Stocks where per + 1 > 3", 32, "+", "'+' is not supported"),
        (
            "select * from Stocks where abs(per) > 3", 32, "per",
            "'ABS(per) > 3' does not compare a column; write a column alone on one side",
        ),
        ("select * from Stocks where per > 3 limit 5", 36, "limit", "'limit' is not supported"),
        ("select * from Nope", 15, "Nope", "unknown table 'Nope'"),
        ("select * from Stocks s where s.nope > 3", 30, "s.nope", "table 'Stocks' has no column 'nope'"),
        ("select * from Stocks s where x.per > 3", 30, "x.per", "no table or alias 'x' in the from clause"),
        ("select * from Stocks where volume > 3", 28, "volume", "no table of the query has a column 'volume'"),
        ("select * from Stocks a, Stocks b", 25, "Stocks b", "'Stocks' is joined with itself, which is not supported"),
        (
            "select * from (select * from Stocks) x", 30, "Stocks) x",
            "expected the name of a table, got '(SELECT * FROM Stocks) AS x'",
        ),
        (
            "select * from Stocks, Reviews", 23, "Reviews",
            "no join connects 'Reviews' with 'Stocks'; add a join condition or remove a table",
        ),
        (
            "select * from Stocks join Reviews on Stocks.name = Reviews.text", 38, "Stocks.name = Reviews.text",
            (
                "the schema declares no join Stocks.name = Reviews.text; "
                "use a declared join, or add this one to the schema"
            ),
        ),
        (
            "select * from Stocks natural join Reviews natural join Trades where rating < per", 69, "rating < per",
            "two columns cannot be compared with '<'; use '='",
        ),
        (
            "select * from Reviews r join Trades t on r.symbol = t.symbol where day = '2026-01-01'", 68, "day",
            "'day' is ambiguous",
        ),
        (
            "select * from Stocks where per > 'high'", 28, "per",
            "Stocks.per is of kind float and cannot be compared with a string; give a float",
        ),
        ("select * from Trades where day > 'soon'", 28, "day", "'soon' is not a date"),
        (
            "select * from Trades where day > date 'soon'", 28, "day",
            (
                "'soon' is not a valid date or timestamp; "
                "write date '2026-01-31' or timestamp '2026-01-31 12:30:00'"
            ),
        ),
        (
            "select * from Stocks where per = 99999999999999999999", 28, "per",
            "number 99999999999999999999 does not fit in 64 bits; use a float or a string",
        ),
        (
            "select * from Stocks where per > . 2.5",
            28,
            "per",
            "'0.2.5' is not a number; write a number such as 45 or 4.5",
        ),
        (
            "select * from Stocks where per > 1.5e",
            28,
            "per",
            "'1.5e' is not a number; write a number such as 45 or 4.5",
        ),
        (
            "select * from Stocks where name = Name", 28, "name = Name",
            "'name = Name' compares a column with itself; remove the condition",
        ),
        ("select * from Stocks where per between 4 nd 5", 45, "5", "unexpected '5'"),
        ("update Stocks set per = 3", 1, "update", "'update' is not supported"),
    ],
)  # fmt: skip
def test_a_refused_query_is_pointed_at(query: str, column: int, words: str, reason: str) -> None:
    with pytest.raises(QueryError) as refused:
        read_sql(query, schema())
    assert (refused.value.reason, refused.value.column, refused.value.offending) == (reason, column, words)
    assert query in str(refused.value)


@pytest.mark.parametrize(
    "query",
    [
        "", "   ", "select * from 'Stocks", "select *", "stocks", "select * from Stocks where",
        f"select * from Stocks where {'(' * 500}per > 1{')' * 500}",
    ],
    ids=range(7),
)  # fmt: skip
def test_what_is_no_query_is_refused(query: str) -> None:
    with pytest.raises(QueryError):
        read_sql(query, schema())


def test_a_query_with_very_many_conditions_is_read() -> None:
    query, _ = read_sql("select * from Stocks where " + " and ".join(f"per > {n}" for n in range(300)), schema())
    assert query.ranges["Stocks"]["per"] == Interval(299, None, low_open=True)


def test_columns_of_one_name_are_one_without_regard_to_case() -> None:
    schema = Schema({"A": "id int, Day int", "B": "ID int, day int"}, ["A.id = B.ID", "A.id = B.ID and A.Day = B.day"])
    query, _ = read_sql("select * from A natural join B", schema)
    assert (len(query.edges), query.columns) == (2, ("id", "Day"))
    assert len(read_sql("select * from A join B using (Id)", schema)[0].edges) == 1
    with pytest.raises(QueryError, match="'day' is ambiguous"):
        read_sql("select * from A join B on A.id = B.id where day > 5", schema)


def test_a_range_on_a_join_column_holds_on_all_that_equal_it() -> None:
    query, _ = read_sql(
        "select * from Stocks natural join Reviews join Trades using (symbol) where symbol = 'A'", schema()
    )
    assert {table: str(ranges["symbol"]) for table, ranges in query.ranges.items()} == {
        "Stocks": "['A', 'A']", "Reviews": "['A', 'A']", "Trades": "['A', 'A']"
    }  # fmt: skip
    assert [edge.number for edge in query.edges] == [0, 1, 2]


def test_the_python_form_is_the_same_query() -> None:
    by_sql, _ = read_sql(
        "select * from Stocks natural join Reviews where per between 45 and 70 and rating >= 6", schema()
    )
    by_hand, _ = select("Stocks", "Reviews", where={"per": (45, 70), "Reviews.rating": (6, None)}).resolve(schema())
    assert (by_hand.tables, by_hand.edges, by_hand.ranges, by_hand.output) == (
        by_sql.tables, by_sql.edges, by_sql.ranges, by_sql.output,
    )  # fmt: skip
    other, _ = select("Reviews", "Trades", where={"symbol": "A"}, on=["Reviews.symbol = Trades.symbol"]).resolve(
        schema()
    )
    assert [edge.number for edge in other.edges] == [2] and other.ranges["Trades"]["symbol"] == Interval.only("A")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"tables": ["Nope"]}, "unknown table 'Nope'"),
        ({"tables": ["Stocks", "Stocks"]}, "'Stocks' is joined with itself, which is not supported"),
        ({"tables": ["Stocks"], "where": {"nope": 5}}, "no table of the query has a column 'nope'"),
        ({"tables": ["Stocks"], "where": {"per": None}}, "cannot be compared with NULL"),
        ({"tables": ["Stocks"], "where": {"per": "x"}}, "cannot be compared with a string"),
        ({"tables": ["Stocks"], "where": {"per": [1]}}, "cannot be compared with [1]"),
        ({"tables": ["Stocks"], "where": {"per": (1, "x")}}, "from 1 to 'x'"),
        (
            {"tables": ["Reviews", "Trades"], "on": ["Reviews.symbol = Trades.symbol"], "where": {"day": date.min}},
            "ambiguous",
        ),
        ({"tables": ["Stocks", "Reviews"], "on": ["Stocks.name = Reviews.text"]}, "declares no join"),
        ({"tables": ["Stocks", "Reviews"], "on": []}, "no join connects"),
    ],
)
def test_python_forms_that_can_not_be(arguments: dict, reason: str) -> None:
    with pytest.raises(QueryError) as refused:
        select(*arguments.pop("tables"), **arguments).resolve(schema())
    assert reason in str(refused.value)
    with pytest.raises(QueryError, match="one or more table names"):
        select()
