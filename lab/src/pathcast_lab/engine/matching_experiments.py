"""The default engine: the time per document with a hundred thousand to millions of subscriptions.

Reading, matching, and both are compared with the floor (a kernel that sums the bytes, and one that writes the matched
ids), with bare expat, and with lxml, which tries one compiled XPath after the other. The distinct subscriptions are the
field's 153,928 NITF paths if they are on the machine, otherwise as many generated paths; larger sets repeat them, as
subscribers do. In the selective set, a document matches some 0.06 % of the paths. `--rival yfilter=FOLDER`, a folder of
YFilter 1.0's classes, adds YFilter where subscriptions are distinct.
"""

import gzip
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING
from xml.parsers import expat

from pathcast_lab.harness import (
    Claim,
    Judgement,
    Row,
    Rows,
    Run,
    Timing,
    check_matches,
    every,
    experiment,
    judged,
    nitf_documents,
    number_in,
    over_subscriptions,
    race,
)

if TYPE_CHECKING:
    from pathcast.documents.document_reader import Reader
    from pathcast.matching import Matcher

READ, MATCH, BOTH, IDS = "read", "match", "read and match", "read, match, write ids"
FLOOR, EXPAT, LXML = "floor", "bare expat", "lxml, one by one (extrapolated)"
PATHS, SELECTIVE = "paths", "selective paths"
YFILTER = "YFilter 1.0"
# How often YFilter is started for its time, and how often it reads the documents each time, the last time timed.
_YFILTER_STARTS, _YFILTER_PASSES = 3, 5
# How much of lxml's work is done before it is extrapolated.
_SAMPLE_PATHS, _SAMPLE_DOCUMENTS = 200, 20
_DISTINCT, _SELECTIVE = 153_928, 90_000


@dataclass(frozen=True)
class Engine:
    """`sizes` are numbers of subscriptions; `documents` are generated if the field's are not available."""

    sizes: tuple[int, ...] = (153_928, 500_000, 1_000_000)
    selective: int = _SELECTIVE
    documents: int = 200
    rounds: int = 9


def _sizes(rows: Rows, workload: str) -> list[int]:
    """The numbers of subscriptions of a workload, ascending."""
    return sorted(
        {size for row in rows if row["workload"] == workload and isinstance(size := row["subscriptions"], int)}
    )


def _us(rows: Rows, workload: str, series: str, size: int) -> float:
    return rows.number("us", workload=workload, series=series, subscriptions=size)


def _at_most(limit: float, workload: str) -> Callable[[Rows], Judgement]:
    """A judge: microseconds per document, including ids, at the smallest size of a workload."""

    def judge(rows: Rows) -> Judgement:
        size = _sizes(rows, workload)[0]
        found = _us(rows, workload, IDS, size)
        matches = rows.number("matches", workload=workload, series=IDS, subscriptions=size)
        where = f"{size:,} subscriptions, {matches:,.0f} of which match"
        return judged(found <= limit, f"{found:.1f} µs per document at {where}")

    return judge


def _within_floor(times: float) -> Callable[[Rows], Judgement]:
    def judge(rows: Rows) -> Judgement:
        size = _sizes(rows, PATHS)[0]
        found = _us(rows, PATHS, IDS, size) / _us(rows, PATHS, FLOOR, size)
        return judged(found <= times, f"{found:.1f} times the floor")

    return judge


def _no_slower_with_copies(rows: Rows) -> Judgement:
    first, *others = _sizes(rows, PATHS)
    found = {f"at {size:,}": _us(rows, PATHS, MATCH, size) / _us(rows, PATHS, MATCH, first) for size in others}
    return every(found, f"{{:.2f}} times the time of {first:,} subscriptions", most=1.25)


def _bytes_each(rows: Rows) -> Judgement:
    found = {
        f"at {row['subscriptions']:,} {row['workload']}": number_in(row, "bytes_each")
        for row in rows.where(series=IDS)
        if row["distinct"] == row["subscriptions"]
    }
    return every(found, "{:.0f} bytes", most=250)


@experiment(
    "engine",
    title="The default engine: time per document",
    small=Engine(),
    paper=Engine(sizes=(153_928, 500_000, 1_000_000, 2_000_000, 4_000_000), rounds=15),
    claims=(
        Claim(
            "reading and matching with ids takes at most 40 µs per document at some 150,000 distinct paths",
            "target",
            _at_most(40, PATHS),
            "40 µs",
        ),
        Claim(
            "reading and matching with ids takes at most 8 times the floor at some 150,000 distinct paths",
            "target",
            _within_floor(8),
            "8 times",
            "The floor adds up bytes and writes ids; recognising tags alone takes several times as long.",
        ),
        Claim(
            "reading and matching takes at most 15 µs per document on the selective set",
            "target",
            _at_most(15, SELECTIVE),
            "15 µs",
        ),
        Claim(
            "copies of subscriptions cost nothing to match (within a quarter), until their ids are requested",
            "target",
            _no_slower_with_copies,
            "1.25 times",
        ),
        Claim("a distinct subscription takes at most 250 bytes", "target", _bytes_each, "250 bytes"),
    ),
    plots=(
        over_subscriptions(
            "time",
            "Time per document, one core",
            y="us",
            y_label="µs per document",
            ours=IDS,
            floor=FLOOR,
            only=lambda row: row["workload"] == PATHS,
            x_label="subscriptions (copies of the same distinct paths)",
        ),
    ),
    show={
        "workload": "subscriptions of the kind",
        "subscriptions": "subscriptions",
        "distinct": "distinct",
        "matches": "matches per document",
        "series": "what",
        "us": "µs per document",
        "us_low": "from",
        "us_high": "to",
        "build_s": "built in s",
        "cold_ms": "first pass, ms",
        "bytes_each": "bytes per distinct one",
    },
    rivals=("yfilter",),
)
def engine(run: Run, parameters: Engine) -> Iterator[Row]:
    """All documents are read and matched repeatedly on one core, in batches.

    Answers are compared with lxml's first, on a sample. The floor reads every byte once and writes every matched id
    once. lxml tries a sample of the paths on a sample of the documents, parsed beforehand; its time is extrapolated to
    all paths. YFilter, if it takes part, is a program of its own that reports its time for each document.
    """
    from pathcast.workloads import generate_documents, news_schema

    run.begin("documents and subscriptions")
    documents = nitf_documents(run.data)
    if not documents:
        run.note("The NITF documents are not on this machine: generated news stand in for them.")
        documents = list(generate_documents(news_schema(), parameters.documents, seed=run.seed))
    paths = _paths(run)
    for size in parameters.sizes:
        distinct = paths[:size]
        subscriptions = [distinct[number % len(distinct)] for number in range(size)]
        yield from _measure(run, parameters, PATHS, subscriptions, documents)
    yield from _measure(run, parameters, SELECTIVE, _selective(run, parameters, documents), documents)


def _measure(run: Run, parameters: Engine, workload: str, xpaths: list[str], documents: list[bytes]) -> Iterator[Row]:
    import pathcast

    run.begin(f"building {len(xpaths):,} {workload}")
    begin = perf_counter()
    subscriptions = pathcast.Subscriptions()
    subscriptions.add_many(xpaths)
    matcher = subscriptions.compile(engine="automaton")
    build = perf_counter() - begin
    begin = perf_counter()
    matches = matcher.match_batch(_reader(matcher).read(documents))[1].size
    cold = perf_counter() - begin
    run.check_equal("the engine finds what lxml finds, on a sample", _answers(run, matcher, xpaths, documents))
    statistics = matcher.statistics()
    run.begin(f"matching {len(xpaths):,} {workload}", parameters.rounds)
    times = race(_rivals(matcher, documents), rounds=parameters.rounds, after_round=run.advance)
    times[LXML] = _lxml_times(run, xpaths, documents, len(xpaths))
    if "yfilter" in run.rivals and statistics["patterns"] == len(xpaths):
        times[YFILTER] = _yfilter_times(run, matcher, xpaths, documents)
    for series, time in times.items():
        low, high = time.interval
        per_document = 1e6 / len(documents)
        yield {
            "workload": workload,
            "subscriptions": len(xpaths),
            "distinct": statistics["patterns"],
            "matches": matches / len(documents),
            "series": series,
            "us": time.median * per_document,
            "us_low": low * per_document,
            "us_high": high * per_document,
            "build_s": build,
            "cold_ms": cold * 1e3,
            "bytes_each": statistics["index bytes"] / statistics["patterns"],
            "memo_mb": statistics["memo bytes"] / 1e6,
        }


def _reader(matcher: "Matcher") -> "Reader":
    """A reader that knows the names of the subscriptions, as the matcher's own does."""
    from pathcast.documents import Limits
    from pathcast.documents.document_reader import Reader

    return Reader(matcher.subscriptions.table.names, Limits(), "refuse")


def _rivals(matcher: "Matcher", documents: list[bytes]) -> dict[str, Callable[[], object]]:
    import numpy as np

    from .lower_bound_kernels import sum_bytes, write_ids

    reader = _reader(matcher)
    batch = reader.read(documents)
    _, ids = matcher.match_batch(batch)
    out = np.empty_like(ids)
    data = np.frombuffer(b"".join(documents), dtype=np.uint8)

    def with_ids() -> None:
        matcher.match_batch(reader.read(documents, borrowed=True))

    return {
        IDS: with_ids,
        BOTH: lambda: matcher.engine.match_batch(reader.read(documents, borrowed=True)),
        READ: lambda: reader.read(documents, borrowed=True),
        MATCH: lambda: matcher.engine.match_batch(batch),
        FLOOR: lambda: (sum_bytes(data), write_ids(ids, out)),
        EXPAT: lambda: [expat.ParserCreate().Parse(document, True) for document in documents],
    }


def _paths(run: Run) -> list[str]:
    """The distinct paths: the field's, or as many generated ones."""
    from pathcast.workloads import SubscriptionOptions, generate_subscriptions, news_schema

    file = run.data / "nitf" / "queries-153928-d.txt.gz" if run.data else Path("nowhere")
    if file.is_file():
        return gzip.decompress(file.read_bytes()).decode().split()
    run.note("The field's NITF paths are not on this machine: generated ones stand in for them.")
    return generate_subscriptions(
        news_schema(), _DISTINCT, SubscriptionOptions(max_depth=8, distinct=True), seed=run.seed
    )


def _selective(run: Run, parameters: Engine, documents: list[bytes]) -> list[str]:
    """Distinct paths of which some 0.06 % match a document."""
    from pathcast.workloads import SubscriptionOptions, generate_subscriptions, news_schema, schema_from_dtd

    dtd = run.data / "nitf" / "nitf-2-5.dtd" if run.data else Path("nowhere")
    schema = schema_from_dtd(dtd, root="nitf") if dtd.is_file() else news_schema()
    return generate_subscriptions(
        schema,
        parameters.selective,
        SubscriptionOptions(max_depth=10, min_depth=6, wildcard=0.1, descendant=0.1, distinct=True, match_rate=0.0006),
        seed=run.seed,
        documents=documents,
    )


def _answers(run: Run, matcher: "Matcher", xpaths: list[str], documents: list[bytes]) -> dict[str, object]:
    """The matches of a sample, ours and lxml's: (place in the sample, document)."""
    from lxml import etree

    sample, few = _sample(run, xpaths, documents)
    asked = {number + 1: place for place, number in enumerate(sample)}
    ours, theirs = [], []
    for at, document in enumerate(few):
        ours += sorted((asked[found], at) for found in matcher.match(document) if found in asked)
        tree = etree.fromstring(document).getroottree()
        theirs += [(place, at) for place, number in enumerate(sample) if tree.xpath(f"boolean({xpaths[number]})")]
    return {"ours": ours, "lxml": theirs}


def _lxml_times(run: Run, xpaths: list[str], documents: list[bytes], paths: int) -> Timing:
    """The time of lxml for all documents and this many paths, from a sample of both."""
    from lxml import etree

    sample, few = _sample(run, xpaths, documents)
    compiled = [etree.XPath(f"boolean({xpaths[number]})") for number in sample]
    trees = [etree.fromstring(document).getroottree() for document in few]
    timing = race({LXML: lambda: [path(tree) for tree in trees for path in compiled]}, rounds=3)[LXML]
    scale = paths / len(compiled) * len(documents) / len(trees)
    return Timing(tuple(seconds * scale for seconds in timing.seconds))


def _yfilter_times(run: Run, matcher: "Matcher", xpaths: list[str], documents: list[bytes]) -> Timing:
    """The time of YFilter's own program for all documents; its answers are compared with ours first."""
    from .yfilter_program import run_yfilter

    ours = [matches.ids.tolist() for matches in matcher.match_many(documents)]
    seconds = []
    for _ in run.steps("YFilter", range(_YFILTER_STARTS)):
        found = run_yfilter(Path(run.rivals["yfilter"]), xpaths, documents, passes=_YFILTER_PASSES)
        check_matches(run, YFILTER, ours, found.matches)
        seconds.append(found.seconds)
    return Timing(tuple(seconds))


def _sample(run: Run, xpaths: list[str], documents: list[bytes]) -> tuple[list[int], list[bytes]]:
    """Numbers of some paths, and some documents; the same for the same seed."""
    drawn = random.Random(run.seed)
    paths = sorted(drawn.sample(range(len(xpaths)), min(_SAMPLE_PATHS, len(xpaths))))
    return paths, drawn.sample(documents, min(_SAMPLE_DOCUMENTS, len(documents)))
