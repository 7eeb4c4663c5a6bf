"""The pages of published results: the experiments and the introduction of each."""

from dataclasses import dataclass
from fnmatch import fnmatch

from .chart_data import Chart

_HOW = (
    "Every run first compares the answers of all rivals; then the rivals run in turn, in one process, and a time is "
    "the median of the rounds."
)


@dataclass(frozen=True)
class Comparison:
    """Two series of a chart, compared in one sentence at the first x that both have.

    `text` has places for `x`, for the values of `ours` and `rival` (three significant digits), and for `times`, how
    many times one is the other (two digits).
    """

    experiment: str
    ours: str
    rival: str
    text: str

    def sentence(self, chart: Chart) -> str:
        """The comparison in words; empty if the chart lacks one of the series."""
        points = {one.name: dict(one.points) for panel in chart.panels for one in panel.series}
        ours, rival = points.get(self.ours, {}), points.get(self.rival, {})
        common = sorted(ours.keys() & rival.keys())
        if not common:
            return ""
        x, low, high = common[0], *sorted((ours[common[0]], rival[common[0]]))
        times = float(f"{high / low:.2g}")
        values = {"x": f"{x:,.0f}", "ours": _digits(ours[x]), "rival": _digits(rival[x]), "times": f"{times:,.0f}"}
        return self.text.format(**values)


def _digits(value: float) -> str:
    """Three significant digits, thousands apart."""
    return f"{float(f'{value:.3g}'):,.0f}" if value >= 100 else f"{value:.3g}"


@dataclass(frozen=True)
class Page:
    """`experiments` are patterns of names; `text` says what is measured and how; `explained` is the page of the
    documentation that explains the words.
    """

    name: str
    title: str
    experiments: tuple[str, ...]
    text: str
    explained: str = ""
    comparisons: tuple[Comparison, ...] = ()


PAGES = (
    Page(
        "engine",
        "The default engine",
        ("engine", "engine-*", "reading"),
        "These experiments measure Pathcast's own engine against targets: reading, matching, values, changes of "
        f"subscriptions, and the index on disk. {_HOW}",
        "../concepts/engine.md",
        (
            Comparison(
                "engine",
                "read, match, write ids",
                "lxml, one by one (extrapolated)",
                "At {x} distinct subscriptions Pathcast reads a document, matches it and writes the ids of all matches "
                "in {ours} µs. lxml, evaluating the same expressions one by one on the parsed document, takes {rival} "
                "µs, extrapolated from a sample: {times} times as long.",
            ),
        ),
    ),
    Page(
        "broker",
        "The broker",
        ("broker-*",),
        "These experiments measure `pathcast serve` as a process on loopback, beside other brokers and bare web "
        "servers: what it costs to publish, how fast subscribers get their documents, and how a million subscriptions "
        "change both. Every run first compares the answers; then the rivals run in turn.",
        "../guides/broker.md",
        (
            Comparison(
                "broker-deliveries",
                "pathcast",
                "ActiveMQ 5.17, XPath selectors",
                "With 1,000 XPath subscriptions the broker takes, logs and delivers {ours} documents per second. "
                "ActiveMQ with XPath selectors, without storage, delivers {rival}: {times} times slower.",
            ),
        ),
    ),
    Page(
        "spark",
        "Spark",
        ("spark-*",),
        "These experiments measure Pathcast on Spark against targets, beside the least that Spark itself costs. "
        "Every run first compares the answers with those of a single process; then the rivals run in turn, in one "
        "session.",
        "../guides/spark.md",
        (
            Comparison(
                "spark-documents",
                "matching, by subscriber",
                "xpath_boolean (extrapolated)",
                "At {x} subscriptions Pathcast matches {ours} documents per second on Spark. Spark's `xpath_boolean`, "
                "called once per expression, reaches {rival} documents per second, extrapolated from a sample: {times} "
                "times slower.",
            ),
        ),
    ),
    Page(
        "gpx",
        "GPX-Matcher",
        ("gpx-*",),
        "The paper (Sadoghi, Burcea, Jacobsen: GPX-Matcher, EDBT 2011) encodes XPath queries as conjunctions of "
        "predicates and measures the time to filter a document against up to four million queries, beside YFilter and "
        f"BPA. We run our implementations of all its engines, and our own (`automaton`), on the same workloads. {_HOW}",
        "../concepts/gpx.md",
    ),
    Page(
        "roxsum",
        "RoXSum",
        ("roxsum-*",),
        "The paper (Vagena, Moro, Tsotras: RoXSum, ICDE 2007) routes batches of documents on one summary tree, and "
        "measures the time within a broker and the size of messages, beside routing each document on its own. "
        "We measure from bytes in to messages out on one core. " + _HOW,
        "../concepts/roxsum.md",
    ),
    Page(
        "piggyback",
        "Piggybacking",
        ("piggyback-*",),
        "The paper (Chan, Ni: Efficient XML Data Dissemination with Piggybacking, SIGMOD 2007) lets a router send "
        "annotations along with a document, so that routers downstream match less, and measures the response time of "
        "a tree of 15 routers. We measure the processing of every router and model transmission from bytes and "
        "bandwidth. Every run first compares the deliveries of all policies with those of one matcher over all "
        "subscriptions; then the policies run in turn.",
        "../concepts/piggyback.md",
    ),
    Page(
        "mediation",
        "Mediation",
        ("mediation-*",),
        "The paper (Ni, Chan: Dissemination of Heterogeneous XML Data, CIKM 2009) compares ways to deliver documents "
        "of many schemas to subscriptions on one global schema: rewriting documents once (SDR), at every router "
        "(NDDR), or inside the engine (IDDR). We measure querying on generated course catalogues and model "
        "transmission from bytes "
        f"and bandwidth. {_HOW}",
        "../concepts/mediation.md",
    ),
    Page(
        "select-join",
        "Select-joins",
        ("joins-*", "network-*"),
        "The paper (Chandramouli, Yang: select-join subscriptions for wide-area publish/subscribe, VLDB 2008) compares "
        "schemes that keep subscribers' join results up to date, by the time that a server needs per event and by the "
        "traffic between the nodes of an overlay. We time the servers of all schemes on the same changes, after "
        "comparing the rows of some clients with DuckDB's; traffic is counted, after a simulation that carries every "
        "packet has given the same figures for some of the subscriptions.",
        "../concepts/select-join.md",
    ),
)
OTHERS = Page("others", "Other experiments", ("*",), "Experiments that belong to no other page.")


def page_of(experiment: str) -> Page:
    """The page that an experiment belongs to."""
    for page in PAGES:
        if any(fnmatch(experiment, pattern) for pattern in page.experiments):
            return page
    return OTHERS
