"""What the GPX paper claims of its figures, and what we aim at, as data; the judges are in `claim_judges.py`."""

from pathcast_lab.harness import Claim

from .claim_judges import (
    BPA,
    GPX,
    GPX_AP,
    GPX_APF,
    YFILTER,
    Ahead,
    Faster,
    Fits,
    ReadingNegligible,
    Steady,
    Takes,
    nothing_delegated,
)
from .measured_engines import REUSE

PAPER = "GPX-Matcher, §5"

ORDER_OF_MAGNITUDE = (
    Claim("GPX-ap is an order of magnitude faster than GPX", PAPER, Faster(GPX, GPX_AP, 10)),
    Claim("GPX-ap is an order of magnitude faster than YFilter", PAPER, Faster(YFILTER, GPX_AP, 10)),
)
PAPERS_ORDER = (
    Claim("GPX-ap is ahead of GPX by 5 times or more", "target", Faster(GPX, GPX_AP, 5)),
    Claim("GPX-ap is ahead of YFilter", "target", Faster(YFILTER, GPX_AP, 1)),
)
CLUSTERING = (Claim("the last predicate as access predicate beats the first", PAPER, Faster(GPX_APF, GPX_AP, 1)),)
PARSING = (Claim("parsing is negligible (a tenth of GPX-ap's time or less)", PAPER, ReadingNegligible(GPX_AP, 0.1)),)
GPX_BEFORE_YFILTER = (Claim("YFilter takes more than three times as long as GPX", PAPER, Faster(YFILTER, GPX, 3)),)
GPX_FIRST = (Claim("YFilter is outperformed even by GPX", PAPER, Faster(YFILTER, GPX, 1)),)
YFILTER_FIRST = (
    Claim("YFilter is ahead of GPX", PAPER, Faster(GPX, YFILTER, 1)),
    Claim("YFilter is ahead of BPA", PAPER, Faster(BPA, YFILTER, 1)),
)
ABSOLUTE = (
    Claim("90,000 queries take GPX-ap just under 1 ms a document", PAPER, Takes(GPX_AP, 90_000, 0, 1_000)),
    Claim(
        "… and YFilter 18 ms (within a factor of 1.5): the paper's own implementation",
        PAPER,
        Takes(YFILTER, 90_000, 12_000, 27_000),
    ),
)
WILDCARDS = (
    Claim("GPX-ap improves over GPX at least two times", PAPER, Faster(GPX, GPX_AP, 2)),
    Claim("GPX-ap remains the dominant algorithm: ahead of YFilter", PAPER, Faster(YFILTER, GPX_AP, 1)),
)
DESCENDANTS = (
    Claim("DO leaves GPX-ap nearly unaffected (within a half)", PAPER, Steady(GPX_AP, 1.5)),
    Claim("GPX-ap stays ahead of YFilter", PAPER, Faster(YFILTER, GPX_AP, 1)),
)
FILTERS = (
    Claim(
        "without filters GPX-ap is faster than YFilter by orders of magnitude",
        PAPER,
        Faster(YFILTER, GPX_AP, 10, at="smallest"),
    ),
    Claim("at 10 filters it is still at least 50 % better", PAPER, Faster(YFILTER, GPX_AP, 1.5)),
)
FEW_FILTERS = (
    Claim(
        "with one or two filters GPX-ap outperforms YFilter significantly (two times)",
        PAPER,
        Faster(YFILTER, GPX_AP, 2),
    ),
)
SHARED_TUPLES = tuple(
    Claim(
        f"to evaluate the tuples that paths share only once improves {engine}'s time",
        "GPX-Matcher, §4.1",
        Faster(engine, engine + REUSE, 1),
    )
    for engine in (GPX, GPX_AP, GPX_APF)
)
MEMORY = (Claim("all of it fits in 16 GB", "target", Fits(16)),)
ALWAYS = (
    Claim("automaton matches 10 times faster than the best of the others", "target", Ahead(10)),
    Claim("no engine hands patterns or documents to another", "target", nothing_delegated),
)
