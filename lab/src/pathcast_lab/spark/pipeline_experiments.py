"""The whole pipeline on Spark: the cost of each stage added to matching, and the recovery time of a stream.

Documents are course catalogues of forty publishers, each with a schema of its own. Subscriptions ask for a value of the
global schema, `//course[title = 'ancient rivers']`; a tenth of them for one that occurs in the documents. Subscribers
are spread evenly over the routers of a complete tree.
"""

import random
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pathcast_lab.harness import Claim, Judgement, Plot, Row, Rows, Run, experiment, judged, race, ratio
from pathcast_lab.mediation.mediation_workloads import mediator_of

if TYPE_CHECKING:
    from pathcast.mediation import Mediator

    from .measured_pipelines import PipelineStage

IDENTITY = "identity mapInArrow"
ONLY, MEDIATED, SUMMARISED = "documents only", "+ mediation", "+ mediation, summaries"
ROUTED, ALL = "+ mediation, routing", "+ mediation, summaries, routing"
RECOVERY = "recovery"
_LIVELY = 0.1


@dataclass(frozen=True)
class SparkPipeline:
    """`documents` pass in one measurement, `distinct` of them differ; the overlay is a tree of this many `levels`."""

    documents: int = 6_000
    distinct: int = 400
    publishers: int = 40
    bytes: int = 8_000
    subscriptions: int = 20_000
    subscribers: int = 1_000
    levels: int = 4
    keep: float = 1.0
    policies: tuple[str, ...] = ()
    cores: int = 2
    rounds: int = 9
    micro_batches: int = 8


def _half(rows: Rows) -> Judgement:
    share = rows.number("share", series=ROUTED)
    ours, only = (rows.number("documents_s", series=series) for series in (ROUTED, ONLY))
    return judged(share >= 0.5, f"{100 * share:.0f} % of it remain ({ours:,.0f} against {only:,.0f} documents/s)")


def _recovered(rows: Rows) -> Judgement:
    row = rows.one(series=RECOVERY)
    again = int(float(row["repeated"] or 0))
    seconds, micro_batch, start = (float(row[name] or 0) for name in ("seconds", "micro_batch_s", "start_s"))
    said = f"{again} repeated; {seconds:.1f} s to the end of the next micro-batch, {start:.1f} s for the first start"
    return judged(again <= 1 and seconds <= start + micro_batch, f"{said}, {micro_batch:.1f} s per micro-batch")


@experiment(
    "spark-pipeline",
    title="The whole pipeline on Spark, stage by stage",
    small=SparkPipeline(),
    paper=SparkPipeline(
        documents=20_000, distinct=2_000, subscriptions=100_000, policies=("L+s-sd",), rounds=9, micro_batches=20
    ),
    claims=(
        Claim(
            "mediation and routing together cost no more than half of documents-only throughput",
            "target",
            _half,
            "50 %",
        ),
        Claim("a stream that was stopped continues within one micro-batch of where it was", "target", _recovered, "1"),
    ),
    plots=(
        Plot(
            "speed",
            "Documents per second, stage by stage",
            y="documents_s",
            y_label="documents/s",
            series="series",
            kind="bars",
            ours=(ROUTED, ALL),
            floors=(IDENTITY,),
            only=lambda row: row.get("documents_s") is not None,
        ),
    ),
    show={
        "series": "what",
        "documents_s": "documents/s",
        "share": "share of documents only",
        "deliveries": "deliveries per document",
        "seconds": "s",
        "micro_batch_s": "per micro-batch, s",
        "start_s": "first start, s",
        "repeated": "micro-batches repeated",
    },
)
def spark_pipeline(run: Run, parameters: SparkPipeline) -> Iterator[Row]:
    """Documents are cached in Spark's memory and pass through one stage more each time, to a sink that discards rows.
    Documents only: matched as they are, against an index of all subscriptions. Mediation: matched in the global schema.
    Summaries: one message per subscriber and partition. Routing: through the overlay instead of one index. Documents
    are repeated, so engines' memos are warm. The stream runs the pipeline file, is stopped in the middle of a
    micro-batch after half of them, and is started again in the same session.
    """
    from .measured_pipelines import PipelineStage

    run.begin("documents, index and overlay")
    work = Workload.make(run, parameters)
    with tempfile.TemporaryDirectory(prefix="pathcast-spark-pipeline-") as name:
        folder = Path(name)
        expected = work.prepare(folder, parameters)
        given = [work.documents[number % len(work.documents)] for number in range(parameters.documents)]
        stage = PipelineStage(parameters.cores, given, folder)
        try:
            found = {
                "one process": [(n, who) for n in range(len(given)) for who in expected[n % len(expected)]],
                "one index": stage.found(stage.matched(mediated=True)),
                "overlay, L": stage.found(stage.routed("L")),
            }
            run.check_equal("deliveries are those of a single process", found)
            deliveries = len(found["one process"]) / len(given)
            yield from _speeds(run, parameters, stage, deliveries)
            run.begin("recovery")
            recovery = stage.recovery(given, parameters.micro_batches)
            size = len(given) // parameters.micro_batches * parameters.micro_batches
            wanted = sum(len(expected[number % len(expected)]) for number in range(size))
            run.check_equal(
                "a stream that was stopped delivers everything once", {"stream": recovery.deliveries, "one": wanted}
            )
        finally:
            stage.close()
    yield {
        "series": RECOVERY,
        "subscriptions": parameters.subscriptions,
        "seconds": recovery.recovered,
        "micro_batch_s": recovery.micro_batch,
        "start_s": recovery.started,
        "repeated": recovery.begun + 1 - recovery.resumed if recovery.resumed <= recovery.begun else 0,
    }


def _speeds(run: Run, parameters: SparkPipeline, stage: "PipelineStage", deliveries: float) -> Iterator[Row]:
    numbers, away = stage.numbers, stage.throw_away
    rivals: dict[str, Callable[[], object]] = {
        IDENTITY: lambda: away(stage.identity()),
        ONLY: lambda: away(numbers(stage.matched(mediated=False))),
        MEDIATED: lambda: away(numbers(stage.matched(mediated=True))),
        ROUTED: lambda: away(numbers(stage.routed("L"))),
    }
    # Whole documents go to every target, which takes much longer: fewer rounds.
    messages: dict[str, Callable[[], object]] = {
        SUMMARISED: lambda: away(stage.summarised(stage.matched(mediated=True))),
        ALL: lambda: away(stage.summarised(stage.routed("L"))),
    }
    run.begin("stages", parameters.rounds)
    times = race(rivals, rounds=parameters.rounds, at_least=0, after_round=run.advance)
    run.begin("summaries")
    times |= race(messages, rounds=1, at_least=0)
    for policy in parameters.policies:
        series = f"{ROUTED}, {policy}"
        run.begin(series)
        times |= race({series: partial(_thrown_away, stage, policy)}, rounds=1, at_least=0)
    for series, time in times.items():
        yield {
            "series": series,
            "subscriptions": parameters.subscriptions,
            "deliveries": deliveries,
            "documents_s": parameters.documents / time.median,
            # Round by round where both run in turn, so that noise which hits both cancels.
            "share": ratio(times[ONLY], time).median if series in rivals else times[ONLY].median / time.median,
        }


def _thrown_away(stage: "PipelineStage", policy: str) -> None:
    stage.throw_away(stage.numbers(stage.routed(policy)))


@dataclass(frozen=True)
class Workload:
    """Documents with their publishers, and subscriptions with their subscribers."""

    documents: list[tuple[str, bytes]]
    subscriptions: list[tuple[str, str]]
    mediator: "Mediator"

    @classmethod
    def make(cls, run: Run, parameters: SparkPipeline) -> "Workload":
        from lxml import etree

        from pathcast_lab.workloads import generate_catalogues

        catalogues = generate_catalogues(parameters.publishers, seed=run.seed)
        mediator = mediator_of(catalogues)
        documents = [
            (
                catalogues[number % len(catalogues)].name,
                catalogues[number % len(catalogues)].document(parameters.bytes, number),
            )
            for number in range(parameters.distinct)
        ]
        values: set[tuple[str, str, str]] = set()
        for publisher, document in documents:
            for element in etree.fromstring(mediator.rewrite(document, publisher)).iter():
                above = element.getparent()
                if above is not None and (element.text or "").strip():
                    values.add((above.tag, element.tag, element.text.strip()))
        draw, known = random.Random(run.seed), sorted(values)
        subscriptions = []
        for _ in range(parameters.subscriptions):
            above, tag, value = draw.choice(known)
            value = value if draw.random() < _LIVELY else f"{value}, and what nobody writes"
            subscriptions.append((f"//{above}[{tag} = '{value}']", f"reader {draw.randrange(parameters.subscribers)}"))
        return cls(documents, subscriptions, mediator)

    def prepare(self, folder: Path, parameters: SparkPipeline) -> list[list[str]]:
        """Write mediator, index and overlay; return the subscribers of each document by a single process."""
        from pathcast.matching import Subscriptions
        from pathcast.routing import Overlay
        from pathcast.spark.overlay.published_overlays import publish_overlay

        self.mediator.save(folder / "mediator")
        subscriptions = Subscriptions()
        subscriptions.add_many([xpath for xpath, _ in self.subscriptions], [who for _, who in self.subscriptions])
        subscriptions.compile().save(folder / "index")
        overlay = Overlay.tree(parameters.levels)
        routers = overlay.routers
        at: dict[str, list[tuple[str, str]]] = {}
        for xpath, who in self.subscriptions:
            at.setdefault(routers[int(who.split()[1]) % len(routers)], []).append((xpath, who))
        for router, wanted in at.items():
            overlay.subscribe_many(router, [xpath for xpath, _ in wanted], [who for _, who in wanted])
        overlay.advertise(parameters.keep)
        publish_overlay(overlay, folder / "overlay")
        matcher = self.mediator.compile(subscriptions)
        return [sorted(set(matcher.match(document, name).subscribers)) for name, document in self.documents]
