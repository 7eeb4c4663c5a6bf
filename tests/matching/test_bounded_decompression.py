"""Compressed files of subscriptions: a small file unpacks to a bounded size; blank lines cost no memory."""

import gzip
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet

from pathcast import LimitError, PatternError, Subscriptions
from pathcast.matching.subscriptions import bounded_decompression as unpacking
from pathcast.matching.subscriptions.subscription_files import plain_rows, read_rows


def peak_of(action: Callable[[], object]) -> int:
    """The most memory that Python held while it ran."""
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", ["s.txt.gz", "s.csv.gz"])
@pytest.mark.parametrize("content", [b"\n", b"/a\n", b"x"])
def test_a_file_that_unpacks_to_a_thousand_times_its_size_is_rejected(
    tmp_path: Path, name: str, content: bytes
) -> None:
    file = tmp_path / name
    piece = gzip.compress(content * (1 << 20))
    file.write_bytes(piece * 128)  # as one stream

    def read() -> None:
        with pytest.raises(
            LimitError, match=r"unpacks to more than .* \(raise the limit with Subscriptions\.read\(…, ampl"
        ):
            Subscriptions.read(file)

    assert peak_of(read) < 3 * max(unpacking.FLOOR, 30 * file.stat().st_size) + (4 << 20)


def test_the_bound_is_thirty_times_the_size_unless_a_caller_gives_another(tmp_path: Path) -> None:
    file = tmp_path / "s.txt.gz"
    file.write_bytes(gzip.compress(b"\n" * (unpacking.FLOOR - 1) + b"a"))
    assert [(one.id, one.xpath) for one in Subscriptions.read(file, amplification=1)] == [(unpacking.FLOOR, "a")]
    comment = b"#" + Random(1).randbytes(50_000).hex().encode()
    content = comment + b"\n" * (4 * unpacking.FLOOR) + b"a"
    file.write_bytes(gzip.compress(content))
    ratio = len(content) / file.stat().st_size
    assert ratio > 60 and 30 * file.stat().st_size > unpacking.FLOOR
    with pytest.raises(
        LimitError, match=f"unpacks to more than {30 * file.stat().st_size:,} bytes; the limit is 30 times"
    ):
        Subscriptions.read(file)
    assert len(Subscriptions.read(file, amplification=int(ratio) + 1)) == 1
    for wrong in (0, -1, 1.5, "x", True):
        with pytest.raises(ValueError, match="amplification must be a whole number of at least 1, got"):
            Subscriptions.read(file, amplification=wrong)  # type: ignore[arg-type]


@pytest.mark.slow
def test_a_compressed_file_of_usual_subscriptions_is_read(tmp_path: Path) -> None:
    lines = "".join(f"/news/item[@id = '{number}']\n" for number in range(20_000))
    (tmp_path / "s.txt.gz").write_bytes(gzip.compress(lines.encode()) + gzip.compress(b"/a\n"))
    read = Subscriptions.read(tmp_path / "s.txt.gz", amplification=11)
    assert (len(read), read[20_001].xpath) == (20_001, "/a")


@pytest.mark.parametrize("ending", ["txt", "csv"])
@pytest.mark.parametrize("line", [b"a\n", b",\n"])
def test_a_small_file_of_very_many_short_lines_is_rejected(tmp_path: Path, ending: str, line: bytes) -> None:
    file = tmp_path / f"s.{ending}.gz"
    file.write_bytes(gzip.compress(b"xpath\n" + line * (1 << 20)))
    assert file.stat().st_size < 4_000
    with pytest.raises(LimitError, match="unpacks to more than"):
        Subscriptions.read(file, errors="collect")


@pytest.mark.parametrize("cut", [1, 8, 12, 40])
def test_a_damaged_compressed_file_is_no_file_of_subscriptions(tmp_path: Path, cut: int) -> None:
    (tmp_path / "s.txt.gz").write_bytes(gzip.compress(Random(1).randbytes(100))[:-cut])
    with pytest.raises(PatternError, match="cannot read the subscriptions"):
        Subscriptions.read(tmp_path / "s.txt.gz")


def test_blank_lines_are_skipped_and_counted_without_being_held(tmp_path: Path) -> None:
    file = tmp_path / "s.txt"
    blank = 16 << 20
    file.write_bytes(b"\n" * blank + b" /a \n" + b" \n" * 3)
    peak = peak_of(lambda: read_rows(file))
    assert peak < 3 * blank, "the file as bytes and as text"
    rows = read_rows(file)
    assert (rows.xpaths, rows.ids, list(rows.lines)) == (["/a"], [blank + 1], [blank + 1])


def test_a_block_of_blank_lines_is_not_cut_into_lines(tmp_path: Path) -> None:
    file = tmp_path / "s.txt"
    blank = 1 << 18
    file.write_bytes(b"\n" * blank)
    assert peak_of(lambda: read_rows(file)) < 4 * blank, "a list of the lines of a block takes as much"


@pytest.mark.parametrize("block", [1, 2, 7, 1 << 16])
def test_lines_are_the_same_however_they_are_cut(block: int) -> None:
    random = Random(3)
    for _ in range(60):
        text = "".join(random.choices(["a", "/b ", "\n", "\r\n", "\r", " ", "\t", "\u00a0", "é", "\u2028"], k=30))
        lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        expected = [(number, line.strip()) for number, line in enumerate(lines, 1) if line.strip()]
        rows = plain_rows(text, block)
        assert list(zip(rows.ids or (), rows.xpaths, strict=True)) == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    "column",
    [
        pytest.param(["/a"] * 3_000_000, id="many rows"),
        pytest.param(["x" * (1 << 24)], id="a long text"),
    ],
)
def test_a_small_parquet_file_with_much_in_it_is_rejected_before_a_column_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, column: list[str]
) -> None:
    file = tmp_path / "s.parquet"
    parquet.write_table(pyarrow.table({"xpath": pyarrow.array(column)}), file, compression="zstd")
    assert file.stat().st_size < 30_000
    monkeypatch.setattr(parquet.ParquetFile, "read", lambda *_, **__: pytest.fail("a column is read"))
    with pytest.raises(LimitError, match="unpacks to more than 1,048,576 bytes"):
        Subscriptions.read(file)


def test_a_long_text_that_many_rows_of_parquet_share_is_held_once(tmp_path: Path) -> None:
    file = tmp_path / "s.parquet"
    long = "/a" * 500_000
    texts = pyarrow.DictionaryArray.from_arrays(pyarrow.array([0] * 5_000, pyarrow.int32()), [long])
    parquet.write_table(pyarrow.table({"xpath": texts}), file, store_schema=False)
    assert parquet.ParquetFile(file).schema_arrow.types == [pyarrow.string()]
    assert file.stat().st_size < 1_000_000
    xpaths = read_rows(file).xpaths
    assert len(xpaths) == 5_000 and all(xpath is xpaths[0] for xpath in xpaths) and xpaths[0] == long


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pyarrow.array(["/a", None]), ["/a", ""]),
        (pyarrow.array(["/a", "/b"], pyarrow.large_string()), ["/a", "/b"]),
        (pyarrow.array([b"/a", b"/b"]), ["/a", "/b"]),
        (pyarrow.array(["/a", "/a"]).dictionary_encode(), ["/a", "/a"]),
        (pyarrow.array([None, None]), ["", ""]),
        (pyarrow.array([], pyarrow.string()), []),
        (pyarrow.array([1, 2]), None),
        (pyarrow.array([1, 1]).dictionary_encode(), None),
        (pyarrow.array([["/a"]]), None),
        (pyarrow.array([{"a": "/a"}]), None),
        (pyarrow.array([b"\xff"]), None),
    ],
    ids=str,
)
def test_expressions_of_parquet_are_texts_of_any_kind(tmp_path: Path, column: Any, expected: list[str] | None) -> None:
    parquet.write_table(pyarrow.table({"xpath": column}), tmp_path / "s.parquet")
    if expected is None:
        with pytest.raises(PatternError, match="not string|not UTF-8 text"):
            read_rows(tmp_path / "s.parquet")
    else:
        assert read_rows(tmp_path / "s.parquet").xpaths == expected


@pytest.mark.parametrize("name", ["a\0b", "\ud800.csv", "\0.txt.gz"])
def test_a_path_that_no_file_can_have_is_no_file_of_subscriptions(name: str) -> None:
    with pytest.raises(
        PatternError,
        match="cannot read the subscriptions .*: the name contains a NUL or an invalid character; give another path",
    ) as caught:
        Subscriptions.read(name)
    caught.value.reason.encode()  # a name that cannot be printed is escaped
