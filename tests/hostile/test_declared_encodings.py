"""Whatever encoding a document declares, and whatever its content, reading it succeeds or raises `DocumentError`.

Every entry point that takes documents is tried, with each encoding that Python knows, with unknown names, and with
mutated documents in several encodings.
"""

from collections.abc import Iterator
from random import Random

import pytest

from pathcast import DocumentError, LimitError, PathcastError, Subscriptions
from pathcast.documents import expat_reader, read_batch
from pathcast.matching import Matcher
from pathcast.routing import Overlay
from pathcast.roxsum import Broker, RoXSum, Targets
from pathcast.transmission import Topology
from tests.documents.declared import FORMS, NAMES, declared
from tests.documents.mutations import TOKENS, seeds

DOCUMENTS = list(declared())
# One of each name: the entry points differ only around the reader.
SOME = [FORMS[number % len(FORMS)].format(name).encode("latin-1") for number, name in enumerate(NAMES)]


@pytest.fixture(scope="module")
def matcher() -> Matcher:
    subscriptions = Subscriptions()
    subscriptions.add_many(["/a", "//b"])
    return subscriptions.compile()


def refused(documents: list[bytes]) -> list[bool]:
    """Which documents cannot be read; their errors are of the two types that a reader may raise."""
    errors = read_batch(documents, errors="return").errors
    for error in errors.values():
        assert isinstance(error, DocumentError | LimitError)
        assert "cannot be read: " not in error.reason, "no handler knew this reason"
    return [number in errors for number in range(len(documents))]


@pytest.mark.slow
def test_any_declared_encoding_is_read_or_refused(matcher: Matcher) -> None:
    bad = refused(DOCUMENTS)
    assert 0.1 < sum(bad) / len(bad) < 0.9
    found = list(matcher.match_many(DOCUMENTS, errors="return"))
    assert [isinstance(each, PathcastError) for each in found] == bad
    for document, expected in zip(DOCUMENTS[::7], bad[::7], strict=True):
        if expected:
            with pytest.raises((DocumentError, LimitError)):
                matcher.match(document)
        else:
            matcher.match(document)


def test_a_document_with_any_declared_encoding_harms_no_batch_of_summaries() -> None:
    bad = refused(SOME)
    summary = RoXSum.build(SOME, errors="return")
    assert sorted(summary.errors) == [number for number, wrong in enumerate(bad) if wrong]
    assert summary.documents() == [document for document, wrong in zip(SOME, bad, strict=True) if not wrong]
    broker = Broker(Targets({"east": ["/a", "//b"]}))
    report = broker.receive(SOME)
    assert sorted(report.errors) == sorted(summary.errors)


@pytest.mark.slow
def test_a_document_with_any_declared_encoding_is_published_or_refused() -> None:
    overlay = Overlay(Topology.chain(2))
    overlay.subscribe("r2", "//*", "ada")
    for document in SOME:
        got: list[bytes] = []

        def receive(_: object, data: bytes, got: list[bytes] = got) -> None:
            got.append(data)

        try:
            overlay.publish(document, receive=receive)
        except (DocumentError, LimitError):
            assert refused([document]) == [True]
        else:
            assert got == [document]


def mutated(random: Random, count: int) -> Iterator[bytes]:
    """Documents in encodings of all kinds, with bytes replaced, removed and added."""
    codecs = ("utf-8", "utf-16", "utf-32", "cp1252", "shift_jis", "gb18030", "iso2022_jp", "cp037", "hz", "euc_kr")
    sources = [*seeds("written"), *seeds("drawn")]
    for _ in range(count):
        codec, name = random.choice(codecs), random.choice((random.choice(codecs), random.choice(NAMES)))
        text = random.choice(sources).decode("utf-8", "replace").partition("?>")
        body = text[2] if text[0].startswith("<?xml") else "".join(text)
        data = bytearray(f'<?xml version="1.0" encoding="{name}"?>{body}'.encode(codec, "replace"))
        for _ in range(random.choice((0, 1, 1, 3, 8))):
            at = random.randrange(len(data))
            data[at : at + random.choice((0, 1, 1, 2, 9))] = random.choice((random.choice(TOKENS), random.randbytes(2)))
        yield bytes(data)


@pytest.mark.slow
def test_mutated_documents_in_many_encodings_are_read_or_refused(
    matcher: Matcher, request: pytest.FixtureRequest
) -> None:
    documents = list(mutated(Random(1), 300_000 if request.config.getoption("--long") else 3_000))
    bad = refused(documents)
    assert 0.2 < sum(bad) / len(bad) < 0.98
    for begin in range(0, len(documents), 500):
        part = documents[begin : begin + 500]
        found = list(matcher.match_many(part, errors="return"))
        assert [isinstance(each, PathcastError) for each in found] == bad[begin : begin + 500]
        RoXSum.build(part, errors="return")


def test_an_error_that_nobody_foresaw_is_a_document_error_with_its_cause(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*_: object) -> None:
        raise OSError("out of order")

    monkeypatch.setattr(expat_reader._DocumentReader, "skipped", fails)
    monkeypatch.setattr(expat_reader._DocumentReader, "boundary", fails)
    batch = read_batch([b"<a/>", b"<!DOCTYPE a []><a>x</a>", b"<b/>"], errors="return")
    error = batch.errors[1]
    assert error == DocumentError("the document cannot be read (OSError: out of order); please report this as a bug")
    assert isinstance(error.__cause__, OSError)
    assert [batch[0].name(0), batch[2].name(0)] == ["a", "b"]
    (logged,) = [record for record in caplog.records if record.name == "pathcast.documents"]
    assert logged.exc_info and logged.exc_info[1] is error.__cause__, "the log has the traceback"


@pytest.mark.parametrize("kind", [MemoryError, KeyboardInterrupt])
def test_what_is_no_fault_of_a_document_is_passed_on(
    kind: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise kind

    monkeypatch.setattr(expat_reader._DocumentReader, "boundary", fails)
    with pytest.raises(kind):
        read_batch([b"<!DOCTYPE a []><a>x</a>"], errors="return")
