"""The default engine on documents that come one at a time: what a call of `match` costs besides the document.

A call has a cost of its own, for Python and for the arguments of kernels, which a batch pays once. Documents of a
hundred bytes show it; with documents of some kilobytes it disappears.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pathcast_lab.harness import Claim, Judgement, Plot, Row, Rows, Run, every, experiment, race

if TYPE_CHECKING:
    from pathcast.matching import Matcher

ALONE, TOGETHER = "match", "match_many"
PATHS, PREDICATES = "plain paths", "paths, values and branches"
KINDS: dict[str, tuple[dict[str, Any], ...]] = {
    PATHS: ({},),
    PREDICATES: ({}, {"predicates": 1, "operators": ("=", "<=")}, {"nested": 1}),
}
_CALL_US = 25


@dataclass(frozen=True)
class SingleDocuments:
    """`sizes`: documents are cut to about this many bytes; `subscriptions` of each kind."""

    sizes: tuple[int, ...] = (80, 400, 4_000)
    subscriptions: int = 5_000
    documents: int = 200
    rounds: int = 9


def _at_most(limit: float) -> Callable[[Rows], Judgement]:
    """A judge: microseconds of a call, for the shortest documents."""

    def judge(rows: Rows) -> Judgement:
        shortest = min(size for row in rows if isinstance(size := row["size"], int))
        found = {
            f"for {kind}": rows.number("us", kind=kind, series=ALONE, size=shortest) for kind in rows.distinct("kind")
        }
        return every(found, "{:.1f} µs", most=limit)

    return judge


@experiment(
    "engine-single",
    title="The default engine: documents one at a time",
    small=SingleDocuments(),
    paper=SingleDocuments(subscriptions=100_000, documents=500, rounds=15),
    claims=(
        Claim(
            f"a call of match for a document of 80 bytes takes at most {_CALL_US} µs",
            "target",
            _at_most(_CALL_US),
            f"{_CALL_US} µs",
        ),
    ),
    plots=(
        Plot(
            name="time",
            title="Time per document, one core",
            y="us",
            y_label="µs per document",
            series="series",
            x="bytes",
            x_label="bytes per document",
            panel="kind",
            ours=(ALONE, TOGETHER),
            log="xy",
        ),
    ),
    show={
        "kind": "subscriptions",
        "bytes": "bytes per document",
        "matches": "matches per document",
        "series": "what",
        "us": "µs per document",
        "us_low": "from",
        "us_high": "to",
    },
)
def engine_single(run: Run, parameters: SingleDocuments) -> Iterator[Row]:
    """News documents of several sizes are matched by a call each, and by one call for all, in turn on one core.

    A document is the beginning of a generated one without its XML declaration, with the end tags that it needs. Both
    ways must first find the same matches.
    """
    from pathcast.workloads import generate_documents, news_schema

    whole = [
        document.partition(b"?>\n")[2]
        for document in generate_documents(news_schema(), parameters.documents, seed=run.seed)
    ]
    for kind, choices in KINDS.items():
        matcher = _matcher(run, parameters, choices)
        for size in parameters.sizes:
            documents = [shortened(document, size) for document in whole]
            yield from _measured(run, parameters, matcher, documents, {"kind": kind, "size": size})


def _matcher(run: Run, parameters: SingleDocuments, choices: tuple[dict[str, Any], ...]) -> "Matcher":
    import pathcast
    from pathcast.workloads import SubscriptionOptions, generate_subscriptions, news_schema

    run.begin(f"{parameters.subscriptions:,} subscriptions of each kind")
    subscriptions = pathcast.Subscriptions()
    for choice in choices:
        options = SubscriptionOptions(max_depth=6, **choice)
        subscriptions.add_many(generate_subscriptions(news_schema(), parameters.subscriptions, options, seed=run.seed))
    return subscriptions.compile(engine="automaton")


def _measured(
    run: Run, parameters: SingleDocuments, matcher: "Matcher", documents: list[bytes], facts: dict[str, Any]
) -> Iterator[Row]:
    ways: dict[str, Callable[[], list[Any]]] = {
        ALONE: lambda: [matcher.match(document) for document in documents],
        TOGETHER: lambda: list(matcher.match_many(documents)),
    }
    # Several passes, so that label paths are known and patterns have selected their access predicates.
    answers = [{way: [matches.ids.tolist() for matches in match()] for way, match in ways.items()} for _ in range(3)]
    run.check_equal("both ways find the same matches", dict(answers[-1]))
    run.begin(f"matching documents of {facts['size']:,} bytes", parameters.rounds)
    times = race(ways, rounds=parameters.rounds, after_round=run.advance)
    each = 1e6 / len(documents)
    for way, time in times.items():
        yield {
            **facts,
            "bytes": sum(map(len, documents)) / len(documents),
            "matches": sum(map(len, answers[-1][way])) / len(documents),
            "series": way,
            "us": time.median * each,
            "us_low": time.interval[0] * each,
            "us_high": time.interval[1] * each,
        }


def shortened(document: bytes, size: int) -> bytes:
    """The document's first elements, as many as `size` bytes hold, or the root alone."""
    from xml.parsers import expat

    if len(document) <= size:
        return document
    open_names: list[bytes] = []
    ends: list[tuple[int, bytes]] = []
    parser = expat.ParserCreate()

    def note() -> None:
        ends.append((parser.CurrentByteIndex, b"".join(b"</%b>" % name for name in reversed(open_names))))

    def start(name: str, *_: object) -> None:
        note()
        open_names.append(name.encode())

    def end(*_: object) -> None:
        note()
        open_names.pop()

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.Parse(document, True)
    _, *cuts = ends
    chosen = next((cut for cut in reversed(cuts) if cut[0] + len(cut[1]) <= size), cuts[0])
    return document[: chosen[0]] + chosen[1]
