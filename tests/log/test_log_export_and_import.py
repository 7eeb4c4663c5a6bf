"""Export and import: a log becomes a file and a log again, and a damaged file never passes for a log."""

import io
import json
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathcast.log import Log, LogEntry, LogError, LogRecord, SqliteLog, TrimmedError, export_log, import_log, verify
from pathcast.log.log_export_and_import import FIRST_LINE

from .places import PLACE_NAMES, PLACES, SettableClock, folder_in_memory, records


@pytest.fixture(params=PLACE_NAMES)
def other_place(request, folder):
    return PLACES[request.param](folder / "other", request)


def exported(log: Log) -> bytes:
    target = io.BytesIO()
    export_log(log, target)
    return target.getvalue()


def small_export(folder: Path) -> bytes:
    with closing(SqliteLog(folder / "small")) as log:
        log.append(records(5))
        log.write_checkpoint(3, b"state")
        return exported(log)


def test_an_imported_log_equals_the_exported_one(place, other_place):
    clock = SettableClock()
    with closing(place.open(clock)) as log, closing(other_place.open()) as other:
        for begin in range(1, 3001, 30):
            clock.now += 10
            log.append(records(30, begin))
        log.write_checkpoint(2000, b"state")
        log.trim(1500)
        progress: list[tuple[int, int]] = []
        content = exported(log)
        report = import_log(other, io.BytesIO(content), progress=lambda *done: progress.append(done))
        assert (report.first, report.head, report.checkpoint) == (log.first, 3000, 2000)
        assert (other.first, other.head, other.checkpoint()) == (log.first, log.head, log.checkpoint())
        assert list(other.read(other.first)) == list(log.read(log.first))
        assert [other.sequence_at(time) for time in range(0, 3000, 7)] == [
            log.sequence_at(time) for time in range(0, 3000, 7)
        ]
        total = 3001 - log.first
        assert progress[-1] == (total, total)
        assert exported(other) == content
        assert other.append(records(1)) == 3001
    with closing(other_place.open()) as other:
        assert other.head == 3001
        assert verify(other).problems == []


def test_a_log_without_records_keeps_its_place(place, other_place):
    with closing(place.open()) as log, closing(other_place.open()) as other:
        log.begin_at(501)
        log.write_checkpoint(500, b"all before")
        assert import_log(other, io.BytesIO(exported(log))) == (501, 500, 500)
        assert (other.first, other.head, other.checkpoint()) == (501, 500, (500, b"all before"))
        assert other.append(records(1)) == 501


def test_a_new_log_is_exported_and_imported(place, other_place):
    with closing(place.open()) as log, closing(other_place.open()) as other:
        assert import_log(other, io.BytesIO(exported(log))) == (1, 0, None)
        assert (other.first, other.head, other.checkpoint()) == (1, 0, None)


def test_large_records_are_exported_and_imported(place, other_place):
    large = [LogRecord("document", b"m" * size, bytes([size % 251]) * size) for size in (0, 4 << 20, 1, 9 << 20, 3)]
    with closing(place.open()) as log, closing(other_place.open()) as other:
        log.append(large)
        import_log(other, io.BytesIO(exported(log)))
        assert [entry[2:] for entry in other.read(1)] == [tuple(record) for record in large]


def test_only_a_new_log_takes_over_another(log, folder):
    log.append(records(1))
    with pytest.raises(LogError, match="already has records"):
        import_log(log, io.BytesIO(small_export(folder)))
    assert log.head == 1


def test_records_that_are_appended_meanwhile_are_not_exported(log):
    log.append(records(2000))
    target = io.BytesIO()
    first = True

    def append(done: int, total: int) -> None:
        nonlocal first
        assert total == 2000
        if first:
            log.append(records(10, 2001))
            first = False

    assert export_log(log, target, progress=append).head == 2000


def test_a_log_that_is_trimmed_meanwhile_is_not_exported(log):
    class Trimmed:
        def __getattr__(self, name):
            return getattr(log, name)

        def read(self, begin, end):
            raise TrimmedError.before(begin, 7)

    log.append(records(5))
    with pytest.raises(TrimmedError):
        export_log(Trimmed(), io.BytesIO())  # type: ignore[arg-type]


def test_an_export_is_as_documented(folder):
    content = small_export(folder)
    assert content.startswith(b"pathcast log 1\nHEAD")
    length = int.from_bytes(content[19:27], "big")
    assert json.loads(content[31 : 31 + length]) == {"first": 1, "head": 5, "checkpoint": 3}
    assert content[31 + length :].startswith(b"RECS")
    assert content.endswith((5).to_bytes(8, "big"))


def test_an_export_that_was_cut_anywhere_is_reported(folder):
    content = small_export(folder)
    for end in range(len(content)):
        with closing(SqliteLog(folder / str(end))) as log, pytest.raises(LogError, match="export"):
            import_log(log, io.BytesIO(content[:end]))


def test_an_export_with_a_changed_byte_is_reported(folder, request):
    content = small_export(folder)
    for place in range(len(content)) if request.config.getoption("--long") else range(0, len(content), 3):
        changed = bytearray(content)
        changed[place] ^= 1 << place % 8
        with closing(SqliteLog(folder / str(place))) as log, pytest.raises(LogError, match="export"):
            import_log(log, io.BytesIO(changed))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "not an export of a log"),
        (b"<xml/>", "not an export of a log"),
        (b"pathcast log x\n", "not an export of a log"),
        (
            b"pathcast log 2\n",
            "this export has a later format, 'pathcast log 2'; import it with a later version of Pathcast",
        ),
        (FIRST_LINE, "the export is truncated after byte 15"),
        (FIRST_LINE + b"HEAD" + b"\xff" * 12, "a block has .* bytes; at most"),
    ],
)
def test_other_files_are_not_imported(log, content, reason):
    with pytest.raises(LogError, match=reason):
        import_log(log, io.BytesIO(content))
    assert log.head == 0


def block(name: bytes, content: bytes) -> bytes:
    from zlib import crc32

    start = name + len(content).to_bytes(8, "big")
    return start + crc32(content, crc32(start)).to_bytes(4, "big") + content


KIND_OF_TWO_BYTES = bytes([0] * 7 + [1] + [0] * 11 + [2] + [0] * 8)  # the numbers before a record
TIME_TOO_LARGE = KIND_OF_TWO_BYTES[:8] + b"\xff" * 8 + KIND_OF_TWO_BYTES[16:] + b"aa"


@pytest.mark.parametrize(
    "blocks",
    [
        [(b"RECS", b"")],
        [(b"HEAD", b"")],
        [(b"HEAD", b"[1]")],
        [(b"HEAD", b'{"first": "1", "head": 0, "checkpoint": null}')],
        [(b"HEAD", b'{"first": 0, "head": 0, "checkpoint": null}'), (b"DONE", bytes(8))],
        [(b"HEAD", b'{"first": 99999999999999999999, "head": 0, "checkpoint": null}'), (b"DONE", bytes(8))],
        [(b"HEAD", b'{"first": 1, "head": 1, "checkpoint": null}'), (b"DONE", bytes(8))],
        [(b"HEAD", b'{"first": 1, "head": 1, "checkpoint": null}'), (b"RECS", TIME_TOO_LARGE)],
        [(b"HEAD", b'{"first": 1, "head": 0, "checkpoint": 0}'), (b"DONE", bytes(8))],
        [(b"HEAD", b'{"first": 1, "head": 0, "checkpoint": null}'), (b"DONE", bytes(7))],
        [(b"HEAD", b'{"first": 1, "head": 0, "checkpoint": null}'), (b"MORE", b"")],
        [(b"HEAD", b'{"first": 1, "head": 0, "checkpoint": 9}'), (b"CKPT", b"\0\0\0\0\0\0\0\x09")],
        [(b"HEAD", b'{"first": 1, "head": 0, "checkpoint": 0}'), (b"CKPT", b"\0")],
        [(b"HEAD", b'{"first": 1, "head": 1, "checkpoint": null}'), (b"RECS", bytes(27))],
        [(b"HEAD", b'{"first": 1, "head": 1, "checkpoint": null}'), (b"RECS", bytes(28))],
        [(b"HEAD", b'{"first": 1, "head": 1, "checkpoint": null}'), (b"RECS", KIND_OF_TWO_BYTES + b"\xff\xff")],
        [(b"HEAD", b'{"first": 1, "head": 1, "checkpoint": null}'), (b"RECS", KIND_OF_TWO_BYTES + b"a")],
    ],
)  # fmt: skip
def test_a_forged_export_is_reported_and_nothing_else_is_raised(folder, blocks):
    content = FIRST_LINE + b"".join(block(*each) for each in blocks)
    with closing(SqliteLog(folder)) as log, pytest.raises(LogError, match="damaged"):
        import_log(log, io.BytesIO(content))


@settings(max_examples=50)
@given(
    st.lists(st.tuples(st.text(max_size=5), st.binary(max_size=9), st.binary(max_size=9)), max_size=9),
    st.integers(1, 2**62),
    st.lists(st.integers(0, 2**40), min_size=9, max_size=9),
)
def test_any_records_are_exported_and_imported(contents, begin, times):
    times = sorted(times)
    entries = [LogEntry(begin + at, times[at], *content) for at, content in enumerate(contents)]
    with (
        folder_in_memory() as folder,
        closing(SqliteLog(folder / "log")) as log,
        closing(SqliteLog(folder / "other")) as other,
    ):
        log.begin_at(begin)
        log.restore(entries)
        import_log(other, io.BytesIO(exported(log)))
        assert list(other.read(begin)) == entries
