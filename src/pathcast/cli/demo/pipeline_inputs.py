"""The inputs of the demo's pipeline: documents, mappings, the overlay with its readers, and the standing joins.

    documents/         Parquet: document, publisher, xml; each file is one micro-batch
    mediator/          the global schema, and the mapping of each publisher
    subscriptions.csv  id, router, xpath, subscriber; newcomers.csv: the same, published while the stream runs
    overlay/           15 routers with these subscriptions, one folder per version
    market.toml        two tables, and where documents contain their rows
    investors.csv      subscriber, query: the standing joins
    pipeline.toml      the pipeline

Everything is drawn from one seed (synthetic_market.py). Some documents are damaged on purpose: a pipeline must cope
with them.
"""

import csv
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from .publisher_schemas import mediator, write
from .synthetic_market import NEWCOMERS, Market, is_damaged

if TYPE_CHECKING:
    from pathcast.routing import Overlay

LEVELS, FANOUT, POLICY = 4, 2, "L+s-sd"
# Routers advertise half of the steps of their subscriptions, so annotations save most work of the next router, not all.
KEEP = 0.5
PIPELINE = """# The demo runs this with: pathcast run pipeline.toml. docs/guides/pipeline.md documents every key.

# Reports of five publishers, one Parquet file per micro-batch.
[source]
format = "parquet"
path = "documents"
schema = "document long, publisher string, xml binary"
options = { maxFilesPerTrigger = 1 }

# Each publisher has its own schema; the column `publisher` names it.
[mediation]
mediator = "mediator"

# 15 routers: documents travel from r1 to the routers with matching subscriptions. A router sends its results along to
# save the next router work: subscriptions that match (+s), that do not (-s), chains of labels that do not occur (-d).
[overlay]
policy = "L+s-sd"
links = "links"

[subscriptions]
index = "overlay"

[deliveries]
path = "deliveries"
columns = ["document"]

[dead_letters]
path = "dead-letters"

# In addition, stocks and reviews are extracted from the same documents and joined for the subscribers of joins.
[joins]
schema = "market.toml"
subscriptions = "investors.csv"
key = "document"
path = "messages"
dead_letters = "dead-changes"

[stream]
checkpoint = "checkpoint"
trigger = "available-now"
"""
MARKET = """# Two tables that change with every report, and the paths of their rows in the global schema.
joins = ["Stocks.symbol = Reviews.symbol"]

[tables]
Stocks = "symbol string, name string, per float"
Reviews = "symbol string, rating float, text string"

[rows.Stocks]
rows = "/report/stock"
columns = { symbol = "symbol", name = "name", per = "ratio/per" }

[rows.Reviews]
rows = "/report/review"
columns = { symbol = "symbol", rating = "rating", text = "text" }
"""
Subscription = tuple[str, str, str]


def write_documents(folder: Path, market: Market, count: int, files: int, advance: Callable[[int], object]) -> None:
    """Write reports to Parquet files, with rising modification times: a stream reads the oldest first."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir()
    for at in range(files):
        first, last = count * at // files + 1, count * (at + 1) // files
        reports = [market.report(number) for number in range(first, last + 1)]
        columns = {
            "document": pa.array([report.number for report in reports], pa.int64()),
            "publisher": pa.array([report.publisher for report in reports]),
            "xml": pa.array(
                [damage(report.number, write(report.publisher, report)) for report in reports], pa.binary()
            ),
        }
        file = folder / f"reports-{at + 1:03}.parquet"
        pq.write_table(pa.table(columns), file, compression="zstd")
        os.utime(file, (1_000_000_000 + at, 1_000_000_000 + at))
        advance(len(reports))


def damage(number: int, xml: bytes) -> bytes:
    """A document as received: truncated in the middle if the connection broke."""
    return xml[: len(xml) // 2] if is_damaged(number) else xml


def write_subscriptions(file: Path, subscriptions: Iterable[Subscription], first: int) -> None:
    """Write router, XPath and subscriber of each, with ids starting at `first`."""
    with file.open("w", newline="", encoding="utf-8") as target:
        writer = csv.writer(target)
        writer.writerow(["id", "router", "xpath", "subscriber"])
        writer.writerows((first + number, *each) for number, each in enumerate(subscriptions))


def read_subscriptions(file: Path) -> list[Subscription]:
    """Read what `write_subscriptions` wrote."""
    with file.open(newline="", encoding="utf-8") as source:
        return [(row["router"], row["xpath"], row["subscriber"]) for row in csv.DictReader(source)]


def routers() -> list[str]:
    """The names of the overlay's routers, the root first."""
    from pathcast.transmission import Topology

    return list(Topology.tree(LEVELS, FANOUT).nodes)


def overlay_of(subscriptions: Iterable[Subscription]) -> "Overlay":
    """The overlay with these subscriptions, advertised."""
    from pathcast.routing import Overlay

    made = Overlay.tree(LEVELS, FANOUT, bandwidth="10MB/s", latency="5ms")
    of_router: dict[str, tuple[list[str], list[str]]] = {}
    for router, xpath, subscriber in subscriptions:
        xpaths, names = of_router.setdefault(router, ([], []))
        xpaths.append(xpath)
        names.append(subscriber)
    for router, (xpaths, names) in of_router.items():
        made.subscribe_many(router, xpaths, names)
    made.advertise(keep=KEEP)
    return made


def make_up(
    folder: Path,
    market: Market,
    documents: int,
    files: int,
    wanted: tuple[int, int, int],
    advance: Callable[[int], object],
) -> "Overlay":
    """Write everything, and publish the first version of the overlay; return the second, which adds the newcomers.

    wanted: the numbers of subscriptions, readers and joins.
    """
    subscriptions, readers, investors = wanted
    write_documents(folder / "documents", market, documents, files, advance)
    mediator().save(folder / "mediator")
    names = routers()
    write_subscriptions(folder / "subscriptions.csv", market.subscriptions(names, subscriptions, readers), 1)
    later = max(subscriptions // 20, NEWCOMERS)
    write_subscriptions(folder / "newcomers.csv", market.newcomers(names, later), subscriptions + 1)
    with (folder / "investors.csv").open("w", newline="", encoding="utf-8") as target:
        rows = ((f"investor-{number:03}", query) for number, query in enumerate(market.queries(investors), 1))
        csv.writer(target).writerows([("subscriber", "query"), *rows])
    (folder / "market.toml").write_text(MARKET, encoding="utf-8")
    (folder / "pipeline.toml").write_text(PIPELINE, encoding="utf-8")
    publish(folder, overlay_of(subscriptions_of(folder, 1)))
    return overlay_of(subscriptions_of(folder, 2))


def publish(folder: Path, overlay: "Overlay") -> int:
    """Publish an overlay for the pipeline; return the version number."""
    from pathcast.spark import publish_overlay

    return publish_overlay(overlay, folder / "overlay", policy=POLICY)


def subscriptions_of(folder: Path, version: int) -> list[Subscription]:
    """The subscriptions of a version of the overlay."""
    found = read_subscriptions(folder / "subscriptions.csv")
    return found if version == 1 else found + read_subscriptions(folder / "newcomers.csv")


def let_newcomers_in(folder: Path, overlay: "Overlay") -> str:
    """Publish the overlay with the newcomers while the stream runs; return a report."""
    count = len(overlay) - len(subscriptions_of(folder, 1))
    version = publish(folder, overlay)
    return f"{NEWCOMERS} newcomers with {count:,} subscriptions: published as version {version} of the overlay"
