"""Routing within a broker, as in Figure 4 of RoXSum: batches by their summary, against single documents.

All rivals read bytes and write messages. Ours reads, builds, matches and encodes one message per target. The others
read and match documents and put their bytes into the output of each of their targets; they compress nothing. `yfilter`
and `automaton` take one document after the other, as the paper's rival does, which in Python is mostly the cost of
calls; `…, in groups` is what an engine does with many documents at once: it separates the gain of batches from that of
summaries. `…, zstd` also compresses each target's output, at the level of our messages: the cost of messages about as
small as ours.

The parts of the time of ours and of those in groups are measured one by one, outside the race: reading, building the
summary, matching, and everything for messages.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from time import perf_counter
from typing import TYPE_CHECKING

from pathcast_lab.harness import (
    Claim,
    Judgement,
    MissingRowError,
    PaperPoint,
    Plot,
    Row,
    Rows,
    Run,
    Timing,
    every,
    experiment,
    judged,
    number_in,
    race,
    ratio,
)

from .roxsum_workloads import COLLECTIONS, HUNDRED, PAPER, Profiles, collection, profiles

if TYPE_CHECKING:
    from pathcast.matching import Matcher
    from pathcast.roxsum import Targets

OURS, YFILTER, AUTOMATON = "RoXSum", "yfilter", "automaton"
YFILTER_GROUPS, GROUPS = f"{YFILTER}, in groups", f"{AUTOMATON}, in groups"
ZSTD = f"{GROUPS}, zstd"
# A part of the time is the least of this many.
_TAKEN = 3


@dataclass(frozen=True)
class Routing:
    """Varied settings have several values.

    `rival_documents`: beyond this number, times of rivals that take one document at a time are extrapolated.
    """

    documents: tuple[int, ...] = (10_000,)
    targets: tuple[int, ...] = (10,)
    profiles: tuple[int, ...] = (1_000,)
    selectivity: tuple[float, ...] = (1.0,)
    rival_documents: int = 1_000
    rounds: int = 3
    collections: tuple[str, ...] = COLLECTIONS
    level: int = 3


_SHOW = {
    "collection": "collection",
    "documents": "documents",
    "targets": "targets",
    "profiles": "profiles",
    "distinct": "different",
    "selectivity": "matched",
    "copies": "targets per document",
    "rival": "how",
    "seconds": "s",
    "us": "µs per document",
    "read_us": "reading",
    "build_us": "building",
    "match_us": "matching",
    "message_us": "messages",
    "times": "times RoXSum's",
    "bytes": "bytes sent",
}


_AXES = {
    "documents": "{:,} documents",
    "targets": "{:,} targets",
    "profiles": "{:,} profiles",
    "selectivity": "{:.0%} of the documents",
}


def _times(rows: Rows, rival: str, least: int = 0, targets: int | None = None) -> dict[str, float]:
    """The ratio of a rival's time to ours, for every point with this number of documents and, if given, of targets."""
    varied = [
        column for column in ("documents", "targets", "profiles", "selectivity") if len(rows.distinct(column)) > 1
    ]
    found = {
        f"at {', '.join(_AXES[column].format(row[column]) for column in varied)} ({row['collection']})": float(
            row["times"]
        )
        for row in rows
        if row["rival"] == rival
        and isinstance(row["times"], int | float)
        and int(row["documents"] or 0) >= least
        and targets in {None, row["targets"]}
    }
    if not found:
        where = "" if targets is None else f" and {targets} targets"
        raise MissingRowError(f"no row of '{rival}' with at least {least:,} documents{where}")
    return found


def _at_least(times: float, rival: str, least: int = 0, targets: int | None = None) -> Callable[[Rows], Judgement]:
    return lambda rows: every(_times(rows, rival, least, targets), "{:.1f} times", least=times)


def _mostly(times: float, rival: str) -> Callable[[Rows], Judgement]:
    def judge(rows: Rows) -> Judgement:
        found = _times(rows, rival)
        enough = sum(value >= times for value in found.values())
        return judged(2 * enough > len(found), f"{every(found, '{:.1f} times', least=times).measured}")

    return judge


_COMPRESSING = (
    "RoXSum's time includes building the summary and compressing one message per target, which YFilter's does not, "
    "and our YFilter takes little time to read and match a document."
)


def _reading_is_common(rows: Rows) -> str:
    """How much of the time of yfilter in groups nobody can save."""
    shares = [number_in(row, "us") / number_in(row, "read_us") for row in rows if row["rival"] == YFILTER_GROUPS]
    if not shares:
        raise MissingRowError(f"no row of '{YFILTER_GROUPS}'")
    return (
        "Every rival reads the documents; if yfilter in groups did nothing else, it would be "
        f"{min(shares):.1f} to {max(shares):.1f} times faster."
    )


_SMALL_MESSAGES = "A small batch to many targets makes many small messages, each with a tree and tables of its own."
_AGAINST_DEFAULT = (
    Claim(
        "no slower than the default engine, document by document",
        "target",
        _at_least(1, AUTOMATON),
        "not slower",
        _SMALL_MESSAGES,
    ),
    Claim(
        "no slower than the default engine that compresses its messages",
        "target",
        _at_least(1, ZSTD),
        "not slower",
        _SMALL_MESSAGES,
    ),
)


def _plot(
    x: str, label: str, *, only: Callable[[Row], bool] | None = None, paper_points: tuple[PaperPoint, ...] = ()
) -> Plot:
    return Plot(
        name="time",
        title="Time within a broker, one core",
        y="seconds",
        y_label="seconds",
        series="rival",
        x=x,
        x_label=label,
        ours=(OURS,),
        panel="collection",
        log="xy",
        only=only,
        paper_points=paper_points,
    )


@experiment(
    "roxsum-fig4a",
    title="RoXSum, Figure 4(a): the number of documents",
    small=Routing(documents=(1_000, 5_000), targets=(1, 100), rounds=3, collections=(*COLLECTIONS, HUNDRED)),
    paper=Routing(
        documents=(1_000, 10_000, 50_000, 100_000),
        targets=(1, 10, 100),
        rival_documents=100_000,
        collections=(*COLLECTIONS, HUNDRED),
    ),
    claims=(
        Claim(
            "at least 10 times faster than each document on its own, except for 1,000 documents",
            PAPER,
            _at_least(10, YFILTER, 5_000),
            "10 times",
            _COMPRESSING,
        ),
        Claim(
            "nearly 100 times faster at 100,000 documents and 100 targets (criterion: 80 times)",
            PAPER,
            _at_least(80, YFILTER, 100_000, 100),
            "100 times",
            _COMPRESSING,
        ),
        Claim(
            "100,000 documents to 100 targets at least 10 times faster than with yfilter in groups",
            "target",
            _at_least(10, YFILTER_GROUPS, 100_000, 100),
            "10 times",
            _reading_is_common,
        ),
        Claim(
            "100,000 documents to 100 targets no slower than the default engine in groups that compresses its messages",
            "target",
            _at_least(1, ZSTD, 100_000, 100),
            "not slower",
            _SMALL_MESSAGES,
        ),
        *_AGAINST_DEFAULT,
    ),
    plots=(
        _plot(
            "documents",
            "documents (100 targets)",
            only=lambda row: row["targets"] == 100,
            paper_points=(
                PaperPoint(YFILTER, 100_000, 100, f"{PAPER}, Figure 4(a): as a multiple of our RoXSum", of=OURS),
            ),
        ),
    ),
    show=_SHOW,
)
def roxsum_fig4a(run: Run, parameters: Routing) -> Iterator[Row]:
    """1,000 profiles of 3 to 7 steps; every document matches at least one; the profiles spread the documents over the
    targets. Times run from bytes in to messages out. With 100 targets a document of the auction goes to ten, one of a
    hundred schemas to a single target.

    Rivals that take documents one by one get at most `rival_documents`; beyond that, their time is extrapolated
    linearly. `in groups` is an engine with many documents at once; with `zstd` it also compresses the messages of each
    target. Parts of the time are µs per document.
    """
    yield from _measure(run, parameters)


@experiment(
    "roxsum-fig4b",
    title="RoXSum, Figure 4(b): the number of profiles",
    small=Routing(documents=(3_000,), profiles=(1_000, 10_000), selectivity=(0.5,)),
    paper=Routing(profiles=(1_000, 5_000, 10_000, 20_000, 50_000), selectivity=(0.5,), rival_documents=10_000),
    claims=(
        Claim(
            "around 10 times faster in most cases (criterion: 8 times)",
            PAPER,
            _mostly(8, YFILTER),
            "10 times",
            _COMPRESSING,
        ),
        *_AGAINST_DEFAULT,
    ),
    plots=(_plot("profiles", "profiles"),),
    show=_SHOW,
)
def roxsum_fig4b(run: Run, parameters: Routing) -> Iterator[Row]:
    """Half of the documents match, to 10 targets; the number of profiles grows. Otherwise as Figure 4(a)."""
    yield from _measure(run, parameters)


@experiment(
    "roxsum-fig4c",
    title="RoXSum, Figure 4(c): the share of documents that match",
    small=Routing(documents=(3_000,), selectivity=(0.1, 0.5, 1.0)),
    paper=Routing(selectivity=(0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0), rival_documents=10_000),
    claims=(
        Claim(
            "an order of magnitude faster at any selectivity",
            PAPER,
            _at_least(10, YFILTER),
            "10 times",
            _COMPRESSING,
        ),
        *_AGAINST_DEFAULT,
    ),
    plots=(_plot("selectivity", "share of the documents that match"),),
    show=_SHOW,
)
def roxsum_fig4c(run: Run, parameters: Routing) -> Iterator[Row]:
    """1,000 profiles, 10 targets; the share of documents that match grows. Otherwise as Figure 4(a)."""
    yield from _measure(run, parameters)


def _measure(run: Run, parameters: Routing) -> Iterator[Row]:
    from pathcast.roxsum import RoXSum

    for name in parameters.collections:
        run.begin(f"documents of {name}")
        everything = collection(name, max(parameters.documents), run.seed)
        for size in parameters.documents:
            documents = everything[:size]
            batch = RoXSum.build(documents)
            for selectivity in parameters.selectivity:
                for targets in parameters.targets:
                    for count in parameters.profiles:
                        drawn = profiles(name, batch, count, targets, selectivity, run.seed)
                        yield from _point(run, parameters, name, documents, drawn)


def _point(run: Run, parameters: Routing, name: str, documents: list[bytes], drawn: Profiles) -> Iterator[Row]:
    from pathcast.matching import engines
    from pathcast.roxsum import Targets

    targets = Targets(drawn.by_target)
    # What the broker has before documents come: its table of profiles, compiled.
    targets.matcher.match(documents[0])
    few = documents[: parameters.rival_documents]
    # Documents one by one, and in groups.
    matchers = {engine: targets.subscriptions.compile(engine) for engine in (YFILTER, AUTOMATON) if engine in engines()}
    if YFILTER not in matchers:
        run.note("The engine yfilter is not available: its series is left out.")
    order = [str(number) for number in range(len(targets))]
    rivals: dict[str, Callable[[], object]] = {OURS: lambda: _by_summary(documents, targets, parameters.level)}
    for engine, matcher in matchers.items():
        rivals[engine] = lambda matcher=matcher: _one_by_one(few, matcher, order)  # type: ignore[misc]
    groups = {f"{engine}, in groups": matcher for engine, matcher in matchers.items()}
    for rival, matcher in groups.items():
        rivals[rival] = lambda matcher=matcher: _in_groups(documents, matcher, order)  # type: ignore[misc]
    rivals[ZSTD] = lambda: _compressed(_in_groups(documents, matchers[AUTOMATON], order), parameters.level)
    messages = _by_summary(documents, targets, parameters.level)
    answers = {engine: _digests(_one_by_one(few, matcher, order)) for engine, matcher in matchers.items()}
    copies, raw = _check(run, documents, len(few), messages, answers)
    zipped = _compressed(_in_groups(documents, matchers[AUTOMATON], order), parameters.level)
    sent = {OURS: sum(map(len, messages.values())), ZSTD: sum(map(len, zipped.values()))}
    del messages, zipped
    run.begin(
        f"{name}: {len(documents):,} documents, {drawn.count:,} profiles, {len(targets)} targets", parameters.rounds
    )
    times = race(rivals, rounds=parameters.rounds, after_round=run.advance)
    scale = len(documents) / len(few)
    if scale > 1:
        run.note(f"Rivals one by one ran over {len(few):,} documents; their times for more are extrapolated.")
    times = {rival: _scaled(time, scale) if rival in matchers else time for rival, time in times.items()}
    parts = {rival: _parts_in_groups(documents, matcher, times[rival]) for rival, matcher in groups.items()}
    parts[OURS] = _parts_of_ours(documents, targets, parameters.level)
    for rival, time in times.items():
        yield {
            "collection": name,
            "documents": len(documents),
            "targets": len(targets),
            "profiles": drawn.count,
            "distinct": drawn.distinct,
            "selectivity": round(drawn.selectivity, 3),
            "copies": copies / len(documents),
            "rival": rival,
            "seconds": time.median,
            "us": time.median / len(documents) * 1e6,
            **{part: seconds / len(documents) * 1e6 for part, seconds in parts.get(rival, {}).items()},
            "times": ratio(time, times[OURS]).median,
            "bytes": sent.get(rival, raw),
        }


def _parts_of_ours(documents: list[bytes], targets: "Targets", level: int) -> dict[str, float]:
    """Seconds for the parts of our work."""
    from pathcast.documents import read_batch
    from pathcast.roxsum import RoXSum
    from pathcast.roxsum.message.messages_by_target import encode_by_target

    read = _seconds(lambda: read_batch(documents))
    built = _seconds(lambda: RoXSum.build(documents))
    batches = iter([RoXSum.build(documents) for _ in range(_TAKEN)])
    found = RoXSum.build(documents).route(targets)
    return {
        "read_us": read,
        "build_us": built - read,
        "match_us": _seconds(lambda: RoXSum.build(documents).route(targets)) - built,
        # What a batch finds out while it is encoded, it keeps: each call has its own.
        "message_us": _seconds(lambda: encode_by_target(next(batches), found, level=level)),
    }


def _parts_in_groups(documents: list[bytes], matcher: "Matcher", whole: Timing) -> dict[str, float]:
    """Seconds for the parts of what an engine does in groups: what is neither reading nor matching is for messages."""
    from pathcast.documents import read_batch

    batch = read_batch(documents)
    read, matched = _seconds(lambda: read_batch(documents)), _seconds(lambda: matcher.view().match_batch(batch))
    return {"read_us": read, "match_us": matched, "message_us": whole.median - read - matched}


def _seconds(work: Callable[[], object]) -> float:
    """The least time of some calls."""
    found = []
    for _ in range(_TAKEN):
        begin = perf_counter()
        work()
        found.append(perf_counter() - begin)
    return min(found)


def _by_summary(documents: list[bytes], targets: "Targets", level: int) -> dict[str, bytes]:
    """Bytes in, messages out, on the summary."""
    from pathcast.roxsum import RoXSum

    messages = RoXSum.build(documents).messages(targets, level=level)
    return {str(number): messages[target] for number, target in enumerate(targets) if target in messages}


def _one_by_one(documents: list[bytes], matcher: "Matcher", targets: list[str]) -> dict[str, bytes]:
    """Bytes in, messages out, document by document."""
    out: dict[str, list[bytes]] = {target: [] for target in targets}
    for document in documents:
        for target in matcher.match(document).subscribers:
            out[target].append(document)
    return {target: b"".join(those) for target, those in out.items()}


def _in_groups(documents: list[bytes], matcher: "Matcher", targets: list[str]) -> dict[str, bytes]:
    """As `_one_by_one`, with the engine's function for many documents."""
    out: dict[str, list[bytes]] = {target: [] for target in targets}
    for document, matches in zip(documents, matcher.match_many(documents), strict=True):
        for target in matches.subscribers:
            out[target].append(document)
    return {target: b"".join(those) for target, those in out.items()}


def _compressed(messages: dict[str, bytes], level: int) -> dict[str, bytes]:
    from zstandard import ZstdCompressor

    compressor = ZstdCompressor(level=level)
    return {target: compressor.compress(data) for target, data in messages.items()}


def _scaled(time: Timing, scale: float) -> Timing:
    return Timing(tuple(seconds * scale for seconds in time.seconds))


def _digests(messages: dict[str, bytes]) -> dict[str, str]:
    """Digests of each target's documents."""
    return {target: blake2b(data, digest_size=16).hexdigest() for target, data in messages.items()}


def _check(
    run: Run, documents: list[bytes], few: int, messages: dict[str, bytes], answers: dict[str, dict[str, str]]
) -> tuple[int, int]:
    """Every target gets the same of the first few documents from all rivals, and ours are the bytes that came.

    Return how many documents the messages carry together, and their bytes.
    """
    from pathcast.roxsum import MessageLimits, RoXSum

    ours: dict[str, str] = {}
    same, copies, size = True, 0, 0
    for target, message in messages.items():
        part = RoXSum.decode(message, limits=MessageLimits(bytes=1 << 30))
        pairs = list(zip(part, part.documents(), strict=True))
        same = same and all(document == documents[id] for id, document in pairs)
        copies, size = copies + len(part), size + part.size
        ours |= _digests({target: b"".join(document for id, document in pairs if id < few)})
    run.check_equal("all rivals give every target the same documents, byte for byte", {OURS: ours, **answers})
    run.check("messages carry the documents as they came", same)
    return copies, size
