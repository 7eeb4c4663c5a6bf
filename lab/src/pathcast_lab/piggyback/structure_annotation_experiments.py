"""Structure annotations: the time of a router for a document with an annotation, against reading the document.

Beyond the paper. Subscriptions of one router, of three kinds: plain paths; nested paths; values. Documents come one at
a time, as at a router, and as one batch, which shows the work without Python's overhead per call.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pathcast_lab.harness import Claim, Judgement, Plot, Row, Rows, Run, experiment, judged, race, ratio

from .piggyback_workloads import NEWS_130, documents_of, schema_of

if TYPE_CHECKING:
    from pathcast.documents import DocumentBatch
    from pathcast.matching.engine_contract import Engine

READ, DECODE, QUICK = "read and match", "decode and match", "match from label paths"
ONE, BATCH = "one at a time", "a batch"
PATHS, NESTED, VALUES = "plain paths", "nested paths", "values"
KINDS: dict[str, dict[str, Any]] = {PATHS: {}, NESTED: {"nested_probability": 0.2}, VALUES: {"predicates": 1}}


@dataclass(frozen=True)
class Structure:
    """`subscriptions` of one router, `documents` of some 130 elements."""

    subscriptions: int = 5_000
    documents: int = 40
    engines: tuple[str, ...] = ("automaton", "xtrie", "yfilter")
    kinds: tuple[str, ...] = (PATHS, NESTED, VALUES)
    rounds: int = 9


def _times(kind: str, series: str, least: float, how: str = ONE) -> Callable[[Rows], Judgement]:
    """A judge: automaton spends at most 1/`least` of the time that reading and matching takes."""

    def judge(rows: Rows) -> Judgement:
        row = rows.one(engine="automaton", kind=kind, how=how, series=series)
        times = rows.number("times", engine="automaton", kind=kind, how=how, series=series)
        return judged(times >= least, f"{times:.2g} times as fast, {row['us']:.1f} µs per document")

    return judge


def _small(kind: str, most: float) -> Callable[[Rows], Judgement]:
    def judge(rows: Rows) -> Judgement:
        size = rows.number("bytes", engine="automaton", kind=kind, how=ONE, series=DECODE)
        part = size / rows.number("document_bytes", engine="automaton", kind=kind, how=ONE, series=DECODE)
        return judged(part <= most, f"{size:.0f} bytes, {part:.1%} of the document")

    return judge


@experiment(
    "piggyback-structure",
    title="Structure annotations: matching without parsing",
    small=Structure(),
    paper=Structure(subscriptions=50_000, documents=200, rounds=15),
    claims=(
        Claim(
            "plain paths: a third of the time of reading and matching", "target", _times(PATHS, QUICK, 3.0), "3 times"
        ),
        Claim(
            "nested paths: a third of the time of reading and matching", "target", _times(NESTED, QUICK, 3.0), "3 times"
        ),
        Claim(
            "values: a third of the time of reading and matching",
            "target",
            _times(VALUES, QUICK, 3.0),
            "3 times",
            "Subscriptions on values need the text of a document, so a router has to read the document in any case.",
        ),
        Claim("an annotation for plain paths takes at most 7 % of the document", "target", _small(PATHS, 0.07), "7 %"),
    ),
    plots=(
        Plot(
            "time",
            "A document at a downstream router",
            y="us",
            y_label="µs per document",
            series="series",
            kind="bars",
            ours=(QUICK, DECODE),
            panel="kind",
            only=lambda row: row["engine"] == "automaton" and row["how"] == ONE,
        ),
    ),
    show={
        "kind": "subscriptions",
        "engine": "engine",
        "how": "documents",
        "series": "what",
        "us": "µs per document",
        "times": "times less than reading and matching",
        "bytes": "annotation, bytes",
        "encode_us": "made in µs",
    },
)
def structure(run: Run, parameters: Structure) -> Iterator[Row]:
    """All documents are read, matched, annotated and decoded once before anything is timed, so both ends of the link
    know their label paths. Matches are compared for every document. Reading is that of a router's own reader, which
    knows the names.
    """
    documents = documents_of(NEWS_130, parameters.documents, run.seed)
    for kind in parameters.kinds:
        for engine in parameters.engines:
            yield from _measure(run, parameters, kind, engine, documents)


def _measure(run: Run, parameters: Structure, kind: str, name: str, documents: list[bytes]) -> Iterator[Row]:
    import numpy as np

    from pathcast import Subscriptions
    from pathcast.documents import Limits
    from pathcast.documents.document_reader import Reader
    from pathcast.routing.structure.structure_encoder import Needs, StructureCoder, StructureDecoder
    from pathcast.routing.structure.structure_matcher import StructureMatcher
    from pathcast.workloads import SubscriptionOptions, generate_subscriptions

    subscriptions = Subscriptions()
    options = SubscriptionOptions(max_depth=8, wildcard=0.1, descendant=0.1, match_rate=0.1, **KINDS[kind])
    drawn = generate_subscriptions(
        schema_of(NEWS_130), parameters.subscriptions, options, seed=run.seed, documents=documents
    )
    subscriptions.add_many(list(drawn))
    engine = subscriptions.compile(engine=name).engine
    scanner = Reader(engine.table.names, Limits(), "refuse").scanner
    needs = Needs.of_table(engine.table)
    coder, decoder = StructureCoder(needs, epoch=1), StructureDecoder(needs, engine.table.names)
    quick = StructureMatcher(decoder, engine) if StructureMatcher.takes(engine) else None
    read = [scanner.read([document]) for document in documents]
    read = [scanner.read([document]) for document in documents]
    for _ in range(2):
        messages = [coder.encode(batch[0]) or b"" for batch in read]
        decoded = [_decoded(decoder.decode(*each)) for each in zip(messages, documents, strict=True)]
    for number, (one, other) in enumerate(zip(read, decoded, strict=True)):
        answers: dict[str, object] = {READ: _found(engine, one), DECODE: _found(engine, other)}
        if quick is not None:
            entries = quick.match(messages[number], documents[number])
            answers[QUICK] = sorted(entries.tolist()) if isinstance(entries, np.ndarray) else entries
        run.check_equal("what was decoded matches as what was read", answers)
    run.begin(f"{kind}, {name}", parameters.rounds)
    pairs = list(zip(messages, documents, strict=True))
    singles = {
        READ: lambda: [engine.match_batch(scanner.read([document])) for document in documents],
        DECODE: lambda: [engine.match_batch(_decoded(decoder.decode(*each))) for each in pairs],
        "make": lambda: [coder.encode(batch[0]) for batch in read],
    }
    if quick is not None:
        singles[QUICK] = lambda: [quick.match(*each) for each in pairs]
    times = race(singles, rounds=parameters.rounds, after_round=run.advance)
    common: dict[str, str | float] = {
        "kind": kind,
        "engine": name,
        "document_bytes": sum(map(len, documents)) / len(documents),
    }
    bytes_each, made = sum(map(len, messages)) / len(messages), 1e6 * times.pop("make").median / len(documents)
    for series, time in times.items():
        yield {
            **common,
            "how": ONE,
            "series": series,
            "us": 1e6 * time.median / len(documents),
            "times": ratio(times[READ], time).median,
            "bytes": 0 if series == READ else bytes_each,
            "encode_us": None if series == READ else made,
        }
    together = {
        READ: lambda: engine.match_batch(scanner.read(documents)),
        DECODE: lambda: engine.match_batch(decoder.decode_many(messages, documents)[0]),
    }
    times = race(together, rounds=parameters.rounds)
    for series, time in times.items():
        yield {
            **common,
            "how": BATCH,
            "series": series,
            "us": 1e6 * time.median / len(documents),
            "times": ratio(times[READ], time).median,
            "bytes": 0 if series == READ else bytes_each,
            "encode_us": None,
        }


def _found(engine: "Engine", batch: "DocumentBatch") -> list[int]:
    """The entries that a batch of one document matches, sorted."""
    return sorted(engine.match_batch(batch)[1].tolist())


def _decoded(found: object) -> "DocumentBatch":
    from pathcast.documents import DocumentBatch

    if not isinstance(found, DocumentBatch):
        raise TypeError(f"an annotation was rejected: {found}")
    return found
