"""Expressions made to cost: a long one is rejected before it is read; within the limit, work grows with the length.

Counts decide, not times.
"""

import csv
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet

from pathcast import LimitError, PathcastError, Subscriptions
from pathcast.matching.table.pattern_shard_merging import compile_shard
from pathcast.network import pattern_filter
from pathcast.patterns import parse
from pathcast.patterns.parsing import cached_pattern_assembly as assembly
from pathcast.patterns.parsing.xpath_parser import MAX_LENGTH, max_length
from pathcast.routing import Overlay
from pathcast.spark.publishing.parallel_pattern_compilation import Settings
from pathcast.spark.publishing.subscription_row_resolution import wrong_by
from pathcast.transmission import Topology

LONG = "/a" * (1 << 21)
REASON = (
    "characters; at most 65,536 are allowed (raise the limit with Subscriptions(max_steps=…): 256 characters per step)"
)


def from_file(write: Callable[[Path], object], name: str) -> Callable[[Path], object]:
    def read(folder: Path) -> object:
        write(folder / name)
        return Subscriptions.read(folder / name)

    return read


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(lambda _: parse(LONG), id="parse"),
        pytest.param(lambda _: Subscriptions().add(LONG), id="add"),
        pytest.param(lambda _: Subscriptions().add(LONG[1:]), id="relative"),
        pytest.param(lambda _: Subscriptions().add(f"/a[. = '{LONG}']"), id="literal"),
        pytest.param(lambda _: Subscriptions().add_many(["/a", LONG]), id="add_many"),
        pytest.param(lambda _: Overlay(Topology.chain(2)).subscribe("r2", LONG, "ada"), id="overlay"),
        pytest.param(lambda _: Overlay(Topology.chain(2)).subscribe_many("r2", [LONG], "ada"), id="overlay, many"),
        pytest.param(lambda _: pattern_filter(LONG), id="network"),
        pytest.param(from_file(lambda file: file.write_text(f"/a\n{LONG}\n"), "s.txt"), id="text"),
        pytest.param(from_file(lambda file: file.write_text(f"xpath\n/a\n{LONG[:100_000]}\n"), "s.csv"), id="csv"),
    ],
)
def test_an_expression_that_is_too_long_is_rejected_before_it_is_read(
    given: Callable[[Path], object], tmp_path: Path
) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(LimitError) as rejected:
            given(tmp_path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert rejected.value.reason.endswith(REASON)
    assert peak < 8 * len(LONG), "a few copies of a file's content, and no tokens"


def test_a_row_of_parquet_that_is_too_long_is_rejected_with_its_number(tmp_path: Path) -> None:
    parquet.write_table(pyarrow.table({"xpath": ["/a", LONG]}), tmp_path / "s.parquet")
    with pytest.raises(LimitError, match="line 2: the subscription has 4,194,304 characters"):
        Subscriptions.read(tmp_path / "s.parquet")


def test_a_field_of_a_csv_file_that_is_too_long_is_rejected_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text(f"xpath\n/a\n{LONG}\n")
    with pytest.raises(LimitError, match="line 3: the subscription has 4,194,304 characters"):
        Subscriptions.read(tmp_path / "s.csv")


@pytest.mark.parametrize("quote", ["", '"'], ids=["plain", "quoted"])
def test_a_long_field_of_a_csv_file_leaves_the_other_rows_alone(tmp_path: Path, quote: str) -> None:
    """Whether the expression is too long, or a field that nobody bounds; and whatever line ends the field holds."""
    before = csv.field_size_limit()
    note = quote + "n" * 200_000 + ("\n" * 10 if quote else "") + quote
    rows = ["id,xpath,subscriber,note", "1,/a,ada,", f"2,{quote}{LONG}{quote},ada,", f"3,/b,bob,{note}", "4,/c,eve,"]
    (tmp_path / "s.csv").write_text("\n".join(rows))
    subscriptions, invalid = Subscriptions.read(tmp_path / "s.csv", errors="collect")
    assert [(each.id, each.subscriber) for each in subscriptions] == [(1, "ada"), (3, "bob"), (4, "eve")]
    assert [str(error) for error in invalid] == [f"line 3: the subscription has {len(LONG):,} {REASON}"]
    assert csv.field_size_limit() == before


def test_long_expressions_among_others_are_rejected_alone() -> None:
    subscriptions = Subscriptions()
    (rejected,) = subscriptions.add_many(["/a", LONG, "/b"], errors="collect")
    assert (rejected.index, len(subscriptions)) == (1, 2)


def test_workers_of_spark_give_the_reason() -> None:
    settings = Settings(None, 256, "automaton")
    found = wrong_by(settings)(LONG)
    assert found is not None and found[0].endswith(REASON)
    arrays = compile_shard(["/a", LONG], None, 256, "automaton")
    assert arrays["bad"].tolist() == [1] and arrays["reasons"].tobytes().decode().endswith(REASON)


def test_the_limit_is_that_of_the_documentation_and_grows_with_the_steps() -> None:
    assert max_length(256) == max_length(1) == MAX_LENGTH == 65_536
    longest = f"/a[. = '{'x' * (MAX_LENGTH - 10)}']"
    assert len(longest) == MAX_LENGTH
    assert Subscriptions().add(longest) == 1
    with pytest.raises(LimitError, match="65,537 characters"):
        Subscriptions().add(longest + " ")
    assert Subscriptions(max_steps=257).add(longest + " ") == 1
    assert Subscriptions(max_steps=70_000).add("/a" * 70_000) == 1


def many(unit: str, between: str = "", before: str = "/a[", after: str = "]") -> Callable[[int], str]:
    def made(length: int) -> str:
        parts: list[str] = []
        size = len(before) + len(after)
        while size < length:
            parts.append(unit.format(len(parts)))
            size += len(parts[-1]) + len(between)
        return before + between.join(parts) + after

    return made


def deep(length: int) -> str:
    text = many(".='{}'", " or ", "", "")(length)
    for level in range(60):
        text = f"({text}) {'or' if level % 2 else 'and'} .='x{level}'"
    return f"/a[{text}]"


SHAPES = {
    "steps": many("/a", before="", after=""),
    "other steps": many("//a{}", before="", after=""),
    "dots": many("/.", before="/a", after=""),
    "brackets": many("[a", before="/a", after=""),
    "parentheses": many("("),
    "negations": many("not("),
    "alternatives": many(".='{}'", " or "),
    "names": many("b{}", " or "),
    "attributes": many("@b{}='x'", " and "),
    "thresholds": many(".<{}", " and "),
    "texts": many("contains(.,'{}')", " and "),
    "mixtures": many("(.='{0}' or not(.<{0}))", " and "),
    "predicates": many("[.!='{}']", before="/a", after=""),
    "brackets in literals": many("[.='[{}[']", before="/a", after=""),
    "words in literals": many(".=' and {} or '", " and "),
    "nested predicates": many("b[c and d[.='{}']]", " and "),
    "a literal": many("x", before="/a[.='", after="']"),
    "quotes": many("'\"", before="/a[.=", after="]"),
    "digits": many("1", before="/a[.=", after="]"),
    "minuses": many("-"),
    "spaces": many(" ", after="b]"),
    "a name": many("é.-", before="/a", after=""),
    "prefixes": many("a:", before="/", after=""),
    "braces": many("}}}}{{{{", before="/Q{", after="}b"),
    "nested alternatives": deep,
}


def calls(expression: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """The number of function calls to read an expression for the first time, and to match it."""
    monkeypatch.setattr(assembly, "_plain", assembly.Assembler(None))
    count = 0

    def called(_: Any, event: str, __: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(called)
    try:
        subscriptions = Subscriptions()
        subscriptions.add(expression)
        subscriptions.compile().match("<a>1</a>")
    except PathcastError:
        pass
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_work_grows_with_the_length_of_an_expression_and_no_faster(shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    small, large = (SHAPES[shape](length) for length in (2_000, 8_000))
    calls(small, monkeypatch)  # to load all modules
    assert calls(large, monkeypatch) < 6 * calls(small, monkeypatch) + 1_000
