"""Overlay traffic of the schemes for standing joins, as in the select-join paper's §6.1 and appendix J."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from pathcast_lab.harness import Claim, Judgement, Plot, Row, Rows, Run, experiment, number_in

from .traffic_claims import (
    BY_GROUP,
    BY_TEMPLATE,
    OURS,
    PAPER,
    SAME_ZONES,
    STRAWMEN,
    at_most,
    below,
    falls,
    least,
    lowest,
    saves,
    selections,
    ten_times_below,
    usually,
)

SEMIJOINS = ("enum-sj", "ref-sj-sub", "ref-sj-tup", "ref-sj-clu", OURS)


@dataclass(frozen=True)
class Setting:
    """Varied settings have several values; each of a hundred insertions has its own join value.

    `checked`: subscriptions of the network that is simulated packet by packet.
    `unicast_events` and `result_events` bound the insertions of schemes that send to each subscriber alone, and of
    those that send each result: these send far more, and do not affect the claims.
    `alike`: the deviation of c among rows of one join value (`ALIKE` of `join_workloads.py`).
    """

    subscriptions: tuple[int, ...] = (20_000,)
    base_rows: tuple[int, ...] = (16_000,)
    joined_rows: tuple[int, ...] = (5_100,)
    payload: tuple[int, ...] = (100,)
    narrower: tuple[int, ...] = (0,)
    alike: tuple[int, ...] = (1_000,)
    schemes: tuple[str, ...] = (*STRAWMEN, *SEMIJOINS)
    insertions: int = 50
    unicast_events: int = 50
    result_events: int = 50
    physical: int = 10_000
    hosts: int = 500
    checked: int = 100


SMALL = Setting()
FEWER = ("enum-j", "rel-sel", "ref-j", "ref-j+", "enum-sj", "ref-sj-tup", OURS)
# A hundred insertions have each join value once.
LARGE = Setting(
    subscriptions=(100_000,),
    insertions=400,
    unicast_events=100,
    result_events=100,
    physical=20_000,
    hosts=1_000,
    checked=1_000,
)
_SHOW = {
    "subscriptions": "subscriptions",
    "base_rows": "R",
    "joined_rows": "S",
    "payload": "payload",
    "narrower": "narrower",
    "alike": "c of a join value",
    "network": "network",
    "scheme": "scheme",
    "bytes": "bytes per insertion",
    "hops": "hops",
    "stress": "stress: sent by the server",
    "server": "bytes of its messages",
    "last_hop": "with the last hop",
    "last_hop_times": f"times {OURS}, with the last hop",
    "hop_latency": "hop latency",
    "deletion_bytes": "bytes per deletion",
    "events": "insertions",
    "most": "most bytes of one",
    "times": f"times {OURS}",
    "times_low": "at least",
    "times_high": "at most",
}


def _plot(x: str, label: str, y: str = "bytes", y_label: str = "bytes per insertion") -> Plot:
    return Plot(
        y,
        f"{y_label.capitalize()} between nodes",
        y=y,
        y_label=y_label,
        series="scheme",
        x=x,
        x_label=label,
        ours=(OURS,),
        panel="network",
        log="xy",
    )


def _of_sizes(wanted: Callable[[float], bool], judge: Callable[[Rows], Judgement]) -> Callable[[Rows], Judgement]:
    """A judge that sees the rows with some sizes of R."""
    return lambda rows: judge(Rows(row for row in rows if wanted(number_in(row, "base_rows"))))


def _by_size_of_r() -> Iterator[Claim]:
    """Claims of Figure 7 about strawmen, for both placements: a small R is a case of its own."""
    sizes: tuple[tuple[str, Callable[[float], bool], str], ...] = (
        ("of more than 1,000 rows", lambda rows: rows > 1_000, ""),
        (
            "of up to 1,000 rows",
            lambda rows: rows <= 1_000,
            (
                "An insertion into a small R exposes many S rows, which semijoins send with their payloads and Rel-Sel "
                "does not."
            ),
        ),
    )
    for network, ending in ((BY_GROUP, ""), (BY_TEMPLATE, SAME_ZONES)):
        for size, wanted, reason in sizes:
            yield Claim(
                f"Ref-SJ-Clu+ has less traffic than every strawman with R {size}{ending}",
                f"{PAPER}, §6.1, Figure 7",
                _of_sizes(wanted, below(1, "bytes", STRAWMEN, network)),
                "less",
                reason,
            )


def _rows(run: Run, parameters: Setting, workload: str = "binary joins") -> Iterator[Row]:
    from .join_traffic import measure

    return measure(run, parameters, workload)


@experiment(
    "network-fig6",
    title="Select-joins, Figures 6, 17 and 20 and Table 3: traffic, hops and stress by the number of subscriptions",
    small=replace(SMALL, subscriptions=(5_000, 20_000)),
    paper=replace(LARGE, subscriptions=(100_000, 300_000, 1_000_000), insertions=2_000),
    claims=(
        *ten_times_below("Figure 6"),
        Claim("Ref-SJ-Clu+ has the least traffic of all", f"{PAPER}, §6.1, Figure 6", least("bytes"), "lowest"),
        Claim(
            "Ref-SJ-Clu+ takes at least 10 times fewer hops than every strawman",
            f"{PAPER}, appendix J, Figure 17",
            below(10, "hops", STRAWMEN),
            "10 times",
            "Enum-J sends a message per affected subscriber, and of few subscriptions an insertion affects few.",
        ),
        Claim("Ref-SJ-Clu+ has the least stress at the server", f"{PAPER}, §6.1, Table 3", least("stress"), "lowest"),
        Claim(
            "enumeration puts orders of magnitude more stress on the server (criterion: 100 times)",
            f"{PAPER}, §6.1, Table 3",
            below(100, "stress", ("enum-j", "enum-sj")),
            "orders of magnitude",
            "Enumeration sends a message per affected subscriber, and of few subscriptions an insertion affects few.",
        ),
        Claim(
            "with the last hop, Ref-SJ-Clu+ is still below every strawman",
            f"{PAPER}, appendix J, Figure 20",
            below(1, "last_hop_times", STRAWMEN),
            "below",
        ),
        Claim(
            "with the last hop, Enum-SJ has the least traffic of all",
            f"{PAPER}, appendix J, Figure 20",
            lowest("enum-sj", "last_hop_times"),
            "lowest",
        ),
        Claim(
            "with the last hop, Ref-SJ-Clu+ has only slightly more traffic than Enum-SJ (criterion: a quarter more)",
            f"{PAPER}, appendix J, Figure 20",
            at_most(1.25, "last_hop_times", "enum-sj"),
            "slightly more",
            "Of few subscriptions an insertion affects few, so that the way through the overlay weighs more.",
        ),
    ),
    plots=(
        _plot("subscriptions", "subscriptions"),
        _plot("subscriptions", "subscriptions", "hops", "hops per insertion"),
        _plot("subscriptions", "subscriptions", "last_hop", "bytes with the last hop"),
    ),
    show=_SHOW,
)
def network_fig6(run: Run, parameters: Setting) -> Iterator[Row]:
    """The workload of §6.1 over hosts of an internet-like graph, as a tree (`cbn`) and as zones. Zones are those of
    both tables' ranges: by group of filters (`can`) for all schemes except Rel-Sel, whose rows have zones of their own
    table; by template (`can by template`) for all schemes. Hops and bytes are counted from the recipients of each
    message; stress is what the server sends over its links. A message to one subscriber is one hop, directly from the
    server; other messages have a last hop from a node to each subscriber, which only the columns "with the last hop"
    count. Intervals hold the ratio for 95 of 100 samples drawn from the insertions again.

    An insertion that exposes S rows may cost as much as many others, so there are many insertions; schemes that send
    each result, or to each subscriber alone, get the first of them.
    """
    yield from _rows(run, parameters)


@experiment(
    "network-fig7",
    title="Select-joins, Figure 7: traffic by the size of R",
    small=replace(SMALL, schemes=FEWER, subscriptions=(5_000,), base_rows=(200, 16_000)),
    paper=replace(LARGE, base_rows=(200, 500, 1_000, 4_000, 16_000, 64_000)),
    claims=(
        Claim(
            "the smaller R is, the more traffic Ref-SJ-Clu+ has",
            f"{PAPER}, §6.1, Figure 7",
            falls(OURS, "bytes"),
            "more",
            "Once R is large, an insertion exposes hardly any S rows, so the traffic no longer falls.",
        ),
        *_by_size_of_r(),
    ),
    plots=(_plot("base_rows", "rows of R"),),
    show=_SHOW,
)
def network_fig7(run: Run, parameters: Setting) -> Iterator[Row]:
    """As Figure 6, with R of several sizes: the smaller R is, the more S rows an insertion exposes."""
    yield from _rows(run, parameters)


@experiment(
    "network-fig9",
    title="Select-joins, Figure 9: traffic by the number of joining rows",
    small=replace(SMALL, schemes=FEWER, subscriptions=(5_000,), joined_rows=(500, 5_100)),
    paper=replace(LARGE, joined_rows=(500, 1_000, 2_500, 5_100, 10_000, 20_000)),
    claims=(
        Claim(
            "Ref-SJ-Clu+ is usually 10 times below the strawmen (criterion: in more than half of the cases)",
            f"{PAPER}, §6.1, Figure 9",
            usually(10, "bytes", STRAWMEN),
            "10 times",
        ),
        Claim(
            "Ref-J degrades with more joining rows",
            f"{PAPER}, §6.1, Figure 9",
            falls("ref-j", "bytes", rising=True),
            "degrades",
        ),
    ),
    plots=(_plot("joined_rows", "rows of S"),),
    show=_SHOW,
)
def network_fig9(run: Run, parameters: Setting) -> Iterator[Row]:
    """As Figure 6, with S of several sizes: a hundredth of it is the number of results per insertion (RJOR)."""
    yield from _rows(run, parameters)


@experiment(
    "network-fig10",
    title="Select-joins, Figure 10: traffic with stocks and ratings",
    small=replace(SMALL, subscriptions=(5_000,), base_rows=(10_000,), joined_rows=(2_300,)),
    paper=replace(LARGE, subscriptions=(100_000, 300_000, 1_000_000), base_rows=(10_000,), joined_rows=(2_300,)),
    claims=(
        *ten_times_below(
            "Figure 10",
            reason="Ratings of one stock are further apart than the rows of a join value in Figure 6, so the join "
            "excludes fewer subscriptions, and Rel-Sel, which ignores the join, sends less in vain.",
        ),
    ),
    plots=(_plot("subscriptions", "subscriptions"),),
    show=_SHOW,
)
def network_fig10(run: Run, parameters: Setting) -> Iterator[Row]:
    """As Figure 6, with price-earnings ratios that walk from day to day and 2,300 ratings."""
    yield from _rows(run, parameters, "stock joins")


@experiment(
    "network-fig18",
    title="Select-joins, Figure 18: traffic by the size of payloads",
    small=replace(SMALL, schemes=FEWER, subscriptions=(5_000,), payload=(1, 10_000)),
    paper=replace(LARGE, payload=(1, 10, 100, 1_000, 10_000, 100_000), unicast_events=20),
    claims=(
        Claim(
            "Ref-SJ-Clu+ saves more traffic of every strawman with larger payloads",
            f"{PAPER}, appendix J, Figure 18",
            saves("bytes", STRAWMEN),
            "grows",
            "Payloads change which rows are drawn, and the traffic of Enum-J is a mean over few insertions, one of "
            "which can decide it.",
        ),
        Claim(
            "Ref-SJ-Clu+ has at least 10 times less traffic than every strawman with any payload",
            "target",
            below(10, "bytes", STRAWMEN),
            "10 times",
            "With small payloads a message is mostly its skyline, which messages of Rel-Sel lack.",
        ),
    ),
    plots=(_plot("payload", "bytes of payload"),),
    show=_SHOW,
)
def network_fig18(run: Run, parameters: Setting) -> Iterator[Row]:
    """As Figure 6, with payloads of R and S rows from a byte up."""
    yield from _rows(run, parameters)


@experiment(
    "network-fig19",
    title="Select-joins, Figure 19: traffic by the overlap of subscriptions",
    small=replace(SMALL, schemes=FEWER, subscriptions=(5_000,), narrower=(0, 6_000)),
    paper=replace(LARGE, narrower=(0, 1_000, 2_000, 3_000, 4_000, 5_000, 6_000)),
    claims=(
        Claim(
            "Rel-Sel has more traffic the more subscriptions overlap",
            f"{PAPER}, appendix J, Figure 19",
            falls("rel-sel", "bytes", rising=True),
            "grows",
        ),
        Claim(
            "Ref-SJ-Clu+ has less traffic the more subscriptions overlap",
            f"{PAPER}, appendix J, Figure 19",
            falls(OURS, "bytes"),
            "falls",
        ),
        Claim(
            "Ref-SJ-Clu+ has at least 10 times less traffic than every strawman with any overlap",
            "target",
            below(10, "bytes", STRAWMEN),
            "10 times",
        ),
    ),
    plots=(_plot("narrower", "reduction of the deviation of centres on S"),),
    show=_SHOW,
)
def network_fig19(run: Run, parameters: Setting) -> Iterator[Row]:
    """As Figure 6, with centres of ranges drawn closer together: the deviation on R shrinks by twice as much as on
    S.
    """
    yield from _rows(run, parameters)


@experiment(
    "network-selectivity",
    title="Standing joins: traffic by the selectivity of the join",
    small=replace(
        SMALL, schemes=("rel-sel", "ref-j+", OURS), subscriptions=(5_000,), alike=(1_000, 3_000, 10_000, 30_000)
    ),
    paper=replace(LARGE, schemes=("rel-sel", "ref-j+", OURS), alike=(300, 1_000, 3_000, 10_000, 30_000)),
    claims=(
        Claim(
            "the less the join lets through, the further selections fall behind, on a tree",
            "target",
            selections,
            "grows",
        ),
        Claim(
            "the less the join lets through, the further selections fall behind, in zones",
            "target",
            lambda rows: selections(rows, "can"),
            "grows",
        ),
    ),
    plots=(_plot("alike", "deviation of c among rows of a join value"),),
    show=_SHOW,
)
def network_selectivity(run: Run, parameters: Setting) -> Iterator[Row]:
    """As Figure 6, with rows of a join value that are more or less alike, which sets how much the join lets through;
    the paper's text does not give this parameter.

    Selections (Rel-Sel) send an R row to all who select it, semijoins to those who also have a joining S row in their
    range.
    """
    yield from _rows(run, parameters)
