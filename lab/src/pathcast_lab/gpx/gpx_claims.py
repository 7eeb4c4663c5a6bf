"""The claims of the GPX paper about its figures, and our targets, as data; the judges are in `claim_judges.py`."""

from dataclasses import replace

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

AUTHORS = "Sadoghi, Burcea, Jacobsen 2011"
PAPER = f"{AUTHORS}, §5"

_CHEAP_STEPS = (
    "A step of our GPX is a pass over packed counters, which takes a fraction of the time of a step of GPX-ap, and "
    "reading and collecting cost both the same."
)
_QUICK_YFILTER = (
    "Our YFilter visits about as many states as GPX-ap takes steps, and a visit takes little longer than a step; the "
    "paper's YFilter took 18 ms for 90,000 queries."
)
_QUICK_STATES = (
    "GPX compares the paths of every satisfied predicate, and takes far more steps for it than our YFilter visits "
    "states."
)
_DEEP_DOCUMENTS = (
    "In deep documents GPX-ap evaluates a tuple for every pair of an element and an ancestor, and takes more steps for "
    "it than our YFilter visits states."
)
_INLINE_FILTERS = (
    "GPX-ap checks filters inline on every path that it looks at, our YFilter only on paths whose structure has "
    "matched."
)
_MORE_QUERIES = (
    "The more // there are, the more distinct queries the generator draws, and the more predicates a document "
    "satisfies."
)
_FAST_MATCHING = "Our GPX-ap matches a document in a fraction of the paper's 1 ms, so reading it is a larger share."
_FOUND_ONE_BY_ONE = (
    "With filters automaton joins the state and the values of each element with the queries that wait for both, and "
    "handles each query found on its own."
)
_MANY_MATCHES = (
    "Many queries match a document here, and automaton spends most of its time writing their numbers, which no engine "
    "avoids."
)
_FEW_STATES = (
    "Without // the other engines have few distinct queries or states to visit and are fast as well, while automaton "
    "still looks up every element and writes every match."
)
_NO_LOOPS = "Without // our YFilter has no states with self-loops to visit, and is faster than GPX-ap."
_MANY_PATHS = "GPX-apf checks many paths for every tuple that it evaluates, so sharing tuples spares hardly any time."

ORDER_OF_MAGNITUDE = (
    Claim("GPX-ap is an order of magnitude faster than GPX", PAPER, Faster(GPX, GPX_AP, 10), "10 times", _CHEAP_STEPS),
    Claim(
        "GPX-ap is an order of magnitude faster than YFilter",
        PAPER,
        Faster(YFILTER, GPX_AP, 10),
        "10 times",
        _QUICK_YFILTER,
    ),
)
LENGTHS = (ORDER_OF_MAGNITUDE[0], replace(ORDER_OF_MAGNITUDE[1], reason=_DEEP_DOCUMENTS))
PAPERS_ORDER = (
    Claim("GPX-ap is at least 5 times as fast as GPX", "target", Faster(GPX, GPX_AP, 5), "5 times", _CHEAP_STEPS),
    Claim("GPX-ap is faster than YFilter", "target", Faster(YFILTER, GPX_AP, 1), "faster", _QUICK_YFILTER),
)
CLUSTERING = (
    Claim(
        "the last predicate as access predicate is faster than the first",
        PAPER,
        Faster(GPX_APF, GPX_AP, 1),
        "faster",
    ),
)
PARSING = (
    Claim(
        "parsing is negligible (a tenth of GPX-ap's time or less)",
        PAPER,
        ReadingNegligible(GPX_AP, 0.1),
        "µs beside ms",
        _FAST_MATCHING,
    ),
)
GPX_BEFORE_YFILTER = (
    Claim(
        "YFilter takes more than three times as long as GPX",
        PAPER,
        Faster(YFILTER, GPX, 3),
        "3 times at 10,000 queries",
        _QUICK_STATES,
    ),
)
GPX_FIRST = (Claim("YFilter is slower than GPX", PAPER, Faster(YFILTER, GPX, 1), "slower", _QUICK_STATES),)
YFILTER_FIRST = (
    Claim("YFilter is faster than GPX", PAPER, Faster(GPX, YFILTER, 1), "faster"),
    Claim("YFilter is faster than BPA", PAPER, Faster(BPA, YFILTER, 1), "faster"),
)
ABSOLUTE = (
    Claim(
        "GPX-ap takes just under 1 ms per document for 90,000 queries", PAPER, Takes(GPX_AP, 90_000, 0, 1_000), "1 ms"
    ),
    Claim(
        "YFilter takes 18 ms per document for 90,000 queries (within a factor of 1.5)",
        PAPER,
        Takes(YFILTER, 90_000, 12_000, 27_000),
        "18 ms",
        "Our YFilter takes little time to visit a state; the paper does not say how many states its YFilter visited.",
    ),
)
WILDCARDS = (
    Claim("GPX-ap is at least two times as fast as GPX", PAPER, Faster(GPX, GPX_AP, 2), "2 times", _CHEAP_STEPS),
    Claim("GPX-ap is faster than YFilter", PAPER, Faster(YFILTER, GPX_AP, 1), "faster", _QUICK_YFILTER),
)
DESCENDANTS = (
    Claim(
        "more // leave the time of GPX-ap nearly unaffected (within 50 %)",
        PAPER,
        Steady(GPX_AP, 1.5),
        "unaffected",
        _MORE_QUERIES,
    ),
    Claim("GPX-ap stays faster than YFilter", PAPER, Faster(YFILTER, GPX_AP, 1), "faster", _NO_LOOPS),
)
FILTERS = (
    Claim(
        "without filters GPX-ap is faster than YFilter by orders of magnitude (at least 10 times)",
        PAPER,
        Faster(YFILTER, GPX_AP, 10, x=0),
        "10 times or more",
        _QUICK_YFILTER,
    ),
    Claim(
        "at 10 filters GPX-ap is still at least 50 % faster",
        PAPER,
        Faster(YFILTER, GPX_AP, 1.5, x=10),
        "1.5 times",
        _INLINE_FILTERS,
    ),
)
FEW_FILTERS = (
    Claim(
        "with one or two filters GPX-ap is significantly faster than YFilter (two times)",
        PAPER,
        Faster(YFILTER, GPX_AP, 2),
        "significantly",
        _INLINE_FILTERS,
    ),
)
SHARED_TUPLES = tuple(
    Claim(
        f"evaluating the tuples that paths share only once makes {engine} faster",
        f"{AUTHORS}, §4.1",
        Faster(engine, engine + REUSE, 1),
        "faster",
        _MANY_PATHS if engine == GPX_APF else "",
    )
    for engine in (GPX, GPX_AP, GPX_APF)
)
MEMORY = (Claim("all engines together fit in 16 GB", "target", Fits(16), "16 GB"),)
ALWAYS = (
    Claim("automaton matches 10 times faster than the best of the others", "target", Ahead(10), "10 times"),
    Claim("no engine hands patterns or documents to another", "target", nothing_delegated, "none"),
)
ALWAYS_MATCHING = (replace(ALWAYS[0], reason=_MANY_MATCHES), ALWAYS[1])
ALWAYS_DESCENDANT = (replace(ALWAYS[0], reason=_FEW_STATES), ALWAYS[1])
ALWAYS_FILTERED = (replace(ALWAYS[0], reason=_FOUND_ONE_BY_ONE), ALWAYS[1])
