"""Reading speed: how many megabytes per second readers turn into elements.

Our reader produces element arrays and rejects unsafe documents; it has two parts, the scanner, and the reader on expat
for rarer documents. lxml and ElementTree build trees. Bare expat (no callbacks, no namespaces) only
checks that a document is well-formed, the lower bound for any reader that uses expat. Expat with empty
callbacks shows the cost of one call into Python per tag and text.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING
from xml.etree import ElementTree
from xml.parsers import expat

from pathcast_lab.harness import Claim, Judgement, Plot, Row, Rows, Run, experiment, judged, nitf_documents, race, ratio

if TYPE_CHECKING:
    from pathcast.documents import DocumentBatch

OURS, OURS_ON_EXPAT = "pathcast", "pathcast, on expat"
LXML, TREE, EXPAT, CALLBACKS = "lxml", "ElementTree", "bare expat", "expat, empty callbacks"

_ESTIMATE = "our estimate"
_MUCH_MARKUP = (
    "expat's time goes into tags and attributes, which these documents have many of; it reads plain text several times "
    "as fast."
)
_MUCH_MARKUP_CALLS = (
    "A call into Python costs as much as estimated, but expat itself is slower on documents with this much markup."
)
_MUCH_MARKUP_OURS = (
    "Our reader's time goes into tags and attributes, which these documents have many of; it reads plain text several "
    "times as fast."
)

# What a reader saw of one document: elements, attributes, and all text joined.
Seen = tuple[int, int, str]


@dataclass(frozen=True)
class Reading:
    """`documents` is the number of generated documents; each reader reads them all `rounds` times."""

    documents: int = 500
    rounds: int = 9


def about(megabytes: float, reader: str) -> Callable[[Rows], Judgement]:
    """A judge: the reader is within a factor of 1.5 of this speed on every kind of documents."""

    def judge(rows: Rows) -> Judgement:
        found = {source: rows.number("mb_per_s", source=source, reader=reader) for source in rows.distinct("source")}
        holds = all(megabytes / 1.5 <= speed <= megabytes * 1.5 for speed in found.values())
        return judged(holds, ", ".join(f"{speed:.0f} MB/s on {source}" for source, speed in found.items()))

    return judge


def at_least(megabytes: float, reader: str) -> Callable[[Rows], Judgement]:
    """A judge: the reader reaches this speed on every kind of documents."""

    def judge(rows: Rows) -> Judgement:
        found = {source: rows.number("mb_per_s", source=source, reader=reader) for source in rows.distinct("source")}
        holds = all(speed >= megabytes for speed in found.values())
        return judged(holds, ", ".join(f"{speed:.0f} MB/s on {source}" for source, speed in found.items()))

    return judge


def slower_by(times: float, reader: str) -> Callable[[Rows], Judgement]:
    """A judge: the reader takes this many times as long as bare expat, within a quarter, on every kind of documents."""

    def judge(rows: Rows) -> Judgement:
        found = {source: rows.number("times_expat", source=source, reader=reader) for source in rows.distinct("source")}
        holds = all(times * 0.75 <= measured <= times * 1.25 for measured in found.values())
        return judged(holds, ", ".join(f"{measured:.2f} times on {source}" for source, measured in found.items()))

    return judge


@experiment(
    "reading",
    title="Reading: speed of readers",
    small=Reading(),
    paper=Reading(documents=5_000, rounds=15),
    claims=(
        Claim(
            "bare expat reads about 170 MB/s (within a factor of 1.5)",
            _ESTIMATE,
            about(170, EXPAT),
            "170 MB/s",
            _MUCH_MARKUP,
        ),
        Claim(
            "expat with Python callbacks reads about 70 MB/s (within a factor of 1.5)",
            _ESTIMATE,
            about(70, CALLBACKS),
            "70 MB/s",
            _MUCH_MARKUP_CALLS,
        ),
        Claim(
            "our reader on expat, with Python callbacks, reads about 70 MB/s (within a factor of 1.5)",
            _ESTIMATE,
            about(70, OURS_ON_EXPAT),
            "70 MB/s",
            "Our reader on expat does its checks in Python, in every callback.",
        ),
        Claim(
            "a Python call per tag and text makes expat about 2.4 times slower (within a quarter)",
            "from our estimates of 170 and 70 MB/s",
            slower_by(2.4, CALLBACKS),
            "2.4 times",
        ),
        Claim(
            "our reader reads at least 500 MB/s with all checks",
            "target",
            at_least(500, OURS),
            "500 MB/s",
            _MUCH_MARKUP_OURS,
        ),
    ),
    plots=(
        Plot(
            name="speed",
            title="Reading speed, one core",
            kind="bars",
            series="reader",
            y="mb_per_s",
            y_label="MB/s (more is better)",
            interval=("mb_per_s_low", "mb_per_s_high"),
            panel="source",
            ours=(OURS, OURS_ON_EXPAT),
            floors=(EXPAT, CALLBACKS),
        ),
    ),
    show={
        "source": "documents",
        "reader": "reader",
        "mb_per_s": "MB/s",
        "mb_per_s_low": "from",
        "mb_per_s_high": "to",
        "us_per_document": "µs per document",
        "times_expat": "times bare expat",
    },
)
def reading(run: Run, parameters: Reading) -> Iterator[Row]:
    """Each reader reads all documents of a kind on one core, one after the other, ours in one call as a batch.

    All readers must first report the same elements, attributes and text. MB are 10⁶ bytes of XML.
    """
    from pathcast.workloads import generate_documents, news_schema

    run.begin("generating documents")
    sources = {"generated news": list(generate_documents(news_schema(), parameters.documents, seed=run.seed))}
    if nitf := nitf_documents(run.data):
        sources["NITF"] = nitf
    else:
        run.note("The NITF documents are not on this machine; set PATHCAST_DATA to the folder that holds `nitf`.")

    for source, documents in sources.items():
        run.begin(f"checking what readers see of {source}")
        run.check_equal("all readers see the same elements, attributes and text", _seen(documents))

        run.begin(f"reading {source}", parameters.rounds)
        times = race(_readers(documents), rounds=parameters.rounds, after_round=run.advance)
        megabytes = sum(map(len, documents)) / 1e6
        for reader, time in times.items():
            low, high = time.interval
            against = ratio(time, times[EXPAT])
            yield {
                "source": source,
                "reader": reader,
                "documents": len(documents),
                "megabytes": megabytes,
                "mb_per_s": megabytes / time.median,
                "mb_per_s_low": megabytes / high,
                "mb_per_s_high": megabytes / low,
                "us_per_document": time.median / len(documents) * 1e6,
                "times_expat": against.median,
                "times_expat_low": against.low,
                "times_expat_high": against.high,
            }


def _readers(documents: list[bytes]) -> dict[str, Callable[[], object]]:
    from lxml import etree

    from pathcast.documents import read_batch

    def one_by_one(read: Callable[[bytes], object]) -> Callable[[], None]:
        def read_all() -> None:
            for document in documents:
                read(document)

        return read_all

    return {
        OURS: lambda: read_batch(documents),
        OURS_ON_EXPAT: lambda: _read_on_expat(documents),
        LXML: one_by_one(etree.fromstring),
        TREE: one_by_one(ElementTree.fromstring),
        CALLBACKS: one_by_one(_parse_with_empty_callbacks),
        EXPAT: one_by_one(lambda document: expat.ParserCreate().Parse(document, True)),
    }


def _read_on_expat(documents: list[bytes]) -> "DocumentBatch":
    from pathcast.documents import Limits, Names
    from pathcast.documents.expat_reader import BatchBuilder

    builder = BatchBuilder(Names(), 0, Limits(), "refuse")
    for document in documents:
        builder.add(document)
    return builder.finish()


def _parse_with_empty_callbacks(document: bytes) -> None:
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = lambda name, attributes: None
    parser.EndElementHandler = lambda name: None
    parser.CharacterDataHandler = lambda text: None
    parser.Parse(document, True)


def _seen(documents: list[bytes]) -> dict[str, list[Seen]]:
    from lxml import etree

    from pathcast.documents import read_batch

    return {
        EXPAT: [_seen_by_expat(document) for document in documents],
        OURS: _seen_in_batch(read_batch(documents)),
        OURS_ON_EXPAT: _seen_in_batch(_read_on_expat(documents)),
        LXML: [_seen_in_tree(etree.fromstring(document).iter("*")) for document in documents],
        TREE: [_seen_in_tree(ElementTree.fromstring(document).iter()) for document in documents],
    }


def _seen_in_batch(batch: "DocumentBatch") -> list[Seen]:
    seen = []
    for index in range(len(batch)):
        first, end = int(batch.offsets[index]), int(batch.offsets[index + 1])
        attributes = int(batch.attribute_begin[end] - batch.attribute_begin[first])
        seen.append((end - first, attributes, batch.string_value(first).decode()))
    return seen


def _seen_in_tree(elements: Iterable[ElementTree.Element]) -> Seen:
    every = list(elements)
    return len(every), sum(len(element.attrib) for element in every), "".join(every[0].itertext())


def _seen_by_expat(document: bytes) -> Seen:
    elements: list[int] = []
    text: list[str] = []
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.StartElementHandler = lambda name, attributes: elements.append(len(attributes))
    parser.CharacterDataHandler = text.append
    parser.Parse(document, True)
    return len(elements), sum(elements), "".join(text)
