"""Overlay traffic of joins of up to four tables: the select-join paper's §6.3, Figures 13 and 14."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from pathcast_lab.harness import Claim, Judgement, MissingRowError, Plot, Row, Rows, Run, experiment, judged

from .traffic_claims import OURS

RELAXED = "rel-sel"


@dataclass(frozen=True)
class Star:
    """A fact table and three dimensions. Claims are judged with the first of `widths`, those of ranges on dimensions.

    `checked`: subscriptions a shape of the network that is simulated.
    """

    subscriptions: int = 17_000
    facts: int = 25_000
    dimension: int = 1_000
    payload: int = 100
    fact_payloads: tuple[int, ...] = (0, 100)
    widths: tuple[int, ...] = (10_000, 3_500)
    insertions: int = 40
    physical: int = 10_000
    hosts: int = 500
    checked: int = 20


@dataclass(frozen=True)
class Mix:
    """Four tables of which each changes as often as the others. Claims are judged with the first of `alike`: how far
    the rows of a join value are apart; 0 is anywhere.
    """

    subscriptions: int = 17_000
    join_values: int = 100
    payload: int = 100
    alike: tuple[int, ...] = (1_000, 5_000)
    insertions: int = 150
    physical: int = 10_000
    hosts: int = 500
    checked: int = 5


def _times(wanted: dict[str, float], fact_payload: int) -> Callable[[Rows], Judgement]:
    def judge(rows: Rows) -> Judgement:
        first = next(row["width"] for row in rows)
        found = {
            str(row["scheme"]): row
            for row in rows
            if row["fact_payload"] == fact_payload and row["width"] == first and row["network"] == "can"
        }
        if not found.keys() >= wanted.keys():
            raise MissingRowError(f"not all schemes with {fact_payload} bytes a fact")
        times = {scheme: float(found[scheme]["times"]) for scheme in wanted}  # type: ignore[arg-type]
        text = ", ".join(f"{scheme} {value:.1f} ×" for scheme, value in times.items())
        bound = _alone(found[RELAXED]) / _alone(found[OURS])
        text += f"; rel-sel {bound:.1f} × if messages came to nodes of recipients alone"
        return judged(all(times[scheme] >= least for scheme, least in wanted.items()), text)

    return judge


def _alone(row: Row) -> float:
    """Bytes, were a message to come to nodes with recipients alone, each in one hop."""
    return float(row["bytes"]) / float(row["hops"]) * float(row["served"])  # type: ignore[arg-type]


@experiment(
    "network-fig14",
    title="Select-joins, Figure 14: traffic of joins in a star schema",
    small=Star(),
    paper=replace(Star(), subscriptions=170_000, insertions=400, physical=20_000, hosts=1_000, checked=100),
    claims=(
        Claim(
            "without payload of facts, Ref-SJ-Clu+ is 5, 9 and 127 times below Rel-Sel, Ref-J and Enum-J",
            "select-join paper, §6.3",
            _times({"rel-sel": 5, "ref-j": 9, "enum-j": 127}, 0),
        ),
        Claim(
            "with payload, it is below all of them still",
            "select-join paper, §6.3",
            _times({"rel-sel": 1, "ref-j": 1, "enum-j": 1}, 100),
        ),
    ),
    plots=(
        Plot(
            "bytes",
            "Bytes an insertion between nodes",
            y="bytes",
            y_label="bytes",
            series="scheme",
            x="fact_payload",
            x_label="payload of facts",
            ours=(OURS,),
            panel="network",
            log="y",
        ),
    ),
    show={
        "width": "width of dimensions' ranges",
        "fact_payload": "payload of facts",
        "network": "network",
        "scheme": "scheme",
        "bytes": "bytes an insertion",
        "hops": "hops",
        "served": "nodes with recipients",
        "messages": "messages",
        "server": "server's bytes",
        "deletion_bytes": "bytes a deletion",
        "times": f"times {OURS}",
        "times_low": "at least",
        "times_high": "at most",
    },
)
def network_fig14(run: Run, parameters: Star) -> Iterator[Row]:
    """A mix of joins over a fact table, which changes, and three dimensions, on hosts of an internet-like graph: as a
    tree, and as zones with a space a group of filters. Counted from who matches and how nodes route, after networks
    that carry every packet have given the same for some of the subscriptions; what is for one subscriber is one hop.

    The paper does not tell how wide ranges are. Narrower ranges on dimensions let fewer facts through, which selections
    send to all: Rel-Sel falls behind. But then fewer join results are for anybody: Ref-J and Enum-J come nearer. What
    the paper has of all three at once no width gives.
    """
    from .star_join_traffic import measure_star

    yield from measure_star(run, parameters)


def _orders(rows: Rows) -> tuple[dict[str, float], str]:
    """Bytes by decomposition in the paper's kind of network, with Rel-Sel, and which is the greedy one."""
    first = next(row["alike"] for row in rows)
    judged_rows = [row for row in rows if row["network"] == "can" and row["alike"] == first]
    found = {str(row["order"]): float(row["bytes"]) for row in judged_rows}  # type: ignore[arg-type]
    return found, next(str(row["order"]) for row in judged_rows if row["greedy"])


def _greedy(rows: Rows) -> Judgement:
    found, greedy = _orders(rows)
    del found[RELAXED]
    others = {order: value for order, value in found.items() if order != greedy}
    best = min(others, key=lambda order: others[order])
    said = f"{greedy} {found[greedy]:,.0f} bytes; the best of the others, {best}, {others[best]:,.0f}"
    return judged(found[greedy] <= others[best], said)


def _saved(rows: Rows) -> Judgement:
    found, greedy = _orders(rows)
    del found[RELAXED]
    saved = 1 - found[greedy] / max(found.values())
    return judged(saved >= 0.15, f"{saved:.0%} less than the worst")


def _relaxed(rows: Rows) -> Judgement:
    row = next(row for row in rows if row["network"] == "can" and row["order"] == RELAXED)
    times = float(row["times"])  # type: ignore[arg-type]
    return judged(times >= 9, f"{times:.1f} times ({row['times_low']:.1f} to {row['times_high']:.1f})")


@experiment(
    "network-fig13",
    title="Select-joins, Figure 13: traffic of six decompositions of a mix of joins",
    small=Mix(),
    paper=replace(Mix(), subscriptions=170_000, insertions=200, physical=20_000, hosts=1_000, checked=20),
    claims=(
        Claim("the greedy decomposition has the least traffic of the six", "select-join paper, §6.3", _greedy),
        Claim("… about a fifth less than the worst (we take: 15 %)", "select-join paper, §6.3", _saved),
        Claim("Rel-Sel has around 9 times the traffic of the best decomposition", "select-join paper, §6.3", _relaxed),
    ),
    plots=(
        Plot(
            "bytes",
            "Bytes an insertion between nodes",
            y="bytes",
            y_label="bytes",
            series="order",
            kind="bars",
            ours=("T U R",),
            panel="alike",
            only=lambda row: row["network"] == "can",
        ),
    ),
    show={
        "alike": "deviation among rows of a join value",
        "order": "neighbours of S",
        "greedy": "greedy",
        "network": "network",
        "scheme": "scheme",
        "bytes": "bytes an insertion",
        "hops": "hops",
        "messages": "messages",
        "server": "server's bytes",
        "deletion_bytes": "bytes a deletion",
        "times": "times the greedy one",
        "times_low": "at least",
        "times_high": "at most",
    },
)
def network_fig13(run: Run, parameters: Mix) -> Iterator[Row]:
    """R, S, T and U have 10, 70, 70 and 30 rows to a join value and change as often as each other; of an order of S's
    neighbours each subscription takes the first that it joins S with. The greedy order is that of the model's costs.
    Counted as in Figure 14. Schemes that send join results are left out, as in the paper: there are too many.

    Subscriptions and rows are those of the other figures, of which the paper says no more than "as before": rows of a
    join value are alike. The further apart they are, the less does a semijoin filter (of 70 rows anywhere one lies in
    nearly every range), and the more rows of other tables does an insertion expose.
    """
    from .star_join_traffic import measure_mix

    yield from measure_mix(run, parameters)
