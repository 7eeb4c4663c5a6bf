"""The default engine on patterns with values and branches: the cost of predicates and nested paths over plain paths.

The cost of plain paths is measured on two sets of them, and has a part per document and a part per match. A set with
predicates is compared with the cost of plain paths with as many matches, plus 0.1 µs per candidate.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

from pathcast_lab.harness import Claim, Judgement, MissingRowError, Plot, Row, Rows, Run, every, experiment, race

if TYPE_CHECKING:
    from pathcast.matching import Matcher

PLAIN, FEW = "plain paths", "a twentieth of them"
CANDIDATE_US = 0.1
_EQUAL: dict[str, Any] = {"operators": ("=",)}
_RANGES: dict[str, Any] = {"operators": ("<=", ">=")}
KINDS: dict[str, dict[str, Any]] = {
    "1 equality": {"predicates": 1, **_EQUAL},
    "2 equalities": {"predicates": 2, **_EQUAL},
    "5 equalities": {"predicates": 5, **_EQUAL},
    "1 range": {"predicates": 1, **_RANGES},
    "2 ranges": {"predicates": 2, **_RANGES},
    "5 ranges": {"predicates": 5, **_RANGES},
    "1 nested path": {"nested": 1},
    "2 nested paths": {"nested": 2},
    "3 nested paths": {"nested": 3},
}


@dataclass(frozen=True)
class EngineValues:
    """`sizes` are numbers of subscriptions of each kind; `checked` of them are compared with the plain engine."""

    sizes: tuple[int, ...] = (100_000,)
    kinds: tuple[str, ...] = tuple(KINDS)
    documents: int = 200
    checked: int = 1_000
    rounds: int = 7


def _worst(times: float, kinds: tuple[str, ...]) -> Callable[[Rows], Judgement]:
    """A judge: the largest share of the bound, over some kinds and all sizes."""

    def judge(rows: Rows) -> Judgement:
        found = {
            f"for {row['subscriptions']:,} subscriptions with {row['kind']}": float(row["us"])  # type: ignore[arg-type]
            / (times * float(row["plain_us"]) + CANDIDATE_US * float(row["candidates"]))  # type: ignore[arg-type]
            for row in rows
            if row["kind"] in kinds
        }
        if not found:
            raise MissingRowError(f"no row of the kinds {', '.join(kinds)}")
        return every(found, "{:.2f} of the bound", most=1)

    return judge


@experiment(
    "engine-values",
    title="The default engine: cost of values and branches",
    small=EngineValues(),
    paper=EngineValues(sizes=(100_000, 1_000_000), rounds=15),
    claims=(
        Claim(
            "with 1 or 2 value predicates, at most twice the time of as many matches of plain paths,"
            " plus 0.1 µs per candidate",
            "target",
            _worst(2, ("1 equality", "2 equalities", "1 range", "2 ranges")),
            "2 times",
        ),
        Claim(
            "with nested paths, at most 4 times the time of as many matches of plain paths, plus 0.1 µs per candidate",
            "target",
            _worst(4, ("1 nested path", "2 nested paths", "3 nested paths")),
            "4 times",
        ),
    ),
    plots=(
        Plot(
            name="time",
            title="Time per document, one core",
            y="us",
            y_label="µs per document",
            series="kind",
            x="subscriptions",
            x_label="subscriptions",
            log="xy",
        ),
    ),
    show={
        "kind": "subscriptions with",
        "subscriptions": "subscriptions",
        "distinct": "distinct",
        "matches": "matches per document",
        "candidates": "candidates per document",
        "us": "µs per document",
        "us_low": "from",
        "us_high": "to",
        "plain_us": "µs, plain, as many matches",
        "build_s": "built in s",
    },
)
def engine_values(run: Run, parameters: EngineValues) -> Iterator[Row]:
    """News documents are read and matched repeatedly on one core, in one batch.

    Equalities and ranges are on attributes and texts with small domains (numbers up to 20), at random steps. Answers of
    a sample of the subscriptions are compared with the plain engine's first. The bound is derived from the times of two
    sets of plain paths: the time that plain paths would take to find as many matches.
    """
    from pathcast.workloads import generate_documents, news_schema

    if unknown := set(parameters.kinds) - KINDS.keys():
        raise ValueError(f"kinds: unknown kind '{min(unknown)}'; the kinds are {', '.join(KINDS)}")
    documents = list(generate_documents(news_schema(), parameters.documents, seed=run.seed))
    for size in parameters.sizes:
        plain, few = (
            _measured(run, parameters, kind, count, {}, documents) for kind, count in ((PLAIN, size), (FEW, size // 20))
        )
        each = max(0.0, (plain["us"] - few["us"]) / max(1.0, plain["matches"] - few["matches"]))
        kinds = (_measured(run, parameters, kind, size, KINDS[kind], documents) for kind in parameters.kinds)
        rows = [plain, few, *kinds]
        for row in rows:
            yield {**row, "plain_us": plain["us"] + each * (row["matches"] - plain["matches"])}


def _measured(
    run: Run, parameters: EngineValues, kind: str, size: int, choice: dict[str, Any], documents: list[bytes]
) -> dict[str, Any]:
    import pathcast
    from pathcast.documents import Limits
    from pathcast.documents.document_reader import Reader
    from pathcast.workloads import SubscriptionOptions, generate_subscriptions, news_schema

    run.begin(f"{size:,} subscriptions with {kind}")
    xpaths = generate_subscriptions(news_schema(), size, SubscriptionOptions(max_depth=6, **choice), seed=run.seed)
    begin = perf_counter()
    subscriptions = pathcast.Subscriptions()
    subscriptions.add_many(xpaths)
    matcher = subscriptions.compile(engine="automaton")
    build = perf_counter() - begin
    run.check_equal("the engine finds what the plain one finds", _answers(parameters, matcher, xpaths, documents))
    reader = Reader(subscriptions.table.names, Limits(), "refuse")

    def once() -> None:
        matcher.engine.match_batch(reader.read(documents, borrowed=True))

    # Several passes, so that patterns have selected their access predicates.
    for _ in range(5):
        once()
    run.begin(f"matching {size:,} with {kind}", parameters.rounds)
    time = race({kind: once}, rounds=parameters.rounds, after_round=run.advance)[kind]
    # After all passes: many patterns select access predicates in a thread, and until then there are more candidates.
    before = matcher.statistics()["candidates"]
    matches = matcher.engine.match_batch(reader.read(documents, borrowed=True))[1].size
    candidates = matcher.statistics()["candidates"] - before
    each = 1e6 / len(documents)
    return {
        "kind": kind,
        "subscriptions": size,
        "distinct": len(subscriptions.table),
        "matches": matches / len(documents),
        "candidates": candidates / len(documents),
        "us": time.median * each,
        "us_low": time.interval[0] * each,
        "us_high": time.interval[1] * each,
        "build_s": build,
    }


def _answers(
    parameters: EngineValues, matcher: "Matcher", xpaths: list[str], documents: list[bytes]
) -> dict[str, object]:
    """The matches of a sample of the subscriptions on some documents, ours and the plain engine's."""
    import pathcast

    step = max(1, len(xpaths) // parameters.checked)
    sample = range(0, len(xpaths), step)
    few = pathcast.Subscriptions()
    few.add_many([xpaths[number] for number in sample], ids=[number + 1 for number in sample])
    plain = few.compile(engine="reference")
    some = documents[:20]
    asked = {number + 1 for number in sample}
    ours = [sorted(asked.intersection(matcher.match(document).ids.tolist())) for document in some]
    return {"ours": ours, "plain": [plain.match(document).ids.tolist() for document in some]}
