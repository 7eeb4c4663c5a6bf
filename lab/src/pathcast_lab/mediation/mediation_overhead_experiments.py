"""The cost of mediation over reading and matching, with the default engine, and how much a stream would hold back.

Four runs over the same documents, interleaved: the original against as many subscriptions to the publisher's own
schema, which is what there is without mediation; the rewritten document against those to the global schema, read like
any other; mediation; and, where only plain paths are asked for, mediation by label paths.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

from pathcast_lab.harness import (
    Claim,
    Judgement,
    Plot,
    Row,
    Rows,
    Run,
    every,
    experiment,
    judged,
    number_in,
    race,
    ratio,
)

from .mediation_workloads import mediator_of, subscriptions_to

if TYPE_CHECKING:
    from pathcast.matching import Subscriptions
    from pathcast.mediation import Mediator
    from pathcast_lab.workloads import Catalogue

_TWIGS, _PLAIN = "nested paths", "plain paths"
_NESTED = {_TWIGS: 0.2, _PLAIN: 0.0}


@dataclass(frozen=True)
class Cost:
    """Documents of `bytes` bytes in groups of `group`, of this many catalogues."""

    subscriptions: tuple[int, ...] = (1_000,)
    kinds: tuple[str, ...] = (_TWIGS, _PLAIN)
    bytes: int = 20_000
    group: int = 16
    catalogues: int = 6
    rounds: int = 5


def _adds(kind: str, most: float) -> Callable[[Rows], Judgement]:
    """A judge: mediation adds at most this part, for every catalogue, in the way that this kind of subscriptions
    allows.
    """

    def judge(rows: Rows) -> Judgement:
        found = {
            f"for {row['schema']}, {row['subscriptions']:,} subscriptions": number_in(row, "own_times") - 1
            for row in rows.where(kind=kind)
            if row["by_paths"] == (kind == _PLAIN)
        }
        return (
            every(found, "{:+.0%} of the time", most=most)
            if found
            else judged(None, "no catalogue's mapping is of this kind")
        )

    return judge


def _held(rows: Rows) -> Judgement:
    shares = rows.where(kind=_TWIGS).numbers("held_share")
    middle = sorted(shares)[len(shares) // 2]
    return judged(middle <= 0.05, f"median {middle:.1%} of the elements, at most {max(shares):.1%}")


@experiment(
    "mediation-cost",
    title="Mediation: overhead beside reading and matching",
    small=Cost(),
    paper=Cost(subscriptions=(1_000, 4_000), catalogues=40, rounds=9),
    claims=(
        Claim("rewriting adds at most 50 % to reading and matching", "target", _adds(_TWIGS, 0.5), "50 %"),
        Claim("mediation of label paths adds at most 10 %", "target", _adds(_PLAIN, 0.1), "10 %"),
        Claim("a stream holds back about 5 % of most documents", "Ni, Chan 2009, §5.2.1", _held, "5 %"),
    ),
    plots=(
        Plot(
            "times",
            "Mediation against the publisher's own schema",
            y="own_times",
            y_label="times as long",
            series="kind",
            x="number",
            x_label="catalogue",
            ours=(_TWIGS,),
        ),
    ),
    show={
        "schema": "schema",
        "kind": "subscriptions",
        "subscriptions": "how many",
        "by_paths": "by label paths",
        "own_us": "own schema, µs",
        "global_us": "rewritten document, µs",
        "mediated_us": "mediated, µs",
        "own_times": "times own schema",
        "global_times": "times rewritten",
        "held_share": "held back",
    },
)
def cost(run: Run, parameters: Cost) -> Iterator[Row]:
    """Documents are matched in groups; times are per document. The overhead is the time of mediation against that of
    matching the original with as many subscriptions to the publisher's own schema. Elements held back are the most that
    a stream would hold back, as a part of the document.
    """
    from pathcast_lab.workloads import GLOBAL, generate_catalogues

    catalogues = generate_catalogues(parameters.catalogues, seed=run.seed)
    mediator = mediator_of(catalogues)
    for kind, count in product(parameters.kinds, parameters.subscriptions):
        asked = subscriptions_to(GLOBAL, count, run.seed, nested=_NESTED[kind])
        run.begin(f"{count:,} subscriptions with {kind}", len(catalogues))
        for number, catalogue in enumerate(catalogues, 1):
            own = subscriptions_to(catalogue.schema, count, run.seed, nested=_NESTED[kind])
            found = _measured(run, parameters, mediator, catalogue, asked, own)
            yield {"schema": catalogue.name, "number": number, "kind": kind, "subscriptions": count, **found}
            run.advance()


def _measured(
    run: Run,
    parameters: Cost,
    mediator: "Mediator",
    catalogue: "Catalogue",
    asked: "Subscriptions",
    own: "Subscriptions",
) -> Row:
    """The documents of one catalogue: by its own schema, in the global schema, and mediated."""
    from pathcast.documents import read_batch

    name = catalogue.name
    documents = [catalogue.document(parameters.bytes, seed) for seed in range(parameters.group)]
    rewritten = [mediator.rewrite(document, name) for document in documents]
    mediated, plain, apart = mediator.compile(asked), asked.compile(), own.compile()
    rivals = {
        "own": lambda: [each.ids.tolist() for each in apart.match_many(documents)],
        "global": lambda: [each.ids.tolist() for each in plain.match_many(rewritten)],
        "mediated": lambda: [each.ids.tolist() for each in mediated.match_many(documents, name)],
    }
    run.check_equal(
        "mediation matches what the rewritten document matches",
        {key: rivals[key]() for key in ("global", "mediated")},
    )
    times = race(rivals, rounds=parameters.rounds)
    found = mediated.statistics()
    return {
        "by_paths": found["by paths"] == found["documents"],
        **{f"{key}_us": 1e6 * time.median / len(documents) for key, time in times.items()},
        "own_times": ratio(times["mediated"], times["own"]).median,
        "global_times": ratio(times["mediated"], times["global"]).median,
        "held_share": found["held"] * len(documents) / len(read_batch(documents).name),
    }
