"""What the piggyback paper claims of its figures (§6.2), and how our rows judge it.

A row has a policy and what it is measured at: `f` (where the first match comes), engine, bandwidth and the rest of the
workload. Unless a claim says otherwise it is judged on the fastest links, where processing outweighs transmission as it
did in the paper, and at the first engine, set and size that the rows have. Better means a shorter response time; less
than `NOISE` of it is no difference.
"""

from collections.abc import Callable

from pathcast_lab.harness import Claim, Judgement, Rows, Value, judged

PAPER = "Chan, Ni 2007, §6.2"
EARLY, LATE = 0.25, 1.0
PAPERS, FASTEST = "10MB/s", "10GB/s"
NOISE = 0.03
ES, LAZY, ALL_THREE = "ES", "L", "L+s-sd"
Judge = Callable[[Rows], Judgement]
_SETTINGS = ("engine", "set", "subscriptions", "nested", "keep", "skew", "bandwidth")


def default(rows: Rows, **values: Value) -> Rows:
    """The rows at these values and, of whatever else was varied, at its first value."""
    rows = rows.where(**values)
    for column in _SETTINGS:
        if column not in values and rows:
            first = FASTEST if column == "bandwidth" and FASTEST in rows.distinct(column) else rows[0][column]
            rows = rows.where(**{column: first})
    return rows


def gain(rows: Rows, policy: str, over: str, f: float) -> float:
    """Which part of the response time of `over` a policy saves."""
    return 1 - rows.number("ms", policy=policy, f=f) / rows.number("ms", policy=over, f=f)


def saves(policy: str, over: str, least: dict[float, float], **values: Value) -> Judge:
    """A judge: at each place f a policy saves at least this part of another's response time."""

    def judge(rows: Rows) -> Judgement:
        rows = default(rows, **values)
        found = {f: gain(rows, policy, over, f) for f in least}
        said = ", ".join(f"{part:.0%} at f = {f:g}" for f, part in found.items())
        return judged(all(found[f] >= part for f, part in least.items()), f"{policy} saves {said}")

    return judge


def loses(policy: str, to: str, f: float, **values: Value) -> Judge:
    """A judge: at f a policy is behind another."""

    def judge(rows: Rows) -> Judgement:
        part = gain(default(rows, **values), to, policy, f)
        ahead = None if abs(part) < NOISE else part > 0
        return judged(ahead, f"{to} takes {1 - part:.2f} times as long as {policy} at f = {f:g}")

    return judge


def ranked(*policies: str, f: float = LATE) -> Judge:
    """A judge: the response times of policies ascend."""

    def judge(rows: Rows) -> Judgement:
        rows = default(rows)
        times = {policy: rows.number("ms", policy=policy, f=f) for policy in policies}
        said = " < ".join(f"{policy} {times[policy]:.2f}" for policy in sorted(times, key=times.__getitem__))
        return judged(list(times.values()) == sorted(times.values()), f"ms at f = {f:g}: {said}")

    return judge


def alike(policy: str, other: str, within: float, why: Callable[[Rows], str] = lambda rows: "") -> Judge:
    """A judge: two policies take the same time, within some part of it, wherever the first match comes.

    `why` says of rows in which the first one is quicker what they show.
    """

    def judge(rows: Rows) -> Judgement:
        rows = default(rows)
        found = {f: gain(rows, policy, other, f) for f in _places(rows)}
        holds = max(map(abs, found.values())) <= within
        said = f"{policy} saves between {min(found.values()):.0%} and {max(found.values()):.0%}"
        return judged(holds, said + why(rows) if max(found.values()) > within else said)

    return judge


def eager_knows(rows: Rows) -> str:
    """Why bindings help an eager policy here, and did not in the paper."""
    unread = rows.number("unread", policy="ES+s", f=LATE)
    return (
        f": by PS alone routers forward, and {unread:.0%} of the deliveries below the root leave, before the document "
        "is read. All subscriptions wait for `<test>`, so what matches is certain at one place, and a copy that leaves "
        "there tells of much of it; a bit an aggregate does. The paper's eager copies knew of the first match"
    )


def best_of(policy: str, *others: str, within: float = 0.03) -> Judge:
    """A judge: a policy is first, or within a small part of the first, wherever the first match comes."""

    def judge(rows: Rows) -> Judgement:
        rows = default(rows)
        behind = {f: -min(gain(rows, policy, other, f) for other in others) for f in _places(rows)}
        said = ", ".join(f"{max(0.0, part):.0%} at f = {f:g}" for f, part in behind.items())
        return judged(max(behind.values()) <= within, f"behind the best by {said}")

    return judge


def grows(policy: str, over: str, column: str, f: float = LATE, **values: Value) -> Judge:
    """A judge: what a policy saves grows along a column."""

    def judge(rows: Rows) -> Judgement:
        found = [
            (value, gain(default(rows, **{column: value}, **values), policy, over, f))
            for value in rows.distinct(column)
        ]
        said = ", ".join(f"{part:.0%} at {value}" for value, part in found)
        parts = [part for _, part in found]
        return judged(parts == sorted(parts) if len(parts) > 1 else None, f"{policy} saves {said}")

    return judge


def at_many(judge: Judge, count: int) -> Judge:
    """A judge: as another one says of the rows with so many subscriptions a router; nothing where there are none."""

    def judge_many(rows: Rows) -> Judgement:
        if count not in rows.distinct("subscriptions"):
            return judged(
                None, f"not measured: at most {max(rows.numbers('subscriptions')):,.0f} subscriptions a router"
            )
        return judge(rows.where(subscriptions=count))

    return judge_many


def spares(kind: str, policy: str, about: float, within: float = 0.15) -> Judge:
    """A judge: annotations of a kind spare about this part of the subscriptions."""

    def judge(rows: Rows) -> Judgement:
        part = default(rows).number(f"skipped{kind}", policy=policy, f=LATE)
        return judged(abs(part - about) <= within, f"{part:.0%} of the entries of downstream routers")

    return judge


def small(policy: str, most: float) -> Judge:
    """A judge: annotations take at most this part of the document's bytes."""

    def judge(rows: Rows) -> Judgement:
        rows = default(rows)
        part, size = rows.number("annotated", policy=policy, f=LATE), rows.number("header_bytes", policy=policy, f=LATE)
        return judged(part <= most, f"{size:.0f} bytes a link, {part:.1%} of the document")

    return judge


def throughput(policy: str, over: str, about: dict[float, float], within: float = 0.15) -> Judge:
    """A judge: the slowest router takes this part of another policy's documents a second."""

    def judge(rows: Rows) -> Judgement:
        rows = default(rows)
        found = {
            f: rows.number("throughput", policy=policy, f=f) / rows.number("throughput", policy=over, f=f)
            for f in about
        }
        said = ", ".join(f"{part:.0%} at f = {f:g}" for f, part in found.items())
        return judged(all(abs(found[f] - part) <= within for f, part in about.items()), said)

    return judge


def downstream(policy: str, over: str, least: float, engine: str) -> Judge:
    """A judge: a downstream router spends at most 1/`least` of the time that it spends under another policy."""

    def judge(rows: Rows) -> Judgement:
        rows = default(rows, engine=engine)
        times = rows.number("downstream_us", policy=over, f=LATE) / rows.number("downstream_us", policy=policy, f=LATE)
        reading = rows.number("reading_us", policy=policy, f=LATE)
        return judged(times >= least, f"{times:.2g} times less a hop; reading alone would take {reading:.0f} µs")

    return judge


def _places(rows: Rows) -> list[float]:
    return sorted(set(rows.numbers("f")))


KINDS = (
    Claim("of single annotations ND helps most, then PS, NS and PD", PAPER, ranked("L-d", "L+s", "L-s", "L+d")),
    Claim("PD is not worth it: L+d takes as long as L (within 10 %)", PAPER, alike("L+d", "L", 0.1)),
    Claim("L+s-sd is the best lazy policy", PAPER, best_of("L+s-sd", "L", "L+s", "L-s", "L-d", "L-sd")),
    Claim("ND spares about 70 % of the subscriptions", PAPER, spares("-d", "L-d", 0.7)),
    Claim("NS spares about 37 % of the subscriptions", PAPER, spares("-s", "L-s", 0.37)),
    Claim("annotations take at most 7 % of the document", PAPER, small(ALL_THREE, 0.07)),
)
FORWARDING = (
    Claim("L+s-sd saves 22 % of ES's time at f = 0.25", PAPER, saves(ALL_THREE, ES, {EARLY: 0.22})),
    Claim("L+s-sd saves 42 % of ES's time at f = 1", PAPER, saves(ALL_THREE, ES, {LATE: 0.42})),
    Claim(
        "… and so it does on the paper's links of 10 MB/s",
        PAPER,
        saves(ALL_THREE, ES, {EARLY: 0.22, LATE: 0.42}, bandwidth=PAPERS),
    ),
    Claim("ES+s takes as long as ES (within 10 %)", PAPER, alike("ES+s", ES, 0.1, eager_knows)),
    Claim("ES+d takes longer than ES", PAPER, loses("ES+d", ES, LATE)),
    Claim(
        "the throughput of L+s-sd is 72 % of ES's at f = 0.25 and 88 % at f = 1",
        PAPER,
        throughput(ALL_THREE, ES, {EARLY: 0.72, LATE: 0.88}),
    ),
)
LARGE_DOCUMENT = (
    Claim("ES is ahead of L+s-sd at f = 0.25 for a large document", PAPER, loses(ALL_THREE, ES, EARLY)),
    Claim("L+s-sd is ahead of ES at f = 1", PAPER, loses(ES, ALL_THREE, LATE)),
    Claim("adaptive is ahead of both (within 3 %)", PAPER, best_of("adaptive", ES, ALL_THREE)),
)
BANDWIDTH = (
    Claim(
        "at 1 MB/s L+s-sd saves 15 % at f = 0.25 and 30 % at f = 1",
        PAPER,
        saves(ALL_THREE, ES, {EARLY: 0.15, LATE: 0.3}, bandwidth="1MB/s"),
    ),
    Claim("what it saves at f = 1 grows with the bandwidth", PAPER, grows(ALL_THREE, ES, "bandwidth")),
    Claim(
        "at least 42 % at f = 1 where transmission hardly counts",
        "target",
        saves(ALL_THREE, ES, {LATE: 0.42}, bandwidth="10GB/s"),
    ),
)
SIZES = (
    Claim(
        "for documents of 200 elements L+s-sd saves 16 % at f = 0.25 and 41 % at f = 1",
        PAPER,
        saves(ALL_THREE, ES, {EARLY: 0.16, LATE: 0.41}, set="news 200"),
    ),
    Claim("L+s-sd is ahead of ES on parse trees", PAPER, loses(ES, ALL_THREE, LATE, set="treebank 144")),
    Claim("L+s-sd is ahead of ES on bibliographies", PAPER, loses(ES, ALL_THREE, LATE, set="bibliography 117")),
)
COMPLEXITY = (
    Claim("the more nested paths, the more L+s-sd saves: 38 % to 44 % at f = 1", PAPER, grows(ALL_THREE, ES, "nested")),
)
NUMBERS = (
    Claim("with twice as many subscriptions L+s-sd saves more at f = 1", PAPER, grows(ALL_THREE, ES, "subscriptions")),
    Claim(
        "L+s-sd saves 42 % at f = 1 with 5,000 subscriptions a router",
        PAPER,
        at_many(saves(ALL_THREE, ES, {LATE: 0.42}), 5_000),
    ),
    Claim(
        "L+s-sd saves 41 % at f = 1 with 50,000 subscriptions a router",
        PAPER,
        at_many(saves(ALL_THREE, ES, {LATE: 0.41}), 50_000),
    ),
    Claim(
        "ES is ahead of L+s-sd at f = 0.25 with 50,000 subscriptions a router",
        PAPER,
        at_many(loses(ALL_THREE, ES, EARLY), 50_000),
    ),
)
BOUNDS = (Claim("annotations take at most 7 % of the document", PAPER, small(ALL_THREE, 0.07)),)
ENGINES = (
    Claim(
        "with structure annotations a hop costs automaton a third of what it costs with parsing",
        "target",
        downstream("L+t", LAZY, 3.0, "automaton"),
    ),
    Claim(
        "with the paper's kind of engine L+s-sd saves 42 % of ES's time at f = 1",
        "target",
        saves(ALL_THREE, ES, {LATE: 0.42}, engine="xtrie"),
    ),
)
