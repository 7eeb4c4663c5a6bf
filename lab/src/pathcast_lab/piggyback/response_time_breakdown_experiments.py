"""Where the response time of the piggyback paper's overlay goes: step by step, at the root, below it and on the links.

The root does all of its work under every policy, and so does every router that reads a document to its end: what
annotations can save is reading and matching below the root, and they cost time to make, write and take in. A part is
the mean time that a delivery waited for that kind of step on its whole path; parts add up to the response time.
"""

from collections.abc import Iterator

from pathcast_lab.harness import Claim, Judgement, Plot, Row, Rows, Run, every, experiment, judged, number_in

from . import piggyback_claims as claims
from .overlay_timing import BELOW, PARTS, ROOT
from .piggyback_figure_experiments import Piggyback, measure

ES, LATE, ALL_THREE = claims.ES, claims.LATE, claims.ALL_THREE
_WORK, _ANNOTATIONS = ("read", "match"), ("take", "make", "encode")
_KEPT = ("set", "subscriptions", "engine", "bandwidth", "f", "policy", "ms", "unread", "skipped-s", "skipped-d")


def _sum(rows: Rows, policy: str, f: float, places: tuple[str, ...], steps: tuple[str, ...]) -> float:
    parts = [f"{place}: {step}" for place in places for step in steps]
    return sum(rows.number("us", policy=policy, f=f, part=part) for part in parts)


def _saves(rows: Rows) -> Judgement:
    whole = {policy: 1e3 * number_in(rows.where(policy=policy, f=LATE)[0], "ms") for policy in (ES, ALL_THREE)}
    spent = {policy: _sum(rows, policy, LATE, (ROOT, BELOW), _ANNOTATIONS) for policy in whole}
    free = whole[ALL_THREE] - spent[ALL_THREE] + spent[ES]
    return judged(
        1 - whole[ALL_THREE] / whole[ES] >= 0.42,
        f"{1 - whole[ALL_THREE] / whole[ES]:.0%} at f = 1; {1 - free / whole[ES]:.0%} without the time for annotations",
    )


def _pays(rows: Rows) -> Judgement:
    found: dict[str, float] = {}
    for f in sorted(set(rows.numbers("f"))):
        work, spent = (
            {policy: _sum(rows, policy, f, places, steps) for policy in (ES, ALL_THREE)}
            for places, steps in (((BELOW,), _WORK), ((ROOT, BELOW), _ANNOTATIONS))
        )
        found[f"at f = {f:g}"] = work[ES] - work[ALL_THREE] - spent[ALL_THREE] + spent[ES]
    return every(found, "{:.0f} µs per delivery gained", least=0)


@experiment(
    "piggyback-profile",
    title="Piggyback: parts of the response time",
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
        Claim(
            "where processing outweighs transmission, L+s-sd saves 42 % of ES's time at f = 1", "target", _saves, "42 %"
        ),
        Claim(
            "reading and matching that annotations spare take longer than the annotations",
            claims.PAPER,
            _pays,
            "longer",
        ),
    ),
    plots=(
        Plot(
            "parts",
            "Parts of the response time, first match at the end",
            y="us",
            y_label="µs per delivery",
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
        "us": "µs per delivery",
        "share": "share",
        "ms": "response time, ms",
        "unread": "unread",
    },
)
def profile(run: Run, parameters: Piggyback) -> Iterator[Row]:
    """As in Figure 4(b), on links of 10 GB/s; the response time is split by the kind of step.

    Each kind of step counts at every router on the way of a delivery, up to the moment at which the delivery, or the
    copy for the next router, left: `take` is reading annotations and applying them, `make` and `encode` are annotations
    for neighbours.
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
