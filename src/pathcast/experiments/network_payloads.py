"""Payloads that pass no link twice: the select-join paper's §6.2, every packet simulated in a network of zones."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from ..joins import JoinServer
from ..messages import Message
from ..network import ContentNetwork, PayloadLimits
from ..transmission import Topology, Underlay
from ..workloads.joins import ALIKE, JoinWorkload, binary_joins
from .claim import Claim, Judgement, judged
from .network_overlay import events, filters_of, overlay
from .network_zones import space_of, turned, zoned
from .plot import Plot
from .registry import experiment
from .rows import MissingRowError, Row, Rows
from .run import Run

OURS, STRAWMAN = "ref-sj-clu+", "ref-j+"
PLAIN = "CN"
# What a copy has more in a CN*: two ids, the source, and an acknowledgement with two ids.
HEADER = 2 * 16 + 24 + 33


@dataclass(frozen=True)
class Payloads:
    """`repositories`: how many payloads a node keeps; the directory has 512 kB.

    Every packet is simulated, so that the paper's scale has fewer subscriptions than the paper.
    """

    subscriptions: int = 300
    base_rows: int = 100
    joined_rows: int = 500
    payload: int = 1_000
    repositories: tuple[int, ...] = (0, 20, 400, 3_100)
    schemes: tuple[str, ...] = (OURS, STRAWMAN)
    insertions: int = 1_000
    physical: int = 500
    hosts: int = 24


PAPER = Payloads(
    20_000, 500, 5_100, repositories=(0, 100, 400, 1_600, 3_100), insertions=500, physical=20_000, hosts=1_000,
)  # fmt: skip


@dataclass(frozen=True)
class _Flow:
    """What a scheme's messages came to in one network, after the first half of the events had passed."""

    bytes: float
    server: float
    hop_latency: float
    hops: int
    got: tuple[int, ...]


def _measured(network: ContentNetwork, server: JoinServer, workload: JoinWorkload, parameters: Payloads) -> _Flow:
    turned(network, space_of(server))
    root = network.topology.number(network.topology.root)
    for id in range(1, len(workload) + 1):
        network.register_together(root, filters_of(server, id), id)
    size = stress = hops = deliveries = further = 0
    got: list[int] = []
    for number, (_, messages) in enumerate(events(server, workload, parameters.insertions)):
        for message in messages:
            trace = network.publish(message)
            got.append(len(trace.deliveries))
            if number < parameters.insertions:
                continue
            size += trace.bytes
            stress += int(trace.traffic.sent()[root])
            hops += trace.hops
            deliveries += len(trace.deliveries)
            further += sum(one.hops for one in trace.deliveries)
            _whole(message, trace.deliveries[-1].message if trace.deliveries else message)
    pairs = parameters.insertions / 2
    return _Flow(size / pairs, stress / pairs, further / max(1, deliveries), hops, tuple(got))


def _whole(message: Message, delivered: Message) -> None:
    if delivered != message:
        raise AssertionError("a subscriber got another message than was published")


def payloads(run: Run, parameters: Payloads) -> Iterator[Row]:
    """Rows: a scheme without and with a repository of some size each."""
    topology, underlay = overlay(parameters.physical, parameters.hosts, run.seed)
    workload = binary_joins(
        parameters.subscriptions,
        parameters.insertions,
        seed=run.seed,
        base_rows=parameters.base_rows,
        joined_rows=parameters.joined_rows,
        payload=parameters.payload,
        setting=ALIKE,
    )
    for scheme in parameters.schemes:
        plain: _Flow | None = None
        for repository in run.steps(scheme, [None, *parameters.repositories]):
            network = _network(topology, underlay, workload, parameters, repository, run.seed)
            flow = _measured(network, workload.server(scheme), workload, parameters)
            plain = plain or flow
            run.check_equal(
                "the same messages reach as many subscribers with and without CN*", {"CN": plain.got, "CN*": flow.got}
            )
            counts = [one.payloads.counts for one in network.forwarders if one.payloads is not None]
            yield {
                "scheme": scheme,
                "network": PLAIN if repository is None else "CN*",
                "repository": repository,
                "bytes": flow.bytes,
                "server": flow.server,
                "hop_latency": flow.hop_latency,
                "headers": HEADER * flow.hops / (parameters.insertions / 2),
                "fetched": sum(one.fetched for one in counts),
                "evicted": sum(one.evicted for one in counts),
                "less": plain.bytes / flow.bytes,
                "less_stress": plain.server / flow.server,
            }


def _network(
    topology: Topology, underlay: Underlay, workload: JoinWorkload, parameters: Payloads, entries: int | None, seed: int
) -> ContentNetwork:
    limits = False if entries is None else PayloadLimits(repository_entries=entries, repository_bytes=None)
    return zoned(topology, underlay, workload.batches[0], 4 * parameters.hosts, seed, limits)


def _at(rows: Rows, scheme: str, repository: int | None, column: str) -> float:
    for row in rows:
        if row["scheme"] == scheme and row["repository"] == repository:
            return float(row[column])  # type: ignore[arg-type]
    raise MissingRowError(f"no row of '{scheme}' with a repository of {repository}")


def _times(column: str, wanted: dict[str, float], repository: int) -> Callable[[Rows], Judgement]:
    def judge(rows: Rows) -> Judgement:
        found = {scheme: _at(rows, scheme, repository, column) for scheme in wanted}
        text = ", ".join(f"{scheme} {value:.2f} ×" for scheme, value in found.items())
        return judged(all(found[scheme] >= least for scheme, least in wanted.items()), text)

    return judge


def _latency(rows: Rows) -> Judgement:
    found = {scheme: _at(rows, scheme, 400, "hop_latency") / _at(rows, scheme, None, "hop_latency")
             for scheme in (OURS, STRAWMAN)}  # fmt: skip
    text = ", ".join(f"{scheme} {value:.2f} ×" for scheme, value in found.items())
    return judged(all(value <= 1.2 for value in found.values()), text)


def _no_worse(rows: Rows) -> Judgement:
    """With nothing evicted, what is more than in a plain network is headers."""
    over = [
        float(row["bytes"]) - _at(rows, str(row["scheme"]), None, "bytes") - float(row["headers"])  # type: ignore[arg-type]
        for row in rows
        if row["network"] != PLAIN and row["evicted"] == 0
    ]
    if not over:
        raise MissingRowError("every repository evicted something")
    return judged(max(over) <= 0, f"{-max(over):,.0f} bytes a pair of changes below that, at least")


def _starred(row: Row) -> bool:
    return row["network"] != PLAIN


_SHOW = {
    "scheme": "scheme",
    "network": "network",
    "repository": "repository",
    "bytes": "bytes a pair of changes",
    "server": "sent by the server's node",
    "hop_latency": "hop latency",
    "fetched": "fetched",
    "evicted": "evicted",
    "less": "less traffic",
    "less_stress": "less stress",
}


@experiment(
    "network-fig11",
    title="Select-joins, Figures 11 and 12: payloads that pass no link twice, by the size of repositories",
    small=Payloads(),
    paper=PAPER,
    claims=(
        Claim("a directory alone already has less traffic", "select-join paper, §6.2",
              _times("less", {OURS: 1.0, STRAWMAN: 1.0}, 0)),
        Claim("400 entries cut the server's stress by 3 (Ref-SJ-Clu+) and 7 (Ref-J+)", "select-join paper, §6.2",
              _times("less_stress", {OURS: 3.0, STRAWMAN: 7.0}, 400)),
        Claim("hop latency stays within a fifth with 400 entries", "select-join paper, §6.2", _latency),
        Claim("CN* is never worse than CN by more than its headers while nothing is evicted", "target", _no_worse),
    ),
    plots=(
        Plot("bytes", "Traffic between nodes", y="bytes", y_label="bytes a pair of changes", series="scheme",
             x="repository", x_label="payloads that a node keeps", ours=(OURS,), log="y", only=_starred),
        Plot("latency", "Hops to a subscriber", y="hop_latency", y_label="hops", series="scheme", x="repository",
             x_label="payloads that a node keeps", ours=(OURS,), only=_starred),
    ),
    show=_SHOW,
)  # fmt: skip
def network_fig11(run: Run, parameters: Payloads) -> Iterator[Row]:
    """An insertion and a deletion are a pair of changes; the first half of them only fills repositories. R is small, so
    that insertions expose many S rows. Every message is carried packet by packet, acknowledgements and fetched payloads
    counted; who gets it is compared with the network without payloads, and what is delivered with what was published.
    """
    yield from payloads(run, parameters)


@experiment(
    "network-fig12",
    title="Select-joins, Figure 12: hop latency where R is very small",
    small=replace(Payloads(), base_rows=40, repositories=(0, 400), insertions=400),
    paper=replace(PAPER, base_rows=200),
    claims=(Claim("hop latency stays within a fifth with 400 entries", "select-join paper, §6.2", _latency),),
    plots=(
        Plot("latency", "Hops to a subscriber", y="hop_latency", y_label="hops", series="scheme", x="repository",
             x_label="payloads that a node keeps", ours=(OURS,), only=_starred),
    ),
    show=_SHOW,
)  # fmt: skip
def network_fig12(run: Run, parameters: Payloads) -> Iterator[Row]:
    """As Figure 11, with R so small that insertions expose the most."""
    yield from payloads(run, parameters)
