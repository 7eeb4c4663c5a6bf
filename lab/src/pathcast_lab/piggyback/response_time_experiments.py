"""Where the response time of the piggyback paper's overlay goes: step by step, at the root, below it and on the links.

The root does all of its work under every policy, and so does whoever reads a document to its end: what annotations can
save is reading and matching below the root, and they cost time to make, write and take in. A part is what the mean
delivery waited for that kind of step on all of its way; parts add up to the response time.
"""

from collections.abc import Iterator

from pathcast_lab.harness import Claim, Judgement, Plot, Row, Rows, Run, experiment, judged

from . import piggyback_claims as claims
from .overlay_timing import BELOW, PARTS, ROOT
from .piggyback_figure_experiments import Piggyback, measure

ES, LATE, ALL_THREE = claims.ES, claims.LATE, claims.ALL_THREE
_WORK, _ANNOTATIONS = ("read", "match"), ("take", "make", "encode")
_KEPT = ("set", "subscriptions", "engine", "bandwidth", "f", "policy", "ms", "unread", "skipped-s", "skipped-d")


def _sum(rows: Rows, policy: str, places: tuple[str, ...], steps: tuple[str, ...]) -> float:
    parts = [f"{place}: {step}" for place in places for step in steps]
    return sum(rows.number("us", policy=policy, f=LATE, part=part) for part in parts)


def _saves(rows: Rows) -> Judgement:
    whole = {policy: 1e3 * rows.where(policy=policy, f=LATE)[0]["ms"] for policy in (ES, ALL_THREE)}  # type: ignore[operator]
    spent = {policy: _sum(rows, policy, (ROOT, BELOW), _ANNOTATIONS) for policy in whole}
    free = whole[ALL_THREE] - spent[ALL_THREE] + spent[ES]
    return judged(
        1 - whole[ALL_THREE] / whole[ES] >= 0.42,
        f"{1 - whole[ALL_THREE] / whole[ES]:.0%} at f = 1; were its annotations free, {1 - free / whole[ES]:.0%}",
    )


def _pays(rows: Rows) -> Judgement:
    work = {policy: _sum(rows, policy, (BELOW,), _WORK) for policy in (ES, ALL_THREE)}
    spent = {policy: _sum(rows, policy, (ROOT, BELOW), _ANNOTATIONS) for policy in (ES, ALL_THREE)}
    root = {policy: _sum(rows, policy, (ROOT,), _WORK) for policy in (ES, ALL_THREE)}
    cost = spent[ALL_THREE] - spent[ES]
    return judged(
        work[ES] - work[ALL_THREE] > cost,
        f"below the root a delivery waits {work[ES]:.0f} µs for reading and matching under ES, "
        f"{work[ALL_THREE]:.0f} µs under L+s-sd; annotations cost it {cost:.0f} µs, the root "
        f"{root[ALL_THREE] - root[ES]:+.0f} µs",
    )


@experiment(
    "piggyback-profile",
    title="Piggyback: where the response time goes",
    small=Piggyback(
        policies=(ES, "ES+s", "L", "L+s", "L-sd", ALL_THREE),
        fractions=(0.25, LATE),
        bandwidths=(claims.FASTEST,),
        rounds=9,
    ),
    paper=Piggyback(
        policies=(ES, "ES+s", "L", "L+s", "L-sd", ALL_THREE),
        fractions=(0.25, LATE),
        bandwidths=(claims.FASTEST,),
        subscriptions=(5_000,),
        documents=10,
        rounds=9,
    ),
    claims=(
        Claim("where processing outweighs transmission, L+s-sd saves 42 % of ES's time at f = 1", "target", _saves),
        Claim("reading and matching that annotations spare take longer than the annotations", claims.PAPER, _pays),
    ),
    plots=(
        Plot(
            "parts",
            "What the mean delivery waits for, first match at the end",
            y="us",
            y_label="µs a delivery",
            series="part",
            kind="bars",
            panel="policy",
            only=lambda row: row["f"] == LATE and bool(row["us"]),
        ),
    ),
    show={
        "engine": "engine",
        "f": "f",
        "policy": "policy",
        "part": "part",
        "us": "µs a delivery",
        "share": "share",
        "ms": "response time, ms",
        "unread": "unread",
    },
)
def profile(run: Run, parameters: Piggyback) -> Iterator[Row]:
    """As in Figure 4(b), on links that hardly count; then the time to the mean delivery by what it went into.

    Each kind of step counts at every router on a delivery's way, up to the moment at which the delivery, or the copy
    for the next router, left: `take` is reading annotations and working out what they spare, `make` and `encode` are
    annotations for neighbours. Unread is the part of the deliveries below the root that left before the document was
    looked at.
    """
    for row in measure(run, parameters):
        for place, step in PARTS:
            spent = row[f"{place}: {step}, µs"]
            assert isinstance(spent, float)
            assert isinstance(row["ms"], float)
            yield {
                **{name: row[name] for name in _KEPT},
                "part": f"{place}: {step}",
                "us": spent,
                "share": spent / (1e3 * row["ms"]) if row["ms"] else 0.0,
            }
