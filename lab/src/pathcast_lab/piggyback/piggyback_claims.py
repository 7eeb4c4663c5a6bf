"""The piggyback paper's claims about its figures (§6.2), and their checks against our rows.

A row has a policy and the settings of its measurement: `f` (where the first match comes), engine, bandwidth and the
rest of the workload. A claim must hold at every `f`, unless it names one. Unless a claim says otherwise it is judged on
the fastest links, where processing outweighs transmission as it did in the paper, and at the first engine, set and size
that the rows have. Better means a shorter response time; less than `NOISE` of it is no difference.
"""

from collections.abc import Callable

from pathcast_lab.harness import Claim, Judgement, PaperPoint, Rows, Value, every, judged, number_in

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


def loses(policy: str, to: str, f: float | None = None, **values: Value) -> Judge:
    """A judge: a policy takes longer than another, at every place or at f."""

    def judge(rows: Rows) -> Judgement:
        rows = default(rows, **values)
        places = _places(rows) if f is None else [f]
        found = {f"at f = {each:g}": 1 - gain(rows, to, policy, each) for each in places}
        return every(found, f"{to} takes {{:.2f}} times as long", most=1, undecided=(1 - NOISE, 1 + NOISE))

    return judge


def ranked(*policies: str) -> Judge:
    """A judge: the response times of policies ascend, wherever the first match comes."""

    def judge(rows: Rows) -> Judgement:
        rows = default(rows)
        holds, said = True, []
        for f in _places(rows):
            times = {policy: rows.number("ms", policy=policy, f=f) for policy in policies}
            holds &= list(times.values()) == sorted(times.values())
            order = " < ".join(f"{policy} {times[policy]:.2f}" for policy in sorted(times, key=times.__getitem__))
            said.append(f"at f = {f:g}: {order} ms")
        return judged(holds, "; ".join(said))

    return judge


def alike(policy: str, other: str, within: float) -> Judge:
    """A judge: two policies take the same time, within some part of it, wherever the first match comes."""

    def judge(rows: Rows) -> Judgement:
        rows = default(rows)
        found = {f"at f = {f:g}": gain(rows, policy, other, f) for f in _places(rows)}
        return every(found, f"{policy} saves {{:.0%}}", least=-within, most=within)

    return judge


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
    """A judge: another judge, on the rows with this number of subscriptions per router, if there are any."""

    def judge_many(rows: Rows) -> Judgement:
        if count not in rows.distinct("subscriptions"):
            return judged(
                None, f"not measured: at most {max(rows.numbers('subscriptions')):,.0f} subscriptions per router"
            )
        return judge(rows.where(subscriptions=count))

    return judge_many


def spares(kind: str, policy: str, about: float, within: float = 0.15) -> Judge:
    """A judge: annotations of a kind spare about this part of the subscriptions, wherever the first match comes."""

    def judge(rows: Rows) -> Judgement:
        rows = default(rows)
        found = {
            f"at f = {f:g}": rows.number(f"skipped{kind}", policy=policy, f=f)
            for f in _places(rows.where(policy=policy))
        }
        return every(found, "{:.0%} of the entries of downstream routers", least=about - within, most=about + within)

    return judge


def small(policy: str, most: float) -> Judge:
    """A judge: annotations take at most this part of the document's bytes, whatever was varied."""

    def judge(rows: Rows) -> Judgement:
        found: dict[str, float] = {}
        for row in rows.where(policy=policy):
            where = f"at f = {row['f']:g}, keep = {row['keep']:g}, skew = {row['skew']:g}"
            found[where] = max(number_in(row, "annotated"), found.get(where, 0.0))
        return every(found, "{:.1%} of the document", most=most)

    return judge


def throughput(policy: str, over: str, about: dict[float, float], within: float = 0.15) -> Judge:
    """A judge: the slowest router handles this share of another policy's documents per second."""

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
        found = {
            f"at f = {f:g}": rows.number("downstream_us", policy=over, f=f)
            / rows.number("downstream_us", policy=policy, f=f)
            for f in _places(rows)
        }
        return every(found, "{:.2g} times as fast per hop", least=least)

    return judge


def _places(rows: Rows) -> list[float]:
    return sorted(set(rows.numbers("f")))


_SAVED = "Chan, Ni 2007, §6.2: as a part of our ES"


def _saved(*found: tuple[float, float], panel: Value = None) -> tuple[PaperPoint, ...]:
    """The share of ES's response time that L+s-sd saves in the paper: (f, share)."""
    return tuple(PaperPoint(ALL_THREE, f, 1 - part, _SAVED, of=ES, panel=panel) for f, part in found)


FORWARDING_POINTS = _saved((EARLY, 0.22), (LATE, 0.42), panel=PAPERS)
BANDWIDTH_POINTS = (*_saved((EARLY, 0.15), (LATE, 0.30), panel="1MB/s"), *FORWARDING_POINTS)
SIZE_POINTS = (
    *_saved((EARLY, 0.22), (LATE, 0.42), panel="news 130"),
    *_saved((EARLY, 0.16), (LATE, 0.41), panel="news 200"),
)
NESTED_POINTS = (*_saved((LATE, 0.38), panel=0.1), *_saved((LATE, 0.44), panel=0.4))
NUMBER_POINTS = (
    *_saved((LATE, 0.35), panel=2_500),
    *_saved((0.5, 0.28), (LATE, 0.42), panel=5_000),
    *_saved((0.5, 0.11), (LATE, 0.41), panel=50_000),
)

_READING_WEIGHS = (
    "Reading a document takes our routers about as long as matching it, so PS, which spares both, saves more than ND, "
    "which spares matching."
)
_COSTLY_PD = "Our routers take little time to match a document, so making and reading PD annotations weighs more."
_COSTLY_NEGATIVE = "Making and reading NS and ND annotations takes longer than the little matching that they spare."
_FAST_ROUTERS = (
    "Our routers take little time to match a document, and making and reading annotations takes a good part of what "
    "they spare."
)
_FEW_SUBSCRIPTIONS = (
    "With few subscriptions per router matching takes about as long as reading, and annotations cost more than they "
    "spare."
)
_SLOW_LINKS = (
    "On such links transmission outweighs the processing of our routers, and annotations save processing only."
)
_EAGER_KNOWS = (
    "All subscriptions wait for `<test>`, so all matches are certain at one place, and an eager copy that leaves there "
    "already has PS for many of them; in the paper it had PS for the first match only."
)
KINDS = (
    Claim(
        "of single annotations ND helps most, then PS, NS and PD",
        PAPER,
        ranked("L-d", "L+s", "L-s", "L+d"),
        "ND, PS, NS, PD",
        _READING_WEIGHS,
    ),
    Claim(
        "PD is not worth it: L+d takes as long as L (within 10 %)", PAPER, alike("L+d", "L", 0.1), "similar", _COSTLY_PD
    ),
    Claim(
        "L+s-sd is the best lazy policy (within 3 %)",
        PAPER,
        best_of("L+s-sd", "L", "L+s", "L-s", "L-d", "L-sd"),
        "best",
        _COSTLY_NEGATIVE,
    ),
    Claim(
        "ND spares about 70 % of the subscriptions (within 15 points)",
        PAPER,
        spares("-d", "L-d", 0.7),
        "70 %",
        "Most subscriptions do not match, and nearly all of these need a sequence of labels that the document lacks, "
        "which ND reports.",
    ),
    Claim(
        "NS spares about 37 % of the subscriptions (within 15 points)",
        PAPER,
        spares("-s", "L-s", 0.37),
        "37 %",
        "Our aggregates stay close to the subscriptions that they cover: most subscriptions that do not match have an "
        "aggregate that does not match either.",
    ),
    Claim("annotations take at most 7 % of the document", PAPER, small(ALL_THREE, 0.07), "7 %"),
)
FORWARDING = (
    Claim(
        "L+s-sd saves 22 % of ES's time at f = 0.25", PAPER, saves(ALL_THREE, ES, {EARLY: 0.22}), "22 %", _FAST_ROUTERS
    ),
    Claim("L+s-sd saves 42 % of ES's time at f = 1", PAPER, saves(ALL_THREE, ES, {LATE: 0.42}), "42 %", _FAST_ROUTERS),
    Claim(
        "L+s-sd saves as much on the paper's links of 10 MB/s",
        PAPER,
        saves(ALL_THREE, ES, {EARLY: 0.22, LATE: 0.42}, bandwidth=PAPERS),
        "22 % and 42 %",
        _SLOW_LINKS,
    ),
    Claim("ES+s takes as long as ES (within 10 %)", PAPER, alike("ES+s", ES, 0.1), "similar", _EAGER_KNOWS),
    Claim("ES+d takes longer than ES", PAPER, loses("ES+d", ES), "longer"),
    Claim(
        "the throughput of L+s-sd is 72 % of ES's at f = 0.25 and 88 % at f = 1 (within 15 points)",
        PAPER,
        throughput(ALL_THREE, ES, {EARLY: 0.72, LATE: 0.88}),
        "72 % and 88 %",
    ),
)
LARGE_DOCUMENT = (
    Claim("ES is faster than L+s-sd at f = 0.25 for a large document", PAPER, loses(ALL_THREE, ES, EARLY), "faster"),
    Claim("L+s-sd is faster than ES at f = 1", PAPER, loses(ES, ALL_THREE, LATE), "faster", _FEW_SUBSCRIPTIONS),
    Claim("adaptive is faster than both (within 3 %)", PAPER, best_of("adaptive", ES, ALL_THREE), "faster"),
)
BANDWIDTH = (
    Claim(
        "at 1 MB/s L+s-sd saves 15 % at f = 0.25 and 30 % at f = 1",
        PAPER,
        saves(ALL_THREE, ES, {EARLY: 0.15, LATE: 0.3}, bandwidth="1MB/s"),
        "15 % and 30 %",
        _SLOW_LINKS,
    ),
    Claim(
        "the part that L+s-sd saves at f = 1 grows with the bandwidth",
        PAPER,
        grows(ALL_THREE, ES, "bandwidth"),
        "30 % to 42 %",
        _FEW_SUBSCRIPTIONS,
    ),
    Claim(
        "L+s-sd saves at least 42 % at f = 1 on links of 10 GB/s",
        "target",
        saves(ALL_THREE, ES, {LATE: 0.42}, bandwidth="10GB/s"),
        "42 %",
        _FEW_SUBSCRIPTIONS,
    ),
)
SIZES = (
    Claim(
        "for documents of 200 elements L+s-sd saves 16 % at f = 0.25 and 41 % at f = 1",
        PAPER,
        saves(ALL_THREE, ES, {EARLY: 0.16, LATE: 0.41}, set="news 200"),
        "16 % and 41 %",
        _FEW_SUBSCRIPTIONS,
    ),
    Claim(
        "L+s-sd is faster than ES on parse trees",
        PAPER,
        loses(ES, ALL_THREE, set="treebank 144"),
        "faster",
        _FEW_SUBSCRIPTIONS,
    ),
    Claim(
        "L+s-sd is faster than ES on bibliographies",
        PAPER,
        loses(ES, ALL_THREE, set="bibliography 117"),
        "faster",
        _FEW_SUBSCRIPTIONS,
    ),
)
COMPLEXITY = (
    Claim(
        "the more nested paths, the more L+s-sd saves at f = 1",
        PAPER,
        grows(ALL_THREE, ES, "nested"),
        "38 % to 44 %",
        _FEW_SUBSCRIPTIONS,
    ),
)
NUMBERS = (
    Claim(
        "the more subscriptions, the more L+s-sd saves at f = 1",
        PAPER,
        grows(ALL_THREE, ES, "subscriptions"),
        "35 % to 42 %",
    ),
    Claim(
        "L+s-sd saves 42 % at f = 1 with 5,000 subscriptions per router",
        PAPER,
        at_many(saves(ALL_THREE, ES, {LATE: 0.42}), 5_000),
        "42 %",
    ),
    Claim(
        "L+s-sd saves 41 % at f = 1 with 50,000 subscriptions per router",
        PAPER,
        at_many(saves(ALL_THREE, ES, {LATE: 0.41}), 50_000),
        "41 %",
    ),
    Claim(
        "ES is faster than L+s-sd at f = 0.25 with 50,000 subscriptions per router",
        PAPER,
        at_many(loses(ALL_THREE, ES, EARLY), 50_000),
        "faster",
    ),
)
BOUNDS = (KINDS[-1],)
ENGINES = (
    Claim(
        "with structure annotations a hop costs automaton a third of the time that it costs with parsing",
        "target",
        downstream("L+t", LAZY, 3.0, "automaton"),
        "3 times",
    ),
    Claim(
        "with the paper's kind of engine L+s-sd saves 42 % of ES's time at f = 1",
        "target",
        saves(ALL_THREE, ES, {LATE: 0.42}, engine="xtrie"),
        "42 %",
        _FEW_SUBSCRIPTIONS,
    ),
)
