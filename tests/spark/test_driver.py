"""No rows come to the driver: it has no algorithm and no state, so no documents, messages or matches either."""

import ast
from pathlib import Path

import pathcast.spark

# Methods that bring a frame's rows to the caller. `take` is not among them: Arrow's is everywhere.
FETCHING = {
    "collect", "collectAsList", "first", "foreach", "foreachPartition", "head", "show", "tail", "toArrow", "toJSON",
    "toLocalIterator", "toPandas",
}  # fmt: skip
# Exceptions that are allowed, with reasons.
ALLOWED = {
    ("subscription_report", "told_by", "collect"): "one row of counts, of an index or an overlay that a task published",
    ("index_shard_writer", "write_shards", "collect"): "one row of counts, of an index that tasks published in shards",
    (
        "invalid_subscription_summary",
        "reasons_of",
        "collect",
    ): "at most 100 reasons, with an example each",
    ("backfill", "matched", "toArrow"): "the matches of one range of documents, which the driver sends to the broker",
}


def fetched(source: Path) -> set[tuple[str, str, str]]:
    """File, function and name of every call without arguments that brings rows."""
    return {
        (source.stem, function.name, call.func.attr)
        for function in ast.walk(ast.parse(source.read_text(encoding="utf-8")))
        if isinstance(function, ast.FunctionDef)
        for call in ast.walk(function)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and not call.args
        if call.func.attr in FETCHING and ast.unparse(call.func) != "gc.collect"
    }


def test_the_driver_fetches_nothing_but_what_is_told_here() -> None:
    sources = Path(pathcast.spark.__path__[0]).rglob("*.py")
    assert set().union(*map(fetched, sources)) == set(ALLOWED)
