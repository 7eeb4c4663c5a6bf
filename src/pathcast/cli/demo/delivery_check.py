"""The demo's check: compare what the stream has written with what this process computes.

    report ── written in the global schema ── one matcher over all subscriptions ──▶ who gets it
           └─ its rows ────────────────────── one join server ─────────────────────▶ which messages are sent

The reports are generated again, so that the check does not depend on Spark, mediation, routers or extraction: it uses
only the flat matcher and the join server in one process, and Arrow to read the output. Spark's own log shows which
files a micro-batch read, and the pipeline's report which version of the overlay it used.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .pipeline_inputs import Subscription, subscriptions_of
from .publisher_schemas import Report, write
from .stream_output_reader import columns_of
from .synthetic_market import NEWCOMER, Market, is_damaged


@dataclass(frozen=True)
class Line:
    """One line of the final table."""

    what: str
    expected: int
    found: int
    lost: int
    twice: int
    wrong: int

    @property
    def right(self) -> bool:
        return not (self.lost or self.twice or self.wrong)


def check(folder: Path, market: Market, count: int, versions: Mapping[int, int]) -> Iterator[Line]:
    """Compare documents, deliveries, dead letters and join messages; `versions`: micro-batch → overlay version."""
    batch_of = _batches(folder)
    numbers = range(1, count + 1)
    yield compare("documents", Counter(numbers), Counter(batch_of.keys()))
    damaged = Counter(number for number in numbers if is_damaged(number))
    good = [market.report(number) for number in numbers if not is_damaged(number)]
    expected: Counter[Any] = Counter()
    for version in sorted(set(versions.values())):
        mine = [report for report in good if versions.get(batch_of.get(report.number, -1)) == version]
        expected.update(deliveries_of(mine, subscriptions_of(folder, version)))
    found = Counter(zip(*columns_of(folder / "deliveries", "document", "router", "subscriber"), strict=True))
    yield compare("deliveries by 15 routers", expected, found)
    yield compare("… of these to newcomers", *(_of_newcomers(each) for each in (expected, found)))
    yield compare("dead letters", damaged, Counter(columns_of(folder / "dead-letters", "document")[0]))
    yield compare("messages of joins", messages_of(folder, good), _messages(folder))
    yield compare("… and dead letters", damaged, _dead_changes(folder))


def deliveries_of(reports: list[Report], subscriptions: Iterable[Subscription]) -> "Counter[tuple[int, str, str]]":
    """Document, router and subscriber of all deliveries, by one matcher over all subscriptions."""
    from pathcast.matching import Subscriptions

    given = list(subscriptions)
    home = {subscriber: router for router, _, subscriber in given}
    flat = Subscriptions()
    flat.add_many([xpath for _, xpath, _ in given], [subscriber for *_, subscriber in given])
    answers = flat.compile().match_many(write("exchange", report) for report in reports)
    return Counter(
        (report.number, home[name], name)
        for report, answer in zip(reports, answers, strict=True)
        for name in answer.subscribers
    )


def messages_of(folder: Path, reports: Iterable[Report]) -> "Counter[tuple[int, bytes]]":
    """Sequence and bytes of all messages, by one join server."""
    from pathcast.joins.partition import StandingJoins
    from pathcast.joins.query import read_schema_file
    from pathcast.joins.server import Step
    from pathcast.spark.joins import read_join_subscriptions

    schema = read_schema_file(folder / "market.toml").schema
    server = StandingJoins(schema, read_join_subscriptions(str(folder / "investors.csv"))).server()
    found: Counter[tuple[int, bytes]] = Counter()
    for sequence, table, row in changes_of(reports):
        found.update((sequence, message.encode()) for message in server.make(Step(table, None, row), number=sequence))
    return found


def changes_of(reports: Iterable[Report]) -> Iterator[tuple[int, str, tuple[str | float, ...]]]:
    """The rows of reports, numbered as by extraction: the document's number and the row's place in it."""
    for report in reports:
        rows: list[tuple[str, tuple[str | float, ...]]] = []
        rows += [("Stocks", (stock.symbol, stock.name, stock.per)) for stock in report.stocks]
        rows += [("Reviews", (review.symbol, review.rating, review.text)) for review in report.reviews]
        for place, (table, row) in enumerate(rows):
            yield report.number << 20 | place, table, row


def compare(what: str, expected: "Counter[Any]", found: "Counter[Any]") -> Line:
    """Count what is missing, duplicated or unexpected."""
    lost = sum((expected - found).values())
    extra = found - expected
    twice = sum(times for one, times in extra.items() if one in expected)
    return Line(what, sum(expected.values()), sum(found.values()), lost, twice, sum(extra.values()) - twice)


def files_of(checkpoint: Path) -> dict[str, int]:
    """The micro-batch that read each file of the source, from Spark's logs.

    The source numbers the files that it finds, and the offset of a micro-batch is the last number that it reads. After
    a crash between the two, a micro-batch reads more than one number.
    """
    ends = {batch: _source_offset(checkpoint / "offsets" / str(batch)) for batch in _numbers(checkpoint / "offsets")}
    entries = {}
    for log in (checkpoint / "sources" / "0").iterdir():
        if re.fullmatch(r"\d+(\.compact)?", log.name):
            for line in log.read_text(encoding="utf-8").splitlines()[1:]:
                entry = json.loads(line)
                number = int(entry["batchId"])
                entries[Path(entry["path"]).name] = min(
                    (batch for batch, end in ends.items() if end >= number), default=number
                )
    return entries


def _source_offset(file: Path) -> int:
    """The offset of the only source of a stream, from the last line of Spark's offset file for a micro-batch."""
    return int(json.loads(file.read_text(encoding="utf-8").splitlines()[-1])["logOffset"])


def _numbers(folder: Path) -> list[int]:
    return sorted(int(file.name) for file in folder.iterdir() if file.name.isdecimal())


def _batches(folder: Path) -> dict[int, int]:
    """The micro-batch of each document."""
    found = {}
    for file, batch in files_of(folder / "checkpoint").items():
        for number in columns_of(folder / "documents" / file, "document")[0]:
            found[number] = batch
    return found


def _messages(folder: Path) -> "Counter[tuple[int, bytes]]":
    sequences, messages = columns_of(folder / "messages", "sequence", "message")
    return Counter(
        (sequence, message) for sequence, message in zip(sequences, messages, strict=True) if message is not None
    )


def _dead_changes(folder: Path) -> "Counter[int]":
    return Counter(json.loads(row)["document"] for row in columns_of(folder / "dead-changes", "row")[0])


def _of_newcomers(deliveries: "Counter[tuple[int, str, str]]") -> "Counter[tuple[int, str, str]]":
    return Counter({one: times for one, times in deliveries.items() if one[2].startswith(NEWCOMER)})
