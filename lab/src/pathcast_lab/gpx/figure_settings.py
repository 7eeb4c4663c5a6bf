"""The figures of the GPX paper's evaluation (§5), as data: the axis, the fixed settings, and the claims.

`axis` names the field of `Workload` that the axis sets; a figure with `cases` is measured for each of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pathcast_lab.harness import Claim, PaperPoint

from .claim_judges import BPA, GPX, GPX_AP, GPX_APF, OURS, YFILTER
from .gpx_claims import (
    ABSOLUTE,
    ALWAYS,
    ALWAYS_DESCENDANT,
    ALWAYS_FILTERED,
    ALWAYS_MATCHING,
    CLUSTERING,
    DESCENDANTS,
    FEW_FILTERS,
    FILTERS,
    GPX_BEFORE_YFILTER,
    GPX_FIRST,
    LENGTHS,
    MEMORY,
    ORDER_OF_MAGNITUDE,
    PAPER,
    PAPERS_ORDER,
    PARSING,
    SHARED_TUPLES,
    WILDCARDS,
    YFILTER_FIRST,
)
from .gpx_workloads import ASTRONOMY, MIX, NITF, PROTEIN
from .measured_engines import REUSE

ALL = (OURS, GPX, GPX_AP, GPX_APF, YFILTER, BPA)
TOP = (OURS, GPX, GPX_AP, YFILTER)
Case = Mapping[str, float | int]

# The paper's match rate on NITF, and two that are higher.
PAPER_RATE = "0.06 % match"
RATES: Mapping[str, Case] = {f"{rate:g} % match": {"match_rate": rate / 100} for rate in (0.06, 1, 3)}
ONE_OR_TWO: Mapping[str, Case] = {"1 filter": {"filters": 1}, "2 filters": {"filters": 2}}
AS_GENERATED: Mapping[str, Case] = {"": {}}
# Our generator's short queries match far more than the paper's, so that figures on NITF are measured at both rates.
BOTH_RATES: Mapping[str, Case] = {PAPER_RATE: {"match_rate": 0.0006}, "as generated": {}}
# The times that §5 gives in its text, in µs per document.
NAMED_TIMES = (
    PaperPoint(GPX_AP, 90_000, 1_000, PAPER, panel=PAPER_RATE),
    PaperPoint(YFILTER, 90_000, 18_000, PAPER, panel=PAPER_RATE),
)


@dataclass(frozen=True)
class Figure:
    """One figure: `queries` are those of the small and of the paper's scale where the axis does not set them;
    `documents` and `rounds` those of the small scale. `place` words a place on the axis.
    """

    name: str
    title: str
    schema: str
    axis: str
    label: str
    place: str
    small: tuple[float, ...]
    paper: tuple[float, ...]
    claims: tuple[Claim, ...]
    queries: tuple[int, int] = (0, 0)
    documents: int = 50
    rounds: int = 5
    engines: tuple[str, ...] = TOP
    fixed: Case = field(default_factory=dict)
    cases: Mapping[str, Case] = field(default_factory=lambda: AS_GENERATED)
    always: tuple[Claim, ...] = ALWAYS
    paper_points: tuple[PaperPoint, ...] = ()


def _distinct(
    letter: str,
    schema: str,
    title: str,
    small: tuple[float, ...],
    paper: tuple[float, ...],
    claims: tuple[Claim, ...],
    cases: Mapping[str, Case] = AS_GENERATED,
    paper_points: tuple[PaperPoint, ...] = (),
) -> Figure:
    return Figure(
        f"gpx-fig2{letter}",
        f"GPX, Figure 2({letter}): distinct queries, {title}",
        schema,
        "queries",
        "distinct queries",
        "{:,} distinct queries",
        small,
        paper,
        claims,
        engines=ALL,
        fixed={"distinct": True},
        cases=cases,
        always=ALWAYS_MATCHING,
        paper_points=paper_points,
    )


def _cases(schema: str) -> Mapping[str, Case]:
    return BOTH_RATES if schema == NITF else AS_GENERATED


def _duplicates(letter: str, schema: str, title: str, claims: tuple[Claim, ...]) -> Figure:
    return Figure(
        f"gpx-fig3{letter}",
        f"GPX, Figure 3({letter}): queries with duplicates, {title}",
        schema,
        "queries",
        "queries",
        "{:,} queries",
        (50_000, 100_000, 200_000),
        (500_000, 1_000_000, 2_000_000, 3_000_000, 4_000_000),
        claims,
        cases=_cases(schema),
        always=ALWAYS if schema == NITF else ALWAYS_MATCHING,
    )


def _operators(letter: str, schema: str, title: str, axis: str) -> Figure:
    is_wildcard = axis == "wildcard"
    operator = "*" if is_wildcard else "//"
    tenths = tuple(tenth / 10 for tenth in range(8 if is_wildcard else 10))
    small = (0.0, 0.3, 0.7) if is_wildcard else (0.0, 0.4, 0.9)
    return Figure(
        f"gpx-fig4{letter}",
        f"GPX, Figure 4({letter}): the probability of {operator}, {title}",
        schema,
        axis,
        f"probability of {operator} at a step",
        f"probability {{:g}} of `{operator}`",
        small,
        tenths,
        WILDCARDS if is_wildcard else DESCENDANTS,
        (50_000, 2_000_000),
        cases=_cases(schema),
        always=ALWAYS_MATCHING if is_wildcard else ALWAYS_DESCENDANT,
    )


def _filters(letter: str, schema: str, title: str, many: bool) -> Figure:
    if many:
        return Figure(
            f"gpx-fig6{letter}",
            f"GPX, Figure 6({letter}): one or two filters per query, {title}",
            schema,
            "queries",
            "queries",
            "{:,} queries",
            (2_000, 5_000, 10_000),
            (100_000, 200_000, 300_000, 400_000, 500_000),
            FEW_FILTERS,
            cases=ONE_OR_TWO,
            always=ALWAYS_FILTERED,
        )
    return Figure(
        f"gpx-fig6{letter}",
        f"GPX, Figure 6({letter}): filters per query, {title}",
        schema,
        "filters",
        "attribute filters per query",
        "{} filters per query",
        (0, 1, 5, 10),
        (0, 1, 2, 5, 10),
        FILTERS,
        (10_000, 500_000),
        always=ALWAYS_FILTERED,
    )


_PSD, _NASA = "protein (for PSD)", "astronomy (for NASA)"
FIGURES = (
    _distinct(
        "a",
        NITF,
        "NITF",
        (5_000, 20_000, 50_000),
        (10_000, 30_000, 50_000, 70_000, 90_000),
        ORDER_OF_MAGNITUDE + PAPERS_ORDER + CLUSTERING + YFILTER_FIRST + PARSING + ABSOLUTE,
        RATES,
        NAMED_TIMES,
    ),
    _distinct(
        "b",
        PROTEIN,
        _PSD,
        (1_000, 3_000, 9_000),
        (1_000, 3_000, 5_000, 7_000, 9_000),
        GPX_BEFORE_YFILTER + ORDER_OF_MAGNITUDE[:1] + CLUSTERING,
    ),
    _distinct(
        "c",
        ASTRONOMY,
        _NASA,
        (1_000, 3_000, 9_000),
        (10_000, 20_000, 30_000, 40_000, 50_000),
        GPX_BEFORE_YFILTER + ORDER_OF_MAGNITUDE[:1] + CLUSTERING,
    ),
    _duplicates("a", NITF, "NITF", ORDER_OF_MAGNITUDE + MEMORY),
    _duplicates("b", PROTEIN, _PSD, GPX_FIRST + ORDER_OF_MAGNITUDE + MEMORY),
    _duplicates("c", MIX, "a mix of the three schemas", ORDER_OF_MAGNITUDE + MEMORY),
    _operators("a", NITF, "NITF", "wildcard"),
    _operators("b", PROTEIN, _PSD, "wildcard"),
    _operators("c", ASTRONOMY, _NASA, "wildcard"),
    _operators("d", NITF, "NITF", "descendant"),
    _operators("e", PROTEIN, _PSD, "descendant"),
    _operators("f", ASTRONOMY, _NASA, "descendant"),
    Figure(
        "gpx-fig5a",
        "GPX, Figure 5(a): length of queries and depth of documents, NITF",
        NITF,
        "length and levels",
        "longest query, and levels of the documents",
        "{} steps and levels",
        (6, 8, 10, 12),
        (6, 7, 8, 9, 10, 11, 12),
        LENGTHS,
        (20_000, 500_000),
        documents=20,
        rounds=3,
        cases=BOTH_RATES,
    ),
    Figure(
        "gpx-fig5b",
        "GPX, Figure 5(b): length of queries, NITF documents of 10 levels",
        NITF,
        "length",
        "longest query",
        "{} steps per query",
        (6, 8, 10),
        (6, 7, 8, 9, 10),
        LENGTHS,
        (20_000, 500_000),
        fixed={"levels": 10},
        cases=BOTH_RATES,
    ),
    _filters("a", NITF, "NITF", many=False),
    _filters("b", PROTEIN, _PSD, many=False),
    _filters("c", NITF, "NITF", many=True),
    _filters("d", PROTEIN, _PSD, many=True),
    Figure(
        "gpx-clustering",
        "GPX: the last predicate as access predicate against the first",
        NITF,
        "queries",
        "distinct queries",
        "{:,} distinct queries",
        (10_000, 50_000),
        (10_000, 50_000, 90_000),
        CLUSTERING,
        engines=(OURS, GPX, GPX_AP, GPX_APF),
        fixed={"distinct": True, "match_rate": 0.0006},
    ),
    Figure(
        "gpx-reuse",
        "GPX: evaluating the tuples that overlapping paths share once (§4.1)",
        NITF,
        "queries",
        "distinct queries",
        "{:,} distinct queries",
        (10_000, 50_000),
        (10_000, 50_000, 90_000),
        SHARED_TUPLES,
        engines=(OURS, *(engine + reuse for engine in (GPX, GPX_AP, GPX_APF) for reuse in ("", REUSE))),
        fixed={"distinct": True, "match_rate": 0.0006},
    ),
)
