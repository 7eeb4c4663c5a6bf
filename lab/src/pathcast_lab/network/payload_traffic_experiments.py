"""Payloads that pass no link twice: the select-join paper's §6.2, every packet simulated in a network of zones."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from pathcast_lab.harness import Claim, Judgement, MissingRowError, Plot, Row, Rows, Run, every, experiment, judged

from .traffic_claims import OURS, PAPER

STRAWMAN, SELECTIONS = "ref-j+", "rel-sel"
PLAIN, STARRED, ALONE, UNBOUNDED = "CN", "CN*", "CN* without homes", "CN* that forgets nothing"


@dataclass(frozen=True)
class Payloads:
    """`repositories`: how many payloads a node keeps; the directory has 512 kB. The first `warm` insertions only fill
    them. Schemes that are only `compared` have no CN*.

    `checked`: subscriptions of a network with registered filters, which must give the same figures.
    """

    subscriptions: int = 300
    base_rows: int = 100
    joined_rows: int = 2_000
    payload: int = 1_000
    repositories: tuple[int, ...] = (0, 20, 400)
    schemes: tuple[str, ...] = (OURS, STRAWMAN)
    compared: tuple[str, ...] = ()
    insertions: int = 2_400
    warm: int = 1_800
    physical: int = 500
    hosts: int = 24
    checked: int = 60


LARGE = Payloads(
    20_000,
    500,
    5_100,
    repositories=(0, 100, 400, 3_100),
    insertions=1_700,
    warm=1_500,
    physical=20_000,
    hosts=1_000,
)


def _at(rows: Rows, scheme: str, repository: int | None, column: str, network: str | None = None) -> float:
    wanted = network or (PLAIN if repository is None else STARRED)
    for row in rows:
        if row["scheme"] == scheme and row["repository"] == repository and row["network"] == wanted:
            return float(row[column])  # type: ignore[arg-type]
    size = "without a repository" if repository is None else f"with a repository of {repository:,} payloads"
    raise MissingRowError(f"no row of scheme '{scheme}' in network '{wanted}' {size}")


def _times(
    column: str, wanted: dict[str, float], repository: int, network: str = STARRED
) -> Callable[[Rows], Judgement]:
    def judge(rows: Rows) -> Judgement:
        found = {scheme: _at(rows, scheme, repository, column, network) for scheme in wanted}
        text = ", ".join(f"{scheme} {value:.2f} times" for scheme, value in found.items())
        return judged(all(found[scheme] >= least for scheme, least in wanted.items()), text)

    return judge


def _latency(network: str) -> Callable[[Rows], Judgement]:
    def judge(rows: Rows) -> Judgement:
        found = {
            f"for {scheme}": _at(rows, scheme, 400, "hop_latency", network) / _at(rows, scheme, None, "hop_latency")
            for scheme in (OURS, STRAWMAN)
        }
        return every(found, "{:.2f} times the latency of CN", most=1.2)

    return judge


def _higher(rows: Rows) -> Judgement:
    theirs, ours = (_at(rows, scheme, None, "hop_latency") for scheme in (SELECTIONS, OURS))
    return judged(theirs > ours, f"{theirs:.2f} hops against {ours:.2f}")


def _no_worse(rows: Rows) -> Judgement:
    """Without evictions, only headers exceed the traffic of a plain network."""
    over = [
        float(row["bytes"]) - _at(rows, str(row["scheme"]), None, "bytes") - float(row["headers"])  # type: ignore[arg-type]
        for row in rows
        if row["network"] != PLAIN and row["evicted"] == 0
    ]
    if not over:
        raise MissingRowError("no row without evictions: every repository evicted payloads")
    return judged(max(over) <= 0, f"at least {round(-max(over)):,} bytes per pair of changes less")


def _starred(row: Row) -> bool:
    return row["network"] in {ALONE, STARRED}


_LATENCIES = (
    Claim(
        "hop latency grows by at most a fifth with 400 entries, without homes",
        f"{PAPER}, §6.2, Figure 12",
        _latency(ALONE),
        "not much",
    ),
    Claim("hop latency grows by at most a fifth with 400 entries, with homes", "target", _latency(STARRED), "not much"),
)


_SHOW = {
    "scheme": "scheme",
    "network": "network",
    "repository": "repository",
    "bytes": "bytes per pair of changes",
    "payload": "payloads",
    "headers": "headers",
    "fetched_bytes": "fetching",
    "purging": "cost of forgetting",
    "server": "sent by the server's node",
    "busiest": "by the busiest other",
    "hop_latency": "hop latency",
    "fetched": "fetched",
    "evicted": "evicted",
    "less": "less traffic",
    "less_stress": "less stress",
    "most": "… at most",
}


@experiment(
    "network-fig11",
    title="Select-joins, Figures 11 and 12: payloads that pass no link twice, by the size of repositories",
    small=Payloads(),
    paper=LARGE,
    claims=(
        Claim(
            "a directory alone already has less traffic, without homes",
            f"{PAPER}, §6.2, Figure 11",
            _times("less", {OURS: 1.0, STRAWMAN: 1.0}, 0, ALONE),
            "less",
        ),
        Claim(
            "a directory alone already has less traffic, with homes",
            "target",
            _times("less", {OURS: 1.0, STRAWMAN: 1.0}, 0),
            "less",
        ),
        Claim(
            "400 entries cut the server's stress by 3 (Ref-SJ-Clu+) and 7 (Ref-J+), without homes",
            f"{PAPER}, §6.2",
            _times("less_stress", {OURS: 3.0, STRAWMAN: 7.0}, 400, ALONE),
            "3 and 7 times",
            "Nodes forget payloads that they meet again, and without homes they fetch each of these from the server.",
        ),
        Claim(
            "with homes 400 entries cut the server's stress as much as the paper says",
            "target",
            _times("less_stress", {OURS: 3.0, STRAWMAN: 7.0}, 400),
            "3 and 7 times",
        ),
        *_LATENCIES,
        Claim(
            "CN* is never worse than CN by more than its headers while nothing is evicted",
            "target",
            _no_worse,
            "0 bytes",
        ),
    ),
    plots=(
        Plot(
            "bytes",
            "Traffic between nodes",
            y="bytes",
            y_label="bytes per pair of changes",
            series="scheme",
            x="repository",
            x_label="payloads that a node keeps",
            ours=(OURS,),
            panel="network",
            log="y",
            only=_starred,
        ),
        Plot(
            "latency",
            "Hops to a subscriber",
            y="hop_latency",
            y_label="hops",
            series="scheme",
            x="repository",
            x_label="payloads that a node keeps",
            ours=(OURS,),
            panel="network",
            only=_starred,
        ),
        Plot(
            "forgetting",
            "Cost of forgetting payloads",
            y="purging",
            y_label="bytes more per pair of changes",
            series="scheme",
            x="repository",
            x_label="payloads that a node keeps",
            ours=(OURS,),
            panel="network",
            only=_starred,
        ),
    ),
    show=_SHOW,
)
def network_fig11(run: Run, parameters: Payloads) -> Iterator[Row]:
    """An insertion and a deletion are a pair of changes; the first `warm` pairs only fill repositories. R is small, so
    that insertions expose many S rows. Every message is carried packet by packet in each CN*, with acknowledgements and
    fetched payloads. "Without homes" a node asks the server for payloads that it has forgotten, as in the paper; with
    homes, it asks the node that keeps a payload for all.
    """
    from .payload_traffic import measure

    yield from measure(run, parameters)


@experiment(
    "network-fig12",
    title="Select-joins, Figure 12: hop latency where R is very small",
    small=replace(
        Payloads(),
        base_rows=40,
        joined_rows=500,
        repositories=(0, 20, 400),
        compared=(SELECTIONS,),
        insertions=2_000,
        warm=1_000,
    ),
    paper=replace(
        LARGE,
        base_rows=200,
        repositories=(0, 400),
        compared=(SELECTIONS,),
        insertions=400,
        warm=300,
    ),
    claims=(
        *_LATENCIES,
        Claim("Rel-Sel has a higher hop latency than Ref-SJ-Clu+", f"{PAPER}, §6.2, Figure 12", _higher, "higher"),
    ),
    plots=(
        Plot(
            "latency",
            "Hops to a subscriber",
            y="hop_latency",
            y_label="hops",
            series="scheme",
            x="repository",
            x_label="payloads that a node keeps",
            ours=(OURS,),
            panel="network",
            only=_starred,
        ),
    ),
    show=_SHOW,
)
def network_fig12(run: Run, parameters: Payloads) -> Iterator[Row]:
    """As Figure 11, with a still smaller R, and with Rel-Sel."""
    from .payload_traffic import measure

    yield from measure(run, parameters)
