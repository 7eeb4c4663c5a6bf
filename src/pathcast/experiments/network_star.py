"""Overlay traffic of joins of up to four tables: the select-join paper's §6.3, on a content-based network."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ..joins.words import TO
from ..network import ContentNetwork
from ..transmission import Topology
from ..workloads.joins import JoinWorkload
from ..workloads.multiway_joins import star_joins
from .claim import Claim, Judgement, judged
from .network_overlay import Cost, Counter, events, filled, filters_of, overlay, placed, subscriptions_of
from .plot import Plot
from .registry import experiment
from .rows import MissingRowError, Row, Rows
from .run import Run

OURS = "ref-sj-clu+"
SCHEMES = ("rel-sel", "ref-j", "enum-j", OURS)


@dataclass(frozen=True)
class Star:
    """A fact table and three dimensions. `checked`: subscriptions a shape of the network that is simulated."""

    subscriptions: int = 3_400
    facts: int = 2_500
    dimension: int = 100
    payload: int = 100
    fact_payloads: tuple[int, ...] = (0, 100)
    insertions: int = 40
    physical: int = 2_000
    hosts: int = 100
    checked: int = 20


def _checked(
    run: Run, workload: JoinWorkload, scheme: str, parameters: Star, topology: Topology, nodes: npt.NDArray[np.int64]
) -> None:
    few = subscriptions_of(workload, parameters.checked)
    server = few.server(scheme)
    counter, network = Counter(topology, nodes, filled(server, few)), ContentNetwork.build(topology)
    network.register_many(
        (int(nodes[id - 1]), one, id) for id in range(1, len(few) + 1) for one in filters_of(server, id)
    )
    counted, sent = Cost(), [0, 0, 0]
    for _, messages in events(server, few, min(15, parameters.insertions)):
        for message in messages:
            if TO in message:
                continue
            counter.count(message, counted)
            trace = network.publish(message)
            sent = [sent[0] + trace.hops, sent[1] + trace.bytes, sent[2] + len(trace.deliveries)]
    run.check_equal(
        "counted hops, bytes and deliveries are those of the simulated network",
        {"counted": [counted.hops, counted.bytes, counted.deliveries], "sent": sent},
    )


def _times(wanted: dict[str, float], fact_payload: int) -> Callable[[Rows], Judgement]:
    def judge(rows: Rows) -> Judgement:
        found = {
            str(row["scheme"]): float(row["times"])  # type: ignore[arg-type]
            for row in rows
            if row["fact_payload"] == fact_payload and row["scheme"] in wanted
        }
        if len(found) < len(wanted):
            raise MissingRowError(f"not all schemes with {fact_payload} bytes a fact")
        text = ", ".join(f"{scheme} {value:.1f} ×" for scheme, value in found.items())
        return judged(all(found[scheme] >= least for scheme, least in wanted.items()), text)

    return judge


@experiment(
    "network-fig14",
    title="Select-joins, Figure 14: traffic of joins in a star schema",
    small=Star(),
    paper=replace(
        Star(), subscriptions=170_000, facts=25_000, dimension=1_000, insertions=1_000, physical=20_000, hosts=1_000
    ),
    claims=(
        Claim("without payload of facts, Ref-SJ-Clu+ is 5, 9 and 127 times below Rel-Sel, Ref-J and Enum-J",
              "select-join paper, §6.3", _times({"rel-sel": 5, "ref-j": 9, "enum-j": 127}, 0)),
        Claim("with payload, it is below all of them still", "select-join paper, §6.3",
              _times({"rel-sel": 1, "ref-j": 1, "enum-j": 1}, 100)),
    ),
    plots=(
        Plot("bytes", "Bytes an insertion between nodes", y="bytes", y_label="bytes", series="scheme", x="fact_payload",
             x_label="payload of facts", ours=(OURS,), log="y"),
    ),
    show={"fact_payload": "payload of facts", "scheme": "scheme", "bytes": "bytes an insertion", "hops": "hops",
          "deletion_bytes": "bytes a deletion", "times": f"times {OURS}"},
)  # fmt: skip
def network_fig14(run: Run, parameters: Star) -> Iterator[Row]:
    """A mix of joins over a fact table, which changes, and three dimensions, on a tree over hosts of an internet-like
    graph. Counted from who matches, after a network that carries every packet has given the same for some of the
    subscriptions; what is for one subscriber alone is one hop.
    """
    topology, _ = overlay(parameters.physical, parameters.hosts, run.seed)
    run.note(
        "Unicast grows with the number of subscriptions, which the paper has 170,000 of; what a tree carries does not."
    )
    for fact_payload in parameters.fact_payloads:
        workload = star_joins(
            parameters.subscriptions, parameters.insertions, seed=run.seed, facts=parameters.facts,
            dimension=parameters.dimension, payload=parameters.payload, fact_payload=fact_payload,
        )  # fmt: skip
        nodes = placed(len(workload), topology, run.seed)
        found: dict[str, dict[str, Cost]] = {}
        for scheme in run.steps(f"payload of facts {fact_payload}", SCHEMES):
            _checked(run, workload, scheme, parameters, topology, nodes)
            server = workload.server(scheme)
            counter = Counter(topology, nodes, filled(server, workload))
            found[scheme] = {"insert": Cost(), "delete": Cost()}
            for change, messages in events(server, workload, parameters.insertions):
                for message in messages:
                    counter.count(message, found[scheme][change])
        ours = found[OURS]["insert"].bytes
        for scheme, costs in found.items():
            yield {
                "fact_payload": fact_payload,
                "scheme": scheme,
                "bytes": costs["insert"].bytes / parameters.insertions,
                "hops": costs["insert"].hops / parameters.insertions,
                "deletion_bytes": costs["delete"].bytes / parameters.insertions,
                "times": costs["insert"].bytes / ours if ours else None,
            }
