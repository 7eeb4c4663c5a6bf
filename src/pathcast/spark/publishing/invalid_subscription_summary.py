"""Why subscriptions of a table are invalid, for people: reasons by frequency, with an example each and what to do.

    13 of 15 subscriptions are invalid:
      12 × the prefix 'n:' is not declared, such as id 4, column 3: //n:a
       1 × expected a step, got '[', such as id 9, column 3: //[
    declare the prefix under [subscriptions]: namespaces = { n = "http://…" }, …

Invariant: the counts of the reasons, and of the rest, add up to the number of invalid rows.
Cost: the driver gets up to `_REASONS` reasons, not the rows.
"""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from ..pipeline.pipeline_sections import SubscriptionSource
from .subscription_report import Counts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Reasons that are printed; the first ones show what to fix.
_SHOWN = 3
# Reasons that are collected: each undeclared prefix has its own.
_REASONS = 100
_LONGEST = 80
_PREFIX = re.compile(r"the prefix '(.+):' is not declared")


class Reason(NamedTuple):
    """A reason, its number of rows, and one of them."""

    reason: str
    rows: int
    id: int | None
    xpath: str | None
    column: int | None

    def __str__(self) -> str:
        row = "a row without a usable id" if self.id is None else f"id {self.id}"
        place = "" if self.column is None else f", column {self.column}"
        xpath = self.xpath or "''"
        return f"{self.reason}, such as {row}{place}: {xpath[:_LONGEST]}{'…' if len(xpath) > _LONGEST else ''}"


def reasons_in(invalid: pa.Table) -> list[Reason]:
    """The reasons in a table of invalid rows, the most frequent first."""
    found: dict[str, Reason] = {}
    for row in invalid.to_pylist():
        known = found.get(row["reason"])
        if known is None:
            found[row["reason"]] = Reason(row["reason"], 1, row["id"], row["xpath"], row["column"])
        else:
            found[row["reason"]] = known._replace(rows=known.rows + 1)
    return sorted(found.values(), key=lambda one: -one.rows)[:_REASONS]


def reasons_of(invalid: "DataFrame") -> list[Reason]:
    """The reasons in a frame of invalid rows, the most frequent first."""
    from pyspark.sql import functions as f

    example = f.first(f.struct("id", "xpath", "column")).alias("example")
    grouped = invalid.groupBy("reason").agg(f.count(f.lit(1)).alias("rows"), example)
    rows = grouped.orderBy(f.desc("rows"), "reason").limit(_REASONS).select("reason", "rows", "example.*").collect()
    return [Reason(*row) for row in rows]


def described(counts: Counts, reasons: list[Reason], given: SubscriptionSource, *, kept: bool) -> Iterator[str]:
    """The problems and their remedies, as lines; `kept`: the invalid rows are written to `subscriptions.invalid`."""
    if not counts.invalid:
        return
    yield f"{_how_many(counts)}:"
    width = len(f"{reasons[0].rows:,}")
    for one in reasons[:_SHOWN]:
        yield f"  {one.rows:>{width},} × {one}"
    rest = counts.invalid - sum(one.rows for one in reasons[:_SHOWN])
    if rest:
        yield f"  {rest:>{width},} × other reasons"
    prefixes = sorted({found[1] for one in reasons if (found := _PREFIX.search(one.reason))})
    if prefixes:
        declared = ", ".join(f'{prefix} = "http://…"' for prefix in prefixes)
        yield (
            f"declare prefixes with the key subscriptions.namespaces: namespaces = {{ {declared} }}; or set "
            'namespaces = "ignore" to match local names'
        )
    if kept and given.invalid is not None:
        yield f"all invalid subscriptions, with reasons: {given.invalid}"
    elif given.invalid is None:
        yield "to keep all invalid subscriptions with their reasons, set subscriptions.invalid to a folder"


def rejection(counts: Counts, given: SubscriptionSource) -> str:
    """Why nothing is published."""
    return (
        f"{_how_many(counts)}, more than subscriptions.max_invalid = {given.max_invalid:g} allows; fix them, or "
        "raise the limit"
    )


def _how_many(counts: Counts) -> str:
    are = "is" if counts.invalid == 1 else "are"
    return f"{counts.invalid:,} of {counts.subscriptions + counts.invalid:,} subscriptions {are} invalid"
