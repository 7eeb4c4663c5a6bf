"""Records as an Arrow stream, and back."""

import io
import sys

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pathcast.extras import MissingExtraError
from pathcast.log import LogEntry, LogError, arrow_schema, read_arrow, write_arrow

ENTRIES = st.lists(
    st.builds(
        LogEntry,
        st.integers(1, 2**63 - 1),
        st.integers(0, 2**50),
        st.text(),
        st.binary(max_size=9),
        st.binary(max_size=9),
    )
)


@given(ENTRIES)
def test_records_come_back_as_they_were(entries):
    assert list(read_arrow(b"".join(write_arrow(iter(entries))))) == entries


def test_columns_are_those_of_the_documentation():
    stream = b"".join(write_arrow([LogEntry(7, 1_000_001, "document", b"{}", b"<a/>")]))
    table = pa.ipc.open_stream(stream).read_all()
    assert table.schema == arrow_schema()
    assert table.column_names == ["sequence", "time", "kind", "meta", "body"]
    (row,) = table.to_pylist()
    assert row.pop("time").isoformat() == "1970-01-01T00:00:01.000001+00:00"
    assert row == {"sequence": 7, "kind": "document", "meta": b"{}", "body": b"<a/>"}


def test_batches_are_bounded_and_written_one_at_a_time():
    read = 0

    def entries():
        nonlocal read
        for read in range(1, 10_001):
            yield LogEntry(read, 0, "document", b"", b"x" * (2 << 20 if read <= 10 else 1))

    pieces = write_arrow(entries())
    assert [(len(next(pieces)) >> 20, read) for _ in range(5)] == [(4, number) for number in (2, 4, 6, 8, 10)]
    stream = b"".join(write_arrow(entries()))
    assert [batch.num_rows for batch in pa.ipc.open_stream(stream)] == [2] * 5 + [4096, 4096, 1798, 0]


def test_a_stream_that_was_cut_is_reported():
    pieces = list(write_arrow([LogEntry(n, n, "a", b"", b"x" * (3 << 20)) for n in range(1, 7)]))
    whole = b"".join(pieces)
    for cut in (pieces[0], b"".join(pieces[:-1]), whole[: len(pieces[0]) + 100], whole[:-200], b"", b"ARROW1"):
        with pytest.raises(LogError, match="stream of records"):
            list(read_arrow(cut))
    assert len(list(read_arrow(io.BytesIO(whole)))) == 6


def test_other_columns_are_rejected():
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, pa.schema([("a", pa.int8())])):
        pass
    with pytest.raises(LogError, match="the data is not a Pathcast log: its columns are a"):
        list(read_arrow(sink.getvalue()))


def test_an_error_of_the_log_reaches_the_reader_of_the_stream():
    def entries():
        yield LogEntry(1, 0, "a", b"", b"x" * (5 << 20))
        raise LogError("record 2 is missing")

    pieces = write_arrow(entries())
    next(pieces)
    with pytest.raises(LogError, match="record 2"):
        next(pieces)


def test_a_missing_pyarrow_is_reported_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"pathcast\[parquet\]"):
        next(write_arrow([]))
    with pytest.raises(MissingExtraError, match=r"pathcast\[parquet\]"):
        next(read_arrow(b""))
