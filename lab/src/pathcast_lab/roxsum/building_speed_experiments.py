"""RoXSum: how fast documents are added to a batch, from bytes and from elements that were read before."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pathcast_lab.harness import Claim, Judgement, Plot, Row, Rows, Run, every, experiment, race

from .roxsum_workloads import COLLECTIONS, PROSE, collection

if TYPE_CHECKING:
    from pathcast.roxsum import RoXSum

READ, BATCH, ONE = "bytes to elements", "elements into a batch", "bytes into a batch, one by one"


@dataclass(frozen=True)
class Build:
    """`documents` are the sizes of batches; this many `alone` are added one by one."""

    documents: tuple[int, ...] = (1_000, 10_000)
    alone: int = 1_000
    rounds: int = 7
    collections: tuple[str, ...] = (*COLLECTIONS, PROSE)


def _rate(least: float) -> Callable[[Rows], Judgement]:
    def judge(rows: Rows) -> Judgement:
        found = {
            f"for {size:,} documents ({name})": rows.number("rate", collection=name, documents=size, what=BATCH)
            for name in rows.distinct("collection")
            for size in rows.distinct("documents")
        }
        return every(found, "{:,.0f} documents per second", least=least)

    return judge


@experiment(
    "roxsum-build",
    title="RoXSum: speed of building",
    small=Build(),
    paper=Build(documents=(1_000, 10_000, 100_000)),
    claims=(
        Claim(
            "at least 20,000 documents per second from elements into a batch",
            "target",
            _rate(20_000),
            "20,000 per second",
        ),
    ),
    plots=(
        Plot(
            name="time",
            title="Time per document, one core",
            y="us",
            y_label="µs per document",
            series="what",
            x="documents",
            x_label="documents in a batch",
            ours=(BATCH,),
            panel="collection",
            log="xy",
        ),
    ),
    show={
        "collection": "collection",
        "documents": "documents",
        "what": "what",
        "us": "µs per document",
        "rate": "documents per second",
        "bytes_each": "bytes per document",
    },
)
def roxsum_build(run: Run, parameters: Build) -> Iterator[Row]:
    """Documents are read into element arrays, and these put into a batch: summary, extents, tokens and values.

    The batch must give back every document byte for byte, and one that grew document by document must be the same.
    """
    from pathcast.documents import read_batch
    from pathcast.roxsum import RoXSum

    for name in parameters.collections:
        run.begin(f"documents of {name}")
        everything = collection(name, max(parameters.documents), run.seed)
        for size in parameters.documents:
            documents = everything[:size]
            few = documents[: parameters.alone]
            elements = read_batch(documents)
            batch = RoXSum.build(elements)
            run.check("every document comes back byte for byte", batch.documents() == documents)
            alone = _one_by_one(few)
            run.check("one by one gives the same summary", alone.summary() == RoXSum.build(few).summary())
            run.begin(f"{name}: {size:,} documents", parameters.rounds)
            times = race(
                {
                    READ: lambda documents=documents: read_batch(documents),  # type: ignore[misc]
                    BATCH: lambda elements=elements: RoXSum.build(elements).extents,  # type: ignore[misc]
                    ONE: lambda few=few: _one_by_one(few),  # type: ignore[misc]
                },
                rounds=parameters.rounds,
                after_round=run.advance,
            )
            for what, time in times.items():
                each = time.median / (len(few) if what == ONE else size)
                yield {
                    "collection": name,
                    "documents": size,
                    "what": what,
                    "us": each * 1e6,
                    "rate": 1 / each,
                    "bytes_each": sum(map(len, documents)) / size,
                }


def _one_by_one(documents: list[bytes]) -> "RoXSum":
    from pathcast.roxsum import RoXSum

    batch = RoXSum.build([])
    for document in documents:
        batch.add(document)
    return batch
