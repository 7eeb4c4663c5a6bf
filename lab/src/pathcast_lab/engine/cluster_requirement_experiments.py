"""Beyond one machine: what a hundred million subscriptions and a hundred thousand documents per second require.

Shards of distinct subscriptions are built, saved, opened and served one after the other, each in processes of its own
(single_shard_measurement.py). Two smaller shards predict what the large ones cost, and the large ones say what many of
them require (capacity_planning.py).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from pathcast_lab.harness import (
    Claim,
    Judgement,
    MissingRowError,
    Plot,
    Row,
    Rows,
    Run,
    check_matches,
    every,
    experiment,
    nitf_documents,
    number_in,
)

from .shard_cost_reasons import SHARD, SMALLER, why_not_predicted, why_unlike

if TYPE_CHECKING:
    from pathcast.documents.schema import Schema

    from .capacity_planning import PerDocument, Requirements
    from .single_shard_measurement import ShardCost

REQUIRED = "required"
READ_EACH, READ_ONCE = "each shard reads the documents", "documents are read once"
# How many paths of a shard, and of its documents, lxml confirms.
_SAMPLE_PATHS, _SAMPLE_DOCUMENTS = 100, 10
# From this size on, a worker's own code and libraries weigh little beside its index.
_FULL_SHARD = 1_000_000


@dataclass(frozen=True)
class Scale:
    """Two `smaller` shards predict the cost of `shards` shards of `size` distinct subscriptions.

    `subscriptions` and `rate` (documents per second) are the requirement; `seconds_apart` is how often a subscription
    that is selective enough for its reader gets a document. Up to `whole` subscriptions in all, an index without shards
    is compared.
    """

    smaller: tuple[int, ...] = (1_000, 5_000)
    size: int = 20_000
    shards: int = 3
    whole: int = 100_000
    documents: int = 100
    rounds: int = 50
    subscriptions: int = 100_000_000
    rate: int = 100_000
    seconds_apart: int = 60


def _predicted(column: str, prediction: str) -> Callable[[Rows], Judgement]:
    """A judge: a measured column of every shard is within a quarter of its prediction."""

    def judge(rows: Rows) -> Judgement:
        found = {
            f"for shard {row['shard']}": number_in(row, column) / number_in(row, prediction)
            for row in rows.where(part=SHARD)
        }
        return every(found, "{:.2f} of the prediction", least=0.8, most=1.25)

    return judge


def _alike(rows: Rows) -> Judgement:
    times = rows.where(part=SHARD).numbers("us")
    if len(times) < 2:
        raise MissingRowError("the run has one shard only")
    return every({"": max(times) / median(times)}, "{:.2f} times the median", most=1.25)


def _bytes_each(rows: Rows) -> Judgement:
    shards = Rows(row for row in rows.where(part=SHARD) if number_in(row, "size") >= _FULL_SHARD)
    if not shards:
        raise MissingRowError(f"the shards have fewer than {_FULL_SHARD:,} subscriptions")
    found = {f"for shard {row['shard']}": number_in(row, "memory_mb") * 1e6 / number_in(row, "size") for row in shards}
    return every(found, "{:.0f} bytes", most=500)


@experiment(
    "engine-scale",
    title="Beyond one machine: a hundred million subscriptions",
    small=Scale(),
    paper=Scale(smaller=(10_000, 100_000), size=1_000_000, shards=10, documents=400, rounds=200),
    claims=(
        Claim(
            "the memory of a worker is that predicted from smaller shards, within a quarter",
            "target",
            _predicted("memory_mb", "predicted_memory_mb"),
            "0.8 to 1.25",
        ),
        Claim(
            "the time per document and shard is that predicted from smaller shards, within a quarter",
            "target",
            _predicted("us", "predicted_us"),
            "0.8 to 1.25",
            why_not_predicted,
        ),
        Claim(
            "the slowest shard takes at most 1.25 times the time of the median shard",
            "target",
            _alike,
            "1.25 times",
            why_unlike,
        ),
        Claim(
            "a worker with a million subscriptions takes at most 500 bytes for each, Python and compiled code included",
            "target",
            _bytes_each,
            "500 bytes",
        ),
    ),
    plots=(
        Plot(
            "cores",
            "Cores for 100,000,000 subscriptions and 100,000 documents per second",
            y="cores",
            y_label="busy cores",
            series="series",
            x="size",
            x_label="subscriptions per shard",
            ours=(READ_EACH,),
            log="xy",
            only=lambda row: row["part"] == REQUIRED,
        ),
    ),
    show={
        "part": "what",
        "series": "how",
        "shard": "shard",
        "size": "subscriptions",
        "distinct": "distinct",
        "build_s": "built in s of CPU",
        "build_mb": "MB to build",
        "disk_mb": "MB on disk",
        "memory_mb": "MB of a worker",
        "predicted_memory_mb": "predicted",
        "read_us": "µs to read",
        "match_us": "µs to match",
        "us": "µs per document",
        "predicted_us": "predicted",
        "matches": "matches per document",
        "shards": "shards",
        "cores": "cores",
        "memory_gb": "GB in all",
        "deliveries": "deliveries per second",
        "to_shards_gb": "GB/s to shards",
        "to_subscribers_gb": "GB/s to subscribers",
    },
)
def engine_scale(run: Run, parameters: Scale) -> Iterator[Row]:
    """Shards of distinct paths are built and served one after the other, each by processes of their own; documents are
    read and matched in batches, with the ids of all matches. Times are CPU time, the best of several passes; memory is
    all that the serving process holds. A sample of the answers of each shard is compared with lxml's, and at small
    sizes all answers with those of one index without shards. Two smaller shards predict memory and the time to match
    of the large ones by a straight line that does not fall; reading takes as long for all. The requirement is computed
    from the measured shards: every document goes to every shard.
    """
    from .capacity_planning import rising_line
    from .distinct_path_variants import VARIANTS, draw_bases, variants

    small, large = parameters.smaller
    schema, documents = _workload(run, parameters)
    total = parameters.size * parameters.shards
    run.begin(f"{total:,} distinct subscriptions")
    per_shard = -(-parameters.size // VARIANTS)
    bases = draw_bases(schema, max(small, large, per_shard * VARIANTS * parameters.shards), run.seed)
    run.check("the bases of all shards are distinct", len(set(bases)) == len(bases))
    costs = {size: _measured(run, parameters, bases, size, documents) for size in parameters.smaller}
    memory, matching = (
        rising_line(*((size, value(costs[size])) for size in parameters.smaller)) for value in (_memory, _match)
    )
    reading = sum(cost.read for cost in costs.values()) / len(costs)
    for cost in costs.values():
        yield {"part": SMALLER, **_row(cost, documents)}
    shards = []
    for number in range(parameters.shards):
        own = bases[number * per_shard : (number + 1) * per_shard]
        shards.append(_measured(run, parameters, own, parameters.size, documents, number + 1))
        yield {
            "part": SHARD,
            "shard": number + 1,
            **_row(shards[-1], documents),
            "predicted_memory_mb": memory.at(parameters.size) / 1e6,
            "predicted_us": (reading + matching.at(parameters.size)) / len(documents) * 1e6,
        }
    if total <= parameters.whole:
        xpaths = [
            xpath
            for number in range(parameters.shards)
            for xpath in variants(bases[number * per_shard : (number + 1) * per_shard], parameters.size, run.seed)
        ]
        _check_whole(run, parameters, xpaths, shards, documents)
    yield from _requirements(run, parameters, list(costs.values()), shards, documents)


def _workload(run: Run, parameters: Scale) -> tuple["Schema", list[bytes]]:
    from pathcast.workloads import generate_documents, news_schema, schema_from_dtd

    documents = nitf_documents(run.data)[: parameters.documents]
    dtd = run.data / "nitf" / "nitf-2-5.dtd" if run.data else None
    if documents and dtd is not None and dtd.is_file():
        return schema_from_dtd(dtd, root="nitf"), documents
    run.note("The NITF documents are not on this machine: generated news stand in for them.")
    return news_schema(), list(generate_documents(news_schema(), parameters.documents, seed=run.seed))


def _measured(
    run: Run, parameters: Scale, bases: Sequence[str], size: int, documents: Sequence[bytes], number: int = 0
) -> "ShardCost":
    """The cost of a shard, after a sample of its answers is compared with lxml's."""
    from lxml import etree

    from .distinct_path_variants import variants
    from .single_shard_measurement import measure_shard

    run.begin(f"shard {number} of {size:,} subscriptions" if number else f"a smaller shard, {size:,} subscriptions")
    cost = measure_shard(bases, size, run.seed, documents, rounds=parameters.rounds, checked=_SAMPLE_DOCUMENTS)
    run.check("all subscriptions of a shard are distinct patterns", cost.distinct == size, f"{cost.distinct:,}")
    xpaths = variants(bases, size, run.seed)
    matched = sorted({found for ids in cost.answers.ids for found in ids})
    # Half of the sample matches some document, so that the check is not about absent matches alone.
    half = _SAMPLE_PATHS // 2
    asked = {*matched[:: max(1, len(matched) // half)][:half], *range(1, size + 1, max(1, size // half))}
    ours = [sorted(asked.intersection(ids)) for ids in cost.answers.ids]
    paths = {number: etree.XPath(f"boolean({xpaths[number - 1]})") for number in sorted(asked)}
    trees = [etree.fromstring(document).getroottree() for document in documents[:_SAMPLE_DOCUMENTS]]
    theirs = [[number for number, path in paths.items() if path(tree)] for tree in trees]
    check_matches(run, "on a sample, lxml", ours, theirs)
    return cost


def _check_whole(
    run: Run, parameters: Scale, xpaths: list[str], shards: Sequence["ShardCost"], documents: Sequence[bytes]
) -> None:
    import pathcast

    run.begin(f"one index of {len(xpaths):,} subscriptions")
    subscriptions = pathcast.Subscriptions()
    subscriptions.add_many(xpaths)
    found = list(subscriptions.compile().match_many(list(documents)))
    whole = [matches.ids.tolist() for matches in found[:_SAMPLE_DOCUMENTS]]
    joined = [
        [number * parameters.size + one for number, shard in enumerate(shards) for one in shard.answers.ids[at]]
        for at in range(len(whole))
    ]
    check_matches(run, "an index without shards", joined, whole)
    counts = {
        "in shards": sum(shard.answers.matches for shard in shards),
        "whole": sum(each.ids.size for each in found),
    }
    run.check_equal("shards and an index without them find as many matches", counts)


def _memory(cost: "ShardCost") -> float:
    return cost.memory


def _match(cost: "ShardCost") -> float:
    return cost.match


def _seconds(cost: "ShardCost") -> float:
    return cost.read + cost.match


def _row(cost: "ShardCost", documents: Sequence[bytes]) -> dict[str, float]:
    each = 1e6 / len(documents)
    return {
        "size": cost.size,
        "distinct": cost.distinct,
        "build_s": cost.build,
        "build_mb": cost.build_memory / 1e6,
        "disk_mb": cost.disk / 1e6,
        "memory_mb": cost.memory / 1e6,
        "read_us": cost.read * each,
        "match_us": cost.match * each,
        "us": _seconds(cost) * each,
        "matches": cost.answers.matches / len(documents),
    }


def _per_document(costs: Sequence["ShardCost"], documents: int) -> "PerDocument":
    """The mean of shards of one size; the memory is that of the largest."""
    from .capacity_planning import PerDocument

    count = len(costs)
    return PerDocument(
        size=costs[0].size,
        read=sum(cost.read for cost in costs) / count / documents,
        match=sum(cost.match for cost in costs) / count / documents,
        matches=sum(cost.answers.matches for cost in costs) / count / documents,
        memory=max(cost.memory for cost in costs),
    )


def _requirements(
    run: Run,
    parameters: Scale,
    smaller: Sequence["ShardCost"],
    shards: Sequence["ShardCost"],
    documents: Sequence[bytes],
) -> Iterator[Row]:
    """The shards that a requirement needs, for each measured size; the report's notes describe the largest."""
    from .capacity_planning import required

    document_bytes = sum(map(len, documents)) / len(documents)
    for costs in (*([one] for one in smaller), shards):
        found = required(
            _per_document(costs, len(documents)),
            parameters.subscriptions,
            parameters.rate,
            document_bytes=document_bytes,
            id_bytes=costs[0].id_bytes,
        )
        for series, cores in ((READ_EACH, found.cores), (READ_ONCE, found.cores_read_once)):
            yield {
                "part": REQUIRED,
                "series": series,
                "size": costs[0].size,
                "shards": found.shards,
                "cores": cores,
                "memory_mb": found.memory_per_worker / 1e6,
                "memory_gb": found.memory / 1e9,
                "matches": found.matches,
                "deliveries": found.deliveries,
                "to_shards_gb": found.bytes_to_shards / 1e9,
                "to_subscribers_gb": found.bytes_to_subscribers / 1e9,
            }
    _note_run(run, shards, len(documents))
    _note(run, parameters, found, shards[0].size, document_bytes)


def _note_run(run: Run, shards: Sequence["ShardCost"], documents: int) -> None:
    from .capacity_planning import short

    run.note(
        f"The {len(shards)} shards together, {sum(shard.distinct for shard in shards):,} distinct subscriptions, took "
        f"{short(sum(map(_memory, shards)), 'B')} in as many workers, "
        f"{short(sum(shard.disk for shard in shards), 'B')} on disk, "
        f"{short(sum(shard.build for shard in shards))} s to build, and "
        f"{short(sum(map(_seconds, shards)) / documents * 1e6)} µs per document for "
        f"{short(sum(shard.answers.matches for shard in shards) / documents)} matches."
    )


def _note(run: Run, parameters: Scale, found: "Requirements", size: int, document_bytes: float) -> None:
    from .capacity_planning import short

    worker, workers = short(found.memory_per_worker, "B"), short(found.memory, "B")
    run.note(
        f"{parameters.subscriptions:,} such subscriptions and {parameters.rate:,} documents per second require "
        f"{found.shards:,} shards of {size:,}, {worker} per worker, {workers} for one worker per shard, and "
        f"{short(found.cores)} busy cores, thus at least {found.workers_per_shard} per shard; or "
        f"{short(found.cores_read_once)} cores if documents reach the shards already read."
    )
    to_shards, ids = short(found.bytes_to_shards, "B/s"), short(found.bytes_of_ids, "B/s")
    run.note(
        f"A document has {short(document_bytes, 'B')}, and {short(found.matches)} of these subscriptions match it: "
        f"{short(found.deliveries)} deliveries per second, {short(found.per_subscription)} per subscription. "
        f"Documents to shards are {to_shards}, ids of matches {ids}, documents to subscribers "
        f"{short(found.bytes_to_subscribers, 'B/s')}."
    )
    selective = parameters.subscriptions / parameters.seconds_apart
    run.note(
        f"If each subscription gets one document in {parameters.seconds_apart} s instead, {short(selective)} "
        f"deliveries per second and {short(selective * document_bytes, 'B/s')} to subscribers remain."
    )
